/**
 * The routes that need no key. `GET /health` tells whether the database responds. `GET
 * /v1/openapi.json` can be cached, can be read by every web page, and describes the served routes.
 */

import assert from "node:assert/strict";
import { createDependencies } from "../../shared/functions/dependencies.ts";
import { createPaymentsFunction } from "../../shared/functions/payments_function.ts";
import { createSandboxFunction } from "../../shared/functions/sandbox_function.ts";
import { NeedsInternals } from "../support/service/needs_internals.ts";
import { IS_REMOTE } from "../support/service/product.ts";
import { BASE_URL, DOCS_URL, type TestResponse } from "../support/service/service.ts";
import { ROUTES } from "../support/http/routes.ts";
import {
  assertCommonHeaders,
  assertRefused,
  serviceCase,
} from "../support/service/service_case.ts";
import { freePort } from "../support/common/free_port.ts";

/** R12: the response comes within this time (security design §3). */
const AWAY_WITHIN_MS = 2_000;

serviceCase("GET /health", async (t, service) => {
  for (const name of ["api-v1-payments", "api-v1-sandbox"]) {
    await t.step(`${name} is healthy without a key, in one statement for all`, async () => {
      service.forgetStatements();
      const responses = await Promise.all(
        Array.from({ length: 50 }, () => service.call("GET", `/${name}/health`, { key: null })),
      );
      for (const response of responses) {
        assert.deepEqual([response.status, response.body], [200, { status: "ok" }]);
        assertCommonHeaders(response);
      }
      service.assertStatements(1);
    });
    for (const method of ["POST", "PUT", "DELETE"]) {
      await t.step(`${method} on ${name} needs a key`, async () => {
        const response = await service.call(method, `/${name}/health`, { key: null });
        assertRefused(response, "unauthorized");
      });
    }
    await t.step(`POST on ${name} with a key is 405`, async () => {
      const response = await service.call("POST", `/${name}/health`);
      assertRefused(response, "method_not_allowed");
      assert.equal(response.headers.get("Allow"), "GET");
    });
  }
});

Deno.test("GET /health without a database is 503 with Retry-After within 2 s", async (t) => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  // Accepts connections and never responds, like a server process that is stopped.
  const silent: Deno.Conn[] = [];
  const taking = (async () => {
    for await (const connection of listener) silent.push(connection);
  })();
  for (const [name, at] of [["refuses", freePort()], ["is silent", port]] as const) {
    const deps = createDependencies({
      database_url: `postgres://nobody:none@127.0.0.1:${at}/none`,
      base_url: BASE_URL,
      docs_url: DOCS_URL,
      log: () => {},
    });
    const functions = {
      "api-v1-payments": createPaymentsFunction(deps),
      "api-v1-sandbox": createSandboxFunction(deps),
    };
    for (const [prefix, serve] of Object.entries(functions)) {
      await t.step(`${prefix}: the server ${name}`, async () => {
        const started = performance.now();
        const response = await serve(new Request(`http://localhost/${prefix}/health`));
        const { status, headers } = response;
        const text = await response.text();
        const read = { status, headers, text, body: JSON.parse(text) } as TestResponse;
        assertRefused(read, "service_unavailable");
        assert.ok(performance.now() - started < AWAY_WITHIN_MS);
      });
    }
    await deps.close();
  }
  listener.close();
  await taking.catch(() => {});
  for (const connection of silent) connection.close();
});

/** The documents of a network in 10 s, as refused requests of a keyless route. */
const MAX_DOCUMENTS = 100;
const PATH = "/api-v1-payments/v1/openapi.json";
const DOCUMENT = JSON.parse(
  await Deno.readTextFile(new URL("../../docs/openapi.json", import.meta.url)),
);

serviceCase("GET /v1/openapi.json", async (t, service) => {
  const get = (headers: Record<string, string> = {}, key: string | null = null) =>
    service.call("GET", PATH, { key, headers });
  await t.step("returns docs/openapi.json without a statement, and writes a log line", async () => {
    service.forgetStatements();
    service.logs.length = 0;
    const response = await get();
    assert.equal(response.status, 200);
    assert.deepEqual(response.body, DOCUMENT);
    service.assertStatements(0);
    assert.deepEqual(service.logs.map(({ route }) => route), [`GET ${PATH}`]);
  });
  await t.step("can be cached, and returns 304 for a matching ETag", async () => {
    const first = await get();
    // A proxy that compresses responses makes the ETag a weak one.
    const etag = first.headers.get("ETag")!.replace("W/", "");
    assert.equal(first.headers.get("Cache-Control"), "public, max-age=300");
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`]) {
      const again = await get({ "If-None-Match": known });
      assert.deepEqual([again.status, again.text], [304, ""], known);
      assert.equal(again.headers.get("ETag"), etag);
    }
    assert.equal((await get({ "If-None-Match": '"other"' })).status, 200);
  });
  await t.step("is compressed for clients that accept gzip, with an ETag of its own", async () => {
    if (IS_REMOTE) throw new NeedsInternals("the encoding, which fetch removes");
    const plain = await get();
    for (
      const [accepted, encoding] of [
        ["gzip, deflate, br", "gzip"],
        ["br;q=1.0, GZIP;q=0.5", "gzip"],
        ["gzip;q=0", null],
        ["br, *", null],
      ] as const
    ) {
      const { status, headers } = await get({ "Accept-Encoding": accepted });
      assert.deepEqual([status, headers.get("Content-Encoding")], [200, encoding], accepted);
      assert.equal(headers.get("Vary"), "Accept-Encoding");
      assert.equal(headers.get("ETag") === plain.headers.get("ETag"), encoding === null);
      const known = { "If-None-Match": headers.get("ETag")!, "Accept-Encoding": accepted };
      assert.equal((await get(known)).status, 304);
    }
  });
  await t.step("allows every origin, also with a live key", async () => {
    const etag = (await get()).headers.get("ETag")!;
    for (const headers of [{}, { "If-None-Match": etag }]) {
      for (const key of [null, service.live.text]) {
        const response = await get({ Origin: "https://elsewhere.example", ...headers }, key);
        assert.ok([200, 304].includes(response.status));
        assert.equal(response.headers.get("Access-Control-Allow-Origin"), "*");
      }
    }
  });
  await t.step("other methods are 405 with a key and 401 without", async () => {
    const response = await service.call("POST", PATH);
    assert.deepEqual([response.status, response.headers.get("Allow")], [405, "GET"]);
    assert.equal((await service.call("POST", PATH, { key: null })).status, 401);
  });
});

serviceCase("GET /v1/openapi.json names its service, and is limited by network", async (
  _t,
  service,
) => {
  const get = (network: string, headers = {}) =>
    service.call("GET", PATH, { key: null, headers: { "X-Forwarded-For": network, ...headers } });
  await service.setClock(Date.parse("2030-01-01T00:00:00Z"));
  const first = await get("192.0.2.1");
  assert.equal(first.body.servers[0].url, 'https://pay.example/"$&/functions/v1');
  assert.deepEqual(first.body.paths, DOCUMENT.paths);
  const etag = first.headers.get("ETag")!;
  for (let i = 1; i < MAX_DOCUMENTS; i++) {
    // 304 has no body and does not count.
    assert.equal((await get("192.0.2.1", { "If-None-Match": etag })).status, 304);
    assert.equal((await get("192.0.2.1")).status, 200);
  }
  assertRefused(await get("192.0.2.1"), "rate_limited");
  assert.equal((await get("192.0.2.2")).status, 200);
}, { rate_limit: 100, base_url: 'https://pay.example/"$&/functions/v1' });

Deno.test("docs/openapi.json describes every served route and the six that need no key", () => {
  const described = Object.entries(DOCUMENT.paths).flatMap(([path, item]) =>
    Object.keys(item as object).map((method) =>
      `${method.toUpperCase()} ${path.replace(/\{\w+\}/, "{id}")}`
    )
  );
  const keyless = described.filter((route) =>
    / \/[^/]+\/(health|internal|v1\/openapi)/.test(route)
  );
  const served = ROUTES.map(([method, path]) => `${method} ${path.replace(/:\w+/, "{id}")}`);
  assert.equal(keyless.length, 6);
  assert.deepEqual(described.sort(), [...served, ...keyless].sort());
});
