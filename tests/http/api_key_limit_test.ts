/**
 * The number of keys of an environment: 100 active keys, also when several clients create them at
 * once, and a bounded number of ended keys.
 */

import assert from "node:assert/strict";
import { generateApiKey, parseApiKey } from "../../shared/core/api_key.ts";
import { idGenerator } from "../../shared/core/ids.ts";
import type { TestService } from "../support/service/service.ts";
import { startSecondService } from "../support/service/second_service.ts";
import { assertRefused, serviceCase } from "../support/service/service_case.ts";

const KEYS = "/api-v1-payments/v1/api_keys";
const MAX_LIVE = 100;
const MAX_ENDED = 1_000;
const DAY = 86_400_000;

function make(service: TestService, options: { key?: string; idempotency_key?: string } = {}) {
  return service.call("POST", KEYS, { body: { name: "made" }, ...options });
}

/** The active keys of the first environment. */
const liveKeys = ({ count, key }: TestService) =>
  count(`api_keys k
    where k.environment_id = (select environment_id from pay.api_keys where id = '${key.id}')
      and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())`);

/** Inserts rows of keys with one secret each, as creates do. */
async function insertKeys(
  { sql }: TestService,
  environment_id: string,
  count: number,
  ended: { revoked_at?: Date; expires_at?: Date } = {},
): Promise<string[]> {
  const newId = idGenerator(Date.now());
  const ids = Array.from({ length: count }, () => newId("key_"));
  const { revoked_at = null, expires_at = null } = ended;
  await sql`
    insert into pay.api_keys (id, environment_id, livemode, name, revoked_at, expires_at)
    select i.id, ${environment_id}, e.livemode, 'inserted', ${revoked_at}, ${expires_at}
    from unnest(${ids}::text[]) as i (id)
    join pay.environments e on e.id = ${environment_id}`;
  await sql`
    insert into pay.api_key_secrets
      (hash, api_key_id, environment_id, account, livemode, prefix, last_four, revoked_at,
        expires_at)
    select sha256(k.id::bytea), k.id, k.environment_id, 'account', k.livemode,
      case when k.livemode then 'sk_live_' else 'sk_test_' end, 'abcd', k.revoked_at, k.expires_at
    from pay.api_keys k where k.id = any (${ids})`;
  return ids;
}

serviceCase(
  "POST /v1/api_keys by 150 creates at once leaves 100 active keys",
  async (t, service) => {
    const second = startSecondService(service);
    try {
      const responses = await Promise.all(
        Array.from({ length: 150 }, (_, i) =>
          [service, second][i % 2]!.call("POST", KEYS, {
            body: { name: `key ${i}` },
            idempotency_key: `k${i}`,
          })),
      );
      const made = responses.filter(({ status }) => status === 201);
      const refused = responses.filter(({ status }) => status !== 201);
      await t.step("the refused creates are 400, name the limit and store nothing", async () => {
        assert.equal(made.length, MAX_LIVE - 1);
        assert.equal(await liveKeys(service), MAX_LIVE);
        for (const response of refused) {
          assertRefused(response, "invalid_parameter");
          assert.match(response.body.error.message, /100 keys/);
        }
        const [row] = await service.sql`
        select (select count(*) from pay.idempotency_keys)::int as kept,
          (select count(*) from pay.api_keys where environment_id = ${service.key.environment_id})::int
            as keys`;
        assert.deepEqual(row, { kept: MAX_LIVE - 1, keys: MAX_LIVE });
      });
      await t.step("the operator's command has the same limit", async () => {
        await assert.rejects(
          service.issueKey(service.key.environment_id),
          (error: Error & { code: string }) => error.code === "54000",
        );
        assert.equal(await liveKeys(service), MAX_LIVE);
      });
      await t.step("another environment has a limit of its own", async () => {
        assert.equal((await make(service, { key: service.other.text })).status, 201);
      });
      await t.step("revoking one key makes room for one of the refused creates", async () => {
        assert.equal((await service.call("DELETE", `${KEYS}/${made[0]!.body.id}`)).status, 200);
        const index = responses.indexOf(refused[0]!);
        await service.post(KEYS, { name: `key ${index}` }, { idempotency_key: `k${index}` });
        assertRefused(await make(service), "invalid_parameter");
      });
      await t.step("a reset revokes no key, so it makes no room", async () => {
        await service.post("/api-v1-sandbox/reset");
        assertRefused(await make(service), "invalid_parameter");
        assert.equal(await liveKeys(service), MAX_LIVE);
      });
    } finally {
      await second.close();
    }
  },
);

serviceCase("expired keys do not count until the operator rotates them", async (t, service) => {
  const { environment_id } = service.key;
  const [expired] = await insertKeys(service, environment_id, 1, {
    expires_at: new Date(Date.now() - DAY),
  });
  const rotate = async () => {
    const { hash, prefix, last_four } = parseApiKey(generateApiKey("test"))!;
    const [row] = await service.sql`
      select pay.rotate_api_key(${expired!}, ${hash}, ${prefix}, ${last_four}, now()) as done`;
    return row!.done;
  };
  await t.step("99 active keys and an expired one leave room for one", async () => {
    await insertKeys(service, environment_id, MAX_LIVE - 2);
    assert.equal((await make(service)).status, 201);
    assertRefused(await make(service), "invalid_parameter");
  });
  await t.step("the operator's rotation is refused at the limit and changes nothing", async () => {
    await assert.rejects(rotate(), (error: Error & { code: string }) => error.code === "54000");
    assert.equal(await liveKeys(service), MAX_LIVE);
  });
  await t.step("below the limit the rotation removes the expiry", async () => {
    await service.sql`update pay.api_keys set revoked_at = now()
      where id = (select max(id) from pay.api_keys where environment_id = ${environment_id}
        and revoked_at is null and expires_at is null)`;
    assert.equal(await rotate(), true);
    const shown = await service.get(`${KEYS}/${expired}`);
    assert.equal(shown.expires_at, null);
    assert.deepEqual(
      shown.secrets.map(({ expires_at }: { expires_at: string | null }) => expires_at),
      [null],
    );
    assert.equal(await liveKeys(service), MAX_LIVE);
  });
});

serviceCase("ended keys of an environment are bounded", async (t, service) => {
  const { environment_id } = service.key;
  const count = (id: string) => service.count(`api_keys where environment_id = '${id}'`);
  await t.step(`a create deletes the oldest beyond ${MAX_ENDED}`, async () => {
    const oldest = await insertKeys(service, environment_id, 5, {
      revoked_at: new Date(Date.now() - 2 * DAY),
    });
    await insertKeys(service, environment_id, MAX_ENDED, {
      revoked_at: new Date(Date.now() - DAY),
    });
    assert.equal((await make(service)).status, 201);
    assert.equal(await count(environment_id), MAX_ENDED + 2);
    const left = await service.sql`select from pay.api_keys where id = any (${oldest})`;
    assert.equal(left.length, 0);
  });
  await t.step("retention deletes sandbox keys that ended 30 days ago; no live key", async () => {
    const { environment_id } = service.other;
    const revoked_at = new Date(Date.now() - 30 * DAY - 60_000);
    await insertKeys(service, environment_id, 3, { revoked_at });
    await insertKeys(service, environment_id, 3, { expires_at: revoked_at });
    await insertKeys(service, environment_id, 2, { revoked_at: new Date(Date.now() - 29 * DAY) });
    await insertKeys(service, service.live.environment_id, 2, { revoked_at });
    await service.sql`select pay.purge()`;
    assert.equal(await count(environment_id), 3);
    assert.equal(await count(service.live.environment_id), 3);
    const [row] = await service.sql`select pay.purge() as rows`;
    assert.equal(row!.rows, "0");
  });
  await t.step("retention keeps the last use and the newest of a key's ended secrets", async () => {
    const made = (await make(service)).body;
    const used = new Date("2026-01-02T03:00:00Z");
    const hash = parseApiKey(made.secret)!.hash;
    await service.sql`
      insert into pay.api_key_secrets (hash, api_key_id, environment_id, account, livemode, prefix,
        last_four, created_at, expires_at, last_used_at)
      select sha256(n::text::bytea), ${made.id}, ${environment_id}, 'account', false, 'sk_test_', 'abcd',
        '2026-01-01', '2026-01-03', ${used}
      from generate_series(1, 3) as n`;
    await service.sql`update pay.api_key_secrets set last_used_at = null
      where hash = decode(${hash}, 'hex')`;
    await service.sql`select pay.purge()`;
    const shown = await service.get(`${KEYS}/${made.id}`);
    assert.equal(shown.last_used_at, used.toISOString());
    assert.equal(await service.count(`api_key_secrets where api_key_id = '${made.id}'`), 1);
  });
  await t.step("retention deletes ended secrets of webhook endpoints", async () => {
    const endpoints = "/api-v1-payments/v1/webhook_endpoints";
    const made = await service.post(endpoints, { url: "http://127.0.0.1:47999/hook" });
    await service.post(`${endpoints}/${made.id}/rotate_secret`, { expires_in: 3600 });
    const versions = async () => {
      const [row] = await service.sql`
        select array(select (s ->> 'version')::int from json_array_elements(secrets) s) as versions
        from pay.webhook_endpoints where id = ${made.id}`;
      return row!.versions;
    };
    await service.sql`select pay.purge()`;
    assert.deepEqual(await versions(), [2, 1]);
    await service.sql`update pay.webhook_endpoints
      set secrets = replace(secrets::text, (secrets -> 1 ->> 'expires_at'), '2026-01-01T00:00:00.000Z')::json
      where id = ${made.id}`;
    await service.sql`select pay.purge()`;
    assert.deepEqual(await versions(), [2]);
  });
});
