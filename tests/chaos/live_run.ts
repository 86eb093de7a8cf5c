/**
 * R14: live money. Clients make live payments through a double of Stripe with books of its own, while
 * the servers, PostgreSQL, the double and localstripe are killed at each step of the flow, and the
 * double loses, cuts, delays and doubles responses and notifications. Then the faults end, the
 * worker settles everything, and the judge compares the provider's books with ours.
 */

import { idGenerator } from "../../shared/core/ids.ts";
import { no_stripe_double, startStripeDouble } from "../support/stripe/double.ts";
import type { Verdict } from "./evidence.ts";
import { auditLive, explainPayment, readOurBooks } from "./live_audit.ts";
import { LiveClients } from "./live_clients.ts";
import {
  CALLS,
  KILL_POINTS,
  type LiveProcesses,
  meets,
  NOTIFICATION_WAYS,
  PROVIDER_DEADLINE_MS,
  PROVIDER_FAULTS,
  revive,
} from "./live_faults.ts";
import { randomOf } from "./random.ts";
import { passTime, settle } from "./live_time.ts";
import { makeLiveEnvironment } from "./sandbox.ts";
import { type Stage, untilWell } from "./stage.ts";

/** The options of the run. */
interface LiveOptions {
  seed: number;
  /** At least: the clients tell stories until the kills are over and every fault has happened. */
  operations: number;
  /** At least one for each point. */
  kills: number;
}

const CLIENTS = 48;
const SECRETS = {
  PROVIDER_STRIPE: "sk_live_chaos",
  PROVIDER_STRIPE_NOTIFICATIONS: "whsec_chaos",
};
/** Pause of a client before a story while the operations are ahead of the kills. */
const PAUSE_MS = 500;
const FAULT_PAUSE_MS = 300;
const WAY_MS = 2_000;
/** A kill point counts as impossible after so many misses. */
const MISSES = 20;

/** Runs the live run and judges it. */
export async function runLive(stage: Stage, options: LiveOptions): Promise<Verdict[]> {
  if (no_stripe_double) {
    return [{ promise: "R14", says: "left out: localstripe is not installed", breaches: [] }];
  }
  const live = await makeLiveEnvironment(stage.sql, "chaos");
  const processes = await startProcesses(stage, live.environment_id);
  const { double, servers } = processes;
  const progress = new Progress(options);
  const clients: LiveClients = new LiveClients({
    seed: options.seed,
    clients: CLIENTS,
    urls: servers.map(({ base_url }) => base_url),
    api_key: live.text,
    next: () => progress.next(clients.operations.length),
    explain: (payment_id) => explainPayment(stage.sql, payment_id),
  });
  const time = passTime(stage);
  const faults = plantFaults(processes, progress);
  const ways = varyNotifications(processes, progress);
  const started = performance.now();
  const told = clients.tell();
  await killAll(processes, options, progress);
  await told;
  await Promise.all([faults, ways]);
  const told_s = (performance.now() - started) / 1_000;

  await double.clearFaults();
  await double.notify(NOTIFICATION_WAYS.once!);
  const unsettled = await settle(stage, live.environment_id).then(
    () => [],
    (error) => [String(error)],
  );
  await time.end();
  const settled_s = (performance.now() - started) / 1_000 - told_s;
  const verdict = await judge(processes, live.environment_id, clients, { told_s, settled_s });
  return [
    { ...verdict, breaches: [...verdict.breaches, ...unsettled] },
    countVerdict("live", progress.kills, KILL_POINTS.map(({ name }) => name)),
    countVerdict("live", progress.faults, Object.keys(PROVIDER_FAULTS)),
    countVerdict("live", progress.ways, Object.keys(NOTIFICATION_WAYS)),
  ];
}

async function judge(
  { stage, double }: LiveProcesses,
  environment_id: string,
  clients: LiveClients,
  { told_s, settled_s }: { told_s: number; settled_s: number },
): Promise<Verdict> {
  const { replayed, faults: replay_faults } = await clients.replay();
  const { broken, ...ours } = await readOurBooks(stage.sql, environment_id);
  const books = await double.books(SECRETS.PROVIDER_STRIPE);
  const { operations } = clients;
  const charges = books.charge.filter(({ captured }) => captured).length;
  const balance = books.balance_transaction.reduce((sum, { net }) => sum + net, 0);
  return {
    promise: "R14",
    says: `${operations.length} operations (${clients.requests} requests) in ` +
      `${told_s.toFixed(1)} s, settled ${settled_s.toFixed(1)} s later; ` +
      `${ours.payments.length} payments and ${books.payment_intent.length} at the provider, ` +
      `${charges} charges, ${ours.refunds.length} refunds and ${books.refund.length}, ` +
      `balance ${balance} cents, ${replayed} keys replayed`,
    breaches: [
      ...auditLive({ operations, ...ours, books }),
      ...broken,
      ...clients.faults,
      ...replay_faults,
      // A poll fails while the double is dead. The next one reads the same again.
      ...stage.server_faults.filter(({ fault }) => !fault.includes("stripe_poll.ts")).map((
        { route, fault },
      ) => `fault of a server: ${route} ${fault}`),
    ],
  };
}

/** How far the run is: what the clients wait for, and what has happened. */
class Progress {
  readonly kills = new Map<string, number>();
  readonly faults = new Map<string, number>();
  readonly ways = new Map<string, number>();
  killed = 0;
  /** Whether the kills are over. */
  is_killed = false;
  readonly #options: LiveOptions;

  constructor(options: LiveOptions) {
    this.#options = options;
  }

  /** Whether the kills are over, and every fault has happened. */
  get is_calm(): boolean {
    return this.is_killed && this.faults.size === Object.keys(PROVIDER_FAULTS).length &&
      this.ways.size === Object.keys(NOTIFICATION_WAYS).length;
  }

  /** Whether a client tells a further story after so many operations, and its pause before. */
  next(operations: number): { is_over: boolean; pause_ms: number } {
    const { operations: planned, kills } = this.#options;
    const is_ahead = operations / planned > this.killed / kills;
    return {
      is_over: this.is_calm && operations >= planned,
      pause_ms: is_ahead && !this.is_killed ? PAUSE_MS : 0,
    };
  }
}

async function startProcesses(stage: Stage, environment_id: string): Promise<LiveProcesses> {
  const double = (await startStripeDouble())!;
  stage.atEnd(() => double.close());
  const settings = { provider_secrets: SECRETS, provider_deadline_ms: PROVIDER_DEADLINE_MS };
  const servers = await Promise.all([stage.startServer(settings), stage.startServer(settings)]);
  await Promise.all(servers.map(untilWell));
  const account_id = idGenerator(Date.now())("pac_");
  await stage.sql`select pay.add_provider_account(${account_id}, ${environment_id}, 'stripe',
    ${["card"]}, ${JSON.stringify({ base_url: double.base_url })}, 'PROVIDER_STRIPE',
    ${["PROVIDER_STRIPE_NOTIFICATIONS"]})`;
  await double.notify({
    url: `${servers[0]!.base_url}/api-v1-payments/providers/${account_id}/notifications`,
    secrets: [SECRETS.PROVIDER_STRIPE_NOTIFICATIONS],
  });
  return { stage, servers, double };
}

/** Kills at each point in turn, in an order of the seed, with a different call each time. */
async function killAll(
  processes: LiveProcesses,
  { seed, kills }: LiveOptions,
  progress: Progress,
): Promise<void> {
  const random = randomOf(seed, "live kills");
  let due = [...KILL_POINTS];
  for (let misses = 0; progress.killed < kills && misses < MISSES;) {
    if (due.length === 0) due = [...KILL_POINTS];
    const point = due[random.integer(0, due.length - 1)]!;
    const hits = progress.kills.get(point.name) ?? 0;
    const path = CALLS[(hits + misses) % CALLS.length]!;
    // An earlier kill can still end the double or a connection of this run: then the point is
    // missed, and comes again.
    const is_hit = await point.kill(processes, path).catch(async () => {
      await revive(processes.double);
      return false;
    });
    if (is_hit) {
      progress.kills.set(point.name, hits + 1);
      progress.killed++;
      misses = 0;
      due = due.filter((other) => other !== point);
    } else misses++;
  }
  progress.is_killed = true;
}

/** Plants the faults of the provider in turn until the run is calm. */
async function plantFaults({ double }: LiveProcesses, progress: Progress): Promise<void> {
  const names = Object.keys(PROVIDER_FAULTS);
  for (let i = 0; !progress.is_calm; i++) {
    const name = names[i % names.length]!;
    const hits = progress.faults.get(name) ?? 0;
    const fault = { ...PROVIDER_FAULTS[name]!, path: CALLS[hits % CALLS.length]! };
    if (await meets(double, fault, `${name} ${i}`)) progress.faults.set(name, hits + 1);
    await new Promise((resolve) => setTimeout(resolve, FAULT_PAUSE_MS));
  }
}

/** Varies how notifications arrive until the run is calm. */
async function varyNotifications({ double }: LiveProcesses, progress: Progress): Promise<void> {
  const ways = Object.entries(NOTIFICATION_WAYS);
  for (let i = 0; !progress.is_calm; i++) {
    const [name, settings] = ways[i % ways.length]!;
    const is_set = await double.notify(settings).then(() => true, () => false);
    if (is_set) progress.ways.set(name, (progress.ways.get(name) ?? 0) + 1);
    await new Promise((resolve) => setTimeout(resolve, WAY_MS));
  }
}

/** The counts of a kind of fault. Each fault must have happened. */
function countVerdict(
  promise: string,
  counts: ReadonlyMap<string, number>,
  names: readonly string[],
): Verdict {
  return {
    promise,
    says: names.map((name) => `${name} ${counts.get(name) ?? 0}`).join(", "),
    breaches: names.filter((name) => !counts.has(name)).map((name) => `no "${name}" happened`),
  };
}
