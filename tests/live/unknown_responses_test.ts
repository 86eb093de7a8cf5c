/**
 * Faults of the provider: an unknown response is never a failure, and nothing happens twice. The
 * connector's tests tell which responses are unknown; here are the ways in which the worker settles
 * them.
 */

import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import type { TestResponse } from "../support/service/service.ts";
import type { Fault } from "../support/stripe/faults.ts";
import type { StripeObject } from "../support/stripe/journal.ts";
import { Money, paid, shown } from "../support/live/live_actions.ts";
import {
  balances,
  breaches,
  type LiveCase,
  liveCase,
  resumePolls,
  settle,
  stopPolls,
  workAfter,
} from "../support/live/live_case.ts";
import { until } from "../support/common/until.ts";

/** Longest time of an operation here, and the delay of an operation that comes too late. */
const DEADLINE_MS = 700;
const LATE_MS = 900;
/** More than the longest delay before the second, third and fourth attempt. */
const RETRY_S = 31;

/** A fault, its position in the provider's work, and how the operation is settled. */
const TROUBLES: Pick<Fault, "at" | "act" | "keep" | "delay_ms">[] = [
  // A repetition does the work.
  { at: "before", act: "error" },
  // A repetition is replayed.
  { at: "after", act: "cut" },
  // The runtime itself repeats a request whose connection ends before the response begins.
  { at: "after", act: "lose" },
  // A repetition would replay the error, so only a sync finds the work.
  { at: "after", act: "error", keep: true },
  // The provider never begins the work, so the operator decides.
  { at: "before", act: "error", keep: true },
  // The provider works after the deadline of the request. Last, because the late call would meet
  // the fault of a later step.
  { at: "before", act: "delay", delay_ms: LATE_MS },
];

/** An operation. Statuses are those of the payment and of the response or refund. */
interface Operation {
  path: string;
  /** Returns the id in the request, and of the payment. */
  prepare(given: LiveCase): Promise<[id: string, payment_id: string]>;
  run(given: LiveCase, id: string, idempotency_key: string): Promise<TestResponse>;
  /** Code and status of the response while the result is unknown. */
  unknown: [number, string];
  /** The payment's status and amounts after the worker. */
  settled: unknown;
  /** The same if the provider has done nothing. */
  untouched: unknown;
}

async function created(given: LiveCase, body: object = {}): Promise<[string, string]> {
  const { status, body: { id } } = await given.pay({ ...body });
  assert.equal(status, 201);
  // On a busy machine this request can reach its deadline too.
  const isSettled = async () => (await shown(given, id)).status !== "processing";
  for (let i = 0; i < 5 && !await isSettled(); i++) await workAfter(given, RETRY_S);
  assert.ok(await isSettled());
  return [id, id];
}

/** A create of a live payment. */
function create(body: Record<string, unknown> = {}): Operation {
  const { amount = 1000 } = body;
  return {
    path: amount === 0 ? "^/v1/setup_intents$" : "^/v1/payment_intents$",
    prepare: () => Promise.resolve(["", ""]),
    run: (given, _id, idempotency_key) => given.pay(body, { idempotency_key }),
    unknown: [201, "processing"],
    settled: ["completed", amount, 0, 0],
    untouched: ["processing", 0, 0, 0],
  };
}

const SAVE = { save: "off_session", customer: { id: "u1", email: "ada@example.com" } };
const OPERATIONS: Record<string, Operation> = {
  authorize: create(),
  "save-alone": create({ ...SAVE, amount: 0, return_url: "https://shop.example/back" }),
  capture: {
    path: "/capture$",
    prepare: (given) => created(given, { capture: "manual" }),
    run: (given, id, idempotency_key) =>
      given.call("POST", `/payments/${id}/capture`, { body: { amount: 600 }, idempotency_key }),
    unknown: [200, "authorized"],
    settled: ["completed", 600, 0, 0],
    untouched: ["authorized", 0, 0, 0],
  },
  refund: {
    path: "^/v1/refunds$",
    prepare: (given) => created(given),
    run: (given, id, idempotency_key) =>
      given.call("POST", `/payments/${id}/refund`, { body: { amount: 300 }, idempotency_key }),
    unknown: [201, "pending"],
    settled: ["partially_refunded", 1000, 300, 0],
    untouched: ["completed", 1000, 0, 300],
  },
};

async function standing(given: LiveCase, id: string) {
  const { status, amount_captured, amount_refunded, amount_refunding } = await shown(given, id);
  return [status, amount_captured, amount_refunded, amount_refunding];
}

for (const [op, operation] of Object.entries(OPERATIONS)) {
  liveCase(`an unknown response to ${op} is settled by the worker`, async (given, t) => {
    for (const [i, trouble] of TROUBLES.entries()) {
      const { at, act, keep } = trouble;
      await t.step(`${act}${keep ? " (kept)" : ""} ${at} the work`, async () => {
        // A sync searches around the time of the reservation, by the provider's clock.
        await given.service.setClock(null);
        await stopPolls(given);
        const key = `${op}-${i}`;
        const [target, payment_id] = await operation.prepare(given);
        await given.double.plant({ method: "POST", path: operation.path, ...trouble });
        const response = await operation.run(given, target, key);
        if (act !== "lose") {
          const { status, body } = response;
          assert.deepEqual([status, body.status], operation.unknown, response.text);
        }
        const id = payment_id || response.body.id;
        const duplicate = await operation.run(given, target || id, key);
        assert.deepEqual([duplicate.status, duplicate.text], [response.status, response.text]);
        const is_untouched = at === "before" && keep === true;
        const expected = is_untouched ? operation.untouched : operation.settled;
        const isSettled = async () => isDeepStrictEqual(await standing(given, id), expected);
        // On a busy machine a request of the worker can reach its deadline.
        for (let attempt = 0; attempt < 4 || (attempt < 12 && !await isSettled()); attempt++) {
          await workAfter(given, RETRY_S);
        }
        assert.deepEqual(await standing(given, id), expected);
        const { charge, refund } = await given.books();
        const charges = charge.filter(({ metadata }) => metadata.payment === id);
        const is_made = !(is_untouched && operation.unknown[1] === "processing");
        assert.equal(charges.length, is_made && op !== "save-alone" ? 1 : 0);
        const of = (one: StripeObject) => one.charge === charges[0]?.id;
        assert.equal(refund.filter(of).length, op === "refund" && !is_untouched ? 1 : 0);
      });
    }
    if (op.startsWith("save")) assert.equal((await given.books()).customer.length, 1);
    await given.double.clearFaults();
    await resumePolls(given);
    // After an hour without a trace at the provider, the operator decides.
    for (let hours = 0; hours < 2; hours++) await workAfter(given, 3700);
    await settle(given);
    const open = await given.service.sql`
      select state from pay.provider_operations where state <> 'settled'`;
    assert.deepEqual(open.map(({ state }) => state), ["operator"]);
    const found = (await breaches(given)).filter((line) => !line.includes("decide by hand"));
    assert.deepEqual(found, []);
  }, { provider_deadline_ms: DEADLINE_MS, is_open: true });
}

liveCase("an operation on a dispute whose result is unknown refuses another one", async (given) => {
  await stopPolls(given);
  await new Money(given, await paid(given)).dispute();
  const { data: [{ id }] } = (await given.call("GET", "/disputes")).body;
  await given.double.plant({ method: "POST", path: "/close$", at: "before", act: "error" });
  const accept = () => given.call("POST", `/disputes/${id}/accept`);
  assert.equal((await accept()).status, 200);
  const other = await accept();
  assert.deepEqual([other.status, other.body.error?.code], [409, "idempotency_in_progress"]);
});

liveCase("an operation that is repeated for a day has one effect", async (given) => {
  await stopPolls(given);
  await given.double.plant({ method: "POST", times: 100, at: "after", act: "cut" });
  const { body: { id, status } } = await given.pay();
  assert.equal(status, "processing");
  for (let attempt = 0; attempt < 8; attempt++) {
    await workAfter(given, 5 * 3600);
    assert.equal((await shown(given, id)).status, attempt < 4 ? "processing" : "completed");
  }
  await given.double.clearFaults();
  await resumePolls(given);
  assert.deepEqual(await balances(given), { EUR: 960 });
});

liveCase("an unknown create is settled while a poll hangs", async (given) => {
  const { double, service, pay, work } = given;
  await double.plant({ method: "GET", path: "^/v1/events$", at: "before", act: "hang" });
  const polling = work();
  await until("the poll is under way", async () => (await double.waitingFaults()).length === 0);
  await double.plant({ method: "POST", path: "^/v1/payment_intents$", at: "after", act: "error" });
  const { body: created } = await pay();
  assert.equal(created.status, "processing");
  await service.sql`update pay.provider_operations set next_attempt_at = now()`;
  work();
  await until(
    "the create is settled",
    async () => (await shown(given, created.id)).status === "completed",
    10_000,
  );
  // This ends the connection of the poll.
  await double.restart();
  await polling;
});
