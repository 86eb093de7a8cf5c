/**
 * The limit of what the sandboxes of an account store: how exact the counted bytes are, which
 * requests are refused at the limit, and how retention, resets and several isolates change it. Also
 * the limits of resets, and the turns of accounts in retention.
 */

import assert from "node:assert/strict";
import { purgeAll } from "../support/database/purge.ts";
import type { TestService } from "../support/service/service.ts";
import { startSecondService } from "../support/service/second_service.ts";
import { APPROVED, PAYMENTS, SANDBOX, serviceCase } from "../support/service/service_case.ts";

const ENDPOINTS = "/api-v1-payments/v1/webhook_endpoints";
const GB = 2 ** 30;
/** As in supabase/schemas/storage.sql. */
const RESETS_AT_ONCE = 300;
const WAITING = 1_000;

/** Counts what is stored, as retention does. */
async function count({ sql }: TestService): Promise<void> {
  await sql.begin(async (sql) => {
    await sql`select set_config('pay.worker', 'on', true)`;
    await sql`select pay_internal.note_storage('0')`;
  });
}

/** The counted bytes of a sandbox, without its log. */
async function counted({ sql }: TestService, environment_id: string): Promise<number> {
  const [row] = await sql`select coalesce(sum(bytes), 0)::float8 as bytes from pay.sandbox_storage
    where environment_id = ${environment_id} and day <> 'infinity'`;
  return row!.bytes;
}

/** Makes the counted bytes of a sandbox a number of gigabytes. */
async function store(service: TestService, environment_id: string, gb: number): Promise<void> {
  await service.sql`
    insert into pay.sandbox_storage (environment_id, day, account, bytes)
    select id, current_date, account, ${String(Math.round(gb * GB))}::bigint
    from pay.environments where id = ${environment_id}
    on conflict on constraint sandbox_storage_pkey do update set bytes = excluded.bytes`;
  await count(service);
}

/** The bytes of all tables and their indexes. */
async function tableBytes({ sql }: TestService): Promise<number> {
  const [row] = await sql`select sum(pg_total_relation_size(c.oid))::float8 as bytes
    from pg_class c where c.relnamespace = 'pay'::regnamespace and c.relkind = 'r'`;
  return row!.bytes;
}

/** Kinds of requests, each of which is sent many times. */
const KINDS: [what: string, body: Record<string, unknown>][] = [
  ["small", APPROVED.card],
  ["with random metadata", { ...APPROVED.card, metadata: { a: "", b: "", c: "" } }],
  ["with metadata above 4 096 bytes", {
    ...APPROVED.card,
    metadata: Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`k${i}`, ""])),
  }],
  ["of two steps", { ...APPROVED.card, capture: "manual" }],
  ["that save a card", { ...APPROVED.card, save: "off_session" }],
];

serviceCase("the counted bytes are about those of the tables", async (t, service) => {
  const { environment_id } = service.key;
  for (const endpoints of [0, 4]) {
    for (let n = 0; n < endpoints; n++) {
      await service.post(ENDPOINTS, { delivery: "inbox" });
    }
    for (const [what, body] of KINDS) {
      await t.step(`payments ${what}, ${endpoints} endpoints`, async () => {
        await service.sql`select pay.write_search_words()`;
        await count(service);
        const before = [await tableBytes(service), await counted(service, environment_id)];
        const send = async () => {
          const metadata = "metadata" in body
            ? {
              metadata: Object.fromEntries(
                Object.keys(body.metadata!).map((name) => [name, randomText(500)]),
              ),
            }
            : {};
          // A customer has at most 50 instruments.
          const customer = { id: randomText(20), email: "a@example.com" };
          const made = await service.pay({ ...body, ...metadata, customer }, {
            idempotency_key: crypto.randomUUID(),
          });
          assert.equal(made.status, 201, made.text);
          const to = body.capture ? "capture" : "refund";
          await service.call("POST", `${PAYMENTS}/${made.body.id}/${to}`, { body: {} });
        };
        for (let n = 0; n < 200; n += 10) {
          await Promise.all(Array.from({ length: 10 }, send));
          await service.sql`select pay.write_search_words()`;
        }
        await count(service);
        const after = [await tableBytes(service), await counted(service, environment_id)];
        const [real, estimate] = after.map((bytes, i) => bytes - before[i]!);
        const ratio = estimate! / real!;
        console.log(`${what}, ${endpoints} endpoints: ${ratio.toFixed(2)} of ${real! / 200} bytes`);
        assert.ok(ratio > 0.5 && ratio < 2, `${ratio}`);
      });
    }
  }
}, { storage_gb: 10, rate_limit: 100_000 });

function randomText(length: number): string {
  return Array.from({ length }, () => Math.floor(Math.random() * 36).toString(36)).join("");
}

serviceCase("an account at its limit of storage", async (t, service) => {
  const { sql, key } = service;
  const other = startSecondService(service, { storage_gb: 1 });
  try {
    const before = await service.pay({ ...APPROVED.card }, { idempotency_key: "before" });
    const endpoint = await service.post(ENDPOINTS, { delivery: "inbox" });
    const sibling = await service.post(`${SANDBOX}/sandboxes`, {});
    const seeded = await service.post(`${SANDBOX}/sandboxes`, { seed: "a" });
    await store(service, key.environment_id, 0.9);
    assert.equal((await service.pay()).status, 201);
    await store(service, key.environment_id, 1);
    await t.step("adds nothing, in any isolate and sandbox", async () => {
      for (const call of [service.call, other.call]) {
        for (
          const [method, path, body] of [
            ["POST", PAYMENTS, { amount: 1, currency: "EUR", ...APPROVED.card }],
            ["POST", `${PAYMENTS}/${before.body.id}/refund`, {}],
            ["POST", ENDPOINTS, { delivery: "inbox" }],
            ["PUT", `${ENDPOINTS}/${endpoint.id}`, { delivery: "inbox" }],
            ["POST", `${SANDBOX}/sandboxes`, {}],
            ["POST", "/api-v1-payments/v1/api_keys", { name: "a" }],
          ] as const
        ) {
          const { status, body: { error }, headers } = await call(method, path, { body });
          assert.deepEqual([path, status, error?.code], [path, 429, "rate_limited"]);
          assert.match(error.message, /store 1 GiB or more.*POST \/reset/);
          assert.ok(headers.has("Retry-After"));
        }
      }
      const of_sibling = await service.pay({}, { key: sibling.test_key });
      assert.equal(of_sibling.status, 429, of_sibling.text);
    });
    await t.step("reads, replays and deletes", async () => {
      await service.get(PAYMENTS);
      const again = await service.pay({ ...APPROVED.card }, { idempotency_key: "before" });
      assert.deepEqual([again.status, again.text], [201, before.text]);
      const deleted = await service.call("DELETE", `${ENDPOINTS}/${endpoint.id}`);
      assert.equal(deleted.status, 200, deleted.text);
    });
    await t.step("keeps no lines of transcripts and no bodies of logged requests", async () => {
      const key = seeded.test_key;
      await service.get(PAYMENTS, { key });
      assert.equal((await service.call("GET", `${SANDBOX}/transcript`, { key })).text, "");
      await service.deps.request_log.flush();
      const logged = await sql`select status, request_body, response_body from pay.requests
        where method = 'POST' order by id desc limit 1`;
      assert.deepEqual([...logged], [{ status: 201, request_body: null, response_body: null }]);
    });
    await t.step("limits neither another account nor live keys", async () => {
      assert.equal((await service.pay({}, { key: service.other.text })).status, 201);
      const live = await service.pay({ ...APPROVED.card }, { key: service.live.text });
      assert.notEqual(live.status, 429, live.text);
    });
    await t.step("is lower when retention has deleted the rows of a day", async () => {
      await sql`update pay.sandbox_storage set day = current_date - 32
        where environment_id = ${key.environment_id} and day <> 'infinity'`;
      // The rows of a sandbox whose clock stands are not deleted.
      await sql`insert into pay.sandbox_settings (environment_id, version, frozen_at)
        values (${key.environment_id}, 1, now())`;
      await count(service);
      assert.equal((await service.pay()).status, 429);
      await sql`delete from pay.sandbox_settings where environment_id = ${key.environment_id}`;
      await count(service);
      assert.equal((await service.pay()).status, 201);
    });
    await t.step("is free at once after a reset, and its old rows wait", async () => {
      await store(service, key.environment_id, 1);
      assert.equal((await service.pay()).status, 429);
      await service.post(`${SANDBOX}/reset`);
      assert.equal((await service.pay()).status, 201);
      const refused = await service.call("POST", `${SANDBOX}/reset`);
      assert.deepEqual([refused.status, refused.body.error.code], [429, "rate_limited"]);
      assert.match(refused.body.error.message, /wait for the deletion/);
      const [health] = await sql`select waiting_environments, oldest_waiting_seconds,
        largest_storage_bytes, is_retention_behind from pay.health`;
      assert.equal(health!.waiting_environments, "1");
      assert.equal(health!.is_retention_behind, false);
      // A part of the rows is deleted.
      await sql`select pay.purge(now(), 1)`;
      assert.equal((await service.call("POST", `${SANDBOX}/reset`)).status, 429);
      await purgeAll(sql);
      await service.post(`${SANDBOX}/reset`);
    });
  } finally {
    await other.close();
  }
}, { storage_gb: 1, request_log: true });

serviceCase("counts of several isolates are moved while they grow", async (_, service) => {
  const { environment_id } = service.key;
  const other = startSecondService(service, { storage_gb: 10 });
  try {
    await service.pay(APPROVED.card);
    // Places for keys that an isolate has not seen are few.
    await other.call("GET", PAYMENTS);
    await count(service);
    const of_one = await counted(service, environment_id);
    let is_done = false;
    const counting = (async () => {
      while (!is_done) await count(service);
    })();
    const body = { amount: 1000, currency: "EUR", ...APPROVED.card };
    const made = await Promise.all(
      Array.from(
        { length: 200 },
        (_, i) => (i % 2 ? service : other).call("POST", PAYMENTS, { body }),
      ),
    ).finally(() => is_done = true);
    await counting;
    assert.deepEqual(made.filter(({ status }) => status !== 201).map(({ text }) => text), []);
    await count(service);
    assert.equal(await counted(service, environment_id), 201 * of_one);
    // A reset counts what is not counted yet, and the new environment begins with nothing.
    await service.pay(APPROVED.card);
    await service.post(`${SANDBOX}/reset`);
    await count(service);
    assert.equal(await counted(service, environment_id), 202 * of_one);
    assert.equal(await counted(service, await service.environmentOf(service.key)), 0);
  } finally {
    await other.close();
  }
}, { storage_gb: 10 });

serviceCase("resets", async (t, service) => {
  const { sql } = service;
  const reset = (key = service.key.text) => service.call("POST", `${SANDBOX}/reset`, { key });
  const sibling = await service.post(`${SANDBOX}/sandboxes`, {});
  await t.step("of a sandbox are limited", async () => {
    let done = 0;
    const started = performance.now();
    let refused = await reset();
    for (; refused.status === 200; done++) refused = await reset();
    const more = Math.floor((performance.now() - started) / 200) + 1;
    assert.ok(done >= RESETS_AT_ONCE && done <= RESETS_AT_ONCE + more, `${done} resets`);
    assert.match(refused.body.error.message, /at most 5 times a second/);
    assert.equal((await reset(sibling.test_key)).status, 200);
  });
  await t.step("wait for retention, which takes accounts in turn", async () => {
    await sql`insert into pay.environments (id, public_id, account, livemode, name, retired_at)
      select 'env_' || lpad(n::text, 26, '0'), 'env_' || lpad(n::text, 26, '0'), 'one', false, 'x',
        now() - interval '2 hours'
      from generate_series(1, ${WAITING}) n`;
    const refused = await reset(sibling.test_key);
    assert.equal(refused.status, 429);
    assert.match(refused.body.error.message, /wait for the deletion/);
    assert.equal((await reset(service.other.text)).status, 200);
    const [health] = await sql`select * from pay.health`;
    assert.ok(Number(health!.waiting_environments) > WAITING);
    assert.ok(health!.oldest_waiting_seconds > 7000);
    assert.equal(health!.is_retention_behind, true);
    await sql`select pay.purge()`;
    const left = "environments where account = 'two' and retired_at is not null";
    assert.equal(await service.count(left), 0);
    await purgeAll(sql);
    assert.equal((await reset(sibling.test_key)).status, 200);
  });
}, { rate_limit: 10_000, account_rate_limit: 10_000 });
