/**
 * `GET /v1/openapi.json` is public, can be cached, can be read by every web page, and describes the
 * served routes.
 */

import assert from "node:assert/strict";
import { assertError } from "../support/http/error_envelope.ts";
import { servedRoutes } from "../support/http/routes.ts";
import { serviceCase } from "../support/service/service_case.ts";

/** The documents of a network in 10 s, as refused requests of a keyless route. */
const MAX_DOCUMENTS = 100;
const PATH = "/api-v1-payments/v1/openapi.json";
const DOCUMENT = JSON.parse(
  await Deno.readTextFile(
    new URL("../../docs/openapi.json", import.meta.url),
  ),
);

serviceCase("GET /v1/openapi.json", async (t, service) => {
  const get = (headers: Record<string, string> = {}, key: string | null = null) =>
    service.call("GET", PATH, { key, headers });
  await t.step("needs no key and returns docs/openapi.json", async () => {
    const response = await get();
    assert.equal(response.status, 200);
    assert.deepEqual(response.body, DOCUMENT);
  });
  await t.step("makes no database statement and writes a log line", async () => {
    service.forgetStatements();
    service.logs.length = 0;
    await get();
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
  await t.step("allows every origin", async () => {
    for (const headers of [{}, { "If-None-Match": (await get()).headers.get("ETag")! }]) {
      const response = await get({ Origin: "https://elsewhere.example", ...headers });
      assert.notEqual(response.status, 403);
      assert.equal(response.headers.get("Access-Control-Allow-Origin"), "*");
    }
  });
  await t.step("is the same for a live key from a browser", async () => {
    const response = await get({ Origin: "https://elsewhere.example" }, service.live.text);
    assert.equal(response.status, 200);
  });
  await t.step("other methods are 405 with a key and 401 without", async () => {
    const response = await service.call("POST", PATH);
    assert.deepEqual([response.status, response.headers.get("Allow")], [405, "GET"]);
    assert.equal((await service.call("POST", PATH, { key: null })).status, 401);
  });
});

serviceCase("GET /v1/openapi.json names the address of the service", async (_t, service) => {
  const { body } = await service.call("GET", PATH, { key: null });
  assert.equal(body.servers[0].url, 'https://pay.example/"$&/functions/v1');
  assert.deepEqual(body.paths, DOCUMENT.paths);
}, { base_url: 'https://pay.example/"$&/functions/v1' });

serviceCase("GET /v1/openapi.json is limited by network", async (_t, service) => {
  const get = (network: string, headers = {}) =>
    service.call("GET", PATH, { key: null, headers: { "X-Forwarded-For": network, ...headers } });
  await service.setClock(Date.parse("2030-01-01T00:00:00Z"));
  const etag = (await get("192.0.2.1")).headers.get("ETag")!;
  for (let i = 1; i < MAX_DOCUMENTS; i++) {
    // 304 has no body and does not count.
    assert.equal((await get("192.0.2.1", { "If-None-Match": etag })).status, 304);
    assert.equal((await get("192.0.2.1")).status, 200);
  }
  assertError(await get("192.0.2.1"), "rate_limited");
  assert.equal((await get("192.0.2.2")).status, 200);
}, { rate_limit: 100 });

Deno.test("docs/openapi.json describes every served route and the six that need no key", () => {
  const described = Object.entries(DOCUMENT.paths).flatMap(([path, item]) =>
    // Routes name every parameter of a path ":id".
    Object.keys(item as object).map((method) =>
      `${method.toUpperCase()} ${path.replace(/\{\w+\}/, "{id}")}`
    )
  );
  const keyless = described.filter((route) =>
    / \/[^/]+\/(health|internal|v1\/openapi)/.test(route)
  );
  const served = servedRoutes().map((route) => route.replace(/:(\w+)/g, "{$1}"));
  assert.equal(keyless.length, 6);
  assert.deepEqual(described.sort(), [...served, ...keyless].sort());
});
