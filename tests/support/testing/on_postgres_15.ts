/**
 * Runs `tools/testing/test.ts` with the same arguments on Debian's PostgreSQL 15, set up like
 * Supabase's. Starts the server for this run. Unlike the embedded server it has a compiler (JIT),
 * which is on by default. The run fails if the server has compiled a statement of the service.
 */

import { fileURLToPath } from "node:url";
import type postgres from "postgres";
import { startSupabaseServer } from "../supabase/supabase_server.ts";
import { connect } from "../database/database.ts";

const SCRIPT = fileURLToPath(new URL("../../../tools/testing/test.ts", import.meta.url));
/** More than the statements of a run, so that the server forgets none of them. */
const MAX_STATEMENTS = 200_000;

await using server = await startSupabaseServer(15, {
  // Values of other servers, on which the service must not depend.
  timezone: "Asia/Kathmandu",
  random_page_cost: "1.1",
  // Test files run in parallel, and each opens several connections.
  max_connections: "300",
  shared_preload_libraries: "pg_stat_statements",
  "pg_stat_statements.track": "all",
  "pg_stat_statements.max": String(MAX_STATEMENTS),
});
await using sql = connect(server.admin_url);
await sql`create extension pg_stat_statements with schema extensions`;
const [{ has_jit }] = await sql<[{ has_jit: boolean }]>`select pg_jit_available() as has_jit`;
if (!has_jit) throw new Error("PostgreSQL 15 cannot compile statements: llvmjit is missing");
const { code } = await new Deno.Command(Deno.execPath(), {
  args: ["run", "-A", SCRIPT, ...Deno.args],
  env: { TEST_DATABASE_URL: server.admin_url },
}).spawn().status;
const compiled = await compiledStatements(sql);
for (const statement of compiled) console.error(`The server compiled: ${statement}`);
Deno.exitCode = code || Number(compiled.length > 0);

/**
 * Returns the statements that the server compiled inside functions of the service, and those that
 * the functions sent. The role of the functions has been dropped with the databases of the run.
 */
async function compiledStatements(sql: postgres.Sql): Promise<string[]> {
  const [{ forgotten }] = await sql<[{ forgotten: string }]>`
    select dealloc as forgotten from extensions.pg_stat_statements_info`;
  if (forgotten !== "0") throw new Error("The server has forgotten statements of this run");
  const rows = await sql<{ query: string }[]>`
    select query from extensions.pg_stat_statements s
    left join pg_roles r on r.oid = s.userid
    where s.jit_functions > 0 and (not s.toplevel or r.oid is null)
    order by query`;
  return rows.map(({ query }) => query);
}
