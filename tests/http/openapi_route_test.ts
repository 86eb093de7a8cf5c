/** `GET /v1/openapi.json`: public, cacheable, readable by any web page, true of what is served. */

import assert from "node:assert/strict";
import { servedRoutes } from "../support/http/routes.ts";
import { serviceCase } from "../support/service/service_case.ts";

const PATH = "/api-v1-payments/v1/openapi.json";
const DOCUMENT = JSON.parse(
  await Deno.readTextFile(
    new URL("../../docs/openapi.json", import.meta.url),
  ),
);

serviceCase("GET /v1/openapi.json", async (t, service) => {
  const get = (headers: Record<string, string> = {}, key: string | null = null) =>
    service.call("GET", PATH, { key, headers });
  await t.step("needs no key and answers docs/openapi.json", async () => {
    const answer = await get();
    assert.equal(answer.status, 200);
    assert.deepEqual(answer.body, DOCUMENT);
  });
  await t.step("takes no round trip to the database and leaves a log line", async () => {
    service.forgetStatements();
    service.logs.length = 0;
    await get();
    service.assertStatements(0);
    assert.deepEqual(service.logs.map(({ route }) => route), [`GET ${PATH}`]);
  });
  await t.step("may be kept, and is not sent again to who has it", async () => {
    const first = await get();
    // A server that compresses answers makes the tag a weak one.
    const etag = first.headers.get("ETag")!.replace("W/", "");
    assert.equal(first.headers.get("Cache-Control"), "public, max-age=300");
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`]) {
      const again = await get({ "If-None-Match": known });
      assert.deepEqual([again.status, again.text], [304, ""], known);
      assert.equal(again.headers.get("ETag"), etag);
    }
    assert.equal((await get({ "If-None-Match": '"other"' })).status, 200);
  });
  await t.step("any web page may read it, whatever origins are allowed", async () => {
    for (const headers of [{}, { "If-None-Match": (await get()).headers.get("ETag")! }]) {
      const answer = await get({ Origin: "https://elsewhere.example", ...headers });
      assert.notEqual(answer.status, 403);
      assert.equal(answer.headers.get("Access-Control-Allow-Origin"), "*");
    }
  });
  await t.step("a live key from a browser changes nothing", async () => {
    const answer = await get({ Origin: "https://elsewhere.example" }, service.live.text);
    assert.equal(answer.status, 200);
  });
  await t.step("other methods are 405 with a key, 401 without", async () => {
    const answer = await service.call("POST", PATH);
    assert.deepEqual([answer.status, answer.headers.get("Allow")], [405, "GET"]);
    assert.equal((await service.call("POST", PATH, { key: null })).status, 401);
  });
});

serviceCase("GET /v1/openapi.json names the service's own address", async (_t, service) => {
  const { body } = await service.call("GET", PATH, { key: null });
  assert.equal(body.servers[0].url, 'https://pay.example/"$&/functions/v1');
  assert.deepEqual(body.paths, DOCUMENT.paths);
}, { base_url: 'https://pay.example/"$&/functions/v1' });

Deno.test("docs/openapi.json has every route that is served, and no other but the keyless", () => {
  const described = Object.entries(DOCUMENT.paths).flatMap(([path, item]) =>
    Object.keys(item as object).map((method) => `${method.toUpperCase()} ${path}`)
  );
  const keyless = described.filter((route) =>
    / \/[^/]+\/(health|internal|v1\/openapi)/.test(route)
  );
  const served = servedRoutes().map((route) => route.replace(/:(\w+)/g, "{$1}"));
  assert.equal(keyless.length, 5);
  assert.deepEqual(described.sort(), [...served, ...keyless].sort());
});
