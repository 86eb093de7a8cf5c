/**
 * `deno task bench --rows N`: the lines on a database with N payments in one environment, in turns
 * with the same lines on a fresh database with a thousand payments.
 */

import { COPY_KEY, fillEnvironment } from "./fill.ts";
import { type Line, type Pool, prepareFilledLines, RequestForge } from "./line.ts";
import {
  type AtEnd,
  type Bench,
  type Load,
  measureServer,
  openBench,
  type Run,
} from "./measure.ts";
import { type Measured, type Measurement, measurePair, type Pair } from "./measurement.ts";
import { measureMemory } from "./memory.ts";
import { deepPagePair, ENVIRONMENT_ID, readIds } from "./server_pairs.ts";
import { readSizes } from "./space.ts";

/** Payments of the fresh database. */
const FRESH_ROWS = 1000;
/** Reads and replays choose among this many payments, spread over all. */
const POOL_ITEMS = 10_000;
/** Creates of the memory line, if there are as many payments. */
const MEMORY_CREATES = 1_000_000;
const PROGRESS_EVERY = 500_000;

/** The options of a run on a filled database. */
interface FilledOptions {
  rows: number;
  seconds: number;
  repetitions: number;
  only: string;
}

/** Fills the databases and measures. */
export async function measureFilled(
  { rows, seconds, repetitions, only }: FilledOptions,
  load: Load,
  discarded: string[],
  atEnd: AtEnd,
): Promise<{ measured: Measured; benches: Bench[] }> {
  const open = async () => new RequestForge(await openBench({ load, seconds, discarded }, atEnd));
  const [fresh, filled] = [await open(), await open()];
  const here = await openSide(fresh, FRESH_ROWS);
  await fill(filled.bench, rows);
  const figures = await readSizes(filled.bench.sql, rows);
  // The memory comes first, as on a fresh start. Its creates also read the index of idempotency keys
  // into memory.
  if ("memory".includes(only)) {
    figures.push(...await measureMemory(filled, Math.min(rows, MEMORY_CREATES)));
    // Otherwise autovacuum and a checkpoint would run beside the lines.
    await filled.bench.sql`vacuum analyze`;
    await filled.bench.sql`checkpoint`;
  }
  const there = await sideOf(filled, rows);
  const pairs: Pair[] = [
    ...there.lines.map((line, index) => ({
      name: line.name,
      connections: null,
      measureBeside: async () => (await measureOnce(here, here.lines[index]!))?.per_second ?? null,
      run: () => measureOnce(there, line),
    })),
    { ...deepPagePair(filled), connections: null },
  ].filter(({ name }) => name.includes(only));
  const measurements: Measurement[] = pairs.map(({ name, connections }) => ({
    ...{ name, connections },
    repetitions: [],
  }));
  for (let repetition = 0; repetition < repetitions; repetition++) {
    for (const [index, pair] of pairs.entries()) {
      measurements[index]!.repetitions.push(await measurePair(pair));
    }
  }
  return { measured: { measurements, figures }, benches: [fresh.bench, filled.bench] };
}

/** One of the two databases: its lines, and the payments that their reads choose among. */
interface Side {
  bench: Bench;
  pool: Pool;
  lines: Line[];
}

/** Fills a product with payments. */
export async function openSide(forge: RequestForge, payments: number): Promise<Side> {
  await fill(forge.bench, payments);
  return await sideOf(forge, payments);
}

async function fill({ sql, product }: Bench, payments: number): Promise<void> {
  const began = performance.now();
  await fillEnvironment(sql, {
    product,
    payments,
    deliveries: false,
    vacuum: true,
    onProgress: (made) => {
      if (made % PROGRESS_EVERY !== 0) return;
      const passed = ((performance.now() - began) / 1000).toFixed(0);
      console.error(`${made} payments after ${passed} s`);
    },
  });
}

async function sideOf(forge: RequestForge, rows: number): Promise<Side> {
  const step = Math.max(1, Math.floor(rows / POOL_ITEMS));
  const keys = await forge.bench.sql.unsafe<{ key: string }[]>(
    `select ${COPY_KEY} as key from generate_series(1, $1::int, $2::int) n`,
    [rows, step],
  );
  const ids = await readIds(forge.bench, POOL_ITEMS);
  const pool: Pool = { ids, keys: keys.map(({ key }) => key) };
  return { bench: forge.bench, pool, lines: prepareFilledLines(forge, pool) };
}

/** Measures a line on a database. */
export async function measureOnce({ bench, pool }: Side, line: Line): Promise<Run | null> {
  const [connections] = line.connections;
  await readPool(bench, pool);
  return await measureServer(bench, line.name, connections!, await line.plan(), line.each);
}

/** Reads the pool's rows into memory, so that the lines measure the server and not the disk. */
async function readPool({ sql }: Bench, { ids, keys }: Pool): Promise<void> {
  await sql`
    select sum(length(body)) from pay.payments
    where environment_id = ${ENVIRONMENT_ID} and id = any (${ids})`;
  await sql`
    select sum(length(k.body)) from pay.api_keys a
    join pay.idempotency_keys k on k.environment_id = a.environment_id and k.api_key_id = a.id
    where a.environment_id = ${ENVIRONMENT_ID} and k.key = any (${keys})`;
}
