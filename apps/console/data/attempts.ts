/** Sums of the attempts of deliveries: their success, their durations, and both over time. */

import type { DeliveryAttempt, WebhookDelivery } from "../../../packages/client/mod.ts";

export interface Attempt {
  attempt: DeliveryAttempt;
  delivery: WebhookDelivery;
  is_taken: boolean;
}

/** A part of the time. */
interface Bucket {
  from: Date;
  taken: number;
  failed: number;
}

const BUCKETS = 24;
/** Shortest part, because the labels of a chart have seconds. */
const MIN_BUCKET_MS = 1_000;

/** Whether the receiver has taken the event. */
export function isTaken({ response_status }: DeliveryAttempt): boolean {
  return response_status !== null && response_status >= 200 && response_status < 300;
}

export function attemptsOf(deliveries: readonly WebhookDelivery[]): Attempt[] {
  return deliveries
    .flatMap((delivery) =>
      delivery.attempts.map((attempt) => ({ attempt, delivery, is_taken: isTaken(attempt) }))
    )
    .sort((a, b) => b.attempt.at.localeCompare(a.attempt.at));
}

/** Returns the share of success in percent, and durations. There must be an attempt. */
export function healthOf(
  attempts: readonly Attempt[],
): { percent: string; median_ms: number; slow_ms: number } {
  const durations = attempts.map(({ attempt }) => attempt.duration_ms).sort((a, b) => a - b);
  const quantile = (share: number) => durations[Math.ceil(share * durations.length) - 1]!;
  const taken = attempts.filter(({ is_taken }) => is_taken).length;
  // Rounded down: 100 % means that no attempt has failed.
  const tenths = Math.floor((1000 * taken) / attempts.length);
  return {
    percent: (tenths / 10).toFixed(tenths % 10 === 0 ? 0 : 1),
    median_ms: quantile(0.5),
    slow_ms: quantile(0.95),
  };
}

/** Divides the time from the oldest to the newest attempt into equal parts. */
export function bucketsOf(attempts: readonly Attempt[]): Bucket[] {
  const times = attempts.map(({ attempt }) => Date.parse(attempt.at));
  const first = Math.min(...times);
  const length = Math.max(MIN_BUCKET_MS, (Math.max(...times) - first + 1) / BUCKETS);
  const buckets = Array.from({ length: BUCKETS }, (_, i): Bucket => ({
    from: new Date(first + i * length),
    taken: 0,
    failed: 0,
  }));
  for (const [i, { is_taken }] of attempts.entries()) {
    const bucket = buckets[Math.min(BUCKETS - 1, Math.floor((times[i]! - first) / length))]!;
    bucket[is_taken ? "taken" : "failed"]++;
  }
  return buckets;
}
