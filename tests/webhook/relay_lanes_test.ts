/**
 * RelayLanes: how much may be under way and how much may be claimed, of an endpoint, of an
 * environment, in all.
 */

import assert from "node:assert/strict";
import { type Chain, RelayLanes } from "../../shared/domain/relay_lanes.ts";
import type { ClaimedDelivery } from "../../shared/store/webhook_store.ts";

let made = 0;

/** A claimed delivery; of a subject of its own unless said otherwise. */
function delivery(fields: Partial<ClaimedDelivery> = {}): ClaimedDelivery {
  const id = `whd_${++made}`;
  return {
    environment_id: "env_1",
    id,
    endpoint_id: "whe_1",
    event_id: `evt_${made}`,
    subject_id: `pay_${made}`,
    attempt: 1,
    url: "http://127.0.0.1:1/",
    secrets: "[]",
    livemode: false,
    failing_since: null,
    body: "{}",
    ...fields,
  };
}

function many(count: number, fields: Partial<ClaimedDelivery> = {}): ClaimedDelivery[] {
  return Array.from({ length: count }, () => delivery(fields));
}

/** Ends a chain as a relay does. */
function finish(lanes: RelayLanes, chain: Chain, took_ms: number, delivered = true): void {
  for (const one of chain.deliveries) lanes.end(one, took_ms, delivered);
  lanes.leave(chain);
}

/** [name, what is claimed, how many chains begin] */
const PLACES: [string, ClaimedDelivery[], number][] = [
  ["one endpoint has 16", many(40), 16],
  ["a failing one has 2", many(40, { failing_since: new Date() }), 2],
  [
    "one environment has 64",
    Array.from({ length: 8 }, (_, i) => many(16, { endpoint_id: `whe_${i}` })).flat(),
    64,
  ],
  [
    "all have 256",
    Array.from(
      { length: 8 },
      (_, e) =>
        Array.from(
          { length: 4 },
          (_, i) => many(16, { environment_id: `env_${e}`, endpoint_id: `whe_${e}_${i}` }),
        ).flat(),
    ).flat(),
    256,
  ],
];

for (const [name, claimed, expected] of PLACES) {
  Deno.test(`RelayLanes.enter() ${name} under way`, () => {
    const lanes = new RelayLanes();
    lanes.add(claimed, 0);
    const begun = [...lanes.enter()];
    assert.equal(begun.length, expected);
    assert.equal([...lanes.enter()].length, 0);
    finish(lanes, begun[0]!, 1, claimed[0]!.failing_since === null);
    assert.equal([...lanes.enter()].length, 1, "a place that is free is taken");
  });
}

Deno.test("RelayLanes.add() keeps what is of one endpoint and subject together, in order", () => {
  const lanes = new RelayLanes();
  const [one, two, three] = many(3, { subject_id: "pay_a" });
  const elsewhere = delivery({ subject_id: "pay_a", endpoint_id: "whe_2" });
  lanes.add([one!, two!, three!, elsewhere, delivery()], 0);
  const chains = [...lanes.enter()].map(({ deliveries }) => deliveries);
  assert.deepEqual(chains.map(({ length }) => length).sort(), [1, 1, 3]);
  assert.deepEqual(chains.find(({ length }) => length === 3), [one, two, three]);
});

Deno.test("RelayLanes.enter() endpoints take turns", () => {
  const lanes = new RelayLanes();
  lanes.add([...many(70), ...many(4, { endpoint_id: "whe_2" })], 0);
  const first = [...lanes.enter()].slice(0, 8).map(({ deliveries }) => deliveries[0]!.endpoint_id);
  assert.equal(first.filter((id) => id === "whe_2").length, 4);
});

Deno.test("RelayLanes.enter() endpoints take turns as places become free one by one", () => {
  const lanes = new RelayLanes();
  // Five with sixteen places each, of an environment that has 64.
  const ids = Array.from({ length: 5 }, (_, i) => `whe_${i}`);
  for (const endpoint_id of ids) lanes.add(many(40, { endpoint_id }), 0);
  const begun = [...lanes.enter()];
  const freed = begun.filter(({ deliveries }) => deliveries[0]!.endpoint_id === "whe_0");
  const next = freed.slice(0, 5).map((chain) => {
    finish(lanes, chain, 1);
    const [entered, ...others] = lanes.enter();
    assert.equal(others.length, 0);
    return entered!.deliveries[0]!.endpoint_id;
  });
  assert.deepEqual(next.toSorted(), ids);
});

/** [name, time of each attempt, delivered, room of the endpoint, room of the environment] */
const ROOMS: [string, number, boolean, number, number][] = [
  ["that answers at once: 512 in all", 1, true, 512, 128 + 512 - 32],
  ["that takes 20 ms: what it does in 100 ms", 20, true, 80, 128 + 80 - 32],
  ["that takes 10 s: two for each place", 10_000, true, 32, 128],
  ["that fails: two", 1, false, 2, 128],
];

for (const [name, took_ms, delivered, of_endpoint, of_environment] of ROOMS) {
  Deno.test(`RelayLanes.rooms() of an endpoint ${name}`, () => {
    const lanes = new RelayLanes();
    lanes.add(many(17), 0);
    const begun = [...lanes.enter()];
    for (const chain of begun.slice(1)) finish(lanes, chain, took_ms, delivered);
    // Two are left: one under way, one that waits.
    assert.equal(lanes.claimed, 2);
    assert.deepEqual(lanes.rooms(), {
      whe_1: Math.max(0, of_endpoint - 2),
      env_1: of_environment - 2,
    });
  });
}

Deno.test("RelayLanes.empty() gives what waits and leaves what is under way", () => {
  const lanes = new RelayLanes();
  lanes.add(many(20), 0);
  const begun = [...lanes.enter()];
  const waiting = lanes.empty("whe_1");
  assert.equal(waiting.length, 4);
  for (const one of waiting) lanes.end(one, null, false);
  assert.equal(lanes.claimed, 16);
  for (const chain of begun) finish(lanes, chain, 1);
  assert.deepEqual([lanes.claimed, lanes.rooms()], [0, {}]);
});
