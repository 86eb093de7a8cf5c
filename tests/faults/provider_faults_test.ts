/**
 * Faults of the sandbox's provider: the operation has the result that the fault demands, and its
 * commit counts the fault. tests/model has the results that come after a timeout.
 */

import assert from "node:assert/strict";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import { declare, left } from "../support/service/declared_faults.ts";
import type { TestService } from "../support/service/service.ts";
import {
  APPROVED,
  assertRefused,
  assertReplay,
  PAYMENTS,
  serviceCase,
} from "../support/service/service_case.ts";

const TRANSFERS = "/api-v1-payments/v1/transfers";

/** Declares one fault of the provider. */
function faulty(service: TestService, fault: string, where?: Record<string, string>) {
  return declare(service, { on: "provider", fault, ...(where && { where }) });
}

/** The balance of each account in EUR that is not zero. */
async function balance(service: TestService): Promise<Record<string, number>> {
  const { balances } = await service.get("/api-v1-payments/v1/balance");
  return Object.fromEntries(
    balances.map((b: { account: string; amount_minor: number }) => [b.account, b.amount_minor])
      .filter(([, amount_minor]: [string, number]) => amount_minor !== 0),
  );
}

/**
 * Later operations, each with a declared fault: the response with the status of its resource and
 * the code, and the status when the operation is sent again.
 */
const LATER: [operation: string, fault: string, response: string, later: string][] = [
  ["capture", "declined", "402 authorized provider_refused", "completed"],
  ["cancel", "failed", "402 authorized provider_refused", "cancelled"],
  ["refund", "declined", "201 failed provider_refused", "completed"],
  ["transfer", "failed", "201 failed bank_return", "completed"],
];

serviceCase("later operations with a fault of the provider", async (t, service) => {
  const post = (path: string, body: unknown = {}, options = {}) =>
    service.call("POST", path, { body, ...options });
  const body = { amount: 10, currency: "EUR", destination: APPROVED.sepa };
  /** Makes the payment that an operation needs. Returns the operation. */
  const prepare = async (operation: string) => {
    const capture = operation === "capture" || operation === "cancel" ? "manual" : "automatic";
    const { body: { id } } = await service.pay({ ...APPROVED.card, capture });
    return () =>
      operation === "transfer"
        ? post(TRANSFERS, body)
        : post(`${PAYMENTS}/${id}/${operation}`, operation === "cancel" ? {} : { amount: 400 });
  };
  for (const [operation, fault, expected, later] of LATER) {
    await t.step(`${operation} ${fault} → ${expected}, then ${later}`, async () => {
      const send = await prepare(operation);
      const before = await balance(service);
      const method_kind = operation === "transfer" && { method_kind: "sepa" };
      const declared = await faulty(service, fault, { operation, ...method_kind });
      const { status, body: { error, ...body }, headers } = await send();
      const resource = error?.payment ?? body;
      const code = error?.code ?? resource.failure_code;
      assert.equal(`${status} ${resource.status} ${code ?? null}`, expected);
      assert.equal(headers.get("Sandbox-Fault"), fault);
      assert.equal(await left(service, declared), 0);
      assert.deepEqual(await balance(service), before);
      assert.equal((await send()).body.status, later);
    });
  }
  await t.step("a replay and a refused operation use no fault up, and name none", async () => {
    const { body: { id } } = await service.make({ outcome: "declined" });
    const first = await service.pay(APPROVED.stablecoin, { idempotency_key: "first" });
    const fault = await faulty(service, "failed");
    assertReplay(await service.pay(APPROVED.stablecoin, { idempotency_key: "first" }), first);
    const refusals: [path: string, body: object, code: string][] = [
      [TRANSFERS, { ...body, amount: 9_999_999 }, "balance_insufficient"],
      [`${PAYMENTS}/${id}/capture`, {}, "invalid_state"],
    ];
    for (const [path, body, code] of refusals) {
      const refused = await post(path, body, { idempotency_key: code });
      assertRefused(refused, code);
      assert.equal(refused.headers.get("Sandbox-Fault"), null);
    }
    assert.equal(await left(service, fault), 1);
  });
  await t.step("the invariants hold", () => assertSilent(service.sql));
});

/** Conditions, a payment that matches, and one that does not. */
const CONDITIONS: [where: Record<string, string>, hit: object, miss: object | null][] = [
  [{ method_kind: "card" }, APPROVED.card, APPROVED.sepa],
  [{ method_kind: "sepa" }, APPROVED.sepa, APPROVED.swift],
  [{ method_kind: "stablecoin" }, APPROVED.stablecoin, APPROVED.card],
  [{ operation: "authorize" }, APPROVED.card, null],
  [{ method_kind: "swift", operation: "authorize" }, APPROVED.swift, APPROVED.card],
];

serviceCase("the conditions of a fault of the provider", async (t, service) => {
  for (const [where, hit, miss] of CONDITIONS) {
    await t.step(JSON.stringify(where), async () => {
      const fault = await faulty(service, "failed", where);
      if (miss) assert.equal((await service.pay({ ...miss })).body.status, "completed");
      assert.equal(await left(service, fault), 1);
      assert.equal((await service.pay({ ...hit })).body.status, "failed");
      assert.equal(await left(service, fault), 0);
    });
  }
  await t.step("another sandbox notices nothing", async () => {
    await faulty(service, "declined");
    const response = await service.pay(APPROVED.card, { key: service.other.text });
    assert.equal(response.status, 201);
  });
});

serviceCase("a fault with times 9 declines 9 of 64 racing payments", async (_t, service) => {
  const fault = await declare(service, { on: "provider", fault: "declined", times: 9 });
  const responses = await Promise.all(Array.from({ length: 64 }, () => service.pay(APPROVED.card)));
  assert.equal(responses.filter(({ status }) => status === 402).length, 9);
  assert.equal(responses.filter(({ status }) => status === 201).length, 55);
  assert.equal(await left(service, fault), 0);
  await service.pay(APPROVED.card);
  service.forgetStatements();
  await service.pay(APPROVED.card);
  service.assertStatements(1);
});
