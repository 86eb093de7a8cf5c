/** Authentication: 401 and its causes, no database statement for a malformed key, and scopes. */

import assert from "node:assert/strict";
import { generateApiKey } from "../../shared/core/api_key.ts";
import type { TestService } from "../support/service/service.ts";
import { pathOf, ROUTES, SCOPES } from "../support/http/routes.ts";
import { assertRefused, PAYMENTS, serviceCase } from "../support/service/service_case.ts";
import { rowCounts } from "../support/database/payment_records.ts";

/** The four texts of a 401, by the cause that each names. */
const TOLD = {
  "no header": /header is missing/,
  "no Bearer": /must begin with the word Bearer/,
  "no key": /is not an API key of this service/,
  "opens nothing": /not valid here: it is unknown, revoked or expired/,
};

type Header = (service: TestService) => string | null | Promise<string>;

/** The causes of a 401: the text of the response, and the Authorization header. */
const REFUSED: [cause: string, told: keyof typeof TOLD, header: Header][] = [
  ["no header", "no header", () => null],
  ["an empty header", "no header", () => ""],
  ["the scheme alone", "no key", () => "Bearer"],
  ["no key", "no key", () => "Bearer "],
  ["another scheme", "no Bearer", ({ key }) => `Basic ${btoa(`${key.text}:`)}`],
  ["no scheme", "no Bearer", ({ key }) => key.text],
  ["two keys", "no key", ({ key, other }) => `Bearer ${key.text} ${other.text}`],
  ["a list of keys", "no key", ({ key, other }) => `Bearer ${key.text}, Bearer ${other.text}`],
  ["a quoted key", "no key", ({ key }) => `Bearer "${key.text}"`],
  ["a key with a wrong checksum", "no key", ({ key }) => `Bearer ${twist(key.text)}`],
  ["a cut key", "no key", ({ key }) => `Bearer ${key.text.slice(0, -1)}`],
  ["a key in upper case", "no key", ({ key }) => `Bearer ${key.text.toUpperCase()}`],
  ["a key of 64 KiB", "no key", () => `Bearer sk_test_${"a".repeat(65_536)}`],
  ["an unknown key", "opens nothing", () => `Bearer ${generateApiKey("test")}`],
  ["an unknown live key", "opens nothing", () => `Bearer ${generateApiKey("live")}`],
  ["a revoked key", "opens nothing", async ({ issueKey, key, sql }) => {
    const { id, text } = await issueKey(key.environment_id);
    await sql`update pay.api_key_secrets set revoked_at = now() where api_key_id = ${id}`;
    return `Bearer ${text}`;
  }],
  ["an expired key", "opens nothing", async ({ issueKey, key }) => {
    const expires_at = new Date(Date.now() - 1_000).toISOString();
    return `Bearer ${(await issueKey(key.environment_id, { expires_at })).text}`;
  }],
];

serviceCase("a request without a valid key is 401", async (t, service) => {
  const bodies = new Map<string, Set<string>>();
  for (const [cause, told, make] of REFUSED) {
    // No statement tells whether a malformed key opens something.
    const statements = told === "opens nothing" ? 1 : 0;
    const same = bodies.get(told) ?? new Set();
    bodies.set(told, same);
    await t.step(`${cause}: 401 with "${told}", ${statements} statements`, async () => {
      const header = await make(service);
      for (const path of [PAYMENTS, "/api-v1-payments/v1/nothing", "/api-v1-payments/v1/refunds"]) {
        service.forgetStatements();
        const response = await service.call("GET", path, {
          key: null,
          headers: header === null ? {} : { Authorization: header },
        });
        service.assertStatements(statements);
        assertRefused(response, "unauthorized");
        const { request_id: _, ...error } = response.body.error;
        assert.match(error.message, TOLD[told]);
        const [, text] = header?.split(/ (.*)/) ?? [];
        assert.ok(!text || !response.text.includes(text), "the text of the key is repeated");
        same.add(JSON.stringify([error, [...response.headers.keys()].sort()]));
      }
    });
  }
  await t.step("unknown, revoked and expired keys get the same response", () => {
    for (const [told, same] of bodies) assert.equal(same.size, 1, told);
    assert.equal(bodies.size, 4);
  });
  await t.step("the case of the scheme and spaces around the key do not matter", async () => {
    for (const scheme of ["Bearer ", "bearer ", "BEARER ", "Bearer   "]) {
      const Authorization = `${scheme}${service.key.text}`;
      await service.get(PAYMENTS, { key: null, headers: { Authorization } });
    }
  });
  await t.step("a key in the URL, a cookie or another header is ignored", async () => {
    const { text } = service.key;
    for (
      const name of ["api_key", "key", "access_token", "token", "Authorization", "authorization"]
    ) {
      const headers = { Cookie: `${name}=${text}`, "X-Api-Key": text, apikey: text };
      const path = `${PAYMENTS}?${name}=${encodeURIComponent(text)}`;
      assertRefused(await service.call("GET", path, { key: null, headers }), "unauthorized");
      const bearer = `${PAYMENTS}?${name}=${encodeURIComponent(`Bearer ${text}`)}`;
      assertRefused(await service.call("GET", bearer, { key: null }), "unauthorized");
    }
  });
  await t.step("a key that is revoked between two requests admits only the first", async () => {
    const { id, text } = await service.issueKey(service.key.environment_id);
    assert.equal((await service.pay({}, { key: text })).status, 201);
    await service.sql`update pay.api_key_secrets set revoked_at = now() where api_key_id = ${id}`;
    assertRefused(await service.pay({}, { key: text }), "unauthorized");
  });
  await t.step("a key expires at the millisecond of expires_at", async () => {
    const at_ms = Date.now() + 60_000;
    const expires_at = new Date(at_ms).toISOString();
    const { text } = await service.issueKey(service.key.environment_id, { expires_at });
    for (
      const [offset_ms, expected] of [[-1, [201, 200]], [0, [401, 401]], [1, [401, 401]]] as const
    ) {
      await service.setClock(at_ms + offset_ms);
      const made = await service.pay({}, { key: text });
      const read = await service.call("GET", PAYMENTS, { key: text });
      assert.deepEqual([made.status, read.status], expected, `${offset_ms} ms`);
    }
    await service.setClock(null);
  });
});

serviceCase("a key without the required scope", async (t, service) => {
  const { environment_id } = service.key;
  const [keys, own_keys] = [new Map<string, string>(), new Map<string, string>()];
  for (const scope of SCOPES) {
    const scopes = SCOPES.filter((other) => other !== scope);
    keys.set(scope, (await service.issueKey(environment_id, { scopes })).text);
    own_keys.set(scope, (await service.issueKey(environment_id, { scopes: [scope] })).text);
  }
  for (const route of ROUTES) {
    const [method, path, scope] = route;
    if (scope === null) {
      await t.step(`${method} ${path} takes a key with any scope`, async () => {
        for (const key of own_keys.values()) {
          assert.equal((await service.call(method, path, { key })).status, 200);
        }
      });
      continue;
    }
    await t.step(`${scope}, ${method} ${path} is 403 and changes nothing`, async () => {
      const before = await rowCounts(service);
      const lacking = await service.call(method, pathOf(route), { key: keys.get(scope)! });
      assertRefused(lacking, "permission_denied");
      assert.equal(lacking.body.error.required_scope, scope);
      assert.deepEqual(await rowCounts(service), before);
      const enough = await service.call(method, pathOf(route), { key: own_keys.get(scope)! });
      assert.notEqual(enough.status, 403, enough.text);
    });
  }
});

/** Returns the key with its last character changed. */
function twist(text: string): string {
  return text.slice(0, -1) + (text.endsWith("a") ? "b" : "a");
}
