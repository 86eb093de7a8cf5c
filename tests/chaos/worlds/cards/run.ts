/**
 * R14: live cards. Clients make live payments through a double of Stripe with books of its own,
 * while the servers, PostgreSQL, the double and localstripe are killed at each step of the flow,
 * and the double loses, cuts, delays and doubles responses and notifications. Then the faults end,
 * the worker settles everything, and the judge compares the provider's books with ours.
 */

import { pause } from "../../../support/common/until.ts";
import { addAccount } from "../../../support/database/provider_flow.ts";
import { no_stripe_double, startStripeDouble } from "../../../support/stripe/double.ts";
import { faultsOfServers, Tally, type Verdict } from "../../harness/audit.ts";
import { RepeatingClient } from "../../harness/client.ts";
import { randomOf } from "../../../support/core/random.ts";
import { type Stage, STRIPE_SECRETS } from "../../harness/stage.ts";
import { explained, FastTime, untilNone } from "../../harness/time.ts";
import { auditCards, readCardRows } from "./audit.ts";
import { CardClients } from "./clients.ts";
import {
  CALLS,
  type CardProcesses,
  KILL_POINTS,
  meets,
  NOTIFICATION_WAYS,
  PROVIDER_DEADLINE_MS,
  PROVIDER_FAULTS,
  revive,
} from "./faults.ts";
import { RESULTS } from "./plan.ts";

/** The least numbers: the clients go on until the kills are over and every fault has happened. */
interface CardOptions {
  seed: number;
  operations: number;
  kills: number;
}

const CLIENTS = 48;
/** Pause of a client before a story while the operations are ahead of the kills. */
const PAUSE_MS = 500;
const FAULT_PAUSE_MS = 300;
const WAY_MS = 2_000;
/** A kill point counts as impossible after so many misses. */
const MISSES = 20;

export async function runCards(stage: Stage, options: CardOptions): Promise<Verdict[]> {
  if (no_stripe_double) {
    return [{ promise: "R14", says: "left out: localstripe is not installed", breaches: [] }];
  }
  const live = await stage.makeLiveEnvironment();
  const processes = await startProcesses(stage, live.environment_id);
  const { double, servers } = processes;
  const progress = new Progress(options);
  const client = new RepeatingClient(stage, servers);
  const next = (operations: number) => progress.next(operations);
  const clients = new CardClients(options.seed, CLIENTS, client, live.key, next);
  const time = new FastTime(stage);
  const started = performance.now();
  const told = clients.tell();
  const faults = varyUntilCalm(progress, progress.faults, FAULT_PAUSE_MS, (name, i) => {
    const path = CALLS[progress.faults.of(name) % CALLS.length]!;
    return meets(double, { ...PROVIDER_FAULTS[name]!, path }, `${name} ${i}`);
  });
  const ways = varyUntilCalm(
    progress,
    progress.ways,
    WAY_MS,
    (name) => double.notify(NOTIFICATION_WAYS[name]!).then(() => true, () => false),
  );
  await killAll(processes, options, progress);
  await Promise.all([told, faults, ways]);
  const told_s = (performance.now() - started) / 1_000;
  await double.clearFaults();
  await double.notify(NOTIFICATION_WAYS.once!);
  const unsettled = await explained(stage.sql, settle(stage, live.environment_id, time));
  await time.end();
  const settled_s = (performance.now() - started) / 1_000 - told_s;

  const replays = await clients.replay();
  const ours = await readCardRows(stage.sql, live.environment_id);
  const books = await double.books(STRIPE_SECRETS.PROVIDER_STRIPE);
  const { operations } = clients;
  const charges = books.charge.filter(({ captured }) => captured).length;
  const balance = books.balance_transaction.reduce((sum, { net }) => sum + net, 0);
  return [{
    promise: "R14",
    says: `${operations.length} operations (${client.counts.requests} requests) in ` +
      `${told_s.toFixed(1)} s, settled ${settled_s.toFixed(1)} s later; ` +
      `${ours.payments.length} payments and ${books.payment_intent.length} at the provider, ` +
      `${charges} charges, ${ours.refunds.length} refunds and ${books.refund.length}, ` +
      `${ours.instruments.length} saved cards of ${books.customer.length} customers, ` +
      `balance ${balance} cents, ${replays.replayed} keys replayed`,
    breaches: [
      ...auditCards({ operations, ...ours, books }),
      ...ours.broken,
      ...client.breaches,
      ...replays.faults,
      // A poll fails while the double is dead. The next one reads the same again.
      ...faultsOfServers(stage, "stripe_poll.ts"),
      ...unsettled,
    ],
  }, ...[progress.kills, progress.faults, progress.ways].map((tally) => tally.judge("live"))];
}

/** Waits until the worker has a result for everything, and has polled all that happened. */
export async function settle({ sql }: Stage, environment_id: string, time: FastTime) {
  const readOpen = () =>
    sql`
      select from pay.provider_operations
      where environment_id = ${environment_id} and state = 'pending'
      union all select from pay.provider_events
      where environment_id = ${environment_id} and outcome is null
      union all select from pay.payments
      where environment_id = ${environment_id} and status <> all (${Object.keys(RESULTS)})
      limit 1`;
  await untilNone("every call and provider event has a result", readOpen);
  await time.untilPolled(2);
  await untilNone("every polled provider event has a result", readOpen);
}

class Progress {
  readonly kills = new Tally(Object.keys(KILL_POINTS));
  readonly faults = new Tally(Object.keys(PROVIDER_FAULTS));
  readonly ways = new Tally(Object.keys(NOTIFICATION_WAYS));
  is_killed = false;

  constructor(readonly options: CardOptions) {}

  get is_calm(): boolean {
    return this.is_killed && this.faults.missing.length === 0 && this.ways.missing.length === 0;
  }

  /** Whether a client tells a further story after so many operations, and its pause before. */
  next(operations: number): { is_over: boolean; pause_ms: number } {
    const { operations: planned, kills } = this.options;
    const is_ahead = operations / planned > this.kills.total / kills;
    return {
      is_over: this.is_calm && operations >= planned,
      pause_ms: is_ahead && !this.is_killed ? PAUSE_MS : 0,
    };
  }
}

async function startProcesses(stage: Stage, environment_id: string): Promise<CardProcesses> {
  const double = await startStripeDouble();
  stage.atEnd(() => double.close());
  const servers = await stage.startServers({
    ...{ provider_secrets: STRIPE_SECRETS, provider_deadline_ms: PROVIDER_DEADLINE_MS },
  });
  const settings = { base_url: double.base_url };
  const id = await addAccount(stage.sql, environment_id, { settings });
  await double.notify({
    url: `${servers[0]!.base_url}/api-v1-payments/providers/${id}/notifications`,
    secrets: [STRIPE_SECRETS.PROVIDER_STRIPE_NOTIFICATIONS],
  });
  return { stage, servers, double };
}

/** Kills at each point in turn, in an order of the seed, with a different call each time. */
async function killAll(
  processes: CardProcesses,
  { seed, kills }: CardOptions,
  progress: Progress,
): Promise<void> {
  const random = randomOf(seed, "live kills");
  let due: string[] = [];
  for (let misses = 0; progress.kills.total < kills && misses < MISSES;) {
    if (due.length === 0) due = Object.keys(KILL_POINTS);
    const name = random.pick(due);
    const path = CALLS[(progress.kills.of(name) + misses) % CALLS.length]!;
    // An earlier kill can still end the double or a connection of this run: then the point is
    // missed, and comes again.
    const is_hit = await KILL_POINTS[name]!(processes, path).catch(async () => {
      await revive(processes.double);
      return false;
    });
    misses = is_hit ? 0 : misses + 1;
    if (!is_hit) continue;
    progress.kills.add(name);
    due = due.filter((other) => other !== name);
  }
  progress.is_killed = true;
}

/** Brings each kind about in turn until the run is calm, and counts. */
async function varyUntilCalm(
  progress: Progress,
  tally: Tally,
  pause_ms: number,
  act: (name: string, i: number) => Promise<boolean>,
): Promise<void> {
  const names = [...tally.counts.keys()];
  for (let i = 0; !progress.is_calm; i++) {
    const name = names[i % names.length]!;
    if (await act(name, i)) tally.add(name);
    await pause(pause_ms);
  }
}
