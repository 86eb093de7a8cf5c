/**
 * One measured run and the look into the books that follows it. A run with an error, or with books
 * that do not show exactly what was acknowledged, is told on standard error and does not count.
 */

import postgres, { type Sql } from "postgres";
import { auditBooks, markBooks, readBooks, type Rows } from "./books.ts";
import { type CpuTime, cpuTimeBetween, type Pids, readCpuTime } from "./cpu_time.ts";
import type { LoadOrder, LoadResult } from "./load_order.ts";
import type { LoadProcess } from "./load_process.ts";
import { runPgbench } from "./pgbench.ts";
import { type Product, startProduct } from "./product.ts";
import type { RecordedStatement } from "./recorded_statement.ts";

/** What runs need. */
export interface Bench {
  product: Product;
  load: LoadProcess;
  /** Superuser's connection. */
  sql: Sql;
  /** Measured time of a run of the server; pgbench takes whole seconds, at least one. */
  seconds: number;
  /** Runs that did not count. */
  discarded: string[];
}

/** A run that counts. */
export interface Run {
  /** NaN, and the latencies too, where it is none that was measured. */
  per_second: number;
  p50_ms: number;
  p99_ms: number;
  /** CPU seconds, warm-up included. */
  cpu: CpuTime | null;
  /** Answers in the time of `cpu`. */
  answered: number;
}

/** A run of the server under the load generator. */
export interface ServerRun extends Run {
  result: LoadResult;
}

/** Who answers: the product, or a server that it is compared with. */
export interface Answerer {
  pid: number;
  port: number;
}

/** What a run of the server is: an order without what all runs share. */
export type LoadPlan = Pick<LoadOrder, "requests" | "expected_status"> & Partial<LoadOrder>;

/** Longest time before measuring: code is compiled, connections are opened. */
const MAX_WARMUP_MS = 500;

/** Starts a product and connects to its database; `atEnd` takes the steps that end both. */
export async function openBench(
  shared: Pick<Bench, "load" | "seconds" | "discarded">,
  atEnd: (step: () => Promise<unknown>) => void,
): Promise<Bench> {
  const product = await startProduct(atEnd);
  const sql = postgres(product.superuser_url, { max: 1, onnotice: () => {} });
  atEnd(() => sql.end());
  return { ...shared, product, sql };
}

/**
 * Puts load on the server, then audits. Null when the run does not count.
 * @param answerer the product unless another is named
 */
export async function measureServer(
  bench: Bench,
  name: string,
  connections: number,
  plan: LoadPlan,
  each: Rows,
  answerer: Answerer = bench.product,
): Promise<ServerRun | null> {
  const { product, load, sql } = bench;
  const duration_ms = bench.seconds * 1000;
  const pids: Pids = { load: load.pid, server: answerer.pid, postgres: product.postgres_pid };
  const since_ms = await markBooks();
  const cpu_before = await readCpuTime(pids);
  const result = await load.run({
    port: answerer.port,
    connections,
    rate_per_s: null,
    requests_max: null,
    warmup_ms: Math.min(MAX_WARMUP_MS, duration_ms / 2),
    duration_ms,
    ids: [],
    keys: [],
    ids_once: false,
    expected_head: null,
    collect: false,
    ...plan,
  });
  const cpu = cpuTimeBetween(cpu_before, await readCpuTime(pids));
  const problems = auditBooks(await readBooks(sql, since_ms), result.answered, each);
  if (result.measured === 0) problems.push("no answer in the measured time");
  if (!counts(bench, `${name}, ${connections} connections`, [...result.errors, ...problems])) {
    return null;
  }
  const { measured, elapsed_ms, p50_ms, p99_ms, answered } = result;
  return { per_second: measured / elapsed_ms * 1000, p50_ms, p99_ms, cpu, answered, result };
}

/** Puts the same statements on PostgreSQL alone, then audits. Null when the run does not count. */
export async function measureFloor(
  bench: Bench,
  name: string,
  clients: number,
  statements: readonly RecordedStatement[],
  each: Rows,
): Promise<number | null> {
  const { product, sql } = bench;
  const since_ms = await markBooks();
  const run = await runPgbench({
    url: product.superuser_url,
    clients,
    seconds: Math.max(1, Math.round(bench.seconds)),
    statements,
  });
  const problems = auditBooks(await readBooks(sql, since_ms), run.transactions, each);
  if (run.error !== null) problems.unshift(run.error);
  if (!(run.per_second > 0)) problems.unshift("no rate");
  return counts(bench, `pgbench ${name}, ${clients} clients`, problems) ? run.per_second : null;
}

/** Tells of the problems of a run, if there are any, and notes that it does not count. */
export function counts(bench: Bench, name: string, problems: string[]): boolean {
  if (problems.length === 0) return true;
  const text = `${name}: does not count: ${problems.join("; ")}`;
  console.error(text);
  bench.discarded.push(text);
  return false;
}
