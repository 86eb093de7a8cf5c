/**
 * Evidence and acceptance of live disputes: reserved operations, whose result is never lost or
 * doubled.
 */

import assert from "node:assert/strict";
import type { Fault } from "../support/stripe/faults.ts";
import type { TestResponse } from "../support/service/service.ts";
import { type LiveCase, liveCase } from "../support/live/live_case.ts";
import { paid, referenceOf } from "../support/live/live_actions.ts";
import {
  assertBalanced,
  deliver,
  eventsOf,
  eventTypes,
  resumePolls,
  returnToPresent,
  shown,
  stopPolls,
  workAfter,
} from "../support/live/live_books.ts";

const DEADLINE_MS = 700;
/** More than the longest delay before the second, third and fourth attempt. */
const RETRY_S = 31;
const TEXT = "A signed receipt";

/** A dispute of a new payment, on both sides. */
interface Disputed {
  payment_id: string;
  /** `dp_…` */
  id: string;
  /** `du_…` */
  reference: string;
}

async function disputed(given: LiveCase, reason?: string): Promise<Disputed> {
  const payment_id = await paid(given);
  const payment_intent = await referenceOf(given, payment_id);
  const { id: reference } = await given.double.act("disputes", {
    payment_intent,
    ...(reason && { reason }),
  });
  await deliver(given, (await eventsOf(given)).filter(({ data }) => data.object.id === reference));
  const { body } = await given.call("GET", `/disputes?payment_id=${payment_id}`);
  assert.equal(body.data.length, 1);
  return { payment_id, id: body.data[0].id, reference };
}

function evidence(given: LiveCase, id: string, body: object, idempotency_key?: string) {
  const options = { body, ...(idempotency_key && { idempotency_key }) };
  return given.call("POST", `/disputes/${id}/evidence`, options);
}

async function present(given: LiveCase, { id }: Disputed) {
  return (await given.call("GET", `/disputes/${id}`)).body;
}

async function atStripe(given: LiveCase, { reference }: Disputed) {
  return (await given.books()).dispute.find(({ id }) => id === reference)!;
}

liveCase("a live dispute shows the provider's reason, date and status", async (given, t) => {
  const REASONS = [
    ["fraudulent", "fraudulent"],
    ["product_not_received", "product_not_received"],
    ["duplicate", "duplicate"],
    ["credit_not_processed", "general"],
  ] as const;
  for (const [reason, expected] of REASONS) {
    await t.step(`${reason} is ${expected}`, async () => {
      const made = await disputed(given, reason);
      const body = await present(given, made);
      const { evidence_details } = await atStripe(given, made);
      assert.deepEqual(
        [body.reason, body.status, body.amount_minor, body.evidence],
        [expected, "needs_response", 1000, null],
      );
      assert.equal(Date.parse(body.evidence_due_by), evidence_details.due_by * 1000);
    });
  }
  await assertBalanced(given);
});

liveCase("evidence of a live dispute goes to the provider", async (given, t) => {
  const made = await disputed(given);
  await t.step("first saved, then submitted", async () => {
    const saved = await evidence(given, made.id, { text: "A draft", submit: false });
    assert.deepEqual(
      [saved.status, saved.body.status, saved.body.evidence],
      [200, "needs_response", { text: "A draft", submitted_at: null }],
    );
    assert.equal((await atStripe(given, made)).evidence.uncategorized_text, "A draft");
    const sent = await evidence(given, made.id, { text: TEXT }, "key");
    assert.deepEqual([sent.status, sent.body.status], [200, "under_review"]);
    assert.equal(sent.body.evidence.text, TEXT);
    assert.notEqual(sent.body.evidence.submitted_at, null);
    const again = await evidence(given, made.id, { text: TEXT }, "key");
    assert.equal(again.text, sent.text);
    const { status, evidence: kept, evidence_details } = await atStripe(given, made);
    assert.deepEqual([status, kept.uncategorized_text], ["under_review", TEXT]);
    assert.equal(evidence_details.submission_count, 1);
  });
  await t.step("a text of the sandbox decides nothing", async () => {
    const other = await disputed(given);
    const { body } = await evidence(given, other.id, { text: "winning_evidence" });
    assert.equal(body.status, "under_review");
  });
  await t.step(
    "a second submission is refused here, and the notification changes nothing",
    async () => {
      const { body } = await evidence(given, made.id, { text: "More" });
      assert.equal(body.error.code, "invalid_state");
      const before = await eventTypes(given, made.payment_id);
      await deliver(given, await eventsOf(given, "charge.dispute.updated"));
      assert.deepEqual(await eventTypes(given, made.payment_id), before);
      assert.deepEqual(before.slice(-4), [
        "dispute.created",
        "payment.chargeback",
        "dispute.updated",
        "dispute.updated",
      ]);
    },
  );
  await t.step("the bank decides, and the money is back", async () => {
    await given.double.act("close_dispute", { dispute: made.reference, status: "won" });
    await deliver(given, await eventsOf(given));
    assert.equal((await present(given, made)).status, "won");
    assert.equal((await shown(given, made.payment_id)).status, "completed");
  });
  await t.step("an acceptance loses the dispute at once", async () => {
    const lost = await disputed(given);
    const { status, body } = await given.call("POST", `/disputes/${lost.id}/accept`);
    assert.deepEqual([status, body.status], [200, "lost"]);
    assert.equal((await atStripe(given, lost)).status, "lost");
    await deliver(given, await eventsOf(given));
    assert.deepEqual((await eventTypes(given, lost.payment_id)).at(-1), "dispute.lost");
    const again = await given.call("POST", `/disputes/${lost.id}/accept`);
    assert.deepEqual([again.status, again.body.error.code], [409, "invalid_state"]);
  });
  await t.step("a dispute that has ended at the provider is refused there", async () => {
    const ended = await disputed(given);
    await given.double.act("close_dispute", { dispute: ended.reference, status: "lost" });
    const { status, body } = await evidence(given, ended.id, { text: TEXT });
    assert.deepEqual([status, body.error.code], [402, "provider_refused"]);
    assert.equal((await present(given, ended)).status, "needs_response");
    await deliver(given, await eventsOf(given));
    assert.equal((await present(given, ended)).status, "lost");
  });
  await assertBalanced(given);
});

/** Each operation: the path at the provider, the request, and the dispute after the worker. */
const OPERATIONS: Record<
  string,
  {
    path: string;
    run: (given: LiveCase, id: string, key: string) => Promise<TestResponse>;
    settled: [status: string, text: string | null];
    event: string;
  }
> = {
  evidence: {
    path: "^/v1/disputes/[^/]*$",
    run: (given, id, key) => evidence(given, id, { text: TEXT }, key),
    settled: ["under_review", TEXT],
    event: "dispute.updated",
  },
  accept: {
    path: "/close$",
    run: (given, id, idempotency_key) =>
      given.call("POST", `/disputes/${id}/accept`, { idempotency_key }),
    settled: ["lost", null],
    event: "dispute.lost",
  },
};
const ACTS: Omit<Fault, "at">[] = [
  { act: "lose" },
  { act: "cut" },
  { act: "delay", delay_ms: 900 },
  { act: "error" },
  { act: "error", keep: true },
];

for (const [op, { path, run, settled, event }] of Object.entries(OPERATIONS)) {
  liveCase(
    `an unknown response to ${op} of a dispute is settled by the worker`,
    async (given, t) => {
      let kept = 0;
      for (const at of ["before", "after"] as const) {
        for (const [i, act] of ACTS.entries()) {
          await t.step(`${act.act}${act.keep ? " (kept)" : ""} ${at} the work`, async () => {
            await returnToPresent(given);
            await stopPolls(given);
            const made = await disputed(given);
            await given.double.plant({ method: "POST", path, at, ...act });
            const key = `${op}-${at}-${i}`;
            const response = await run(given, made.id, key);
            assert.equal(response.status, 200, response.text);
            const duplicate = await run(given, made.id, key);
            assert.equal(duplicate.text, response.text);
            if (act.act === "error" && at === "before" && !act.keep) {
              const other = await run(given, made.id, `${key}-other`);
              assert.deepEqual(
                [other.status, other.body.error?.code],
                [409, "idempotency_in_progress"],
              );
            }
            for (let attempt = 0; attempt < 4; attempt++) await workAfter(given, RETRY_S);
            // The provider replays its error and never begins the work.
            const is_expired = at === "before" && act.keep === true;
            if (is_expired) kept++;
            const body = await present(given, made);
            assert.deepEqual(
              [body.status, body.evidence?.text ?? null],
              is_expired ? ["needs_response", null] : settled,
            );
            const types = await eventTypes(given, made.payment_id);
            assert.equal(types.filter((type) => type === event).length, is_expired ? 0 : 1);
          });
        }
      }
      await given.double.clearFaults();
      await resumePolls(given);
      for (let hours = 0; hours < 2; hours++) await workAfter(given, 3700);
      const open = await given.service.sql`
      select state from pay.provider_operations where state <> 'settled'`;
      assert.deepEqual(open.map(({ state }) => state), Array(kept).fill("operator"));
    },
    { provider_deadline_ms: DEADLINE_MS },
  );
}
