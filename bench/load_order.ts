/**
 * What the load generator is told and what it tells: one order, one result, each a line of JSON
 * between the benchmark and its process.
 */

/** Answers are counted by slots of this length. */
export const SLOT_MS = 50;
/** Stands in a request for the idempotency key: 36 characters, as a UUID has. */
export const KEY_PLACE = "k".repeat(36);
/** Stands in a request's path for an id: `pay_` and 26 characters. */
export const ID_PLACE = "i".repeat(30);

/**
 * A closed loop: each connection sends its next request when the last one is answered. Or an open
 * loop: requests are due at a constant rate, whatever becomes of those before, and latency counts
 * from the moment when a request was due, also while no connection was free to send it.
 */
export interface LoadOrder {
  port: number;
  connections: number;
  /** Requests due per second; null: a closed loop. */
  rate_per_s: number | null;
  /** The loop ends after so many requests, if not sooner; null: by time alone. */
  requests_max: number | null;
  /** Answers of this time are checked but not measured. */
  warmup_ms: number;
  duration_ms: number;
  /** Whole requests as text, used in turn; may hold KEY_PLACE and ID_PLACE. */
  requests: string[];
  /** For ID_PLACE. */
  ids: string[];
  /** For KEY_PLACE; a new random key for each request when empty. */
  keys: string[];
  /** Each id is used once, and the run ends when none is left; else they are used in turn. */
  ids_once: boolean;
  expected_status: number;
  /** Must stand in the head of every answer, such as a header's line. */
  expected_head: string | null;
  /** Returns the ids that answers begin with, and the keys that were sent. */
  collect: boolean;
}

/** What came of an order. */
export interface LoadResult {
  /** Answers as expected, warm-up included: what the books must show. */
  answered: number;
  /** Answers that were measured, and the time in which they came. */
  measured: number;
  elapsed_ms: number;
  p50_ms: number;
  p99_ms: number;
  /** When measuring began, milliseconds since 1970. */
  started_ms: number;
  /** Measured answers in each `SLOT_MS` from then on. */
  answers_by_slot: number[];
  /** What went wrong, each kind once; a run with one of them does not count. */
  errors: string[];
  ids: string[];
  keys: string[];
}
