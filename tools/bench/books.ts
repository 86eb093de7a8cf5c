/**
 * Compares the database with the acknowledged requests. After each run it counts the new rows. At
 * the end of the benchmark the invariants (`check_books.ts`) check their content.
 */

import type { Sql } from "postgres";
import type { Arrival } from "./webhook_receiver.ts";

/** New rows in each table. */
export interface Rows {
  payments: number;
  events: number;
  ledger_movements: number;
  idempotency_keys: number;
}

/** The rows of a request that writes nothing. */
export const NO_ROWS: Rows = {
  payments: 0,
  events: 0,
  ledger_movements: 0,
  idempotency_keys: 0,
};

/** Longer than a step of the clock, which has whole milliseconds. */
const NEXT_MOMENT_MS = 2;

/** A time after every earlier response, in milliseconds since 1970. */
export async function markBooks(): Promise<number> {
  await new Promise((resolve) => setTimeout(resolve, NEXT_MOMENT_MS));
  return Date.now();
}

/** Counts the rows of live environments since a time. */
export async function readBooks(sql: Sql, since_ms: number): Promise<Rows> {
  const at = new Date(since_ms).toISOString();
  // `offset 0` makes PostgreSQL search the index once per environment. A join would read whole
  // indexes and drive the pages that the next run needs out of memory.
  const count = (table: string, prefix: string, column = "id") =>
    sql`(select coalesce(sum(n), 0)::int from pay.environments e
      join lateral (select count(*) as n from (
        select from pay.${sql(table)} t where t.environment_id = e.id
          and t.${
      sql(column)
    } >= pay_internal.id_floor(${prefix}, ${at}::text::timestamptz) offset 0
      ) found) counted on true
      where e.retired_at is null)`;
  return await sql.begin(async (sql) => {
    // The planner does not know how few rows are new.
    await sql`select set_config('enable_' || name, 'off', true)
      from unnest(array['seqscan', 'hashjoin', 'mergejoin']) name`;
    const [row] = await sql<[Rows]>`
      select ${count("payments", "pay_")} as payments, ${count("events", "evt_")} as events,
        ${count("ledger_movements", "txn_", "transaction_id")} as ledger_movements,
        (select count(*)::int from pay.idempotency_keys
          where created_at >= ${at}::text::timestamptz) as idempotency_keys`;
    return row;
  }) as Rows;
}

/** The problems after this many responses, each of which adds the rows `each`. */
export function auditBooks(found: Rows, responses: number, each: Rows): string[] {
  return (Object.keys(NO_ROWS) as (keyof Rows)[]).flatMap((name) =>
    found[name] === responses * each[name]
      ? []
      : [`${name}: ${found[name]} new rows, acknowledged ${responses * each[name]}`]
  );
}

/** Deliveries by status. */
type Outbox = Partial<Record<string, number>>;

/** An event as the receiver got it. */
export interface ArrivedEvent {
  at_ms: number;
  id: string;
  payment_id: string;
  sequence: number;
  /** Start of the request that caused the event; whole milliseconds since 1970. */
  created_ms: number;
}

/** Reads the events from the bodies. */
export function readArrivals(arrivals: readonly Arrival[]): ArrivedEvent[] {
  return arrivals.map(({ at_ms, body }) => {
    const { id, sequence, created_at, data } = JSON.parse(body);
    const payment_id = data.object.id;
    return { at_ms, id, payment_id, sequence, created_ms: Date.parse(created_at) };
  });
}

/** Reads the outbox of an endpoint. */
export async function readOutbox(sql: Sql, endpoint_id: string): Promise<Outbox> {
  const rows = await sql<{ status: string; count: string }[]>`
    select status, count(*) as count from pay.webhook_deliveries
    where endpoint_id = ${endpoint_id} group by status`;
  return Object.fromEntries(rows.map(({ status, count }) => [status, Number(count)]));
}

/**
 * The problems of a run with webhooks. Every due event must arrive once, and the events of a
 * payment in order. The receiver accepted every attempt, so a second attempt is a problem here,
 * although the contract allows it.
 * @param arrivals in the order of their arrival
 * @param due ids of the events
 */
export function auditDeliveries(
  arrivals: readonly ArrivedEvent[],
  due: ReadonlySet<string>,
  outbox: Outbox,
): string[] {
  const problems: string[] = [];
  const arrived = new Set<string>();
  const newest = new Map<string, number>();
  let [twice, unexpected, too_early] = [0, 0, 0];
  for (const { id, payment_id, sequence } of arrivals) {
    if (arrived.has(id)) twice++;
    arrived.add(id);
    if (!due.has(id)) unexpected++;
    const before = newest.get(payment_id) ?? 0;
    if (sequence > before + 1) too_early++;
    newest.set(payment_id, Math.max(sequence, before));
  }
  const missing = due.difference(arrived).size;
  for (const [name, count] of Object.entries({ missing, twice, unexpected, too_early })) {
    if (count > 0) problems.push(`arrivals: ${count} ${name}`);
  }
  const { delivered = 0, ...others } = outbox;
  if (delivered !== due.size) problems.push(`outbox: ${delivered} delivered, due ${due.size}`);
  for (const [status, count] of Object.entries(others)) problems.push(`outbox: ${count} ${status}`);
  return problems;
}
