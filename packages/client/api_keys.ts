/** API keys of the caller's sandbox (contract §5). Only the operator manages live keys. */

import { type List, listOf } from "./list.ts";
import type { ReadOptions, RequestOptions } from "./request_options.ts";
import type { Transport } from "./transport.ts";
import type {
  ApiKey,
  ApiKeyWithSecret,
  CreateApiKeyInput,
  ListParams,
  RotateApiKeyInput,
} from "./resources.ts";

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

  /** Retrieves the key of this client. Every key can read itself. */
  own(options?: ReadOptions): Promise<ApiKey> {
    return this.#transport.send({ method: "GET", path: ["/api-v1-payments/v1/api_key"] }, options);
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
