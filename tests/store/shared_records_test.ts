/** Results of providers share statements, and a result that is refused delays no other. */

import assert from "node:assert/strict";
import postgres from "postgres";
import { openDatabase } from "../../shared/store/database.ts";
import { ProviderStore } from "../../shared/store/provider_store.ts";
import {
  addAccount,
  completion,
  reserve,
  type Reserved,
} from "../support/database/provider_flow.ts";
import { startService } from "../support/service/service.ts";

const RECORDS = 40;

Deno.test("results that arrive together share statements", async (t) => {
  const service = await startService();
  const functions = postgres(service.database.functions_url, { max: 1, onnotice: () => {} });
  const statements: string[] = [];
  const database = openDatabase({
    url: service.database.functions_url,
    on_statement: (text) => statements.push(text),
  });
  const store = new ProviderStore(database);
  const reserveAll = async () => {
    const made: Reserved[] = [];
    for (let i = 0; i < RECORDS; i++) made.push(await reserve(functions, service.live));
    return made;
  };
  try {
    await addAccount(service.sql, service.live.environment_id);

    await t.step("all are recorded in fewer statements", async () => {
      const made = await reserveAll();
      const outcomes = await Promise.all(made.map((one) => store.record([completion(one)])));
      assert.deepEqual([...new Set(outcomes.flat().map(({ outcome }) => outcome))], ["recorded"]);
      assert.ok(statements.length < RECORDS / 2, `${statements.length} statements`);
    });

    await t.step("a refused result fails alone", async () => {
      const made = await reserveAll();
      const settled = await Promise.allSettled(made.map((one, i) => {
        const record = completion(one);
        const bad = {
          ...record,
          provider_events: [{ ...record.provider_events[0]!, outcome: "wrong" as "ignored" }],
        };
        return store.record([i === 7 ? bad : record]);
      }));
      assert.deepEqual(
        settled.flatMap(({ status }, i) => status === "rejected" ? [i] : []),
        [7],
      );
    });
  } finally {
    await database.close();
    await functions.end();
    await service.close();
  }
});
