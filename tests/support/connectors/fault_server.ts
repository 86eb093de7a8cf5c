/**
 * An HTTP server on loopback that records requests and handles each with one scripted step, also
 * with faults of a transport: a cut connection, an endless body, no response at all.
 */

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A request that the server received. */
export interface Received {
  method: string;
  path: string;
  query: URLSearchParams;
  headers: IncomingMessage["headers"];
  form: URLSearchParams;
}

/** Responds to one request. The last step responds to all requests that follow. */
export type Step = (response: ServerResponse, received: Received) => void;

/** The server. */
export type FaultServer = Awaited<ReturnType<typeof startFaultServer>>;

/** Starts a server on a free port. */
export async function startFaultServer(...steps: Step[]) {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const url = new URL(request.url!, "http://127.0.0.1");
    const { method = "", headers } = request;
    const form = new URLSearchParams(body);
    const got = { method, path: url.pathname, query: url.searchParams, headers, form };
    received.push(got);
    steps[Math.min(received.length, steps.length) - 1]!(response, got);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { base_url: `http://127.0.0.1:${port}`, received, [Symbol.asyncDispose]: close };
}

/** A step that responds with JSON. */
export function json(status: number, body: unknown, headers: Record<string, string> = {}): Step {
  return text(status, JSON.stringify(body), { "content-type": "application/json", ...headers });
}

/** A step that responds with a text. */
export function text(status: number, body: string, headers: Record<string, string> = {}): Step {
  return (response) => void response.writeHead(status, headers).end(body);
}

/** A step that closes the connection, after a part of a response if one is given. */
export function cut(part?: string): Step {
  return (response) => {
    if (part === undefined) return void response.socket!.destroy();
    response.writeHead(200, { "content-length": String(part.length + 100) });
    response.write(part, () => response.socket!.destroy());
  };
}
