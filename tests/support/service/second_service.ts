/**
 * Another isolate over the database of a test service. It has its own pool, queues and memory, like
 * a second worker of a deployed function.
 */

import type { Settings } from "../../../shared/functions/settings.ts";
import { type KeyedCall, keyedCall } from "./keyed_call.ts";
import { openProduct } from "./product.ts";
import {
  BASE_URL,
  DOCS_URL,
  MASTER_SECRET,
  type TestResponse,
  type TestService,
} from "./service.ts";

/** A second isolate. */
interface SecondService extends AsyncDisposable {
  /** Calls a function, by default with the sandbox key of the first service. */
  call(method: string, path: string, options?: KeyedCall): Promise<TestResponse>;
  /** Runs the provider worker until it finds no more work. */
  work(): Promise<void>;
  close(): Promise<void>;
}

/** Starts a second isolate for a test service. Close it before the test service. */
export function startSecondService(
  first: TestService,
  settings: Partial<Settings> = {},
): SecondService {
  const product = openProduct({
    database_url: first.database.functions_url,
    base_url: BASE_URL,
    docs_url: DOCS_URL,
    webhook_master_secret: MASTER_SECRET,
    ...settings,
  });
  return {
    call: (method, path, options = {}) =>
      keyedCall(product, method, path, { key: first.key.text, ...options }),
    work: () => product.deps.provider_worker.notify(),
    close: () => product.close(),
    [Symbol.asyncDispose]: () => product.close(),
  };
}
