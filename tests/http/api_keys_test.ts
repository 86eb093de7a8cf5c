/** API keys over HTTP. */

import assert from "node:assert/strict";
import { startService } from "../support/service/service.ts";
import { assertRefused } from "../support/service/service_case.ts";

const KEYS = "/api-v1-payments/v1/api_keys";
const PAYMENTS = "/api-v1-payments/v1/payments";

Deno.test("API keys", async (t) => {
  const service = await startService();
  const make = (body: Record<string, unknown> = {}, options = {}) =>
    service.call("POST", KEYS, { body: { name: "made", ...body }, ...options });
  const works = async (key: string) => (await service.call("GET", PAYMENTS, { key })).status;
  try {
    await t.step("POST /v1/api_keys creates a key that works", async () => {
      const made = await make();
      assert.equal(made.status, 201, made.text);
      assert.match(made.body.secret, /^sk_test_[0-9A-Za-z]{49}$/);
      assert.equal(await works(made.body.secret), 200);
    });
    await t.step("rotate adds a secret and the older one expires; DELETE ends both", async () => {
      const made = await make();
      const path = `${KEYS}/${made.body.id}`;
      const turned = await service.call("POST", `${path}/rotate`, { body: { expires_in: 60 } });
      assert.equal(turned.status, 200, turned.text);
      assert.equal(await works(made.body.secret), 200);
      assert.equal(await works(turned.body.secret), 200);
      await service.setClock(Date.now() + 61_000);
      assert.equal(await works(made.body.secret), 401);
      assert.equal(await works(turned.body.secret), 200);
      await service.setClock(null);
      const gone = await service.call("DELETE", path);
      assert.equal(gone.status, 200, gone.text);
      assert.ok(gone.body.revoked_at);
      assert.equal(await works(turned.body.secret), 401);
      const again = await service.call("DELETE", path);
      assert.deepEqual([again.status, again.body], [200, gone.body]);
      assert.deepEqual((await service.call("GET", path)).body, gone.body);
      const refused = await service.call("POST", `${path}/rotate`);
      assertRefused(refused, 409, "invalid_state");
      const { current_status, allowed } = refused.body.error;
      assert.deepEqual([current_status, allowed], ["ended", []]);
    });
    await t.step("an idempotency key stays valid after a rotation", async () => {
      const made = await make();
      const first = await service.pay({}, { key: made.body.secret, idempotency_key: "p" });
      const path = `${KEYS}/${made.body.id}/rotate`;
      const turned = await service.call("POST", path);
      const again = await service.pay({}, { key: turned.body.secret, idempotency_key: "p" });
      assert.equal(again.text, first.text);
    });
    await t.step("a key cannot create a key with more scopes", async () => {
      const narrow = await make({ scopes: ["keys:write", "payments:read"] });
      const key = narrow.body.secret;
      const cases: [Record<string, unknown>, number][] = [
        [{ scopes: ["payments:read"] }, 201],
        [{ scopes: ["payments:write"] }, 403],
        [{}, 403],
      ];
      for (const [body, status] of cases) {
        assert.equal((await make(body, { key })).status, status, JSON.stringify(body));
      }
      const wide = await make();
      const path = `${KEYS}/${wide.body.id}/rotate`;
      assert.equal((await service.call("POST", path, { key })).status, 403);
    });
    const bad: [string, Record<string, unknown>, string][] = [
      ["an unknown scope", { scopes: ["everything"] }, "scopes[0]"],
      ["no scope", { scopes: [] }, "scopes"],
      ["an expiry in the past", { expires_at: "2020-01-01T00:00:00Z" }, "expires_at"],
      ["no name", { name: "" }, "name"],
    ];
    for (const [name, body, param] of bad) {
      await t.step(`${name} is 400`, async () => {
        const refused = await make(body);
        assert.equal(refused.status, 400, refused.text);
        assert.equal(refused.body.error.param, param);
      });
    }
    await t.step("a name that looks like a stored secret is returned as the name", async () => {
      const name = `key_reference:${"0".repeat(32)}:abcd`;
      const made = await make({ name }, { idempotency_key: "name" });
      assert.equal(made.status, 201, made.text);
      assert.equal(made.body.name, name);
      assert.equal(await works(made.body.secret), 200);
      assert.equal((await make({ name }, { idempotency_key: "name" })).text, made.text);
    });
    await t.step("a live key cannot create keys", async () => {
      assert.equal((await make({}, { key: service.live.text })).status, 403);
    });
    await t.step("last_used_at is set by use", async () => {
      const list = await service.call("GET", `${KEYS}?limit=100`);
      // deno-lint-ignore no-explicit-any
      const own = list.body.data.find((key: any) => key.id === service.key.id);
      assert.ok(own.last_used_at);
    });
  } finally {
    await service.close();
  }
});
