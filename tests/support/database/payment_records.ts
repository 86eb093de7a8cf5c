/**
 * Reads the rows of a payment as superuser, without the product, so that tests can compare them
 * with the responses of the product.
 */

import type postgres from "postgres";

/** A connection that sees every row: a test service has one. */
interface Database {
  sql: postgres.Sql;
}

/** The rows of one payment. */
interface PaymentRecord {
  /** Every row as text, to compare before and after byte by byte. */
  text: string;
  /** The stored body of the payment. */
  body: string;
  events: EventRecord[];
  /** Ledger transactions by id, each as `capture processor>available 1000 EUR`. */
  ledger: Map<string, string>;
}

/** One event of a payment. */
interface EventRecord {
  id: string;
  type: string;
  sequence: number;
  // deno-lint-ignore no-explicit-any
  payload: any;
  body: string;
}

/** Reads all rows of one payment. */
export async function recordOf({ sql }: Database, id: string): Promise<PaymentRecord> {
  const payments = await sql`select * from pay.payments where id = ${id}`;
  const refunds = await sql`select * from pay.refunds where payment_id = ${id} order by id`;
  const disputes = await sql`select * from pay.disputes where payment_id = ${id} order by id`;
  const events = await sql`
    select *, pay_internal.event_body(e) as body from pay.events e
    where subject_id = ${id} order by sequence`;
  const transactions = await sql`
    select * from pay.ledger_movements where subject_id = ${id} order by transaction_id, leg`;
  const entries = await sql`
    select * from pay.ledger_entries where subject_id = ${id} order by transaction_id, id`;
  const ledger = new Map<string, string>();
  for (const { transaction_id: id, kind } of transactions) {
    const sides = entries.filter((entry) => entry.transaction_id === id);
    const [debit, ...debits] = sides.filter((entry) => entry.direction === "debit");
    const [credit, ...credits] = sides.filter((entry) => entry.direction === "credit");
    const is_pair = debits.length + credits.length === 0 && debit && credit &&
      debit.amount_minor === credit.amount_minor && debit.currency === credit.currency;
    ledger.set(
      id,
      is_pair
        ? `${kind} ${debit.account}>${credit.account} ${debit.amount_minor} ${debit.currency}`
        : `${kind} of unequal sides: ${JSON.stringify(sides)}`,
    );
  }
  return {
    text: JSON.stringify({ payments, refunds, disputes, events, transactions, entries }, null, 1),
    body: payments[0]?.body,
    events: events.map(({ id, type, sequence, body }) => ({
      id,
      type,
      sequence,
      body,
      payload: JSON.parse(body),
    })),
    ledger,
  };
}

/** The tables that requests of tenants write. */
const COUNTED = [
  "payments",
  "refunds",
  "transfers",
  "events",
  "ledger_movements",
  "webhook_endpoints",
  "webhook_deliveries",
  "idempotency_keys",
];

/** Counts the rows of each table, to see that a request wrote nothing. */
export async function rowCounts({ sql }: Database): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const table of COUNTED) {
    const [row] = await sql`select count(*)::int as rows from pay.${sql(table)}`;
    counts[table] = row!.rows;
  }
  return counts;
}
