/**
 * Webhooks: the rate at which the dispatcher delivers a backlog, beside `fetch` loops that post the
 * same events; the time from a create to the arrival of its events at a low rate; and the rate of
 * creates whose events are all delivered. After every run the arrivals and the outbox must agree
 * with the events.
 */

import { formatTime } from "../../shared/core/clock.ts";
import { ask, CREATE_A } from "./api_request.ts";
import {
  type ArrivedEvent,
  auditBooks,
  auditDeliveries,
  markBooks,
  NO_ROWS,
  readArrivals,
  readBooks,
  readOutbox,
  type Rows,
} from "./books.ts";
import { cpuTimeBetween, readCpuTime } from "./cpu_time.ts";
import { CONNECTIONS, CREATE_ROWS, createOf, createPlan, type RequestForge } from "./line.ts";
import {
  type AtEnd,
  type Bench,
  counts,
  type LoadPlan,
  measureServer,
  type Responder,
  type Run,
  startServer,
} from "./measure.ts";
import { type Pair, quantile } from "./measurement.ts";

/** Attempts that the dispatcher has under way at one endpoint (delivery_queue.ts). */
const CONCURRENCY = 16;
/** Payments of the backlog for each second of a run; each has two events. */
const BACKLOG_PER_SECOND = 1000;
/** Creates per second of the open loop (performance bounds), and the factor of its duration. */
const LOW_RATE = 100;
const LOW_RATE_STRETCH = 2;
/** Interval between looks at the outbox, and the longest wait for it. */
const POLL_MS = 100;
const DEADLINE_MS = 60_000;

/** A stored event. */
interface StoredEvent {
  id: string;
  body: string;
}

/** The requests of a run with webhooks, and the ids of their events. */
interface Work {
  responses: number;
  ids: readonly string[];
}

/** A run with webhooks that counts. */
interface DeliveryRun {
  arrivals: ArrivedEvent[];
  cpu: Run["cpu"];
}

/** Starts the receiver and prepares the pairs. The oldest payments make the backlog. */
export async function prepareWebhookPairs(forge: RequestForge, atEnd: AtEnd): Promise<Pair[]> {
  const { bench } = forge;
  const receiver = await startServer("webhook_receiver.ts", null, atEnd);
  const payments = Math.ceil(bench.seconds * BACKLOG_PER_SECOND);
  const backlog = await bench.sql<StoredEvent[]>`
    select e.id, pay_internal.event_body(e) as body from pay.events e
    join (select id from pay.payments order by id limit ${payments}) p on p.id = e.subject_id
    order by e.id`;
  return [
    {
      name: "webhooks beside fetch",
      connections: CONCURRENCY,
      run: () => deliverBacklog(bench, receiver, backlog),
      measureBeside: () => postByFetch(bench, receiver, backlog),
    },
    {
      name: "create until every event has arrived",
      connections: CONNECTIONS,
      run: () => createUntilArrived(bench, receiver, createPlan(forge)),
      measureBeside: async () =>
        (await createAtFullSpeed(bench, "without endpoints", createPlan(forge)))?.per_second ??
          null,
    },
    {
      name: `create to arrival, ${LOW_RATE}/s`,
      connections: null,
      run: () => createSlowly(bench, receiver),
      measureBeside: null,
    },
  ];
}

/**
 * Inserts the deliveries of the backlog; the dispatcher finds them at its next tick. Their ids
 * begin with the times of the events, because retention deletes by the time in the id.
 */
async function deliverBacklog(
  bench: Bench,
  receiver: Responder,
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
    return { responses: 0, ids };
  });
  if (run === null) return null;
  const { arrivals, cpu } = run;
  const [p50_ms, p99_ms] = [NaN, NaN];
  return { per_second: rateOf(arrivals), p50_ms, p99_ms, cpu, responses: arrivals.length };
}

/** The rate of loops that only post. Null if an event did not arrive. */
async function postByFetch(
  bench: Bench,
  receiver: Responder,
  backlog: readonly StoredEvent[],
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
  await Promise.all(Array.from({ length: CONCURRENCY }, loop));
  const arrivals = await takeArrivals(receiver);
  const arrived = new Set(arrivals.map(({ id }) => id));
  const missing = backlog.filter(({ id }) => !arrived.has(id)).length;
  const problems = missing === 0 ? [] : [`${missing} posts did not arrive`];
  return counts(bench, "fetch loop", problems) ? rateOf(arrivals) : null;
}

/**
 * Creates in an open loop. The latency of an event is the time from the start of its request,
 * before the commit, to its arrival. The second event of a payment waits for the first.
 */
async function createSlowly(bench: Bench, receiver: Responder): Promise<Run | null> {
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
    return { responses: creates, ids: events.map(({ id }) => id) };
  });
  if (run === null) return null;
  const { arrivals } = run;
  const latencies = arrivals.map(({ at_ms, created_ms }) => at_ms - created_ms);
  latencies.sort((a, b) => a - b);
  return {
    per_second: rateOf(arrivals),
    p50_ms: quantile(latencies, 0.5),
    p99_ms: quantile(latencies, 0.99),
    // This process sends the creates, so their CPU time would count as that of other programs.
    cpu: null,
    responses: arrivals.length,
  };
}

/** Creates at full speed with an endpoint, counted until their last event has arrived. */
async function createUntilArrived(
  bench: Bench,
  receiver: Responder,
  plan: LoadPlan,
): Promise<Run | null> {
  const began_ms = await markBooks();
  const name = "with an endpoint";
  let [responses, ended_ms] = [0, NaN];
  const work = async () => {
    responses = (await createAtFullSpeed(bench, name, plan))?.responses ?? 0;
    ended_ms = Date.now();
    const events = await bench.sql<{ id: string }[]>`
      select e.id from pay.environments n
      join lateral (select id from pay.events v where v.environment_id = n.id
        and v.id >= pay_internal.id_floor('evt_', ${
      formatTime(began_ms)
    }::text::timestamptz) offset 0) e
        on true`;
    return { responses, ids: events.map(({ id }) => id) };
  };
  const run = await measureDeliveries(bench, receiver, name, CREATE_ROWS, work);
  if (run === null || responses === 0) return null;
  const { arrivals, cpu } = run;
  const per_second = responses / ((arrivals.at(-1)?.at_ms ?? ended_ms) - began_ms) * 1000;
  return { per_second, p50_ms: NaN, p99_ms: NaN, cpu, responses };
}

function createAtFullSpeed(bench: Bench, name: string, plan: LoadPlan): Promise<Run | null> {
  return measureServer(bench, `create ${name}`, CONNECTIONS, plan, CREATE_ROWS);
}

/**
 * Makes an endpoint, calls `work`, waits until no delivery is pending, and audits. Null if the run
 * does not count.
 * @param work makes events for the endpoint
 */
async function measureDeliveries(
  bench: Bench,
  receiver: Responder,
  name: string,
  each: Rows,
  work: (endpoint_id: string) => Promise<Work>,
): Promise<DeliveryRun | null> {
  const { product, sql } = bench;
  const path = "/v1/webhook_endpoints";
  const body = { url: urlOf(receiver) };
  const { id: endpoint_id } = await ask(product, { method: "POST", path, body });
  const pids = { load: receiver.pid, server: product.pid, postgres: product.postgres_pid };
  const since_ms = await markBooks();
  const cpu_before = await readCpuTime(pids);
  const { responses, ids } = await work(endpoint_id);
  await waitForEmptyOutbox(bench, endpoint_id);
  const cpu = cpuTimeBetween(cpu_before, await readCpuTime(pids));
  const arrivals = await takeArrivals(receiver);
  const problems = [
    ...auditDeliveries(arrivals, new Set(ids), await readOutbox(sql, endpoint_id)),
    ...auditBooks(await readBooks(sql, since_ms), responses, each),
  ];
  await ask(product, { method: "DELETE", path: `${path}/${endpoint_id}` });
  return counts(bench, name, problems) ? { arrivals, cpu } : null;
}

/** Waits until no delivery is pending or the deadline is over. The audit reports the rest. */
async function waitForEmptyOutbox({ sql }: Bench, endpoint_id: string): Promise<void> {
  for (const deadline = performance.now() + DEADLINE_MS; performance.now() < deadline;) {
    const pending = await sql`
      select from pay.webhook_deliveries
      where endpoint_id = ${endpoint_id} and status = 'pending' limit 1`;
    if (pending.length === 0) return;
    await waitUntil(performance.now() + POLL_MS);
  }
}

async function takeArrivals(receiver: Responder): Promise<ArrivedEvent[]> {
  return readArrivals(await (await fetch(urlOf(receiver))).json());
}

/** Arrivals per second, from the first to the last. */
function rateOf(arrivals: readonly ArrivedEvent[]): number {
  const [first, last] = [arrivals[0], arrivals.at(-1)];
  if (first === undefined || last === undefined) return NaN;
  return (arrivals.length - 1) / (last.at_ms - first.at_ms) * 1000;
}

function urlOf({ port }: Responder): string {
  return `http://127.0.0.1:${port}/`;
}

function waitUntil(at_ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, at_ms - performance.now())));
}
