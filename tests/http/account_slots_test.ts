/**
 * All sandboxes of an account are one tenant: requests that hang in many of them leave slots for
 * every other account.
 */

import assert from "node:assert/strict";
import postgres from "postgres";
import { KnownTenants } from "../../shared/store/known_tenants.ts";
import { until } from "../support/common/until.ts";
import { untilWaiting } from "../support/database/lock_waits.ts";
import { NeedsInternals } from "../support/service/needs_internals.ts";
import { IS_REMOTE } from "../support/service/product.ts";
import type { TestService } from "../support/service/service.ts";
import { PAYMENTS, SANDBOX, serviceCase } from "../support/service/service_case.ts";

const ENDPOINTS = "/api-v1-payments/v1/webhook_endpoints";
const SANDBOXES = 6;
/** Longest time of a request of another account. A request that hangs takes 3 s. */
const QUICK_MS = 1_000;

interface Made {
  id: string;
  test_key: string;
}

/** Makes sandboxes of one account, and locks each of them. Returns them and the end of the locks. */
async function hold(
  service: TestService,
  lock: "pg_advisory_lock" | "pg_advisory_lock_shared",
  bodyOf: (i: number) => Record<string, unknown> = () => ({}),
): Promise<{ made: Made[]; release: () => Promise<void> }> {
  const made: Made[] = [];
  for (let i = 0; i < SANDBOXES; i++) {
    const { body } = await service.call("POST", `${SANDBOX}/sandboxes`, { body: bodyOf(i) });
    // The service learns the account of the key.
    await service.call("GET", PAYMENTS, { key: body.test_key });
    made.push(body);
  }
  const holder = postgres(service.database.url, { max: 1, onnotice: () => {} });
  for (const { id } of made) {
    await holder.unsafe(`select ${lock}(hashtextextended('environment ' || $1, 0))`, [id]);
  }
  return { made, release: () => holder.end() };
}

/** Asserts that every kind of request of another account gets its response quickly. */
async function assertQuick(service: TestService): Promise<void> {
  const key = service.other.text;
  const cases = [
    ["GET", "/api-v1-payments/v1/balance", {}],
    ["GET", `${PAYMENTS}?status=completed`, {}],
    ["POST", "/api-v1-payments/v1/api_keys", { body: { name: "mine" } }],
    ["POST", PAYMENTS, { body: { amount: 100, currency: "EUR" } }],
  ] as const;
  for (const [method, path, options] of cases) {
    const began = performance.now();
    const { status, text } = await service.call(method, path, { key, ...options });
    assert.ok(status < 300, text);
    const took_ms = performance.now() - began;
    assert.ok(took_ms < QUICK_MS, `${method} ${path}: ${Math.round(took_ms)} ms`);
  }
}

serviceCase(
  "resets that wait in six sandboxes of one account delay no other",
  async (_, service) => {
    const { made, release } = await hold(service, "pg_advisory_lock_shared");
    const resets = made.map(({ test_key }) =>
      service.call("POST", `${SANDBOX}/reset`, { key: test_key })
    );
    try {
      await untilWaiting(service.sql, { sessions: 2, calls: "pay.reset_sandbox" });
      await assertQuick(service);
    } finally {
      await release();
    }
    for (const { status } of await Promise.all(resets)) assert.ok([200, 503].includes(status));
  },
);

serviceCase("requests that wait in six seeded sandboxes delay no other", async (_, service) => {
  const { made, release } = await hold(service, "pg_advisory_lock", (i) => ({ seed: `seed ${i}` }));
  const requests = made.map(({ test_key }) => service.call("GET", PAYMENTS, { key: test_key }));
  try {
    await untilWaiting(service.sql, { sessions: 2, calls: "pay.number_request" });
    await assertQuick(service);
  } finally {
    await release();
  }
  for (const { status } of await Promise.all(requests)) assert.ok([200, 503].includes(status));
});

serviceCase("six busy sandboxes of an account delay another by at most two statements", async (
  _,
  service,
) => {
  if (IS_REMOTE) throw new NeedsInternals("the order of turns, without that of a network");
  const { made, release } = await hold(service, "pg_advisory_lock_shared");
  await release();
  await service.pay({}, { key: service.other.text });
  let before = 0;
  const flood = made.flatMap(({ test_key }) =>
    Array.from({ length: 40 }, () => service.pay({}, { key: test_key }))
  );
  for (const response of flood) response.then(() => before++);
  await Promise.all(
    Array.from({ length: 30 }, () => service.pay({}, { key: service.other.text })),
  );
  assert.ok(before <= 2 * 64 + 1, `${before} of 240 got their response first`);
  await Promise.all(flood);
});

serviceCase(
  "changes of one resource wait among the requests of their account",
  async (_, service) => {
    const { body } = await service.call("POST", ENDPOINTS, { body: { delivery: "inbox" } });
    const holder = postgres(service.database.url, { max: 1, onnotice: () => {} });
    const { environment_id } = service.key;
    await holder`select pg_advisory_lock(hashtextextended(${`environment ${environment_id}`}, 0))`;
    let refused = 0;
    const updates = Array.from({ length: 364 }, async (_, i) => {
      const options = { body: { description: `update ${i}` } };
      const response = await service.call("PUT", `${ENDPOINTS}/${body.id}`, options);
      if (response.status === 429) refused++;
      return response;
    });
    // 320 wait, and one waits for the end of the lock.
    await until("the others are refused", () => refused >= 43);
    await holder.end();
    const statuses = (await Promise.all(updates)).map(({ status }) => status);
    const done = statuses.filter((status) => status === 200).length;
    assert.ok(refused < 100 && done === 364 - refused, `${refused} refused, ${done} done`);
  },
);

Deno.test("KnownTenants: an account's sandboxes are one tenant, its live keys another", () => {
  const tenants = new KnownTenants();
  tenants.learn("a", { account: "one", livemode: false });
  tenants.learn("b", { account: "one", livemode: false });
  tenants.learn("c", { account: "one", livemode: true });
  tenants.learn("d", { account: "two", livemode: false });
  tenants.learn("e", { account: null, livemode: null });
  const names = ["a", "b", "c", "d", "e"].map((key) => tenants.of(key));
  assert.equal(names[0], names[1]);
  assert.equal(new Set(names).size, 4);
  assert.equal(names[4], undefined);
});
