/**
 * The faults of the run with live cards: a table of the points of the flow (architecture §7) at
 * which a process is killed, a table of the provider's faulty responses, and ways in which
 * notifications arrive.
 */

import type { StripeDouble } from "../../../support/stripe/double.ts";
import type { Fault } from "../../../support/stripe/faults.ts";
import type { NotificationSettings } from "../../../support/stripe/notifications.ts";
import {
  type Kill,
  killAtStatement,
  killDatabase,
  killServers,
  killServersAndCut,
  within,
} from "../../harness/killer.ts";
import type { ApiServer, Stage } from "../../harness/stage.ts";

export interface CardProcesses {
  stage: Stage;
  servers: readonly ApiServer[];
  double: StripeDouble;
}

/** Kills at a point. Returns false if the flow did not come to it in time. */
type KillPoint = (processes: CardProcesses, path: string) => Promise<boolean>;

/** The operations of the provider, by the ends of their paths. */
export const CALLS = [
  ...["/payment_intents$", "/capture$", "/cancel$", "/refunds$"],
  ...["/customers$", "/setup_intents$", "/detach$"],
];

const RESERVE = { table: "provider_operations", text: "pay.commit(" };
const RECORD = { table: "provider_events", text: "pay.record(" };
const WORKER = { table: "provider_operations", text: "pay.lease_provider_work(" };
/** Longest wait for an operation or a statement at the point. A statement gives up after 1.5 s. */
const CALL_WAIT_MS = 15_000;
const STATEMENT_WAIT_MS = 1_000;
/** localstripe is killed in this time after its verdict and before the commit of the double. */
const VERDICT_MS = 300;

const killEngine: KillCall = ({ double }) => double.restartEngine();
const killBoth: KillCall = async ({ stage, servers }) => {
  await (await killServers(stage, servers, stage.sql, [])).recovered;
};

/** The points (docs/reliability.md, R14). */
export const KILL_POINTS: Readonly<Record<string, KillPoint>> = {
  "servers, reservation lost": atStatement(RESERVE, killServersAndCut),
  "servers, reservation kept": atStatement(RESERVE, killServers),
  "servers, operation sent": atCall({ at: "before", act: "hang" }, killBoth),
  "servers, operation done": atCall({ at: "after", act: "hang" }, killBoth),
  "servers, record lost": atStatement(RECORD, killServersAndCut),
  "servers, record kept": atStatement(RECORD, killServers),
  "PostgreSQL, reservation": atStatement(RESERVE, killDatabase),
  "PostgreSQL, record": atStatement(RECORD, killDatabase),
  "PostgreSQL, worker": atStatement(WORKER, killDatabase),
  "provider, before its work": atProvider("before"),
  "provider, before its commit": atProvider("engine"),
  "provider, after its commit": atProvider("after"),
  "localstripe, in an operation": atCall(
    { at: "engine", act: "delay", delay_ms: VERDICT_MS },
    killEngine,
  ),
};

/** Longest time of a call in this run, in place of 8 s. */
export const PROVIDER_DEADLINE_MS = 2_000;

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

const ONCE = { copies: 1, reverse_ms: 0, delay_ms: 0, lose: 0 };
/** The ways in which notifications arrive. Lost ones come again after a restart of the double. */
export const NOTIFICATION_WAYS: Readonly<Record<string, Partial<NotificationSettings>>> = {
  once: ONCE,
  doubled: { ...ONCE, copies: 2 },
  reversed: { ...ONCE, reverse_ms: 400 },
  late: { ...ONCE, delay_ms: 3_000 },
  lost: { ...ONCE, lose: 1_000_000 },
};

/** Plants a fault and waits until a call meets it. False if none does, or the double ends. */
export async function meets(double: StripeDouble, fault: Fault, name: string): Promise<boolean> {
  try {
    await double.plant({ ...fault, name, method: "POST" });
    return await within(CALL_WAIT_MS, async () => !(await double.waitingFaults()).includes(name));
  } catch {
    return false;
  }
}

type KillCall = (processes: CardProcesses) => Promise<void>;

/** Kills while a call is at a point of the provider. */
function atCall(fault: Fault, kill: KillCall): KillPoint {
  return async (processes, path) => {
    const is_met = await meets(processes.double, { ...fault, path }, "kill point");
    if (is_met) await kill(processes);
    else await processes.double.clearFaults().catch(() => {});
    return is_met;
  };
}

/** Lets the double kill itself at a point of a call. */
function atProvider(at: Fault["at"]): KillPoint {
  return async ({ double }, path) => {
    await double.plant({ name: "kill point", method: "POST", path, at, act: "kill" });
    await within(CALL_WAIT_MS, async () => !await responds(double));
    await double.clearFaults().catch(() => {});
    return await revive(double);
  };
}

/** Starts the double again if it is dead. Returns whether it was. */
export async function revive(double: StripeDouble): Promise<boolean> {
  const is_dead = !await responds(double);
  if (is_dead) await double.restart();
  return is_dead;
}

function responds(double: StripeDouble): Promise<boolean> {
  return double.waitingFaults().then(() => true, () => false);
}

function atStatement(point: { table: string; text: string }, kill: Kill): KillPoint {
  return ({ stage, servers }) =>
    killAtStatement(stage, servers, { ...point, wait_ms: STATEMENT_WAIT_MS }, kill);
}
