/**
 * `supabase db push` with the real CLI, to servers that are set up like Supabase's. It applies
 * every migration as a role that is not a superuser, and no role of the Data API can see the
 * result. On PostgreSQL 17 it applies nothing the second time, the advisors have no warning, and
 * the seed makes the demo account.
 */

import assert from "node:assert/strict";
import type postgres from "postgres";
import { testWith } from "../support/common/programs.ts";
import { describeSchema } from "../support/database/schema_description.ts";
import { migrate } from "../../apps/server/migrations/migrate.ts";
import { block } from "../support/documents/operations_document.ts";
import { PUBLISHED_TEST_KEY } from "../../shared/core/api_key.ts";
import { keyedCall } from "../support/service/keyed_call.ts";
import { PAYMENTS } from "../support/service/service_case.ts";
import { DEMO_ACCOUNT, DEMO_ENVIRONMENTS } from "../../apps/operator/demo_account.ts";
import { startFunctions } from "../support/supabase/function_process.ts";
import { cloneDatabase, connect } from "../support/database/database.ts";
import { copyProject } from "../support/supabase/supabase_cli.ts";
import { hasVersion, startSupabaseServer, VERSIONS } from "../support/supabase/supabase_server.ts";

/** The roles of PostgREST's requests, and its login role. */
const DATA_API_ROLES = ["anon", "authenticated", "service_role", "authenticator"];

for (const version of VERSIONS) {
  testWith(
    `PostgreSQL ${version}`,
    await hasVersion(version),
    `supabase db push to PostgreSQL ${version}`,
    (t) => pushOnto(t, version),
  );
}

async function pushOnto(t: Deno.TestContext, version: 15 | 17) {
  // Supabase offers pg_cron and pg_net. The other server shows that the service can do without.
  const offers_extensions = version === 17;
  await using server = await startSupabaseServer(version, {}, { offers_extensions });
  await using project = await copyProject();
  await using sql = connect(server.admin_url);
  const target = `--remote=${server.url}`;
  /** Runs a command that must succeed without a warning. */
  const run = async (...args: string[]) => {
    const said = await project.run(...args, target);
    assert.equal(said.code, 0, said.stderr + said.stdout);
    assert.doesNotMatch(said.stderr + said.stdout, /WARN/);
    return said;
  };
  await t.step("applies every migration as postgres", async () => {
    await run("db", "push", "--yes");
    const files = await Array.fromAsync(Deno.readDir(`${project.path}/supabase/migrations`));
    const rows = await sql`select version from supabase_migrations.schema_migrations`;
    assert.equal(rows.length, files.length);
    const owners = await sql`select distinct r.rolname from pg_class c
      join pg_roles r on r.oid = c.relowner where c.relnamespace = 'pay'::regnamespace`;
    assert.deepEqual(owners.map(({ rolname }) => rolname), ["pay_owner"]);
  });
  await t.step("makes the jobs that step 6 of the deployment checks", async () => {
    if (!offers_extensions) {
      const [row] = await sql`select to_regnamespace('cron') as cron`;
      return assert.equal(row!.cron, null);
    }
    await using as_postgres = connect(server.url);
    const checked = await as_postgres.unsafe(
      await block("Deploying to a Supabase project", "sql", 2),
    );
    assert.deepEqual(
      checked.map(({ jobname }) => jobname),
      ["pay-cron-log", "pay-dispatcher", "pay-invariants", "pay-retention", "pay-search"],
    );
    for (const { active } of checked) assert.equal(active, true);
  });
  await t.step("leaves nothing to do for migrate()", async () => {
    assert.deepEqual(await migrate(server.url), []);
  });
  await t.step("makes the schema that migrate() makes", async () => {
    await using ours = await cloneDatabase();
    assert.deepEqual(await describeSchema(server.admin_url), await describeSchema(ours.url));
  });
  for (const role of DATA_API_ROLES) {
    await t.step(`lets ${role} see and execute nothing`, () => assertShut(sql, role));
  }
  if (version === 15) return;
  await t.step("does nothing the second time", async () => {
    const before = await describeSchema(server.admin_url);
    const { stdout, stderr } = await run("db", "push", "--yes");
    assert.match(stdout + stderr, /up to date/);
    assert.deepEqual(await describeSchema(server.admin_url), before);
  });
  await t.step("leaves nothing that db advisors warns of", async () => {
    await run("db", "advisors", "--fail-on", "warn", "--level", "warn");
  });
  await t.step("leaves no table of the service to gen types", async () => {
    const ours = await run("gen", "types", "--schema", "pay");
    assert.match(ours.stdout, /"configure_relay":/);
    assert.match(ours.stdout, /Tables: \{\s*\[_ in never\]: never/);
    const exposed = await run("gen", "types", "--schema", "public");
    assert.doesNotMatch(exposed.stdout, /payments|api_keys/);
  });
  await t.step("applies seed.sql, which makes the demo account once", async () => {
    for (let i = 0; i < 2; i++) await run("db", "push", "--yes", "--include-seed");
    // The CLI may skip a seed that it has run. Run by hand, the seed changes nothing either.
    const seed = await Deno.readTextFile(`${project.path}/supabase/seed.sql`);
    await using as_postgres = connect(server.url);
    await as_postgres.unsafe(seed).simple();
    const environments = await sql`
      select id, account, livemode, name from pay.environments order by id`;
    assert.deepEqual([...environments], [
      { ...DEMO_ENVIRONMENTS.test, account: DEMO_ACCOUNT, livemode: false },
      { ...DEMO_ENVIRONMENTS.live, account: DEMO_ACCOUNT, livemode: true },
    ]);
    assert.equal((await sql`select from pay.api_keys`).length, 1);
  });
  for (const [base_url, status] of [["http://127.0.0.1", 201], ["https://x.co", 401]] as const) {
    await t.step(`leaves a demo key that gets ${status} from ${base_url}`, async () => {
      const process = await startFunctions(["api-v1-payments"], {
        SUPABASE_DB_URL: server.url,
        PUBLIC_BASE_URL: `${base_url}/functions/v1`,
      });
      try {
        const options = { key: PUBLISHED_TEST_KEY, body: { amount: 1, currency: "EUR" } };
        const paid = await keyedCall(process.origin, "POST", PAYMENTS, options);
        assert.equal(paid.status, status, paid.text);
      } finally {
        await process.close();
      }
    });
  }
}

/** Asserts it by the catalogue, and by attempts as the role. */
async function assertShut(sql: postgres.Sql, role: string) {
  const [{ usage }] =
    await sql`select has_schema_privilege(${role}, 'pay', 'usage') as usage` as unknown as [
      { usage: boolean },
    ];
  assert.equal(usage, false);
  const seen = await sql`
    select relname as name from pg_class c
    where relnamespace = 'pay'::regnamespace and relkind in ('r', 'v', 'S')
      and (has_table_privilege(${role}, c.oid, 'select, insert, update, delete')
        or has_any_column_privilege(${role}, c.oid, 'select, insert, update'))
    union all
    select proname from pg_proc p
    where pronamespace in ('pay'::regnamespace, 'pay_internal'::regnamespace)
      and has_function_privilege(${role}, p.oid, 'execute')
    union all
    select rolname from pg_roles r where rolname like 'pay\\_%'
      and pg_has_role(${role}, r.oid, 'member')`;
  assert.deepEqual([...seen], []);
  const tries = ["select * from pay.payments", "select pay.list_api_keys()", "set role pay_api"];
  for (const statement of tries) {
    const attempt = sql.begin(async (transaction) => {
      await transaction.unsafe(`set local session authorization ${role}`);
      await transaction.unsafe(statement);
    });
    await assert.rejects(attempt, { code: "42501" }, statement);
  }
}
