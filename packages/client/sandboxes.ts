/**
 * Disposable sandboxes (contract §5): new, empty sandboxes of the same account that end by
 * themselves. Only test keys can make them.
 */

import { type List, listOf } from "./list.ts";
import type { ReadOptions, RequestOptions } from "./request_options.ts";
import type { Transport } from "./transport.ts";
import type {
  ApiKeyWithSecret,
  CreateSandboxInput,
  CreateSandboxKeyInput,
  DisposableSandbox,
  ListParams,
  SandboxWithKey,
} from "./resources.ts";

const SANDBOXES = "/api-v1-sandbox/sandboxes";

/** Operations on disposable sandboxes. A failed one throws a `PaymentsError`. */
export class Sandboxes {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Makes a sandbox. Use its `test_key` with a client of its own. The key of a disposable sandbox
   * makes no further ones.
   */
  create(input: CreateSandboxInput = {}, options?: RequestOptions): Promise<SandboxWithKey> {
    return this.#transport.send({ method: "POST", path: [SANDBOXES], body: input }, options);
  }

  /** Retrieves a sandbox, for up to 24 hours after its end. */
  retrieve(id: string, options?: ReadOptions): Promise<DisposableSandbox> {
    return this.#transport.send({ method: "GET", path: [SANDBOXES, id] }, options);
  }

  /** Lists the sandboxes that have not ended, newest first. */
  list(params?: ListParams, options?: ReadOptions): List<DisposableSandbox> {
    return listOf(this.#transport, [SANDBOXES], params, options);
  }

  /** Makes a further key of a sandbox. It has at most the scopes of the caller's key. */
  createKey(
    id: string,
    input: CreateSandboxKeyInput = {},
    options?: RequestOptions,
  ): Promise<ApiKeyWithSecret> {
    const path = [SANDBOXES, id, "keys"];
    return this.#transport.send({ method: "POST", path, body: input }, options);
  }

  /** Ends a sandbox and its keys at once. Deleting it again changes nothing. */
  delete(id: string, options?: RequestOptions): Promise<DisposableSandbox> {
    return this.#transport.send({ method: "DELETE", path: [SANDBOXES, id] }, options);
  }
}
