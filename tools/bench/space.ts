/**
 * The space that a payment takes: bytes of WAL for a create, and bytes of tables and indexes without
 * and with webhooks.
 */

import type { Sql } from "postgres";
import { CONNECTIONS, CREATE_ROWS, createPlan, type RequestForge } from "./line.ts";
import { type AtEnd, measureServer, startServer } from "./measure.ts";
import type { Figure } from "./measurement.ts";
import { createUntilArrived } from "./webhook_pairs.ts";

/** Longer than the creates take on any machine. */
const DEADLINE_MS = 600_000;

/**
 * Makes payments on a fresh product, without an endpoint and then a quarter as many with one. The
 * idempotency keys are those of a day, and the attempts are in their log.
 */
export async function measureSpace(
  forge: RequestForge,
  payments: number,
  atEnd: AtEnd,
): Promise<Figure[]> {
  const { bench } = forge;
  const { sql } = bench;
  const whole = { warmup_ms: 0, duration_ms: DEADLINE_MS };
  const plan = { ...createPlan(forge), ...whole, requests_max: payments };
  const name = `space of ${payments} payments`;
  await sql`checkpoint`;
  const [bytes_before, wal_before] = [await readBytes(sql), await readWal(sql)];
  const plain = await measureServer(bench, name, CONNECTIONS, plan, CREATE_ROWS);
  const wal = await readWal(sql) - wal_before;
  const bytes = await readBytes(sql) - bytes_before;
  const receiver = await startServer("webhook_receiver.ts", null, atEnd);
  // Otherwise the dead rows of deliveries count, whose space a long run uses again.
  await sql`vacuum full`;
  const full_before = await readBytes(sql);
  const few = { ...plan, requests_max: payments / 4 };
  const delivered = await createUntilArrived(bench, receiver, few);
  await sql`vacuum full`;
  const added = await readBytes(sql) - full_before;
  if (plain === null || delivered === null) return [];
  return [
    { name: "WAL of a create", unit: "bytes", values: [wal / plain.responses] },
    { name: "a completed payment", unit: "kB", values: [bytes / plain.responses / 1000] },
    {
      name: "a completed payment with its webhooks",
      unit: "kB",
      values: [added / delivered.responses / 1000],
    },
  ];
}

/** All bytes of WAL that were ever written. */
export async function readWal(sql: Sql): Promise<number> {
  const [row] = await sql<[{ bytes: string }]>`select pg_current_wal_lsn() - '0/0' as bytes`;
  return Number(row.bytes);
}

/**
 * The bytes of all tables and indexes. The log of requests is left out: it has a number of requests
 * for each second, so a slow machine would log more of them for each payment.
 */
async function readBytes(sql: Sql): Promise<number> {
  const [row] = await sql<[{ bytes: string }]>`
    select sum(pg_total_relation_size(oid)) as bytes from pg_class
    where relnamespace = 'pay'::regnamespace and relkind = 'r' and relname <> 'requests'`;
  return Number(row.bytes);
}

/** The bytes of each table and of its indexes for each payment, and their sum. */
export async function readSizes(sql: Sql, rows: number): Promise<Figure[]> {
  const tables = await sql<{ name: string; heap: string; indexes: string }[]>`
    select relname as name, pg_table_size(oid) as heap, pg_indexes_size(oid) as indexes
    from pg_class where relnamespace = 'pay'::regnamespace and relkind = 'r'
      and pg_table_size(oid) > ${rows}
    order by pg_total_relation_size(oid) desc`;
  const sizes = tables.flatMap(({ name, heap, indexes }): [string, number][] => [
    [`${name}, rows`, Number(heap)],
    [`${name}, indexes`, Number(indexes)],
  ]);
  const all = sizes.reduce((sum, [, bytes]) => sum + bytes, 0);
  return [...sizes, ["all tables and indexes", all] as const].map(([name, bytes]) => ({
    name,
    unit: "bytes per payment",
    values: [bytes / rows],
  }));
}
