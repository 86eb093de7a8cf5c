/**
 * The books after a run: what the database holds must be what was acknowledged, event by event and
 * cent by cent. A fast answer that is not in the books is worth nothing.
 *
 * After a run its own rows are read, which costs the same however much is stored, and every payment
 * that it touched is checked whole. At the very end everything is. Each environment's rows are sought
 * by themselves (`offset 0`): a join read whole indexes, and drove out of memory what the next run
 * needs.
 */

import type { Sql } from "postgres";

/** Rows that one answer leaves behind. */
export interface Rows {
  payments: number;
  refunds: number;
  events: number;
  ledger_entries: number;
  idempotency_keys: number;
}

/** What the database holds since a moment, over all environments. */
export interface Books extends Rows {
  /** Events of the payments that were touched, and how many there must be: `sequence` counts them. */
  events_found: number;
  events_due: number;
  /** Payments whose money is not in the ledger, or is there without having moved. */
  payments_without_ledger: number;
  /** Totals that are not the sum of their movements; looked at when everything is read. */
  totals_off: number;
}

/** Nothing is written. */
export const NO_ROWS: Rows = {
  payments: 0,
  refunds: 0,
  events: 0,
  ledger_entries: 0,
  idempotency_keys: 0,
};

/** Since ever: every row there is. */
export const ALL_BOOKS = 0;
/** Longer than the clock's step. */
const NEXT_MOMENT_MS = 2;

/** A moment, milliseconds since 1970, after everything that was answered before the call. */
export async function markBooks(): Promise<number> {
  await new Promise((resolve) => setTimeout(resolve, NEXT_MOMENT_MS));
  return Date.now();
}

/** Reads the books of what was made since a moment, and of the payments that were touched. */
export async function readBooks(sql: Sql, since_ms: number): Promise<Books> {
  return await sql.begin(async (sql) => {
    // Few rows of large tables, except when all of them are read.
    if (since_ms !== ALL_BOOKS) {
      await sql`select set_config('enable_' || name, 'off', true)
        from unnest(array['seqscan', 'hashjoin', 'mergejoin']) name`;
    }
    const at = new Date(since_ms).toISOString();
    const [row] = await sql<Record<keyof Books, string>[]>`
      with
      floors as materialized (
        select pay.id_floor('pay_', ${at}::text::timestamptz) as pay,
          pay.id_floor('re_', ${at}::text::timestamptz) as re,
          pay.id_floor('evt_', ${at}::text::timestamptz) as evt,
          pay.id_floor('txn_', ${at}::text::timestamptz) as txn
      ),
      payment as materialized (
        select t.environment_id, t.id from pay.environments e
        join lateral (select p.environment_id, p.id from pay.payments p
          where p.environment_id = e.id and p.id >= (select pay from floors) offset 0) t on true
        where e.retired_at is null
      ),
      refund as materialized (
        select t.id from pay.environments e
        join lateral (select r.id from pay.refunds r
          where r.environment_id = e.id and r.id >= (select re from floors) offset 0) t on true
        where e.retired_at is null
      ),
      event as materialized (
        select t.environment_id, t.subject_id from pay.environments e
        join lateral (select v.environment_id, v.subject_id from pay.events v
          where v.environment_id = e.id and v.id >= (select evt from floors) offset 0) t on true
        where e.retired_at is null
      ),
      entry as materialized (
        select from pay.environments e
        join lateral (select from pay.ledger_entries l
          where l.environment_id = e.id and l.transaction_id >= (select txn from floors)
          offset 0) t on true
        where e.retired_at is null
      ),
      touched as materialized (
        select environment_id, id from payment
        union
        select environment_id, subject_id from event
      ),
      checked as materialized (
        select p.sequence,
          case when p.status in ('completed', 'partially_refunded', 'refunded')
            then p.amount_minor - p.amount_refunded else 0 end as kept_due,
          (select count(*) from pay.events v
            where v.environment_id = p.environment_id and v.subject_id = p.id) as events,
          (select coalesce(sum(case l.direction when 'credit' then l.amount_minor
              else -l.amount_minor end), 0)
            from pay.ledger_entries l
            where l.environment_id = p.environment_id and l.subject_id = p.id
              and l.account = 'available') as kept
        from touched t join pay.payments p on p.environment_id = t.environment_id and p.id = t.id
      )
      select
        (select count(*) from payment) as payments,
        (select count(*) from refund) as refunds,
        (select count(*) from event) as events,
        (select count(*) from entry) as ledger_entries,
        (select count(*) from pay.idempotency_keys
          where created_at >= ${at}::text::timestamptz) as idempotency_keys,
        (select coalesce(sum(events), 0) from checked) as events_found,
        (select coalesce(sum(sequence), 0) from checked) as events_due,
        (select count(*) from checked where kept_due <> kept) as payments_without_ledger,
        case when ${since_ms === ALL_BOOKS} then (select count(*) from pay.oracle_ledger_totals)
          else 0 end as totals_off`;
    return Object.fromEntries(
      Object.entries(row!).map(([name, count]) => [name, Number(count)]),
    ) as unknown as Books;
  }) as Books;
}

/** What is wrong after so many answers, each of which leaves these rows; empty when all is well. */
export function auditBooks(books: Books, answers: number, each: Rows): string[] {
  const problems: string[] = [];
  for (const name of Object.keys(NO_ROWS) as (keyof Rows)[]) {
    const [found, due] = [books[name], answers * each[name]];
    if (found !== due) problems.push(`${name}: ${found} new rows, acknowledged ${due}`);
  }
  return [...problems, ...auditAgreement(books)];
}

/** What of the books contradicts itself; empty when all is well. */
export function auditAgreement(books: Books): string[] {
  const problems: string[] = [];
  if (books.events_found !== books.events_due) {
    problems.push(`events: ${books.events_found}, but the payments tell of ${books.events_due}`);
  }
  for (const name of ["payments_without_ledger", "totals_off"] as const) {
    if (books[name] !== 0) problems.push(`${name}: ${books[name]}`);
  }
  return problems;
}
