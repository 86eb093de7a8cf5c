/**
 * Faults of the sandbox's provider: the operation has the result that the fault demands, and its
 * commit counts the fault. After a timeout the result comes after 60 s, or by an advance.
 */

import assert from "node:assert/strict";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import { declare, left } from "../support/service/declared_faults.ts";
import type { TestService } from "../support/service/service.ts";
import {
  APPROVED,
  assertRefused,
  card,
  PAYMENTS,
  REFUNDS,
  serviceCase,
} from "../support/service/service_case.ts";

const AT = Date.parse("2026-06-07T08:09:10.111Z");
const TIMEOUT_MS = 60_000;
const TRANSFERS = "/api-v1-payments/v1/transfers";

/** Sets the time, and lets the worker do the work that is due then. */
async function at(service: TestService, at_ms: number): Promise<void> {
  await service.setClock(at_ms);
  await service.deps.provider_worker.notify();
}

/** Declares one fault of the provider. */
function faulty(service: TestService, fault: string, where?: Record<string, string>) {
  return declare(service, { on: "provider", fault, ...(where && { where }) });
}

async function read(service: TestService, path: string) {
  return (await service.call("GET", path)).body;
}

/** The balance of each account in EUR that is not zero. */
async function balance(service: TestService): Promise<Record<string, number>> {
  const { balances } = await read(service, "/api-v1-payments/v1/balance");
  return Object.fromEntries(
    balances.map((b: { account: string; amount_minor: number }) => [b.account, b.amount_minor])
      .filter(([, amount_minor]: [string, number]) => amount_minor !== 0),
  );
}

/** Each row: an instrument, a fault, the response, and the status after 60 s. */
const CREATES: [body: Record<string, unknown>, fault: string, response: string, later: string][] = [
  [APPROVED.card, "declined", "402 declined payment_declined", "declined"],
  [APPROVED.sepa, "failed", "201 failed bank_return", "failed"],
  [APPROVED.stablecoin, "timeout", "201 processing null", "completed"],
  [card("4000 0000 0000 9995"), "timeout", "201 processing null", "declined"],
  [{ iban: "DE00 0000 0000 0000 0000 99" }, "timeout", "201 processing null", "failed"],
  [{}, "timeout", "201 processing null", "completed"],
];

serviceCase("POST /v1/payments with a fault of the provider", async (t, service) => {
  for (const [i, [body, fault, expected, later]] of CREATES.entries()) {
    await t.step(`${JSON.stringify(body)} ${fault} → ${expected}, then ${later}`, async () => {
      await service.setClock(AT);
      const declared = await faulty(service, fault);
      const idempotency_key = `create-${i}`;
      const response = await service.pay(body, { idempotency_key });
      const payment = response.body.error?.payment ?? response.body;
      const { status, failure_code } = payment;
      assert.equal(`${response.status} ${status} ${failure_code}`, expected);
      assert.equal(response.headers.get("Sandbox-Fault"), fault);
      assert.equal(await left(service, declared), 0);
      const path = `${PAYMENTS}/${payment.id}`;
      await at(service, AT + TIMEOUT_MS - 1);
      assert.equal((await read(service, path)).status, status);
      await at(service, AT + TIMEOUT_MS);
      assert.equal((await read(service, path)).status, later);
      assert.equal((await service.pay(body, { idempotency_key })).text, response.text);
    });
  }
  await t.step("a replay and a refused request use no fault up", async () => {
    const fault = await faulty(service, "declined");
    const replay = await service.pay(APPROVED.stablecoin, { idempotency_key: "create-2" });
    assert.deepEqual([replay.status, replay.headers.get("Sandbox-Fault")], [201, null]);
    assert.equal((await service.pay(card("4242 4242 4242 4241"))).status, 400);
    assert.equal(await left(service, fault), 1);
  });
});

/**
 * Later operations, each with a declared fault: the response with the status of its resource and
 * the code, and the status in the end: after 60 s, or when the operation is sent again.
 */
const LATER: [operation: string, fault: string, response: string, later: string][] = [
  ["capture", "declined", "402 authorized provider_refused", "completed"],
  ["capture", "timeout", "200 authorized null", "completed"],
  ["cancel", "failed", "402 authorized provider_refused", "cancelled"],
  ["cancel", "timeout", "200 authorized null", "cancelled"],
  ["refund", "declined", "201 failed provider_refused", "completed"],
  ["refund", "timeout", "201 pending null", "completed"],
  ["transfer", "failed", "201 failed bank_return", "completed"],
  ["transfer", "timeout", "201 pending null", "completed"],
];

serviceCase("later operations with a fault of the provider", async (t, service) => {
  await service.setClock(AT);
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
      await service.setClock(AT);
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
      if (fault !== "timeout") {
        assert.deepEqual(await balance(service), before);
        assert.equal((await send()).body.status, later);
        return;
      }
      await at(service, AT + TIMEOUT_MS);
      const list = { payment: PAYMENTS, refund: REFUNDS, transfer: TRANSFERS }[
        resource.object as "payment"
      ];
      const ended = await read(service, `${list}/${resource.id}`);
      assert.equal(ended.status, later);
      if (operation === "capture") assert.equal(ended.amount_captured, 400);
    });
  }
  await t.step("a refused operation uses no fault up, and its response names none", async () => {
    const { body: { id } } = await service.make({ outcome: "declined" });
    const fault = await faulty(service, "failed");
    const refusals: [path: string, body: object, status: number, code: string][] = [
      [TRANSFERS, { ...body, amount: 9_999_999 }, 402, "balance_insufficient"],
      [`${PAYMENTS}/${id}/capture`, {}, 409, "invalid_state"],
    ];
    for (const [path, body, status, code] of refusals) {
      const refused = await post(path, body, { idempotency_key: code });
      assertRefused(refused, status, code);
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
