/**
 * A client of the sandbox run. It repeats each request with its key until it has a final response,
 * as a merchant does, and takes turns with the servers.
 */

import { callApi } from "./api_call.ts";
import type { SandboxKey } from "./sandbox.ts";
import type { ApiServer, Stage } from "./stage.ts";

/** A final response. */
interface FinalResponse {
  status: number;
  // deno-lint-ignore no-explicit-any
  body: any;
  headers: Headers;
}

/** The parts of a request besides its path. */
interface RequestOptions {
  method?: string;
  body?: unknown;
  key?: string;
}

const RESPONSE_DEADLINE_MS = 5_000;
const OPERATION_DEADLINE_MS = 60_000;
const PAUSE_MS = 50;

/** The tools of each part of the sandbox run. */
export interface SandboxPlay {
  stage: Stage;
  client: SandboxClient;
  /** The sandbox of the part. */
  sandbox: SandboxKey;
  /** True after the last kill: a part then ends what it has begun. */
  isOver(): boolean;
}

/** The result of a part: its figures, and its breaches. */
export interface PlayReport {
  says: string;
  breaches: string[];
}

/** Runs clients that repeat a step until it returns false. */
export async function untilDone(
  clients: number,
  step: (client: number, i: number) => Promise<boolean>,
): Promise<void> {
  await Promise.all(Array.from({ length: clients }, async (_, client) => {
    for (let i = 0; await step(client, i); i++);
  }));
}

/** Sends requests to the servers of a run. */
export class SandboxClient {
  /** Requests without a response, with 503, or with the response that the key is under way. */
  broken = 0;
  /** The responses of 500 and 429, by the fault that they name. */
  readonly faults: Record<string, number> = {};
  readonly breaches: string[] = [];
  readonly #urls: readonly string[];
  readonly #http: Deno.HttpClient;
  #sent = 0;

  constructor(servers: readonly ApiServer[], http: Deno.HttpClient) {
    this.#urls = servers.map(({ base_url }) => base_url);
    this.#http = http;
  }

  /**
   * Sends a request: by default a POST if it has a body, otherwise a GET. A response that a
   * declared fault has caused is counted, and the request is sent again.
   * @param is_over ends the repetitions of a read
   */
  async send(
    { text }: Pick<SandboxKey, "text">,
    path: string,
    { is_over, ...options }: RequestOptions & { is_over?: () => boolean } = {},
  ): Promise<FinalResponse | null> {
    const until = performance.now() + OPERATION_DEADLINE_MS;
    while (performance.now() < until && !is_over?.()) {
      const response = await this.#try(text, path, options);
      const fault = response?.headers.get("Sandbox-Fault") ?? null;
      if (response !== null && response.status < 429 && !isUnderWay(response)) return response;
      if (fault === null) this.broken++;
      else this.faults[fault] = (this.faults[fault] ?? 0) + 1;
      if (response?.status === 500 && fault === null) {
        this.breaches.push(`${path}: 500 ${JSON.stringify(response.body)}`);
      }
      if (fault === null) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
    if (!is_over?.()) this.breaches.push(`${path}: no response`);
    return null;
  }

  async #try(text: string, path: string, options: RequestOptions): Promise<FinalResponse | null> {
    const url = this.#urls[this.#sent++ % this.#urls.length]!;
    const call = callApi(url, text, path, { client: this.#http, ...options }).catch(() => null);
    let timer;
    const late = new Promise<null>((resolve) =>
      timer = setTimeout(() => resolve(null), RESPONSE_DEADLINE_MS)
    );
    const response = await Promise.race([call, late]);
    clearTimeout(timer);
    return response;
  }
}

/** A duplicate of the request is under way, so its response is not known yet. */
function isUnderWay({ status, body }: FinalResponse): boolean {
  return status === 409 && body.error?.code === "idempotency_in_progress";
}
