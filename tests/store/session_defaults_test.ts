/** Defaults of a database that sessions take over. Our statements and the driver need others. */

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
