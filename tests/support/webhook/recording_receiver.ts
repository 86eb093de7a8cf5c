/**
 * An HTTP server on loopback that receives and records webhooks, and functions that register
 * endpoints and read deliveries. loopback_receiver.ts has receivers that break the rules of HTTP.
 */

import { verifyWebhook } from "../../../packages/client/webhook_signature.ts";
import type { CallOptions, TestService } from "../service/service.ts";

export const ENDPOINTS = "/api-v1-payments/v1/webhook_endpoints";
export const DELIVERIES = "/api-v1-payments/v1/webhook_deliveries";
export const EVENTS = "/api-v1-payments/v1/events";
export const TRIGGER = "/api-v1-sandbox/webhooks/trigger";
export const WAKE = "/api-v1-payments/internal/relay";
export const RETENTION = "/api-v1-payments/internal/retention";

/** One webhook as it arrived. */
export interface Arrival {
  /** Milliseconds of `performance.now()`. */
  at: number;
  /** Milliseconds since 1970. */
  at_ms: number;
  path: string;
  headers: Headers;
  bytes: Uint8Array;
  text: string;
  // deno-lint-ignore no-explicit-any
  event: any;
}

/** Decides the response of a receiver: a status, or a complete response. */
type Judge = (arrival: Arrival) => number | Response | Promise<number | Response>;

/** A running receiver. */
export interface RecordingReceiver extends AsyncDisposable {
  port: number;
  url(path: string): string;
  arrivals: Arrival[];
  /** The webhooks that have arrived at one path. */
  at(path: string): Arrival[];
  judge: Judge;
  close(): Promise<void>;
}

/**
 * Starts a receiver. It returns 200 until a test sets `judge`. With a certificate it uses TLS.
 */
export function openRecorder(
  judge: Judge = () => 200,
  certificate?: Deno.TlsCertifiedKeyPem,
): RecordingReceiver {
  const arrivals: Arrival[] = [];
  const abort = new AbortController();
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, signal: abort.signal, onListen: () => {}, ...certificate },
    async (request) => {
      const bytes = new Uint8Array(await request.arrayBuffer());
      const text = new TextDecoder().decode(bytes);
      const arrival: Arrival = {
        at: performance.now(),
        at_ms: Date.now(),
        path: new URL(request.url).pathname,
        headers: new Headers(request.headers),
        bytes,
        text,
        event: JSON.parse(text),
      };
      arrivals.push(arrival);
      const response = await receiver.judge(arrival);
      return typeof response === "number" ? new Response(null, { status: response }) : response;
    },
  );
  // Aborts the responses that a failed test still holds back.
  const close = () => {
    abort.abort();
    return server.finished;
  };
  const receiver: RecordingReceiver = {
    port: server.addr.port,
    url: (path) => `http://127.0.0.1:${server.addr.port}${path}`,
    arrivals,
    at: (path) => arrivals.filter((arrival) => arrival.path === path),
    judge,
    close,
    [Symbol.asyncDispose]: close,
  };
  return receiver;
}

/** Holds the responses of a receiver back. `release` sends those to the oldest requests. */
export function holdResponses(receiver: RecordingReceiver) {
  const held: ((status: number) => void)[] = [];
  receiver.judge = () => new Promise((resolve) => held.push(resolve));
  return {
    held,
    release(count = held.length, status = 200) {
      for (const respond of held.splice(0, count)) respond(status);
    },
  };
}

/** The members of a new endpoint that tests use. */
export interface AddedEndpoint {
  id: string;
  secret: string;
}

/** Registers an endpoint, which gets every event unless `body` has `events`. */
export async function addEndpoint(
  service: TestService,
  url: string,
  body: Record<string, unknown> = {},
  options: CallOptions = {},
): Promise<AddedEndpoint> {
  return await service.post(ENDPOINTS, { url, ...body }, options);
}

/** Runs the dispatcher until no delivery is due or in flight. */
export async function settle({ deps }: TestService): Promise<void> {
  await deps.webhooks!.dispatcher.notify();
}

/** Formats each arrival as `type attempt`, in the order of arrival. */
export function shown(arrivals: readonly Arrival[]): string[] {
  return arrivals.map(({ event, headers }) => `${event.type} ${headers.get("Webhook-Attempt")}`);
}

/** Returns for each secret whether it verifies the webhook at the time of its timestamp. */
export function verifiedBy(arrival: Arrival, secrets: readonly string[]): Promise<boolean[]> {
  const header = arrival.headers.get("Payment-Signature");
  const now_ms = Number(arrival.headers.get("Webhook-Timestamp")) * 1000;
  return Promise.all(
    secrets.map((secret) =>
      verifyWebhook(arrival.bytes, header, secret, { now_ms }).then(() => true, () => false)
    ),
  );
}

/** Lists deliveries and returns them in the order of their events. */
export async function deliveriesOf(
  service: TestService,
  query = "",
  options: CallOptions = {},
  // deno-lint-ignore no-explicit-any
): Promise<any[]> {
  const page = await service.get(`${DELIVERIES}?limit=100${query}`, options);
  const order = (a: Record<string, string>, b: Record<string, string>) =>
    a.event_id! + a.endpoint_id! < b.event_id! + b.endpoint_id! ? -1 : 1;
  return page.data.sort(order);
}
