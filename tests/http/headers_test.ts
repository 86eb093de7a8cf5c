/** The headers of every response, also of errors, and the ids of requests. */

import assert from "node:assert/strict";
import { BASE_URL, type TestResponse } from "../support/service/service.ts";
import { assertCommonHeaders } from "../support/http/error_envelope.ts";
import { pathOf, ROUTES } from "../support/http/routes.ts";
import { assertRefused, PAYMENTS, serviceCase } from "../support/service/service_case.ts";

serviceCase("headers of every response", async (t, service) => {
  const ids = new Set<string>();
  let responses = 0;
  const keys = { "a key": service.key.text, "no key": null, "a live key": service.live.text };
  for (const [whose, key] of Object.entries(keys)) {
    for (const route of ROUTES) {
      await t.step(`${route[0]} ${route[1]} with ${whose} has the common headers`, async () => {
        const found = await service.call(route[0], pathOf(route), { key });
        assertCommonHeaders(found);
        assert.match(found.headers.get("Content-Type") ?? "none", /^application\/json/);
        if (found.status >= 400) {
          assert.equal(found.body.error.request_id, found.headers.get("Request-Id"));
        }
        ids.add(found.headers.get("Request-Id")!);
        responses++;
      });
    }
  }
  await t.step("every Request-Id is unique, also within one millisecond", async () => {
    await service.setClock(Date.now());
    const more = await Promise.all(
      Array.from({ length: 500 }, () => service.call("GET", PAYMENTS, { key: null })),
    );
    for (const { headers } of more) ids.add(headers.get("Request-Id")!);
    assert.equal(ids.size, responses + more.length);
    await service.setClock(null);
  });
  await t.step("a Request-Id in the request is ignored", async () => {
    const sent = `req_${"a".repeat(26)}`;
    const { headers } = await service.call("GET", PAYMENTS, { headers: { "Request-Id": sent } });
    assert.notEqual(headers.get("Request-Id"), sent);
  });
});

serviceCase("Location", async (t, service) => {
  await t.step("of a 201 is the address of the new resource", async () => {
    for (const made of [await service.pay(), await service.make()]) {
      const location = made.headers.get("Location")!;
      assert.equal(location, `${BASE_URL}/api-v1-payments/v1/payments/${made.body.id}`);
      const found = await service.call("GET", location.slice(BASE_URL.length));
      assert.equal(found.text, made.text);
    }
    const { id } = (await service.make({ outcome: "success" })).body;
    const refund = await service.call("POST", `${PAYMENTS}/${id}/refund`);
    const location = refund.headers.get("Location")!;
    const found = await service.call("GET", location.slice(BASE_URL.length));
    assert.equal(found.text, refund.text);
  });
  await t.step("is in no response but a 201", async () => {
    const { headers } = await service.call("GET", PAYMENTS);
    assert.equal(headers.get("Location"), null);
    const refused = await service.pay({ amount: 0 });
    assert.equal(refused.headers.get("Location"), null);
  });
});

/** Unknown fields of a valid create, and the header that names them. */
const UNKNOWN: [name: string, body: Record<string, unknown>, header: string | null][] = [
  ["none", {}, null],
  ["one", { colour: 1 }, "colour"],
  ["several, in the order sent", { b: 1, a: 1 }, "b, a"],
  ["one within an object", { customer: { email: "a@b.example", mail: 1 } }, "customer.mail"],
  ["one that would break a header", { "a\r\nX-Injected: 1": 1 }, "a??X-Injected:?1"],
  ["one outside of ASCII", { "größe": 1 }, "gr??e"],
  ["a comma", { "a,b": 1 }, "a?b"],
  ["a long one", { ["x".repeat(1_000)]: 1 }, "x".repeat(64)],
  ["keys of metadata are not unknown", { metadata: { anything: "1" } }, null],
  ["names of Object.prototype", { toString: 1, constructor: 2 }, "toString, constructor"],
];

serviceCase("Unknown-Parameters", async (t, service) => {
  for (const [name, body, header] of UNKNOWN) {
    await t.step(name, async () => {
      const { status, headers } = await service.pay(body);
      assert.deepEqual([status, headers.get("Unknown-Parameters")], [201, header]);
      assert.equal(headers.get("X-Injected"), null);
    });
  }
  await t.step("names unknown parameters of a query", async () => {
    const { headers } = await service.call("GET", `${PAYMENTS}?limt=1&limit=1`);
    assert.equal(headers.get("Unknown-Parameters"), "limt");
  });
  const wrong: [name: string, body: Record<string, unknown>, header: string][] = [
    ["a missing field", { amount: undefined, colour: 1 }, "colour"],
    ["a wrong field", { amount: 19.99, card: { colour: "1" } }, "card.colour"],
    ["another name of a field", { amuont: 1, colour: 1 }, "amuont, colour"],
    ["a rule of the domain", { iban: "DE89370400440532013001", colour: 1 }, "colour"],
  ];
  for (const [name, body, header] of wrong) {
    await t.step(`is in a 400 too: ${name}`, async () => {
      const { status, headers } = await service.pay(body);
      assert.deepEqual([status, headers.get("Unknown-Parameters")], [400, header]);
    });
  }
  await t.step("is in a 400 of a query and of an idempotency key", async () => {
    const query = await service.call("GET", `${PAYMENTS}?limt=1&limit=0`);
    const key = await service.pay({ colour: 1 }, { idempotency_key: "two words" });
    const names = [query, key].map(({ status, headers }) => [
      status,
      headers.get("Unknown-Parameters"),
    ]);
    assert.deepEqual(names, [[400, "limt"], [400, "colour"]]);
  });
  await t.step("does not repeat a parameter that is a card number", async () => {
    const { status, headers } = await service.call("GET", `${PAYMENTS}?4242424242424242=1`);
    assert.deepEqual([status, headers.get("Unknown-Parameters")], [400, null]);
  });
  await t.step("Prefer: handling=strict refuses it, and nothing is created", async () => {
    const strict = { headers: { Prefer: 'respond-async, Handling="strict"' } };
    const refused: [response: Promise<TestResponse>, param: string][] = [
      [service.pay({ amout: 1, colour: 2 }, strict), "amout"],
      [service.pay({ amount: undefined, card: { nmuber: "1" } }, strict), "card.nmuber"],
      [service.call("GET", `${PAYMENTS}?limt=1`, strict), "limt"],
    ];
    const paymentsNow = async () =>
      (await service.sql`select count(*)::int as n from pay.payments`)[0]!.n;
    const before = await paymentsNow();
    for (const [response, param] of refused) {
      assertRefused(await response, 400, "invalid_parameter", param);
    }
    assert.equal(await paymentsNow(), before);
    assert.equal((await service.pay({}, strict)).status, 201);
    const lenient = { headers: { Prefer: "handling=lenient" } };
    assert.equal((await service.pay({ colour: 1 }, lenient)).status, 201);
  });
  await t.step("names the first twenty of a thousand fields", async () => {
    const body = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`f${i}`, i]));
    const { headers } = await service.pay(body);
    assert.equal(headers.get("Unknown-Parameters")!.split(", ").length, 20);
  });
});
