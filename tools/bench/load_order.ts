/** The orders that the load generator reads and the results that it prints, one JSON line each. */

/** Length of the time slots by which responses are counted. */
export const SLOT_MS = 50;
/** Placeholder for the idempotency key in a request: 36 characters, like a UUID. */
export const KEY_PLACE = "k".repeat(36);
/** Placeholder for an id in a request's path: `pay_` and 26 characters. */
export const ID_PLACE = "i".repeat(30);

/**
 * An order. In a closed loop each connection sends its next request when the last one has its
 * response. In an open loop requests are due at a constant rate, and latency counts from the due
 * time, also while no connection is free.
 */
export interface LoadOrder {
  port: number;
  connections: number;
  /** Due requests per second; null for a closed loop. */
  rate_per_s: number | null;
  /** The loop ends after this many requests at the latest; null if only the time limits it. */
  requests_max: number | null;
  /** Responses in this time are checked, but not measured. */
  warmup_ms: number;
  duration_ms: number;
  /** Complete requests as text, used in turn. They may contain KEY_PLACE and ID_PLACE. */
  requests: string[];
  /** For ID_PLACE. */
  ids: string[];
  /** For KEY_PLACE. If empty, each request gets a new random key. */
  keys: string[];
  /** Whether each id is used once and the run ends after the last; otherwise they are used in turn. */
  ids_once: boolean;
  expected_status: number;
  /** Text that the head of every response must contain, such as a header line. */
  expected_head: string | null;
  /** Whether the result contains the ids at the start of the responses, and the sent keys. */
  collect: boolean;
}

/** The settings of an order that most orders share: a closed loop of the same requests. */
export const PLAIN_ORDER = {
  rate_per_s: null,
  requests_max: null,
  warmup_ms: 0,
  ids: [],
  keys: [],
  ids_once: false,
  expected_head: null,
  collect: false,
} satisfies Partial<LoadOrder>;

/** The result of an order. */
export interface LoadResult {
  /** Expected responses including the warm-up. The books must show them. */
  responses: number;
  /** Measured responses, and the time in which they arrived. */
  measured: number;
  elapsed_ms: number;
  p50_ms: number;
  p99_ms: number;
  /** Start of the measured time, milliseconds since 1970. */
  started_ms: number;
  /** Measured responses in each slot of `SLOT_MS` from then on. */
  responses_by_slot: number[];
  /** Errors, each kind once. A run with an error does not count. */
  errors: string[];
  ids: string[];
  keys: string[];
}
