/**
 * Measures one run and then audits the books. A run with an error, or with other rows than the
 * acknowledged ones, is reported on standard error and does not count.
 */

import postgres, { type Sql } from "postgres";
import { launch } from "../../tests/support/common/process.ts";
import { auditBooks, markBooks, readBooks, type Rows } from "./books.ts";
import { type CpuTime, cpuTimeBetween, type Pids, readCpuTime } from "./cpu_time.ts";
import { type LoadOrder, type LoadResult, PLAIN_ORDER } from "./load_order.ts";
import { runPgbench } from "./pgbench.ts";
import { type Product, startProduct } from "./product.ts";
import type { RecordedStatement } from "./recorded_statement.ts";

/** Registers a step that runs at the end; the last registered step runs first. */
export type AtEnd = (step: () => Promise<unknown>) => void;

/** The running load generator; it carries out one order at a time. */
export interface Load {
  readonly pid: number;
  run(order: LoadOrder): Promise<LoadResult>;
}

/** A product, the load generator, and the settings of every run. */
export interface Bench {
  product: Product;
  load: Load;
  /** The superuser's connection. */
  sql: Sql;
  /** Measured time of a run of the server; pgbench takes whole seconds, at least one. */
  seconds: number;
  /** Runs that did not count. */
  discarded: string[];
}

/** A run that counts. */
export interface Run {
  /** NaN if it was not measured; the same holds for the latencies. */
  per_second: number;
  p50_ms: number;
  p99_ms: number;
  /** CPU seconds, including the warm-up. */
  cpu: CpuTime | null;
  /** Responses in the time of `cpu`. */
  responses: number;
}

/** A server under load: the product, or a peer. */
export interface Responder {
  pid: number;
  port: number;
}

/** The part of an order that differs between runs. */
export type LoadPlan = Pick<LoadOrder, "requests" | "expected_status"> & Partial<LoadOrder>;

/** Longest warm-up: V8 compiles the code, and the servers open connections. */
const MAX_WARMUP_MS = 500;

/** Starts a product and connects to its database as superuser. */
export async function openBench(
  shared: Pick<Bench, "load" | "seconds" | "discarded">,
  atEnd: AtEnd,
): Promise<Bench> {
  const product = await startProduct(atEnd);
  const sql = postgres(product.superuser_url, { max: 1, onnotice: () => {} });
  atEnd(() => sql.end());
  return { ...shared, product, sql };
}

/** Starts a program of this folder that serves on a free port of loopback and prints the port. */
export async function startServer(
  program: string,
  settings: unknown,
  atEnd: AtEnd,
): Promise<Responder> {
  const server = await launch<{ port: number }>(import.meta.resolve(`./${program}`), settings);
  atEnd(() => {
    server.kill();
    return server.ended;
  });
  return { pid: server.pid, port: server.ready.port };
}

/** Starts the load generator. */
export async function startLoad(atEnd: AtEnd): Promise<Load> {
  let response: PromiseWithResolvers<LoadResult> | undefined;
  const program = import.meta.resolve("./load_generator.ts");
  const process = await launch(program, null, (line) => response?.resolve(line as LoadResult));
  process.ended.then(() => response?.reject(new Error("The load generator has ended")));
  atEnd(() => {
    process.kill();
    return process.ended;
  });
  return {
    pid: process.pid,
    async run(order) {
      response = Promise.withResolvers<LoadResult>();
      await process.send(order);
      return await response.promise;
    },
  };
}

/** Puts load on a server for the time of a run, after a warm-up. */
export function putLoad(
  { load, seconds }: Bench,
  port: number,
  connections: number,
  plan: LoadPlan,
): Promise<LoadResult> {
  const duration_ms = seconds * 1000;
  const warmup_ms = Math.min(MAX_WARMUP_MS, duration_ms / 2);
  return load.run({ ...PLAIN_ORDER, port, connections, warmup_ms, duration_ms, ...plan });
}

/** The result of a load as a run. */
function runOf(result: LoadResult, cpu: Run["cpu"]): Run {
  const { measured, elapsed_ms, p50_ms, p99_ms, responses } = result;
  return { per_second: measured / elapsed_ms * 1000, p50_ms, p99_ms, cpu, responses };
}

/**
 * Puts load on a server, then audits the books. Null if the run does not count.
 * @param responder the product by default
 */
export async function measureServer(
  bench: Bench,
  name: string,
  connections: number,
  plan: LoadPlan,
  each: Rows,
  responder: Responder = bench.product,
): Promise<Run | null> {
  const { product, load, sql } = bench;
  const pids: Pids = { load: load.pid, server: responder.pid, postgres: product.postgres_pid };
  const since_ms = await markBooks();
  const cpu_before = await readCpuTime(pids);
  const result = await putLoad(bench, responder.port, connections, plan);
  const cpu = cpuTimeBetween(cpu_before, await readCpuTime(pids));
  const problems = auditBooks(await readBooks(sql, since_ms), result.responses, each);
  if (result.measured === 0) problems.push("no response in the measured time");
  if (!counts(bench, `${name}, ${connections} connections`, [...result.errors, ...problems])) {
    return null;
  }
  return runOf(result, cpu);
}

/** Runs the statements with pgbench, then audits the books. Null if the run does not count. */
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

/** Whether a run counts. Reports its problems and records that it does not count. */
export function counts({ discarded }: Bench, name: string, problems: string[]): boolean {
  if (problems.length === 0) return true;
  const text = `${name}: does not count: ${problems.join("; ")}`;
  console.error(text);
  discarded.push(text);
  return false;
}
