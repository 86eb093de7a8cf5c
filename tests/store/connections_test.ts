/**
 * Connections to the database: which session runs a statement, defaults of a database that sessions
 * take over, a connection that breaks within a response, and errors of poolers and routers in front
 * of the database. Sources: PgBouncer (src/objects.c, src/client.c), Supavisor
 * (lib/supavisor/client_handler/error.ex, lib/supavisor/error.ex), PgCat (src/messages.rs), SPQR
 * (pkg/models/spqrerror).
 */

import assert from "node:assert/strict";
import type { ApiError } from "../../shared/core/errors.ts";
import { toApiError } from "../../shared/store/database.ts";
import { cloneDatabase, connect } from "../support/database/database.ts";
import { openPool } from "../support/database/store_access.ts";

Deno.test("query() reads dates in any DateStyle of the database", async () => {
  await using clone = await cloneDatabase();
  await using database = openPool({ url: clone.functions_url });
  await using sql = connect(clone.url);
  await sql.unsafe(`alter database "${new URL(clone.url).pathname.slice(1)}"
    set DateStyle = 'SQL, DMY'`);
  const rows = await database.query("select $1::timestamptz as at, $2::date::text as day", [
    "2026-08-09T10:00:00.000Z",
    "2026-08-09",
  ]);
  assert.deepEqual([...rows], [{ at: new Date("2026-08-09T10:00:00.000Z"), day: "2026-08-09" }]);
});

Deno.test("query() uses the session that was used last", async (t) => {
  await using clone = await cloneDatabase();
  await using database = openPool({ url: clone.functions_url, max_connections: 3 });
  const slow = "select pg_backend_pid() as pid, pg_sleep(0.05)::text";
  const sessionOf = async (text = "select pg_backend_pid() as pid") =>
    (await database.query<{ pid: number }>(text, []))[0]!.pid;
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
});

Deno.test("query() leaves no parameter and no row in the driver's object of a statement", async () => {
  await using clone = await cloneDatabase();
  await using database = openPool({ url: clone.functions_url });
  await using sql = connect(clone.url);
  type Statement = { args: unknown[]; parameters: unknown[]; handle(): unknown };
  const { prototype } = sql.unsafe("select 1").constructor as unknown as { prototype: Statement };
  const { handle } = prototype;
  const seen = new Set<Statement>();
  prototype.handle = function () {
    seen.add(this);
    return handle.call(this);
  };
  try {
    const rows = await database.query("select $1::text as kept", ["secret"]);
    assert.deepEqual(rows, [{ kept: "secret" }]);
    await assert.rejects(database.query("select 1 / ($1::int - 1), $2::text", [1, "secret"]));
  } finally {
    prototype.handle = handle;
  }
  const held = [...seen].flatMap(({ args, parameters }) => [...args, ...parameters]);
  assert.deepEqual([seen.size, held], [2, []]);
  const results = await Promise.allSettled(seen);
  assert.deepEqual(results.flatMap((each) => each.status === "fulfilled" ? each.value : []), []);
});

/** The bytes after the last row: CommandComplete of `select 1` and ReadyForQuery. */
const END_BYTES = 14 + 6;
const QUERY = "select n::int as n from generate_series(1, $1::int) n";

Deno.test("query() leaves no row of a broken response in the next one", async (t) => {
  await using clone = await cloneDatabase();
  await using cleanup = new AsyncDisposableStack();
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
  cleanup.defer(async () => {
    listener.close();
    await serving;
    for (const connection of open) {
      try {
        connection.close();
      } catch {
        // The stream has already closed this connection.
      }
    }
  });
  const through = new URL(url);
  through.port = String(listener.addr.port);
  await using database = openPool({ url: through.href, max_connections: 1 });
  const ask = (rows: number) => database.query<{ n: number }>(QUERY, [rows]);
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
});

/** Refusals with their codes and words, and the code of the error. */
const REFUSALS: [pooler: string, code: string, message: string, api_code: string][] = [
  ["PgBouncer", "08P01", "query_wait_timeout", "service_unavailable"],
  ["PgBouncer", "53300", "sorry, too many clients already", "service_unavailable"],
  ["PgBouncer", "57P01", "server shutting down", "service_unavailable"],
  ["PgBouncer", "57P03", "the database system is starting up", "service_unavailable"],
  ["PgBouncer", "3D000", "no such database: postgres", "service_unavailable"],
  ["Supavisor", "XX000", "Tenant or user not found", "service_unavailable"],
  ["PgCat", "58000", "could not get connection from the pool", "service_unavailable"],
  ["SPQR", "SPQRO", "failed to find replica", "service_unavailable"],
  ["SPQR", "SPQRT", "failed to move keys", "service_unavailable"],
  // The router works, and refuses the statement for ever.
  ["SPQR", "SPQRX", "cross-shard query", "not a response"],
  ["SPQR", "SPQRN", "no such relation", "not a response"],
];

for (const [pooler, code, message, api_code] of REFUSALS) {
  Deno.test(`toApiError() of ${pooler}, ${code} "${message}": ${api_code}`, () => {
    const refused = Object.assign(new Error(message), { name: "PostgresError", code });
    const error = toApiError(refused) as ApiError;
    if (api_code !== "service_unavailable") return assert.equal(error, refused);
    assert.deepEqual([error.code, error.status], ["service_unavailable", 503]);
    assert.equal(error.headers["Retry-After"], "1");
    assert.equal(error.cause, refused);
    assert.ok(!error.message.includes(message));
  });
}

Deno.test("query() of PostgreSQL's own XX000 and 58000 is no 503", async () => {
  await using clone = await cloneDatabase();
  await using database = openPool({ url: clone.url, max_connections: 1 });
  for (const code of ["XX000", "58000"]) {
    const raised = database.attempt(
      `do $$ begin raise exception 'Tenant or user not found' using errcode = '${code}'; end $$`,
      [],
    );
    const error = await raised.then(() => null, (error) => error);
    assert.equal(error.code, code);
    assert.equal(toApiError(error), error);
  }
});

Deno.test("query() of a database that is read-only is a 503, and works again after it", async () => {
  await using clone = await cloneDatabase();
  await using database = openPool({ url: clone.url, max_connections: 1 });
  const write = () => database.query("create table public.t ()", []);
  await database.query("set default_transaction_read_only = on", []);
  const error = await write().then(() => null, (error) => error);
  assert.deepEqual([error.code, error.cause.code], ["service_unavailable", "25006"]);
  await database.query("set default_transaction_read_only = off", []);
  await write();
});
