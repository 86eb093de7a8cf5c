/**
 * The main run (promises R1 to R8). Clients send the plan's stories through proxies that break
 * connections, while PostgreSQL, its backends, both API servers and the receiver are killed. Then
 * the faults end, and the audit judges the run.
 */

import { freePort } from "../../../support/common/free_port.ts";
import { until } from "../../../support/common/until.ts";
import { brokenInvariants, faultsOfServers, Tally, type Verdict } from "../../harness/audit.ts";
import { RepeatingClient, V1 } from "../../harness/client.ts";
import { isCutOff, killBackend, killPostgres, within } from "../../harness/killer.ts";
import { launch } from "../../../support/common/process.ts";
import type { FaultCounts } from "../../../support/proxy/tcp_proxy.ts";
import { type Arrival, startReceiver, WAYS_TO_FAIL } from "../../harness/receiver.ts";
import { type ApiServer, type Stage, untilAllWell } from "../../harness/stage.ts";
import { auditRun } from "./audit.ts";
import { PlanClients } from "./clients.ts";
import { type Environments, type Evidence, overdrawnBalances, readRows } from "./evidence.ts";
import { type Plan, type PlannedKill, planOf, SANDBOXES, VICTIMS } from "./plan.ts";

interface MainRunOptions {
  seed: number;
  operations: number;
  kills: number;
  clients: number;
}

/** Faults between clients and servers. The smallest run has several hundred. */
const CLIENT_RATES = { reset: 0.004, stall: 0.004, halve: 0.004, stall_ms: [50, 800] } as const;
/** Faults between servers and PostgreSQL, where each cut breaks several requests. */
const DATABASE_RATES = { reset: 0.001, stall: 0.001, halve: 0.002, stall_ms: [50, 1_500] } as const;
const RECEIVER_FAILS = 0.3;
/** Without a final response after this time an operation counts as one without a response. */
const GIVE_UP_MS = 120_000;
const PROXIES = ["database", "clients 1", "clients 2"];

const AUDIT_EVERY_MS = 2_000;
const DELIVERY_DEADLINE_MS = 240_000;
/**
 * Waits above this count as long: one minute after the second failure, ten after the third. A
 * sandbox's delivery fails after four attempts (contract §4).
 */
const FAR_MS = 65_000;
/** The endpoints by the path of the receiver. */
const ENDPOINTS: Evidence["endpoints"] = {
  "/payments": { sandbox: "payments", events: "*" },
  "/mixed": { sandbox: "mixed", events: "*" },
  "/mixed-payments": { sandbox: "mixed", events: "payment.*" },
  "/transfers": { sandbox: "transfers", events: "*" },
  "/resets": { sandbox: "resets", events: "*" },
};

export async function runMain(stage: Stage, options: MainRunOptions): Promise<Verdict[]> {
  const plan = planOf(options.seed, options.operations, options.kills);
  const { servers, through, calm } = await startBehindProxies(stage, options.seed);
  const environments = Object.fromEntries(
    await Promise.all(SANDBOXES.map(async (name) => [name, await stage.makeSandbox(name)])),
  ) as Environments;
  const direct = new RepeatingClient(stage, servers);
  const receiver = await addReceiver(stage, options.seed, direct, environments);
  const client = new RepeatingClient(stage, through, { give_up_ms: GIVE_UP_MS });
  const killer = new Killer(stage, servers, receiver, plan);
  const onFinished = (operations: number) => killer.advance(operations);
  const clients = new PlanClients(plan, client, environments, options.clients, onFinished);
  let is_over = false;
  const auditing = auditMeanwhile(stage, environments, () => is_over);
  const started = performance.now();
  await clients.tell();
  const told_ms = performance.now() - started;
  await killer.end();
  is_over = true;
  const meanwhile = await auditing;
  const proxy_faults = await calm();
  await untilAllWell(servers);
  const drained = await drain(stage, direct, environments);
  const delivered_ms = performance.now() - started - told_ms;
  const replays = await clients.replay(direct);
  const arrivals = await receiver.read();
  const verdicts = auditRun({
    ...{ plan, journal: clients.journal, arrivals, replays, drained, meanwhile },
    ...{ environments, endpoints: ENDPOINTS, rows: await readRows(stage.sql, environments) },
  });
  verdicts[0]!.breaches.push(...client.breaches, ...direct.breaches, ...faultsOfServers(stage));
  const { requests, broken, unavailable, in_progress, slowest_ms } = client.counts;
  return [
    ...verdicts,
    {
      promise: "load",
      says: `${requests} requests in ${(told_ms / 1_000).toFixed(1)} s, ` +
        `${broken} broken off, ${unavailable} times 503, ${in_progress} responses "in progress" ` +
        `to duplicates, slowest response ${Math.round(slowest_ms)} ms; last delivery ` +
        `${(delivered_ms / 1_000).toFixed(1)} s later, ${drained.redelivered.size} redelivered`,
      breaches: broken === 0 ? ["no fault of a proxy broke a request"] : [],
    },
    countFaults(killer.kills, proxy_faults, arrivals).judge("kill"),
  ];
}

/** Adds the faults of the proxies and of the receiver to the kills. */
function countFaults(
  faults: Tally,
  proxies: readonly FaultCounts[],
  arrivals: readonly Arrival[],
): Tally {
  for (const [i, counts] of proxies.entries()) {
    for (const [kind, count] of Object.entries(counts)) {
      faults.add(`${kind} (${PROXIES[i]!})`, count);
    }
  }
  for (const way of WAYS_TO_FAIL) {
    faults.add(`${way} (receiver)`, arrivals.filter(({ failed_by }) => failed_by === way).length);
  }
  return faults;
}

/** Kills a process when the plan says so, and waits until it is replaced. */
class Killer {
  readonly kills = new Tally(VICTIMS);
  readonly #due: PlannedKill[];
  #progress = 0;
  #killing: Promise<void> | null = null;

  constructor(
    readonly stage: Stage,
    readonly servers: readonly ApiServer[],
    readonly receiver: Pick<ApiServer, "restart">,
    { kills }: Plan,
  ) {
    this.#due = [...kills];
  }

  advance(finished: number): void {
    this.#progress = finished;
    this.#killing ??= this.#killDue().finally(() => this.#killing = null);
  }

  /** Resolves when the last kill is over and the run's own connections work again. */
  async end(): Promise<void> {
    await this.#killing;
    const { sql } = this.stage;
    // A connection that a kill has reset fails at its next query. The pause makes the queries use
    // all connections.
    await until("the connections of the run work", async () => {
      const queries = Array.from({ length: sql.options.max }, () => sql`select pg_sleep(0.02)`);
      return (await Promise.allSettled(queries)).every(({ status }) => status === "fulfilled");
    });
  }

  async #killDue(): Promise<void> {
    while (this.#due.length > 0 && this.#due[0]!.at_operation <= this.#progress) {
      const { victim, which } = this.#due.shift()!;
      if (victim === "postmaster") await killPostgres(this.stage);
      else if (victim === "backend") await killBackend(this.stage, which);
      else if (victim === "receiver") await this.receiver.restart();
      else await this.servers[Math.floor(which * this.servers.length)]!.restart();
      await untilAllWell(this.servers);
      this.kills.add(victim);
    }
  }
}

/** Reads the invariants until the run is over. It takes a tenth of the time. */
async function auditMeanwhile(
  { sql }: Stage,
  environments: Environments,
  isOver: () => boolean,
): Promise<Evidence["meanwhile"]> {
  const breaches: string[] = [];
  let audits = 0;
  while (!isOver()) {
    const started = performance.now();
    try {
      breaches.push(...await brokenInvariants(sql), ...await overdrawnBalances(sql, environments));
      audits++;
    } catch (error) {
      if (!isCutOff(error)) breaches.push(String(error));
    }
    const pause_ms = Math.max(AUDIT_EVERY_MS, 9 * (performance.now() - started));
    await within(pause_ms, () => Promise.resolve(isOver()));
  }
  return { audits, breaches: breaches.map((breach) => `during the run ${breach}`) };
}

interface OpenDelivery {
  environment_id: string;
  id: string;
  event_id: string;
  /** Its state, if it has fewer attempts than that needs; null: it has them. */
  too_early: string | null;
  is_far: boolean;
}

/**
 * Waits until no delivery is pending. If the receiver refused a delivery and kills used up two more
 * attempts, it waits ten minutes or has failed; then this redelivers it, as a merchant would. A
 * delivery in that state with fewer attempts is a fault.
 */
async function drain(
  { sql }: Stage,
  client: RepeatingClient,
  environments: Environments,
): Promise<Evidence["drained"]> {
  const keys = new Map(
    Object.values(environments).map(({ environment_id, key }) => [environment_id, key]),
  );
  const too_early = new Set<string>();
  const redelivered = new Set<string>();
  let late: string[] = [];
  await until("every delivery has ended", async () => {
    // If an earlier event of the payment is pending, the wait depends on that.
    const open = await sql<OpenDelivery[]>`
      select public_id as environment_id, id, event_id, is_far,
        case when is_far and attempt_count < needed and not exists (
          select from pay.webhook_deliveries e
          where e.status = 'pending' and e.endpoint_id = o.endpoint_id
            and e.subject_id = o.subject_id and e.sequence < o.sequence
        ) then status || ' after ' || attempt_count || ' attempts' end as too_early
      from (
        select d.*, v.public_id,
          d.status = 'failed' or d.next_attempt_at > now() + ${`${FAR_MS} ms`}::interval as is_far,
          case d.status when 'failed' then 4 else 3 end as needed
        from pay.webhook_deliveries d
        join pay.environments v on v.id = d.environment_id and v.retired_at is null
        where d.status in ('pending', 'failed')
      ) o`;
    late = open.map(({ id }) => `late: ${id}`);
    for (const { id, too_early: state } of open) if (state) too_early.add(`${id} is ${state}`);
    if (open.length === 0 || open.some(({ is_far }) => !is_far)) return open.length === 0;
    for (const { environment_id, id, event_id } of open) {
      const path = `${V1}/webhook_deliveries/${id}/redeliver`;
      const { status } = await client.send(keys.get(environment_id)!, path, { body: {} });
      if (status === 200) redelivered.add(event_id);
    }
    return false;
  }, DELIVERY_DEADLINE_MS).catch(({ message }) => late.push(message));
  return { redelivered, faults: [...too_early, ...late] };
}

/** Starts servers behind proxies. The first proxy stands before PostgreSQL. */
async function startBehindProxies(stage: Stage, seed: number) {
  const database = new URL(stage.functions_url);
  const ports = [freePort(), freePort()];
  const counts = Promise.withResolvers<FaultCounts[]>();
  const proxies = await launch<[number, ...number[]]>(
    import.meta.resolve("../../harness/proxy_process.ts"),
    [Number(database.port), ...ports].map((target_port, i) => ({
      ...{ seed, target_port, name: PROXIES[i], rates: i === 0 ? DATABASE_RATES : CLIENT_RATES },
    })),
    (line) => counts.resolve(line as FaultCounts[]),
  );
  stage.atEnd(() => proxies.kill());
  const [database_port, ...through] = proxies.ready;
  database.port = String(database_port);
  const settings = { database_url: database.href };
  return {
    servers: await Promise.all(ports.map((port) => stage.startServer({ port, ...settings }))),
    through: through.map((port) => ({ base_url: `http://127.0.0.1:${port}/functions/v1` })),
    /** Ends the faults. Returns their numbers. */
    calm: () => proxies.send("calm").then(() => counts.promise),
  };
}

async function addReceiver(
  stage: Stage,
  seed: number,
  client: RepeatingClient,
  environments: Environments,
) {
  const port = freePort();
  const secrets: Record<string, string> = {};
  for (const [path, { sandbox, events }] of Object.entries(ENDPOINTS)) {
    const url = `http://127.0.0.1:${port}${path}`;
    secrets[path] =
      (await client.addEndpoint(environments[sandbox].key, { url, events: [events] })).secret;
  }
  return await startReceiver(stage, { port, seed, fail: RECEIVER_FAILS, secrets });
}
