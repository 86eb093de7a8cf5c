/**
 * Calls of the API. A call is described once, as data; from that one description it is made, and
 * written down for the reader as request, answer, curl and TypeScript.
 */

import { batch, signal } from "@preact/signals";
import { ApiError, type Exchange, PaymentsClient } from "../client/mod.ts";
import { endSession, session } from "./session.ts";
import type { DescribedCall } from "./snippets.ts";

type Resources = Pick<
  PaymentsClient,
  | "payments"
  | "refunds"
  | "webhookEndpoints"
  | "webhookDeliveries"
  | "events"
  | "ledgerEntries"
  | "balance"
  | "sandbox"
>;
// deno-lint-ignore no-explicit-any
type AnyFunction = (...args: any[]) => any;
type MethodOf<R extends keyof Resources, M extends keyof Resources[R]> = Extract<
  Resources[R][M],
  AnyFunction
>;

/** A described call and, for the compiler, what it answers. */
export interface Call<T> extends DescribedCall {
  readonly answers?: T;
}

/** A call that was made for the reader, newest last exchange included. */
export interface LoggedCall {
  number: number;
  call: DescribedCall;
  base_url: string;
  /** The last request of the call and its answer; null until there is one. */
  exchange: Exchange | null;
}

/** What the reader's actions have sent, newest first. */
export const call_log = signal<readonly LoggedCall[]>([]);
/** Rises with every change that was made here: what is on the screen is read again. */
export const revision = signal(0);

/** Calls that are kept for reading. */
const MAX_LOGGED = 25;
/** What is read again and again fails at once: the next turn is its retry. */
const NO_RETRIES = 0;

let last_number = 0;

/** Describes a call of the client. */
export function call<R extends keyof Resources, M extends keyof Resources[R] & string>(
  resource: R,
  method: M,
  ...args: Parameters<MethodOf<R, M>>
): Call<Awaited<ReturnType<MethodOf<R, M>>>> {
  return { resource, method, args };
}

/** Makes a call that the reader asked for: it is logged, and retried by the client. */
export async function perform<T>(described: Call<T>): Promise<T> {
  const { base_url } = session.value!;
  const number = ++last_number;
  const entry: LoggedCall = { number, call: described, base_url, exchange: null };
  call_log.value = [entry, ...call_log.value].slice(0, MAX_LOGGED);
  return await run(described, {
    onExchange(exchange) {
      call_log.value = call_log.value.map((logged) =>
        logged.number === number ? { ...logged, exchange } : logged
      );
    },
  });
}

/** Makes a call that changes something, and has everything on the screen read again. */
export async function change<T>(described: Call<T>): Promise<T> {
  try {
    return await perform(described);
  } finally {
    revision.value++;
  }
}

/** Makes a call that nobody asked for: not logged, not retried. */
export function readQuietly<T>(described: Call<T>): Promise<T> {
  return run(described, { maxRetries: NO_RETRIES });
}

/** Forgets what was sent. */
export function clearLog(): void {
  call_log.value = [];
}

async function run<T>(
  { resource, method, args }: Call<T>,
  options: { maxRetries?: number; onExchange?: (exchange: Exchange) => void },
): Promise<T> {
  const { api_key, base_url } = session.value!;
  const client = new PaymentsClient({ apiKey: api_key, baseUrl: base_url, ...options });
  try {
    const api = client as unknown as Record<string, Record<string, (...args: unknown[]) => T>>;
    return await api[resource]![method]!(...args);
  } catch (error) {
    // The key was revoked or has expired: nothing here can be read with it any more.
    if (error instanceof ApiError && error.status === 401 && session.value?.api_key === api_key) {
      batch(() => endSession(error));
    }
    throw error;
  }
}
