/**
 * Webhooks: the rate at which the dispatcher delivers a backlog, and the rate of `fetch` loops that
 * post as many events. Every event must arrive once, and those of a payment in order.
 */

import type { Sql } from "postgres";
import { DEMO_ENVIRONMENTS } from "../../apps/operator/demo_account.ts";
import { launch } from "../../tests/support/common/process.ts";
import { ask } from "./api_request.ts";
import { cpuOfEach } from "./cpu_time.ts";
import { type Product, readProductCpu } from "./product.ts";
import type { AtEnd, Program, Run } from "./program.ts";
import type { Arrival } from "./webhook_receiver.ts";

/** Attempts that the dispatcher has under way at one endpoint (delivery_queue.ts). */
const CONCURRENCY = 16;
/** Events of the backlog for each second of a run. */
const EVENTS_PER_SECOND = 2000;
const POLL_MS = 50;
const DEADLINE_MS = 60_000;
const ENDPOINTS = "/v1/webhook_endpoints";

let receiver: Promise<string> | undefined;

/** Starts the receiver, which all runs share. */
export function startReceiver(atEnd: AtEnd): void {
  receiver = (async () => {
    const program = import.meta.resolve("./webhook_receiver.ts");
    const { ready, kill } = await launch<{ port: number }>(program, null);
    atEnd(kill);
    return `http://127.0.0.1:${ready.port}/`;
  })();
}

/**
 * Inserts the deliveries of the oldest events; the dispatcher finds them at its next tick. Their
 * ids begin with the times of the events, because retention deletes by the time in the id.
 */
export async function measureWebhooks(
  product: Product,
  sql: Sql,
  seconds: number,
): Promise<Run> {
  const url = await receiver!;
  const { id } = await ask(product, { method: "POST", path: ENDPOINTS, body: { url } });
  const before = await readProductCpu(product);
  const due = await sql<{ id: string }[]>`
    insert into pay.webhook_deliveries (environment_id, id, event_id, event_type, endpoint_id,
      subject_id, sequence, status, next_attempt_at, created_at)
    select e.environment_id, 'whd_' || substr(e.id, 5, 9) || left(md5(e.id || ${id}), 17),
      e.id, e.type, ${id}, e.subject_id, e.sequence, 'pending', e.created_at, e.created_at
    from pay.events e where e.sequence <= 2 and e.subject_id in (
      select p.id from pay.payments p where p.environment_id = ${DEMO_ENVIRONMENTS.test.id}
      order by p.id limit ${EVENTS_PER_SECOND * seconds / 2})
    returning event_id as id`;
  for (const deadline = performance.now() + DEADLINE_MS; performance.now() < deadline;) {
    const pending = await sql`
      select from pay.webhook_deliveries
      where endpoint_id = ${id} and status = 'pending' limit 1`;
    if (pending.length === 0) break;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  const cpu = cpuOfEach(before, await readProductCpu(product), due.length);
  const arrivals = await takeArrivals(url);
  await ask(product, { method: "DELETE", path: `${ENDPOINTS}/${id}` });
  expectArrivals(arrivals, new Set(due.map(({ id }) => id)));
  return { per_second: rateOf(arrivals), p99_ms: NaN, ...cpu };
}

/** Loops that only post, without a database. */
export const fetchLoops: Program = {
  name: `${CONCURRENCY} fetch loops`,
  stores: "nowhere",
  has: (line) => line === "webhooks",
  async measure(_line, seconds) {
    const url = await receiver!;
    const body = JSON.stringify({ id: "evt", data: { object: { id: "x".repeat(1500) } } });
    let left = EVENTS_PER_SECOND * seconds;
    const loop = async () => {
      while (left-- > 0) {
        const headers = { "Content-Type": "application/json" };
        await (await fetch(url, { method: "POST", headers, body })).body?.cancel();
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, loop));
    const per_second = rateOf(await takeArrivals(url));
    return { per_second, p99_ms: NaN, cpu_us: NaN, postgres_us: NaN };
  },
};

async function takeArrivals(url: string): Promise<Arrival[]> {
  return await (await fetch(url)).json();
}

/** @throws {Error} if an event is missing, has arrived twice, or before an earlier one */
function expectArrivals(arrivals: readonly Arrival[], due: ReadonlySet<string>): void {
  const newest = new Map<string, number>();
  const arrived = new Set<string>();
  for (const { body } of arrivals) {
    const { id, sequence, data } = JSON.parse(body);
    // Requests of an earlier run make events too.
    if (!due.has(id)) continue;
    const before = newest.get(data.object.id) ?? 0;
    if (arrived.has(id) || sequence !== before + 1) {
      throw new Error(`event ${id}, ${sequence} of its payment, arrived after ${before}`);
    }
    arrived.add(id);
    newest.set(data.object.id, sequence);
  }
  if (arrived.size < due.size) throw new Error(`${arrived.size} of ${due.size} events arrived`);
}

/** Arrivals per second, from the first to the last. */
function rateOf(arrivals: readonly Arrival[]): number {
  const [first, last] = [arrivals[0]!, arrivals.at(-1)!];
  return (arrivals.length - 1) / (last.at_ms - first.at_ms) * 1000;
}
