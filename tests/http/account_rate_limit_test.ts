/**
 * The rate limit of an account beside the limits of its keys: the requests that count, and the
 * headers of each response. New keys, resets, slow requests and a second instance do not renew the
 * limit.
 */

import assert from "node:assert/strict";
import { commit, created, NOW } from "../support/database/commit_list.ts";
import { startSecondService } from "../support/service/second_service.ts";
import type { TestKey, TestResponse, TestService } from "../support/service/service.ts";
import { PAYMENTS, SANDBOX, serviceCase } from "../support/service/service_case.ts";

const V1 = "/api-v1-payments/v1";
/** Requests a second of a key and of an account. A window lasts two seconds. */
const KEY_RATE = 5;
const ACCOUNT_RATE = 12;
const KEY_QUOTA = 2 * KEY_RATE;
const QUOTA = 2 * ACCOUNT_RATE;
const LIMITS = { rate_limit: KEY_RATE, account_rate_limit: ACCOUNT_RATE };
/**
 * The number of requests that the other instance may have in progress: 64 changes in one statement,
 * or a read on each connection.
 */
const MAX_OVER = 64;
/** The start of a window. */
const START = Date.parse("2030-01-01T00:00:00Z");
const WINDOWS = 100_000;

/** Sends requests until a 429. Returns the number of admitted ones. */
async function exhaust(service: TestService, key: string): Promise<number> {
  for (let admitted = 0; admitted < 2 * QUOTA; admitted++) {
    const { status } = await service.call("GET", PAYMENTS, { key });
    if (status === 429) return admitted;
    assert.equal(status, 200);
  }
  throw new Error("never limited");
}

async function exhaustAll(service: TestService, keys: TestKey[]): Promise<number[]> {
  const admitted = [];
  for (const { text } of keys) admitted.push(await exhaust(service, text));
  return admitted;
}

async function issue(service: TestService, count: number): Promise<TestKey[]> {
  const keys: TestKey[] = [];
  while (keys.length < count) keys.push(await service.issueKey(service.key.environment_id));
  return keys;
}

function left({ headers }: TestResponse): string | null {
  return headers.get("RateLimit");
}

serviceCase("the rate limit of an account", async (t, service) => {
  const keys = [service.key, ...await issue(service, 3)];
  await t.step("is shared by its keys", async () => {
    await service.setClock(START);
    assert.deepEqual(await exhaustAll(service, keys), [KEY_QUOTA, KEY_QUOTA, 4, 0]);
  });
  await t.step(
    "is not shared with another account, nor with the live keys of the same",
    async () => {
      assert.equal(await exhaust(service, service.other.text), KEY_QUOTA);
      assert.equal(await exhaust(service, service.live.text), KEY_QUOTA);
    },
  );
  await t.step("slides like the limit of a key", async () => {
    await service.setClock(START + 3000);
    assert.deepEqual(await exhaustAll(service, keys), [KEY_RATE, KEY_RATE, 2, 0]);
  });
  await t.step("is in every response when less of it is left than of the key's", async () => {
    await service.setClock(START + WINDOWS);
    const told: (string | null)[] = [];
    for (const [i, { text }] of keys.slice(0, 3).entries()) {
      for (let n = 0; n < (i < 2 ? KEY_QUOTA - 1 : 1); n++) {
        const response = await service.call("GET", PAYMENTS, { key: text });
        assert.equal(response.headers.get("RateLimit-Policy"), `"default";q=${KEY_QUOTA};w=2`);
        if (n === 0) told.push(left(response));
      }
    }
    assert.deepEqual(told, [9, 9, 5].map((rest) => `"default";r=${rest};t=2`));
  });
  await t.step("refuses every kind of request of every key with 429", async () => {
    await service.setClock(START + 2 * WINDOWS);
    const body = { amount: 1, currency: "EUR" };
    const first = await service.pay(body, { idempotency_key: "first" });
    await service.setClock(START + 3 * WINDOWS);
    await exhaustAll(service, keys.slice(1));
    const cases: [string, string, Record<string, unknown>?][] = [
      ["POST", PAYMENTS, { body }],
      ["POST", PAYMENTS, { body, idempotency_key: "new" }],
      ["POST", PAYMENTS, { body: {} }],
      ["POST", `${PAYMENTS}/${first.body.id}/cancel`],
      ["POST", `${V1}/api_keys`, { body: { name: "x" }, idempotency_key: "key" }],
      ["POST", `${V1}/webhook_endpoints`, { body: { url: "http://127.0.0.1:47999/" } }],
      ["GET", `${PAYMENTS}?status=completed`],
      ["GET", `${PAYMENTS}/${first.body.id}`],
      ["GET", `${V1}/balance`],
      ["GET", `${V1}/nothing`],
      ["POST", `${SANDBOX}/reset`],
    ];
    for (const [method, path, options] of cases) {
      const response = await service.call(method, path, options ?? {});
      assert.equal(response.status, 429, `${method} ${path}: ${response.text}`);
      assert.equal(left(response), `"default";r=0;t=2`);
    }
    const replay = await service.pay(body, { idempotency_key: "first" });
    assert.deepEqual([replay.status, replay.text], [201, first.text]);
  });
}, LIMITS);

serviceCase("the rate limit of an account with disposable sandboxes", async (_, service) => {
  const sandboxes: string[] = [];
  for (let i = 0; i < 4; i++) {
    await service.setClock(START + i * WINDOWS);
    const { body } = await service.call("POST", `${SANDBOX}/sandboxes`, { body: {} });
    sandboxes.push(body.test_key);
  }
  await service.setClock(START + 4 * WINDOWS);
  const admitted: number[] = [];
  for (const key of sandboxes) admitted.push(await exhaust(service, key));
  assert.deepEqual(admitted, [KEY_QUOTA, KEY_QUOTA, 4, 0]);
  assert.equal(await exhaust(service, service.key.text), 0);
  assert.equal(await exhaust(service, service.live.text), KEY_QUOTA);
}, LIMITS);

serviceCase("the rate limit of an account is not renewed by", async (t, service) => {
  const keys = [service.key, ...await issue(service, 3)];
  await t.step("new keys in place of revoked ones", async () => {
    await service.setClock(START);
    let admitted = 0;
    for (let i = 0; i < 8; i++) {
      const [key] = await issue(service, 1);
      admitted += await exhaust(service, key!.text);
      await service.sql`select pay.revoke_api_key(${key!.id})`;
      await service.sql`select pay.purge()`;
    }
    assert.equal(admitted, QUOTA);
  });
  await t.step("a reset", async () => {
    await service.setClock(START + WINDOWS);
    const reset = await service.call("POST", `${SANDBOX}/reset`);
    assert.equal(reset.status, 200, reset.text);
    assert.deepEqual(await exhaustAll(service, keys), [KEY_QUOTA - 1, KEY_QUOTA, 4, 0]);
  });
  await t.step("a request that began long before the current window", async () => {
    await service.setClock(START + 2 * WINDOWS);
    await exhaustAll(service, keys);
    for (const earlier_ms of [2_000, 10_000, 120_000, 299_000]) {
      await service.setClock(START + 2 * WINDOWS - earlier_ms);
      for (const { text } of keys) assert.equal(await exhaust(service, text), 0);
    }
    await service.setClock(START + 2 * WINDOWS);
    assert.deepEqual(await exhaustAll(service, keys), [0, 0, 0, 0]);
  });
  await t.step("retention while its window lasts", async () => {
    await service.setClock(null);
    for (const { text } of keys) await service.call("GET", PAYMENTS, { key: text });
    const counters = () =>
      service.sql`
      with clock as (select floor(extract(epoch from now()) / 2)::bigint as number)
      select from pay.rate_counters c, clock
      where c.window_number between clock.number - 5000 and clock.number + 5`;
    const before = (await counters()).length;
    await service.sql`select pay.purge()`;
    assert.ok(before >= keys.length);
    assert.equal((await counters()).length, before);
    await service.sql`update pay.rate_counters set window_number = window_number - 2000
      where window_number <= floor(extract(epoch from now()) / 2)`;
    await service.sql`select pay.purge()`;
    assert.equal((await counters()).length, 0);
  });
}, LIMITS);

serviceCase("pay.commit() counts a list against both rate limits", async (t, service) => {
  const keys = [service.key, ...await issue(service, 7)];
  const list = async (rate_limits: { key: number; account: number }, at_ms: number) =>
    await commit(
      service.sql,
      await Promise.all(Array.from({ length: 64 }, async (_, i) => ({
        change: await created(),
        key: keys[i % keys.length]!.text,
        at_ms,
        rate_limits,
      }))),
    );
  /**
   * [limits, changes that commit, remaining requests after the first and after the last of them]
   */
  const cases: [{ key: number; account: number }, number, number, number][] = [
    [{ key: 100, account: 10 }, 20, 19, 0],
    [{ key: 1, account: 100 }, 16, 1, 0],
    [{ key: 3, account: 20 }, 40, 5, 0],
    [{ key: 0, account: 5 }, 10, 9, 0],
    [{ key: 2, account: 0 }, 32, 3, 0],
    [{ key: 100, account: 400 }, 64, 199, 192],
  ];
  for (const [i, [limits, committed, first, last]] of cases.entries()) {
    await t.step(`${JSON.stringify(limits)}: ${committed} of 64 commit`, async () => {
      const rows = await list(limits, NOW + i * WINDOWS);
      const done = rows.filter(({ outcome }) => outcome === "committed");
      assert.equal(done.length, committed);
      assert.ok(rows.every(({ outcome }) => ["committed", "rate_limited"].includes(outcome)));
      assert.deepEqual([done[0]!.remaining, done.at(-1)!.remaining], [first, last]);
      if (committed === 64) return;
      const again = await list(limits, NOW + i * WINDOWS);
      assert.ok(again.every(({ outcome }) => outcome === "rate_limited"));
    });
  }
});

serviceCase("the rate limit of an account with 100 keys on two instances", async (t, first) => {
  const keys = [first.key, ...await issue(first, 99)];
  const second = startSecondService(first, { ...LIMITS, clock: () => START });
  await first.setClock(START);
  try {
    const body = { amount: 1, currency: "EUR" };
    const kinds: [string, (i: number, key: string) => Promise<TestResponse>][] = [
      ["creates", (i, key) => [first, second][i % 2]!.call("POST", PAYMENTS, { key, body })],
      ["reads", (i, key) => [first, second][i % 2]!.call("GET", PAYMENTS, { key })],
    ];
    for (const [name, send] of kinds) {
      await t.step(`400 ${name} at once exceed the limit by at most ${MAX_OVER}`, async () => {
        await first.sql`delete from pay.rate_counters`;
        const responses = await Promise.all(
          Array.from({ length: 400 }, (_, i) => send(i, keys[Math.floor(i / 4)]!.text)),
        );
        assert.ok(responses.every(({ status }) => [200, 201, 429].includes(status)));
        const over = responses.filter(({ status }) => status < 300).length - QUOTA;
        console.log(`${name}: ${over} over the limit of ${QUOTA}`);
        assert.ok(over >= 0 && over <= MAX_OVER, `${over} over the limit`);
        for (const { text } of keys.slice(0, 5)) assert.equal((await send(0, text)).status, 429);
      });
    }
  } finally {
    await second.close();
  }
}, LIMITS);
