/**
 * Two cells behind HAProxy with the configuration of examples/cells: each request reaches the cell
 * of its key, and mistakes in the map have clear errors. A move needs PostgreSQL 16 in both cells:
 * `deno task cells` refuses 15 on either side.
 */

import assert from "node:assert/strict";
import { ErrorBody } from "../../shared/schema/error.ts";
import { testWith } from "../support/common/programs.ts";
import { startCells } from "../support/cells/cell_servers.ts";
import { testServer } from "../support/database/database.ts";
import { openCell } from "../support/production/production_stage.ts";
import { startHaproxy } from "../support/proxy/cells_proxy.ts";
import { findHaproxy } from "../support/proxy/haproxy.ts";
import { keyedCall } from "../support/service/keyed_call.ts";
import { DEBIAN_15, hasVersion, startSupabaseServer } from "../support/supabase/supabase_server.ts";

/** The labels of both cells, one of a cell that does not exist, and one in two lines. */
const MAP = "sk7f a\nsk8q b\nsk9c c\nsk7f b\n";

testWith("haproxy", await findHaproxy() !== null, "two cells behind HAProxy", async (t) => {
  await using open = new AsyncDisposableStack();
  const a = await openCell(open, "sk7f");
  const b = await openCell(open, "sk8q");
  const proxy = await startHaproxy({ a: a.address, b: b.address }, MAP);
  open.defer(proxy.close);

  const send = (method: string, path: string, key: string | null, body?: unknown) =>
    keyedCall(proxy.origin, method, path, { key, body });
  const pay = (key: string, mount = "/functions/v1") =>
    send("POST", `${mount}/api-v1-payments/v1/payments`, key, { amount: 1000, currency: "EUR" });

  await t.step("a payment is stored in the cell of its key", async () => {
    assert.deepEqual(
      (await Promise.all([pay(a.key), pay(a.key), pay(b.key)]))
        .map(({ status, text }) => [status, text.slice(0, 6)]),
      Array(3).fill([201, '{"id":']),
    );
    assert.deepEqual([await a.payments(), await b.payments()], [2, 1]);
  });
  await t.step("the keys that a key makes lead to its cell", async () => {
    const made = await send("POST", "/functions/v1/api-v1-payments/v1/api_keys", a.key, {
      name: "second",
    });
    const sandbox = await send("POST", "/functions/v1/api-v1-sandbox/sandboxes", b.key, {
      seed: "cells",
    });
    assert.deepEqual([made.status, sandbox.status], [201, 201], made.text + sandbox.text);
    const { secret } = JSON.parse(made.text);
    const { test_key } = JSON.parse(sandbox.text);
    assert.ok(secret.startsWith("sk7f_test_") && test_key.startsWith("sk8qseeded_test_"));
    const paid = await Promise.all([pay(secret), pay(test_key)]);
    assert.deepEqual(paid.map(({ status }) => status), [201, 201]);
    assert.deepEqual([await a.payments(), await b.payments()], [3, 2]);
  });
  await t.step("a path can name the cell", async () => {
    assert.equal((await pay(b.key, "/cells/b/functions/v1")).status, 201);
    assert.equal((await pay(b.key, "/cells/a/functions/v1")).status, 401);
    assert.deepEqual([await a.payments(), await b.payments()], [3, 3]);
  });
  await t.step("the internal paths are not served", async () => {
    for (const mount of ["/functions/v1", "/cells/a/functions/v1"]) {
      const hidden = await send("POST", `${mount}/api-v1-payments/internal/relay`, null);
      assert.equal(hidden.status, 404);
    }
  });
  await t.step("an unknown label is 401 from the proxy", async () => {
    const refused = await pay(a.key.replace("sk7f", "sk9z"));
    assert.equal(refused.status, 401);
    const { error } = ErrorBody.parse(JSON.parse(refused.text));
    assert.equal(error.code, "unauthorized");
    assert.match(error.message, /^No cell /);
    assert.equal(refused.headers.get("Request-Id"), error.request_id);
    assert.equal(refused.headers.get("WWW-Authenticate"), "Bearer");
  });
  await t.step("a request without a key reaches any cell", async () => {
    const refused = await send("GET", "/functions/v1/api-v1-payments/v1/payments", null);
    assert.equal(refused.status, 401);
    assert.match(ErrorBody.parse(JSON.parse(refused.text)).error.message, /Authorization/);
    const health = await send("GET", "/functions/v1/api-v1-payments/health", null);
    assert.equal(health.status, 200);
  });
  await t.step("a cell without a backend is 503 from the proxy, and stores nothing", async () => {
    for (
      const [key, mount] of [[a.key.replace("sk7f", "sk9c")], [a.key, "/cells/c/functions/v1"]]
    ) {
      const refused = await pay(key!, mount);
      assert.equal(refused.status, 503);
      assert.equal(refused.headers.get("Retry-After"), "1");
      const { error } = ErrorBody.parse(JSON.parse(refused.text));
      assert.equal(error.code, "service_unavailable");
      assert.equal(refused.headers.get("Request-Id"), error.request_id);
    }
    assert.deepEqual([await a.payments(), await b.payments()], [3, 3]);
  });
  await t.step("the first line of a label counts", async () => {
    assert.equal((await pay(a.key)).status, 201);
    assert.deepEqual([await a.payments(), await b.payments()], [4, 3]);
  });
});

testWith(DEBIAN_15, await hasVersion(15), "deno task cells refuses PostgreSQL 15", async () => {
  const old = await startSupabaseServer(15);
  try {
    const { superuser_url } = testServer();
    const sides = [["source", old.url, superuser_url], ["target", superuser_url, old.url]] as const;
    for (const [side, from, to] of sides) {
      const command = [`CELLS_FROM_URL=${from}`, `CELLS_TO_URL=${to}`, "status"];
      const { code, output } = await startCells(command).ended;
      assert.equal(output, `The server of the ${side} must be PostgreSQL 16 or newer\n`);
      assert.equal(code, 1);
    }
  } finally {
    await old.close();
  }
});
