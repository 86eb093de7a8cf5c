/** How the time of a piece of work grows with its size, whatever else the machine does meanwhile. */

import assert from "node:assert/strict";

/** The best times of so many rounds are compared; fewer are enough where they are linear before. */
const ROUNDS = 30;
/**
 * The whole is compared with as much work in so many parts: a busy machine interrupts both as often.
 * Linear work takes as long in parts, quadratic work an eighth of it.
 */
const PARTS = 8;
const FACTOR_MAX = 3;
/** Below this the clock and the compiler decide; quadratic work on large sizes is far above. */
const NOTHING_MS = 5;

/**
 * Times the work at the size, and in parts of it, in turns.
 * Errors: the time grows faster than the size does.
 */
export function assertLinear(name: string, size: number, work: (size: number) => void): void {
  let [parts_ms, whole_ms] = [Infinity, Infinity];
  for (let round = 0; round < ROUNDS; round++) {
    const partly = () => {
      for (let part = 0; part < PARTS; part++) work(size / PARTS);
    };
    parts_ms = Math.min(parts_ms, timeOf(partly));
    whole_ms = Math.min(whole_ms, timeOf(() => work(size)));
    if (whole_ms < NOTHING_MS || whole_ms < FACTOR_MAX * parts_ms) return;
  }
  assert.fail(`${name}: ${whole_ms} ms, and ${parts_ms} ms in ${PARTS} parts`);
}

function timeOf(work: () => void): number {
  const started = performance.now();
  work();
  return performance.now() - started;
}
