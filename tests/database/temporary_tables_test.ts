/** A caller's temporary tables never replace the tables of `pay` (security design §1, fact 3). */

import assert from "node:assert/strict";
import postgres from "postgres";
import { startTenants } from "../support/service/tenants.ts";

Deno.test("entry functions ignore a temporary table with the name of a table in pay", async (t) => {
  const { service, tables } = await startTenants();
  const functions = postgres(service.database.functions_url, { max: 1, onnotice: () => {} });
  const statements: string[] = [];
  try {
    for (const table of tables) {
      const columns = await service.sql<{ line: string }[]>`
        select format('%I %s', attname, format_type(atttypid, atttypmod)) as line
        from pg_attribute where attrelid = ${`pay.${table}`}::regclass and attnum > 0`;
      statements.push(`create temp table ${table} (${columns.map(({ line }) => line).join(", ")})`);
    }
    for (const statement of statements) await functions.unsafe(statement);
    const forged = "ab".repeat(32);
    await functions`insert into pg_temp.api_key_secrets (hash, api_key_id, environment_id)
      values (decode(${forged}, 'hex'), ${service.key.id}, ${service.key.environment_id})`;
    await functions`insert into pg_temp.api_keys (id, environment_id)
      values (${service.key.id}, ${service.key.environment_id})`;
    const request =
      "json_build_array(json_build_object('n', 1, 'key_hash', $1::text, 'at', now()))::text";
    const calls: [name: string, text: string][] = [
      ["load", `select outcome from pay.load(${request})`],
      ["list", `select outcome from pay.list(${request})`],
      ["balance", `select outcome from pay.balance(${request})`],
      ["reset_sandbox", `select outcome from pay.reset_sandbox(${request}, 'env_1')`],
      ["redeliver", `select outcome from pay.redeliver(${request}, 'whd_1', '')`],
      ["commit", `select outcome from pay.commit('{"requests":' || ${request} || '}')`],
    ];
    for (const [name, text] of calls) {
      await t.step(`pay.${name}()`, async () => {
        assert.deepEqual([...await functions.unsafe(text, [forged])], [{
          outcome: "unauthorized",
        }]);
      });
    }
  } finally {
    await functions.end();
    await service.close();
  }
});
