/**
 * R13: hostile endpoints delay no other. The run makes payments at a steady rate in sandboxes with
 * healthy endpoints. In turn it adds and removes an endpoint that never responds in time, and an
 * account that tries to take all slots of the dispatcher. It compares the time from event to
 * arrival at the healthy endpoints.
 */

import { pause, until } from "../../../support/common/until.ts";
import type { Verdict } from "../../harness/audit.ts";
import { COMPLETED, RepeatingClient, SANDBOX, V1 } from "../../harness/client.ts";
import { serveHooks } from "../../harness/receiver.ts";
import { type KeyedEnvironment, type Stage, untilWell } from "../../harness/stage.ts";

const SANDBOXES = 4;
/** Healthy endpoints of each sandbox. */
const HEALTHY = 12;
const PAYMENTS_PER_S = 12;
/** Pauses of the machine cause latencies up to this. A tarpit causes seconds. */
const FLOOR_MS = 100;
const EVENTS = ["payment.completed"];
/**
 * Timeout of an attempt, and its lease. Both are close to those of the product, so that an attacker
 * with all slots would hold them for a long time. The attacker's receiver responds just before the
 * timeout.
 */
const TIMEOUTS = { attempt_ms: 10_000, lease_ms: 18_000 };
const ATTACKER_RESPONSES_MS = 9_000;
const TARPIT_MS = 11_000;
/** Longest wait for the last deliveries of a phase: two retries and the tarpit's timeouts. */
const DRAIN_MS = 45_000;
/** Two rounds of the attacker a second fill a dispatcher without quotas, with little load. */
const ROUND = { endpoints: 4, payments: 20, every_ms: 500 };
/** Rounds after which a dispatcher without quotas has no slot left: each takes 64 of 256. */
const FILLING_ROUNDS = 6;

/**
 * Compares phases with and without hostile endpoints.
 * @param seconds duration of each of four phases
 */
export async function runHostile(stage: Stage, seconds: number): Promise<Verdict[]> {
  const server = await stage.startServer(TIMEOUTS);
  await untilWell(server);
  // Nothing is killed, so only the attacker may have to repeat a request.
  const client = new RepeatingClient(stage, [server]);
  const hostile_client = new RepeatingClient(stage, [server]);
  /** Milliseconds from event to first arrival at healthy endpoints, by path and event. */
  const arrived = new Map<string, number>();
  const healthy = serveHooks(stage, async (request) => {
    const now = Date.now();
    const { id, created_at } = await request.json();
    const name = `${new URL(request.url).pathname} ${id}`;
    if (!arrived.has(name)) arrived.set(name, now - Date.parse(created_at));
  });
  const tarpit = holdAttempts(stage, TARPIT_MS);
  const slow = holdAttempts(stage, ATTACKER_RESPONSES_MS);
  const sandboxes: KeyedEnvironment[] = [];
  for (let i = 0; i < SANDBOXES; i++) sandboxes.push(await stage.makeSandbox(`tenant ${i}`));
  const keyOf = (i: number) => sandboxes[i % SANDBOXES]!.key;
  for (let i = 0; i < SANDBOXES * HEALTHY; i++) {
    await client.addEndpoint(keyOf(i), { url: `${healthy}${i}`, events: EVENTS });
  }
  const { id } = await client.addEndpoint(keyOf(0), { url: tarpit.url, events: EVENTS });
  const { key: attacker_key } = await stage.makeSandbox("attacker", "attacker");
  const attacker = makeAttacker(stage, hostile_client, attacker_key, slow.url);
  const turn = async (status: "enabled" | "disabled") => {
    if (status === "disabled") await attacker.stop();
    const put = { method: "PUT", body: { status } };
    const path = `${V1}/webhook_endpoints/${id}`;
    const response = await client.send(keyOf(0), path, put);
    if (response.status !== 200) throw new Error(`the tarpit is not ${status}`);
    if (status === "enabled") return await attacker.start();
    const isIdle = () => tarpit.held.now + slow.held.now === 0;
    await until("nothing is under way", isIdle, DRAIN_MS);
  };
  const pay = async (i: number) => {
    const { status } = await client.send(keyOf(i), `${SANDBOX}/payments`, { body: COMPLETED });
    if (status !== 201) throw new Error(`a payment got ${status}`);
  };

  let due = 0;
  const breaches: string[] = [];
  const latencies: Record<"calm" | "hostile", number[]> = { calm: [], hostile: [] };
  // The first calm phase warms up and is not measured.
  for (const [n, name] of (["calm", "calm", "hostile", "calm", "hostile"] as const).entries()) {
    await turn(name === "calm" ? "disabled" : "enabled");
    arrived.clear();
    const paid: Promise<void>[] = [];
    for (let i = 0; i < Math.ceil((n === 0 ? 1 : seconds) * PAYMENTS_PER_S); i++) {
      paid.push(pay(i));
      await pause(1_000 / PAYMENTS_PER_S);
    }
    await Promise.all(paid);
    // A late delivery counts in the phase of its payment.
    const due_here = paid.length * HEALTHY;
    await until("all have arrived", () => arrived.size >= due_here, DRAIN_MS).catch(() => {});
    if (arrived.size !== due_here) breaches.push(`${arrived.size} of ${due_here} have arrived`);
    if (n === 0) continue;
    latencies[name].push(p99([...arrived.values()]));
    due += due_here;
  }
  // A payment is more than 1 % of a phase, so one pause of the machine decides a phase. It does not
  // decide two, and a hostile endpoint delays others in both.
  const [calm, hostile] = [Math.min(...latencies.calm), Math.min(...latencies.hostile)];
  const limit = Math.max(FLOOR_MS, 2 * calm);
  if (hostile >= limit) breaches.push(`p99 of ${hostile} ms, ${limit} ms is the limit`);
  const { most, all } = slow.held;
  if (tarpit.held.all === 0) breaches.push("the tarpit got no delivery");
  if (all === 0) breaches.push("the attacker got no delivery");
  return [{
    promise: "R13",
    says: `${SANDBOXES * HEALTHY} healthy endpoints, ${due} deliveries: p99 ${calm} ms at best, ` +
      `beside a tarpit (${tarpit.held.all} attempts) and an attacker (${most} of its ` +
      `attempts under way at most, ${all} in all) ${hostile} ms`,
    breaches: [...breaches, ...client.breachesOfCalm, ...hostile_client.breaches],
  }];
}

function p99(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * 0.99)] ?? Infinity;
}

/** A receiver that holds each attempt for a time, and counts: now, most at once, and in all. */
function holdAttempts(stage: Stage, held_ms: number) {
  const held = { now: 0, most: 0, all: 0 };
  const url = serveHooks(stage, async (request) => {
    held.all++;
    held.most = Math.max(held.most, ++held.now);
    await request.body?.cancel();
    await pause(held_ms);
    held.now--;
  });
  return { url, held };
}

/**
 * A tenant that tries to take all slots of the dispatcher. In a loop it creates endpoints whose
 * receiver returns 200 slowly, creates payments, resets its sandbox and deletes the endpoints.
 */
function makeAttacker(stage: Stage, client: RepeatingClient, key: string, url: string) {
  let is_at_work = false;
  let work = Promise.resolve();
  const attack = async () => {
    const ids: string[] = [];
    for (let i = 0; i < ROUND.endpoints; i++) {
      ids.push((await client.addEndpoint(key, { url, events: ["*"] })).id);
    }
    const pay = () => client.send(key, `${SANDBOX}/payments`, { body: COMPLETED });
    await Promise.all(Array.from({ length: ROUND.payments }, pay));
    await client.send(key, `${SANDBOX}/reset`, { body: {} });
    for (const id of ids) {
      await client.send(key, `${V1}/webhook_endpoints/${id}`, { method: "DELETE" });
    }
  };
  /** Resolves after its last round; attempts may still be under way. */
  const stop = async () => {
    is_at_work = false;
    await work;
  };
  /** Resolves after `FILLING_ROUNDS` rounds. */
  const start = () => {
    is_at_work = true;
    const filled = Promise.withResolvers<void>();
    work = (async () => {
      for (let round = 1; is_at_work; round++) {
        const next = pause(ROUND.every_ms);
        await attack();
        if (round === FILLING_ROUNDS) filled.resolve();
        await next;
      }
    })();
    // A round that fails also ends the wait.
    return Promise.race([filled.promise, work]);
  };
  stage.atEnd(() => stop().catch(() => {}));
  return { start, stop };
}
