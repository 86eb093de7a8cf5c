/** Latencies from a commit to the arrival of its events. */

import assert from "node:assert/strict";
import type { TestService } from "../service/service.ts";
import type { RecordingReceiver } from "./recording_receiver.ts";
import { until } from "../common/until.ts";

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

/**
 * Makes payments one after the other, each with one event. Measures the time from the response of
 * each request to the arrival of the event; a negative time counts as 0.
 * @param per_payment the number of arrivals at this receiver for each payment
 */
export async function measureLatencies(
  service: TestService,
  receiver: RecordingReceiver,
  payments: number,
  per_payment: number,
): Promise<number[]> {
  const committed = new Map<string, number>();
  const before = receiver.arrivals.length;
  for (let i = 0; i < payments; i++) {
    const { body } = await service.make({ outcome: "pending" });
    committed.set(body.id, performance.now());
    const expected = before + (i + 1) * per_payment;
    await until("the payment's events have arrived", () => receiver.arrivals.length >= expected);
  }
  return receiver.arrivals.slice(before)
    .map(({ at, event }) => Math.max(0, at - committed.get(event.data.object.id)!));
}
