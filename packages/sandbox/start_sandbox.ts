/**
 * Sandboxes for tests: a service with data of its own that ends with the process that started it.
 */

import {
  type CreateSandboxInput,
  PaymentsClient,
  type ResetSandboxInput,
  type SandboxReset,
} from "../client/mod.ts";
import { startServiceProcess } from "./service_process.ts";

/** Options of `startSandbox`. */
export interface StartSandboxOptions {
  /** A port of 127.0.0.1. By default any free one. */
  port?: number | undefined;
  /** Time for the start in milliseconds. By default 60 000, because the first one is slow. */
  timeoutMs?: number | undefined;
  /** Receives a line for each slow step of the first start on this machine. */
  onProgress?: ((line: string) => void) | undefined;
}

/** A sandbox: data that no other sandbox sees. */
export interface TestSandbox {
  /** URL of the functions: `http://127.0.0.1:<port>/functions/v1`. */
  readonly baseUrl: string;
  /** A key of this sandbox: `sk_test_…`. */
  readonly testKey: string;
  /** A client with this key. */
  readonly client: PaymentsClient;
  /**
   * Deletes all payments and transfers with their data. Keys stay, and webhook endpoints unless the
   * input is `{ webhook_endpoints: true }`.
   */
  reset(input?: ResetSandboxInput): Promise<SandboxReset>;
}

/** A further sandbox of the same service. */
export interface NewSandbox extends TestSandbox {
  /** `env_…` */
  readonly id: string;
  /** Time at which it ends, RFC 3339 in UTC. */
  readonly expiresAt: string;
  /** Ends it and its keys at once. */
  delete(): Promise<void>;
}

/** A service with one sandbox, on this machine. */
export interface LocalSandbox extends TestSandbox {
  /**
   * Makes a further, empty sandbox in the same service, which costs no more than a payment: for a
   * test that must not see the payments of another one at the same time.
   */
  newSandbox(input?: CreateSandboxInput): Promise<NewSandbox>;
  /** Ends the service and deletes its data. Also done when this process ends in any way. */
  stop(): Promise<void>;
}

const DEFAULT_TIMEOUT_MS = 60_000;

/**
 * Starts a service with a sandbox of its own, and resolves when it responds: on a free port, with
 * data in a temporary folder. Several can run at once, and none outlives this process.
 * @throws {Error} if it does not start; the message has what it printed
 * @example
 * ```ts
 * const sandbox = await startSandbox();
 * const payment = await sandbox.client.payments.create({ amount: 1999, currency: "EUR" });
 * await sandbox.stop();
 * ```
 */
export async function startSandbox(options: StartSandboxOptions = {}): Promise<LocalSandbox> {
  const { port = 0, timeoutMs = DEFAULT_TIMEOUT_MS, onProgress } = options;
  const service = await startServiceProcess({ PORT: String(port) }, timeoutMs, onProgress);
  const sandbox = openSandbox(service.base_url, service.test_key);
  return {
    ...sandbox,
    newSandbox: async (input) => {
      const { sandboxes } = sandbox.client;
      const { id, test_key, expires_at } = await sandboxes.create(input);
      return {
        ...openSandbox(service.base_url, test_key),
        id,
        expiresAt: expires_at,
        delete: async () => void await sandboxes.delete(id),
      };
    },
    stop: () => service.stop(),
  };
}

function openSandbox(baseUrl: string, testKey: string): TestSandbox {
  const client = new PaymentsClient({ apiKey: testKey, baseUrl });
  return { baseUrl, testKey, client, reset: (input) => client.sandbox.reset(input) };
}
