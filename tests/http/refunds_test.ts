/**
 * Refunds over HTTP (contract §3): the refund object and its rows, refunds that wait for an
 * advance, refunds that fail later, and lists. tests/domain has the rules of amounts and statuses.
 */

import assert from "node:assert/strict";
import type { TestService } from "../support/service/service.ts";
import { changesBetween, recordOf } from "../support/database/payment_records.ts";
import {
  advance,
  assertRefused,
  card,
  paymentIn,
  PAYMENTS,
  REFUNDS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";

const MEMBERS = "id object payment_id payment_status amount amount_minor currency status " +
  "failure_code failure_message return_code reason metadata destination speed payee_check livemode " +
  "created_at updated_at";
const AT = "2026-06-07T08:09:10.111Z";
const LATER = "2026-06-08T00:00:00.000Z";

/** Every address of an advance of a refund. */
const ADDRESSES = [
  (id: string) => `${SANDBOX}/refunds/${id}/advance`,
  (id: string) => `${SANDBOX}/v1/refunds/${id}/advance`,
] as const;

function refund(service: TestService, id: string, body?: unknown) {
  return service.call("POST", `${PAYMENTS}/${id}/refund`, { body });
}

function settle(service: TestService, id: string, to: string) {
  return service.call("POST", ADDRESSES[0](id), { body: { to } });
}

/** Makes a completed payment of 1000 by card whose refunds wait. */
async function waiting(service: TestService): Promise<string> {
  return (await paymentIn(service, "completed", { ...card({}), settlement: "manual" })).id;
}

async function shown(service: TestService, id: string) {
  const { body } = await service.call("GET", `${PAYMENTS}/${id}`);
  return [body.status, body.amount_refunding, body.amount_refunded];
}

serviceCase("POST /v1/payments/{id}/refund refunds the whole amount", async (_t, service) => {
  await service.setClock(Date.parse(AT));
  const payment = await paymentIn(service, "completed", { currency: "USD" });
  const before = await recordOf(service, payment.id);
  const response = await refund(service, payment.id);
  assert.equal(response.status, 201, response.text);
  assert.equal(Object.keys(response.body).join(" "), MEMBERS);
  assert.match(response.body.id, /^re_[0-9a-hjkmnp-tv-z]{26}$/);
  assert.deepEqual(response.body, {
    id: response.body.id,
    object: "refund",
    payment_id: payment.id,
    payment_status: "refunded",
    amount: 1000,
    amount_minor: 1000,
    currency: "USD",
    status: "completed",
    failure_code: null,
    failure_message: null,
    return_code: null,
    reason: null,
    metadata: {},
    destination: null,
    speed: null,
    payee_check: null,
    livemode: false,
    created_at: AT,
    updated_at: AT,
  });
  assert.ok(response.headers.get("Location")?.endsWith(`${REFUNDS}/${response.body.id}`));
  const after = await recordOf(service, payment.id);
  assert.deepEqual(changesBetween(before, after), {
    events: ["refund.created", "refund.completed", "payment.refunded"],
    sequences: [1, 2, 3, 4, 5],
    ledger: ["refund available>processor 1000 USD"],
  });
});

serviceCase("POST /v1/payments/{id}/refund refunds parts to the cent", async (_t, service) => {
  const { id } = await paymentIn(service, "completed");
  const body = { amount_minor: 999, reason: "duplicate", metadata: { ticket: "7" } };
  const part = await refund(service, id, body);
  assert.deepEqual({ ...part.body, ...body, payment_status: "partially_refunded" }, part.body);
  assert.deepEqual(await shown(service, id), ["partially_refunded", 0, 999]);
  const before = await recordOf(service, id);
  const more = await refund(service, id, { amount: 2 });
  assertRefused(more, 400, "invalid_parameter", "amount");
  assert.equal(more.body.error.amount_refundable, 1);
  assert.equal((await recordOf(service, id)).text, before.text);
  const rest = await refund(service, id, {});
  assert.deepEqual([rest.body.amount, rest.body.payment_status], [1, "refunded"]);
  assertRefused(await refund(service, id, { amount: 1 }), 409, "invalid_state");
  const { ledger, events } = await recordOf(service, id);
  assert.deepEqual([ledger.size, events.length], [3, 2 + 2 * 3]);
});

serviceCase("POST /v1/payments/{id}/refund waits with manual settlement", async (t, service) => {
  await service.setClock(Date.parse(AT));
  const id = await waiting(service);
  const before = await recordOf(service, id);
  const made = await refund(service, id, { amount: 400 });
  await t.step("the refund is pending, holds its amount and moves no money", async () => {
    const { status, payment_status, updated_at } = made.body;
    assert.deepEqual([made.status, status, payment_status, updated_at], [
      201,
      "pending",
      "completed",
      AT,
    ]);
    const after = await recordOf(service, id);
    const changes = changesBetween(before, after);
    assert.deepEqual([changes.events, changes.ledger], [["refund.created"], []]);
    assert.deepEqual(after.events.at(-1)!.payload.data.object, made.body);
    assert.deepEqual(await shown(service, id), ["completed", 400, 0]);
  });
  await t.step("GET and the lists show the pending refund", async () => {
    assert.equal((await service.call("GET", `${REFUNDS}/${made.body.id}`)).text, made.text);
    for (const list of [`${PAYMENTS}/${id}/refunds`, `${REFUNDS}?payment_id=${id}`, REFUNDS]) {
      assert.deepEqual((await service.call("GET", list)).body.data, [made.body], list);
    }
  });
  await t.step("pending refunds that hold the rest leave nothing to refund", async () => {
    assert.equal((await refund(service, id)).body.amount, 600);
    const whole = await refund(service, id);
    assertRefused(whole, 409, "invalid_state");
    assert.deepEqual(whole.body.error.allowed, []);
    for (const to of ["refunded", "chargeback"]) {
      assertRefused(await advance(service, id, to), 409, "invalid_state");
    }
  });
  await t.step("a reset deletes them", async () => {
    const { body: reset } = await service.call("POST", `${SANDBOX}/reset`);
    assert.equal(reset.deleted.refunds, 2);
    assertRefused(await settle(service, made.body.id, "completed"), 404, "not_found");
  });
});

/** [the end of a refund of 400, its address, the changed members, the payment, events, ledger] */
const ENDS: [
  to: string,
  address: (id: string) => string,
  members: Record<string, unknown>,
  payment: [status: string, refunding: number, refunded: number],
  events: string[],
  ledger: string[],
][] = [
  [
    "completed",
    ADDRESSES[1],
    { payment_status: "partially_refunded" },
    ["partially_refunded", 0, 400],
    ["refund.completed", "payment.partially_refunded"],
    ["refund available>processor 400 EUR"],
  ],
  [
    "failed",
    ADDRESSES[0],
    {
      failure_code: "processing_failed",
      failure_message: "The refund failed while it was processed",
    },
    ["completed", 0, 0],
    ["refund.failed"],
    [],
  ],
];

serviceCase("an advance of a refund", async (t, service) => {
  for (const [to, address, members, payment, events, ledger] of ENDS) {
    await t.step(`POST ${address("{id}")} to ${to}`, async () => {
      await service.setClock(Date.parse(AT));
      const id = await waiting(service);
      const pending = (await refund(service, id, { amount: 400 })).body;
      await service.setClock(Date.parse(LATER));
      const before = await recordOf(service, id);
      const response = await service.call("POST", address(pending.id), { body: { to } });
      assert.equal(response.status, 200, response.text);
      const expected = { ...pending, ...members, status: to, updated_at: LATER };
      assert.deepEqual(response.body, expected);
      const changes = changesBetween(before, await recordOf(service, id));
      assert.deepEqual([changes.events, changes.ledger], [events, ledger]);
      assert.deepEqual(await shown(service, id), payment);
      const stored = await service.call("GET", `${REFUNDS}/${pending.id}`);
      assert.equal(stored.text, response.text);
      // Again it changes nothing, and no refund becomes pending again.
      assert.equal((await settle(service, pending.id, to)).text, response.text);
      const back = await settle(service, pending.id, "pending");
      assertRefused(back, 409, "invalid_state");
      const allowed = to === "completed" ? ["failed"] : [];
      assert.deepEqual([back.body.error.current_status, back.body.error.allowed], [to, allowed]);
    });
  }
  await t.step("ten at once give the refund each end once at most", async () => {
    const id = await waiting(service);
    const { body } = await refund(service, id, { amount: 10 });
    const responses = await Promise.all(
      Array.from(
        { length: 10 },
        (_, i) => settle(service, body.id, i % 2 ? "completed" : "failed"),
      ),
    );
    assert.deepEqual([...new Set(responses.map(({ status }) => status))].sort(), [200, 409]);
    const { events } = await recordOf(service, id);
    const ends = events.filter(({ type, payload }) =>
      type !== "refund.created" && payload.data.object.id === body.id
    ).map(({ type }) => type);
    // A completed refund can fail later.
    assert.ok(ends.includes("refund.failed"));
    assert.deepEqual(ends, [...new Set(ends)]);
  });
});

serviceCase("a completed refund that fails later gives its money back", async (_t, service) => {
  const { id } = await paymentIn(service, "refunded");
  const { body: { data: [newest] } } = await service.call("GET", `${PAYMENTS}/${id}/refunds`);
  const before = await recordOf(service, id);
  const { body } = await settle(service, newest.id, "failed");
  assert.deepEqual([body.status, body.failure_code, body.payment_status], [
    "failed",
    "processing_failed",
    "completed",
  ]);
  const { events, ledger } = changesBetween(before, await recordOf(service, id));
  assert.deepEqual(events, ["refund.failed", "payment.completed"]);
  assert.deepEqual(ledger, ["refund_reversal processor>available 1000 EUR"]);
  assert.deepEqual(await shown(service, id), ["completed", 0, 0]);
});

serviceCase("GET /v1/refunds, one and in lists", async (t, service) => {
  const payment = await paymentIn(service, "completed");
  const made: string[] = [];
  for (const amount of [100, 200, 300]) {
    made.unshift((await refund(service, payment.id, { amount, reason: "other" })).text);
  }
  const all = (path: string) => service.call("GET", path);
  await t.step("GET /v1/refunds/{id} returns the bytes of the refund's creation", async () => {
    for (const text of made) {
      assert.equal((await all(`${REFUNDS}/${JSON.parse(text).id}`)).text, text);
    }
  });
  await t.step("payment_status of a refund stays after the payment has changed", async () => {
    await advance(service, payment.id, "chargeback");
    assert.equal((await all(`${REFUNDS}/${JSON.parse(made[0]!).id}`)).text, made[0]);
  });
  await t.step("GET /v1/payments/{id}/refunds lists newest first", async () => {
    const url = `/v1/payments/${payment.id}/refunds`;
    assert.equal(
      (await all(`${PAYMENTS}/${payment.id}/refunds`)).text,
      `{"object":"list","url":"${url}","data":[${made}],"has_more":false,"next_cursor":null}`,
    );
  });
  await t.step("GET /v1/refunds?status= lists the refunds in one status", async () => {
    const waiting = await paymentIn(service, "completed", { settlement: "manual" });
    const { body: pending } = await refund(service, waiting.id, { amount: 5 });
    const counts = { pending: 1, completed: 3, failed: 0 };
    for (const [status, count] of Object.entries(counts)) {
      const { body } = await all(`${REFUNDS}?status=${status}`);
      assert.equal(body.data.length, count, status);
    }
    const one = `${REFUNDS}?status=pending&payment_id=`;
    assert.deepEqual((await all(`${one}${waiting.id}`)).body.data, [pending]);
    assert.deepEqual((await all(`${one}${payment.id}`)).body.data, []);
    assertRefused(await all(`${PAYMENTS}/pay_${"0".repeat(26)}/refunds`), 404, "not_found");
  });
});
