/**
 * RelayLanes: the limits on attempts in progress and on claims, by endpoint, environment and
 * account, and in all.
 */

import assert from "node:assert/strict";
import { type Chain, RelayLanes } from "../../shared/domain/webhooks/relay_lanes.ts";
import type { ClaimedDelivery } from "../../shared/store/webhook_store.ts";

let made = 0;

/** A claimed delivery, by default of a subject of its own. */
function delivery(fields: Partial<ClaimedDelivery> = {}): ClaimedDelivery {
  const id = `whd_${++made}`;
  return {
    environment_id: "env_now",
    public_id: "env_1",
    account: "one",
    id,
    endpoint_id: "whe_1",
    event_id: `evt_${made}`,
    subject_id: `pay_${made}`,
    attempt: 1,
    url: "http://127.0.0.1:1/",
    secrets: "[]",
    livemode: false,
    failing_since: null,
    suspect: false,
    settings: null,
    crashed: false,
    body: "{}",
    fault: null,
    ...fields,
  };
}

function many(count: number, fields: Partial<ClaimedDelivery> = {}): ClaimedDelivery[] {
  return Array.from({ length: count }, () => delivery(fields));
}

/** Creates lanes with a clock that the test sets. */
function open() {
  const clock = { now_ms: 1_000 };
  return { clock, lanes: new RelayLanes(() => clock.now_ms), under_way: [] as Chain[] };
}

/** Ends a chain as the relay does. */
function finish(lanes: RelayLanes, chain: Chain, delivered = true): void {
  for (const _ of chain.deliveries) lanes.end(chain, delivered);
  lanes.leave(chain);
}

/** Begins and ends `count` deliveries one after another. Each takes `took_ms`. */
function make(
  { clock, lanes }: ReturnType<typeof open>,
  count: number,
  took_ms: number,
  fields: Partial<ClaimedDelivery> = {},
  delivered = true,
): void {
  for (let i = 0; i < count; i++) {
    lanes.add(many(1, fields), 0);
    const [chain] = lanes.enter();
    clock.now_ms += took_ms;
    finish(lanes, chain!, delivered);
  }
}

/**
 * Begins all claimed deliveries of one endpoint as soon as possible, and ends all but `left` of
 * them.
 */
function work(
  { clock, lanes, under_way }: ReturnType<typeof open>,
  took_ms: number,
  { delivered = true, left = 0 } = {},
): void {
  under_way.push(...lanes.enter());
  while (lanes.claimed > left) {
    const chain = under_way.shift()!;
    clock.now_ms = Math.max(clock.now_ms, chain.began_ms + took_ms);
    finish(lanes, chain, delivered);
    under_way.push(...lanes.enter());
  }
}

/** Adds 600 deliveries at four endpoints. Returns how many begin. */
function begin(lanes: RelayLanes, name: string, fields: Partial<ClaimedDelivery> = {}): number {
  for (let i = 0; i < 4; i++) {
    lanes.add(many(150, { ...fields, endpoint_id: `whe_${name}_${i}` }), 0);
  }
  return [...lanes.enter()].length;
}

Deno.test("RelayLanes.enter() admits 4 of an endpoint, and up to 16 after fast answers", () => {
  const opened = open();
  opened.lanes.add(many(60), 0);
  const begun = [...opened.lanes.enter()];
  assert.equal(begun.length, 4);
  let under_way = 4;
  for (let most = 5; most <= 20; most++) {
    opened.clock.now_ms += 10;
    finish(opened.lanes, begun.shift()!);
    const entered = [...opened.lanes.enter()];
    begun.push(...entered);
    under_way += entered.length - 1;
    assert.equal(under_way, Math.min(16, most));
  }
});

/** [name, duration of each attempt, attempts that may be in progress] */
const PACES: [string, number, number][] = [
  ["at once", 1, 16],
  ["in half a second", 500, 16],
  ["in a second", 1_000, 8],
  ["in two seconds", 2_000, 4],
  ["in thirteen seconds", 13_000, 2],
];

for (const [name, took_ms, expected] of PACES) {
  Deno.test(`RelayLanes.enter() admits for an endpoint that answers ${name}: ${expected}`, () => {
    const opened = open();
    opened.lanes.add(many(20), 0);
    work(opened, 1, { left: 1 });
    opened.lanes.add(many(100), 0);
    work(opened, took_ms, { left: 1 });
    opened.lanes.add(many(100), 0);
    // One attempt is still in progress. It began when the last one ended.
    assert.equal([...opened.lanes.enter()].length, expected - 1);
  });
}

Deno.test("RelayLanes.enter() counts a long attempt as slow before it ends", () => {
  const opened = open();
  make(opened, 20, 1);
  opened.lanes.add(many(40), 0);
  const begun = [...opened.lanes.enter()];
  assert.equal(begun.length, 4, "an endpoint without claims starts again with 4");
  opened.clock.now_ms += 4_000;
  for (const chain of begun.slice(0, 2)) finish(opened.lanes, chain);
  assert.equal([...opened.lanes.enter()].length, 0);
});

Deno.test("RelayLanes.enter() admits 2 of a failing endpoint", () => {
  const { lanes } = open();
  lanes.add(many(40, { failing_since: new Date() }), 0);
  assert.equal([...lanes.enter()].length, 2);
});

/** [name, earlier fast attempts, attempts of one environment that then begin] */
const OF_ENVIRONMENT: [string, number, number][] = [
  ["16 of a new environment", 0, 16],
  ["64 of a fast one", 100, 64],
];

for (const [name, quick, expected] of OF_ENVIRONMENT) {
  Deno.test(`RelayLanes.enter() admits ${name}, over all its endpoints`, () => {
    const opened = open();
    make(opened, quick, 1);
    let under_way = 0;
    // An attacker can create new endpoints, and new environment ids by resets.
    for (let reset = 0; reset < 30; reset++) {
      under_way += begin(opened.lanes, String(reset), { environment_id: `env_reset_${reset}` });
    }
    assert.equal(under_way, expected);
  });
}

Deno.test("RelayLanes.enter() admits 32 of a slow environment, on new endpoints too", () => {
  const opened = open();
  make(opened, 100, 1);
  make(opened, 20, 13_000, { endpoint_id: "whe_slow" });
  let under_way = 0;
  for (let n = 0; n < 10; n++) under_way += begin(opened.lanes, `new_${n}`);
  assert.equal(under_way, 32);
});

Deno.test("RelayLanes.enter() admits 96 of an account, over all its sandboxes", () => {
  const opened = open();
  for (let i = 0; i < 4; i++) make(opened, 100, 1, { public_id: `env_${i}` });
  let under_way = 0;
  for (let i = 0; i < 4; i++) {
    for (let n = 0; n < 5; n++) {
      under_way += begin(opened.lanes, `${i}_${n}`, { public_id: `env_${i}` });
    }
  }
  assert.equal(under_way, 96);
});

Deno.test("RelayLanes.enter() reserves 64 of 256 for accounts with fewer than 4", () => {
  const opened = open();
  const fill = (account: string) => {
    let under_way = 0;
    for (let i = 0; i < 4; i++) {
      for (let n = 0; n < 5; n++) {
        const fields = { public_id: `env_${account}_${i}`, account };
        under_way += begin(opened.lanes, `${account}_${i}_${n}`, fields);
      }
    }
    return under_way;
  };
  for (const account of ["a", "b", "c"]) {
    for (let i = 0; i < 4; i++) {
      make(opened, 100, 1, { account, public_id: `env_${account}_${i}` });
    }
  }
  assert.deepEqual(["a", "b", "c", "d"].map(fill), [96, 96, 4, 4]);
});

Deno.test("RelayLanes.enter() admits a suspect above the limits", () => {
  const { lanes } = open();
  lanes.add(many(40), 0);
  assert.equal([...lanes.enter()].length, 4);
  lanes.add([delivery({ suspect: true })], 0);
  const [chain, ...more] = lanes.enter();
  assert.deepEqual([chain!.deliveries[0]!.suspect, more.length], [true, 0]);
});

Deno.test("RelayLanes.add() chains deliveries of one endpoint and subject in order", () => {
  const { lanes } = open();
  const [one, two, three] = many(3, { subject_id: "pay_a" });
  const elsewhere = delivery({ subject_id: "pay_a", endpoint_id: "whe_2" });
  lanes.add([one!, two!, three!, elsewhere, delivery()], 0);
  const chains = [...lanes.enter()].map(({ deliveries }) => deliveries);
  assert.deepEqual(chains.map(({ length }) => length).sort(), [1, 1, 3]);
  assert.deepEqual(chains.find(({ length }) => length === 3), [one, two, three]);
});

Deno.test("RelayLanes.enter() takes endpoints in turns", () => {
  const { lanes } = open();
  lanes.add([...many(70), ...many(4, { endpoint_id: "whe_2" })], 0);
  const first = [...lanes.enter()].slice(0, 8).map(({ deliveries }) => deliveries[0]!.endpoint_id);
  assert.equal(first.filter((id) => id === "whe_2").length, 4);
});

Deno.test("RelayLanes.enter() takes endpoints in turns when places free up one by one", () => {
  const { lanes } = open();
  // Five endpoints with four places each, in an environment limited to 16 places.
  const ids = Array.from({ length: 5 }, (_, i) => `whe_${i}`);
  for (const endpoint_id of ids) lanes.add(many(40, { endpoint_id }), 0);
  const begun = [...lanes.enter()];
  assert.equal(begun.length, 16);
  const freed = begun.filter(({ deliveries }) => deliveries[0]!.endpoint_id === "whe_0");
  const next: string[] = [];
  for (const chain of freed) {
    // A failed attempt; a delivered one would add a place.
    finish(lanes, chain, false);
    const [entered, ...others] = lanes.enter();
    assert.equal(others.length, 0);
    next.push(entered!.deliveries[0]!.endpoint_id);
  }
  assert.equal(new Set(next).size, next.length);
});

/** [name, duration of each attempt, delivered, rooms of endpoint, environment and account] */
const ROOMS: [string, number, boolean, [number, number, number]][] = [
  ["that answers at once: 512 in all", 1, true, [512, 128 + 480, 192 + 480]],
  ["that takes 20 ms: its attempts of 100 ms", 20, true, [80, 128 + 48, 192 + 48]],
  ["that takes 10 s: two for each place", 10_000, true, [4, 32, 64]],
  ["that fails: two", 1, false, [2, 32, 64]],
];

for (const [name, took_ms, delivered, expected] of ROOMS) {
  Deno.test(`RelayLanes.rooms() of an endpoint ${name}`, () => {
    const opened = open();
    const { lanes } = opened;
    lanes.add(many(202), 0);
    work(opened, took_ms, { delivered, left: 2 });
    assert.equal(lanes.claimed, 2);
    const { endpoints, environments, accounts } = lanes.rooms();
    assert.deepEqual(
      [endpoints.whe_1, environments.env_1, accounts.one],
      expected.map((most) => Math.max(0, most - 2)),
    );
  });
}

Deno.test("RelayLanes.rooms() leaves a quarter of all claims to other accounts", () => {
  const opened = open();
  for (let i = 0; i < 4; i++) {
    make(opened, 40, 1, { endpoint_id: `whe_${i}` });
    opened.lanes.add(many(150, { endpoint_id: `whe_${i}` }), 0);
  }
  assert.equal(opened.lanes.rooms().accounts.one! <= 768 - 600, true);
});

Deno.test("RelayLanes.surplus() lists the deliveries that wait at a slowed endpoint", () => {
  const opened = open();
  opened.lanes.add(many(200), 0);
  const begun = [...opened.lanes.enter()];
  for (let i = 0; i < 40; i++) {
    opened.clock.now_ms += 1;
    finish(opened.lanes, begun.shift()!);
    begun.push(...opened.lanes.enter());
  }
  assert.deepEqual(opened.lanes.surplus(), []);
  opened.clock.now_ms += 2_000;
  const surplus = opened.lanes.surplus();
  assert.ok(surplus.length >= 100, `${surplus.length}`);
  for (const one of surplus) opened.lanes.release(one);
  assert.equal(opened.lanes.claimed, 160 - surplus.length);
  assert.deepEqual(opened.lanes.surplus(), []);
});

Deno.test("RelayLanes.empty() returns waiting deliveries, not those in progress", () => {
  const { lanes } = open();
  lanes.add(many(20), 0);
  const begun = [...lanes.enter()];
  const waiting = lanes.empty("whe_1");
  assert.equal(waiting.length, 16);
  for (const one of waiting) lanes.release(one);
  assert.equal(lanes.claimed, 4);
  for (const chain of begun) finish(lanes, chain);
  assert.deepEqual([lanes.claimed, lanes.rooms()], [0, {
    endpoints: {},
    environments: {},
    accounts: Object.create(null),
  }]);
});
