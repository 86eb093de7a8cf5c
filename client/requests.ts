/**
 * Earlier requests: the first request of an idempotency key, and the log of a sandbox (contract §5).
 */

import type { ReadOptions } from "./request_options.ts";
import type { Transport } from "./transport.ts";

/** An idempotency key that your API key has used within the last 24 hours. */
export interface IdempotencyKey {
  key: string;
  object: "idempotency_key";
  /** `req_…` */
  first_request_id: string;
  method: string;
  /** From the name of the function on. */
  path: string;
  /** Status of the stored response. Null while the first request is under way. */
  status: number | null;
  created_at: string;
  /** The time from which a request with this key is a new one. */
  expires_at: string;
  /** How often the stored response was replayed, counted behind the responses. */
  replays: number;
  /** The stored response, with `***` in place of secrets. Null while the request is under way. */
  body: Record<string, unknown> | null;
}

/** A request that a sandbox has handled. */
export interface LoggedRequest {
  /** `req_…`, as in the header `Request-Id` of the response. */
  id: string;
  object: "request";
  method: string;
  /** From the name of the function on. `***` stands for text that the log does not show. */
  path: string;
  query: string | null;
  status: number;
  error_code: string | null;
  idempotency_key: string | null;
  /** True if the response is that of an earlier request. */
  idempotent_replay: boolean;
  duration_ms: number;
  /** `key_…` */
  api_key_id: string;
  /** `web_page`: a browser sent it for a page, such as the console. `program`: anything else. */
  source: "program" | "web_page";
  created_at: string;
  /**
   * The body with `…` in place of card numbers, IBANs, security codes, secrets and unknown members.
   * Null: not stored. Only `retrieveRequest` has it.
   */
  request_body?: Record<string, unknown> | null | undefined;
  /** The body of the response, as `request_body`. */
  response_body?: Record<string, unknown> | null | undefined;
}

/** Operations on idempotency keys. A failed one throws a `PaymentsError`. */
export class IdempotencyKeys {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Retrieves an idempotency key, to learn which request a retry has repeated. */
  retrieve(key: string, options?: ReadOptions): Promise<IdempotencyKey> {
    const path = ["/api-v1-payments/v1/idempotency_keys", key];
    return this.#transport.send({ method: "GET", path }, options);
  }
}
