/** Calls of entry functions with one request each: tenants take turns. */

import assert from "node:assert/strict";
import type postgres from "postgres";
import { accessWith, openPool } from "../support/database/store_access.ts";
import type { FairQueueBounds } from "../../shared/jobs/fair_queue.ts";
import { EntryCalls } from "../../shared/store/entry_calls.ts";
import { Retries } from "../../shared/jobs/retries.ts";
import { cloneDatabase, connect } from "../support/database/database.ts";

const ECHO = "select 'ok' as outcome, $1::text as body";

const access = (key_hash: string) => accessWith({ key_hash });

/**
 * Registers a test with calls over a real database. Keys of two letters are known: "a1" belongs to
 * the account "a".
 */
function callsCase(
  name: string,
  bounds: FairQueueBounds,
  run: (calls: EntryCalls, statements: string[], holder: postgres.Sql) => Promise<void>,
): void {
  Deno.test(name, async () => {
    await using clone = await cloneDatabase();
    const statements: string[] = [];
    await using database = openPool({
      url: clone.functions_url,
      on_statement: (text) => statements.push(text),
    });
    await using holder = connect(clone.url);
    const calls = new EntryCalls(database, bounds);
    for (const tenant of "abc") {
      for (const n of "12345") {
        calls.tenants.learn(tenant + n, { account: tenant, livemode: false });
      }
    }
    await run(calls, statements, holder);
  });
}

callsCase(
  "ask() leaves room for others during slow calls of a tenant",
  { slots: 3, levels: [2] },
  async (calls, _statements, holder) => {
    await holder`select pg_advisory_lock(1)`;
    const slow = "select 'ok' as outcome, pg_advisory_xact_lock(1)::text as body";
    const busy = ["a1", "a2", "a3", "a4"].map((key) => calls.ask(access(key), slow, []));
    for (const key of ["b1", "c1", "b2"]) {
      assert.equal((await calls.ask(access(key), ECHO, [key])).body, key);
    }
    await holder`select pg_advisory_unlock(1)`;
    await Promise.all(busy);
    const failing = calls.ask(access("a1"), "select 1 / 0", []);
    await assert.rejects(failing);
    // A failed call frees its slot.
    await Promise.all(["a1", "a2", "a3"].map((key) => calls.ask(access(key), ECHO, [key])));
  },
);

callsCase(
  "ask() gives keys that are not known the turns of one tenant",
  { slots: 3, levels: [2] },
  async (calls, _statements, holder) => {
    await holder`select pg_advisory_lock(1)`;
    const slow = "select 'ok' as outcome, pg_advisory_xact_lock(1)::text as body";
    const busy = ["u1", "v1", "w1", "x1"].map((key) => calls.ask(access(key), slow, []));
    assert.equal((await calls.ask(access("b1"), ECHO, ["b1"])).body, "b1");
    await holder`select pg_advisory_unlock(1)`;
    await Promise.all(busy);
  },
);

callsCase(
  "authenticate() checks 66 keys in three statements, and learns no tenant of a refused one",
  { slots: 1, levels: [1] },
  async (calls, statements) => {
    const keys = Array.from({ length: 66 }, (_, i) => i.toString(16).padStart(64, "0"));
    const checks = await Promise.allSettled(keys.map((key) => calls.authenticate(access(key))));
    for (const check of checks) {
      assert.equal((check as PromiseRejectedResult).reason.code, "unauthorized");
    }
    assert.equal(statements.length, 3);
    assert.equal(calls.tenants.of(keys[0]!), undefined);
  },
);

callsCase(
  "ask() retries within the one budget of its request, whatever the cause",
  { slots: 1, levels: [1] },
  async (calls, statements) => {
    const cases: [cause: string, bounds: [retries: number, within_ms: number], sent: number][] = [
      ["resetting", [3, 60_000], 4],
      ["expired", [3, 60_000], 4],
      ["resetting", [100, 0], 1],
    ];
    for (const [cause, [retries, within_ms], sent] of cases) {
      const requested = { ...access("a1"), retries: new Retries({ retries, within_ms }) };
      const refusal = { code: "service_unavailable", headers: { "Retry-After": "1" } };
      const ask = () => calls.ask(requested, `select '${cause}' as outcome`, []);
      statements.length = 0;
      await assert.rejects(ask(), refusal);
      assert.equal(statements.length, sent, cause);
      // Nothing is left for any other cause.
      await assert.rejects(ask(), refusal);
      await assert.rejects(requested.retries.untilDecided(() => Promise.resolve(null)), refusal);
      assert.equal(statements.length, sent + 1, cause);
    }
  },
);
