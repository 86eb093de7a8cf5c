/** Measures durations. */

import assert from "node:assert/strict";

/** Waits for a response and returns it with its duration, counted from this call. */
export async function timed<T>(call: Promise<T>): Promise<{ response: T; ms: number }> {
  const started = performance.now();
  return { response: await call, ms: performance.now() - started };
}

/** Returns the value that a share of the samples, in any order, does not exceed. */
export function percentile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  assert.ok(sorted.length > 0);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!;
}

/** Formats samples in milliseconds as `n=…, p50 … ms, p99 … ms`. */
export function summary(samples: readonly number[]): string {
  const [p50, p99] = [0.5, 0.99].map((share) => percentile(samples, share).toFixed(1));
  return `n=${samples.length}, p50 ${p50} ms, p99 ${p99} ms`;
}
