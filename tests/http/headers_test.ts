/** The headers of every response, also of errors, and the ids of requests. */

import assert from "node:assert/strict";
import { BASE_URL } from "../support/service/service.ts";
import { assertCommonHeaders } from "../support/http/error_envelope.ts";
import { pathOf, ROUTES } from "../support/http/routes.ts";
import { PAYMENTS, serviceCase } from "../support/service/service_case.ts";

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
