/**
 * The faults of the live run: a table of the points of the flow (architecture §7) at which a
 * process is killed, a table of the provider's faulty responses, and ways in which
 * notifications arrive.
 */

import type postgres from "postgres";
import type { Fault } from "../support/stripe/faults.ts";
import type { StripeDouble } from "../support/stripe/double.ts";
import type { NotificationSettings } from "../support/stripe/notifications.ts";
import { killPostgres } from "./killer.ts";
import { type ApiServer, type Stage, untilWell } from "./stage.ts";
import { killAtStatement, type Killed, within } from "./statement_point.ts";

/** The processes of the run. */
export interface LiveProcesses {
  stage: Stage;
  servers: readonly ApiServer[];
  double: StripeDouble;
}

/** A point of the flow. `kill` returns false if the flow did not come to it in time. */
interface KillPoint {
  name: string;
  kill(processes: LiveProcesses, path: string): Promise<boolean>;
}

/** The operations of the provider, by the ends of their paths. */
export const CALLS = ["/payment_intents$", "/capture$", "/cancel$", "/refunds$"];

const RESERVE = "pay.commit(";
const RECORD = "pay.record(";
const WORKER = "pay.lease_provider_work(";
/** Longest wait for an operation or a statement at the point. A statement gives up after 1.5 s. */
const CALL_WAIT_MS = 15_000;
const STATEMENT_WAIT_MS = 1_000;
/** localstripe is killed in this time after its verdict and before the commit of the double. */
const VERDICT_MS = 300;

/** The points (docs/reliability.md, R14). */
export const KILL_POINTS: readonly KillPoint[] = [
  {
    name: "servers, reservation lost",
    kill: atStatement("provider_operations", RESERVE, killServersAndCut),
  },
  {
    name: "servers, reservation kept",
    kill: atStatement("provider_operations", RESERVE, killServers),
  },
  { name: "servers, operation sent", kill: atOperation("before", "hang", killServers) },
  { name: "servers, operation done", kill: atOperation("after", "hang", killServers) },
  { name: "servers, record lost", kill: atStatement("provider_events", RECORD, killServersAndCut) },
  { name: "servers, record kept", kill: atStatement("provider_events", RECORD, killServers) },
  {
    name: "PostgreSQL, reservation",
    kill: atStatement("provider_operations", RESERVE, killDatabase),
  },
  { name: "PostgreSQL, record", kill: atStatement("provider_events", RECORD, killDatabase) },
  { name: "PostgreSQL, worker", kill: atStatement("provider_operations", WORKER, killDatabase) },
  { name: "provider, before its work", kill: atProvider("before") },
  { name: "provider, before its commit", kill: atProvider("engine") },
  { name: "provider, after its commit", kill: atProvider("after") },
  { name: "localstripe, in an operation", kill: atOperation("engine", "delay", killEngine) },
];

/** Longest time of a call in this run, in place of 8 s. */
export const PROVIDER_DEADLINE_MS = 2_000;

/** The provider's faulty responses. */
export const PROVIDER_FAULTS: Readonly<Record<string, Fault>> = {
  "request lost": { at: "before", act: "lose" },
  "request twice": { at: "before", act: "twice" },
  "response lost": { at: "after", act: "lose" },
  "response cut": { at: "after", act: "cut" },
  "response late": { at: "after", act: "delay", delay_ms: PROVIDER_DEADLINE_MS + 500 },
  "HTML": { at: "after", act: "html" },
  "10 MB": { at: "after", act: "huge" },
  "500 before the work": { at: "before", act: "error" },
  "500 after the work": { at: "after", act: "error" },
  "500 kept": { at: "after", act: "error", keep: true },
  "429": { at: "before", act: "rate_limit" },
};

/** The ways in which notifications arrive. Lost ones come again after a restart of the double. */
export const NOTIFICATION_WAYS: Readonly<Record<string, Partial<NotificationSettings>>> = {
  once: { copies: 1, reverse_ms: 0, delay_ms: 0, lose: 0 },
  doubled: { copies: 2, reverse_ms: 0, delay_ms: 0, lose: 0 },
  reversed: { copies: 1, reverse_ms: 400, delay_ms: 0, lose: 0 },
  late: { copies: 1, reverse_ms: 0, delay_ms: 3_000, lose: 0 },
  lost: { copies: 1, reverse_ms: 0, delay_ms: 0, lose: 1_000_000 },
};

/**
 * Plants a fault and waits until a call meets it. Returns false if none does, or the double ends.
 */
export async function meets(double: StripeDouble, fault: Fault, name: string): Promise<boolean> {
  try {
    await double.plant({ ...fault, name, method: "POST" });
    return await within(CALL_WAIT_MS, async () => !(await double.waitingFaults()).includes(name));
  } catch {
    return false;
  }
}

/**
 * Kills, and resolves when the lock of the point may go.
 * @param pids the backends that wait at the point
 */
type Kill = (processes: LiveProcesses, sql: postgres.Sql, pids: number[]) => Promise<Killed>;

/** Kills while a call is at a point of the provider. */
function atOperation(at: Fault["at"], act: "hang" | "delay", kill: Kill): KillPoint["kill"] {
  return async (processes, path) => {
    const fault: Fault = { at, act, path, ...(act === "delay" && { delay_ms: VERDICT_MS }) };
    if (!await meets(processes.double, fault, "kill point")) {
      await processes.double.clearFaults().catch(() => {});
      return false;
    }
    await (await kill(processes, processes.stage.sql, [])).recovered;
    return true;
  };
}

/** Lets the double kill itself at a point of a call. */
function atProvider(at: Fault["at"]): KillPoint["kill"] {
  return async ({ double }, path) => {
    await double.plant({ name: "kill point", method: "POST", path, at, act: "kill" });
    await within(CALL_WAIT_MS, async () => !await responds(double));
    await double.clearFaults().catch(() => {});
    return await revive(double);
  };
}

/**
 * Starts the double again if it is dead. Returns whether it was.
 */
export async function revive(double: StripeDouble): Promise<boolean> {
  const is_dead = !await responds(double);
  if (is_dead) await double.restart();
  return is_dead;
}

function responds(double: StripeDouble): Promise<boolean> {
  return double.waitingFaults().then(() => true, () => false);
}

function atStatement(table: string, text: string, kill: Kill): KillPoint["kill"] {
  const point = { table, text, wait_ms: STATEMENT_WAIT_MS };
  return (processes) =>
    killAtStatement(processes.stage, point, (sql, pids) => kill(processes, sql, pids));
}

async function killServers({ servers }: LiveProcesses): Promise<Killed> {
  // restart() sends SIGKILL before it returns.
  const restarted = servers.map((server) => server.restart().then(() => untilWell(server)));
  return await Promise.resolve({ recovered: Promise.all(restarted), has_ended_lock: false });
}

/** Kills the servers, and then their waiting statements, which do not notice that. */
async function killServersAndCut(
  processes: LiveProcesses,
  sql: postgres.Sql,
  pids: number[],
): Promise<Killed> {
  const killed = await killServers(processes);
  await sql`select pg_terminate_backend(pid) from unnest(${pids}::int[]) as pid`;
  return killed;
}

async function killDatabase(
  { stage, servers }: LiveProcesses,
): Promise<Killed> {
  await killPostgres(stage, stage.postgres.pid);
  return { recovered: Promise.all(servers.map(untilWell)), has_ended_lock: true };
}

async function killEngine({ double }: LiveProcesses): Promise<Killed> {
  return await Promise.resolve({ recovered: double.restartEngine(), has_ended_lock: false });
}
