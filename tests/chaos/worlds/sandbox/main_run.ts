/**
 * The main run (promises R1 to R8). Clients send the plan's stories through proxies that break
 * connections, while PostgreSQL, its backends, both API servers and the receiver are killed. Then
 * the faults end, and the audit judges the run.
 */

import { join } from "node:path";
import { freePort } from "../../../support/common/free_port.ts";
import { pause, until } from "../../../support/common/until.ts";
import { brokenInvariants, faultsOfServers, Tally, type Verdict } from "../../harness/audit.ts";
import { RepeatingClient, V1 } from "../../harness/client.ts";
import { isCutOff, killBackend, killPostgres } from "../../harness/killer.ts";
import { launch } from "../../../support/common/process.ts";
import type { ProxyReport, ProxySettings } from "../../harness/proxy_process.ts";
import {
  type Arrival,
  readJournal,
  type ReceiverSettings,
  WAYS_TO_FAIL,
} from "../../harness/receiver.ts";
import {
  type ApiServer,
  type KeyedEnvironment,
  type Stage,
  untilAllWell,
} from "../../harness/stage.ts";
import { auditRun, overdrawnBalances } from "./audit.ts";
import { PlanClients } from "./clients.ts";
import type { Evidence } from "./evidence.ts";
import { type Plan, type PlannedKill, planOf, type Sandbox, SANDBOXES, VICTIMS } from "./plan.ts";

interface MainRunOptions {
  seed: number;
  operations: number;
  kills: number;
  clients: number;
  /** Called when every story is over and the run only waits for deliveries. */
  onCalm: () => void;
}

/** Faults between clients and servers. The smallest run has several hundred. */
const CLIENT_RATES = { reset: 0.004, stall: 0.004, halve: 0.004, stall_ms: [50, 800] } as const;
/** Faults between servers and PostgreSQL, where each cut breaks several requests. */
const DATABASE_RATES = {
  ...{ reset: 0.001, stall: 0.001, halve: 0.002 },
  stall_ms: [50, 1_500],
} as const;
const RECEIVER_FAILS = 0.3;
/** Without a final response after this time an operation counts as one without a response. */
const GIVE_UP_MS = 120_000;
const PROXIES = ["database", "clients 1", "clients 2"];

const AUDIT_EVERY_MS = 2_000;
const DELIVERY_DEADLINE_MS = 240_000;
/** Waits above this count as long: one minute after the second failure, ten after the third. */
const FAR_MS = 65_000;
/** Attempts of a sandbox's delivery until it fails, and until the wait is long (contract §4). */
const ATTEMPTS = { until_failed: 4, until_far: 3 } as const;
/** The sandbox and the event types of each path of the receiver. */
const ENDPOINTS: Record<string, { sandbox: Sandbox; events: string[] }> = {
  "/payments": { sandbox: "payments", events: ["*"] },
  "/mixed": { sandbox: "mixed", events: ["*"] },
  "/mixed-payments": { sandbox: "mixed", events: ["payment.*"] },
  "/transfers": { sandbox: "transfers", events: ["*"] },
  "/resets": { sandbox: "resets", events: ["*"] },
};

type Environments = Record<Sandbox, KeyedEnvironment>;

export async function runMain(stage: Stage, options: MainRunOptions): Promise<Verdict[]> {
  const plan = planOf(options.seed, options.operations, options.kills);
  const { servers, ports, calm } = await startBehindProxies(stage, options.seed);
  const environments = Object.fromEntries(
    await Promise.all(SANDBOXES.map(async (name) => [name, await stage.makeSandbox(name)])),
  ) as Environments;
  const direct = new RepeatingClient(stage, servers);
  const receiver = await startReceiver(stage, options.seed, direct, environments);
  const proxies = ports.map((port) => ({ base_url: `http://127.0.0.1:${port}/functions/v1` }));
  const client = new RepeatingClient(stage, proxies, { give_up_ms: GIVE_UP_MS });
  const killer = new Killer(stage, servers, receiver, plan);
  const keys = mapValues(environments, ({ key }) => key);
  const onFinished = (operations: number) => killer.advance(operations);
  const clients = new PlanClients(plan, client, keys, options.clients, onFinished);
  const ids = mapValues(environments, ({ environment_id }) => environment_id);
  const auditor = new Auditor(stage, ids, () => killer.progress >= plan.operations / 2);
  const started = performance.now();
  await clients.tell();
  const told_ms = performance.now() - started;
  await killer.end();
  const altered_movements = await auditor.end();
  const proxy_report = await calm();
  await untilAllWell(servers);
  options.onCalm();
  const drained = await drain(stage, direct, Object.values(environments));
  const delivered_ms = performance.now() - started - told_ms;
  const replays = await clients.replay(direct);
  await receiver.end();

  const arrivals = await readJournal(receiver.journal);
  const verdicts = await auditRun({
    ...{ plan, sql: stage.sql, journal: clients.journal, arrivals, replays, drained },
    environments: ids,
    endpoints: mapValues(ENDPOINTS, ({ sandbox, events }) => ({
      sandbox,
      takes: (type) => events[0] === "*" || type.startsWith("payment."),
    })),
    meanwhile: { audits: auditor.audits, breaches: auditor.breaches },
    altered_movements,
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
    countFaults(killer, proxy_report, arrivals).judge("kill"),
    { promise: "well", says: `longest recovery: ${killer.slowest()}`, breaches: [] },
  ];
}

function countFaults(killer: Killer, proxies: ProxyReport, arrivals: Arrival[]): Tally {
  const faults = new Tally([]);
  for (const [victim, recoveries] of Object.entries(killer.recoveries_ms)) {
    faults.add(victim, recoveries.length);
  }
  for (const { name, counts } of proxies) {
    for (const [kind, count] of Object.entries(counts)) faults.add(`${kind} (${name})`, count);
  }
  for (const way of WAYS_TO_FAIL) {
    faults.add(`${way} (receiver)`, arrivals.filter(({ failed_by }) => failed_by === way).length);
  }
  return faults;
}

interface Restartable {
  restart(): Promise<void>;
}

/** Ends a process with SIGKILL when the plan says so, and waits until it is replaced. */
class Killer {
  progress = 0;
  /** Milliseconds from each kill to the next good response. */
  readonly recoveries_ms: Record<string, number[]> = Object.fromEntries(
    VICTIMS.map((victim) => [victim, []]),
  );
  readonly #due: PlannedKill[];
  #killing: Promise<void> | null = null;

  constructor(
    readonly stage: Stage,
    readonly servers: readonly ApiServer[],
    readonly receiver: Restartable,
    { kills }: Plan,
  ) {
    this.#due = [...kills];
  }

  advance(finished: number): void {
    this.progress = finished;
    this.#killing ??= this.#killDue().finally(() => this.#killing = null);
  }

  slowest(): string {
    return Object.entries(this.recoveries_ms).map(([victim, ms]) =>
      `${victim} ${Math.round(Math.max(0, ...ms))} ms`
    ).join(", ");
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
    while (this.#due.length > 0 && this.#due[0]!.at_operation <= this.progress) {
      const kill = this.#due.shift()!;
      const killed_at = await this.#kill(kill);
      await untilAllWell(this.servers);
      this.recoveries_ms[kill.victim]!.push(performance.now() - killed_at);
    }
  }

  /** Resolves with the time of the kill when another process has replaced the killed one. */
  async #kill({ victim, which }: PlannedKill): Promise<number> {
    if (victim === "postmaster") return await killPostgres(this.stage);
    if (victim === "backend") return await killBackend(this.stage, which);
    const killed_at = performance.now();
    const server = this.servers[Math.floor(which * this.servers.length)]!;
    await (victim === "server" ? server : this.receiver).restart();
    return killed_at;
  }
}

/** The audit during the run: reads the invariants repeatedly, and copies the ledger once. */
class Auditor {
  audits = 0;
  readonly breaches: string[] = [];
  #has_copy = false;
  #is_over = false;
  readonly #auditing: Promise<void>;

  constructor(
    readonly stage: Stage,
    readonly environments: Evidence["environments"],
    readonly isMidway: () => boolean,
  ) {
    this.#auditing = this.#auditUntilEnd();
  }

  /** Ends the audit; returns the movements of the copy that were changed or deleted later. */
  async end(): Promise<string[]> {
    this.#is_over = true;
    await this.#auditing;
    if (!this.#has_copy) return ["the run made no copy of the ledger"];
    const rows = await this.stage.sql`
      select transaction_id as id
      from (table public.chaos_ledger except table pay.ledger_movements) gone limit 5`;
    return rows.map(({ id }) => `ledger transaction ${id} was deleted or changed`);
  }

  async #auditUntilEnd(): Promise<void> {
    while (!this.#is_over) {
      const started = performance.now();
      await this.#audit().catch((error) => {
        if (!isCutOff(error)) this.breaches.push(`during the run: ${error}`);
      });
      // The audit takes at most a tenth of the time, except for the copy.
      const pause_ms = Math.max(AUDIT_EVERY_MS, 9 * (performance.now() - started));
      const until_ms = performance.now() + pause_ms;
      do await pause(50); while (
        !this.#is_over && performance.now() < until_ms && !this.#wantsCopy()
      );
    }
  }

  async #audit(): Promise<void> {
    const { sql } = this.stage;
    const broken = await brokenInvariants(sql);
    this.breaches.push(...broken.map((breach) => `during the run ${breach}`));
    this.breaches.push(...await overdrawnBalances(sql, this.environments.transfers));
    this.audits++;
    if (!this.#wantsCopy()) return;
    // An earlier try may have made the copy before its connection broke.
    await sql`
      create table if not exists public.chaos_ledger as select * from pay.ledger_movements
      where environment_id not in (
        select id from pay.environments where public_id = ${this.environments.resets}
      )`;
    const [copied] = await sql`select from public.chaos_ledger limit 1`;
    if (copied === undefined) this.breaches.push("the ledger was empty in the middle of the run");
    this.#has_copy = true;
  }

  #wantsCopy(): boolean {
    return this.isMidway() && !this.#has_copy;
  }
}

interface OpenDelivery {
  environment_id: string;
  id: string;
  event_id: string;
  status: string;
  attempt_count: number;
  is_far: boolean;
  /** Whether an earlier event of its payment is still pending, on which its wait then depends. */
  is_blocked: boolean;
}

/**
 * Waits until no delivery is pending. If the receiver refused a delivery and kills used up two more
 * attempts, it waits ten minutes or has failed; then this redelivers it, as a merchant would. A
 * delivery in that state with fewer attempts is a fault.
 */
async function drain(
  { sql }: Stage,
  client: RepeatingClient,
  environments: readonly KeyedEnvironment[],
): Promise<Evidence["drained"]> {
  const keys = new Map(environments.map(({ environment_id, key }) => [environment_id, key]));
  const too_early = new Set<string>();
  const redelivered = new Set<string>();
  let late: string[] = [];
  await until("every delivery has ended", async () => {
    const open = await sql<OpenDelivery[]>`
      select v.public_id as environment_id, d.id, d.event_id, d.status,
        d.attempt_count,
        d.status = 'failed' or d.next_attempt_at > now() + ${`${FAR_MS} ms`}::interval as is_far,
        exists (
          select from pay.webhook_deliveries e
          where e.status = 'pending' and e.endpoint_id = d.endpoint_id
            and e.subject_id = d.subject_id and e.sequence < d.sequence
        ) as is_blocked
      from pay.webhook_deliveries d
      join pay.environments v on v.id = d.environment_id and v.retired_at is null
      where d.status in ('pending', 'failed')`;
    late = open.map(({ id }) => `late: ${id}`);
    for (const { id, status, attempt_count, is_far, is_blocked } of open) {
      const least = status === "failed" ? ATTEMPTS.until_failed : ATTEMPTS.until_far;
      if (is_far && !is_blocked && attempt_count < least) {
        too_early.add(`${id} is ${status} after ${attempt_count} attempts`);
      }
    }
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

async function startBehindProxies(stage: Stage, seed: number) {
  const ports = [freePort(), freePort()];
  const database = new URL(stage.functions_url);
  const report = Promise.withResolvers<ProxyReport>();
  const targets = [Number(database.port), ...ports];
  const proxies = await launch<{ ports: number[] }>(
    import.meta.resolve("../../harness/proxy_process.ts"),
    {
      seed,
      proxies: targets.map((target_port, i) => ({
        ...{ name: PROXIES[i]!, target_port, rates: i === 0 ? DATABASE_RATES : CLIENT_RATES },
      })),
    } satisfies ProxySettings,
    (line) => report.resolve(line as ProxyReport),
  );
  stage.atEnd(() => proxies.kill());
  database.port = String(proxies.ready.ports[0]);
  const database_url = database.href;
  return {
    servers: await Promise.all(ports.map((port) => stage.startServer({ port, database_url }))),
    ports: proxies.ready.ports.slice(1),
    /** Ends the faults. */
    async calm() {
      await proxies.send("calm");
      return await report.promise;
    },
  };
}

async function startReceiver(
  stage: Stage,
  seed: number,
  client: RepeatingClient,
  environments: Environments,
) {
  const port = freePort();
  const secrets: Record<string, string> = {};
  for (const [path, { sandbox, events }] of Object.entries(ENDPOINTS)) {
    const url = `http://127.0.0.1:${port}${path}`;
    secrets[path] = (await client.addEndpoint(environments[sandbox].key, { url, events })).secret;
  }
  const journal = join(stage.folder, "receiver.journal");
  const settings: ReceiverSettings = { port, seed, journal, fail: RECEIVER_FAILS, secrets };
  const open = () => launch(import.meta.resolve("../../harness/receiver.ts"), settings);
  let receiver = await open();
  const end = () => receiver.kill();
  stage.atEnd(end);
  return {
    ...{ journal, end },
    async restart() {
      await end();
      receiver = await open();
    },
  };
}

function mapValues<K extends string, T, U>(given: Record<K, T>, change: (value: T) => U) {
  return Object.fromEntries(
    Object.entries<T>(given).map(([name, value]) => [name, change(value)]),
  ) as Record<K, U>;
}
