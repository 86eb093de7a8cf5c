/** Which session runs a statement, and defaults of a database that sessions take over. */

import assert from "node:assert/strict";
import postgres from "postgres";
import { openDatabase } from "../../shared/store/database.ts";
import { cloneDatabase } from "../support/database/database.ts";

Deno.test("query() reads dates in any DateStyle of the database", async () => {
  const clone = await cloneDatabase();
  const database = openDatabase({ url: clone.functions_url });
  try {
    const sql = postgres(clone.url, { max: 1, onnotice: () => {} });
    await sql.unsafe(`alter database "${new URL(clone.url).pathname.slice(1)}"
      set DateStyle = 'SQL, DMY'`);
    await sql.end();
    const rows = await database.query("select $1::timestamptz as at, $2::date::text as day", [
      "2026-08-09T10:00:00.000Z",
      "2026-08-09",
    ]);
    assert.deepEqual([...rows], [{ at: new Date("2026-08-09T10:00:00.000Z"), day: "2026-08-09" }]);
  } finally {
    await database.close();
    await clone.drop();
  }
});

Deno.test("query() uses the session that was used last", async (t) => {
  const { functions_url: url, drop } = await cloneDatabase();
  const database = openDatabase({ url, max_connections: 3 });
  const slow = "select pg_backend_pid() as pid, pg_sleep(0.05)::text";
  const sessionOf = async (text = "select pg_backend_pid() as pid") =>
    (await database.query<{ pid: number }>(text, []))[0]!.pid;
  try {
    const at_once = await Promise.all(Array.from({ length: 7 }, () => sessionOf(slow)));
    await t.step("seven at once share three sessions", () => {
      assert.equal(new Set(at_once).size, 3);
    });
    await t.step("one after another have one", async () => {
      const in_turn = [];
      for (let i = 0; i < 6; i++) in_turn.push(await sessionOf());
      assert.equal(new Set(in_turn).size, 1);
    });
    await t.step("close() waits for what runs and what waits", async () => {
      const last = Promise.all(Array.from({ length: 7 }, () => sessionOf(slow)));
      // Each waits for the health of the database before it joins the queue.
      await sessionOf("select 0 as pid");
      await database.close();
      assert.equal((await last).length, 7);
      await assert.rejects(sessionOf(), { code: "service_unavailable" });
    });
  } finally {
    await database.close();
    await drop();
  }
});
