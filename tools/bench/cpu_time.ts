/**
 * CPU time from /proc: of the processes of a run, and of the whole machine. It shows when other
 * programs disturbed a run. The figures exist on Linux only.
 */

/** Clock ticks of /proc per second: fixed on every platform that Deno runs on. */
const TICKS_PER_SECOND = 100;

/** The processes of a run. */
export interface Pids {
  load: number;
  server: number;
  /** The postmaster. Its children are included. */
  postgres: number;
}

/** CPU seconds since the start of the processes; `machine` includes every process. */
export interface CpuTime {
  load: number;
  server: number;
  postgres: number;
  machine: number;
}

/** Reads the counters; null on systems without /proc. */
export async function readCpuTime(pids: Pids): Promise<CpuTime | null> {
  if (Deno.build.os !== "linux") return null;
  return {
    load: seconds(await readStat(pids.load)),
    server: seconds(await readStat(pids.server)),
    postgres: await familySeconds(pids.postgres),
    machine: await machineSeconds(),
  };
}

/** The CPU time between two readings. */
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
  // "pid (name) state parent …": the name can contain spaces and parentheses.
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

/** User and system time of one process. */
function seconds(stat: string[]): number {
  return (Number(stat[11]) + Number(stat[12])) / TICKS_PER_SECOND;
}

/** CPU seconds of a process, its children, and its ended children. */
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

/** CPU seconds of the whole machine. */
async function machineSeconds(): Promise<number> {
  const [line] = (await Deno.readTextFile("/proc/stat")).split("\n");
  const [user, nice, system, _idle, _iowait, irq, softirq] = line!.split(/\s+/).slice(1).map(
    Number,
  );
  return (user! + nice! + system! + irq! + softirq!) / TICKS_PER_SECOND;
}
