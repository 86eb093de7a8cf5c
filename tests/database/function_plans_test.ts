/**
 * The options of functions that the plans of their statements depend on, from the catalogue.
 * tests/support/testing/on_postgres_15.ts checks a whole run for compiled statements.
 */

import assert from "node:assert/strict";
import postgres from "postgres";
import { cloneDatabase } from "../support/database/database.ts";
import { afterwards } from "../support/database/invariant_breaches.ts";

/** Catalogue queries that must find nothing, each with a change that it must find. */
const NOTHING: [what: string, query: string, violation: string][] = [
  [
    // A statement inside takes the setting of the function that was called.
    "an entry function whose statements PostgreSQL can compile",
    `select proname from pg_proc p where pronamespace = 'pay'::regnamespace
     and (has_function_privilege('pay_api', p.oid, 'execute')
       or has_function_privilege('pay_operator', p.oid, 'execute'))
     and not coalesce('jit=off' = any (proconfig), false)`,
    "alter function pay.load reset jit",
  ],
  [
    "a function of the service without settings for its plans",
    `select proname from pg_proc p where pronamespace = 'pay'::regnamespace
     and has_function_privilege('pay_api', p.oid, 'execute')
     and (not coalesce(proconfig::text ~ 'enable_seqscan=', false)
       or not coalesce(proconfig::text ~ 'plan_cache_mode=', false))`,
    "alter function pay.load reset enable_seqscan",
  ],
  [
    "a function for which the planner assumes its default of 1 000 rows",
    `select proname from pg_proc
     where pronamespace in ('pay'::regnamespace, 'pay_internal'::regnamespace) and proretset
     and prorows = 1000`,
    "alter function pay.read_outbox rows 1000",
  ],
];

Deno.test("functions in the schema pay", async (t) => {
  const database = await cloneDatabase();
  const sql = postgres(database.url, { max: 1, onnotice: () => {} });
  try {
    for (const [what, query, violation] of NOTHING) {
      await t.step(`the catalogue has no violation: ${what}`, async () => {
        assert.deepEqual([...await sql.unsafe(query)], []);
        const found = await afterwards(sql, violation, (session) => session.unsafe(query));
        assert.ok(found.length > 0, violation);
      });
    }
    await t.step("pay.health costs less than PostgreSQL compiles", async () => {
      const [row] = await sql`explain (format json) select * from pay.health`;
      const cost = row!["QUERY PLAN"][0].Plan["Total Cost"];
      // The default of jit_above_cost.
      assert.ok(cost < 100_000, `cost ${cost}`);
    });
  } finally {
    await sql.end();
    await database.drop();
  }
});
