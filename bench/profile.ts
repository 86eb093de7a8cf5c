/**
 * `deno task bench --profile`: where the time of a create, a get and a page goes at 64 connections. By
 * process from /proc, inside the server from V8's sampling profiler, inside PostgreSQL from
 * pg_stat_statements, which also sees the statements inside of functions.
 */

import postgres, { type Sql } from "postgres";
import { NO_ROWS } from "./books.ts";
import { CONNECTIONS, CREATE_ROWS, createPlan, getPlan, listPlan, RequestForge } from "./line.ts";
import { startLoadProcess } from "./load_process.ts";
import { startLoopbackServer } from "./loopback_server.ts";
import { type Bench, measureServer } from "./measure.ts";
import { readDurability, startProduct } from "./product.ts";
import { readIds, variant } from "./server_pairs.ts";
import { topCosts } from "./v8_profile.ts";

/** Costs that are told of each side. */
const TOP = 12;
/** Characters of a statement. */
const STATEMENT_LENGTH = 90;

/** Prints the profiles; false when a run did not count. */
export async function printProfile(
  seconds: number,
  atEnd: (step: () => Promise<unknown>) => void,
): Promise<boolean> {
  const product = await startWithStatements(atEnd);
  const sql = postgres(product.superuser_url, { max: 1, onnotice: () => {} });
  atEnd(() => sql.end());
  await sql`create extension if not exists pg_stat_statements`;
  const load = startLoadProcess();
  atEnd(() => load.stop());
  const bench: Bench = { product, load, sql, seconds, discarded: [] };
  const server = await startLoopbackServer(...variant(bench, "profiled"));
  atEnd(() => server.stop());
  const forge = new RequestForge(bench);
  await forge.makeIds(forge.creates, CREATE_ROWS);
  await sql`analyze`;
  console.log(JSON.stringify(await readDurability(sql)));
  const ids = await readIds(bench, 1000);
  const lines = [
    ["create", createPlan(forge), CREATE_ROWS],
    ["get", getPlan(forge, ids), NO_ROWS],
    ["list of 10", listPlan(forge, null), NO_ROWS],
    ["list of 10 after a cursor", listPlan(forge, ids[ids.length >> 1]!), NO_ROWS],
  ] as const;
  for (const [name, plan, each] of lines) {
    // Once before, so that code is compiled and statements are planned.
    await measureServer(bench, name, CONNECTIONS, plan, each, server);
    await sql`select pg_stat_statements_reset()`;
    await post(server.port, "start");
    const run = await measureServer(bench, name, CONNECTIONS, plan, each, server);
    const { profile } = await (await post(server.port, "stop")).json();
    if (run === null) continue;
    const { cpu, answered } = run;
    console.log(`\n## ${name}: ${run.per_second.toFixed(0)}/s`);
    if (cpu !== null) {
      const micros = (used: number) => `${(used / answered * 1e6).toFixed(0)} µs`;
      console.log(`CPU each: server ${micros(cpu.server)}, PostgreSQL ${micros(cpu.postgres)}`);
    }
    console.log("\nServer, share of its busy time:");
    for (const { name, share } of topCosts(profile, TOP)) {
      console.log(`${(share * 100).toFixed(1).padStart(5)} %  ${name}`);
    }
    console.log(
      "\nPostgreSQL, µs for each answer; a function's statements are in its own time too:",
    );
    console.log(await readStatements(sql, answered));
  }
  return bench.discarded.length === 0;
}

/** The product on a server that watches its statements: a setting that needs a second start. */
async function startWithStatements(atEnd: (step: () => Promise<unknown>) => void) {
  const first = await startProduct(atEnd);
  const sql = postgres(first.superuser_url, { max: 1, onnotice: () => {} });
  await sql`alter system set shared_preload_libraries = 'pg_stat_statements'`;
  await sql.unsafe(`alter system set "pg_stat_statements.track" = 'all'`);
  await sql.end();
  await first.stop();
  return await startProduct(atEnd, first.data_dir);
}

async function readStatements(sql: Sql, answered: number): Promise<string> {
  const rows = await sql<{ us: number; calls: number; query: string }[]>`
    select total_exec_time * 1000 / ${answered}::float8 as us, calls::float8 as calls, query
    from pg_stat_statements
    where query not like '%pg_stat_statements%' and query not like '%set local%'
      and query not like '%with%floors as%'
    order by total_exec_time desc limit ${TOP}`;
  return rows.map(({ us, calls, query }) => {
    const text = query.replaceAll(/--.*$/gm, "").replaceAll(/\s+/g, " ").slice(0, STATEMENT_LENGTH);
    return `${us.toFixed(1).padStart(7)}  in ${(answered / calls).toFixed(1)} answers one: ${text}`;
  }).join("\n");
}

function post(port: number, action: "start" | "stop"): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}/profile/${action}`, { method: "POST" });
}
