/** The orders that the load generator reads and the results that it prints, one JSON line each. */

/** Placeholder for the idempotency key in a request: 36 characters, like a UUID. */
export const KEY_PLACE = "k".repeat(36);
/** Placeholder for an id in a request's path: `pay_` and 26 characters. */
export const ID_PLACE = "i".repeat(30);

/** An order: each connection sends its next request when the last one has its response. */
export interface LoadOrder {
  port: number;
  connections: number;
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
  expected_status: number;
  /** Text that the head of every response must contain, such as a header line. */
  expected_head: string | null;
}

/** The settings of an order that most orders share. */
export const PLAIN_ORDER = {
  requests_max: null,
  warmup_ms: 0,
  ids: [],
  keys: [],
  expected_head: null,
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
  /** Errors, each kind once. A run with an error does not count. */
  errors: string[];
}
