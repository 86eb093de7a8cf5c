/**
 * Faults of the sandbox's provider: the operation has the result that the fault demands, and its
 * commit counts the fault. After a timeout the result comes after 60 s, or by an advance.
 */

import assert from "node:assert/strict";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import { declare, FAULTS, left } from "../support/service/declared_faults.ts";
import type { TestService } from "../support/service/service.ts";
import {
  advance,
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

/** Instruments, the failure of their rail, and their usual result. */
const INSTRUMENTS: [name: string, body: Record<string, unknown>, failure: string, later: string][] =
  [
    ["an approved card", APPROVED.card, "processing_failed", "completed"],
    ["a declined card", card("4000 0000 0000 9995"), "processing_failed", "declined"],
    ["SEPA", APPROVED.sepa, "bank_return", "completed"],
    ["a SEPA return", { iban: "DE00 0000 0000 0000 0000 99" }, "bank_return", "failed"],
    ["SWIFT", APPROVED.swift, "bank_return", "completed"],
    ["a wallet", APPROVED.stablecoin, "onchain_reverted", "completed"],
    ["no instrument", {}, "processing_failed", "completed"],
    ["an outcome", { outcome: "success" }, "processing_failed", "completed"],
  ];

serviceCase("POST /v1/payments with a fault of the provider", async (t, service) => {
  await service.setClock(AT);
  for (const [name, body, failure, later] of INSTRUMENTS) {
    for (const [fault, status, code] of [["declined", 402], ["failed", 201, failure]] as const) {
      await t.step(`${name}: ${fault} → ${status} ${code ?? ""}`, async () => {
        const declared = await faulty(service, fault);
        const response = await service.pay(body);
        if (status === 402) assertRefused(response, 402, "payment_declined");
        const payment = response.body.error?.payment ?? response.body;
        assert.deepEqual([response.status, payment.status], [status, fault]);
        if (code) assert.equal(payment.failure_code, code);
        assert.equal(response.headers.get("Sandbox-Fault"), fault);
        assert.equal(await left(service, declared), 0);
      });
    }
    await t.step(`${name}: timeout → processing, ${later} after 60 s`, async () => {
      await service.setClock(AT);
      await faulty(service, "timeout");
      const response = await service.pay(body, {
        idempotency_key: `lost ${name}`.replaceAll(" ", "-"),
      });
      assert.deepEqual([response.status, response.body.status], [201, "processing"], response.text);
      assert.equal(response.headers.get("Sandbox-Fault"), "timeout");
      const path = `${PAYMENTS}/${response.body.id}`;
      await at(service, AT + TIMEOUT_MS - 1);
      assert.equal((await read(service, path)).status, "processing");
      await at(service, AT + TIMEOUT_MS);
      const settled = await read(service, path);
      assert.equal(settled.status, later);
      if (name === "a wallet") assert.match(settled.method.wallet.tx_hash, /^0x/);
      if (name === "a SEPA return") assert.equal(settled.return_code, "R01");
      const replay = await service.pay(body, {
        idempotency_key: `lost ${name}`.replaceAll(" ", "-"),
      });
      assert.equal(replay.text, response.text);
    });
  }

  await t.step(
    "an advance settles a payment before, and the response changes nothing",
    async () => {
      for (const to of ["completed", "declined", "failed"]) {
        await service.setClock(AT);
        await faulty(service, "timeout");
        const { body } = await service.pay(APPROVED.card);
        assert.equal((await advance(service, body.id, to)).status, 200);
        const before = await balance(service);
        await at(service, AT + TIMEOUT_MS);
        assert.equal((await read(service, `${PAYMENTS}/${body.id}`)).status, to);
        assert.deepEqual(await balance(service), before);
      }
      const [row] = await service.sql`select count(*)::int as n from pay.provider_events
      where outcome in ('exception', 'unmatched')`;
      assert.equal(row!.n, 0);
    },
  );

  await t.step("a replay and a refused request use no fault up", async () => {
    await service.pay(APPROVED.card, { idempotency_key: "before" });
    const fault = await faulty(service, "declined");
    const replay = await service.pay(APPROVED.card, { idempotency_key: "before" });
    assert.deepEqual([replay.status, replay.headers.get("Sandbox-Fault")], [201, null]);
    assert.equal((await service.pay(card("4242 4242 4242 4241"))).status, 400);
    assert.equal(await left(service, fault), 1);
    await service.call("DELETE", `${FAULTS}/${fault.id}`);
  });
});

/**
 * Later operations: the fault, the response with the status of its resource and the code, and the
 * status in the end: after 60 s, or when the operation is sent again.
 */
const LATER: [operation: string, fault: string, response: string, later: string][] = [
  ["capture", "declined", "402 authorized provider_refused", "completed"],
  ["capture", "failed", "402 authorized provider_refused", "completed"],
  ["capture", "timeout", "200 authorized null", "completed"],
  ["cancel", "declined", "402 authorized provider_refused", "cancelled"],
  ["cancel", "failed", "402 authorized provider_refused", "cancelled"],
  ["cancel", "timeout", "200 authorized null", "cancelled"],
  ["refund", "declined", "201 failed provider_refused", "completed"],
  ["refund", "failed", "201 failed processing_failed", "completed"],
  ["refund", "timeout", "201 pending null", "completed"],
  ["transfer", "declined", "201 failed provider_refused", "completed"],
  ["transfer", "failed", "201 failed bank_return", "completed"],
  ["transfer", "timeout", "201 pending null", "completed"],
];

serviceCase("later operations with a fault of the provider", async (t, service) => {
  await service.setClock(AT);
  const authorized = async () =>
    (await service.pay({ ...APPROVED.card, capture: "manual" })).body.id;
  const paid = async () => (await service.pay(APPROVED.card)).body.id;
  const post = (path: string, body: unknown = {}) => service.call("POST", path, { body });
  const body = { amount: 10, currency: "EUR", destination: APPROVED.sepa };
  /** Makes what an operation needs. Returns the operation. */
  const prepare = async (operation: string) => {
    const is_refund = operation === "refund" || operation === "transfer";
    const id = is_refund ? await paid() : await authorized();
    return () =>
      operation === "transfer"
        ? post(TRANSFERS, body)
        : post(`${PAYMENTS}/${id}/${operation}`, operation === "refund" ? { amount: 400 } : {});
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
      assert.equal((await read(service, `${list}/${resource.id}`)).status, later);
    });
  }
  await t.step("a capture of a part after a timeout takes the part", async () => {
    await service.setClock(AT);
    const id = await authorized();
    await faulty(service, "timeout");
    await post(`${PAYMENTS}/${id}/capture`, { amount: 300 });
    await at(service, AT + TIMEOUT_MS);
    assert.equal((await read(service, `${PAYMENTS}/${id}`)).amount_captured, 300);
  });
  for (const to of ["completed", "failed"]) {
    await t.step(`a refund that is advanced to ${to} before stays so`, async () => {
      await service.setClock(AT);
      const id = await paid();
      await faulty(service, "timeout");
      const { body } = await post(`${PAYMENTS}/${id}/refund`);
      const advanced = await post(`/api-v1-sandbox/refunds/${body.id}/advance`, { to });
      assert.equal(advanced.status, 200);
      await at(service, AT + TIMEOUT_MS);
      assert.equal((await read(service, `${REFUNDS}/${body.id}`)).status, to);
    });
  }
  await t.step("a transfer above the balance uses no fault up", async () => {
    const fault = await faulty(service, "declined");
    assertRefused(
      await post(TRANSFERS, { ...body, amount: 9_999_999 }),
      402,
      "balance_insufficient",
    );
    assert.equal(await left(service, fault), 1);
    await service.call("DELETE", `${FAULTS}/${fault.id}`);
  });
  await t.step("a refusal that is stored under its key names no fault", async () => {
    const id = (await service.make({ outcome: "declined" })).body.id;
    const fault = await faulty(service, "failed");
    const refusals: [path: string, body: object, status: number, code: string][] = [
      [TRANSFERS, { ...body, amount: 9_999_999 }, 402, "balance_insufficient"],
      [`${PAYMENTS}/${id}/capture`, {}, 409, "invalid_state"],
    ];
    for (const [path, body, status, code] of refusals) {
      const refused = await service.call("POST", path, { body, idempotency_key: code });
      assertRefused(refused, status, code);
      assert.equal(refused.headers.get("Sandbox-Fault"), null);
    }
    assert.equal(await left(service, fault), 1);
    await service.call("DELETE", `${FAULTS}/${fault.id}`);
  });
  await t.step("the invariants hold", async () => {
    await assertSilent(service.sql);
  });
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
