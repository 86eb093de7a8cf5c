/** Calls the API: once, or again and again with the same idempotency key, as a merchant does. */

import { pause, until } from "../../support/common/until.ts";
import type { Stage } from "./stage.ts";

export interface ApiRequest {
  /** By default POST if there is a body, otherwise GET. */
  method?: string;
  /** Sent as JSON; a text is sent as XML. */
  body?: unknown;
  key?: string;
}

/** A response. Status 0: there was none in time. */
export class ApiResponse {
  constructor(
    readonly status: number,
    readonly text: string,
    readonly is_replay: boolean,
    /** The declared fault that has caused it. */
    readonly fault: string | null,
  ) {}

  // deno-lint-ignore no-explicit-any -- the caller knows the shape
  get body(): any {
    return JSON.parse(this.text);
  }
}

export const [V1, SANDBOX] = ["/api-v1-payments/v1", "/api-v1-sandbox"];
export const CLOCK = `${SANDBOX}/clock`;
/** A body for `SANDBOX/payments`: a completed payment, which has two events. */
export const COMPLETED = { amount_minor: 100, currency: "EUR", outcome: "success" };

/**
 * Sends a request once.
 * @param path after the base URL, such as `/api-v1-payments/v1/payments`
 * @throws {Error} if the connection breaks before the response, or after `timeout_ms`
 */
async function callApi(
  base_url: string,
  token: string,
  path: string,
  { method, body, key }: ApiRequest,
  client: Deno.HttpClient,
  timeout_ms: number,
): Promise<ApiResponse> {
  const is_text = typeof body === "string";
  const response = await fetch(base_url + path, {
    method: method ?? (body === undefined ? "GET" : "POST"),
    client,
    signal: AbortSignal.timeout(timeout_ms),
    headers: {
      Authorization: `Bearer ${token}`,
      ...(body !== undefined &&
        { "Content-Type": is_text ? "application/xml" : "application/json" }),
      ...(key !== undefined && { "Idempotency-Key": key }),
    },
    ...(body !== undefined && { body: is_text ? body : JSON.stringify(body) }),
  });
  const is_replay = response.headers.get("Idempotent-Replayed") === "true";
  const fault = response.headers.get("Sandbox-Fault");
  return new ApiResponse(response.status, await response.text(), is_replay, fault);
}

/** The id of the payment or other resource that a response to a create shows, or null. */
export function createdIn(text: string): string | null {
  try {
    const { id, error } = JSON.parse(text);
    return id ?? error?.payment?.id ?? null;
  } catch {
    return null;
  }
}

/** An account that moves waits behind its fence while databases are killed. */
const NEXT_ACTION_MS = 300_000;

export async function eachAtOnce<T>(
  clients: number,
  items: readonly T[],
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  await Promise.all(Array.from({ length: clients }, async () => {
    while (next < items.length) await work(items[next++]!);
  }));
}

/** The replays at the end: their number, and those that differ from the first response. */
export interface Replays {
  replayed: number;
  faults: string[];
}

/** Sends stored keys again, and compares each replay with the first response, byte for byte. */
export async function replayAll<T>(
  clients: number,
  items: readonly T[],
  firstOf: (item: T) => { name: string; status: number; text: string },
  again: (item: T) => Promise<ApiResponse>,
): Promise<Replays> {
  const faults: string[] = [];
  await eachAtOnce(clients, items, async (item) => {
    const { name, status, text } = firstOf(item);
    const replay = await again(item);
    if (replay.is_replay && replay.status === status && replay.text === text) return;
    faults.push(`${name}: ${status} ${text}, then ${replay.status} ${replay.text}`);
  });
  return { replayed: items.length, faults };
}

interface ClientOptions {
  timeout_ms?: number;
  /** An operation without a final response after this time is a breach. */
  give_up_ms?: number;
  /** Whether 429 is repeated, where the run brings it about. Elsewhere it is a final response. */
  repeats_429?: boolean;
}

/** A client that repeats requests, at each server in turn, without waiting for `Retry-After`. */
export class RepeatingClient {
  readonly counts = { requests: 0, broken: 0, unavailable: 0, in_progress: 0, slowest_ms: 0 };
  /** The responses that a declared fault has caused, by the fault. */
  readonly faults: Record<string, number> = {};
  /** Responses of 5xx except 503, and operations without a response. */
  readonly breaches: string[] = [];
  readonly #http = Deno.createHttpClient({ poolMaxIdlePerHost: 128 });
  readonly #options: Required<ClientOptions>;
  #sent = 0;

  constructor(
    stage: Pick<Stage, "atEnd">,
    readonly servers: readonly { base_url: string }[],
    options: ClientOptions = {},
  ) {
    this.#options = { timeout_ms: 15_000, give_up_ms: 300_000, repeats_429: false, ...options };
    stage.atEnd(() => this.#http.close());
  }

  /** The breaches, and the repetitions of requests that no fault of the run has met. */
  get breachesOfCalm(): string[] {
    const repeated = this.repeated > 0 ? [`${this.repeated} requests were repeated`] : [];
    return [...this.breaches, ...repeated];
  }

  /** The requests that were repeated, without those of declared faults. */
  get repeated(): number {
    const { broken, unavailable, in_progress } = this.counts;
    return broken + unavailable + in_progress;
  }

  /**
   * Sends a request until it has a final response. A request without a key gets one, unless it
   * reads.
   * @param first number of the first server; by default they take turns
   */
  async send(
    token: string,
    path: string,
    request: ApiRequest = {},
    first = this.#sent++,
  ): Promise<ApiResponse> {
    const { timeout_ms, give_up_ms } = this.#options;
    const is_read = (request.method ?? "GET") === "GET" && request.body === undefined;
    const keyed = is_read ? request : { key: crypto.randomUUID(), ...request };
    const started = performance.now();
    for (let tries = 0;; tries++) {
      this.counts.requests++;
      const { base_url } = this.servers[(first + tries) % this.servers.length]!;
      const response = await callApi(base_url, token, path, keyed, this.#http, timeout_ms)
        .catch(() => null);
      const took_ms = performance.now() - started;
      if (this.#isFinal(path, response)) {
        this.counts.slowest_ms = Math.max(this.counts.slowest_ms, took_ms);
        return response!;
      }
      if (took_ms > give_up_ms) {
        const text = `no response in ${give_up_ms} ms: ${response?.status} ${response?.text}`;
        this.breaches.push(`${path}: ${text}`);
        return new ApiResponse(0, text, false, null);
      }
      // Shorter than Retry-After, to put more load on the service.
      const [least, more] = response === null ? [5, 45] : [50, 200];
      if (!response?.fault) await pause(least + Math.random() * more);
    }
  }

  /** Sends a request as several duplicates at once, the first one to the server with a number. */
  sendAll(token: string, path: string, request: ApiRequest, times: number, first = 0) {
    const all = Array.from({ length: times }, (_, i) => this.send(token, path, request, first + i));
    return Promise.all(all as [Promise<ApiResponse>, ...Promise<ApiResponse>[]]);
  }

  /** Whether a response is final: no 5xx, and no duplicate that is still under way. */
  #isFinal(path: string, response: ApiResponse | null): boolean {
    if (response === null) {
      this.counts.broken++;
      return false;
    }
    const { status, text, fault } = response;
    const is_under_way = status === 409 && text.includes('"idempotency_in_progress"');
    const is_limited = status === 429 && this.#options.repeats_429;
    if (status < 500 && !is_limited && !is_under_way) return true;
    if (fault !== null) this.faults[fault] = (this.faults[fault] ?? 0) + 1;
    else if (is_under_way) this.counts.in_progress++;
    else {
      this.counts.unavailable++;
      if (status >= 500 && status !== 503) this.breaches.push(`${path}: ${status} ${text}`);
    }
    return false;
  }

  /**
   * Creates something, by two requests at once under one key. Returns the body.
   * @throws {Error} if a response is another than 201
   */
  // deno-lint-ignore no-explicit-any -- the caller knows the shape
  async createTwice(token: string, path: string, body: object, key: string): Promise<any> {
    const [one, other] = (await this.sendAll(token, path, { body, key }, 2))
      .map(({ status, text }) => {
        if (status !== 201) throw new Error(`${path}: ${status} ${text}`);
        return JSON.parse(text);
      });
    // A response can lack the next action, if the server died before it was recorded.
    const [action, same] = [one, other].map((made) => JSON.stringify(made.next_action ?? null));
    const is_one = action === same || action === "null" || same === "null";
    if (one.id !== other.id || !is_one) {
      this.breaches.push(`${one.id} and ${other.id} have one key: ${action}, ${same}`);
    }
    return one;
  }

  /**
   * Returns the next action of a payment: that of the response to its create. If the server died
   * before it recorded the action, the service records it later.
   */
  async nextAction(token: string, { id, next_action }: { id: string; next_action: unknown }) {
    let action = next_action;
    await until(`${id} has a next action`, async () => {
      action ??= (await this.send(token, `${V1}/payments/${id}`)).body.next_action ?? null;
      return action !== null;
    }, NEXT_ACTION_MS);
    // deno-lint-ignore no-explicit-any -- the caller knows the shape
    return action as any;
  }

  /** Advances the clock of a sandbox, in as many requests as needed. Returns the last response. */
  async advanceClock(token: string, advance_s: number): Promise<ApiResponse> {
    for (let body: object = { advance: advance_s };;) {
      const response = await this.send(token, CLOCK, { body });
      if (response.status !== 200 || !response.body.has_more) return response;
      body = { to: response.body.target };
    }
  }

  /** Makes a webhook endpoint with a URL, or an inbox. Returns its id and secret. */
  async addEndpoint(
    token: string,
    endpoint: { url: string; events: string[] } | { delivery: "inbox" },
  ): Promise<{ id: string; secret: string }> {
    const { status, text } = await this.send(token, `${V1}/webhook_endpoints`, { body: endpoint });
    if (status !== 201) throw new Error(`no endpoint: ${text}`);
    return JSON.parse(text);
  }
}
