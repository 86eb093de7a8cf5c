/**
 * The main run (promises R1 to R8). Clients send the plan's stories through proxies that break
 * connections, while PostgreSQL, its backends, both API servers and the receiver are killed. Then
 * the faults end, and the audit judges the run.
 */

import { join } from "node:path";
import { freePort } from "../../../support/common/free_port.ts";
import { until } from "../../../support/common/until.ts";
import { faultsOfServers, Tally, type Verdict } from "../../harness/audit.ts";
import { RepeatingClient } from "../../harness/client.ts";
import { readJournal } from "../../harness/journal.ts";
import { killBackend, killPostgres } from "../../harness/killer.ts";
import { launch } from "../../../support/common/process.ts";
import type { ProxyReport, ProxySettings } from "../../harness/proxy_process.ts";
import { type Arrival, type ReceiverSettings, WAYS_TO_FAIL } from "../../harness/receiver.ts";
import {
  type ApiServer,
  type KeyedEnvironment,
  type Stage,
  untilAllWell,
} from "../../harness/stage.ts";
import { auditRun } from "./audit.ts";
import { PlanClients } from "./clients.ts";
import { drain } from "./drain.ts";
import { Auditor } from "./meanwhile.ts";
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

  const arrivals = await readJournal<Arrival>(receiver.journal);
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
