/**
 * Sandbox payments that the payer sends (contract §2), by bank transfer and to an address: the
 * results of `payByTransfer`, their events, their end, and refunds. tests/domain has every advance.
 */

import assert from "node:assert/strict";
import { payByTransfer, type TransferWorld } from "../support/http/bank_transfer_case.ts";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import { withServedService } from "../support/service/served_service.ts";
import type { TestService } from "../support/service/service.ts";
import {
  assertRefused,
  LEDGER,
  PAYMENTS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";

const AT = Date.parse("2026-06-07T08:09:10.111Z");
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const PAYER = "0x000000000000000000000000000000000000dEaD";

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

const create = async (service: TestService, body: Record<string, unknown>) =>
  (await service.pay({ amount: 1000, ...body })).body;
const BY_BANK = { method_kind: "sepa" };
const BY_CHAIN = { method_kind: "stablecoin", currency: "USDC" };
const move = (service: TestService, id: string, to: string, amount_received?: number) =>
  service.call("POST", `${SANDBOX}/payments/${id}/advance`, { body: { to, amount_received } });
const read = async (service: TestService, id: string) =>
  (await service.call("GET", `${PAYMENTS}/${id}`)).body;

/** [a create, its advances, the status and amount of each event, movements besides `processor`] */
const PARTS: [
  Record<string, unknown>,
  moves: [to: string, amount_received?: number][],
  events: [type: string, amount_received: number][],
  ledger: string[],
][] = [
  [BY_BANK, [["pending", 1], ["completed"], ["completed", 5]], [
    ["payment.created", 0],
    ["payment.pending", 1],
    ["payment.completed", 1000],
    ["payment.completed", 1005],
  ], ["credit available 1000", "credit unapplied 1", "credit unapplied 5", "debit unapplied 1"]],
  [BY_CHAIN, [["processing", 400], ["processing", 600], ["completed"], ["completed", 5]], [
    ["payment.created", 0],
    ["payment.processing", 400],
    ["payment.processing", 1000],
    ["payment.completed", 1000],
  ], ["credit available 1000", "credit unapplied 5"]],
];

serviceCase("a payment that the payer sends", async (t, service) => {
  await service.setClock(AT);
  for (const [body, moves, events, ledger] of PARTS) {
    await t.step(`${body.method_kind}: each part has its event and its movements`, async () => {
      const { id } = await create(service, body);
      for (const [to, amount] of moves) {
        assert.equal((await move(service, id, to, amount)).status, 200);
      }
      const shown = await service.call("GET", `/api-v1-payments/v1/events?payment_id=${id}`);
      type Event = {
        type: string;
        sequence: number;
        data: { object: { amount_received: number } };
      };
      const in_order = (shown.body.data as Event[]).sort((a, b) => a.sequence - b.sequence);
      assert.deepEqual(
        in_order.map(({ type, data }) => [type, data.object.amount_received]),
        events,
      );
      const { body: entries } = await service.call("GET", `${LEDGER}?payment_id=${id}&limit=100`);
      type Entry = { account: string; direction: string; amount_minor: number };
      const booked = (entries.data as Entry[]).filter(({ account }) => account !== "processor")
        .map(({ account, direction, amount_minor }) => `${direction} ${account} ${amount_minor}`);
      assert.deepEqual(booked.sort(), ledger);
    });
  }
  await t.step("a payment to an address ends by itself after an hour", async () => {
    const [part, none] = [await create(service, BY_CHAIN), await create(service, BY_CHAIN)];
    await move(service, part.id, "processing", 1);
    await service.setClock(AT + HOUR_MS);
    await service.deps.provider_worker.notify();
    assert.equal((await read(service, part.id)).failure_code, "underpaid");
    assert.equal((await read(service, none.id)).failure_code, "expired");
  });
  await t.step(
    "money by bank goes back to its account, stablecoin to a named address",
    async () => {
      const refund = async (body: Record<string, unknown>, refund: Record<string, unknown>) => {
        const { id } = await create(service, body);
        await move(service, id, "completed");
        return await service.call("POST", `${PAYMENTS}/${id}/refund`, { body: refund });
      };
      const by_hand = await refund({ ...BY_BANK, settlement: "manual" }, { amount: 400 });
      assert.deepEqual([by_hand.status, by_hand.body.status], [201, "pending"]);
      assertRefused(await refund(BY_CHAIN, {}), 400, "invalid_parameter", "destination");
      const destination = { address: PAYER };
      const named = await refund(BY_CHAIN, { destination });
      assert.deepEqual([named.status, named.body.destination], [201, destination]);
    },
  );
  await t.step("the invariants hold", () => assertSilent(service.sql));
});
