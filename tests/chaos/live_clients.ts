/**
 * The clients of the live run. They tell stories of live payments and repeat each change with its
 * key until it has a final response. Between two changes of a payment they wait for its result.
 */

import {
  type LiveAction,
  type LiveOperation,
  type LiveStory,
  liveStory,
  RESULTS,
} from "./live_plan.ts";

/** A final response. Status 0: there was none in time. */
export interface LiveResponse {
  status: number;
  body: string;
  is_replay: boolean;
}

/** A change and the responses to its duplicates. */
export interface LiveFinished extends LiveOperation {
  /** Null for a create without a payment in its response. */
  payment_id: string | null;
  responses: LiveResponse[];
}

/** The settings of the clients. */
interface LiveClientsOptions {
  seed: number;
  clients: number;
  /** The base URLs of the servers; duplicates take turns. */
  urls: readonly string[];
  api_key: string;
  /** Whether the clients tell a further story, and how long one waits before it. */
  next: () => { is_over: boolean; pause_ms: number };
  /** Describes the operations and provider events of a payment that has no result. */
  explain: (payment_id: string) => Promise<string>;
}

const RESPONSE_DEADLINE_MS = 15_000;
/**
 * Without a final response, or a result, after this time an operation counts as one without a
 * response.
 */
const DEADLINE_MS = 300_000;
const PAUSE_MS = 150;

/** Tells stories. */
export class LiveClients {
  /** The operations that are over. */
  readonly operations: LiveFinished[] = [];
  /** Results that did not come in time, and errors that no client may see. */
  readonly faults: string[] = [];
  requests = 0;
  readonly #options: LiveClientsOptions;
  #stories = 0;

  constructor(options: LiveClientsOptions) {
    this.#options = options;
  }

  /** Resolves when every story is over. */
  async tell(): Promise<void> {
    const { clients, next, seed } = this.#options;
    await Promise.all(Array.from({ length: clients }, async () => {
      for (let { is_over, pause_ms } = next(); !is_over; { is_over, pause_ms } = next()) {
        await pause(pause_ms);
        await this.#tellStory(liveStory(seed, this.#stories++));
      }
    }));
  }

  /** Sends every key again. Returns the number of replays that differ from the first response. */
  async replay(): Promise<{ replayed: number; faults: string[] }> {
    const faults: string[] = [];
    let [at, replayed] = [0, 0];
    await Promise.all(Array.from({ length: this.#options.clients }, async () => {
      for (let one = this.operations[at++]; one; one = this.operations[at++]) {
        const [first] = one.responses;
        if (first === undefined || !isStored(first)) continue;
        const again = await this.#untilFinal(one, one.payment_id, 0);
        replayed++;
        if (again.is_replay && again.status === first.status && again.body === first.body) continue;
        faults.push(
          `${one.key}: ${first.status} ${first.body}, then ${again.status} ${again.body}`,
        );
      }
    }));
    return { replayed, faults };
  }

  async #tellStory({ groups, is_authenticated }: LiveStory): Promise<void> {
    let payment_id: string | null = null;
    for (const group of groups) {
      const ids: (string | null)[] = await Promise.all(
        group.map((operation) => this.#perform(operation, payment_id)),
      );
      payment_id = ids[0]!;
      if (payment_id === null) return;
      const status = await this.#result(payment_id, group[0]!.action, is_authenticated);
      // Without money the rest of the story is impossible.
      if (status === "declined" || status === null) return;
    }
  }

  /** Sends all duplicates of an operation. Returns the payment. */
  async #perform(operation: LiveOperation, given: string | null): Promise<string | null> {
    const responses = await Promise.all(
      Array.from(
        { length: operation.duplicates },
        (_, duplicate) => this.#untilFinal(operation, given, duplicate),
      ),
    );
    const payment_id = given ?? paymentOf(responses[0]!);
    this.operations.push({ ...operation, payment_id, responses });
    return payment_id;
  }

  /** Repeats a request until its response is final. */
  async #untilFinal(
    { key, action }: LiveOperation,
    payment_id: string | null,
    duplicate: number,
  ): Promise<LiveResponse> {
    const give_up_at = performance.now() + DEADLINE_MS;
    const verb = action.do === "create" ? "" : `/${payment_id}/${PATHS[action.do]}`;
    for (let tries = 0;; tries++) {
      const response = await this.#send(
        duplicate + tries,
        `/v1/payments${verb}`,
        bodyOf(action),
        key,
      );
      if (response && isFinal(response)) return response;
      if (response && response.status >= 500 && response.status !== 503) {
        this.faults.push(`${key}: ${response.status} ${response.body}`);
      }
      if (performance.now() > give_up_at) {
        return { status: 0, body: `the last response was ${response?.body}`, is_replay: false };
      }
      await pause(PAUSE_MS);
    }
  }

  /** Waits for the result of a change. Returns the status of the payment, or null without one. */
  async #result(id: string, action: LiveAction, is_authenticated: boolean): Promise<string | null> {
    const give_up_at = performance.now() + DEADLINE_MS;
    for (let tries = 0; performance.now() < give_up_at; tries++) {
      const response = await this.#send(tries, `/v1/payments/${id}`);
      if (response?.status === 200) {
        const payment = JSON.parse(response.body);
        const { status, next_action } = payment;
        if (status === "requires_action") await visit(next_action.url, is_authenticated);
        else if (isOver(payment, action)) return status;
      }
      await pause(PAUSE_MS);
    }
    const state = await this.#options.explain(id);
    this.faults.push(`${id}: no result of ${action.do} in ${DEADLINE_MS} ms: ${state}`);
    return null;
  }

  async #send(
    n: number,
    path: string,
    body?: unknown,
    key?: string,
  ): Promise<LiveResponse | null> {
    const { urls, api_key } = this.#options;
    this.requests++;
    try {
      const response = await fetch(`${urls[n % urls.length]}/api-v1-payments${path}`, {
        method: body === undefined ? "GET" : "POST",
        headers: {
          Authorization: `Bearer ${api_key}`,
          ...(key !== undefined && { "Idempotency-Key": key }),
          ...(body !== undefined && { "Content-Type": "application/json" }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(RESPONSE_DEADLINE_MS),
      });
      const is_replay = response.headers.get("Idempotent-Replayed") === "true";
      return { status: response.status, body: await response.text(), is_replay };
    } catch {
      return null;
    }
  }
}

const PATHS = { capture: "capture", cancel: "cancel", refund: "refund" } as const;

/** Whether the service stores a response under its key. */
export function isStored({ status }: LiveResponse): boolean {
  return status === 402 || (status >= 200 && status < 300);
}

/** Returns the payment that a response to a create shows. */
export function paymentOf({ body }: LiveResponse): string | null {
  try {
    const { id, error } = JSON.parse(body);
    return id ?? error?.payment?.id ?? null;
  } catch {
    return null;
  }
}

function bodyOf(action: LiveAction): unknown {
  if (action.do === "cancel") return {};
  if (action.do !== "create") return { amount_minor: action.amount_minor };
  const { do: _, token, ...terms } = action;
  return { ...terms, currency: "EUR", card: { token } };
}

/** Whether a response is final: no 5xx, and no duplicate or call that is still under way. */
function isFinal({ status, body }: LiveResponse): boolean {
  return status < 500 && !(status === 409 && body.includes('"idempotency_in_progress"'));
}

/** Whether a payment shows the result of a change. */
function isOver(
  { status, amount_refunding }: { status: string; amount_refunding: number },
  action: LiveAction,
): boolean {
  if (!Object.hasOwn(RESULTS, status) || amount_refunding > 0) return false;
  return !(status === "authorized" && (action.do === "capture" || action.do === "cancel"));
}

/** The payer visits the page of the bank, which can be away. */
async function visit(url: string, is_authenticated: boolean): Promise<void> {
  const page = `${url}?result=${is_authenticated ? "success" : "failure"}`;
  const signal = AbortSignal.timeout(RESPONSE_DEADLINE_MS);
  const response = await fetch(page, { redirect: "manual", signal }).catch(() => null);
  await response?.body?.cancel().catch(() => {});
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
