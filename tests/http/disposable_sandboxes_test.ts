/** Disposable sandboxes: their life, their keys, their limits and their isolation (ADR 0022). */

import assert from "node:assert/strict";
import { until } from "../support/common/until.ts";
import { idGenerator } from "../../shared/core/ids.ts";
import { createApiKey } from "../support/database/api_keys.ts";
import { purgeAll } from "../support/database/purge.ts";
import { untilWaiting } from "../support/database/lock_waits.ts";
import type { TestService } from "../support/service/service.ts";
import { startSecondService } from "../support/service/second_service.ts";
import { assertRefused, PAYMENTS, SANDBOX, serviceCase } from "../support/service/service_case.ts";

const SANDBOXES = `${SANDBOX}/sandboxes`;
const KEYS = "/api-v1-payments/v1/api_keys";
const ENDPOINTS = "/api-v1-payments/v1/webhook_endpoints";
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

function make(service: Pick<TestService, "call">, body: unknown = {}, options = {}) {
  return service.call("POST", SANDBOXES, { body, ...options });
}

/** The number of rows of each table of the schema. */
async function countRows({ sql, count }: TestService): Promise<Record<string, number>> {
  const tables = await sql`select tablename as name from pg_tables where schemaname = 'pay'`;
  const counts: Record<string, number> = {};
  for (const { name } of tables) counts[name] = await count(name);
  return counts;
}

serviceCase("POST /sandboxes", async (t, service) => {
  await t.step("returns 201 with a key that works, in an empty sandbox", async () => {
    await service.pay();
    const made = await make(service);
    const { id, test_key } = made.body;
    assert.match(made.headers.get("Location")!, new RegExp(`/api-v1-sandbox/v1/sandboxes/${id}$`));
    const list = await service.call("GET", PAYMENTS, { key: test_key });
    assert.deepEqual([list.status, list.body.data], [200, []]);
  });
  await t.step("by default the sandbox has no name and ends after a day", async () => {
    const { body } = await make(service);
    assert.equal(body.name, null);
    assert.equal(Date.parse(body.expires_at) - Date.parse(body.created_at), DAY_MS);
  });
  await t.step("a replay with another secret of the key is a conflict", async () => {
    const key = await service.post(KEYS, { name: "rotated" });
    const options = { key: key.secret, idempotency_key: "r" };
    assert.equal((await make(service, {}, options)).status, 201);
    const turned = await service.post(`${KEYS}/${key.id}/rotate`);
    const again = await make(service, {}, { ...options, key: turned.secret });
    assertRefused(again, "idempotency_conflict");
  });
  await t.step("the sandbox ends with the caller's key at the latest", async () => {
    const expires_at = new Date(Date.now() + 600_000).toISOString();
    const { text: key } = await service.issueKey(service.key.environment_id, { expires_at });
    const { body } = await make(service, {}, { key });
    // The rest of the key's time begins at the time of the request, which takes a moment.
    assert.ok(Date.parse(body.expires_at) <= Date.parse(expires_at) + 5_000);
    assert.ok(Date.parse(body.expires_at) > Date.now() + 500_000);
  });
  await t.step("a key made so makes no further ones, and the list stays empty", async () => {
    const { body: { id, test_key: key } } = await make(service);
    assertRefused(await make(service, {}, { key }), "permission_denied");
    await service.call("POST", `${SANDBOX}/reset`, { key });
    assertRefused(await make(service, {}, { key, idempotency_key: "x" }), "permission_denied");
    assert.deepEqual((await service.get(SANDBOXES, { key })).data, []);
    assert.equal((await service.call("DELETE", `${SANDBOXES}/${id}`, { key })).status, 404);
  });
});

serviceCase("GET /sandboxes", async (t, service) => {
  const made: string[] = [];
  for (const name of ["a", "b", "c"]) made.unshift((await make(service, { name })).body.id);
  const names = async () => {
    const body = await service.get(`${SANDBOXES}?limit=100`);
    return body.data.map(({ name }: { name: string }) => name);
  };
  await t.step("the list survives a reset", async () => {
    await service.call("POST", `${SANDBOX}/reset`);
    assert.deepEqual(await names(), ["c", "b", "a"]);
  });
  await t.step("a sandbox that has ended is not listed, but can be read for a day", async () => {
    assert.equal((await service.call("DELETE", `${SANDBOXES}/${made[1]}`)).status, 200);
    assert.deepEqual(await names(), ["c", "a"]);
    await purgeAll(service.sql);
    await service.get(`${SANDBOXES}/${made[1]}`);
    await service.setClock(Date.now() + DAY_MS + 1_000);
    await purgeAll(service.sql);
    assert.equal((await service.call("GET", `${SANDBOXES}/${made[1]}`)).status, 404);
    assert.equal((await service.call("DELETE", `${SANDBOXES}/${made[1]}`)).status, 404);
  });
});

serviceCase("POST /sandboxes/{id}/keys", async (t, service) => {
  const { body: { id, test_key } } = await make(service, { expires_in: 7_200 });
  const ask = (body: unknown = {}, options = {}, sandbox = id) =>
    service.call("POST", `${SANDBOXES}/${sandbox}/keys`, { body, ...options });
  const keysOf = (sandbox: string) =>
    service.count(`list_api_keys() where environment_id = '${sandbox}'`);

  await t.step("makes a key that opens this sandbox and no other, with its scopes", async () => {
    const own = await service.pay({}, { key: test_key });
    const made = await ask({ name: "Review", scopes: ["payments:read"], expires_in: 3_600 });
    assert.equal(made.status, 201, made.text);
    const { secret: key, ...shown } = made.body;
    const list = await service.get(PAYMENTS, { key });
    assert.deepEqual(list.data.map(({ id }: { id: string }) => id), [own.body.id]);
    assertRefused(await service.pay({}, { key }), "permission_denied");
    const read = await service.get(`${KEYS}/${shown.id}`, { key: test_key });
    assert.deepEqual({ ...read, last_used_at: null }, shown);
    assert.deepEqual([shown.name, shown.scopes], ["Review", ["payments:read"]]);
    assert.equal(Date.parse(shown.expires_at) - Date.parse(shown.created_at), 3_600_000);
    assert.equal((await service.call("GET", `${KEYS}/${shown.id}`)).status, 404);
  });
  await t.step("by default it has all scopes and ends with the sandbox", async () => {
    const { body } = await ask();
    const sandbox = await service.get(`${SANDBOXES}/${id}`);
    assert.deepEqual(
      [body.name, body.scopes, body.expires_at, body.secrets[0].expires_at],
      ["Made for the sandbox", null, sandbox.expires_at, sandbox.expires_at],
    );
    const { body: longest } = await ask({ expires_in: 604_800 });
    assert.equal(longest.expires_at, sandbox.expires_at);
    for (const expires_in of [59, 604_801]) {
      assertRefused(await ask({ expires_in }), "invalid_parameter", "expires_in");
      assertRefused(await make(service, { expires_in }), "invalid_parameter", "expires_in");
    }
  });
  await t.step("it ends with the caller's key at the latest", async () => {
    const expires_at = new Date(Date.now() + 600_000).toISOString();
    const { text: key } = await service.issueKey(service.key.environment_id, { expires_at });
    const { body } = await ask({}, { key });
    assert.ok(Date.parse(body.expires_at) <= Date.parse(expires_at) + 5_000, body.expires_at);
  });
  await t.step("in a seeded sandbox that was reset its prefix and clock are those", async () => {
    const { body: seeded } = await make(service, { seed: "keys" });
    await service.call("POST", `${SANDBOX}/reset`, { key: seeded.test_key });
    const { body } = await ask({ expires_in: 60 }, {}, seeded.id);
    assert.match(body.secret, /^skseeded_test_/);
    assert.deepEqual(
      [body.created_at, body.expires_at],
      ["2030-01-01T00:00:00.000Z", "2030-01-01T00:01:00.000Z"],
    );
    await service.get(PAYMENTS, { key: body.secret });
  });

  const { text: narrow } = await service.issueKey(service.key.environment_id, {
    scopes: ["sandbox:write", "payments:read"],
  });
  const { body: foreign } = await make(service, {}, { key: service.other.text });
  const { body: ended } = await make(service);
  await service.call("DELETE", `${SANDBOXES}/${ended.id}`);
  const REFUSALS: [
    name: string,
    error: [code: string, param?: string],
    body: unknown,
    options?: object,
    sandbox?: string,
  ][] = [
    ["a sandbox of another one", ["not_found"], {}, {}, foreign.id],
    ["its own sandbox", ["not_found"], {}, { key: test_key }],
    ["one that has ended", ["invalid_state"], {}, {}, ended.id],
    ["a scope that the caller lacks", ["permission_denied", "scopes"], {
      scopes: ["payments:write"],
    }, { key: narrow }],
    ["all scopes, of which the caller lacks some", ["permission_denied", "scopes"], {}, {
      key: narrow,
    }],
  ];
  for (const [name, [code, param], body, options, sandbox] of REFUSALS) {
    await t.step(`${name} → ${code}, and makes no key`, async () => {
      const before = await countRows(service);
      assertRefused(await ask(body, options, sandbox), code, param);
      assert.deepEqual(await countRows(service), before);
    });
  }
  await t.step("it takes a scope that the caller has", async () => {
    const { status, body } = await ask({ scopes: ["payments:read"] }, { key: narrow });
    assert.deepEqual([status, body.scopes], [201, ["payments:read"]]);
  });
  await t.step("creates at once leave 100 keys, and the next is 400", async () => {
    const tries = Array.from({ length: 110 }, () => ask());
    const statuses = (await Promise.all(tries)).map(({ status }) => status);
    assert.deepEqual([...new Set(statuses)].sort(), [201, 400]);
    assert.equal(await keysOf(id), 100);
    assertRefused(await ask(), "invalid_parameter");
  });
  const ENDS: [name: string, end: (sandbox: string, maker: string) => Promise<unknown>][] = [
    ["the sandbox", (sandbox) => service.call("DELETE", `${SANDBOXES}/${sandbox}`)],
    ["the key that made the sandbox", (_, maker) => service.call("DELETE", `${KEYS}/${maker}`)],
  ];
  for (const [name, end] of ENDS) {
    await t.step(`it ends with ${name}, also if both happen at once`, async () => {
      const maker = await service.post(KEYS, { name: "maker" });
      const { body: other } = await make(service, {}, { key: maker.secret });
      const { body: { secret: first } } = await ask({}, {}, other.id);
      await service.get(PAYMENTS, { key: first });
      const [, ...made] = await Promise.all([
        end(other.id, maker.id),
        ...Array.from({ length: 8 }, () => ask({}, {}, other.id)),
      ]);
      for (const key of [first, ...made.flatMap(({ body }) => body.secret ?? [])]) {
        assert.equal((await service.call("GET", PAYMENTS, { key })).status, 401);
      }
    });
  }
});

serviceCase("the end of a disposable sandbox", async (t, service) => {
  const hook = { url: "http://127.0.0.1:47999/hook" };
  const works = async (key: string) => (await service.call("GET", PAYMENTS, { key })).status;

  await t.step("its keys end with it, also those made in it, and after a reset", async () => {
    const { body: made } = await make(service, { expires_in: 60 });
    const later = new Date(Date.now() + DAY_MS).toISOString();
    const second = await service.post(KEYS, { name: "second", expires_at: later }, {
      key: made.test_key,
    });
    assert.equal(second.expires_at, made.expires_at);
    assert.equal(second.secrets[0].expires_at, made.expires_at);
    await service.call("POST", `${SANDBOX}/reset`, { key: made.test_key });
    const turned = await service.post(`${KEYS}/${second.id}/rotate`, undefined, {
      key: made.test_key,
    });
    const third = await operatorKey(service, made.id);
    const keys = [made.test_key, second.secret, turned.secret, third];
    const [listed] = await service.sql`
      select count(*)::int as keys, count(*) filter (where expires_at <> ${made.expires_at})::int
        as others
      from pay.list_api_keys() where environment_id = ${made.id}`;
    assert.deepEqual(listed, { keys: 3, others: 0 });
    const at_ms = Date.parse(made.created_at);
    await service.setClock(at_ms + MINUTE_MS - 1);
    assert.deepEqual(await Promise.all(keys.map(works)), [200, 200, 200, 200]);
    await service.setClock(at_ms + MINUTE_MS);
    assert.deepEqual(await Promise.all(keys.map(works)), [401, 401, 401, 401]);
    // The database's clock decides, so a wrong clock of a function does not keep a key.
    service.setWrongClock(at_ms);
    assert.deepEqual(await Promise.all(keys.map(works)), [401, 401, 401, 401]);
    await service.setClock(null);
    await service.call("DELETE", `${SANDBOXES}/${made.id}`);
  });

  await t.step("DELETE ends it at once, sends nothing more, and can be repeated", async () => {
    const { body: { id, test_key: key } } = await make(service);
    await service.call("POST", ENDPOINTS, { key, body: hook });
    await service.pay({}, { key });
    const path = `${SANDBOXES}/${id}`;
    const gone = await service.call("DELETE", path);
    assert.equal(gone.status, 200, gone.text);
    assert.ok(Date.parse(gone.body.expires_at) <= Date.now());
    assert.equal(await works(key), 401);
    assert.equal((await service.call("DELETE", path)).text, gone.text);
    // A delivery that was being sent ends with the next poll of the dispatcher.
    const pending = `webhook_deliveries d join pay.environments e on e.id = d.environment_id
      where e.public_id = '${id}' and d.status = 'pending' and d.leased_until is null`;
    await until("no delivery is pending", async () => await service.count(pending) === 0);
  });
  await t.step("retention gives back every row, after a DELETE and after the time", async () => {
    await purgeAll(service.sql);
    const before = await countRows(service);
    for (const is_deleted of [true, false]) {
      // Seeded ones have a transcript.
      const body = { expires_in: 60, seed: `deleted ${is_deleted}` };
      const { body: { id, test_key: key } } = await make(service, body);
      await service.call("POST", ENDPOINTS, { key, body: hook });
      const paid = await service.pay({}, { key, idempotency_key: "p" });
      await service.call("POST", `${PAYMENTS}/${paid.body.id}/refund`, { key });
      await service.call("POST", KEYS, { key, body: { name: "more" } });
      await purgeAll(service.sql);
      assert.equal(await works(key), 200);
      if (is_deleted) await service.call("DELETE", `${SANDBOXES}/${id}`);
      else await service.setClock(Date.now() + MINUTE_MS + 1_000);
      await purgeAll(service.sql);
      assert.equal(await service.count(`environments where public_id = '${id}'`), 0);
    }
    const { sandboxes, ...rest } = await countRows(service);
    const { sandboxes: sandboxes_before, ...rest_before } = before;
    assert.deepEqual(rest, rest_before);
    assert.equal(sandboxes, sandboxes_before! + 2);
    await service.setClock(Date.now() + 2 * DAY_MS);
    await purgeAll(service.sql);
    assert.equal((await countRows(service))["sandboxes"], 0);
    await service.setClock(null);
  });
  await t.step("retention gives back a row that changes while it deletes", async () => {
    const before = await countRows(service);
    const { body: { id, test_key: key } } = await make(service);
    await service.call("POST", ENDPOINTS, { key, body: { delivery: "inbox" } });
    await service.pay({}, { key });
    const { sql } = service;
    const held = Promise.withResolvers<void>();
    const locked = Promise.withResolvers<void>();
    // As the dispatcher, when it records an attempt that was under way at the end of the sandbox.
    const record = sql.begin(async (sql) => {
      await sql`update pay.webhook_deliveries set attempt_count = attempt_count`;
      locked.resolve();
      await held.promise;
    });
    await locked.promise;
    await service.call("DELETE", `${SANDBOXES}/${id}`);
    const purged = purgeAll(service.sql);
    await untilWaiting(sql, { calls: "pay.purge" });
    held.resolve();
    await Promise.all([record, purged]);
    await purgeAll(service.sql);
    const { webhook_deliveries, environments } = await countRows(service);
    assert.deepEqual([webhook_deliveries, environments], [
      before.webhook_deliveries,
      before.environments,
    ]);
  });
  await t.step(
    "the operator's key of an account is never one of a disposable sandbox",
    async () => {
      await service
        .sql`insert into pay.environments (id, public_id, account, livemode, name, ends_at)
      values (${`env_${"0".repeat(26)}`}, ${`env_${"0".repeat(26)}`}, 'one', false, 'first',
        now() + interval '1 day')`;
      const [row] = await service.sql`select pay.find_environment('one', false) as id`;
      assert.equal(row!.id, service.key.environment_id);
    },
  );
});

serviceCase("the limit of an account", async (t, service) => {
  const LIMIT = 1_000;
  const fill = (count: number, account: string, expires_at: Date) =>
    service.sql`
      insert into pay.sandboxes (environment_id, id, account, made_by, created_at, expires_at)
      select ${service.other.environment_id},
        'env_' || lpad(i::text, 26, '0'), ${account}, 'key_1', now(), ${expires_at}
      from generate_series(1, ${count}) i`;
  await fill(LIMIT - 10, "one", new Date(Date.now() + DAY_MS));
  const second = startSecondService(service);
  try {
    await t.step("32 creates at once make exactly the 10 that are left", async () => {
      const responses = await Promise.all(
        Array.from(
          { length: 32 },
          (_, i) => make([service, second][i % 2]!, {}, { idempotency_key: `k${i}` }),
        ),
      );
      const made = responses.filter(({ status }) => status === 201);
      assert.equal(made.length, 10);
      for (const response of responses) {
        if (response.status === 201) continue;
        assertRefused(response, "invalid_parameter");
        assert.match(response.body.error.message, /1000 disposable sandboxes/);
      }
      const [row] = await service.sql`
        select (select count(*) from pay.idempotency_keys)::int as kept,
          (select count(*) from pay.environments where ends_at is not null)::int as made`;
      assert.deepEqual(row, { kept: 10, made: 10 });
      assert.equal((await make(service, {}, { key: service.other.text })).status, 201);
      assert.equal((await service.call("DELETE", `${SANDBOXES}/${made[0]!.body.id}`)).status, 200);
      assert.equal((await make(service)).status, 201);
      assert.equal((await make(service)).status, 400);
    });
    await t.step("those of the last day count too, up to 10 000", async () => {
      await service.sql`update pay.sandboxes set expires_at = now() - interval '1 hour'`;
      assert.equal((await make(service)).status, 201);
      const kept = await service.count("sandboxes where account = 'one'");
      await service.sql`
        insert into pay.sandboxes (environment_id, id, account, made_by, created_at, expires_at)
        select ${service.other.environment_id}, 'env_z' || lpad(i::text, 25, '0'), 'one',
          'key_1', now(), now() - interval '1 hour'
        from generate_series(1, 9999 - ${kept}::int) i`;
      assert.equal((await make(service)).status, 201);
      assertRefused(await make(service), "invalid_parameter");
    });
  } finally {
    await second.close();
  }
});

serviceCase("the disposable sandboxes of a revoked key", async (t, service) => {
  const list = (key: string) => service.call("GET", PAYMENTS, { key });
  const revokers: [string, (id: string) => Promise<unknown>][] = [
    ["over HTTP", (id) => service.call("DELETE", `${KEYS}/${id}`)],
    ["by the operator", (id) => service.sql`select pay.revoke_api_key(${id})`],
  ];
  for (const [who, revoke] of revokers) {
    await t.step(`end at once when it is revoked ${who}, and those of others stay`, async () => {
      const leaked = await service.issueKey(service.key.environment_id);
      const [one, two] = [
        await make(service, {}, { key: leaked.text }),
        await make(service, { seed: who }, { key: leaked.text }),
      ];
      const mine = await make(service);
      await revoke(leaked.id);
      for (const { body } of [one, two]) {
        assertRefused(await list(body.test_key), "unauthorized");
        const shown = await service.call("GET", `${SANDBOX}/v1/sandboxes/${body.id}`);
        assert.ok(Date.parse(shown.body.expires_at) <= Date.now(), shown.text);
      }
      assert.equal((await list(mine.body.test_key)).status, 200);
      await purgeAll(service.sql);
      const left = await service.sql`select id from pay.environments
        where public_id in (${one.body.id}, ${two.body.id}, ${mine.body.id})`;
      assert.deepEqual(left.map(({ id }) => id), [mine.body.id]);
      // The seed is free again.
      if (who !== "over HTTP") return;
      assert.equal((await make(service, { seed: who })).status, 201);
    });
  }
  await t.step("end also if it is made while the key is being revoked", async () => {
    for (let i = 0; i < 20; i++) {
      const leaked = await service.issueKey(service.key.environment_id);
      const [made] = await Promise.all([
        make(service, {}, { key: leaked.text }),
        service.sql`select pay.revoke_api_key(${leaked.id})`,
      ]);
      if (made.status === 201) {
        assertRefused(await list(made.body.test_key), "unauthorized");
      } else assertRefused(made, "unauthorized");
    }
  });
});

/** Makes a key of an environment as the operator. */
function operatorKey({ sql }: TestService, environment_id: string): Promise<string> {
  const id = idGenerator(Date.now())("key_");
  return createApiKey(sql, { id, environment_id, livemode: false });
}
