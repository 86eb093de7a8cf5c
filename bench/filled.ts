/**
 * `deno task bench --rows N`: the lines on a database with N payments in one environment, in turns
 * with the same on a fresh one that has a thousand. What grows, and what stays flat.
 */

import type { Sql } from "postgres";
import { ask } from "./api_request.ts";
import { COPY_KEY, fillEnvironment } from "./fill.ts";
import { type Line, type Pool, prepareFilledLines, RequestForge } from "./line.ts";
import type { LoadProcess } from "./load_process.ts";
import { type Bench, measureServer, openBench, type Run } from "./measure.ts";
import type { Figure, Measurement, Repetition } from "./measurement.ts";
import { measureMemory } from "./memory.ts";
import { measurePair } from "./pair.ts";
import { deepPagePair, ENVIRONMENT_ID, readIds, Sides } from "./server_pairs.ts";

/** Payments of the fresh database. */
const FRESH_ROWS = 1000;
/** Reads and replays choose among so many payments, spread over all of them. */
const POOL_ITEMS = 10_000;
/** Creates over which the server's memory is watched, if there are as many payments. */
const MEMORY_CREATES = 1_000_000;
const PROGRESS_EVERY = 500_000;
/** Gets one after another, of payments that nobody has read, and the same once more. */
const SINGLE_GETS = 200;

/** What is asked for. */
export interface FilledOptions {
  rows: number;
  seconds: number;
  repetitions: number;
  only: string;
}

/** What came of it. */
export interface FilledRun {
  measurements: Measurement[];
  figures: Figure[];
  benches: Bench[];
}

/** Fills a database, measures, tells sizes. */
export async function measureFilled(
  { rows, seconds, repetitions, only }: FilledOptions,
  load: LoadProcess,
  discarded: string[],
  atEnd: (step: () => Promise<unknown>) => void,
): Promise<FilledRun> {
  const open = async (payments: number) => {
    const bench = await openBench({ load, seconds, discarded }, atEnd);
    const began = performance.now();
    await fillEnvironment(bench.sql, {
      product: bench.product,
      payments,
      deliveries: false,
      vacuum: true,
      onProgress: (made) => {
        if (made % PROGRESS_EVERY !== 0) return;
        const passed = ((performance.now() - began) / 1000).toFixed(0);
        console.error(`${made} payments after ${passed} s`);
      },
    });
    return new RequestForge(bench);
  };
  const fresh = await open(FRESH_ROWS);
  const filled = await open(rows);
  const figures = [
    ...await readSizes(filled.bench.sql, rows),
    ...await timeUpkeep(fresh.bench, FRESH_ROWS),
    ...await timeUpkeep(filled.bench, rows),
  ];
  // First, as on a fresh start; it also brings into memory what each create touches at a random place.
  if ("memory".includes(only)) {
    figures.push(...await measureMemory(filled, Math.min(rows, MEMORY_CREATES)));
    // What so many creates call for, which would otherwise go on beside the lines.
    await filled.bench.sql`vacuum analyze`;
    await filled.bench.sql`checkpoint`;
  }
  const [here, there] = [await sideOf(fresh, FRESH_ROWS), await sideOf(filled, rows)];
  figures.push(...await timeGets(here, FRESH_ROWS), ...await timeGets(there, rows));
  const deep = deepPagePair(filled, new Sides(filled.bench));
  const measurements: Measurement[] = [...there.lines, deep].map(({ name }) => ({
    name,
    connections: null,
    repetitions: [],
  }));
  for (let repetition = 0; repetition < repetitions; repetition++) {
    for (const [index, measurement] of measurements.entries()) {
      if (!measurement.name.includes(only)) continue;
      const [line, beside] = [there.lines[index], here.lines[index]];
      const repeated: Repetition = line === undefined || beside === undefined
        ? await measurePair(deep)
        : {
          beside: (await measureOnce(here, beside))?.per_second ?? null,
          run: await measureOnce(there, line),
        };
      measurement.repetitions.push(repeated);
    }
  }
  return {
    measurements: measurements.filter(({ repetitions }) => repetitions.length > 0),
    figures,
    benches: [fresh.bench, filled.bench],
  };
}

/** One of the two databases: its lines, and the payments that their reads choose among. */
interface Side {
  bench: Bench;
  pool: Pool;
  lines: Line[];
}

async function sideOf(forge: RequestForge, rows: number): Promise<Side> {
  const pool = await poolOf(forge.bench, rows);
  return { bench: forge.bench, pool, lines: prepareFilledLines(forge, pool) };
}

async function measureOnce({ bench, pool }: Side, line: Line): Promise<Run | null> {
  const [connections] = line.connections;
  await readPool(bench, pool);
  return await measureServer(bench, line.name, connections!, await line.plan(), line.each);
}

async function poolOf(bench: Bench, rows: number): Promise<Pool> {
  const step = Math.max(1, Math.floor(rows / POOL_ITEMS));
  const keys = await bench.sql.unsafe<{ key: string }[]>(
    `select ${COPY_KEY} as key from generate_series(1, $1::int, $2::int) n`,
    [rows, step],
  );
  return { ids: await readIds(bench, POOL_ITEMS), keys: keys.map(({ key }) => key) };
}

/** Brings into memory what reads and replays choose among: they measure the server, not the disk. */
async function readPool({ sql }: Bench, { ids, keys }: Pool): Promise<void> {
  await sql`
    select sum(length(body)) from pay.payments
    where environment_id = ${ENVIRONMENT_ID} and id = any (${ids})`;
  await sql`
    select sum(length(k.body)) from pay.api_keys a
    join pay.idempotency_keys k on k.environment_id = a.environment_id and k.api_key_id = a.id
    where a.environment_id = ${ENVIRONMENT_ID} and k.key = any (${keys})`;
}

/** What the disk costs: a get of what nobody has read since it was written, and the same once more. */
async function timeGets({ bench, pool: { ids } }: Side, rows: number): Promise<Figure[]> {
  const step = Math.max(1, Math.floor(ids.length / SINGLE_GETS));
  const chosen = ids.filter((_, i) => i % step === 0);
  const time = async (name: string): Promise<Figure> => {
    const values: number[] = [];
    for (const id of chosen) {
      const began = performance.now();
      await ask(bench.product, { method: "GET", path: `/v1/payments/${id}` });
      values.push(performance.now() - began);
    }
    return { name: `${name} at ${rows}`, unit: "ms", values };
  };
  return [await time("one get, the first of its payment"), await time("one get, the second")];
}

/** How much room a payment takes, with all that belongs to it. */
async function readSizes(sql: Sql, rows: number): Promise<Figure[]> {
  const tables = await sql<{ name: string; heap: string; indexes: string }[]>`
    select relname as name, pg_table_size(oid) as heap, pg_indexes_size(oid) as indexes
    from pg_class where relnamespace = 'pay'::regnamespace and relkind = 'r'
      and pg_table_size(oid) > ${rows}
    order by pg_total_relation_size(oid) desc`;
  return tables.flatMap(({ name, heap, indexes }) => [
    { name: `${name}, rows`, unit: "bytes per payment", values: [Number(heap) / rows] },
    { name: `${name}, indexes`, unit: "bytes per payment", values: [Number(indexes) / rows] },
  ]);
}

/** What is done now and then: a balance, and retention that finds nothing to do. */
async function timeUpkeep({ product, sql }: Bench, rows: number): Promise<Figure[]> {
  const time = async (work: () => Promise<unknown>): Promise<number[]> => {
    const values: number[] = [];
    for (let i = 0; i < 3; i++) {
      const began = performance.now();
      await work();
      values.push(performance.now() - began);
    }
    return values;
  };
  const balance = await time(() => ask(product, { method: "GET", path: "/v1/balance" }));
  const purge = await time(() => sql`select pay.purge()`);
  return [
    { name: `balance at ${rows}`, unit: "ms", values: balance },
    { name: `retention with nothing due at ${rows}`, unit: "ms", values: purge },
  ];
}
