/**
 * Sends one webhook to an address that a customer chose, without reaching our own network.
 *
 * Every send judges the URL again, resolves the name itself, refuses if any answer is not public,
 * connects to one of the checked addresses and to nothing else, and verifies TLS for the name.
 * Redirects are not followed; at most 16 KiB of the answer are read and none are kept. What went
 * wrong before an answer is one outcome without a duration, so that the delivery log maps no ports.
 * Signing, retries and concurrency are the relay's. Source: contract §4, security.md §2, ADR 0007.
 */
import { Buffer } from "node:buffer";
import { checkEndpointUrl, type EndpointUrl, EndpointUrlError } from "../core/endpoint_url.ts";
import { AnswerReader, MalformedAnswerError } from "./http_answer.ts";
import { isPrivateAddress, isPublicAddress } from "../core/public_address.ts";
import { type Resolve, resolveLocalName, resolvePublicName } from "./address_resolver.ts";
import {
  type ConnectTarget,
  openConnection,
  type WebhookConnection,
  type WebhookConnectionPool,
} from "./webhook_connection.ts";

/** Time to resolve, connect and shake hands; time for all of it (contract §4). */
const WEBHOOK_TIMEOUTS = { connect_ms: 5_000, total_ms: 15_000 } as const;

/** Durations are rounded up to this step, so that they tell little about a network. */
const DURATION_STEP_MS = 100;

/** Addresses that are tried, IPv4 first, each for an equal part of the time that is left. */
const ADDRESSES_TRIED_MAX = 4;

/** How long the end of an answer is waited for once its status is known. */
const DRAIN_MS = 1_000;

/** Headers that the sender writes itself. */
const OWN_HEADERS = ["host", "content-length", "connection", "transfer-encoding"];

/** One webhook, ready to go: `body` is sent as these bytes (text as UTF-8). */
export interface WebhookRequest {
  url: string;
  headers: Readonly<Record<string, string>>;
  body: string | Uint8Array;
  timeouts?: { connect_ms: number; total_ms: number };
  /** ALLOW_PRIVATE_WEBHOOKS and not a live key's endpoint: http and private addresses too. */
  allow_private: boolean;
  /** Our own hosts, as in `EndpointUrlRules`. */
  own_hosts?: readonly string[];
  /** Keeps connections for the next send; without one every send opens and closes its own. */
  pool?: WebhookConnectionPool;
  /** In place of DNS. */
  resolve?: Resolve;
  /** Test seam; never set in production. */
  seam?: WebhookSeam;
}

/** Lets a test stand in for the internet on loopback; checks have passed before it is asked. */
interface WebhookSeam {
  /** Turns a checked address and port into those that are really dialled. */
  dial?: (address: string, port: number) => { address: string; port: number };
  /** Certificate authorities in PEM in place of the platform's. */
  ca_certs?: readonly string[];
}

/**
 * What a tenant may learn. `duration_ms` is a multiple of 100, rounded up. It is 0 for
 * `connection_failed`: refused, filtered, blocked, no such name, bad certificate, reset and
 * malformed answer are one and the same record.
 */
export type WebhookResult =
  | { outcome: "response"; status: number; retry_after?: string; duration_ms: number }
  | { outcome: "timeout" | "connection_failed"; duration_ms: number };

const CONNECTION_FAILED = { outcome: "connection_failed", duration_ms: 0 } as const;

/**
 * Makes one attempt. Any status, 3xx too, is a `response`; no complete head in time is a `timeout`.
 * @throws {TypeError} for a header that cannot be sent: a fault of the caller, not of the receiver
 */
export async function sendWebhook(request: WebhookRequest): Promise<WebhookResult> {
  const started = performance.now();
  const { connect_ms, total_ms } = request.timeouts ?? WEBHOOK_TIMEOUTS;
  const until = started + total_ms;
  const endpoint = readUrl(request);
  if (endpoint === null) return CONNECTION_FAILED;
  const message = formatRequest(request, new URL(endpoint.href));
  const connect_until = started + Math.min(connect_ms, total_ms);
  const addresses = await checkedAddresses(endpoint.host, request, connect_until);
  const targets = addresses.map((address) => targetOf(endpoint, address, request));

  const idle = takeIdle(targets, request.pool);
  if (idle !== undefined) {
    const result = await useLink(idle, message, started, until, request.pool);
    // The receiver had closed the idle connection and no byte came back: try a fresh one.
    if (result !== "unused") return result;
  }
  const link = await openAny(targets, connect_until);
  if (link === undefined) return CONNECTION_FAILED;
  const result = await useLink(link, message, started, until, request.pool);
  return result === "unused" ? CONNECTION_FAILED : result;
}

/** A connection and where it leads. */
interface Link {
  target: ConnectTarget;
  connection: WebhookConnection;
}

/** The URL judged anew, or null when it may no longer be called. */
function readUrl(request: WebhookRequest): EndpointUrl | null {
  try {
    return checkEndpointUrl(request.url, {
      allow_private: request.allow_private,
      own_hosts: request.own_hosts ?? [],
    });
  } catch (error) {
    if (error instanceof EndpointUrlError) return null;
    throw error;
  }
}

/** The bytes of the request: one write, so that a small webhook is one packet. */
function formatRequest(request: WebhookRequest, url: URL): Uint8Array {
  const { body } = request;
  const lines = [`POST ${url.pathname}${url.search} HTTP/1.1`, `Host: ${url.host}`];
  for (const [name, value] of Object.entries(request.headers)) {
    const sendable = /^[a-z0-9-]+$/i.test(name) && /^[ -~]*$/.test(value);
    if (!sendable || OWN_HEADERS.includes(name.toLowerCase())) {
      throw new TypeError(`Cannot send the header "${name}": not allowed, or no printable ASCII`);
    }
    lines.push(`${name}: ${value}`);
  }
  lines.push(`Content-Length: ${Buffer.byteLength(body)}`);
  lines.push(`Connection: ${request.pool === undefined ? "close" : "keep-alive"}`);
  const head = lines.join("\r\n") + "\r\n\r\n";
  if (typeof body === "string") return Buffer.from(head + body);
  return Buffer.concat([Buffer.from(head), body]);
}

/** The host's addresses, or none at all when a single one of them may not be called. */
async function checkedAddresses(
  host: string,
  request: WebhookRequest,
  until: number,
): Promise<string[]> {
  const may_call = (address: string) =>
    isPublicAddress(address) || (request.allow_private && isPrivateAddress(address));
  const addresses = may_call(host) ? [host] : await resolveWithin(host, request, until);
  if (!addresses.every(may_call)) return [];
  const ipv4_first = [...new Set(addresses)].sort((a, b) =>
    Number(a.includes(":")) - Number(b.includes(":"))
  );
  return ipv4_first.slice(0, ADDRESSES_TRIED_MAX);
}

/** The resolver's answer; none when it fails or takes too long. */
async function resolveWithin(
  host: string,
  request: WebhookRequest,
  until: number,
): Promise<string[]> {
  const resolve = request.resolve ??
    (request.allow_private ? resolveLocalName : resolvePublicName);
  const give_up = new AbortController();
  const late = Promise.withResolvers<string[]>();
  const timer = setTimeout(() => {
    give_up.abort();
    late.resolve([]);
  }, until - performance.now());
  try {
    return await Promise.race([resolve(host, give_up.signal).catch(() => []), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

function targetOf(endpoint: EndpointUrl, address: string, request: WebhookRequest): ConnectTarget {
  const { dial, ca_certs } = request.seam ?? {};
  return {
    ...(dial?.(address, endpoint.port) ?? { address, port: endpoint.port }),
    host: endpoint.host,
    secure: endpoint.href.startsWith("https:"),
    ...(ca_certs === undefined ? {} : { ca_certs }),
  };
}

function takeIdle(targets: ConnectTarget[], pool?: WebhookConnectionPool): Link | undefined {
  for (const target of targets) {
    const connection = pool?.take(target);
    if (connection !== undefined) return { target, connection };
  }
  return undefined;
}

/** The first target that can be connected to. */
async function openAny(targets: ConnectTarget[], until: number): Promise<Link | undefined> {
  for (const [index, target] of targets.entries()) {
    const share = (until - performance.now()) / (targets.length - index);
    if (share <= 0) return undefined;
    const connection = await openConnection(target, share);
    if (connection !== null) return { target, connection };
  }
  return undefined;
}

/**
 * Sends the request and reads the answer; afterwards the connection is in the pool or closed.
 * @returns `unused` when the receiver closed it before it answered a byte
 */
async function useLink(
  { target, connection }: Link,
  message: Uint8Array,
  started: number,
  until: number,
  pool?: WebhookConnectionPool,
): Promise<WebhookResult | "unused"> {
  const answer = await AnswerReader.open().catch((error) => {
    connection.close();
    throw error;
  });
  let answered_at: number | undefined;
  let late = false;
  let timer = setTimeout(() => {
    late = true;
    connection.close();
  }, until - performance.now());
  try {
    connection.write(message);
    while (!answer.done) {
      const bytes = await connection.read();
      if (bytes === null) break;
      answer.push(bytes);
      if (answer.status === undefined || answered_at !== undefined) continue;
      answered_at = performance.now();
      if (answer.done) break;
      clearTimeout(timer);
      timer = setTimeout(() => connection.close(), Math.min(DRAIN_MS, until - answered_at));
    }
  } catch (error) {
    if (!(error instanceof MalformedAnswerError)) throw error;
    return CONNECTION_FAILED;
  } finally {
    clearTimeout(timer);
    answer.close();
    if (answer.reusable && pool !== undefined) pool.put(target, connection);
    else connection.close();
  }
  if (answer.status !== undefined) {
    const duration_ms = roundUp((answered_at ?? performance.now()) - started);
    const { status, retry_after } = answer;
    return { outcome: "response", status, ...(retry_after && { retry_after }), duration_ms };
  }
  if (late) return { outcome: "timeout", duration_ms: roundUp(until - started) };
  return answer.started ? CONNECTION_FAILED : "unused";
}

/** At least one step: an answer in no time is nothing to learn from. */
function roundUp(duration_ms: number): number {
  // The clock has fractions: 500.0001 ms of a 500 ms limit are 500.
  return Math.max(1, Math.ceil(Math.floor(duration_ms) / DURATION_STEP_MS)) * DURATION_STEP_MS;
}
