/**
 * The rate limits of a key and of its account: the burst, the sliding window, the requests that
 * count, the headers of each response, and how little several instances can exceed them. The
 * requests that are replayed are in idempotency_catalogue_test.ts.
 */

import assert from "node:assert/strict";
import postgres from "postgres";
import { parseApiKey } from "../../shared/core/api_key.ts";
import { commit, created, NOW } from "../support/database/commit_list.ts";
import { untilWaiting } from "../support/database/lock_waits.ts";
import { startSecondService } from "../support/service/second_service.ts";
import type { TestKey, TestResponse, TestService } from "../support/service/service.ts";
import { PAYMENTS, SANDBOX, serviceCase } from "../support/service/service_case.ts";
import { ENDPOINTS } from "../support/webhook/recording_receiver.ts";

const V1 = "/api-v1-payments/v1";
/** Requests a second of a key and of an account. A window lasts two seconds. */
const KEY_RATE = 5;
const ACCOUNT_RATE = 12;
const KEY_QUOTA = 2 * KEY_RATE;
const ACCOUNT_QUOTA = 2 * ACCOUNT_RATE;
const OF_KEY = { rate_limit: KEY_RATE };
const OF_ACCOUNT = { ...OF_KEY, account_rate_limit: ACCOUNT_RATE };
/** The start of a window. */
const START = Date.parse("2030-01-01T00:00:00Z");
/** A time in which all limits are full again. */
const WINDOWS = 100_000;
const EUR = { amount: 1, currency: "EUR" };

/** Sends requests until a 429. Returns the number of admitted ones. */
async function exhaust(service: TestService, key = service.key.text): Promise<number> {
  for (let admitted = 0; admitted < 3 * ACCOUNT_QUOTA; admitted++) {
    const { status } = await service.call("GET", PAYMENTS, { key });
    if (status === 429) return admitted;
    assert.equal(status, 200);
  }
  throw new Error("never limited");
}

async function exhaustAll(service: TestService, keys: readonly { text: string }[]) {
  const admitted: number[] = [];
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

type Request = [method: string, path: string, options?: Record<string, unknown>];

/** Every kind of request, of which some would be refused for another reason. */
const KINDS: Request[] = [
  ["POST", PAYMENTS, { body: EUR }],
  ["POST", PAYMENTS, { body: EUR, idempotency_key: "new" }],
  ["POST", PAYMENTS, { body: {} }],
  ["POST", PAYMENTS, { body: { ...EUR, amount: 2 }, idempotency_key: "first" }],
  ["POST", `${PAYMENTS}/pay_${"0".repeat(26)}/cancel`],
  ["POST", `${V1}/api_keys`, { body: { name: "x" }, idempotency_key: "key" }],
  ["POST", ENDPOINTS, { body: { url: "http://127.0.0.1:47999/" } }],
  ["POST", `${SANDBOX}/reset`],
  ["GET", `${PAYMENTS}?status=completed`],
  ["GET", `${PAYMENTS}/pay_${"0".repeat(26)}`],
  ["GET", `${V1}/balance`],
  ["GET", `${V1}/nothing`],
];

/** Asserts that every kind of request gets 429. */
async function assertLimited(service: TestService): Promise<void> {
  for (const [method, path, options] of KINDS) {
    const response = await service.call(method, path, options ?? {});
    assert.equal(response.status, 429, `${method} ${path}: ${response.text}`);
    assert.equal(response.body.error.code, "rate_limited");
    assert.match(response.headers.get("Retry-After")!, /^[1-9]\d*$/);
    assert.equal(left(response), `"default";r=0;t=2`);
  }
}

serviceCase("the rate limit of a key", async (t, service) => {
  /** [ms after the burst, requests admitted then]. The burst's weight fades over two seconds. */
  const slides = [[0, 0], [1999, 0], [2000, 0], [2200, 1], [2500, 2], [3000, 5], [3800, 9]];
  for (const [i, [later_ms, admitted]] of [...slides, [4000, 10], [60_000, 10]].entries()) {
    await t.step(`${later_ms} ms after a burst of ${KEY_QUOTA} it admits ${admitted}`, async () => {
      const start = START + i * 1_000_000;
      await service.setClock(start);
      assert.equal(await exhaust(service), KEY_QUOTA);
      await service.setClock(start + later_ms!);
      assert.equal(await exhaust(service), admitted);
    });
  }
  await t.step("is not shared with another key of the environment", async () => {
    await service.setClock(START + 20_000_000);
    const [key] = await issue(service, 1);
    await exhaust(service);
    assert.equal(await exhaust(service, key!.text), KEY_QUOTA);
  });
  await t.step("is shared by the secrets of a key", async () => {
    await service.setClock(START + 21_000_000);
    const made = await service.post(`${V1}/api_keys`, { name: "two" });
    const path = `${V1}/api_keys/${made.id}/rotate`;
    const turned = await service.post(path, { expires_in: 600 });
    await exhaust(service, made.secret);
    assert.equal(await exhaust(service, turned.secret), 0);
  });
  await t.step("every authenticated response states the policy and the remainder", async () => {
    const { text: narrow } = await service.issueKey(service.key.environment_id, {
      scopes: ["payments:read"],
    });
    const kinds: Request[] = [
      ...KINDS,
      ["POST", PAYMENTS, { body: EUR, key: narrow }],
      ["GET", `${V1}/balance`, { key: narrow }],
    ];
    for (const [i, [method, path, options]] of kinds.entries()) {
      await service.setClock(START + 30_000_000 + i * 10_000);
      const response = await service.call(method, path, options ?? {});
      const shown = `"default";r=${KEY_QUOTA - 1};t=2`;
      assert.equal(left(response), shown, `${response.status} ${method} ${path}`);
      assert.equal(response.headers.get("RateLimit-Policy"), `"default";q=${KEY_QUOTA};w=2`);
    }
  });
  await t.step("beyond the limit every kind of request is 429", async () => {
    await service.setClock(START + 40_000_000);
    await exhaust(service);
    await assertLimited(service);
  });
}, OF_KEY);

serviceCase("the rate limit of an account", async (t, service) => {
  const keys = [service.key, ...await issue(service, 3)];
  await t.step("is shared by its keys", async () => {
    await service.setClock(START);
    assert.deepEqual(await exhaustAll(service, keys), [KEY_QUOTA, KEY_QUOTA, 4, 0]);
  });
  await t.step("is not shared with another account, nor with live keys of the same", async () => {
    const others = [service.other, service.live];
    assert.deepEqual(await exhaustAll(service, others), [KEY_QUOTA, KEY_QUOTA]);
  });
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
  await t.step("refuses every kind of request of every key with 429, but no replay", async () => {
    await service.setClock(START + 2 * WINDOWS);
    const first = await service.pay(EUR, { idempotency_key: "first" });
    await service.setClock(START + 3 * WINDOWS);
    await exhaustAll(service, keys.slice(1));
    await assertLimited(service);
    const replay = await service.pay(EUR, { idempotency_key: "first" });
    assert.deepEqual([replay.status, replay.text], [201, first.text]);
  });
  await t.step("is that of its disposable sandboxes", async () => {
    const sandboxes: { text: string }[] = [];
    for (let i = 0; i < 4; i++) {
      await service.setClock(START + (4 + i) * WINDOWS);
      const body = await service.post(`${SANDBOX}/sandboxes`, {});
      sandboxes.push({ text: body.test_key });
    }
    await service.setClock(START + 8 * WINDOWS);
    const all = [...sandboxes, service.key, service.live];
    assert.deepEqual(await exhaustAll(service, all), [KEY_QUOTA, KEY_QUOTA, 4, 0, 0, KEY_QUOTA]);
  });
}, OF_ACCOUNT);

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
    assert.equal(admitted, ACCOUNT_QUOTA);
  });
  await t.step("a reset", async () => {
    await service.setClock(START + WINDOWS);
    await service.post(`${SANDBOX}/reset`);
    assert.deepEqual(await exhaustAll(service, keys), [KEY_QUOTA - 1, KEY_QUOTA, 4, 0]);
  });
  await t.step("a request that began long before the current window", async () => {
    await service.setClock(START + 2 * WINDOWS);
    await exhaustAll(service, keys);
    for (const earlier_ms of [2_000, 10_000, 120_000, 299_000, 0]) {
      await service.setClock(START + 2 * WINDOWS - earlier_ms);
      assert.deepEqual(await exhaustAll(service, keys), [0, 0, 0, 0]);
    }
  });
  await t.step("retention while its window lasts", async () => {
    await service.setClock(null);
    for (const { text } of keys) await service.call("GET", PAYMENTS, { key: text });
    const counters = () =>
      service.count(`rate_counters c, floor(extract(epoch from now()) / 2) clock
        where c.window_number between clock - 5000 and clock + 5`);
    const before = await counters();
    await service.sql`select pay.purge()`;
    assert.ok(before >= keys.length);
    assert.equal(await counters(), before);
    await service.sql`update pay.rate_counters set window_number = window_number - 2000
      where window_number <= floor(extract(epoch from now()) / 2)`;
    await service.sql`select pay.purge()`;
    assert.equal(await counters(), 0);
  });
}, OF_ACCOUNT);

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
  /** [limits, changes that commit, remaining requests after the first and the last of them] */
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

/**
 * Requests of a change that another change of its resource makes stale between its load and its
 * commit: the service decides them twice.
 */
const ENDPOINT = { table: "webhook_endpoints", meanwhile: "revision = revision + 1" };
const STALE: { table: string; method: string; path: string; meanwhile: string }[] = [
  { ...ENDPOINT, method: "PUT", path: `${ENDPOINTS}/{id}` },
  { ...ENDPOINT, method: "POST", path: `${ENDPOINTS}/{id}/rotate_secret` },
  { ...ENDPOINT, method: "DELETE", path: `${ENDPOINTS}/{id}` },
  {
    table: "payments",
    method: "POST",
    path: `${PAYMENTS}/{id}/cancel`,
    meanwhile: `sequence = sequence + 1, body = replace(body,
      '"sequence":' || sequence, '"sequence":' || sequence + 1)`,
  },
];

serviceCase("the last request of a rate counts once, though decided twice", async (t, service) => {
  for (const [i, { table, method, path, meanwhile }] of STALE.entries()) {
    await t.step(`${method} ${path}`, async () => {
      await service.setClock(START + i * 20_000);
      const url = "http://127.0.0.1:47999/hook";
      const { body: { id } } = table === "payments"
        ? await service.make({ outcome: "pending" })
        : await service.call("POST", ENDPOINTS, { body: { url } });
      await service.setClock(START + i * 20_000 + 10_000);
      for (let n = 1; n < KEY_QUOTA; n++) await service.call("GET", PAYMENTS);
      const changed = await service.sql.begin(async (sql) => {
        await sql.unsafe(`update pay.${table} set ${meanwhile} where id = '${id}'`);
        const options = method === "DELETE" ? {} : { body: {} };
        const response = service.call(method, path.replace("{id}", id), options);
        await Promise.race([untilWaiting(service.sql), response]);
        return { response };
      });
      const response = await changed.response;
      assert.equal(response.status, 200, response.text);
      assert.equal(left(response), `"default";r=0;t=2`);
      assert.equal((await service.call("GET", PAYMENTS)).status, 429);
    });
  }
}, OF_KEY);

const POOL = 10;
/** Requests at once: above the limit, and low enough for a busy machine. */
const REQUESTS = 200;
/**
 * The number of requests that the other isolate may have in progress: 64 changes in one statement,
 * or a read on each connection.
 */
const MAX_OVER = 64;
/** Limits on two isolates, and the number of keys that share the requests. */
const RACES = [
  ["of a key", { rate_limit: 20, max_connections: POOL }, 1, 40],
  ["of an account with 100 keys", OF_ACCOUNT, 100, ACCOUNT_QUOTA],
] as const;

for (const [whose, limits, key_count, quota] of RACES) {
  serviceCase(`the rate limit ${whose} on two isolates`, async (t, first) => {
    const second = startSecondService(first, { ...limits, clock: () => START });
    await first.setClock(START);
    try {
      const keys = key_count === 1 ? [] : [first.key, ...await issue(first, key_count - 1)];
      const kinds: [name: string, (i: number) => Request][] = [
        ["creates", () => ["POST", PAYMENTS, { body: EUR }]],
        ["reads", () => ["GET", PAYMENTS]],
        ["keyed creates", (i) => ["POST", PAYMENTS, { body: EUR, idempotency_key: `k${i}` }]],
      ];
      for (const [name, make] of kinds) {
        await t.step(`${name} at once exceed the limit by at most ${MAX_OVER}`, async () => {
          await first.sql`delete from pay.rate_counters`;
          const used = keys.length > 0 ? keys : await issue(first, 1);
          const count = Math.max(REQUESTS, 4 * used.length);
          const send = async (i: number, { text: key }: TestKey) => {
            const [method, path, options] = make(i);
            return (await [first, second][i % 2]!.call(method, path, { ...options, key })).status;
          };
          const statuses = await Promise.all(
            Array.from(
              { length: count },
              (_, i) => send(i, used[Math.floor(i / 4) % used.length]!),
            ),
          );
          assert.ok(statuses.every((status) => [200, 201, 429].includes(status)));
          const over = statuses.filter((status) => status < 300).length - quota;
          console.log(`${name}: ${over} over the limit of ${quota}`);
          assert.ok(over >= 0 && over <= MAX_OVER, `${over} over the limit`);
          for (const key of used.slice(0, 5)) assert.equal(await send(count, key), 429);
        });
      }
    } finally {
      await second.close();
    }
  }, limits);
}

serviceCase("counting a request never waits for an open transaction", async (t, service) => {
  await t.step("of a new key with 80 requests that have not committed", async () => {
    const [key] = await issue(service, 1);
    await holdOpen(service, key!, 80);
    const [row] = await service.sql`
      select count(*)::int as stripes, sum(current_count)::int as counted from pay.rate_counters
      where api_key_id = ${key!.id}`;
    assert.deepEqual(row, { stripes: 64, counted: 64 });
  });
  await t.step("of a key whose stripes are locked; a create succeeds meanwhile", async () => {
    const [key] = await issue(service, 1);
    await holdOpen(service, key!, 5);
    await holdOpen(service, key!, 30, async () => {
      const made = await service.pay({}, { key: key!.text });
      assert.equal(made.status, 201, made.text);
    });
  });
}, { rate_limit: 1000 });

/**
 * Opens this many transactions one after another, each with a counted request, before any of them
 * commits.
 */
async function holdOpen(
  service: TestService,
  key: TestKey,
  requests: number,
  meanwhile: () => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  const sql = postgres(service.database.functions_url, { max: requests, onnotice: () => {} });
  try {
    const held: postgres.ReservedSql[] = [];
    for (let i = 0; i < requests; i++) {
      const connection = await sql.reserve();
      held.push(connection);
      await connection`begin`;
      // A request that waits for a lock fails here.
      await connection`set local lock_timeout = '500ms'`;
      const [row] = await connection`
        select outcome from pay.load(p_requests => json_build_array(json_build_object(
          'n', 1, 'key_hash', ${parseApiKey(key.text)!.hash}::text, 'at', now(),
          'rate', json_build_array(1000, 0)))::text)`;
      assert.equal(row!.outcome, "ok");
    }
    await meanwhile();
    for (const connection of held) {
      await connection`commit`;
      connection.release();
    }
  } finally {
    // Also closes connections that are still open after a failed assertion.
    await sql.end({ timeout: 1 });
  }
}
