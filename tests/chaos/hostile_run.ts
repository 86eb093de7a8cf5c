/**
 * R13: hostile endpoints delay no other. The run makes payments at a steady rate in sandboxes with
 * 49 healthy endpoints. In turn it adds and removes a fiftieth endpoint that accepts connections
 * and never responds, and an account that tries to take all slots of the dispatcher (attacker.ts).
 * It compares the time from event to arrival at the healthy endpoints.
 */

import { addEndpoint, callApi, ENDPOINTS, SANDBOX_PAYMENTS } from "./api_call.ts";
import { openAttacker } from "./attacker.ts";
import type { Verdict } from "./evidence.ts";
import { until } from "../support/common/until.ts";
import type { SandboxKey } from "./sandbox.ts";
import { type Stage, untilWell } from "./stage.ts";

const SANDBOXES = 4;
const HEALTHY = 49;
const PAYMENTS_PER_S = 12;
/** Pauses of the machine cause latencies up to this. A tarpit causes seconds. */
const FLOOR_MS = 100;
const EVENT = "payment.completed";
/**
 * Timeout of an attempt, and its lease. Both are close to those of the product, so that an attacker
 * with all slots would hold them for a long time. The attacker's receiver responds just before the
 * timeout.
 */
const ATTEMPT_MS = 10_000;
const LEASE_MS = 18_000;
const ATTACKER_RESPONSES_MS = 9_000;
/** Longest wait for the last deliveries of a phase: two retries and the tarpit's timeouts. */
const DRAIN_MS = 45_000;

/**
 * Compares phases with and without hostile endpoints.
 * @param seconds duration of each of four phases
 */
export async function runHostile(stage: Stage, seconds: number): Promise<Verdict[]> {
  const server = await stage.startServer({ attempt_ms: ATTEMPT_MS, lease_ms: LEASE_MS });
  await untilWell(server);
  /** Milliseconds from event to first arrival at healthy endpoints, by path and event. */
  const arrived = new Map<string, number>();
  const healthy = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => {
      const now = Date.now();
      const { id, created_at } = await request.json();
      const name = `${new URL(request.url).pathname} ${id}`;
      if (!arrived.has(name)) arrived.set(name, now - Date.parse(created_at));
      return new Response(null, { status: 204 });
    },
  );
  stage.atEnd(() => healthy.shutdown());
  const tarpit = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  let [caught, hanging] = [0, 0];
  (async () => {
    for await (const connection of tarpit) {
      caught++;
      hanging++;
      // The connection stays open until the dispatcher closes it.
      connection.readable.pipeTo(new WritableStream()).catch(() => {}).finally(() => hanging--);
    }
  })().catch(() => {});
  stage.atEnd(() => tarpit.close());

  const sandboxes: SandboxKey[] = [];
  for (let i = 0; i < SANDBOXES; i++) sandboxes.push(await stage.makeSandbox(`tenant ${i}`));
  for (let i = 0; i < HEALTHY; i++) {
    const url = `http://127.0.0.1:${healthy.addr.port}/${i}`;
    await addEndpoint(server.base_url, sandboxes[i % SANDBOXES]!.text, url, [EVENT]);
  }
  // The tarpit belongs to the last sandbox, which has 12 healthy endpoints.
  const { text } = sandboxes[SANDBOXES - 1]!;
  const { id } = await addEndpoint(
    server.base_url,
    text,
    `http://127.0.0.1:${tarpit.addr.port}/`,
    [EVENT],
  );
  const attacker_key = (await stage.makeSandbox("attacker", "attacker")).text;
  const attacker = openAttacker(server.base_url, attacker_key, ATTACKER_RESPONSES_MS);
  stage.atEnd(() => attacker.close());
  const turn = async (status: "enabled" | "disabled") => {
    if (status === "disabled") await attacker.stop();
    const response = await fetch(`${server.base_url}${ENDPOINTS}/${id}`, {
      method: "PUT",
      headers: { Authorization: `Bearer ${text}`, "Content-Type": "application/json" },
      body: JSON.stringify({ status }),
    });
    await response.body?.cancel();
    if (response.status !== 200) throw new Error(`the tarpit is not ${status}`);
    if (status === "enabled") return attacker.start();
    await until("nothing is under way", () => hanging === 0 && attacker.held.now === 0, DRAIN_MS);
  };
  const pay = async (i: number) => {
    const body = { amount_minor: 100, currency: "EUR", outcome: "success" };
    const key = sandboxes[i % SANDBOXES]!.text;
    const { status } = await callApi(server.base_url, key, SANDBOX_PAYMENTS, { body });
    if (status !== 201) throw new Error(`a payment got ${status}`);
  };

  let due = 0;
  const breaches: string[] = [];
  /** The 99th percentile of each phase. */
  const latencies: Record<"calm" | "hostile", number[]> = { calm: [], hostile: [] };
  // The first calm phase warms up and is not measured.
  for (const [n, name] of (["calm", "calm", "hostile", "calm", "hostile"] as const).entries()) {
    await turn(name === "calm" ? "disabled" : "enabled");
    arrived.clear();
    const count = Math.ceil((n === 0 ? 1 : seconds) * PAYMENTS_PER_S);
    const paid: Promise<void>[] = [];
    for (let i = 0; i < count; i++) {
      paid.push(pay(i));
      await new Promise((resolve) => setTimeout(resolve, 1_000 / PAYMENTS_PER_S));
    }
    await Promise.all(paid);
    // A late delivery counts in the phase of its payment.
    const due_here = Array.from({ length: count }, (_, i) => healthyOf(i % SANDBOXES))
      .reduce((sum, endpoints) => sum + endpoints, 0);
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
  if (caught === 0) breaches.push("the tarpit got no connection");
  const { held } = attacker;
  if (held.all === 0) breaches.push("the attacker got no delivery");
  return [{
    promise: "R13",
    says: `${HEALTHY} healthy endpoints, ${due} deliveries: p99 ${calm} ms at best, ` +
      `beside a tarpit (${caught} connections caught) and an attacker (${held.most} of its ` +
      `attempts under way at most, ${held.all} in all) ${hostile} ms`,
    breaches,
  }];
}

function p99(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * 0.99)] ?? Infinity;
}

/** Healthy endpoints of a sandbox. */
function healthyOf(sandbox: number): number {
  return Math.floor(HEALTHY / SANDBOXES) + (sandbox < HEALTHY % SANDBOXES ? 1 : 0);
}
