/** Faults of the provider: an unknown response is never a failure, and nothing happens twice. */

import assert from "node:assert/strict";
import type { TestResponse } from "../support/service/service.ts";
import type { Fault } from "../support/stripe/faults.ts";
import { type LiveCase, liveCase } from "../support/live/live_case.ts";
import {
  assertBalanced,
  balances,
  breaches,
  resumePolls,
  returnToPresent,
  settle,
  shown,
  stopPolls,
  workAfter,
} from "../support/live/live_books.ts";

/** Longest time of an operation here, and the delay of an operation that comes too late. */
const DEADLINE_MS = 700;
const LATE_MS = 900;
/** More than the longest delay before the second, third and fourth attempt. */
const RETRY_S = 31;

/** A fault and the position in the provider's work. */
type Trouble = Pick<Fault, "at" | "act" | "keep" | "delay_ms">;

const ACTS: Omit<Trouble, "at">[] = [
  { act: "lose" },
  { act: "cut" },
  { act: "delay", delay_ms: LATE_MS },
  { act: "error" },
  { act: "error", keep: true },
  { act: "rate_limit" },
  { act: "html" },
  { act: "huge" },
];
const TROUBLES: Trouble[] = [
  ...ACTS.map((act) => ({ at: "before" as const, ...act })),
  { at: "engine", act: "error" },
  ...ACTS.map((act) => ({ at: "after" as const, ...act })),
];

/** An operation, with the response while its result is unknown, and after it. */
interface Operation {
  path: string;
  prepare(given: LiveCase): Promise<string>;
  run(given: LiveCase, id: string, key: string): Promise<TestResponse>;
  unknown: (response: TestResponse) => unknown;
  /** Expected from `unknown`. */
  expected: unknown;
  /** Status and amounts of the payment after the worker. */
  settled: unknown;
  /** The same if the provider has done nothing. */
  untouched: unknown;
}

async function prepared(given: LiveCase, body: object = {}): Promise<string> {
  const { status, body: { id } } = await given.pay({ ...body });
  assert.equal(status, 201);
  return id;
}

const OPERATIONS: Record<string, Operation> = {
  authorize: {
    path: "^/v1/payment_intents$",
    prepare: () => Promise.resolve(""),
    run: (given, _id, idempotency_key) => given.pay({}, { idempotency_key }),
    unknown: ({ status, body }) => [status, body.status],
    expected: [201, "processing"],
    settled: ["completed", 1000, 0, 0],
    untouched: ["processing", 0, 0, 0],
  },
  capture: {
    path: "/capture$",
    prepare: (given) => prepared(given, { capture: "manual" }),
    run: (given, id, idempotency_key) =>
      given.call("POST", `/payments/${id}/capture`, { body: { amount: 600 }, idempotency_key }),
    unknown: ({ status, body }) => [status, body.status],
    expected: [200, "authorized"],
    settled: ["completed", 600, 0, 0],
    untouched: ["authorized", 0, 0, 0],
  },
  cancel: {
    path: "/cancel$",
    prepare: (given) => prepared(given, { capture: "manual" }),
    run: (given, id, idempotency_key) =>
      given.call("POST", `/payments/${id}/cancel`, { idempotency_key }),
    unknown: ({ status, body }) => [status, body.status],
    expected: [200, "authorized"],
    settled: ["cancelled", 0, 0, 0],
    untouched: ["authorized", 0, 0, 0],
  },
  refund: {
    path: "^/v1/refunds$",
    prepare: (given) => prepared(given),
    run: (given, id, idempotency_key) =>
      given.call("POST", `/payments/${id}/refund`, { body: { amount: 300 }, idempotency_key }),
    unknown: ({ status, body }) => [status, body.status],
    expected: [201, "pending"],
    settled: ["partially_refunded", 1000, 300, 0],
    untouched: ["completed", 1000, 0, 300],
  },
};

const nameOf = ({ at, act, keep }: Trouble) => `${act}${keep ? " (kept)" : ""} ${at} the work`;

async function standing(given: LiveCase, id: string) {
  const { status, amount_captured, amount_refunded, amount_refunding } = await shown(given, id);
  return [status, amount_captured, amount_refunded, amount_refunding];
}

for (const [op, operation] of Object.entries(OPERATIONS)) {
  liveCase(`an unknown response to ${op} is settled by the worker`, async (given, t) => {
    /** Operations that the provider never begins, because it replays an error. */
    let untouched = 0;
    for (const [i, trouble] of TROUBLES.entries()) {
      await t.step(nameOf(trouble), async () => {
        // A sync searches around the time of the reservation, by the provider's clock.
        await returnToPresent(given);
        await stopPolls(given);
        const key = `${op}-${i}`;
        const prepared_id = await operation.prepare(given);
        await given.double.plant({ method: "POST", path: operation.path, ...trouble });
        const response = await operation.run(given, prepared_id, key);
        // The runtime itself repeats a request whose connection ends before the response begins.
        if (trouble.act !== "lose") {
          assert.deepEqual(operation.unknown(response), operation.expected, response.text);
        }
        const id = prepared_id || response.body.id;
        const duplicate = await operation.run(given, id, key);
        assert.deepEqual([duplicate.status, duplicate.text], [response.status, response.text]);
        for (let attempt = 0; attempt < 4; attempt++) await workAfter(given, RETRY_S);
        const is_expired = trouble.at === "before" && trouble.keep === true;
        if (is_expired) untouched++;
        const expected = is_expired ? operation.untouched : operation.settled;
        assert.deepEqual(await standing(given, id), expected);
        const charges = (await given.books()).charge
          .filter(({ metadata }) => metadata.payment === id);
        assert.equal(charges.length, is_expired && op === "authorize" ? 0 : 1);
        const refunds = (await given.books()).refund
          .filter(({ charge }) => charge === charges[0]?.id);
        assert.equal(refunds.length, op === "refund" && !is_expired ? 1 : 0);
      });
    }
    await given.double.clearFaults();
    await resumePolls(given);
    // After an hour without a trace at the provider, the operator decides.
    for (let hours = 0; hours < 2; hours++) await workAfter(given, 3700);
    await settle(given);
    const open = await given.service.sql`
      select state from pay.provider_operations where state <> 'settled'`;
    assert.deepEqual(open.map(({ state }) => state), Array(untouched).fill("operator"));
    const found = (await breaches(given)).filter((line) => !line.includes("decide by hand"));
    assert.deepEqual(found, []);
  }, { provider_deadline_ms: DEADLINE_MS });
}

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
  await assertBalanced(given);
});
