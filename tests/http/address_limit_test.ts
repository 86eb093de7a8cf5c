/**
 * The limit on requests without a valid key: how many of them reach the database, from one network
 * and from many, and that valid keys stay usable meanwhile.
 */

import assert from "node:assert/strict";
import { generateApiKey } from "../../shared/core/api_key.ts";
import { AddressLimit, type Verdict } from "../../shared/http/address_limit.ts";
import { networkOf } from "../../shared/http/address_network.ts";
import { PLACE_BOUNDS } from "../../shared/jobs/places.ts";
import { until } from "../support/common/until.ts";
import { NeedsInternals } from "../support/service/needs_internals.ts";
import { IS_REMOTE } from "../support/service/product.ts";
import { PAYMENTS, serviceCase } from "../support/service/service_case.ts";

const START = Date.parse("2030-01-01T00:00:00Z");
const WINDOW_MS = 10_000;
/** A network has to wait after 100 failures. It may then still try 20 unknown keys. */
const MAX_FAILURES = 100;
const MAX_UNKNOWN = 20;
/** The database checks at most 1 000 refused keys in a window, and 1 000 more, 5 of a network. */
const MAX_REFUSED = 1_000;
const MAX_SPARE = 1_000;
const MAX_SPARE_OF_NETWORK = 5;

/** [address, network] */
const NETWORKS: [string, string][] = [
  ["203.0.113.7", "203.0.113.7"],
  ["203.0.113.7:51234", "203.0.113.7"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:db8:1:2::", "2001:db8:1:2::/64"],
  ["2001:0DB8:0001:0002:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64"],
  ["[2001:db8:1:2::9]:443", "2001:db8:1:2::/64"],
  ["[2001:db8:1:2::9]", "2001:db8:1:2::/64"],
  ["2001:db8:1:3::9", "2001:db8:1:3::/64"],
  ["::1", "0:0:0:0::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
  ["::ffff:203.0.113.7", "203.0.113.7"],
  ["::ffff:cb00:7107", "203.0.113.7"],
  ["unknown", "unknown"],
  ["", "unknown"],
  ["_hidden", "unknown"],
  ["1.2.3", "unknown"],
  [":::", "unknown"],
  ["[", "unknown"],
  ["x".repeat(60_000), "unknown"],
  [":".repeat(60_000), "unknown"],
];
for (const [address, network] of NETWORKS) {
  Deno.test(`networkOf() ${address.slice(0, 40)} → ${network}`, () => {
    assert.equal(networkOf(address), network);
  });
}

/** Sends unknown keys. The database returns `verdict` for each. Returns how many reached it. */
function ask(
  limit: AddressLimit,
  count: number,
  address: (i: number) => string,
  verdict: Verdict = "refused",
  at_ms = START,
): number {
  let requested = 0;
  for (let i = 0; i < count; i++) {
    const settle = limit.admit(networkOf(address(i)), at_ms);
    if (settle === null) continue;
    requested++;
    settle(verdict);
  }
  return requested;
}

const inOne64 = (i: number) =>
  `2001:db8:0:1:${(i >> 16).toString(16)}:${(i & 0xffff).toString(16)}::`;
const inMany64 = (i: number) =>
  `2001:db8:${(i >> 16).toString(16)}:${(i & 0xffff).toString(16)}::${i}`;
const ipv4 = (i: number) => `10.${i >> 16 & 255}.${i >> 8 & 255}.${i & 255}`;

Deno.test("AddressLimit counts a /64 as one network", () => {
  const limit = new AddressLimit();
  assert.equal(ask(limit, 5_000, inOne64), MAX_FAILURES + MAX_UNKNOWN);
  assert.equal(ask(limit, 10, ipv4), 10, "other networks are not affected");
});

for (const [name, address] of [["/64s", inMany64], ["IPv4 addresses", ipv4]] as const) {
  Deno.test(`AddressLimit bounds the database checks of 100 000 ${name}`, () => {
    const limit = new AddressLimit();
    assert.equal(ask(limit, 100_000, address), MAX_REFUSED + MAX_SPARE);
    assert.equal(ask(limit, 100_000, (i) => address(i + 200_000)), 0);
    const later = START + WINDOW_MS;
    assert.equal(ask(limit, 100_000, address, "refused", later), MAX_REFUSED + MAX_SPARE);
  });
}

/** Keys under way, by network, and how many of them are checked before the database responds. */
const UNDER_WAY: [name: string, address: (i: number) => string, checked: number][] = [
  ["one network", () => "192.0.2.1", MAX_FAILURES + MAX_UNKNOWN],
  ["a network each", ipv4, MAX_REFUSED + MAX_SPARE],
  ["10 networks", (i) => ipv4(i % 10), MAX_REFUSED + 10 * MAX_SPARE_OF_NETWORK],
];
for (const [name, address, checked] of UNDER_WAY) {
  Deno.test(`AddressLimit counts keys under way of ${name}`, () => {
    const limit = new AddressLimit();
    const settles = Array.from({ length: 5_000 }, (_, i) => limit.admit(address(i), START))
      .filter((settle) => settle !== null);
    assert.equal(settles.length, checked);
    for (const settle of settles) settle("unknown");
    assert.equal(ask(limit, 5_000, address, "unknown"), 5_000, "without a verdict none counts");
  });
}

Deno.test("AddressLimit admits new valid keys of a network during a flood of 150 others", () => {
  const limit = new AddressLimit();
  ask(limit, 50_000, (i) => inMany64(i % 150));
  for (let i = 0; i < 50; i++) {
    const settles = Array.from({ length: 7 }, () => limit.admit("192.0.2.1", START));
    assert.equal(settles.filter((settle) => settle !== null).length, MAX_SPARE_OF_NETWORK);
    // An admitted key gives its check back.
    for (const settle of settles) settle?.("admitted");
  }
});

Deno.test("AddressLimit does not count texts that are not keys against other networks", () => {
  const limit = new AddressLimit();
  for (let i = 0; i < 200_000; i++) limit.fail(networkOf(inMany64(i)), START);
  assert.equal(ask(limit, 500, ipv4), 500);
});

Deno.test("AddressLimit keeps the current window when a request of an earlier window ends", () => {
  const limit = new AddressLimit();
  const late = limit.admit("192.0.2.1", START)!;
  const later = START + 3 * WINDOW_MS;
  assert.equal(ask(limit, 200, () => "192.0.2.9", "refused", later), MAX_FAILURES + MAX_UNKNOWN);
  late("refused");
  assert.equal(ask(limit, 200, () => "192.0.2.9", "refused", later), 0);
});

serviceCase("unknown keys of a network", async (t, service) => {
  await service.setClock(START);
  await service.get(PAYMENTS);
  const NETWORK = "192.0.2.1";
  const list = async (key: string, network: string) => {
    const headers = { "X-Forwarded-For": `198.51.100.1, ${network}` };
    return (await service.call("GET", PAYMENTS, { key, headers })).status;
  };
  const unknown = (network = NETWORK) => list(generateApiKey("test"), network);
  await t.step("leave checks to new valid keys of another one, also at the same time", async () => {
    const fresh = await Promise.all(
      Array.from({ length: 6 }, () => service.issueKey(service.key.environment_id)),
    );
    const made_up = Array.from({ length: 1_001 }, () => unknown());
    const valid = fresh.map(({ text }) => list(text, "192.0.2.2"));
    assert.deepEqual(await Promise.all(valid), Array(6).fill(200));
    const checked = (await Promise.all(made_up)).filter((status) => status === 401).length;
    assert.ok(checked <= MAX_FAILURES + MAX_UNKNOWN, `${checked} were checked`);
  });
  await t.step("reach the database no more often than the limit", async () => {
    await service.setClock(START + 2 * WINDOW_MS);
    service.forgetStatements();
    const statuses: number[] = [];
    for (let i = 0; i < MAX_FAILURES + MAX_UNKNOWN + 30; i++) statuses.push(await unknown());
    service.assertStatements(MAX_FAILURES + MAX_UNKNOWN);
    const limited = statuses.map((_, i) => i < MAX_FAILURES + MAX_UNKNOWN ? 401 : 429);
    assert.deepEqual(statuses, limited);
    assert.equal(await unknown("192.0.2.2"), 401, "another network is not limited");
  });
  await t.step("do not stop a valid key, even one from the same network", async () => {
    for (let i = 0; i < 5; i++) assert.equal(await list(service.key.text, NETWORK), 200);
  });
  await t.step("are checked again in the next window", async () => {
    await service.setClock(START + 3 * WINDOW_MS);
    assert.equal(await unknown(), 401);
  });
}, { rate_limit: 100_000 });

serviceCase(
  "a burst of requests with a new valid key needs one check of it",
  async (_, service) => {
    const { text } = await service.issueKey(service.key.environment_id);
    service.forgetStatements();
    const burst = Array.from({ length: 200 }, () => service.call("GET", PAYMENTS, { key: text }));
    for (const { status } of await Promise.all(burst)) assert.equal(status, 200);
    if (IS_REMOTE) return;
    const checks = service.takeStatements().filter((statement) => statement.includes("pay.load("));
    assert.equal(checks.length, 1);
  },
  { rate_limit: 100_000 },
);

serviceCase("requests with keys under check leave places to accounts", async (_, service) => {
  if (IS_REMOTE) throw new NeedsInternals("the places of one isolate");
  const { sql, live, deps: { places } } = service;
  const read = (key: string) => service.call("GET", PAYMENTS, { key });
  assert.equal((await read(live.text)).status, 200);
  const { sandboxes, live: { in_all } } = PLACE_BOUNDS;
  const made_up = Array.from({ length: 40 }, () => generateApiKey("live"));
  let burst: Promise<{ status: number }[]> | undefined;
  await sql.begin(async (sql) => {
    await sql`lock table pay.api_key_secrets in access exclusive mode`;
    burst = Promise.all(Array.from({ length: 2 * in_all }, (_, i) => read(made_up[i % 40]!)));
    await until(
      "a check waits",
      async () => (await service.sql`select from pg_locks where not granted`).length > 0,
    );
    const held = ({ owner_queues }: typeof places.live) =>
      [...owner_queues].reduce((sum, { levels }) => sum + levels[0]!.running, 0);
    assert.deepEqual([held(places.live), held(places.sandboxes)], [0, sandboxes.of_owner]);
    // An account with few requests finds a place.
    (await places.sandboxes.take(["an account"])).leave();
  });
  const statuses = new Set((await burst!).map(({ status }) => status));
  assert.deepEqual([...statuses].sort(), [401, 429]);
}, { rate_limit: 100_000 });

serviceCase("strangers are limited without the database", async (_t, service) => {
  await service.setClock(START);
  service.forgetStatements();
  const responses = [];
  for (let i = 0; i < 120; i++) {
    responses.push((await service.call("GET", PAYMENTS, { key: "sk_test_nonsense" })).status);
  }
  assert.equal(responses.filter((status) => status === 401).length, 100);
  assert.equal(responses.filter((status) => status === 429).length, 20);
  service.assertStatements(0);
  await service.setClock(START + 4 * WINDOW_MS);
  await service.get(PAYMENTS);
  const cold = await service.issueKey(service.key.environment_id);
  await service.get(PAYMENTS, { key: cold.text });
}, { rate_limit: 5 });
