/**
 * Cross-origin requests: the allowed origins may call, and all others are refused before a handler
 * runs.
 */

import assert from "node:assert/strict";
import type { TestService } from "../support/service/service.ts";
import { assertCommonHeaders, assertError } from "../support/http/error_envelope.ts";
import { PAYMENTS, SANDBOX, serviceCase } from "../support/service/service_case.ts";

/** The test service allows https://console.example.com and http://localhost:*. */
const ORIGINS: [origin: string, allowed: boolean][] = [
  ["https://console.example.com", true],
  ["http://localhost", true],
  ["http://localhost:1", true],
  ["http://localhost:3000", true],
  ["http://localhost:65535", true],
  ["http://localhost:123456", false],
  ["http://localhost:", false],
  ["http://localhost:80x", false],
  ["http://localhost:3000/", false],
  ["http://localhost:3000:3000", false],
  ["http://localhost.evil.example", false],
  ["http://localhost@evil.example", false],
  ["http://localhost:3000.evil.example", false],
  ["https://localhost:3000", false],
  ["http://127.0.0.1:3000", false],
  ["http://notlocalhost:3000", false],
  ["http://LOCALHOST:3000", false],
  ["https://console.example.com:8443", false],
  ["https://console.example.com.evil.example", false],
  ["https://evil.example/https://console.example.com", false],
  ["http://console.example.com", false],
  ["https://sub.console.example.com", false],
  ["https://example.com", false],
  ["null", false],
  ["*", false],
  ["file://", false],
  ["chrome-extension://abcdefgh", false],
];

const PREFLIGHT = {
  "Access-Control-Request-Method": "POST",
  "Access-Control-Request-Headers": "authorization,content-type,idempotency-key",
};

function preflight({ call }: TestService, path: string, Origin: string) {
  return call("OPTIONS", path, { key: null, headers: { Origin, ...PREFLIGHT } });
}

serviceCase("Origin", async (t, service) => {
  await service.pay();
  for (const [Origin, allowed] of ORIGINS) {
    await t.step(
      `${Origin} is ${allowed ? "allowed" : "refused before a handler runs"}`,
      async () => {
        service.forgetStatements();
        const responses = [
          await service.pay({}, { headers: { Origin } }),
          await service.make({}, { headers: { Origin } }),
          await service.call("GET", "/api-v1-payments/health", { headers: { Origin } }),
        ];
        for (const response of responses) {
          assertCommonHeaders(response);
          const granted = response.headers.get("Access-Control-Allow-Origin");
          assert.equal(granted, allowed ? Origin : null);
          if (allowed) {
            assert.ok(response.status < 300, response.text);
            assert.match(response.headers.get("Vary") ?? "", /\bOrigin\b/);
            assert.match(response.headers.get("Access-Control-Expose-Headers") ?? "", /Request-Id/);
          } else {
            assertError(response, "origin_not_allowed", null);
          }
          assert.equal(response.headers.get("Access-Control-Allow-Credentials"), null);
        }
        const requested = await preflight(service, PAYMENTS, Origin);
        assert.equal(requested.status, allowed ? 204 : 403);
        if (!allowed) assertError(requested, "origin_not_allowed", null);
        service.assertStatements(allowed ? 3 : 0);
      },
    );
  }
  await t.step("a request of a refused origin stores nothing", async () => {
    const count = () => service.sql`select from pay.payments`.then((rows) => rows.count);
    const before = await count();
    await service.pay({}, { headers: { Origin: "https://evil.example" } });
    assert.equal(await count(), before);
  });
  await t.step("an allowed origin can read an error response", async () => {
    const headers = { Origin: "http://localhost:3000" };
    for (const options of [{ headers, body: "{" }, { headers, key: null }]) {
      const response = await service.call("POST", PAYMENTS, options);
      assert.ok(response.status >= 400);
      assert.equal(response.headers.get("Access-Control-Allow-Origin"), headers.Origin);
    }
  });
});

serviceCase("OPTIONS", async (t, service) => {
  for (const path of [PAYMENTS, `${SANDBOX}/payments`, `${SANDBOX}/nothing`]) {
    await t.step(`a preflight of ${path} needs no key and makes no statement`, async () => {
      service.forgetStatements();
      const { status, headers, text } = await preflight(service, path, "http://localhost:3000");
      assert.deepEqual([status, text], [204, ""]);
      const list = (name: string) => headers.get(name)?.split(/,\s*/).sort();
      assert.deepEqual(list("Access-Control-Allow-Methods"), ["DELETE", "GET", "POST", "PUT"]);
      assert.deepEqual(list("Access-Control-Allow-Headers"), [
        "Authorization",
        "Content-Type",
        "Idempotency-Key",
        "Prefer",
        "Sandbox-Fault",
        "X-Client-Info",
        "X-Region",
        "apikey",
        "traceparent",
      ]);
      assert.equal(headers.get("Access-Control-Max-Age"), "600");
      service.assertStatements(0);
    });
  }
  await t.step("without an Origin header needs a key, like any method", async () => {
    assertError(await service.call("OPTIONS", PAYMENTS, { key: null }), "unauthorized");
    assertError(await service.call("OPTIONS", PAYMENTS), "method_not_allowed");
  });
});

serviceCase("a live key with an Origin header", async (t, service) => {
  for (
    const Origin of ["http://localhost:3000", "https://console.example.com", "https://evil.example"]
  ) {
    for (const path of [PAYMENTS, `${SANDBOX}/payments`, "/api-v1-payments/v1/nothing"]) {
      await t.step(`${Origin} on ${path} is refused without a statement`, async () => {
        service.forgetStatements();
        const response = await service.call("GET", path, {
          key: service.live.text,
          headers: { Origin },
        });
        assertError(response, "origin_not_allowed", null);
        service.assertStatements(0);
      });
    }
  }
  await t.step("without an Origin header the key is accepted", async () => {
    assert.equal((await service.call("GET", PAYMENTS, { key: service.live.text })).status, 200);
  });
});
