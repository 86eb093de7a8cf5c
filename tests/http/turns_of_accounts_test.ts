/**
 * One account cannot take the service from the others: its sandboxes are one tenant, and its
 * requests that hang, wait or never end leave slots, turns and connections to every other account.
 */

import assert from "node:assert/strict";
import { CONNECTION_LIMITS } from "../../apps/server/local/http_connections.ts";
import { PLACE_BOUNDS } from "../../shared/jobs/places.ts";
import { KnownTenants } from "../../shared/store/known_tenants.ts";
import { until } from "../support/common/until.ts";
import { untilWaiting } from "../support/database/lock_waits.ts";
import { NeedsInternals } from "../support/service/needs_internals.ts";
import { IS_REMOTE } from "../support/service/product.ts";
import { type ServedService, withServedService } from "../support/service/served_service.ts";
import type { TestResponse, TestService } from "../support/service/service.ts";
import { PAYMENTS, REFUNDS, SANDBOX, serviceCase } from "../support/service/service_case.ts";
import { addInbox } from "../support/webhook/inbox_reader.ts";
import { connect } from "../support/database/database.ts";

const ENDPOINTS = "/api-v1-payments/v1/webhook_endpoints";
const SANDBOXES = 6;
/** Longest time of a request of another account. A request that hangs takes 3 s. */
const QUICK_MS = 1_000;

/** Makes sandboxes of one account, of which the service knows each key. */
async function makeSandboxes(service: TestService, has_seed = false) {
  const made: { id: string; test_key: string }[] = [];
  for (let i = 0; i < SANDBOXES; i++) {
    const body = has_seed ? { seed: `seed ${i}` } : {};
    const sandbox = await service.post(`${SANDBOX}/sandboxes`, body);
    await service.call("GET", PAYMENTS, { key: sandbox.test_key });
    made.push(sandbox);
  }
  return made;
}

/** Asserts that every kind of request of another account gets its response quickly. */
async function assertQuick(service: TestService): Promise<void> {
  const key = service.other.text;
  const cases = [
    ["GET", "/api-v1-payments/v1/balance", {}, 200],
    ["GET", `${PAYMENTS}?status=completed`, {}, 200],
    ["GET", "/api-v1-payments/v1/nothing", {}, 404],
    ["POST", "/api-v1-payments/v1/api_keys", { body: { name: "mine" } }, 201],
    ["POST", PAYMENTS, { body: { amount: 100, currency: "EUR" } }, 201],
  ] as const;
  for (const [method, path, options, expected] of cases) {
    const began = performance.now();
    const { status, text } = await service.call(method, path, { key, ...options });
    assert.equal(status, expected, text);
    const took_ms = performance.now() - began;
    assert.ok(took_ms < QUICK_MS, `${method} ${path}: ${Math.round(took_ms)} ms`);
  }
}

/** Requests of an account that wait: the lock, the function that waits for it, its responses. */
interface Hanging {
  name: string;
  has_seed?: boolean;
  lock: (environment_id: string) => string;
  waits_in: string;
  requests: (service: TestService, keys: string[]) => Promise<TestResponse>[];
  statuses: number[];
  /** Other requests of the account get their responses meanwhile. */
  leaves_own?: boolean;
}

const environmentLock = (kind: string) => (id: string) =>
  `select pg_advisory_xact_lock${kind}(hashtextextended('environment ${id}', 0))`;

const HANGING: Hanging[] = [
  {
    name: "resets that wait in six sandboxes of an account",
    lock: environmentLock("_shared"),
    waits_in: "pay.reset_sandbox",
    requests: ({ call }, keys) => keys.map((key) => call("POST", `${SANDBOX}/reset`, { key })),
    statuses: [200, 503],
  },
  {
    name: "requests that wait in six seeded sandboxes",
    has_seed: true,
    lock: environmentLock(""),
    waits_in: "pay.number_request",
    requests: ({ call }, keys) => keys.map((key) => call("GET", PAYMENTS, { key })),
    statuses: [200, 503],
  },
  {
    name: "more slow reads of a sandbox than the pool has connections",
    lock: () => "lock table pay.refunds in access exclusive mode",
    waits_in: "pay.load",
    requests: ({ call }) =>
      Array.from({ length: 12 }, () => call("GET", `${REFUNDS}/re_${"0".repeat(26)}`)),
    statuses: [404],
    leaves_own: true,
  },
];

for (const { name, has_seed, lock, waits_in, requests, statuses, leaves_own } of HANGING) {
  serviceCase(`${name} delay no other`, async (_, service) => {
    const made = await makeSandboxes(service, has_seed);
    await service.pay({}, { key: service.other.text });
    await using holder = connect(service.database.url);
    await holder`begin`;
    for (const { id } of made) await holder.unsafe(lock(id));
    const sent = requests(service, made.map(({ test_key }) => test_key));
    await untilWaiting(service.sql, { sessions: 2, calls: waits_in });
    await assertQuick(service);
    if (leaves_own) assert.equal((await service.pay()).status, 201);
    await holder`rollback`;
    for (const { status } of await Promise.all(sent)) assert.ok(statuses.includes(status));
  });
}

serviceCase("six busy sandboxes of an account delay another by at most two statements", async (
  _,
  service,
) => {
  if (IS_REMOTE) throw new NeedsInternals("the order of turns, without that of a network");
  const made = await makeSandboxes(service);
  await service.pay({}, { key: service.other.text });
  let before = 0;
  const flood = made.flatMap(({ test_key }) =>
    Array.from({ length: 40 }, () => service.pay({}, { key: test_key }))
  );
  for (const response of flood) response.then(() => before++);
  await Promise.all(Array.from({ length: 30 }, () => service.pay({}, { key: service.other.text })));
  assert.ok(before <= 2 * 64 + 1, `${before} of 240 got their response first`);
  await Promise.all(flood);
});

serviceCase(
  "changes of one resource wait among the requests of their account",
  async (_, service) => {
    const body = await service.post(ENDPOINTS, { delivery: "inbox" });
    await using holder = connect(service.database.url);
    await holder`begin`;
    await holder.unsafe(environmentLock("")(service.key.environment_id));
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

const V1 = "/functions/v1/api-v1-payments/v1";
/** Requests of others, each on a connection of its own. */
const OTHERS = 20;
/** The rest of a head whose body does not arrive. */
const NO_BODY = "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{";

/** Requests that do not end, on as many connections as the local server has. */
interface Endless {
  name: string;
  /** Makes the head and the rest of each request. */
  prepare(served: ServedService): Promise<(i: number) => [head: string, rest: string]>;
  /** How many requests have a place. */
  holds(served: ServedService): number;
  most: number;
}

const { keyless, sandboxes, long_waits } = PLACE_BOUNDS;

const ENDLESS: Endless[] = [
  {
    name: "notifications with one byte of the body",
    prepare: () =>
      Promise.resolve(
        () => [`POST ${V1.slice(0, -3)}/providers/pac_1/notifications HTTP/1.1`, NO_BODY],
      ),
    holds: () => 0,
    most: keyless.of_owner,
  },
  {
    name: "challenges with one byte of the body",
    prepare: () =>
      Promise.resolve(() => ["POST /functions/v1/api-v1-sandbox/challenges/x HTTP/1.1", NO_BODY]),
    holds: ({ service }) => runningIn(service.deps.places.keyless),
    most: keyless.of_owner,
  },
  {
    name: "creates of one key with one byte of the body",
    prepare: ({ service }) =>
      Promise.resolve(() => [
        `POST ${V1}/payments HTTP/1.1\r\nAuthorization: Bearer ${service.key.text}`,
        NO_BODY,
      ]),
    holds: ({ service }) => runningIn(service.deps.places.sandboxes),
    most: sandboxes.of_owner,
  },
  {
    name: "reads of inboxes of two accounts",
    async prepare({ service }) {
      const inboxes = await Promise.all([service.key, service.live].map(async ({ text }) => {
        const { id } = await addInbox(service, {}, { key: text });
        return `GET ${V1}/webhook_endpoints/${id}/inbox?wait=20 HTTP/1.1\r\nAuthorization: Bearer ${text}`;
      }));
      return (i) => [inboxes[i % 2]!, "\r\n"];
    },
    holds: ({ service }) => runningIn(service.deps.places.long_waits),
    most: long_waits.in_all - long_waits.reserved.slots,
  },
];

function runningIn(
  queue: { owner_queues: Iterable<{ levels: readonly { running: number }[] }> },
): number {
  return [...queue.owner_queues].reduce((sum, { levels }) => sum + levels.at(-1)!.running, 0);
}

/** Sends the beginning of a request on a new connection, which it leaves open. */
async function begin(base_url: string, head: string, rest: string): Promise<Deno.TcpConn> {
  const { hostname, port } = new URL(base_url);
  const connection = await Deno.connect({ hostname, port: Number(port) });
  for (const text of [`${head}\r\nHost: x\r\n`, rest]) {
    await connection.write(new TextEncoder().encode(text));
  }
  return connection;
}

for (const { name, prepare, holds, most } of ENDLESS) {
  Deno.test(`${name} on every connection leave others theirs`, async () => {
    if (IS_REMOTE) throw new NeedsInternals("the connections of the local server");
    await withServedService(async (served) => {
      const { service, base_url } = served;
      await service.pay({}, { key: service.other.text });
      const request = await prepare(served);
      const connections: Deno.TcpConn[] = [];
      for (let i = 0; i < CONNECTION_LIMITS.connections + 76; i++) {
        connections.push(await begin(base_url, ...request(i)));
      }
      try {
        const held = holds(served);
        assert.ok(held <= most, `${held} are held`);
        const statuses = [];
        for (let i = 0; i < OTHERS; i++) {
          const rest = `Authorization: Bearer ${service.other.text}\r\nConnection: close\r\n\r\n`;
          const one = await begin(base_url, `GET ${V1}/balance HTTP/1.1`, rest);
          const text = await new Response(one.readable).text().catch(() => "cut");
          statuses.push(text.slice(9, 12));
        }
        assert.deepEqual(statuses, Array(OTHERS).fill("200"));
      } finally {
        for (const connection of connections) connection.close();
      }
      await until("all places are free", () => holds(served) === 0);
    });
  });
}
