/** CPU time of processes from /proc, which is on Linux only. */

/** Clock ticks of /proc per second: fixed on every platform that Deno runs on. */
const TICKS_PER_SECOND = 100;

/** Process ids and parents, with the CPU seconds of each and of its ended children. */
type Processes = Map<number, { parent: number; seconds: number }>;

/**
 * Reads the CPU seconds of processes with all that descend from them; NaN without /proc.
 * @param parts the groups to read, such as a server and its database: each is counted on its own,
 * without what descends from a root of another group
 */
export async function readCpuSeconds(
  parts: readonly (readonly number[])[],
): Promise<number[]> {
  if (Deno.build.os !== "linux") return parts.map(() => NaN);
  const processes = await readProcesses();
  const group = new Map(parts.flatMap((roots, i) => roots.map((pid) => [pid, i] as const)));
  const sums = parts.map(() => 0);
  for (const [pid, { seconds }] of processes) {
    for (let at = pid; at > 1; at = processes.get(at)?.parent ?? 0) {
      const found = group.get(at);
      if (found === undefined) continue;
      sums[found]! += seconds;
      break;
    }
  }
  return sums;
}

/** The CPU microseconds of a response, from the readings before and after. */
export function cpuOfEach(before: number[], after: number[], responses: number) {
  const [server = NaN, postgres = NaN] = after.map((at, i) => (at - before[i]!) / responses * 1e6);
  return { cpu_us: server + postgres, postgres_us: postgres };
}

async function readProcesses(): Promise<Processes> {
  const processes: Processes = new Map();
  for await (const { name } of Deno.readDir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const stat = await Deno.readTextFile(`/proc/${name}/stat`).catch(() => null);
    if (stat === null) continue;
    // "pid (name) state parent …": the name can contain spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    processes.set(Number(name), { parent: Number(fields[1]), seconds: ticks / TICKS_PER_SECOND });
  }
  return processes;
}

/** The largest resident memory of a process among those that descend from one, in MB. */
export async function readMostMemory(pid: number, without: number): Promise<number> {
  if (Deno.build.os !== "linux") return NaN;
  const processes = await readProcesses();
  let most = 0;
  for (const one of processes.keys()) {
    let at = one;
    while (at !== pid && at !== without && at > 1) at = processes.get(at)?.parent ?? 0;
    if (at !== pid) continue;
    const status = await Deno.readTextFile(`/proc/${one}/status`).catch(() => "");
    most = Math.max(most, Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024 / 1e6);
  }
  return most;
}
