/** What a V8 CPU profile says: time in each function itself, without what it called. */

/** A profile as V8's inspector gives it. */
export interface CpuProfile {
  nodes: { id: number; callFrame: { functionName: string; url: string; lineNumber: number } }[];
  samples: number[];
  /** Microseconds before each sample. */
  timeDeltas: number[];
}

/** A function and its own share of the busy time. */
export interface Cost {
  name: string;
  share: number;
}

/** Not the server's: waiting, and the profiler itself. */
const NOT_ITS_OWN = /^\(idle\)|^\(root\)|inspector\.js/;

/** The most expensive functions; `(program)` is the runtime's own code, outside of JavaScript. */
export function topCosts({ nodes, samples, timeDeltas }: CpuProfile, count: number): Cost[] {
  const names = new Map(nodes.map(({ id, callFrame: { functionName, url, lineNumber } }) => {
    const file = url.split("/").slice(-2).join("/");
    const place = url === "" ? "" : ` ${file}:${lineNumber + 1}`;
    return [id, (functionName || "(anonymous)") + place];
  }));
  const times = new Map<string, number>();
  let busy = 0;
  for (const [i, id] of samples.entries()) {
    const name = names.get(id)!;
    if (NOT_ITS_OWN.test(name)) continue;
    const time = timeDeltas[i]!;
    busy += time;
    times.set(name, (times.get(name) ?? 0) + time);
  }
  return [...times].toSorted(([, a], [, b]) => b - a).slice(0, count)
    .map(([name, time]) => ({ name, share: time / busy }));
}
