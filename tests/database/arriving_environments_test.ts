/**
 * An account that arrives from another cell (supabase/schemas/moves.sql): no job touches its rows,
 * although work of every kind is due. The same calls do the work once the account is open.
 */

import assert from "node:assert/strict";
import { digestOf, tenantTables } from "../../apps/operator/cells_database.ts";
import { fillSandbox } from "../support/database/filled_sandbox.ts";
import { saidBy } from "../support/database/invariant_breaches.ts";
import { addAccount, providerCase, reserve, succeeded } from "../support/database/provider_flow.ts";
import { insertEndpoint } from "../support/webhook/dispatcher_polls.ts";

const ENDED = `env_${"1".repeat(26)}`;
const CLOCK = `env_${"2".repeat(26)}`;
const LEASE_MS = 30_000;
const TARGET = new Date(Date.now() + 86_400_000).toISOString();

providerCase("nothing touches an arriving environment", async (t, given) => {
  const { service, sql, live, key, functions, store } = given;
  const { other } = service;
  /** The state of all environments: their own rows, and the digests of their tables. */
  const stateOf = async () => {
    const database = { side: "target" as const, url: service.database.url, sql };
    const environments = await sql`select id, retired_at from pay.environments order by 1`;
    const ids = environments.map(({ id }) => id);
    const digests = new Map<string, unknown>([["environments", environments]]);
    for (const table of await tenantTables(database)) {
      digests.set(table.name, await digestOf(database, table, ids));
    }
    return digests;
  };
  /** Each job, and its result with environments that arrive, and with the same ones when open. */
  const jobs: [name: string, work: () => Promise<unknown>, arriving: unknown, open: unknown][] = [
    [
      "the dispatcher",
      async () => {
        const rows = await sql<{ id: string }[]>`
          select d.id from pay.poll_deliveries(p_results => '{}', p_capacity => '{}', p_limit => 9,
            p_per_endpoint => 9, p_per_environment => 9, p_per_account => 9, p_poison_ahead => '{}',
            p_at => now(), p_leased_until => now() + interval '25 s') d order by 1`;
        return rows.map(({ id }) => id.slice(-1)).join();
      },
      "",
      // The last one is the poison delivery.
      "1,2,3,4,6",
    ],
    [
      "the provider worker",
      async () => {
        const { work } = await store.leaseWork(9, 9, LEASE_MS, Date.now());
        return work.map(({ kind }) => kind).sort().join();
      },
      "",
      "event,operation,poll,sync",
    ],
    [
      "retention",
      async () => {
        await sql`select pay.purge()`;
        const [row] = await sql`select
          (select count(*) from pay.idempotency_keys where environment_id = ${key.environment_id})
            as keys,
          (select count(*) from pay.payments where environment_id = ${other.environment_id})
            as retired,
          (select count(*) from pay.environments where id = ${ENDED} and retired_at is null)
            as ended, (select count(*) from pay.attempt_log) as attempts`;
        return { ...row };
      },
      { keys: "3", retired: "3", ended: "1", attempts: "6" },
      { keys: "2", retired: "0", ended: "0", attempts: "0" },
    ],
    [
      "a step of a clock",
      async () => {
        const target = JSON.stringify({ target: TARGET });
        const [row] = await sql`select state from pay.step_clock(${CLOCK}, ${target}, true)`
          .catch((error) => [{ state: error.code }]);
        return row!.state;
      },
      "55P03",
      "moved",
    ],
    ["the check of the books", async () => (await saidBy(sql)).length > 0, false, true],
  ];
  await fillSandbox(sql, key.environment_id, 3);
  await insertEndpoint(service);
  // The last payment has a poison delivery.
  await sql`update pay.webhook_deliveries set status = 'pending',
    next_attempt_at = now() - interval '1 hour',
    expired_leases = (subject_id = (select max(id) from pay.payments))::int`;
  await sql`update pay.idempotency_keys set created_at = now() - interval '3 days'
    where key = '1'`;
  await sql`
    insert into pay.attempt_log (environment_id, delivery_id, slot, attempt, url, headers,
      response_truncated, stored_at)
    select d.environment_id, d.id, 0, 1, 'https://example.com/', '', false, '2026-01-01'
    from pay.webhook_deliveries d`;
  await fillSandbox(sql, other.environment_id, 3);
  await sql`update pay.environments set retired_at = now() where id = ${other.environment_id}`;
  for (const id of [ENDED, CLOCK]) {
    await sql`
      insert into pay.environments (id, public_id, account, livemode, name, ends_at)
      values (${id}, ${id}, 'arrives', false, 'disposable',
        ${id === ENDED ? sql`now() - interval '1 hour'` : null})`;
  }
  await sql`insert into pay.sandbox_settings (environment_id, version, frozen_at, target_at)
    values (${CLOCK}, 1, now(), ${TARGET})`;
  const account_id = await addAccount(sql, live.environment_id);
  await reserve(functions, live, { delay_ms: 0 });
  const synced = await reserve(functions, live);
  await sql`update pay.provider_operations set state = 'operator', next_attempt_at = null,
    leased_until = null, next_sync_at = now() where id = ${synced.operation.id}`;
  const { outcome: _, exception: __, booked_minor: ___, ...event } = succeeded(
    await reserve(functions, live),
  );
  await store.storeProviderEvents(account_id, [{ ...event, state: "pending" }]);

  await sql`update pay.environments set moving = 'arriving'`;
  const before = await stateOf();
  for (const [name, work, arriving] of jobs) {
    await t.step(`${name} leaves it alone`, async () => {
      assert.deepEqual(await work(), arriving);
      assert.deepEqual(await stateOf(), before);
    });
  }
  await sql`update pay.environments set moving = null`;
  for (const [name, work, _, open] of jobs) {
    await t.step(`${name} had work there`, async () => assert.deepEqual(await work(), open));
  }
});
