/**
 * Calls of the API. Each call is described as data. This module makes the call from that
 * description and logs it, and the call panel shows the same description as curl and TypeScript.
 */

import { batch, signal } from "@preact/signals";
import {
  ApiError,
  type Exchange,
  type Page,
  PaymentsClient,
  type PaymentsClientOptions,
  type RequestOptions,
} from "../../../packages/client/mod.ts";
import {
  DEFAULT_MAX_RETRIES,
  DEFAULT_TIMEOUT_MS,
} from "../../../packages/client/request_options.ts";
import { RUNTIME } from "../../../packages/client/runtime.ts";
import { type ApiRequest, Transport } from "../../../packages/client/transport.ts";
import { showFlash } from "./flash.ts";
import { go } from "./route.ts";
import { endSession, forgetKey, leaveSandbox, session } from "./session.ts";
import type { DescribedCall } from "../../../tools/generate/code_samples/snippets.ts";
import { fetchSparingFaults } from "../../../packages/sandbox/sparing_fetch.ts";

// deno-lint-ignore no-explicit-any
type AnyFunction = (...args: any[]) => any;
type MethodOf<R extends keyof PaymentsClient, M extends keyof PaymentsClient[R]> = Extract<
  PaymentsClient[R][M],
  AnyFunction
>;

/** A described call. The type `T` of its response exists only for the compiler. */
export interface Call<T> extends DescribedCall {
  readonly responses?: T;
  /** Gets the response of a change before the visible data is read again. */
  take?(response: T): void;
}

export interface LoggedCall {
  number: number;
  call: DescribedCall;
  base_url: string;
  /** The last attempt with its response, without secrets. Null until the first one has ended. */
  exchange: Exchange | null;
}

/** The calls that the user has caused, newest first. */
export const call_log = signal<readonly LoggedCall[]>([]);
/** Increases with every change, so that the visible data is read again. */
export const revision = signal(0);

const MAX_LOGGED = 25;
/** Repeated reads need no retries of the client, because the next read is the retry. */
const NO_RETRIES = 0;

/**
 * The secrets in a response. The API shows them once, and so does the page. The key of a disposable
 * sandbox is shown nowhere else, and ends with it.
 */
const SECRETS = /("secret":\s*")[^"]+/g;

let last_number = 0;
/** Changes that have not ended. */
let changes = 0;

/** Describes a call of the client. */
export function call<R extends keyof PaymentsClient, M extends keyof PaymentsClient[R] & string>(
  resource: R,
  method: M,
  ...args: Parameters<MethodOf<R, M>>
): Call<Awaited<ReturnType<MethodOf<R, M>>>> {
  return { resource, method, args };
}

/** The resource of a call that is a request in its own words. */
export const REQUEST = "request";

/** Describes a request that no method of the client stands for, such as one of the log. */
export function requestCall(request: ApiRequest, options: RequestOptions): Call<unknown> {
  return { resource: REQUEST, method: request.method, args: [request, options] };
}

/**
 * Makes a call that the user has caused. It is logged, and the client retries it.
 * @param observe gets each attempt
 */
export async function perform<T>(
  described: Call<T>,
  observe?: (exchange: Exchange) => void,
): Promise<T> {
  const { base_url } = session.value!;
  const number = ++last_number;
  const entry: LoggedCall = { number, call: described, base_url, exchange: null };
  call_log.value = [entry, ...call_log.value].slice(0, MAX_LOGGED);
  return await run(described, {
    onExchange(exchange) {
      call_log.value = call_log.value.map((logged) =>
        logged.number === number ? { ...logged, exchange: withoutSecrets(exchange) } : logged
      );
      observe?.(exchange);
    },
  });
}

/** Makes a call that changes something. Then the visible data is read again. */
export async function change<T>(
  described: Call<T>,
  observe?: (exchange: Exchange) => void,
): Promise<T> {
  changes++;
  try {
    const response = await perform(described, observe);
    described.take?.(response);
    return response;
  } finally {
    changes--;
    revision.value++;
  }
}

/** Makes a call that the console repeats by itself. It is not logged and not retried. */
export function readQuietly<T>(described: Call<T>): Promise<T> {
  return run(described, { maxRetries: NO_RETRIES });
}

/**
 * Reads all pages of a list from the first one, each when it is needed. They are not logged. Ends
 * with an error if the session has another key meanwhile.
 */
export async function* readPages<T>(described: Call<Page<T>>): AsyncGenerator<Page<T>, void> {
  const { api_key } = session.value!;
  const { resource, method, args: [params] } = described;
  for (let cursor: string | null = null;;) {
    if (session.value?.api_key !== api_key) throw new Error("The key has changed.");
    const args = [{ ...params as object, ...(cursor !== null && { starting_after: cursor }) }];
    const page: Page<T> = await run({ resource, method, args }, {});
    yield page;
    if (!page.has_more || page.next_cursor === null) return;
    cursor = page.next_cursor;
  }
}

export function clearLog(): void {
  call_log.value = [];
}

/**
 * Makes a client whose reads use up no declared faults, because these are for the requests that the
 * user tests (contract §7). The exchanges that it reports do not have the header.
 */
export function openClient(
  api_key: string,
  base_url: string,
  options: Pick<PaymentsClientOptions, "maxRetries" | "onExchange"> = {},
): PaymentsClient {
  return new PaymentsClient({
    apiKey: api_key,
    baseUrl: base_url,
    fetch: fetchSparingFaults,
    ...options,
  });
}

function openTransport(
  apiKey: string,
  baseUrl: string,
  { maxRetries = DEFAULT_MAX_RETRIES, onExchange }: Parameters<typeof openClient>[2] = {},
): Transport {
  return new Transport({
    apiKey,
    baseUrl,
    fetch: fetchSparingFaults,
    maxRetries,
    timeoutMs: DEFAULT_TIMEOUT_MS,
    onExchange,
    runtime: RUNTIME,
  });
}

async function run<T>(
  { resource, method, args }: Call<T>,
  options: Parameters<typeof openClient>[2],
): Promise<T> {
  const { api_key, base_url } = session.value!;
  try {
    if (resource === REQUEST) {
      const [request, sent] = args as [ApiRequest, RequestOptions];
      return await openTransport(api_key, base_url, options).send<T>(request, sent);
    }
    const client = openClient(api_key, base_url, options);
    const api = client as unknown as Record<string, Record<string, (...args: unknown[]) => T>>;
    return await api[resource]![method]!(...args);
  } catch (error) {
    // The key has been revoked or has expired, so the session ends. But a change that has not ended
    // can be the one that replaces the key: then the read after it decides.
    const is_refused = error instanceof ApiError && error.status === 401;
    if (is_refused && changes === 0 && session.value?.api_key === api_key) {
      batch(() => {
        forgetKey();
        if (leaveSandbox()) tellItsEnd();
        else endSession(error);
      });
    }
    throw error;
  }
}

function withoutSecrets(exchange: Exchange): Exchange {
  const { response } = exchange;
  if (response === null) return exchange;
  return { ...exchange, response: { ...response, body: response.body.replace(SECRETS, "$1…") } };
}

function tellItsEnd(): void {
  go(["payments"]);
  showFlash("The disposable sandbox or its key has ended. This is the sandbox that made it.");
}
