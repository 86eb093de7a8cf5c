/**
 * Webhooks: how fast the relay empties its outbox into one fast receiver, beside loops of `fetch`
 * that post the same events to the same receiver; how soon after a create its events arrive, at a low
 * rate; and how fast creates are while each of their events is delivered. After every run the receiver
 * and the outbox must agree with the events.
 */

import { formatTime } from "../shared/core/clock.ts";
import { ask, CREATE_A } from "./api_request.ts";
import { auditBooks, markBooks, NO_ROWS, readBooks, type Rows } from "./books.ts";
import { cpuTimeBetween, readCpuTime } from "./cpu_time.ts";
import { type ArrivedEvent, auditDeliveries, readArrivals, readOutbox } from "./delivery_books.ts";
import { CONNECTIONS, CREATE_ROWS, createOf, createPlan, type RequestForge } from "./line.ts";
import { type LoopbackServer, startLoopbackServer } from "./loopback_server.ts";
import { type Bench, counts, measureServer, type Run, type ServerRun } from "./measure.ts";
import type { Pair } from "./pair.ts";
import { quantile } from "./quantile.ts";

/** As many as the relay has under way at one endpoint (relay.ts). */
const CONCURRENCY = 16;
/** Payments of the backlog for each second of a run, two events each. */
const BACKLOG_PER_SECOND = 1000;
/** Creates per second of the open loop (performance targets), and how much longer it takes. */
const LOW_RATE = 100;
const LOW_RATE_STRETCH = 2;
/** The outbox is looked at this often, and given up after. */
const POLL_MS = 100;
const DEADLINE_MS = 60_000;

/** An event as it is stored. */
interface StoredEvent {
  id: string;
  body: string;
}

/** What arrived in a run of the relay that counts. */
interface DeliveryRun {
  arrivals: ArrivedEvent[];
  cpu: Run["cpu"];
}

/**
 * The pairs; the first payments there are make the backlog.
 * @param atEnd takes the step that ends the receiver
 */
export async function prepareWebhookPairs(
  forge: RequestForge,
  atEnd: (step: () => Promise<void>) => void,
): Promise<Pair[]> {
  const { bench } = forge;
  const receiver = await startLoopbackServer("webhook_receiver.ts");
  atEnd(() => receiver.stop());
  const backlog = await bench.sql<StoredEvent[]>`
    select e.id, e.body from pay.events e
    join (select id from pay.payments order by id limit ${
    Math.ceil(bench.seconds * BACKLOG_PER_SECOND)
  }) p
      on p.id = e.subject_id
    order by e.id`;
  return [
    {
      name: "webhooks beside fetch",
      connections: CONCURRENCY,
      run: () => emptyOutbox(bench, receiver, backlog),
      measureBeside: () => postByFetch(bench, receiver, backlog, CONCURRENCY),
    },
    {
      name: "webhooks beside fetch, one by one",
      connections: CONCURRENCY,
      run: () => emptyOutbox(bench, receiver, backlog),
      measureBeside: () => postByFetch(bench, receiver, backlog, 1),
    },
    ...deliveredPairs(forge, receiver),
    {
      name: `create to arrival, ${LOW_RATE}/s`,
      connections: null,
      run: () => createSlowly(bench, receiver),
      measureBeside: null,
    },
  ];
}

/**
 * The outbox gets the events as if the endpoint had been away since they happened: ids begin with
 * that time, or retention would take them for old. The relay finds them by itself, with the next tick
 * of its clock.
 */
async function emptyOutbox(
  bench: Bench,
  receiver: LoopbackServer,
  backlog: readonly StoredEvent[],
): Promise<Run | null> {
  const ids = backlog.map(({ id }) => id);
  const run = await measureDeliveries(bench, receiver, "webhooks", NO_ROWS, async (endpoint_id) => {
    await bench.sql`
      insert into pay.webhook_deliveries (environment_id, id, event_id, event_type, endpoint_id,
        subject_id, sequence, status, next_attempt_at, created_at)
      select e.environment_id, 'whd_' || substr(e.id, 5, 9) || left(md5(e.id || ${endpoint_id}), 17),
        e.id, e.type,
        ${endpoint_id}, e.subject_id, e.sequence, 'pending', e.created_at, e.created_at
      from pay.events e where e.id = any (${ids})`;
    return { answers: 0, ids };
  });
  if (run === null) return null;
  const { arrivals, cpu } = run;
  const [p50_ms, p99_ms] = [NaN, NaN];
  return { per_second: rateOf(arrivals), p50_ms, p99_ms, cpu, answered: arrivals.length };
}

/** The rate of a loop that does nothing but post. Null when not everything arrived. */
async function postByFetch(
  bench: Bench,
  receiver: LoopbackServer,
  backlog: readonly StoredEvent[],
  concurrency: number,
): Promise<number | null> {
  let next = 0;
  const loop = async () => {
    for (let event = backlog[next++]; event !== undefined; event = backlog[next++]) {
      const response = await fetch(urlOf(receiver), {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: event.body,
      });
      await response.body?.cancel();
    }
  };
  await Promise.all(Array.from({ length: concurrency }, loop));
  const arrivals = await takeArrivals(receiver);
  const arrived = new Set(arrivals.map(({ id }) => id));
  const missing = backlog.filter(({ id }) => !arrived.has(id)).length;
  const problems = missing === 0 ? [] : [`${missing} posts did not arrive`];
  return counts(bench, "fetch loop", problems) ? rateOf(arrivals) : null;
}

/**
 * An open loop of creates. Latency is from the moment when the server took the request, which is
 * before its commit, to the arrival of each of its events, of which the second waits for the first.
 */
async function createSlowly(bench: Bench, receiver: LoopbackServer): Promise<Run | null> {
  const { product, sql, seconds } = bench;
  const creates = Math.ceil(seconds * LOW_RATE_STRETCH * LOW_RATE);
  const name = `creates, ${LOW_RATE}/s`;
  const run = await measureDeliveries(bench, receiver, name, CREATE_ROWS, async () => {
    const start = performance.now();
    const payments = await Promise.all(
      Array.from({ length: creates }, async (_, i): Promise<{ id: string }> => {
        await waitUntil(start + i * 1000 / LOW_RATE);
        return await ask(product, createOf(CREATE_A, crypto.randomUUID()));
      }),
    );
    const events = await sql<{ id: string }[]>`
      select id from pay.events where subject_id = any (${payments.map(({ id }) => id)})`;
    return { answers: creates, ids: events.map(({ id }) => id) };
  });
  if (run === null) return null;
  const { arrivals } = run;
  const latencies = arrivals.map(({ at_ms, created_ms }) => at_ms - created_ms);
  latencies.sort((a, b) => a - b);
  return {
    per_second: rateOf(arrivals),
    p50_ms: quantile(latencies, 0.5),
    p99_ms: quantile(latencies, 0.99),
    // The creates are this process's, so the machine's time cannot be told apart.
    cpu: null,
    answered: arrivals.length,
  };
}

/**
 * Creates at full speed while there is an endpoint for their events, beside creates without one; and
 * the same creates, counted until the last of their events has arrived.
 */
function deliveredPairs(forge: RequestForge, receiver: LoopbackServer): Pair[] {
  const { bench } = forge;
  const create = (name: string) =>
    measureServer(bench, name, CONNECTIONS, createPlan(forge), CREATE_ROWS);
  interface Delivered {
    run: ServerRun;
    arrived: Run;
  }
  const createWithEndpoint = async (name: string): Promise<Delivered | null> => {
    const began_ms = await markBooks();
    const began_at = formatTime(began_ms);
    const runs: ServerRun[] = [];
    const delivered = await measureDeliveries(bench, receiver, name, CREATE_ROWS, async () => {
      const run = await create(name);
      if (run !== null) runs.push(run);
      const events = await bench.sql<{ id: string }[]>`
        select e.id from pay.environments n
        join lateral (select id from pay.events v where v.environment_id = n.id
          and v.id >= pay.id_floor('evt_', ${began_at}::text::timestamptz) offset 0) e on true`;
      return { answers: run?.result.answered ?? 0, ids: events.map(({ id }) => id) };
    });
    const [run] = runs;
    if (run === undefined || delivered === null) return null;
    const { arrivals, cpu } = delivered;
    const per_second = run.answered / (arrivals.at(-1)!.at_ms - began_ms) * 1000;
    return { run, arrived: { ...run, per_second, p50_ms: NaN, p99_ms: NaN, cpu } };
  };
  // One run for both figures, when both are asked for.
  let beside: number | null = null;
  let newest: Delivered | null = null;
  const measureBeside = async () =>
    beside = (await create("create without endpoints"))?.per_second ?? null;
  const [name, arrived] = ["create with an endpoint", "create until every event has arrived"];
  return [
    {
      name,
      connections: CONNECTIONS,
      measureBeside,
      run: async () => (newest = await createWithEndpoint(name))?.run ?? null,
    },
    {
      name: arrived,
      connections: CONNECTIONS,
      measureBeside: () => newest === null ? measureBeside() : Promise.resolve(beside),
      run: async () => {
        const found = newest ?? await createWithEndpoint(arrived);
        newest = null;
        return found?.arrived ?? null;
      },
    },
  ];
}

/**
 * Makes an endpoint, lets `work` make events for it, waits until nothing is pending, audits.
 * Null when the run does not count.
 * @param work tells how many requests were answered, and the ids of the events
 */
async function measureDeliveries(
  bench: Bench,
  receiver: LoopbackServer,
  name: string,
  each: Rows,
  work: (endpoint_id: string) => Promise<{ answers: number; ids: readonly string[] }>,
): Promise<DeliveryRun | null> {
  const { product, sql } = bench;
  const path = "/v1/webhook_endpoints";
  const endpoint = await ask(product, { method: "POST", path, body: { url: urlOf(receiver) } });
  const pids = { load: receiver.pid, server: product.pid, postgres: product.postgres_pid };
  const since_ms = await markBooks();
  const cpu_before = await readCpuTime(pids);
  const { answers, ids } = await work(endpoint.id);
  await waitForEmptyOutbox(bench, endpoint.id);
  const cpu = cpuTimeBetween(cpu_before, await readCpuTime(pids));
  const arrivals = await takeArrivals(receiver);
  const problems = [
    ...auditDeliveries(arrivals, new Set(ids), await readOutbox(sql, endpoint.id)),
    ...auditBooks(await readBooks(sql, since_ms), answers, each),
  ];
  await ask(product, { method: "DELETE", path: `${path}/${endpoint.id}` });
  return counts(bench, name, problems) ? { arrivals, cpu } : null;
}

/** Until nothing is pending or the deadline is over; the audit tells which. */
async function waitForEmptyOutbox({ sql }: Bench, endpoint_id: string): Promise<void> {
  for (const deadline = performance.now() + DEADLINE_MS; performance.now() < deadline;) {
    const pending = await sql`
      select from pay.webhook_deliveries
      where endpoint_id = ${endpoint_id} and status = 'pending' limit 1`;
    if (pending.length === 0) return;
    await waitUntil(performance.now() + POLL_MS);
  }
}

async function takeArrivals(receiver: LoopbackServer): Promise<ArrivedEvent[]> {
  return readArrivals(await (await fetch(urlOf(receiver))).json());
}

/** Arrivals per second, from the first to the last. */
function rateOf(arrivals: readonly ArrivedEvent[]): number {
  const [first, last] = [arrivals[0], arrivals.at(-1)];
  if (first === undefined || last === undefined) return NaN;
  return (arrivals.length - 1) / (last.at_ms - first.at_ms) * 1000;
}

function urlOf({ port }: LoopbackServer): string {
  return `http://127.0.0.1:${port}/`;
}

function waitUntil(at_ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, at_ms - performance.now())));
}
