/**
 * The headers of every response, also of errors, the ids of requests, and cross-origin requests:
 * the allowed origins may call, and all others are refused before a handler runs.
 */

import assert from "node:assert/strict";
import { NeedsInternals } from "../support/service/needs_internals.ts";
import { IS_REMOTE } from "../support/service/product.ts";
import { BASE_URL, type TestService } from "../support/service/service.ts";
import { pathOf, ROUTES } from "../support/http/routes.ts";
import {
  assertCommonHeaders,
  assertRefused,
  PAYMENTS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";

serviceCase("headers of every response", async (t, service) => {
  const ids: string[] = [];
  const keys = { "a key": service.key.text, "no key": null, "a live key": service.live.text };
  for (const [whose, key] of Object.entries(keys)) {
    await t.step(`of every route with ${whose}`, async () => {
      for (const route of ROUTES) {
        const found = await service.call(route[0], pathOf(route), { key });
        assertCommonHeaders(found);
        assert.match(found.headers.get("Content-Type") ?? "none", /^application\/json/);
        const id = found.headers.get("Request-Id")!;
        if (found.status >= 400) assert.equal(found.body.error.request_id, id);
        ids.push(id);
      }
    });
  }
  await t.step("every Request-Id is unique, also within one millisecond", async () => {
    await service.setClock(Date.now());
    const more = await Promise.all(
      Array.from({ length: 500 }, () => service.call("GET", PAYMENTS, { key: null })),
    );
    ids.push(...more.map(({ headers }) => headers.get("Request-Id")!));
    assert.equal(new Set(ids).size, ids.length);
    await service.setClock(null);
  });
  await t.step("a Request-Id in the request is ignored", async () => {
    const sent = `req_${"a".repeat(26)}`;
    const { headers } = await service.call("GET", PAYMENTS, { headers: { "Request-Id": sent } });
    assert.notEqual(headers.get("Request-Id"), sent);
  });
  await t.step("Location of a 201 is the address of the new resource", async () => {
    const payment = await service.make({ outcome: "success" });
    const location = `${BASE_URL}/api-v1-payments/v1/payments/${payment.body.id}`;
    assert.equal(payment.headers.get("Location"), location);
    const refund = await service.call("POST", `${PAYMENTS}/${payment.body.id}/refund`);
    for (const made of [refund, await service.pay()]) {
      const path = made.headers.get("Location")!.slice(BASE_URL.length);
      assert.equal((await service.call("GET", path)).text, made.text);
    }
  });
  await t.step("Location is in no response but a 201", async () => {
    for (
      const response of [await service.call("GET", PAYMENTS), await service.pay({ amount: 0 })]
    ) {
      assert.equal(response.headers.get("Location"), null);
    }
  });
});

serviceCase("compression", async (t, service) => {
  if (IS_REMOTE) throw new NeedsInternals("the encoding, which fetch removes");
  for (let i = 0; i < 3; i++) await service.pay();
  const { data: [{ id }] } = await service.get(PAYMENTS);
  const plain = await service.call("GET", PAYMENTS);
  assert.ok(plain.text.length > 1_024);
  const gzip = "gzip, deflate, br";
  const cases: [string, string, Record<string, string>, "gzip" | null][] = [
    ["a list above 1 kB", PAYMENTS, { "Accept-Encoding": gzip }, "gzip"],
    ["a client that takes none", PAYMENTS, {}, null],
    ["a client that refuses it", PAYMENTS, { "Accept-Encoding": "gzip;q=0" }, null],
    ["a response below 1 kB", `${PAYMENTS}/${id}`, { "Accept-Encoding": gzip }, null],
  ];
  for (const [name, path, headers, encoding] of cases) {
    await t.step(`${name}: ${encoding ?? "none"}`, async () => {
      const found = await service.call("GET", path, { headers });
      assert.equal(found.headers.get("Content-Encoding"), encoding);
      if (path !== PAYMENTS) return;
      assert.equal(found.text, plain.text);
      assert.equal(found.headers.get("Vary"), "Accept-Encoding");
    });
  }
});

/** The test service allows https://console.example.com and http://localhost:*. */
const ALLOWED = [
  "https://console.example.com",
  ...["", ":1", ":3000", ":65535"].map((port) => `http://localhost${port}`),
];
const REFUSED = [
  ...["http://localhost:123456", "http://localhost:", "http://localhost:80x"],
  ...["http://localhost:3000/", "http://localhost:3000:3000", "http://localhost.evil.example"],
  ...["http://localhost@evil.example", "http://localhost:3000.evil.example"],
  ...["https://localhost:3000", "http://127.0.0.1:3000", "http://notlocalhost:3000"],
  ...["http://LOCALHOST:3000", "https://console.example.com:8443"],
  ...["https://console.example.com.evil.example", "http://console.example.com"],
  ...["https://evil.example/https://console.example.com", "https://sub.console.example.com"],
  ...["https://example.com", "null", "*", "file://", "chrome-extension://abcdefgh"],
];

function preflight({ call }: TestService, path: string, Origin: string) {
  const headers = {
    Origin,
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type,idempotency-key",
  };
  return call("OPTIONS", path, { key: null, headers });
}

serviceCase("Origin", async (t, service) => {
  await service.pay();
  const send = (Origin: string) =>
    Promise.all([
      service.pay({}, { headers: { Origin } }),
      service.make({}, { headers: { Origin } }),
      service.call("GET", "/api-v1-payments/health", { headers: { Origin } }),
    ]);
  for (const Origin of ALLOWED) {
    await t.step(`${Origin} is allowed`, async () => {
      for (const response of await send(Origin)) {
        assertCommonHeaders(response);
        assert.ok(response.status < 300, response.text);
        const { headers } = response;
        assert.equal(headers.get("Access-Control-Allow-Origin"), Origin);
        assert.match(headers.get("Vary") ?? "", /\bOrigin\b/);
        assert.match(headers.get("Access-Control-Expose-Headers") ?? "", /Request-Id/);
        assert.equal(headers.get("Access-Control-Allow-Credentials"), null);
      }
      assert.equal((await preflight(service, PAYMENTS, Origin)).status, 204);
    });
  }
  for (const Origin of REFUSED) {
    await t.step(`${Origin} is refused before a handler runs`, async () => {
      service.forgetStatements();
      for (const response of [...await send(Origin), await preflight(service, PAYMENTS, Origin)]) {
        assertRefused(response, "origin_not_allowed");
        assert.equal(response.headers.get("Access-Control-Allow-Origin"), null);
      }
      service.assertStatements(0);
    });
  }
  await t.step("a request of a refused origin stores nothing", async () => {
    const before = await service.count("payments");
    await service.pay({}, { headers: { Origin: "https://evil.example" } });
    assert.equal(await service.count("payments"), before);
  });
  await t.step("an allowed origin can read an error response", async () => {
    const headers = { Origin: "http://localhost:3000" };
    for (const options of [{ headers, body: "{" }, { headers, key: null }]) {
      const response = await service.call("POST", PAYMENTS, options);
      assert.ok(response.status >= 400);
      assert.equal(response.headers.get("Access-Control-Allow-Origin"), headers.Origin);
    }
  });
  for (const path of [PAYMENTS, `${SANDBOX}/payments`, "/api-v1-payments/v1/nothing"]) {
    await t.step(`a live key with any Origin on ${path} is refused: no statement`, async () => {
      service.forgetStatements();
      for (const Origin of [...ALLOWED, "https://evil.example"]) {
        const options = { key: service.live.text, headers: { Origin } };
        const response = await service.call("GET", path, options);
        assertRefused(response, "origin_not_allowed");
        const words = ALLOWED.includes(Origin)
          ? /^Live keys are not accepted/
          : /^Browsers may not/;
        assert.match(response.body.error.message, words);
      }
      service.assertStatements(0);
    });
  }
  await t.step("a live key without an Origin header is accepted", async () => {
    await service.get(PAYMENTS, { key: service.live.text });
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
        ...["Authorization", "Content-Type", "Idempotency-Key", "Prefer", "Sandbox-Fault"],
        ...["X-Client-Info", "X-Region", "apikey", "traceparent"],
      ]);
      assert.equal(headers.get("Access-Control-Max-Age"), "600");
      service.assertStatements(0);
    });
  }
  await t.step("without an Origin header needs a key, like any method", async () => {
    assertRefused(await service.call("OPTIONS", PAYMENTS, { key: null }), "unauthorized");
    assertRefused(await service.call("OPTIONS", PAYMENTS), "method_not_allowed");
  });
});
