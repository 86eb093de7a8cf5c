/**
 * The backup and restore of docs/operations/backup.md, run as written there, on two servers of
 * Debian's PostgreSQL 15, as `postgres`, which is not a superuser. The target database has
 * migrations of its own and a failed restore before. Every acknowledged row is there afterwards,
 * API keys work, and a retry gets the first response again.
 */

import assert from "node:assert/strict";
import type postgres from "postgres";
import { migrate } from "../../apps/server/migrations/migrate.ts";
import { testWith } from "../support/common/programs.ts";
import { runCommand } from "../support/common/running_command.ts";
import { keyedCall } from "../support/service/keyed_call.ts";
import { openProduct } from "../support/service/product.ts";
import { BASE_URL, MASTER_SECRET } from "../support/service/service.ts";
import { PAYMENTS as PAYMENTS_PATH } from "../support/service/service_case.ts";
import {
  DEBIAN_15,
  hasVersion,
  startSupabaseServer,
  type SupabaseServer,
} from "../support/supabase/supabase_server.ts";
import { shellBlock } from "../support/documents/operations_document.ts";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import { describeSchema } from "../support/database/schema_description.ts";
import { makeSandboxKey } from "../support/database/api_keys.ts";
import { connect } from "../support/database/database.ts";

const REALTIME = new URL("../support/exposure/supabase_realtime.sql", import.meta.url);
const PAYMENTS = 60;
/** The target project has migrations of its own. */
const MIGRATIONS_OF_ITS_OWN = `
  create schema supabase_migrations;
  create table supabase_migrations.schema_migrations (
    version text not null primary key, statements text[], name text
  );
  insert into supabase_migrations.schema_migrations (version, name)
  values ('20200101000000', 'own');`;

testWith(
  DEBIAN_15,
  await hasVersion(15),
  "docs/operations/backup.md backs up and restores the service",
  async () => {
    await using open = new AsyncDisposableStack();
    const folder = await Deno.makeTempDir({ prefix: "payments-backup-" });
    open.defer(() => Deno.remove(folder, { recursive: true }));
    const [old_server, new_server] = await Promise.all(
      [15, 15].map(async () => open.use(await startSupabaseServer(15))),
    ) as [SupabaseServer, SupabaseServer];
    await using before = connect(old_server.admin_url);
    await using after = connect(new_server.admin_url);
    const env = {
      DATABASE_URL: old_server.url,
      NEW_DATABASE_URL: new_server.url,
      BACKUP: `${folder}/payments.dump`,
      PATH: `${DEBIAN_15}:${Deno.env.get("PATH")}`,
    };
    await migrate(old_server.url);
    const key = await makeSandboxKey(old_server.url);
    const first = await responsesOf(old_server.url, key);
    // The schema payments is not in the backup, but what pay.expose makes in our tables is.
    await before.unsafe(await Deno.readTextFile(REALTIME)).simple();
    await exposeOn(old_server.url);
    await runShell(await shellBlock("Backup"), env);
    await using as_postgres = connect(new_server.url);
    await as_postgres.unsafe(MIGRATIONS_OF_ITS_OWN).simple();
    const restore = await shellBlock("Restore");
    const copy = await Deno.readFile(env.BACKUP);
    const schemas = async (sql: postgres.Sql) =>
      (await sql`select from pg_namespace where nspname = 'pay'`).length;
    const broken = `${folder}/broken.dump`;
    const failing = { ...env, BACKUP: broken };
    await Deno.writeFile(broken, copy.subarray(0, copy.length - 1000));
    await assert.rejects(runShell(restore, failing), /pg_restore: error/);
    assert.equal(await schemas(after), 0, "a cut-off copy changes nothing");
    // The compressed rows of the first table.
    const rows = copy.findIndex((byte, index) => byte === 0x78 && copy[index + 1] === 0x9c);
    copy.fill(0, rows, rows + 10);
    await Deno.writeFile(broken, copy);
    await assert.rejects(runShell(restore, failing), /pg_restore: error/);
    assert.equal(await schemas(after), 1);
    await assert.rejects(runShell(restore, env), /schema "pay" already exists/);
    await runShell(await shellBlock("After a restore that failed"), env);
    assert.equal(await schemas(after), 0);
    await runShell(restore, env);

    const own = await after`delete from supabase_migrations.schema_migrations
      where version = '20200101000000' returning name`;
    assert.deepEqual([...own], [{ name: "own" }]);
    const record = (sql: postgres.Sql) =>
      sql`select version, name from supabase_migrations.schema_migrations order by version`;
    assert.deepEqual([...await record(after)], [...await record(before)]);

    const count = async (sql: postgres.Sql) => (await sql`select from pay.payments`).length;
    assert.deepEqual([await count(before), await count(after)], [PAYMENTS, PAYMENTS]);
    assert.deepEqual(await digestOf(after), await digestOf(before));
    assert.deepEqual(
      await describeSchema(new_server.admin_url),
      await describeSchema(old_server.admin_url),
    );
    assert.deepEqual(await migrate(new_server.url), []);
    await assertSilent(after);
    // Every repeated request is a replay.
    assert.deepEqual(await responsesOf(new_server.url, key), first);
    assert.equal(await count(after), PAYMENTS);
    // The trigger is there without its procedure. That fails no payment.
    await after`update pay.payments set customer_id = 'u1'`;
    await exposeOn(new_server.url);
    assert.equal(
      (await after`select from pg_trigger where tgname = 'payments_broadcast'`).length,
      0,
    );
  },
);

/** Shows the sandbox to the users of the project. */
async function exposeOn(url: string): Promise<void> {
  await using sql = connect(url);
  await sql`select pay.expose('one', 'test')`;
}

/** Creates payments, each with its own idempotency key. Returns the responses. */
async function responsesOf(database_url: string, key: string): Promise<string[]> {
  const product = openProduct({
    database_url,
    base_url: BASE_URL,
    webhook_master_secret: MASTER_SECRET,
  });
  try {
    return await Promise.all(Array.from({ length: PAYMENTS }, async (_, i) => {
      const body = {
        amount: 1000 + i,
        currency: ["EUR", "USD", "JPY"][i % 3],
        outcome: ["success", "refunded", "chargeback"][i % 3],
      };
      const options = { key, body, idempotency_key: `order-${i}` };
      const { status, text } = await keyedCall(product, "POST", PAYMENTS_PATH, options);
      assert.equal(status, 201);
      return text;
    }));
  } finally {
    await product.close();
  }
}

/** A digest of the rows of each table. */
async function digestOf(sql: postgres.Sql): Promise<Record<string, string>> {
  const tables = await sql<{ name: string }[]>`
    select tablename as name from pg_tables where schemaname = 'pay' order by 1`;
  const digests: Record<string, string> = {};
  for (const { name } of tables) {
    const [row] = await sql.unsafe(
      `select count(*) || ' ' || coalesce(md5(string_agg(t::text, E'\\n' order by t::text)), '')
         as digest from pay.${name} t`,
    );
    digests[name] = row!.digest;
  }
  return digests;
}

async function runShell(script: string, env: Record<string, string>): Promise<void> {
  const { code, stderr, output } = await runCommand({ args: ["sh", "-e", "-c", script], env });
  assert.equal(code, 0, output);
  assert.doesNotMatch(stderr, /error|warning/i);
}
