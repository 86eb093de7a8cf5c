/**
 * Two cells behind HAProxy with the configuration of examples/cells: each request reaches the cell
 * of its key, and a cell that is away costs the other nothing.
 */

import assert from "node:assert/strict";
import postgres from "postgres";
import { ErrorBody } from "../../shared/schema/error.ts";
import { startHaproxy } from "../support/cells/haproxy.ts";
import { findHaproxy } from "../support/proxy/haproxy.ts";
import { until } from "../support/common/until.ts";
import { makeSandboxKey } from "../support/database/api_keys.ts";
import { cloneDatabase } from "../support/database/database.ts";
import { launchServer } from "../support/service/server_process.ts";

const LEASE_MS = 1_000;
/** The time within which a request to a cell that is away gets its 503. */
const AWAY_WITHIN_MS = 1_500;

const has_haproxy = await findHaproxy() !== null;
const in_ci = Deno.env.get("CI") !== undefined;
if (!has_haproxy) console.warn("Cells are not tested unless CI is set: haproxy is not installed");

/** A cell with one key. */
async function openCell(label: string) {
  const database = await cloneDatabase();
  const key = await makeSandboxKey(database.url, label);
  const sql = postgres(database.url, { max: 1, onnotice: () => {} });
  let server = await launchServer(database.functions_url, { lease_ms: LEASE_MS });
  const { port } = new URL(server.base_url);
  return {
    key,
    sql,
    address: `127.0.0.1:${port}`,
    kill: () => server.kill(),
    async restart() {
      server = await launchServer(database.functions_url, {
        lease_ms: LEASE_MS,
        port: Number(port),
      });
    },
    async payments(): Promise<number> {
      const [row] = await sql`select count(*)::int as n from pay.payments`;
      return row!.n;
    },
    async close() {
      await server.kill();
      await sql.end();
      await database.drop();
    },
  };
}

Deno.test({
  name: "two cells behind HAProxy",
  ignore: !has_haproxy && !in_ci,
  fn: async (t) => {
    await using open = new AsyncDisposableStack();
    const a = await openCell("sk7f");
    open.defer(a.close);
    const b = await openCell("sk8q");
    open.defer(b.close);
    const proxy = await startHaproxy({ a: a.address, b: b.address });
    open.defer(proxy.close);

    const send = async (method: string, path: string, key: string | null, body?: unknown) => {
      const response = await fetch(`${proxy.origin}${path}`, {
        method,
        headers: {
          ...(key !== null && { Authorization: `Bearer ${key}` }),
          ...(body !== undefined && { "Content-Type": "application/json" }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      return { status: response.status, headers: response.headers, text };
    };
    const pay = (key: string, mount = "/functions/v1") =>
      send("POST", `${mount}/api-v1-payments/v1/payments`, key, {
        amount: 1000,
        currency: "EUR",
      });

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
      assert.deepEqual([secret.slice(0, 10), test_key.slice(0, 16)], [
        "sk7f_test_",
        "sk8qseeded_test_",
      ]);
      const paid = await Promise.all([pay(secret), pay(test_key)]);
      assert.deepEqual(paid.map(({ status }) => status), [201, 201]);
      assert.deepEqual([await a.payments(), await b.payments()], [3, 2]);
    });
    await t.step("a path can name the cell", async () => {
      assert.equal((await pay(b.key, "/cells/b/functions/v1")).status, 201);
      assert.equal((await pay(b.key, "/cells/a/functions/v1")).status, 401);
      assert.deepEqual([await a.payments(), await b.payments()], [3, 3]);
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

    /** Asserts that only the second cell is away. */
    const assertAway = async () => {
      const began = performance.now();
      const away = await pay(b.key);
      assert.equal(away.status, 503);
      assert.ok(performance.now() - began < AWAY_WITHIN_MS);
      assert.equal(away.headers.get("Retry-After"), "1");
      assert.equal(ErrorBody.parse(JSON.parse(away.text)).error.code, "service_unavailable");
      const others = await Promise.all(Array.from({ length: 20 }, () => pay(a.key)));
      assert.deepEqual(others.map(({ status }) => status), Array(20).fill(201));
    };
    const assertBack = () =>
      until("the cell is back", async () => (await pay(b.key)).status === 201);

    await t.step("a killed cell is 503 for its own keys only", async () => {
      await b.kill();
      for (let i = 0; i < 3; i++) await assertAway();
      await b.restart();
      await assertBack();
    });
    await t.step("so is a cell without its database", async () => {
      const [{ name }] = await b.sql<[{ name: string }]>`select current_database() as name`;
      await a.sql`alter database ${a.sql(name)} with allow_connections = false`;
      await a.sql`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${name}`;
      await until("the proxy takes the cell out", async () => {
        const { status, text } = await pay(b.key);
        return status === 503 && text.includes("The cell of this key");
      });
      for (let i = 0; i < 3; i++) await assertAway();
      await a.sql`alter database ${a.sql(name)} with allow_connections = true`;
      await assertBack();
    });
  },
});
