/**
 * The audit of a run: compares the journals of clients and receiver with the database. It judges by
 * the model, by the invariants and by counting, and shares no rule with the product.
 */

import type postgres from "postgres";
import { checkBooks } from "../../apps/operator/check_books.ts";
import type { ApiResponse } from "./client_process.ts";
import { auditDeliveries } from "./delivery_audit.ts";
import {
  type Evidence,
  firstResponses,
  responsesOf,
  type StoredEvent,
  type Verdict,
} from "./evidence.ts";
import { type Action, isRead, type Operation, type Plan, type Story } from "./plan.ts";
import { balanceFaults } from "./read_audit.ts";
import { auditStories } from "./story_audit.ts";

/** Judges a run. */
export async function auditRun(evidence: Evidence): Promise<Verdict[]> {
  const events = await evidence.sql<StoredEvent[]>`
    select v.public_id as environment_id, e.id, type, subject_id, sequence,
      case when type like 'refund.%' then object::json ->> 'id' end as refund_id,
      idempotency_key as key,
      encode(sha256(convert_to(pay_internal.event_body(e), 'UTF8')), 'hex') as body_hash
    from pay.events e join pay.environments v on v.id = e.environment_id and v.retired_at is null
    where sequence is not null`;
  const books = await checkBooks(evidence.sql);
  const broken = (promise: string) =>
    books.filter((verdict) => verdict.breaches > 0 && ofPromise(verdict.promise).includes(promise))
      .flatMap(({ invariant, examples }) => examples.map((example) => `${invariant}: ${example}`));
  const verdicts = [
    auditEffects(evidence, events),
    auditDuplicates(evidence, events),
    auditChanged(evidence),
    await auditLedger(evidence),
    await auditStories(evidence),
    ...auditDeliveries(evidence, events),
  ];
  for (const verdict of verdicts) verdict.breaches.push(...broken(verdict.promise));
  return verdicts;
}

/** `R1, R9: …` → R1, R9 */
function ofPromise(text: string): string[] {
  return text.split(":")[0]!.split(", ");
}

/** Operations whose responses are judged: all except those of the sandbox that is reset. */
function judged({ stories }: Plan): { story: Story; operation: Operation }[] {
  return stories.filter(({ sandbox }) => sandbox !== "resets")
    .flatMap((story) => story.groups.flat().map((operation) => ({ story, operation })));
}

function keyOf(plan: Plan, operation: number): string {
  return `chaos-${plan.seed}-${operation}`;
}

/** R1: acknowledged changes exist, refused ones left nothing, every operation has a response. */
function auditEffects(evidence: Evidence, events: StoredEvent[]): Verdict {
  const { plan } = evidence;
  const breaches: string[] = [];
  const first = firstResponses(evidence);
  const keys = new Set(events.map(({ environment_id, key }) => `${environment_id} ${key}`));
  let acknowledged = 0;
  for (const { number } of plan.stories.flatMap(({ groups }) => groups.flat())) {
    const response = first.get(number);
    if (response?.status === 0) breaches.push(`operation ${number}: ${response.body}`);
  }
  for (const { story, operation } of judged(plan)) {
    const { number, action } = operation;
    const response = first.get(number);
    // The story ended earlier. auditStories() judges whether that is right.
    if (response === undefined || response.status === 0 || isRead(action)) continue;
    const has_effect = keys.has(`${evidence.environments[story.sandbox]} ${keyOf(plan, number)}`);
    const promises = hasEffect(action, response);
    if (promises !== false) acknowledged++;
    if (promises === true && !has_effect) breaches.push(`operation ${number} is lost`);
    if (promises === false && has_effect) {
      breaches.push(`operation ${number} got ${response.status}, but its change exists`);
    }
  }
  return {
    promise: "R1",
    says: `${acknowledged} changes acknowledged, ${first.size} operations with a response`,
    breaches,
  };
}

/** Whether a response acknowledges a change; null if it does not show that. */
function hasEffect(action: Action, { status, body }: ApiResponse): boolean | null {
  if (status === 402) return action.do !== "transfer";
  if (status >= 400) return false;
  // An advance to the current status is 200 and changes nothing. auditStories() judges these.
  if (isAdvance(action)) {
    return JSON.parse(body).status === action.to ? null : true;
  }
  return true;
}

function isAdvance(
  action: Action,
): action is Extract<Action, { do: "advance" | "advance_transfer" | "advance_refund" }> {
  return ["advance", "advance_transfer", "advance_refund"].includes(action.do);
}

/** R2: one effect per key, and one response. */
function auditDuplicates(evidence: Evidence, events: StoredEvent[]): Verdict {
  const breaches: string[] = [];
  const made = new Map<string, Set<string>>();
  for (const { environment_id, key, type, subject_id, sequence } of events) {
    if (key === null || environment_id === evidence.environments.resets) continue;
    const is_refund = type.startsWith("refund.");
    if (!type.endsWith(".created") && !is_refund) continue;
    const makes = is_refund ? `${subject_id} ${sequence}` : subject_id;
    // A forced refund has the key of its payment, so the type belongs to the name.
    const name = `${environment_id} ${key} ${type}`;
    made.set(name, (made.get(name) ?? new Set()).add(makes));
  }
  for (const [name, things] of made) {
    if (things.size > 1) breaches.push(`${name}: ${things.size} effects instead of 1`);
  }
  const told = new Map<number, ApiResponse[]>();
  for (const response of responsesOf(evidence, "response")) {
    told.set(response.operation, [...told.get(response.operation) ?? [], response]);
  }
  let duplicates = 0;
  let replays = 0;
  for (const { operation } of judged(evidence.plan)) {
    const responses = told.get(operation.number) ?? [];
    if (isRead(operation.action)) continue;
    duplicates += responses.length;
    replays += responses.filter(({ is_replay }) => is_replay).length;
    const lasting = responses.filter(({ status }) =>
      status < 300 || status === 402 || status === 409
    );
    if (new Set(lasting.map(({ status, body }) => `${status} ${body}`)).size > 1) {
      breaches.push(`operation ${operation.number}: duplicates got different responses`);
    }
    const firsts = lasting.filter(({ is_replay }) => !is_replay);
    if (firsts.length > 1) {
      breaches.push(`operation ${operation.number}: ${firsts.length} first responses`);
    }
    const is_mixed = lasting.some(({ status }) => status < 300) &&
      lasting.length < responses.length;
    if (is_mixed) breaches.push(`operation ${operation.number}: only some duplicates succeeded`);
  }
  breaches.push(...refundFaults(events), ...evidence.replays.faults);
  return {
    promise: "R2",
    says: `${duplicates} responses to duplicates, ${replays} of them replays; ` +
      `${evidence.replays.replayed} keys replayed byte for byte at the end`,
    breaches,
  };
}

/** Refunds that do not begin once, or that end more than once. A completed one can fail later. */
function refundFaults(events: StoredEvent[]): string[] {
  const types = new Map<string, string[]>();
  for (const { refund_id, type } of events.toSorted((a, b) => a.sequence - b.sequence)) {
    if (refund_id !== null) types.set(refund_id, [...types.get(refund_id) ?? [], type]);
  }
  return [...types].filter(([, [first, end, later, ...more]]) =>
    first !== "refund.created" || end === "refund.created" || more.length > 0 ||
    later !== undefined && (end !== "refund.completed" || later !== "refund.failed")
  ).map(([id, all]) => `${id} has the events ${all.join(", ")}`);
}

/** R3: another body with a used key gets 409. */
function auditChanged(evidence: Evidence): Verdict {
  const changed = responsesOf(evidence, "changed");
  const breaches = changed
    .filter(({ status, body }) => status !== 409 || !body.includes('"idempotency_conflict"'))
    .map(({ operation, status }) =>
      `operation ${operation}, one field changed: ${status === 0 ? "no response" : status}`
    );
  return { promise: "R3", says: `${changed.length} requests with one field changed`, breaches };
}

/**
 * R4, besides the invariants: the ledger is append-only, and no hot balance was ever below zero.
 */
async function auditLedger(evidence: Evidence): Promise<Verdict> {
  const { meanwhile, altered_movements } = evidence;
  const overdrawn = await overdrawnBalances(evidence.sql, evidence.environments.transfers);
  const [row] = await evidence.sql<{ movements: string; transfers: string }[]>`
    select (select count(*) from pay.ledger_movements) as movements,
      (select count(*) from pay.transfers) as transfers`;
  return {
    promise: "R4",
    says: `${row!.movements} movements of the ledger, ${row!.transfers} transfers, ` +
      `audited ${meanwhile.audits} times during the run`,
    breaches: [
      ...overdrawn,
      ...(meanwhile.audits === 0 ? ["the books were never audited during the run"] : []),
      ...meanwhile.breaches,
      ...altered_movements,
      ...balanceFaults(evidence),
    ],
  };
}

/** Overdrawn balances of a sandbox. Transfers must not overdraw a balance. */
export async function overdrawnBalances(
  sql: postgres.Sql,
  environment_id: string,
): Promise<string[]> {
  const rows = await sql`
    select currency, sum(case direction when 'credit' then amount_minor else -amount_minor end) as left
    from pay.ledger_entries where environment_id = ${environment_id} and account = 'available'
    group by currency
    having sum(case direction when 'credit' then amount_minor else -amount_minor end) < 0`;
  return rows.map(({ currency, left }) => `${currency} overdrawn: ${left}`);
}
