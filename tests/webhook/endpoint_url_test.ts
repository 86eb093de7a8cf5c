/**
 * URLs of endpoints in the API: the test vectors without private addresses, and live keys, which
 * may not use private addresses even where test keys may.
 */

import assert from "node:assert/strict";
import { assertRefused, serviceCase } from "../support/service/service_case.ts";
import { addEndpoint, ENDPOINTS } from "../support/webhook/recording_receiver.ts";
import { URL_VECTORS } from "../support/core/vectors.ts";

/** Vectors that do not depend on settings of the operator. */
const VECTORS = URL_VECTORS.filter(
  ({ own_hosts, allow_private }) => !own_hosts && !allow_private,
);

/** A text with U+0000 is refused in any field, before the URL is checked. */
function codeOf(url: string): string {
  return url.includes("\0") ? "invalid_json" : "invalid_parameter";
}

serviceCase("POST /v1/webhook_endpoints checks the url", async (t, service) => {
  assert.ok(VECTORS.length > 200);
  for (const { url, result, href = url } of VECTORS) {
    await t.step(`${JSON.stringify(url).slice(0, 70)}: ${result}`, async () => {
      const made = await service.call("POST", ENDPOINTS, { body: { url } });
      const stored = await service.sql`select url from pay.webhook_endpoints`;
      if (result !== "ok") {
        assertRefused(made, 400, codeOf(url), "url");
        assert.deepEqual([...stored], []);
        return;
      }
      assert.deepEqual([made.status, made.body.url], [201, href]);
      assert.deepEqual(stored.map((row) => row.url), [href]);
      await service.sql`delete from pay.webhook_endpoints`;
    });
  }
}, { allow_private_webhooks: false });

serviceCase("PUT /v1/webhook_endpoints/{id} checks the url", async (t, service) => {
  const { id, url } = await addEndpoint(service, "https://hooks.example.com/") as never as {
    id: string;
    url: string;
  };
  for (const vector of VECTORS.filter(({ result }) => result !== "ok").slice(0, 40)) {
    await t.step(`${JSON.stringify(vector.url).slice(0, 70)}: ${vector.result}`, async () => {
      const body = { url: vector.url };
      const updated = await service.call("PUT", `${ENDPOINTS}/${id}`, { body });
      assertRefused(updated, 400, codeOf(vector.url), "url");
      assert.equal((await service.call("GET", `${ENDPOINTS}/${id}`)).body.url, url);
    });
  }
}, { allow_private_webhooks: false });

const PRIVATE = [
  "http://127.0.0.1:3000/hook",
  "http://localhost:3000/hook",
  "http://[::1]:3000/",
  "http://10.1.2.3/",
  "https://192.168.0.1/",
  "http://hooks.example.com/",
];
serviceCase("only test keys may use private addresses, if allowed", async (t, service) => {
  const live = { key: service.live.text };
  const { id } = await addEndpoint(service, "https://hooks.example.com/", {}, live);
  for (const url of PRIVATE) {
    await t.step(url, async () => {
      assert.equal((await service.call("POST", ENDPOINTS, { body: { url } })).status, 201);
      const made = await service.call("POST", ENDPOINTS, { body: { url }, ...live });
      assertRefused(made, 400, "invalid_parameter", "url");
      const updated = await service.call("PUT", `${ENDPOINTS}/${id}`, { body: { url }, ...live });
      assertRefused(updated, 400, "invalid_parameter", "url");
    });
  }
  await t.step("both keys are refused a host of the service itself", async () => {
    for (const key of [service.key.text, service.live.text]) {
      const made = await service.call("POST", ENDPOINTS, {
        body: { url: "https://payments.example.com/functions/v1/api-v1-payments/internal/relay" },
        key,
      });
      assertRefused(made, 400, "invalid_parameter", "url");
    }
  });
}, { base_url: "https://payments.example.com/functions/v1" });
