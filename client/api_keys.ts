/**
 * API keys of the caller's own sandbox (contract §5). Live keys are the operator's.
 */

import { type List, listOf, type ListParams } from "./list.ts";
import type { ReadOptions, RequestOptions } from "./request_options.ts";
import type { Transport } from "./transport.ts";
import type { Scope } from "./vocabulary.ts";

/** `POST /v1/api_keys` */
export interface CreateApiKeyInput {
  /** 1 to 100 characters. */
  name: string;
  /** Everything that the caller's key may, unless given. */
  scopes?: Scope[] | undefined;
  /** RFC 3339, at the latest the end of the caller's key; by default that end, or never. */
  expires_at?: string | undefined;
}

/** `POST /v1/api_keys/{id}/rotate` */
export interface RotateApiKeyInput {
  /**
   * Seconds for which the older secrets still work, 0 to 604800; a day by default. 0 ends all of
   * them at once. At most 5 secrets work: a rotation that would make a sixth ends the oldest.
   */
  expires_in?: number | undefined;
}

/** A key, without its secrets' texts. */
export interface ApiKey {
  /** `key_…` */
  id: string;
  object: "api_key";
  name: string;
  /** Null: every scope. */
  scopes: Scope[] | null;
  livemode: boolean;
  /** The secrets that work now, newest first. They end at the latest with the key. */
  secrets: { prefix: string; last4: string; created_at: string; expires_at: string | null }[];
  /** Exact to the hour. */
  last_used_at: string | null;
  created_at: string;
  /** When the key ends; null: never. */
  expires_at: string | null;
  revoked_at: string | null;
}

/** A key with its new secret: shown on creation and rotation, and never again. */
export interface ApiKeyWithSecret extends ApiKey {
  /** `sk_test_…` */
  secret: string;
}

const API_KEYS = "/api-v1-payments/v1/api_keys";

/** Operations on keys. Each throws a `PaymentsError`. */
export class ApiKeys {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Makes a test key that may do no more than the caller's. */
  create(input: CreateApiKeyInput, options?: RequestOptions): Promise<ApiKeyWithSecret> {
    return this.#transport.send({ method: "POST", path: [API_KEYS], body: input }, options);
  }

  /** Gets a key. */
  retrieve(id: string, options?: ReadOptions): Promise<ApiKey> {
    return this.#transport.send({ method: "GET", path: [API_KEYS, id] }, options);
  }

  /** Lists keys, newest first. */
  list(params?: ListParams, options?: ReadOptions): List<ApiKey> {
    return listOf(this.#transport, [API_KEYS], params, options);
  }

  /** Gives a key a new secret. */
  rotate(
    id: string,
    input: RotateApiKeyInput = {},
    options?: RequestOptions,
  ): Promise<ApiKeyWithSecret> {
    const path = [API_KEYS, id, "rotate"];
    return this.#transport.send({ method: "POST", path, body: input }, options);
  }

  /** Revokes a key with all its secrets. */
  revoke(id: string, options?: RequestOptions): Promise<ApiKey> {
    return this.#transport.send({ method: "DELETE", path: [API_KEYS, id] }, options);
  }
}
