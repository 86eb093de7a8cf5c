/**
 * The functions on Deno 2.1.4 as on Supabase. The edge runtime ends an isolate after its response
 * unless the function passes its background work to EdgeRuntime.waitUntil: the dispatcher's work
 * after a payment and after a wake. The login of docs/operations/deploy.md for the functions has
 * the rights that they need and no others, and the server ends statements that outlive the
 * functions, also behind a pooler.
 */

import assert from "node:assert/strict";
import postgres from "postgres";
import { randomPassword } from "../../apps/server/data_dir/private_file.ts";
import { migrate } from "../../apps/server/migrations/migrate.ts";
import { PUBLISHED_TEST_KEY } from "../../shared/core/api_key.ts";
import { testWith } from "../support/common/programs.ts";
import { until } from "../support/common/until.ts";
import { makeSandboxKey } from "../support/database/api_keys.ts";
import { cloneDatabase, connect } from "../support/database/database.ts";
import { block } from "../support/documents/operations_document.ts";
import { keyedCall } from "../support/service/keyed_call.ts";
import { MASTER_SECRET, RELAY_TOKEN } from "../support/service/service.ts";
import { PAYMENTS } from "../support/service/service_case.ts";
import { startFunctions } from "../support/supabase/function_process.ts";
import { findPgbouncer, startPgbouncer } from "../support/supabase/pgbouncer.ts";
import { startSupabaseServer } from "../support/supabase/supabase_server.ts";

const NAME = "api-v1-payments";

Deno.test("EdgeRuntime.waitUntil gets the dispatcher's background work", async (t) => {
  await using database = await cloneDatabase();
  const key = await makeSandboxKey(database.url);
  await using process = await startFunctions([NAME], {
    PAYMENTS_DB_URL: database.functions_url,
    PUBLIC_BASE_URL: "https://api.example.com/functions/v1",
    WEBHOOK_MASTER_SECRET: MASTER_SECRET,
    ALLOW_PRIVATE_WEBHOOKS: "true",
    RELAY_TOKEN,
  });
  const post = (path: string, key: string, body?: unknown) =>
    keyedCall(process.origin, "POST", `/${NAME}${path}`, { key, body });
  /** The number of promises that `work` passes on. Waits for the first one. */
  const handedOver = async (work: () => Promise<void>) => {
    const before = process.handedOver();
    await work();
    await until("a promise is passed on", () => process.handedOver() > before);
    return process.handedOver() - before;
  };
  const endpoint = { url: "http://127.0.0.1:40999/hook", events: ["*"] };
  const { status, text } = await post("/v1/webhook_endpoints", key, endpoint);
  assert.equal(status, 201, text);
  await t.step("after a payment with an endpoint", async () => {
    const count = await handedOver(async () => {
      const body = { amount: 100, currency: "EUR", outcome: "success" };
      assert.equal((await post("/v1/payments", key, body)).status, 201);
    });
    assert.ok(count > 0);
  });
  await t.step("after POST /internal/relay", async () => {
    const count = await handedOver(async () => {
      assert.equal((await post("/internal/relay", RELAY_TOKEN)).status, 202);
    });
    assert.ok(count > 0);
  });
  assert.deepEqual(process.complaints, []);
});

const SEED = new URL("../../supabase/seed.sql", import.meta.url);

testWith(
  "pgbouncer",
  await findPgbouncer() !== null,
  "docs/operations/deploy.md makes a login for the functions",
  async (t) => {
    await using server = await startSupabaseServer(17);
    const role = { name: "pay_functions", password: randomPassword() };
    await using operator = connect(server.url);
    await migrate(server.url);
    const statements = await block("A login of its own for the functions", "sql");
    await operator.unsafe(statements.replace("<password>", role.password)).simple();
    await operator.unsafe(await Deno.readTextFile(SEED)).simple();
    await using pooler = await startPgbouncer(server.port, role);
    const url = (port: number) =>
      `postgres://${role.name}:${role.password}@127.0.0.1:${port}/postgres`;
    for (const [way, port] of [["straight", server.port], ["pooled", pooler.port]] as const) {
      await t.step(`${way}: the server ends statements that outlive the functions`, async () => {
        const sql = postgres(url(port), { max: 1, prepare: false, onnotice: () => {} });
        const [row] = await sql`show statement_timeout`;
        assert.equal(row!.statement_timeout, "5s");
        await assert.rejects(sql`select pg_sleep(20)`, { code: "57014" });
        await assert.rejects(sql`select * from pay.payments`, { code: "42501" });
        await assert.rejects(sql`select pay.list_api_keys()`, { code: "42501" });
        await sql.end();
      });
      await t.step(`${way}: the function creates a payment`, async () => {
        await using process = await startFunctions(["api-v1-payments"], {
          PAYMENTS_DB_URL: url(port),
          PUBLIC_BASE_URL: "http://127.0.0.1/functions/v1",
          ...(way === "pooled" && { DB_PREPARE: "false" }),
        });
        const options = { key: PUBLISHED_TEST_KEY, body: { amount: 1, currency: "EUR" } };
        const { status, text } = await keyedCall(process.origin, "POST", PAYMENTS, options);
        assert.equal(status, 201, text);
      });
    }
  },
);
