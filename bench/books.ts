/**
 * The books after a run: what the database holds must be what was acknowledged, event by event and
 * cent by cent. A fast answer that is not in the books is worth nothing.
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

/** What the database holds, over all environments. */
export interface Books extends Rows {
  /** Events that there must be: a payment's `sequence` counts them. */
  events_due: number;
  /** Payments whose money is not in the ledger, or is there without having moved. */
  payments_without_ledger: number;
  /** Currencies in which debits and credits differ. */
  currencies_off: number;
}

/** Nothing is written. */
export const NO_ROWS: Rows = {
  payments: 0,
  refunds: 0,
  events: 0,
  ledger_entries: 0,
  idempotency_keys: 0,
};

/** Reads the books. */
export async function readBooks(sql: Sql): Promise<Books> {
  const [row] = await sql<Record<keyof Books, string>[]>`
    select
      (select count(*) from pay.payments) as payments,
      (select count(*) from pay.refunds) as refunds,
      (select count(*) from pay.events) as events,
      (select count(*) from pay.ledger_entries) as ledger_entries,
      (select count(*) from pay.idempotency_keys) as idempotency_keys,
      (select coalesce(sum(sequence), 0) from pay.payments) as events_due,
      (select count(*) from (
        select p.id
        from (select id, amount_minor - amount_refunded as kept from pay.payments
              where status in ('completed', 'partially_refunded', 'refunded')) p
        full join (
          select subject_id,
            sum(case direction when 'credit' then amount_minor else -amount_minor end) as kept
          from pay.ledger_entries where account = 'available' group by subject_id
        ) l on l.subject_id = p.id
        where coalesce(p.kept, 0) <> coalesce(l.kept, 0)
      ) wrong) as payments_without_ledger,
      (select count(*) from (
        select from pay.ledger_entries group by currency
        having sum(case direction when 'debit' then amount_minor else -amount_minor end) <> 0
      ) wrong) as currencies_off`;
  return Object.fromEntries(
    Object.entries(row!).map(([name, count]) => [name, Number(count)]),
  ) as unknown as Books;
}

/** What is wrong after so many answers, each of which leaves these rows; empty when all is well. */
export function auditBooks(before: Books, after: Books, answers: number, each: Rows): string[] {
  const problems: string[] = [];
  for (const name of Object.keys(NO_ROWS) as (keyof Rows)[]) {
    const [found, due] = [after[name] - before[name], answers * each[name]];
    if (found !== due) problems.push(`${name}: ${found} new rows, acknowledged ${due}`);
  }
  if (after.events !== after.events_due) {
    problems.push(`events: ${after.events}, but the payments tell of ${after.events_due}`);
  }
  for (const name of ["payments_without_ledger", "currencies_off"] as const) {
    if (after[name] !== 0) problems.push(`${name}: ${after[name]}`);
  }
  return problems;
}
