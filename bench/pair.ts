/** Pairs: a run of the product in turns with something other than pgbench. */

import type { Repetition } from "./measurement.ts";
import type { Run } from "./measure.ts";

/** Two sides that are measured in turns. */
export interface Pair {
  name: string;
  /** Null where it says nothing. */
  connections: number | null;
  run(): Promise<Run | null>;
  /** The rate that the run is compared with; null when it stands for itself. Measured first. */
  measureBeside: (() => Promise<number | null>) | null;
}

/** One repetition of a pair. */
export async function measurePair({ run, measureBeside }: Pair): Promise<Repetition> {
  const beside = measureBeside === null ? null : await measureBeside();
  return { beside, run: await run() };
}
