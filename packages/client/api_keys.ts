/** API keys of the caller's sandbox (contract §5). Only the operator manages live keys. */

import type { ReadOptions, RequestOptions } from "./request_options.ts";
import { Collection } from "./resource.ts";
import type {
  ApiKey,
  ApiKeyWithSecret,
  CreateApiKeyInput,
  RotateApiKeyInput,
} from "./resources.ts";

/** Operations on keys. A failed one throws a `PaymentsError`. */
export class ApiKeys extends Collection<ApiKey> {
  protected readonly path = "/api-v1-payments/v1/api_keys";

  /** Creates a test key. Its scopes and its expiry cannot exceed those of the caller's key. */
  create(input: CreateApiKeyInput, options?: RequestOptions): Promise<ApiKeyWithSecret> {
    return this.transport.post([this.path], input, options);
  }

  /** Retrieves the key of this client. Every key can read itself. */
  own(options?: ReadOptions): Promise<ApiKey> {
    return this.transport.get(["/api-v1-payments/v1/api_key"], options);
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
    return this.transport.post([this.path, id, "rotate"], input, options);
  }

  /** Revokes a key with all its secrets at once. A second revoke changes nothing. */
  revoke(id: string, options?: RequestOptions): Promise<ApiKey> {
    return this.transport.delete([this.path, id], options);
  }
}
