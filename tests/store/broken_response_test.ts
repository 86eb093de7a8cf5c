/**
 * A connection to the database breaks within a response, after its row and before its end. Only
 * that request fails, and the next responses are complete.
 */

import assert from "node:assert/strict";
import { openDatabase } from "../../shared/store/database.ts";
import { cloneDatabase } from "../support/database/database.ts";

/** The bytes after the last row: CommandComplete of `select 1` and ReadyForQuery. */
const END_BYTES = 14 + 6;
const QUERY = "select n::int as n from generate_series(1, $1::int) n";

Deno.test("query() leaves no row of a broken response in the next one", async (t) => {
  const clone = await cloneDatabase();
  const url = new URL(clone.url);
  let is_armed = false;
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const open: Deno.Conn[] = [];
  const serving = (async () => {
    for await (const client of listener) {
      const target = await Deno.connect({ hostname: "127.0.0.1", port: Number(url.port) });
      open.push(client, target);
      client.readable.pipeTo(target.writable).catch(() => {});
      const cut = new TransformStream<Uint8Array, Uint8Array>({
        transform(bytes, controller) {
          if (!is_armed) return controller.enqueue(bytes);
          is_armed = false;
          controller.enqueue(bytes.subarray(0, bytes.length - END_BYTES));
          controller.terminate();
        },
      });
      target.readable.pipeThrough(cut).pipeTo(client.writable).catch(() => {});
    }
  })().catch(() => {});
  const through = new URL(url);
  through.port = String(listener.addr.port);
  const database = openDatabase({ url: through.href, max_connections: 1 });
  const ask = (rows: number) => database.query<{ n: number }>(QUERY, [rows]);
  try {
    assert.deepEqual([...await ask(1)], [{ n: 1 }]);
    await t.step("the broken request is service_unavailable", async () => {
      is_armed = true;
      await assert.rejects(ask(1), { code: "service_unavailable" });
      assert.equal(is_armed, false);
    });
    for (const rows of [1, 0, 3]) {
      await t.step(`the next response, of ${rows} rows, is complete`, async () => {
        const response = await ask(rows);
        assert.deepEqual([...response], Array.from({ length: rows }, (_, i) => ({ n: i + 1 })));
      });
    }
  } finally {
    await database.close();
    listener.close();
    await serving;
    for (const connection of open) {
      try {
        connection.close();
      } catch {
        // The stream has already closed this connection.
      }
    }
    await clone.drop();
  }
});
