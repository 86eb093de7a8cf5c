/**
 * API keys over HTTP: creation, rotation, revocation and expiry. An expiry belongs to the key, an
 * overlap belongs to the secret, and both are limited.
 */

import assert from "node:assert/strict";
import type { TestResponse, TestService } from "../support/service/service.ts";
import { startSecondService } from "../support/service/second_service.ts";
import { assertRefused, PAYMENTS, SANDBOX, serviceCase } from "../support/service/service_case.ts";

const KEYS = "/api-v1-payments/v1/api_keys";
const MINUTE = 60_000;
/** The number of secrets of a key that work at the same time. */
const MAX_LIVE = 5;
const LONGEST_OVERLAP_S = 604_800;
const ROTATIONS = 60;

function make(service: TestService, body = {}, key?: string) {
  return service.post(KEYS, { name: "made", ...body }, key ? { key } : {});
}

function rotate(
  service: TestService,
  id: string,
  expires_in: number | undefined,
  options: { key?: string; idempotency_key?: string } = {},
): Promise<TestResponse> {
  const body = expires_in === undefined ? {} : { expires_in };
  return service.call("POST", `${KEYS}/${id}/rotate`, { body, ...options });
}

/** For each key text, whether a request with it succeeds. */
async function working(service: TestService, texts: string[]): Promise<boolean[]> {
  const open: boolean[] = [];
  for (const key of texts) {
    open.push((await service.call("GET", PAYMENTS, { key })).status === 200);
  }
  return open;
}

const storedSecrets = ({ count }: TestService, id: string) =>
  count(`api_key_secrets where api_key_id = '${id}'`);

function iso(at_ms: number): string {
  return new Date(at_ms).toISOString();
}

serviceCase("API keys", async (t, service) => {
  await t.step("rotate adds a secret; DELETE ends all, and can be repeated", async () => {
    const { id, secret } = await make(service);
    assert.match(secret, /^sk_test_[0-9A-Za-z]{49}$/);
    const turned = await rotate(service, id, 60);
    assert.equal(turned.status, 200, turned.text);
    const texts = [secret, turned.body.secret];
    assert.deepEqual(await working(service, texts), [true, true]);
    const gone = await service.call("DELETE", `${KEYS}/${id}`);
    assert.equal(gone.status, 200, gone.text);
    assert.ok(gone.body.revoked_at);
    assert.deepEqual(await working(service, texts), [false, false]);
    const again = await service.call("DELETE", `${KEYS}/${id}`);
    assert.deepEqual([again.status, again.body], [200, gone.body]);
    assert.deepEqual(await service.get(`${KEYS}/${id}`), gone.body);
    const refused = await rotate(service, id, undefined);
    assertRefused(refused, "invalid_state");
    const { current_status, allowed } = refused.body.error;
    assert.deepEqual([current_status, allowed], ["ended", []]);
  });
  await t.step("an idempotency key stays valid after a rotation", async () => {
    const { id, secret } = await make(service);
    const first = await service.pay({}, { key: secret, idempotency_key: "p" });
    const turned = await rotate(service, id, undefined);
    const again = await service.pay({}, { key: turned.body.secret, idempotency_key: "p" });
    assert.equal(again.text, first.text);
  });
  await t.step("a key cannot create or rotate a key with more scopes", async () => {
    const { secret: key } = await make(service, { scopes: ["keys:write", "payments:read"] });
    const cases: [Record<string, unknown>, number][] = [
      [{ scopes: ["payments:read"] }, 201],
      [{ scopes: ["payments:write"] }, 403],
      [{}, 403],
    ];
    for (const [more, status] of cases) {
      const made = await service.call("POST", KEYS, { body: { name: "made", ...more }, key });
      assert.equal(made.status, status, JSON.stringify(more));
    }
    const wide = await make(service);
    assert.equal((await rotate(service, wide.id, undefined, { key })).status, 403);
  });
  await t.step("a live key makes none, and none begins after its end", async () => {
    const body = { name: "x" };
    const { text: key } = service.live;
    assertRefused(await service.call("POST", KEYS, { body, key }), "test_key_required");
    const past = { ...body, expires_at: "2020-01-01T00:00:00Z" };
    assertRefused(
      await service.call("POST", KEYS, { body: past }),
      "invalid_parameter",
      "expires_at",
    );
  });
  await t.step("a name that looks like a stored secret is returned as the name", async () => {
    const name = `key_reference:${"0".repeat(32)}:abcd`;
    const send = () => service.call("POST", KEYS, { body: { name }, idempotency_key: "name" });
    const made = await send();
    assert.equal(made.status, 201, made.text);
    assert.equal(made.body.name, name);
    assert.deepEqual(await working(service, [made.body.secret]), [true]);
    assert.equal((await send()).text, made.text);
  });
});

serviceCase("POST /v1/api_keys/{id}/rotate keeps at most five secrets", async (t, service) => {
  const { id, secret } = await make(service);
  const texts = [secret];
  await t.step(`after ${ROTATIONS} long overlaps the newest five secrets work`, async () => {
    let last: TestResponse;
    for (let i = 0; i < ROTATIONS; i++) {
      last = await rotate(service, id, LONGEST_OVERLAP_S);
      texts.unshift(last.body.secret);
    }
    const newest = texts.slice(0, 8);
    assert.deepEqual(await working(service, newest), newest.map((_, i) => i < MAX_LIVE));
    assert.equal(last!.body.secrets.length, MAX_LIVE);
    // The database may still hold the secret that the last rotation has ended.
    assert.ok(await storedSecrets(service, id) <= MAX_LIVE + 1);
  });
  await t.step("the newest five work while the clock stands", async () => {
    const body = await service.post(`${SANDBOX}/sandboxes`, { seed: "still" });
    const key: string = body.test_key;
    const made = await make(service, {}, key);
    assert.match(made.secret, /^skseeded_test_/);
    const texts = [made.secret];
    for (let i = 0; i < 7; i++) {
      const { body } = await rotate(service, made.id, 3_600, { key });
      texts.unshift(body.secret);
      const shown = body.secrets.map(({ last4 }: { last4: string }) => last4);
      assert.deepEqual(shown, texts.slice(0, MAX_LIVE).map((text) => text.slice(-4)));
    }
    assert.deepEqual(await working(service, texts), texts.map((_, i) => i < MAX_LIVE));
  });
  await t.step("a rotation writes only the rows that change", async () => {
    const versions = () =>
      service.sql`select hash::text, xmin::text from pay.api_key_secrets where api_key_id = ${id}`;
    const before = new Map((await versions()).map(({ hash, xmin }) => [hash, xmin]));
    await rotate(service, id, LONGEST_OVERLAP_S);
    const kept = (await versions()).filter(({ hash, xmin }) => before.get(hash) === xmin);
    assert.ok(kept.length >= MAX_LIVE - 2, `${kept.length} unchanged rows`);
  });
  await t.step("expires_in 0 ends all older secrets now, and no response shows them", async () => {
    const last = await rotate(service, id, 0);
    assert.equal(last.body.secrets.length, 1);
    assert.deepEqual(await working(service, [last.body.secret, ...texts.slice(0, 4)]), [
      true,
      ...[false, false, false, false],
    ]);
    const shown = await service.get(`${KEYS}/${id}`);
    assert.deepEqual(shown.secrets, last.body.secrets);
  });
  await t.step("get and list leave out an ended secret", async () => {
    const made = await make(service);
    const turned = await rotate(service, made.id, 60);
    await service.setClock(Date.now() + 61_000);
    const texts = [made.secret, turned.body.secret];
    assert.deepEqual(await working(service, texts), [false, true]);
    const shown = await service.get(`${KEYS}/${made.id}`);
    assert.equal(shown.secrets.length, 1);
    const list = await service.get(`${KEYS}?limit=1`);
    assert.deepEqual(list.data, [shown]);
    await service.setClock(null);
  });
  await t.step("last_used_at stays after the secret that was used has ended", async () => {
    const made = await make(service);
    await working(service, [made.secret]);
    const used = (await service.get(`${KEYS}/${made.id}`)).last_used_at;
    assert.ok(used);
    await rotate(service, made.id, 0);
    await rotate(service, made.id, 0);
    const of_key = `api_key_secrets where api_key_id = '${made.id}'`;
    assert.equal(await service.count(`${of_key} and last_used_at is not null`), 0, "it is deleted");
    assert.equal((await service.get(`${KEYS}/${made.id}`)).last_used_at, used);
  });
});

serviceCase("POST /v1/api_keys/{id}/rotate 40 times at once leaves five", async (_t, service) => {
  const second = startSecondService(service);
  try {
    const { id } = await make(service);
    const responses = await Promise.all(
      Array.from(
        { length: 40 },
        (_, i) =>
          [service, second][i % 2]!.call("POST", `${KEYS}/${id}/rotate`, {
            body: { expires_in: LONGEST_OVERLAP_S },
          }),
      ),
    );
    assert.deepEqual([...new Set(responses.map(({ status }) => status))], [200]);
    const open = await working(service, responses.map(({ body }) => body.secret));
    assert.equal(open.filter(Boolean).length, MAX_LIVE);
  } finally {
    await second.close();
  }
});

serviceCase("the expiry of an API key", async (t, service) => {
  await t.step("a key that rotates itself with its older secret does not expire", async () => {
    const made = await make(service);
    const second = (await rotate(service, made.id, 60)).body;
    const third = (await rotate(service, made.id, 60, { key: made.secret })).body;
    assert.equal(third.expires_at, null);
    assert.equal(third.secrets[0].expires_at, null);
    await service.setClock(Date.now() + 61_000);
    assert.deepEqual(await working(service, [made.secret, second.secret, third.secret]), [
      ...[false, false, true],
    ]);
    await service.setClock(null);
  });
  await t.step("a new secret of an expiring key ends with the key", async () => {
    const end = Date.now() + 10 * MINUTE;
    const made = await make(service, { expires_at: iso(end) });
    assert.equal(made.expires_at, iso(end));
    const turned = (await rotate(service, made.id, 60)).body;
    const again = (await rotate(service, made.id, LONGEST_OVERLAP_S, { key: made.secret })).body;
    assert.deepEqual([turned.expires_at, again.expires_at], [iso(end), iso(end)]);
    assert.equal(again.secrets[0].expires_at, iso(end));
    const texts = [made.secret, turned.secret, again.secret];
    await service.setClock(end - 1);
    assert.deepEqual(await working(service, texts), [false, true, true]);
    await service.setClock(end);
    assert.deepEqual(await working(service, texts), [false, false, false]);
    await service.setClock(null);
  });
  await t.step("an expiring key creates keys that end when it does, or earlier", async () => {
    const end = Date.now() + 10 * MINUTE;
    const parent = await make(service, { expires_at: iso(end) });
    const cases: [requested: string | undefined, given: string][] = [
      [undefined, iso(end)],
      [iso(end + MINUTE), iso(end)],
      [iso(end - MINUTE), iso(end - MINUTE)],
    ];
    for (const [expires_at, given] of cases) {
      const child = await make(service, expires_at ? { expires_at } : {}, parent.secret);
      assert.deepEqual([child.expires_at, child.secrets[0].expires_at], [given, given]);
    }
  });
  await t.step("an expiring key cannot rotate a key that ends later", async () => {
    const end = Date.now() + 10 * MINUTE;
    const short = await make(service, { expires_at: iso(end) });
    for (const body of [{}, { expires_at: iso(end + 1) }]) {
      const long = await make(service, body);
      const refused = await rotate(service, long.id, 0, { key: short.secret });
      assertRefused(refused, "permission_denied");
      assert.deepEqual(await working(service, [long.secret]), [true]);
    }
    const same = await make(service, { expires_at: iso(end) });
    assert.equal((await rotate(service, same.id, 0, { key: short.secret })).status, 200);
  });
});

serviceCase("an expired API key", async (t, service) => {
  const end = Date.now() + MINUTE;
  const { id } = await make(service, { expires_at: iso(end) });
  const shown = async () => (await service.call("GET", `${KEYS}/${id}`)).text;
  await service.setClock(end);
  const before = await shown();
  const [row] = await service.sql`select xmin::text from pay.api_keys where id = ${id}`;
  await t.step("is not rotated by another key: a 409 that is stored, and no change", async () => {
    const refused = await rotate(service, id, 60, { idempotency_key: "late" });
    assertRefused(refused, "invalid_state");
    const again = await rotate(service, id, 60, { idempotency_key: "late" });
    assert.equal(again.text, refused.text);
    assert.equal(again.headers.get("Idempotent-Replayed"), "true");
    assertRefused(await rotate(service, id, 60), "invalid_state");
    assert.equal(await shown(), before);
    const [now] = await service.sql`select xmin::text from pay.api_keys where id = ${id}`;
    assert.deepEqual(now, row);
    assert.equal(await storedSecrets(service, id), 1);
  });
  await t.step("can be revoked", async () => {
    assert.equal((await service.call("DELETE", `${KEYS}/${id}`)).status, 200);
    const refused = await rotate(service, id, 60);
    assertRefused(refused, "invalid_state");
    assert.equal(refused.body.error.current_status, "ended");
  });
});
