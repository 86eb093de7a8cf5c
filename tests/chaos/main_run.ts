/**
 * The main run (promises R1 to R8). Clients send the plan's stories through proxies that break
 * connections, while PostgreSQL, its backends, both API servers and the receiver are killed. Then the
 * faults end, and the audit judges the run.
 */

import { join } from "node:path";
import { type Arrival, WAYS_TO_FAIL } from "./arrival.ts";
import { auditRun } from "./audit.ts";
import type { Verdict } from "./evidence.ts";
import type {
  ApiResponse,
  ClientCounts,
  ClientReport,
  ClientSettings,
  Sent,
} from "./client_process.ts";
import { drain } from "./drain.ts";
import { readJournal } from "./journal.ts";
import { Killer, type Restartable } from "./killer.ts";
import { Auditor } from "./meanwhile.ts";
import { planOf, type Sandbox, SANDBOXES, type Victim } from "./plan.ts";
import { launch, type RunProcess } from "./process.ts";
import type { ProxyReport, ProxySettings } from "./proxy_process.ts";
import type { ReceiverSettings } from "./receiver_process.ts";
import { freePort } from "../support/common/free_port.ts";
import type { SandboxKey } from "./sandbox.ts";
import { type ApiServer, type Stage, untilWell } from "./stage.ts";

/** The options of the main run. */
interface MainRunOptions {
  seed: number;
  operations: number;
  kills: number;
  clients: number;
  /** Called when every story is over and the run only waits for deliveries. */
  onCalm: () => void;
}

/** The result of the main run. */
export interface MainRunReport {
  verdicts: Verdict[];
  /** Number of faults of each kind. */
  faults: Record<string, number>;
  /** Milliseconds from each kill to the next good response, by victim. */
  recoveries: Record<Victim, number[]>;
  counts: ClientCounts;
  /** Deliveries that the run redelivered because kills had used up their attempts. */
  redelivered: number;
  seconds: { told: number; delivered: number };
}

/** Faults between clients and servers. The smallest run has several hundred. */
const CLIENT_RATES = { reset: 0.004, stall: 0.004, halve: 0.004, stall_ms: [50, 800] } as const;
/**
 * Faults between servers and PostgreSQL, where each cut breaks several requests. The smallest run has
 * some of each kind.
 */
const DATABASE_RATES = {
  reset: 0.001,
  stall: 0.001,
  halve: 0.002,
  stall_ms: [50, 1_500],
} as const;
/** Share of first attempts that the receiver refuses. */
const RECEIVER_FAILS = 0.3;

/** The sandbox and the event types of each path of the receiver. */
const ENDPOINTS: Record<string, { sandbox: Sandbox; events: string[] }> = {
  "/payments": { sandbox: "payments", events: ["*"] },
  "/mixed": { sandbox: "mixed", events: ["*"] },
  "/mixed-payments": { sandbox: "mixed", events: ["payment.*"] },
  "/transfers": { sandbox: "transfers", events: ["*"] },
  "/resets": { sandbox: "resets", events: ["*"] },
};

/** Runs the main run and its audit. */
export async function runMain(stage: Stage, options: MainRunOptions): Promise<MainRunReport> {
  const plan = planOf(options.seed, options.operations, options.kills);
  const proxies = await startProxies(stage, options.seed);
  const servers = proxies.servers;
  const keys = {} as Record<Sandbox, SandboxKey>;
  for (const name of SANDBOXES) keys[name] = await stage.makeSandbox(name);
  const receiver = await startReceiver(stage, options.seed, servers[0]!, keys);

  const counts = Promise.withResolvers<ClientCounts>();
  const replays = Promise.withResolvers<{ replayed: number; faults: string[] }>();
  const killer = new Killer(stage, servers, receiver, plan);
  const journal = join(stage.folder, "clients.journal");
  const started = performance.now();
  const clients = await launch(
    "client_process.ts",
    {
      seed: options.seed,
      operations: options.operations,
      clients: options.clients,
      journal,
      base_urls: proxies.ports.map((port) => `http://127.0.0.1:${port}/functions/v1`),
      calm_urls: servers.map(({ base_url }) => base_url),
      keys: Object.fromEntries(
        SANDBOXES.map((name) => [name, keys[name].text]),
      ) as Record<Sandbox, string>,
    } satisfies ClientSettings,
    (line) => {
      const report = line as ClientReport;
      if ("finished" in report) killer.advance(report.finished);
      else if ("counts" in report) counts.resolve(report.counts);
      else replays.resolve(report);
    },
  );
  const end = async () => {
    clients.kill();
    await clients.ended;
  };
  stage.atEnd(end);
  const auditor = new Auditor(stage, keys, () => killer.progress >= plan.operations / 2);
  const counted = await Promise.race([counts.promise, clients.ended.then(() => null)]);
  if (counted === null) throw new Error("the clients ended before their last story");
  const told_ms = performance.now() - started;
  await killer.end();
  const altered_movements = await auditor.end();

  const proxy_report = await proxies.calm();
  for (const server of servers) await untilWell(server);
  options.onCalm();
  const drained = await drain(stage, servers[0]!, keys);
  const delivered_ms = performance.now() - started - told_ms;
  await clients.send("replay");
  const replayed = await replays.promise;
  await end();

  const arrivals = await readJournal<Arrival>(receiver.settings.journal);
  const verdicts = await auditRun({
    plan,
    sql: stage.sql,
    journal: await readJournal<Sent | ApiResponse>(journal),
    arrivals,
    environments: Object.fromEntries(
      SANDBOXES.map((name) => [name, keys[name].environment_id]),
    ) as Record<Sandbox, string>,
    endpoints: Object.fromEntries(
      Object.entries(ENDPOINTS).map(([path, { sandbox, events }]) => [path, {
        sandbox,
        takes: (type) => events[0] === "*" || type.startsWith("payment."),
      }]),
    ),
    replays: replayed,
    meanwhile: { audits: auditor.audits, breaches: auditor.breaches },
    altered_movements,
    drained,
  });
  if (counted.internal > 0) verdicts[0]!.breaches.push(`${counted.internal} responses of 500`);
  for (const { route, fault } of stage.server_faults) {
    verdicts[0]!.breaches.push(`fault of a server: ${route} ${fault}`);
  }
  return {
    verdicts,
    faults: {
      ...killer.kills,
      ...Object.fromEntries(proxy_report.flatMap(({ name, counts }) => {
        const { connections: _, ...kinds } = counts;
        return Object.entries(kinds).map(([kind, count]) => [`${kind} (${name})`, count]);
      })),
      ...Object.fromEntries(
        WAYS_TO_FAIL.map((way) => [
          `${way} (receiver)`,
          arrivals.filter(({ failed_by }) => failed_by === way).length,
        ]),
      ),
    },
    recoveries: killer.recoveries,
    counts: counted,
    redelivered: drained.redelivered,
    seconds: { told: told_ms / 1_000, delivered: delivered_ms / 1_000 },
  };
}

async function startProxies(stage: Stage, seed: number) {
  const ports = [freePort(), freePort()];
  const database = new URL(stage.functions_url);
  const proxies = await launch<{ ports: number[] }>(
    "proxy_process.ts",
    {
      seed,
      proxies: [
        { name: "database", target_port: Number(database.port), rates: DATABASE_RATES },
        { name: "clients 1", target_port: ports[0]!, rates: CLIENT_RATES },
        { name: "clients 2", target_port: ports[1]!, rates: CLIENT_RATES },
      ],
    } satisfies ProxySettings,
    (line) => report.resolve(line as ProxyReport),
  );
  const report = Promise.withResolvers<ProxyReport>();
  stage.atEnd(async () => {
    proxies.kill();
    await proxies.ended;
  });
  database.port = String(proxies.ready.ports[0]);
  const servers = await Promise.all(
    ports.map((port) => stage.startServer({ port, database_url: database.href })),
  );
  return {
    servers,
    ports: proxies.ready.ports.slice(1),
    async calm() {
      await proxies.send("calm");
      return await report.promise;
    },
  };
}

/** The receiver of the run. */
interface Receiver extends Restartable {
  settings: ReceiverSettings;
}

async function startReceiver(
  stage: Stage,
  seed: number,
  server: ApiServer,
  keys: Record<Sandbox, SandboxKey>,
): Promise<Receiver> {
  const port = freePort();
  const secrets: Record<string, string> = {};
  for (const [path, { sandbox, events }] of Object.entries(ENDPOINTS)) {
    const response = await fetch(`${server.base_url}/api-v1-payments/v1/webhook_endpoints`, {
      method: "POST",
      headers: {
        Authorization: `Bearer ${keys[sandbox].text}`,
        "Content-Type": "application/json",
        // The proxy before the database may cut this request too, so it needs a key.
        "Idempotency-Key": path,
      },
      body: JSON.stringify({ url: `http://127.0.0.1:${port}${path}`, events }),
    });
    const body = await response.json();
    if (response.status !== 201) throw new Error(`no endpoint: ${JSON.stringify(body)}`);
    secrets[path] = body.secret;
  }
  const journal = join(stage.folder, "receiver.journal");
  const settings: ReceiverSettings = { port, seed, journal, fail: RECEIVER_FAILS, secrets };
  let receiver: RunProcess<unknown> = await launch("receiver_process.ts", settings);
  const end = async () => {
    receiver.kill();
    await receiver.ended;
  };
  stage.atEnd(end);
  return {
    settings,
    async restart() {
      await end();
      receiver = await launch("receiver_process.ts", settings);
    },
  };
}
