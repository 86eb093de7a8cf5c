/**
 * API keys of the caller's sandbox (contract §5). Only the operator manages live keys.
 */

import { type List, listOf, type ListParams } from "./list.ts";
import type { ReadOptions, RequestOptions } from "./request_options.ts";
import type { Transport } from "./transport.ts";
import type { Scope } from "./vocabulary.ts";

/** `POST /v1/api_keys` */
export interface CreateApiKeyInput {
  /** 1 to 100 characters. */
  name: string;
  /** By default the scopes of the caller's key. The new key cannot have others. */
  scopes?: Scope[] | undefined;
  /** RFC 3339. By default, and at the latest, the expiry of the caller's key. */
  expires_at?: string | undefined;
}

/** `POST /v1/api_keys/{id}/rotate` */
export interface RotateApiKeyInput {
  /**
   * Seconds until the older secrets expire, 0 to 604800 (7 days). By default 86400, one day. 0 ends
   * them at once. A key has at most 5 valid secrets: a rotation that would add a sixth ends the
   * oldest.
   */
  expires_in?: number | undefined;
}

/** A key, without the text of its secrets. Times are RFC 3339 in UTC. */
export interface ApiKey {
  /** `key_…` */
  id: string;
  object: "api_key";
  name: string;
  /** Null stands for all scopes. */
  scopes: Scope[] | null;
  livemode: boolean;
  /** The valid secrets, newest first. A secret expires at the latest with its key. */
  secrets: { prefix: string; last4: string; created_at: string; expires_at: string | null }[];
  /** Exact to the hour. Null if the key was never used. */
  last_used_at: string | null;
  created_at: string;
  /** Null if the key never expires. */
  expires_at: string | null;
  revoked_at: string | null;
}

/** A key with its new secret. The API shows a secret only once: store it. */
export interface ApiKeyWithSecret extends ApiKey {
  /** `sk_test_…` */
  secret: string;
}

const API_KEYS = "/api-v1-payments/v1/api_keys";

/** Operations on keys. A failed one throws a `PaymentsError`. */
export class ApiKeys {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Creates a test key. Its scopes and its expiry cannot exceed those of the caller's key. */
  create(input: CreateApiKeyInput, options?: RequestOptions): Promise<ApiKeyWithSecret> {
    return this.#transport.send({ method: "POST", path: [API_KEYS], body: input }, options);
  }

  /** Retrieves a key. */
  retrieve(id: string, options?: ReadOptions): Promise<ApiKey> {
    return this.#transport.send({ method: "GET", path: [API_KEYS, id] }, options);
  }

  /** Lists keys, newest first. */
  list(params?: ListParams, options?: ReadOptions): List<ApiKey> {
    return listOf(this.#transport, [API_KEYS], params, options);
  }

  /**
   * Adds a secret to a key. The older secrets expire after `expires_in` seconds. For an expired or
   * revoked key: 409 `invalid_state`.
   */
  rotate(
    id: string,
    input: RotateApiKeyInput = {},
    options?: RequestOptions,
  ): Promise<ApiKeyWithSecret> {
    const path = [API_KEYS, id, "rotate"];
    return this.#transport.send({ method: "POST", path, body: input }, options);
  }

  /** Revokes a key with all its secrets at once. A second revoke changes nothing. */
  revoke(id: string, options?: RequestOptions): Promise<ApiKey> {
    return this.#transport.send({ method: "DELETE", path: [API_KEYS, id] }, options);
  }
}
