/**
 * Disposable sandboxes (contract §5): new, empty sandboxes of the same account that end by
 * themselves. Only test keys can make them.
 */

import type { RequestOptions } from "./request_options.ts";
import { Collection } from "./resource.ts";
import type {
  ApiKeyWithSecret,
  CreateSandboxInput,
  CreateSandboxKeyInput,
  DisposableSandbox,
  SandboxWithKey,
} from "./resources.ts";

/**
 * Operations on disposable sandboxes: `retrieve` finds one for up to 24 hours after its end, and
 * `list` has those that have not ended. A failed one throws a `PaymentsError`.
 */
export class Sandboxes extends Collection<DisposableSandbox> {
  protected readonly path = "/api-v1-sandbox/sandboxes";

  /**
   * Makes a sandbox. Use its `test_key` with a client of its own. The key of a disposable sandbox
   * makes no further ones.
   */
  create(input: CreateSandboxInput = {}, options?: RequestOptions): Promise<SandboxWithKey> {
    return this.transport.post([this.path], input, options);
  }

  /** Makes a further key of a sandbox. It has at most the scopes of the caller's key. */
  createKey(
    id: string,
    input: CreateSandboxKeyInput = {},
    options?: RequestOptions,
  ): Promise<ApiKeyWithSecret> {
    return this.transport.post([this.path, id, "keys"], input, options);
  }

  /** Ends a sandbox and its keys at once. Deleting it again changes nothing. */
  delete(id: string, options?: RequestOptions): Promise<DisposableSandbox> {
    return this.transport.delete([this.path, id], options);
  }
}
