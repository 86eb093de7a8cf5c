/**
 * R6 to R8: compares the journal of the receiver with the events in the database. Every event must
 * arrive with its committed bytes, in order, and with a fresh signature.
 */

import type { Evidence, StoredEvent, Verdict } from "./evidence.ts";

/** Longest age of a signature on arrival (promise R8). */
export const SIGNATURE_AGE_MS = 30_000;
/** Longest time that a signature may be ahead of the receiver's clock. */
export const SIGNATURE_AHEAD_MS = 2_000;
/**
 * Largest share of duplicate deliveries (promise R6), and those that each kill adds, because it repeats
 * the attempts under way: a short run has more kills for its deliveries than a long one.
 */
const DUPLICATES_LIMIT = 0.02;
const DUPLICATES_PER_KILL = 4;
/** Largest share of deliveries that the run redelivers because kills used up their attempts. */
const REDELIVERED_LIMIT = 0.02;

/** Judges the deliveries of a run. */
export function auditDeliveries(evidence: Evidence, events: StoredEvent[]): Verdict[] {
  const { plan, arrivals, endpoints, environments, drained } = evidence;
  const hashes = new Map(events.map(({ id, body_hash }) => [id, body_hash]));
  const taken = new Map<string, number>();
  const altered: string[] = [];
  const [disordered, stale]: [string[], string[]] = [[], []];
  const last = new Map<string, number>();
  let [oldest, newest, forged, refused] = [-Infinity, Infinity, 0, 0];
  for (const arrival of arrivals) {
    const { path, event_id, subject_id, sequence, age_ms } = arrival;
    const name = `${path} ${event_id}`;
    if (!arrival.is_genuine) forged++;
    oldest = Math.max(oldest, age_ms);
    newest = Math.min(newest, age_ms);
    if (age_ms >= SIGNATURE_AGE_MS || age_ms < -SIGNATURE_AHEAD_MS) {
      stale.push(`${name}: signed ${age_ms} ms before it arrived`);
    }
    if (arrival.timestamps_apart_s !== 0) {
      stale.push(`${name}: Webhook-Timestamp is ${arrival.timestamps_apart_s} s off`);
    }
    // A reset may have deleted the event.
    const hash = hashes.get(event_id);
    if (hash !== undefined && hash !== arrival.body_hash) altered.push(`${name}: another body`);
    if (!arrival.is_taken) {
      refused++;
      continue;
    }
    taken.set(name, (taken.get(name) ?? 0) + 1);
    if (taken.get(name)! > 1) continue;
    const payment = `${path} ${subject_id}`;
    if (sequence <= (last.get(payment) ?? 0)) disordered.push(`${name}: ${sequence}`);
    last.set(payment, sequence);
  }
  const duplicates = taken.values().reduce((sum, count) => sum + count - 1, 0);
  const missing: string[] = [];
  let due = 0;
  for (const [path, { sandbox, takes }] of Object.entries(endpoints)) {
    for (const { environment_id, id, type } of events) {
      if (environment_id !== environments[sandbox] || !takes(type)) continue;
      due++;
      if (!taken.delete(`${path} ${id}`)) missing.push(`${type} ${id} at ${path}`);
    }
  }
  const strangers = [...taken.keys()].filter((name) => !isOfReset(name, endpoints))
    .map((name) => `${name} is not an event`);
  const too_many = [
    ...(duplicates > DUPLICATES_LIMIT * due + DUPLICATES_PER_KILL * plan.kills.length
      ? [`${duplicates} duplicates`]
      : []),
    ...(drained.redelivered > REDELIVERED_LIMIT * due
      ? [`${drained.redelivered} redeliveries`]
      : []),
  ];
  return [
    {
      promise: "R6",
      says: `${due} deliveries due, ${missing.length} missing, ${forged} forged, ` +
        `${duplicates} duplicates, ${refused} refused by the receiver`,
      breaches: [
        ...missing.map((name) => `missing: ${name}`),
        ...strangers,
        ...too_many,
        ...(forged > 0 ? [`${forged} forged`] : []),
        ...altered,
        ...drained.faults,
      ],
    },
    { promise: "R7", says: `${last.size} payments at endpoints, in order`, breaches: disordered },
    { promise: "R8", says: `signatures ${newest} to ${oldest} ms old on arrival`, breaches: stale },
  ];
}

/** Whether a delivery is from the sandbox that is reset. */
function isOfReset(name: string, endpoints: Evidence["endpoints"]): boolean {
  return endpoints[name.split(" ")[0]!]?.sandbox === "resets";
}
