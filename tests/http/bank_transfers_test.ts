/**
 * Sandbox payments by bank transfer (contract §2): the results of `payByTransfer`, the advances that
 * simulate the payer, the end of their time and refunds. The invariants hold.
 */

import assert from "node:assert/strict";
import { findReference } from "../../shared/core/creditor_reference.ts";
import { payByTransfer, type TransferWorld } from "../support/http/bank_transfer_case.ts";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import { withServedService } from "../support/service/served_service.ts";
import type { TestService } from "../support/service/service.ts";
import { APPROVED, PAYMENTS, SANDBOX, serviceCase } from "../support/service/service_case.ts";

const AT = Date.parse("2026-06-07T08:09:10.111Z");
const DAY_MS = 24 * 3_600_000;

const RAILS = [
  { method_kind: "sepa", currency: "EUR" },
  { method_kind: "swift", currency: "USD" },
] as const;

Deno.test("payments by bank transfer", async (t) => {
  await withServedService(async ({ service, base_url, client }) => {
    let at = AT;
    await service.setClock(at);
    const world: TransferWorld = {
      base_url,
      api_key: service.key.text,
      book: async ({ id }, amount_received) => {
        const { status } = await client.payments.retrieve(id);
        await client.sandbox.advance(id, { to: status, amount_received });
      },
      expire: async () => {
        await service.setClock(at += 14 * DAY_MS);
        await service.deps.provider_worker.notify();
      },
    };
    for (const rail of RAILS) await payByTransfer(t, world, rail);
    await assertSilent(service.sql);
  });
});

const create = async (service: TestService, body: Record<string, unknown> = {}) =>
  (await service.pay({ amount: 1000, currency: "EUR", method_kind: "sepa", ...body })).body;
const move = (service: TestService, id: string, to: string, amount_received?: number) =>
  service.call("POST", `${SANDBOX}/payments/${id}/advance`, { body: { to, amount_received } });

/** [`to`, `amount_received`, the status and the received amount afterwards, or the error] */
const MOVES: [to: string, sent: number | undefined, end: [string, number] | [number, string]][] = [
  ["completed", undefined, ["completed", 1000]],
  ["completed", 1000, ["completed", 1000]],
  ["completed", 1001, ["completed", 1001]],
  // The money decides, as at a bank.
  ["completed", 999, ["pending", 999]],
  ["pending", 1000, ["completed", 1000]],
  ["pending", 999, ["pending", 999]],
  ["pending", undefined, ["pending", 0]],
  ["failed", undefined, ["failed", 0]],
  ["failed", 999, ["failed", 999]],
  ["failed", 1000, [400, "amount_received"]],
  ["cancelled", undefined, ["cancelled", 0]],
  ["processing", 1, [409, "completed failed cancelled"]],
  ["requires_action", 1, [400, "amount_received"]],
  ["declined", undefined, [409, "completed failed cancelled"]],
];

serviceCase("POST /payments/{id}/advance of a payment by bank transfer", async (t, service) => {
  for (const [to, sent, end] of MOVES) {
    await t.step(`to ${to} with ${sent ?? "no amount"}: ${end.join(" ")}`, async () => {
      const { id } = await create(service);
      const { status, body } = await move(service, id, to, sent);
      assert.deepEqual(
        status === 200
          ? [body.status, body.amount_received]
          : [status, body.error.param ?? body.error.allowed.join(" ")],
        end,
      );
    });
  }

  await t.step("each part has its event", async () => {
    const { id } = await create(service);
    await move(service, id, "pending", 1);
    await move(service, id, "completed");
    await move(service, id, "completed", 5);
    const { body } = await service.call("GET", `/api-v1-payments/v1/events?payment_id=${id}`);
    assert.deepEqual(
      body.data.map(({ type, data }: { type: string; data: { object: unknown } }) => [
        type,
        (data.object as { amount_received: number }).amount_received,
      ]).reverse(),
      [
        ["payment.created", 0],
        ["payment.pending", 1],
        ["payment.completed", 1000],
        ["payment.completed", 1005],
      ],
    );
  });

  await t.step("a refund goes back to the account of the payer, or waits by hand", async () => {
    for (const [settlement, status] of [["instant", "completed"], ["manual", "pending"]] as const) {
      const { id } = await create(service, { settlement });
      await move(service, id, "completed");
      const refund = await service.call("POST", `${PAYMENTS}/${id}/refund`, {
        body: { amount: 400 },
      });
      assert.deepEqual([refund.status, refund.body.status], [201, status]);
    }
  });

  await t.step("an IBAN or an outcome decides instead of the payer", async () => {
    for (
      const body of [
        APPROVED.sepa,
        { outcome: "pending" },
        { ...APPROVED.sepa, settlement: "manual" },
      ]
    ) {
      const { next_action, amount_received } = await create(service, body);
      assert.deepEqual([next_action, amount_received], [null, null]);
    }
  });

  await t.step(
    "SWIFT in EUR has a QR code, but no amount above the limit of such codes",
    async () => {
      for (
        const [amount, has_code] of [[99_999_999_999, true], [100_000_000_000, false]] as const
      ) {
        const { next_action } = await create(service, { method_kind: "swift", amount });
        assert.equal(next_action.epc_qr !== null, has_code);
      }
    },
  );

  await t.step("two payments of one moment have different references", async () => {
    const payments = await Promise.all([create(service), create(service)]);
    const references = payments.map(({ next_action }) => next_action.reference);
    assert.notEqual(references[0], references[1]);
    for (const reference of references) assert.equal(findReference(reference), reference);
  });

  await t.step("the invariants hold", () => assertSilent(service.sql));
});
