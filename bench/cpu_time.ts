/**
 * CPU time of processes, from /proc: who did the work of a run, and how much of the machine was
 * taken by others meanwhile. Nothing but Linux tells; elsewhere the figures are missing.
 */

/** Clock ticks of /proc per second: fixed on every platform that Deno runs on. */
const TICKS_PER_SECOND = 100;

/** The processes of a run. */
export interface Pids {
  load: number;
  server: number;
  /** The postmaster; its children are counted with it. */
  postgres: number;
}

/** CPU seconds since the processes began; `machine` is all of it, ours included. */
export interface CpuTime {
  load: number;
  server: number;
  postgres: number;
  machine: number;
}

/** Reads the counters; null where the system has none. */
export async function readCpuTime(pids: Pids): Promise<CpuTime | null> {
  if (Deno.build.os !== "linux") return null;
  return {
    load: seconds(await readStat(pids.load)),
    server: seconds(await readStat(pids.server)),
    postgres: await familySeconds(pids.postgres),
    machine: await machineSeconds(),
  };
}

/** What was used between two readings. */
export function cpuTimeBetween(before: CpuTime | null, after: CpuTime | null): CpuTime | null {
  if (before === null || after === null) return null;
  return {
    load: after.load - before.load,
    server: after.server - before.server,
    postgres: after.postgres - before.postgres,
    machine: after.machine - before.machine,
  };
}

/** One line of /proc/<pid>/stat, the fields after the name. */
async function readStat(pid: number): Promise<string[]> {
  const stat = await Deno.readTextFile(`/proc/${pid}/stat`);
  // "pid (name) state parent …", and the name may hold anything.
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

/** User and system time of a process itself. */
function seconds(stat: string[]): number {
  return (Number(stat[11]) + Number(stat[12])) / TICKS_PER_SECOND;
}

/** A process, its children, and the children that have ended. */
async function familySeconds(pid: number): Promise<number> {
  const own = await readStat(pid);
  let total = seconds(own) + (Number(own[13]) + Number(own[14])) / TICKS_PER_SECOND;
  for await (const { name } of Deno.readDir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const stat = await readStat(Number(name)).catch(() => null);
    if (stat !== null && Number(stat[1]) === pid) total += seconds(stat);
  }
  return total;
}

/** Time in which any CPU was busy. */
async function machineSeconds(): Promise<number> {
  const [line] = (await Deno.readTextFile("/proc/stat")).split("\n");
  const [user, nice, system, _idle, _iowait, irq, softirq] = line!.split(/\s+/).slice(1).map(
    Number,
  );
  return (user! + nice! + system! + irq! + softirq!) / TICKS_PER_SECOND;
}
