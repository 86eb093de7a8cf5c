/** Operations on disputes at Stripe, against a real HTTP server: requests, replies and syncs. */

import assert from "node:assert/strict";
import { stripeConnector } from "../../shared/connectors/stripe/stripe_connector.ts";
import type { Operation, ProviderReply } from "../../shared/domain/providers/connector.ts";
import { json, startFaultServer } from "../support/connectors/fault_server.ts";
import { patient, sent } from "../support/connectors/sent.ts";
import {
  account,
  dispute,
  disputeOperation,
  operation,
  OPERATION_ID,
} from "../support/connectors/stripe_case.ts";

const TAKEN: [number, number] = [-1099, 1500];
const text = "A signed receipt";
const submitted = disputeOperation(text);
const saved = disputeOperation(text, false);
const accepted = disputeOperation(null);

/** A dispute with evidence. */
function withEvidence(status: string, submission_count: number, sent = text) {
  return {
    ...dispute(status, TAKEN),
    evidence: { uncategorized_text: sent },
    evidence_details: { due_by: 1_900_000_000, submission_count },
  };
}

const REQUESTS: [name: string, requested: Operation, path: string, form: [string, string][]][] = [
  ["submitted evidence", submitted, "/v1/disputes/du_1", [
    ["evidence[uncategorized_text]", text],
    ["submit", "true"],
  ]],
  ["saved evidence", saved, "/v1/disputes/du_1", [
    ["evidence[uncategorized_text]", text],
    ["submit", "false"],
  ]],
  ["an acceptance", accepted, "/v1/disputes/du_1/close", []],
];
for (const [name, requested, path, form] of REQUESTS) {
  Deno.test(`send() ${name} is one POST ${path}`, async () => {
    const { received: [got, ...others] } = await sent(requested, json(400, {}));
    assert.deepEqual(others, []);
    assert.equal(`${got!.method} ${got!.path}`, `POST ${path}`);
    assert.deepEqual([...got!.form], form);
    assert.equal(got!.headers["idempotency-key"], OPERATION_ID);
  });
}

const EVIDENCE = `du_1:evidence:${OPERATION_ID}`;
const ABSENT = { absent: true };
const GARBAGE = { unknown: "garbage", may_repeat: true };
const LOST = dispute("lost", TAKEN);

/** Each row: the operation, the dispute at Stripe, and what a sync says. */
const REPLIES: [name: string, requested: Operation, object: object, reply: unknown][] = [
  ["submitted evidence", submitted, withEvidence("under_review", 1), [EVIDENCE]],
  ["saved evidence", saved, withEvidence("needs_response", 0), [EVIDENCE]],
  ["evidence that is saved only", submitted, withEvidence("needs_response", 0), ABSENT],
  ["other evidence", submitted, withEvidence("under_review", 1, "Other"), ABSENT],
  ["a dispute without evidence", submitted, dispute("needs_response", TAKEN), ABSENT],
  ["evidence of a lost dispute", submitted, LOST, ["du_1:lost"]],
  ["an acceptance", accepted, LOST, ["du_1:lost"]],
  ["an acceptance that nobody made", accepted, withEvidence("under_review", 1), ABSENT],
  [
    "an acceptance of a won dispute",
    accepted,
    dispute("won", TAKEN, [1099, 0]),
    ["du_1:won"],
  ],
  ["another dispute", accepted, { ...LOST, id: "du_2" }, GARBAGE],
];
const references = (reply: ProviderReply) =>
  "provider_events" in reply ? reply.provider_events.map(({ reference }) => reference) : reply;

for (const [name, requested, object, expected] of REPLIES) {
  Deno.test(`sync() and send() at ${name} are ${JSON.stringify(expected)}`, async () => {
    await using server = await startFaultServer(json(200, object));
    const settings = { base_url: server.base_url };
    const reply = await stripeConnector().charges.sync(account({ settings }), requested, patient());
    assert.deepEqual(references(reply), expected);
    const got = server.received.map(({ method, path }) => `${method} ${path}`);
    assert.deepEqual(got, ["GET /v1/disputes/du_1"]);
    const sent_reply = (await sent(requested, json(200, object))).reply;
    // A response that shows no trace of the operation is not Stripe's response to it.
    assert.deepEqual(references(sent_reply), expected === ABSENT ? GARBAGE : expected);
  });
}

Deno.test("the provider event of evidence has the text, the reason and the date", async () => {
  const { reply } = await sent(submitted, json(200, withEvidence("under_review", 1)));
  assert.ok("provider_events" in reply);
  const { op, state, amount_minor, dispute } = reply.provider_events[0];
  assert.deepEqual([op, state, amount_minor], ["dispute_evidence", "succeeded", 1099]);
  assert.deepEqual(dispute, {
    reason: "fraudulent",
    evidence_due_by: "2030-03-17T17:46:40.000Z",
    evidence: { text, is_submitted: true },
  });
});

Deno.test("send() refuses a dispute without an id at Stripe, and sends nothing", async () => {
  const { request } = submitted;
  const requested = {
    ...submitted,
    request: { ...request, dispute: { ...request.dispute!, reference: null } },
  };
  const { reply, received } = await sent(requested, json(200, LOST));
  assert.ok("refused" in reply);
  assert.deepEqual(received, []);
});

Deno.test("send() shows the reason of Stripe's refusal", async () => {
  const error = { type: "invalid_request_error", message: "This dispute is already closed" };
  const { reply } = await sent(accepted, json(400, { error }));
  assert.deepEqual(reply, { refused: "provider_refused", message: error.message });
});

Deno.test("find() reads only the dispute of the operation", async () => {
  await using server = await startFaultServer(json(200, LOST));
  const to = account({ settings: { base_url: server.base_url } });
  const found = await stripeConnector().charges.find(to, accepted, "du_1", patient());
  assert.deepEqual(references(found), ["du_1:lost"]);
  assert.deepEqual(await stripeConnector().charges.find(to, accepted, "du_2", patient()), ABSENT);
  assert.equal(operation().dispute, null);
});
