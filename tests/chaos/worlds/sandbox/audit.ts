/**
 * The audit of the main run: compares the journals of clients and receiver with the database. It
 * judges by the model, by the invariants and by counting, and shares no rule with the product.
 */

import { duplicateFaults, type Verdict } from "../../harness/audit.ts";
import { isLasting } from "./clients.ts";
import { auditDeliveries } from "./delivery_audit.ts";
import type { Evidence } from "./evidence.ts";
import { isRead } from "./plan.ts";
import { auditStories, readFaults } from "./story_audit.ts";

export function auditRun(evidence: Evidence): Verdict[] {
  const verdicts = [
    ...auditStories(evidence),
    auditDuplicates(evidence),
    auditChanged(evidence),
    auditLedger(evidence),
    ...auditDeliveries(evidence),
  ];
  for (const verdict of verdicts) {
    for (const { invariant, promise, examples } of evidence.rows.books) {
      // `R1, R9: …` → R1, R9
      if (!promise.split(":")[0]!.split(", ").includes(verdict.promise)) continue;
      verdict.breaches.push(...examples.map((example) => `${invariant}: ${example}`));
    }
  }
  return verdicts;
}

/**
 * R2: one response per key. The invariants find a second effect of a key, and the model that of a
 * request.
 */
function auditDuplicates({ journal, rows, replays }: Evidence): Verdict {
  const breaches = rows.saved_twice.map((payment_id) => `${payment_id} has several instruments`);
  const told = journal.filter(({ story: { sandbox }, operation: { action } }) =>
    sandbox !== "resets" && !isRead(action)
  );
  for (const { operation: { number, action }, responses } of told) {
    const lasting = responses.filter((response) => isLasting(action, response));
    breaches.push(...duplicateFaults(`operation ${number}`, lasting));
    if (lasting.some(({ status }) => status < 300) && lasting.length < responses.length) {
      breaches.push(`operation ${number}: only some duplicates succeeded`);
    }
  }
  const all = told.flatMap(({ responses }) => responses);
  return {
    promise: "R2",
    says: `${all.length} responses to duplicates, ` +
      `${all.filter(({ is_replay }) => is_replay).length} of them replays; ` +
      `${replays.replayed} keys replayed byte for byte at the end`,
    breaches: [...breaches, ...replays.faults],
  };
}

/** R3: another body with a used key gets 409. */
function auditChanged({ journal }: Evidence): Verdict {
  const told = journal.filter(({ changed }) => changed !== null);
  const breaches = told.filter(({ changed }) =>
    changed!.status !== 409 || !changed!.text.includes('"idempotency_conflict"')
  ).map(({ operation: { number }, changed }) =>
    `operation ${number}, one field changed: ${changed!.status} ${changed!.text}`
  );
  return { promise: "R3", says: `${told.length} requests with one field changed`, breaches };
}

/** R4, besides the invariants: they held during the run, and no hot balance was below zero. */
function auditLedger(evidence: Evidence): Verdict {
  const { meanwhile: { audits, breaches }, rows } = evidence;
  return {
    promise: "R4",
    says: `${rows.movements} movements of the ledger, audited ${audits} times during the run`,
    breaches: [
      ...rows.overdrawn,
      ...(audits === 0 ? ["the books were never audited during the run"] : []),
      ...breaches,
      ...readFaults(evidence, "balance"),
    ],
  };
}
