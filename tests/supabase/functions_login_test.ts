/**
 * The login of docs/operations/deploy.md for the functions has the rights that they need and no others,
 * and the server ends statements that outlive the functions, also behind a pooler.
 */

import assert from "node:assert/strict";
import postgres from "postgres";
import { migrate } from "../../apps/server/migrations/migrate.ts";
import { randomPassword } from "../../apps/server/data_dir/private_file.ts";
import { PUBLISHED_TEST_KEY } from "../../shared/core/api_key.ts";
import { keyedCall } from "../support/service/keyed_call.ts";
import { PAYMENTS } from "../support/service/service_case.ts";
import { startFunctions } from "../support/supabase/function_process.ts";
import { findPgbouncer, startPgbouncer } from "../support/supabase/pgbouncer.ts";
import { startSupabaseServer } from "../support/supabase/supabase_server.ts";
import { block } from "../support/documents/operations_document.ts";

const SEED = new URL("../../supabase/seed.sql", import.meta.url);
const has_pooler = await findPgbouncer() !== null;
if (!has_pooler) {
  console.warn("pgbouncer is not installed; a login's test is skipped unless CI is set");
}

Deno.test({
  name: "docs/operations/deploy.md makes a login for the functions",
  ignore: !has_pooler && Deno.env.get("CI") === undefined,
  async fn(t) {
    await using open = new AsyncDisposableStack();
    const server = await startSupabaseServer(17);
    open.defer(() => server.close());
    const role = { name: "pay_functions", password: randomPassword() };
    const operator = postgres(server.url, { max: 1, onnotice: () => {} });
    open.defer(() => operator.end());
    await migrate(server.url);
    const statements = await block("A login of its own for the functions", "sql");
    await operator.unsafe(statements.replace("<password>", role.password)).simple();
    await operator.unsafe(await Deno.readTextFile(SEED)).simple();
    const pooler = await startPgbouncer(server.port, role);
    open.defer(() => pooler.close());
    const url = (port: number) =>
      `postgres://${role.name}:${role.password}@127.0.0.1:${port}/postgres`;
    for (const [way, port] of [["straight", server.port], ["pooled", pooler.port]] as const) {
      await t.step(
        `${way}: the server ends statements that outlive the functions' timeout`,
        async () => {
          const sql = postgres(url(port), { max: 1, prepare: false, onnotice: () => {} });
          const [row] = await sql`show statement_timeout`;
          assert.equal(row!.statement_timeout, "5s");
          await assert.rejects(sql`select pg_sleep(20)`, { code: "57014" });
          await assert.rejects(sql`select * from pay.payments`, { code: "42501" });
          await assert.rejects(sql`select pay.list_api_keys()`, { code: "42501" });
          await sql.end();
        },
      );
      await t.step(`${way}: the function creates a payment`, async () => {
        const process = await startFunctions(["api-v1-payments"], {
          PAYMENTS_DB_URL: url(port),
          PUBLIC_BASE_URL: "http://127.0.0.1/functions/v1",
          ...(way === "pooled" && { DB_PREPARE: "false" }),
        });
        const options = { key: PUBLISHED_TEST_KEY, body: { amount: 1, currency: "EUR" } };
        const { status, text } = await keyedCall(process.origin, "POST", PAYMENTS, options);
        assert.equal(status, 201, text);
        await process.close();
      });
    }
  },
});
