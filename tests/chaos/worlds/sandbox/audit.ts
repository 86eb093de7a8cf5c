/**
 * The audit of the main run: compares the journals of clients and receiver with the database. It
 * judges by the model, by the invariants and by counting, and shares no rule with the product.
 */

import type postgres from "postgres";
import { checkBooks } from "../../../../apps/operator/check_books.ts";
import type { Verdict } from "../../harness/audit.ts";
import { isLasting, type Received } from "./clients.ts";
import { auditDeliveries } from "./delivery_audit.ts";
import { type Evidence, firstResponses, responsesOf, type StoredEvent } from "./evidence.ts";
import { type Action, isRead, keyOf, type Operation, type Plan, type Story } from "./plan.ts";
import { auditStories, balanceFaults } from "./story_audit.ts";

export async function auditRun(evidence: Evidence): Promise<Verdict[]> {
  const events = await evidence.sql<StoredEvent[]>`
    select v.public_id as environment_id, e.id, type, subject_id, sequence,
      case when type like 'refund.%' then object::json ->> 'id' end as refund_id,
      idempotency_key as key,
      encode(sha256(convert_to(pay_internal.event_body(e), 'UTF8')), 'hex') as body_hash
    from pay.events e join pay.environments v on v.id = e.environment_id and v.retired_at is null
    where sequence is not null`;
  const verdicts = [
    auditEffects(evidence, events),
    await auditDuplicates(evidence, events),
    auditChanged(evidence),
    await auditLedger(evidence),
    await auditStories(evidence),
    ...auditDeliveries(evidence, events),
  ];
  const books = (await checkBooks(evidence.sql)).filter(({ breaches }) => breaches > 0);
  for (const verdict of verdicts) {
    for (const { invariant, promise, examples } of books) {
      // `R1, R9: …` → R1, R9
      if (!promise.split(":")[0]!.split(", ").includes(verdict.promise)) continue;
      verdict.breaches.push(...examples.map((example) => `${invariant}: ${example}`));
    }
  }
  return verdicts;
}

/** Operations whose responses are judged: all except those of the sandbox that is reset. */
function judged({ stories }: Plan): { story: Story; operation: Operation }[] {
  return stories.filter(({ sandbox }) => sandbox !== "resets")
    .flatMap((story) => story.groups.flat().map((operation) => ({ story, operation })));
}

/** R1: acknowledged changes exist, refused ones left nothing, every operation has a response. */
function auditEffects(evidence: Evidence, events: StoredEvent[]): Verdict {
  const { plan, environments } = evidence;
  const first = firstResponses(evidence);
  const keys = new Set(events.map(({ environment_id, key }) => `${environment_id} ${key}`));
  const breaches = [...first.values()].filter(({ status }) => status === 0)
    .map(({ operation, body }) => `operation ${operation}: ${body}`);
  let acknowledged = 0;
  for (const { story: { sandbox }, operation: { number, action } } of judged(plan)) {
    const response = first.get(number);
    // Without a response the story ended earlier. auditStories() judges whether that is right.
    if (response === undefined || response.status === 0 || isRead(action)) continue;
    const has_effect = keys.has(`${environments[sandbox]} ${keyOf(plan, number)}`);
    const promises = hasEffect(action, response);
    if (promises !== false) acknowledged++;
    if (promises === true && !has_effect) breaches.push(`operation ${number} is lost`);
    if (promises === false && has_effect) {
      breaches.push(`operation ${number} got ${response.status}, but its change exists`);
    }
  }
  const says = `${acknowledged} changes acknowledged, ${first.size} operations with a response`;
  return { promise: "R1", says, breaches };
}

/** Whether a response acknowledges a change; null if it does not show that. */
function hasEffect(action: Action, { status, body }: Received): boolean | null {
  if (status === 402) return action.do !== "transfer";
  if (status >= 400) return false;
  // One to the current status, or a second end, is 200 and changes nothing. auditStories() judges
  // these.
  if (action.do === "end") return null;
  return "to" in action && JSON.parse(body).status === action.to ? null : true;
}

/** R2: one effect per key, and one response. */
async function auditDuplicates(evidence: Evidence, events: StoredEvent[]): Promise<Verdict> {
  const breaches = effectsOfOneKey(events, evidence.environments.resets);
  const saves = await evidence.sql<{ payment_id: string; count: string }[]>`
    select payment_id, count(*) from pay.instruments group by payment_id having count(*) > 1`;
  breaches.push(...saves.map(({ payment_id, count }) => `${payment_id}: ${count} instruments`));
  const told = Map.groupBy(responsesOf(evidence, "response"), ({ operation }) => operation);
  let [duplicates, replays] = [0, 0];
  for (const { operation: { number, action } } of judged(evidence.plan)) {
    const responses = told.get(number) ?? [];
    if (isRead(action)) continue;
    const name = `operation ${number}`;
    duplicates += responses.length;
    replays += responses.filter(({ is_replay }) => is_replay).length;
    const lasting = responses.filter((response) => isLasting(action, response));
    if (new Set(lasting.map(({ status, body }) => `${status} ${body}`)).size > 1) {
      breaches.push(`${name}: duplicates got different responses`);
    }
    const firsts = lasting.filter(({ is_replay }) => !is_replay);
    if (firsts.length > 1) breaches.push(`${name}: ${firsts.length} first responses`);
    if (lasting.some(({ status }) => status < 300) && lasting.length < responses.length) {
      breaches.push(`${name}: only some duplicates succeeded`);
    }
  }
  return {
    promise: "R2",
    says: `${duplicates} responses to duplicates, ${replays} of them replays; ` +
      `${evidence.replays.replayed} keys replayed byte for byte at the end`,
    breaches: [...breaches, ...refundFaults(events), ...evidence.replays.faults],
  };
}

/** Payments, transfers and refund events that share their key and type with others. */
function effectsOfOneKey(events: StoredEvent[], resets: string): string[] {
  const made = new Map<string, Set<string>>();
  for (const { environment_id, key, type, subject_id, sequence } of events) {
    if (key === null || environment_id === resets) continue;
    const is_refund = type.startsWith("refund.");
    if (!type.endsWith(".created") && !is_refund) continue;
    // A forced refund has the key of its payment, so the type belongs to the name.
    const name = `${environment_id} ${key} ${type}`;
    const effect = is_refund ? `${subject_id} ${sequence}` : subject_id;
    made.set(name, (made.get(name) ?? new Set()).add(effect));
  }
  return [...made].filter(([, { size }]) => size > 1)
    .map(([name, { size }]) => `${name}: ${size} effects instead of 1`);
}

/** Refunds that do not begin once, or that end more than once. A completed one can fail later. */
function refundFaults(events: StoredEvent[]): string[] {
  const refunds = Map.groupBy(
    events.filter(({ refund_id }) => refund_id !== null)
      .toSorted((a, b) => a.sequence - b.sequence),
    ({ refund_id }) => refund_id,
  );
  return [...refunds].map(([id, all]) => [id, all.map(({ type }) => type)] as const)
    .filter(([, [first, end, later, ...more]]) =>
      first !== "refund.created" || end === "refund.created" || more.length > 0 ||
      later !== undefined && (end !== "refund.completed" || later !== "refund.failed")
    ).map(([id, types]) => `${id} has the events ${types.join(", ")}`);
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

/** R4, besides the invariants: the ledger is append-only, and no hot balance was below zero. */
async function auditLedger(evidence: Evidence): Promise<Verdict> {
  const { meanwhile: { audits, breaches }, altered_movements, sql, environments } = evidence;
  const [row] = await sql<{ movements: string; transfers: string }[]>`
    select (select count(*) from pay.ledger_movements) as movements,
      (select count(*) from pay.transfers) as transfers`;
  return {
    promise: "R4",
    says: `${row!.movements} movements of the ledger, ${row!.transfers} transfers, ` +
      `audited ${audits} times during the run`,
    breaches: [
      ...await overdrawnBalances(sql, environments.transfers),
      ...(audits === 0 ? ["the books were never audited during the run"] : []),
      ...breaches,
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
    select currency, sum(signed) as balance from (
      select currency,
        case direction when 'credit' then amount_minor else -amount_minor end as signed
      from pay.ledger_entries where environment_id = ${environment_id} and account = 'available'
    ) e group by currency having sum(signed) < 0`;
  return rows.map(({ currency, balance }) => `${currency} overdrawn: ${balance}`);
}
