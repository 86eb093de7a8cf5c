/**
 * Disposable sandboxes (contract §5): new, empty sandboxes of the same account that end by
 * themselves. Only test keys can make them.
 */

import { type List, listOf, type ListParams } from "./list.ts";
import type { ReadOptions, RequestOptions } from "./request_options.ts";
import type { Transport } from "./transport.ts";

/** `POST /sandboxes` */
export interface CreateSandboxInput {
  /** 1 to 100 characters, such as the branch or the test. */
  name?: string | undefined;
  /** Seconds until the sandbox ends, 60 to 604800 (7 days). By default 86400, one day. */
  expires_in?: number | undefined;
  /**
   * 1 to 100 characters. The ids and secrets of the sandbox follow from it, and the clock stands at
   * 2030-01-01, so the same requests in the same order give the same bytes. By default, and with
   * null, they are random.
   */
  seed?: string | null | undefined;
}

/** A disposable sandbox. Times are RFC 3339 in UTC. */
export interface DisposableSandbox {
  /** `env_…` */
  id: string;
  object: "sandbox";
  name: string | null;
  /** Null: the ids of the sandbox are random. */
  seed: string | null;
  created_at: string;
  /** Time at which the sandbox and all its keys end. In the past: it has ended. */
  expires_at: string;
}

/** A new sandbox with its key. The API shows the key only once. */
export interface SandboxWithKey extends DisposableSandbox {
  /** `sk_test_…`, with a seed `skseeded_test_…`: a key of the new sandbox with all scopes. */
  test_key: string;
}

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

  /** Ends a sandbox and its keys at once. Deleting it again changes nothing. */
  delete(id: string, options?: RequestOptions): Promise<DisposableSandbox> {
    return this.#transport.send({ method: "DELETE", path: [SANDBOXES, id] }, options);
  }
}
