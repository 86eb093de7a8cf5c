/**
 * Live creates beside a provider (stripe_stub.ts): the time that the product adds to the provider's
 * own response, and the database connections that many creates hold while they wait for the
 * provider.
 */

import { DEMO_ENVIRONMENTS } from "../../apps/operator/demo_account.ts";
import { idGenerator } from "../../shared/core/ids.ts";
import { toWire, wireText } from "./api_request.ts";
import { auditBooks, markBooks, NO_ROWS, readBooks, type Rows } from "./books.ts";
import { cpuTimeBetween, readCpuTime } from "./cpu_time.ts";
import { createOf, type RequestForge } from "./line.ts";
import { KEY_PLACE, type LoadOrder, PLAIN_ORDER } from "./load_order.ts";
import {
  type AtEnd,
  type Bench,
  counts,
  type Responder,
  type Run,
  runOf,
  startServer,
} from "./measure.ts";
import type { Figure, Pair } from "./measurement.ts";
import { PROVIDER_SECRET } from "./product.ts";

/** Response times of the provider in the lines of added time. */
export const PROVIDER_MS = [0, 300];
/** Creates per second of these lines, the factor of their duration, and their connections. */
const LOW_RATE = 50;
const LOW_RATE_STRETCH = 4;
const LOW_RATE_CONNECTIONS = 64;
/** Response time of the provider while many creates wait. */
const SLOW_MS = 2000;
/** A transaction of this age is one that waits for the provider. */
const HELD_MS = 100;
const SAMPLE_MS = 20;
/**
 * Longest time of the many creates, and longest wait for provider events that the worker applies.
 */
const DEADLINE_MS = 60_000;

const CREATE_LIVE = {
  amount: 1050,
  currency: "EUR",
  card: { token: "pm_card_visa" },
  customer: { email: "ada@example.com", name: "Ada Lovelace" },
  description: "Order 1815-12-10",
  reference: "order-18151210",
  metadata: { order: "18151210", channel: "web" },
};
/** Rows of a live create: the payment and its fee are a movement each. */
const CREATE_LIVE_ROWS: Rows = {
  ...NO_ROWS,
  payments: 1,
  events: 2,
  ledger_movements: 2,
  idempotency_keys: 1,
};

/** The part of a load's order that differs between runs. */
type LivePlan = Pick<LoadOrder, "connections" | "rate_per_s" | "requests_max" | "duration_ms">;

/** Makes the pairs, and the figure to which each run with many creates adds a value. */
export function prepareLivePairs(
  forge: RequestForge,
  creates: number,
  atEnd: AtEnd,
): { pairs: Pair[]; figure: Figure } {
  const { bench } = forge;
  let provider: Promise<Responder> | undefined;
  // An account wakes the worker, which must not disturb the other lines before the first run.
  const openProvider = () => provider ??= startProvider(bench, atEnd);
  const figure: Figure = {
    name: `connections held by ${creates} waiting live creates`,
    unit: "connections",
    values: [],
  };
  const pairs = PROVIDER_MS.map((delay_ms): Pair => ({
    name: addedName(delay_ms),
    connections: null,
    measureBeside: null,
    run: async () => await measureAdded(bench, await openProvider(), delay_ms),
  }));
  const name = `${creates} live creates at once, provider of ${SLOW_MS} ms`;
  const run = async () => {
    const held = await measureWaiting(bench, await openProvider(), name, creates);
    if (held === null) return null;
    figure.values.push(held.connections);
    return held.run;
  };
  return {
    pairs: [...pairs, { name, connections: creates, measureBeside: null, run }],
    figure,
  };
}

/** The name of the line that measures the time beside this response time of the provider. */
export function addedName(delay_ms: number): string {
  return `time added to a live create, provider of ${delay_ms} ms`;
}

/** Starts the provider and adds an account for the product's live key. */
async function startProvider({ sql }: Bench, atEnd: AtEnd): Promise<Responder> {
  const provider = await startServer("stripe_stub.ts", null, atEnd);
  await sql`select pay.add_provider_account(${idGenerator(Date.now())("pac_")},
    ${DEMO_ENVIRONMENTS.live.id}, 'stripe', ${["card"]},
    ${JSON.stringify({ base_url: `http://127.0.0.1:${provider.port}` })},
    ${PROVIDER_SECRET.name}, ${[]})`;
  return provider;
}

/** The latencies of live creates, less those of the provider under the same load. */
async function measureAdded(
  bench: Bench,
  provider: Responder,
  delay_ms: number,
): Promise<Run | null> {
  const name = addedName(delay_ms);
  await setDelay(provider, delay_ms);
  const plan: LivePlan = {
    connections: LOW_RATE_CONNECTIONS,
    rate_per_s: LOW_RATE,
    requests_max: null,
    duration_ms: bench.seconds * LOW_RATE_STRETCH * 1000,
  };
  const alone = await bench.load.run({
    ...orderOf(plan),
    port: provider.port,
    requests: [providerRequest(provider)],
    expected_status: 200,
  });
  const run = await createLive(bench, name, plan);
  if (!counts(bench, `${name}: the provider`, alone.errors) || run === null) return null;
  return { ...run, p50_ms: run.p50_ms - alone.p50_ms, p99_ms: run.p99_ms - alone.p99_ms };
}

/** Many live creates at once, and the most connections that they held while all of them waited. */
async function measureWaiting(
  bench: Bench,
  provider: Responder,
  name: string,
  creates: number,
): Promise<{ run: Run; connections: number } | null> {
  await setDelay(provider, SLOW_MS);
  const samples: number[] = [];
  let is_done = false;
  const sampling = (async () => {
    while (!is_done) {
      const held = await countHeld(bench);
      if (await countUnderWay(provider) === creates) samples.push(held);
      await new Promise((resolve) => setTimeout(resolve, SAMPLE_MS));
    }
  })();
  const run = await createLive(bench, name, {
    connections: creates,
    rate_per_s: null,
    requests_max: creates,
    duration_ms: DEADLINE_MS,
  });
  is_done = true;
  await sampling;
  const problems = samples.length > 0 ? [] : ["the calls were never all under way at once"];
  if (run !== null && run.responses !== creates) problems.push(`${run.responses} responses`);
  if (!counts(bench, name, problems) || run === null) return null;
  return { run, connections: Math.max(...samples) };
}

/** Counts the connections with a transaction that is older than a statement of the product. */
async function countHeld({ sql }: Bench): Promise<number> {
  const [row] = await sql<[{ count: number }]>`
    select count(*)::int as count from pg_stat_activity
    where backend_type = 'client backend' and pid <> pg_backend_pid()
      and xact_start < clock_timestamp() - ${HELD_MS} * interval '1 ms'`;
  return row.count;
}

/** Live creates under load, audited after the worker has applied every provider event. */
async function createLive(bench: Bench, name: string, plan: LivePlan): Promise<Run | null> {
  const { product, load, sql } = bench;
  const live = { ...product, test_key: product.live_key };
  const pids = { load: load.pid, server: product.pid, postgres: product.postgres_pid };
  const since_ms = await markBooks();
  const cpu_before = await readCpuTime(pids);
  const result = await load.run({
    ...orderOf(plan),
    port: product.port,
    requests: [toWire(live, createOf(CREATE_LIVE, KEY_PLACE))],
    expected_status: 201,
  });
  const cpu = cpuTimeBetween(cpu_before, await readCpuTime(pids));
  await waitForProviderEvents(bench);
  const problems = auditBooks(await readBooks(sql, since_ms), result.responses, CREATE_LIVE_ROWS);
  return counts(bench, name, [...result.errors, ...problems]) ? runOf(result, cpu) : null;
}

/**
 * Waits until every provider event is applied or the deadline is over. The audit reports the rest.
 */
async function waitForProviderEvents({ sql }: Bench): Promise<void> {
  for (const deadline = performance.now() + DEADLINE_MS; performance.now() < deadline;) {
    const open = await sql`select from pay.provider_events where outcome is null limit 1`;
    if (open.length === 0) return;
    await new Promise((resolve) => setTimeout(resolve, SAMPLE_MS));
  }
}

function orderOf(plan: LivePlan): Omit<LoadOrder, "port" | "requests" | "expected_status"> {
  const warmup_ms = plan.rate_per_s === null ? 0 : plan.duration_ms / LOW_RATE_STRETCH;
  return { ...PLAIN_ORDER, ...plan, warmup_ms };
}

/** A create as the product sends it to the provider, as text. */
function providerRequest(provider: Responder): string {
  return wireText(
    "POST",
    `${originOf(provider)}/v1/payment_intents`,
    { "Content-Type": "application/x-www-form-urlencoded" },
    "amount=1050&currency=eur&payment_method=pm_card_visa&capture_method=automatic",
  );
}

async function countUnderWay(provider: Responder): Promise<number> {
  return Number(await (await fetch(`${originOf(provider)}/under_way`)).text());
}

async function setDelay(provider: Responder, delay_ms: number): Promise<void> {
  const response = await fetch(`${originOf(provider)}/delay_ms`, {
    method: "PUT",
    body: String(delay_ms),
  });
  await response.body?.cancel();
}

function originOf({ port }: Responder): string {
  return `http://127.0.0.1:${port}`;
}
