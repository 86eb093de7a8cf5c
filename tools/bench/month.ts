/**
 * `deno task bench --month N`: fills a sandbox with N payments of 30 days, each with its webhooks. Then
 * it makes days pass: the oldest day is over its retention and a new day is written. Measures the
 * rate of retention, creates beside it, and whether the space comes back.
 *
 * Time passes by the database's clock, which decides what is deleted (ADR 0008). The product runs as
 * usual: its ticker calls retention once a minute, for up to 45 s.
 */

import postgres, { type Sql } from "postgres";
import { ask } from "./api_request.ts";
import { fillEnvironment, TABLES } from "./fill.ts";
import { CONNECTIONS, CREATE_ROWS, createPlan, RequestForge } from "./line.ts";
import type { LoadOrder } from "./load_order.ts";
import {
  type AtEnd,
  type Bench,
  type Load,
  measureServer,
  openBench,
  startServer,
} from "./measure.ts";
import type { Figure, Measured } from "./measurement.ts";
import { ENVIRONMENT_ID } from "./server_pairs.ts";
import { readSizes, readWal } from "./space.ts";
import { takeArrivals, urlOf, waitForEmptyOutbox } from "./webhook_pairs.ts";

const DAY_MS = 24 * 3600 * 1000;
const RETENTION_DAYS = 30;
/** Days that can pass after a fill: the database's clock begins this many days in the past. */
const DAYS_TO_PASS = 20;
/** The share of the time in which the ticker lets retention run. */
const RETENTION_SHARE = 45 / 60;
/** Parts of a fill, each with a connection. */
const FILLS = 4;
/** Time of the creates at the peak. A sandbox takes at most 20 000 pending deliveries. */
const PEAK_MS = 5_000;
const POLL_MS = 500;
/** Longest wait for retention: it begins within a minute. */
const DEADLINE_MS = 15 * 60_000;
/** Creates of the product have the time of the machine, their idempotency keys that of the database. */
const ROWS = { ...CREATE_ROWS, idempotency_keys: 0 };

/** The options of a run. */
interface MonthOptions {
  /** Payments of 30 days. */
  payments: number;
  days: number;
  seconds: number;
  /** A folder that keeps the database for the next run; null: a temporary one. */
  data_dir: string | null;
}

/** Fills the database, unless an earlier run has, and lets days pass. */
export async function measureMonth(
  { payments, days, seconds, data_dir }: MonthOptions,
  load: Load,
  discarded: string[],
  atEnd: AtEnd,
): Promise<{ measured: Measured; benches: Bench[] }> {
  const bench = await openBench({ load, seconds, discarded }, atEnd, data_dir ?? undefined);
  const { product, sql } = bench;
  const forge = new RequestForge(bench);
  if (await readDelayMs(sql) < DAY_MS) await fill(bench, payments);
  const values = new Map<string, Figure>();
  const note = (name: string, unit: string, value: number) => {
    const figure = values.get(name) ?? { name, unit, values: [] };
    values.set(name, figure);
    figure.values.push(value);
    console.error(`${passedSeconds()} s  ${name}: ${value.toFixed(2)} ${unit}`);
  };
  const receiver = await startServer("webhook_receiver.ts", null, atEnd);
  const path = "/v1/webhook_endpoints";
  const { id } = await ask(product, { method: "POST", path, body: { url: urlOf(receiver) } });
  atEnd(() => ask(product, { method: "DELETE", path: `${path}/${id}` }));
  const settle = async () => {
    await waitForEmptyOutbox(bench, [id]);
    await takeArrivals(receiver);
  };
  /** Creates whose events are delivered. */
  const create = async (name: string, pace: Pick<LoadOrder, "rate_per_s" | "duration_ms">) => {
    const plan = { ...createPlan(forge), ...pace };
    const run = await measureServer(bench, name, CONNECTIONS, plan, ROWS);
    if (run === null) throw new Error(`${name} does not count`);
    return run;
  };
  // V8 compiles the code, and the pages of the last day are read.
  await create("warm-up", { rate_per_s: null, duration_ms: PEAK_MS });
  await settle();
  const began_ms = performance.now();
  const { responses } = await create("at the peak", { rate_per_s: null, duration_ms: PEAK_MS });
  await settle();
  const peak = responses / (performance.now() - began_ms) * 1000;
  note("creates until every event has arrived, at the peak", "/s", peak);
  const carried = { rate_per_s: peak / 2, duration_ms: seconds * 1000 };
  let size = await reportSizes(sql, payments, note);
  const first_size = size;
  /** Payments of the current day. */
  let written = responses;
  for (let day = 0; day < days; day++) {
    await writeDay(bench, Math.max(1, Math.round(payments / RETENTION_DAYS) - written));
    // Otherwise the pages of the whole day would be written beside the creates.
    await sql`checkpoint`;
    const wal_before = await readWal(sql);
    const without = await create("without retention", carried);
    await settle();
    const wal_of_creates = await readWal(sql) - wal_before;
    const first_kept = await passDay(sql);
    const deleted_before = await readDeletedEvents(sql);
    const start = await waitFor("retention", async () => {
      const deleted = await readDeletedEvents(sql);
      return deleted > deleted_before ? { deleted, at_ms: performance.now() } : null;
    });
    const beside = await create("beside retention", carried);
    const end = {
      ...{ deleted: await readDeletedEvents(sql), at_ms: performance.now() },
      ...{ wal: await readWal(sql), is_due: await isDue(sql, first_kept) },
    };
    if (!end.is_due) console.error("Retention ended before the creates: take fewer --seconds");
    await waitFor("the end of retention", async () => await isDue(sql, first_kept) ? null : {});
    const ended_ms = performance.now();
    await settle();
    const [wal, deleted] = [await readWal(sql) - end.wal, await readDeletedEvents(sql)];
    written = beside.responses;
    // Two events for each payment.
    const rate = (end.deleted - start.deleted) / 2 / (end.at_ms - start.at_ms) * 1000;
    note("creates without retention, p99", "ms", without.p99_ms);
    note("creates beside retention, p99", "ms", beside.p99_ms);
    note("p99 beside retention ÷ without", "×", beside.p99_ms / without.p99_ms);
    note("retention beside creates", "payments/s", rate);
    note("retention with its pauses ÷ creates", "×", rate * RETENTION_SHARE / carried.rate_per_s);
    note("retention of a day", "s", (ended_ms - start.at_ms) / 1000);
    note("WAL of a create with its webhooks", "kB", wal_of_creates / without.responses / 1000);
    if (end.is_due) {
      note("WAL of its retention", "kB", wal / ((deleted - end.deleted) / 2) / 1000);
    }
    // Autovacuum would have the rest of the day.
    const vacuum_ms = performance.now();
    for (const table of TABLES) await sql.unsafe(`vacuum pay.${table}`);
    note("vacuum after a day", "s", (performance.now() - vacuum_ms) / 1000);
    size = await reportSizes(sql, payments, note);
    note("size after a day ÷ at the beginning", "×", size / first_size);
  }
  return { measured: { measurements: [], figures: [...values.values()] }, benches: [bench] };
}

async function fill({ sql, product }: Bench, payments: number): Promise<void> {
  await setDelayMs(sql, DAYS_TO_PASS * DAY_MS);
  const to_ms = Date.now() - DAYS_TO_PASS * DAY_MS;
  // The invariants expect all movements of an environment that is younger.
  await sql`update pay.environments set created_at = created_at - make_interval(
    days => ${DAYS_TO_PASS + RETENTION_DAYS})`;
  const from_ms = to_ms - RETENTION_DAYS * DAY_MS;
  const [share, share_ms] = [Math.ceil(payments / FILLS), (to_ms - from_ms) / FILLS];
  await Promise.all(Array.from({ length: FILLS }, async (_, i) => {
    const connection = postgres(product.superuser_url, { max: 1, onnotice: () => {} });
    await fillEnvironment(connection, {
      ...{ product, payments: share, deliveries: true, vacuum: false },
      span: { from_ms: from_ms + i * share_ms, to_ms: from_ms + (i + 1) * share_ms },
      first: 1 + i * share,
      onProgress: (made) => console.error(`${passedSeconds()} s  part ${i}: ${made} payments`),
    }).finally(() => connection.end());
  }));
  await sql`vacuum analyze`;
}

/** Writes the payments of the next day. */
async function writeDay({ sql, product }: Bench, payments: number): Promise<void> {
  const delay_ms = await readDelayMs(sql);
  if (delay_ms < DAY_MS) throw new Error("no more days can pass: begin with an empty folder");
  const from_ms = Date.now() - delay_ms;
  await fillEnvironment(sql, {
    ...{ product, payments, deliveries: true, vacuum: false },
    span: { from_ms, to_ms: from_ms + DAY_MS },
    first: Math.floor(from_ms),
  });
}

/** Moves the clock of the database on by a day. Returns the first event that is not too old. */
async function passDay(sql: Sql): Promise<string> {
  await setDelayMs(sql, await readDelayMs(sql) - DAY_MS);
  const [row] = await sql<[{ id: string }]>`
    select pay_internal.id_floor('evt_', pay_internal.server_time() - interval '30 days') as id`;
  return row.id;
}

/** The time by which the clock of the database is behind. */
async function readDelayMs(sql: Sql): Promise<number> {
  const [row] = await sql<[{ ms: number }]>`
    select extract(epoch from now() - pay_internal.server_time())::float8 * 1000 as ms`;
  return row.ms;
}

async function setDelayMs(sql: Sql, delay_ms: number): Promise<void> {
  await sql.unsafe(`
    create or replace function pay_internal.server_time() returns timestamptz
    language plpgsql stable parallel safe set search_path = pg_catalog, pg_temp
    as $$ begin return now() - interval '${delay_ms} milliseconds'; end $$`);
}

/** All events that were ever deleted; up to a second old. */
async function readDeletedEvents(sql: Sql): Promise<number> {
  const [row] = await sql<[{ deleted: string }]>`
    select n_tup_del as deleted from pg_stat_user_tables
    where schemaname = 'pay' and relname = 'events'`;
  return Number(row.deleted);
}

async function isDue(sql: Sql, id: string): Promise<boolean> {
  const rows = await sql`
    select from pay.events where environment_id = ${ENVIRONMENT_ID} and id < ${id} limit 1`;
  return rows.length > 0;
}

/** Calls `look` until it returns a value. */
async function waitFor<T>(name: string, look: () => Promise<T | null>): Promise<T> {
  for (const deadline = performance.now() + DEADLINE_MS; performance.now() < deadline;) {
    const found = await look();
    if (found !== null) return found;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  throw new Error(`waited too long for ${name}`);
}

/** Adds the sizes to the figures, and prints how far autovacuum is. Returns the whole size. */
async function reportSizes(
  sql: Sql,
  payments: number,
  note: (name: string, unit: string, value: number) => void,
): Promise<number> {
  const sizes = await readSizes(sql, payments);
  for (const { name, unit, values } of sizes) note(name, unit, values[0]!);
  const tables = await sql<Record<string, unknown>[]>`
    select relname, n_live_tup as rows, n_dead_tup as dead, autovacuum_count as vacuums
    from pg_stat_user_tables where schemaname = 'pay' and n_live_tup + n_dead_tup > ${
    payments / 100
  }`;
  for (const table of tables) console.error(JSON.stringify(table));
  return sizes.at(-1)!.values[0]!;
}

function passedSeconds(): string {
  return (performance.now() / 1000).toFixed(0).padStart(5);
}
