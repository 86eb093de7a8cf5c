/**
 * An HTTP server on loopback and a client of it. The server handles each request with one scripted
 * step and records the request. The client records the waits between attempts without waiting.
 */

import { PaymentsClient, type PaymentsClientOptions } from "../../../packages/client/mod.ts";

/** A request that the server received. */
export interface Requested {
  method: string;
  path: string;
  headers: Headers;
  body: string;
}

/** Responds to one request. The last step responds to all requests that follow. */
type Step = (requested: Requested, request: Request) => Response | Promise<Response>;

/** The server and its client. */
interface ScriptedServer {
  client: PaymentsClient;
  base_url: string;
  requested: Requested[];
  /** The waits between attempts that the client requested, in milliseconds. */
  waits: number[];
}

/** The time of the client's clock. */
const NOW = Date.parse("2026-11-20T12:00:00Z");
export const API_KEY = "sk_test_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG";

/** Returns a step that responds with JSON. */
export function json(status: number, body: unknown, headers: HeadersInit = {}): Step {
  return () => Response.json(body, { status, headers });
}

/** Returns a step that responds with an error of the API. */
export function error(status: number, code: string, headers: HeadersInit = {}): Step {
  const body = { error: { type: "api", code, message: `It is ${code}`, request_id: "req_1" } };
  return json(status, body, headers);
}

/** Runs a test with a server and its client. */
export async function withServer(
  steps: readonly Step[],
  run: (server: ScriptedServer) => Promise<void>,
  options: Partial<PaymentsClientOptions> = {},
): Promise<void> {
  const requested: Requested[] = [];
  const waits: number[] = [];
  const abort = new AbortController();
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, signal: abort.signal, onListen: () => {} },
    async (request) => {
      const { pathname, search } = new URL(request.url);
      const seen: Requested = {
        method: request.method,
        path: pathname + search,
        headers: new Headers(request.headers),
        body: await request.text(),
      };
      const step = steps[Math.min(requested.push(seen), steps.length) - 1]!;
      return await step(seen, request);
    },
  );
  const base_url = `http://127.0.0.1:${server.addr.port}/functions/v1`;
  const client = new PaymentsClient({
    apiKey: API_KEY,
    baseUrl: base_url,
    runtime: {
      now: () => NOW,
      random: () => 0.5,
      sleep: (delay_ms) => {
        waits.push(delay_ms);
        return Promise.resolve();
      },
    },
    ...options,
  });
  try {
    await run({ client, base_url, requested, waits });
  } finally {
    abort.abort();
    await server.finished;
  }
}
