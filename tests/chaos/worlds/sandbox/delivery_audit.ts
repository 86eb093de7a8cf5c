/**
 * R6 to R8: compares the journal of the receiver with the events in the database. Every event must
 * arrive with its committed bytes, in order, and with a fresh signature.
 */

import type { Verdict } from "../../harness/audit.ts";
import type { Arrival } from "../../harness/receiver.ts";
import type { Evidence } from "./evidence.ts";

const SIGNATURE_AGE_MS = 30_000;
/** Longest time that a signature may be ahead of the receiver's clock. */
const SIGNATURE_AHEAD_MS = 2_000;
/**
 * Largest share of duplicate deliveries (promise R6), and those that each kill adds, because it
 * repeats the attempts under way: a short run has more kills for its deliveries than a long one.
 */
const DUPLICATES_LIMIT = 0.02;
const DUPLICATES_PER_KILL = 4;
/** Largest share of deliveries that the run redelivers because kills used up their attempts. */
const REDELIVERED_LIMIT = 0.02;

/**
 * Judges the signatures and the order of deliveries.
 * @param redelivered events whose deliveries had failed: later ones went ahead (contract §4)
 */
export function judgeArrivals(
  arrivals: readonly Arrival[],
  redelivered: ReadonlySet<string> = new Set(),
) {
  /** How often each event was taken, by path and event. */
  const taken = new Map<string, number>();
  const last = new Map<string, number>();
  const [disordered, stale]: [string[], string[]] = [[], []];
  let [oldest_ms, newest_ms] = [-Infinity, Infinity];
  for (const arrival of arrivals) {
    const { path, event_id, subject_id, sequence, age_ms, timestamps_apart_s } = arrival;
    const name = `${path} ${event_id}`;
    oldest_ms = Math.max(oldest_ms, age_ms);
    newest_ms = Math.min(newest_ms, age_ms);
    if (age_ms >= SIGNATURE_AGE_MS || age_ms < -SIGNATURE_AHEAD_MS) {
      stale.push(`${name}: signed ${age_ms} ms before it arrived`);
    }
    if (timestamps_apart_s !== 0) {
      stale.push(`${name}: Webhook-Timestamp is ${timestamps_apart_s} s off`);
    }
    if (!arrival.is_taken) continue;
    taken.set(name, (taken.get(name) ?? 0) + 1);
    if (taken.get(name)! > 1) continue;
    if (redelivered.has(event_id)) continue;
    const payment = `${path} ${subject_id}`;
    if (sequence <= (last.get(payment) ?? 0)) disordered.push(`${name}: ${sequence}`);
    last.set(payment, sequence);
  }
  /** `payments` is the number of payments at endpoints, and the ages are those of signatures. */
  return { taken, payments: last.size, disordered, stale, oldest_ms, newest_ms };
}

export function auditDeliveries(evidence: Evidence): Verdict[] {
  const { plan, arrivals, endpoints, environments, rows: { events } } = evidence;
  const { redelivered, faults } = evidence.drained;
  const hashes = new Map(events.map(({ id, body_hash }) => [id, body_hash]));
  const { taken, payments, disordered, stale, oldest_ms, newest_ms } = judgeArrivals(
    arrivals,
    redelivered,
  );
  // A reset may have deleted the event.
  const altered = arrivals.filter(({ event_id, body_hash }) =>
    (hashes.get(event_id) ?? body_hash) !== body_hash
  ).map(({ path, event_id }) => `${path} ${event_id}: another body`);
  const forged = arrivals.filter(({ is_genuine }) => !is_genuine).length;
  const refused = arrivals.filter(({ is_taken }) => !is_taken).length;
  const duplicates = taken.values().reduce((sum, count) => sum + count - 1, 0);
  const missing: string[] = [];
  let due = 0;
  for (const [path, { sandbox, events: pattern }] of Object.entries(endpoints)) {
    for (const { environment_id, id, type } of events) {
      if (environment_id !== environments[sandbox].environment_id) continue;
      if (!type.startsWith(pattern.replace("*", ""))) continue;
      due++;
      if (!taken.delete(`${path} ${id}`)) missing.push(`missing: ${type} ${id} at ${path}`);
    }
  }
  // Those of the sandbox that is reset can have lost their events.
  const strangers = [...taken.keys()]
    .filter((name) => endpoints[name.split(" ")[0]!]?.sandbox !== "resets")
    .map((name) => `${name} is not an event`);
  const most = DUPLICATES_LIMIT * due + DUPLICATES_PER_KILL * plan.kills.length;
  return [
    {
      promise: "R6",
      says: `${due} deliveries due, ${missing.length} missing, ${forged} forged, ` +
        `${duplicates} duplicates, ${refused} refused by the receiver`,
      breaches: [
        ...missing,
        ...strangers,
        ...(duplicates > most ? [`${duplicates} duplicates`] : []),
        ...(redelivered.size > REDELIVERED_LIMIT * due ? [`${redelivered.size} redeliveries`] : []),
        ...(forged > 0 ? [`${forged} forged`] : []),
        ...altered,
        ...faults,
      ],
    },
    { promise: "R7", says: `${payments} payments at endpoints, in order`, breaches: disordered },
    { promise: "R8", says: `signatures ${newest_ms} to ${oldest_ms} ms old`, breaches: stale },
  ];
}
