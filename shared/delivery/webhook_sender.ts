/**
 * Sends one webhook to a URL that a customer chose, and never reaches the operator's own network.
 *
 * Each send checks the URL again, resolves its host, refuses if any address is not public, connects
 * only to a checked address, and verifies TLS for the host name. It follows no redirect. It reads
 * at most 16 KiB of the response, and returns its first bytes only if the caller asks for them. All
 * failures before a response are one outcome without a duration, so that a customer cannot scan
 * ports with the delivery log. The dispatcher is responsible for signatures, retries and
 * concurrency.
 * Source: contract §4, security §2, ADR 0016.
 */
import { Buffer } from "node:buffer";
import { checkEndpointUrl, type EndpointUrl, EndpointUrlError } from "../core/endpoint_url.ts";
import { MalformedResponseError, ResponseReader } from "./http_response.ts";
import { isPrivateAddress, isPublicAddress } from "../core/public_address.ts";
import { type Resolve, resolveLocalName, resolvePublicName } from "./address_resolver.ts";
import {
  type ConnectTarget,
  openConnection,
  type WebhookConnection,
  type WebhookConnectionPool,
} from "./webhook_connection.ts";
import { WEBHOOK_TIMEOUTS } from "./webhook_timeouts.ts";

/** Durations are rounded up to this step, so that they reveal little about a network. */
const DURATION_STEP_MS = 100;

/** Most addresses to try, IPv4 first. Each gets an equal share of the remaining time. */
const ADDRESSES_TRIED_MAX = 4;

/** Longest wait for the end of a response after its status. */
const DRAIN_MS = 1_000;

/** Headers that only the sender writes. */
const OWN_HEADERS = ["host", "content-length", "connection", "transfer-encoding"];

export interface WebhookRequest {
  url: string;
  headers: Readonly<Record<string, string>>;
  /** The exact bytes of the body; text is sent as UTF-8. */
  body: string | Uint8Array;
  timeouts?: { connect_ms: number; total_ms: number };
  /** True for endpoints of test keys under ALLOW_PRIVATE_WEBHOOKS: http and private addresses. */
  allow_private: boolean;
  /** How many of the first bytes of the response the result has; none by default. */
  response_bytes?: number;
  /** Hosts of this service, as in `EndpointUrlRules`. */
  own_hosts?: readonly string[];
  /** Keeps connections for the next send. Without a pool every send opens and closes its own. */
  pool?: WebhookConnectionPool;
  /** Replaces the resolver. */
  resolve?: Resolve;
  /** Redirects connections in tests; never set in production. */
  seam?: WebhookSeam;
}

/** Replaces the internet by loopback in a test. The sender applies it after all checks. */
interface WebhookSeam {
  /** Maps a checked address and port to those of the connection. */
  dial?: (address: string, port: number) => { address: string; port: number };
  /** Certificate authorities in PEM that replace those of the platform. */
  ca_certs?: readonly string[];
}

/**
 * The result that a tenant may see. `duration_ms` is a multiple of 100, rounded up. It is 0 for
 * `connection_failed`, which covers refused and filtered connections, forbidden addresses, unknown
 * names, bad certificates, resets and malformed responses.
 */
export type WebhookResult =
  | {
    outcome: "response";
    status: number;
    retry_after?: string;
    duration_ms: number;
    /** The first bytes of the response, if the request wants them. */
    response?: ResponseBeginning;
  }
  | { outcome: "timeout" | "connection_failed"; duration_ms: number };

/** The first bytes of a response as they came, from the status line on. */
interface ResponseBeginning {
  /** Decoded as UTF-8, with U+FFFD for invalid bytes and for U+0000. */
  text: string;
  /** True if the response had more bytes. */
  truncated: boolean;
}

const CONNECTION_FAILED = { outcome: "connection_failed", duration_ms: 0 } as const;

/**
 * Makes one attempt. Any status, also 3xx, is a `response`. If the head of the response does not
 * arrive in time, the outcome is `timeout`.
 * @throws {TypeError} for a header that cannot be sent, which is a fault of the caller
 */
export async function sendWebhook(request: WebhookRequest): Promise<WebhookResult> {
  const started = performance.now();
  const { connect_ms, total_ms } = request.timeouts ?? WEBHOOK_TIMEOUTS;
  const until = started + total_ms;
  const endpoint = readUrl(request);
  if (endpoint === null) return CONNECTION_FAILED;
  const message = formatRequest(request, endpoint.url);
  const connect_until = started + Math.min(connect_ms, total_ms);
  const addresses = await checkedAddresses(endpoint.host, request, connect_until);
  const targets = addresses.map((address) => targetOf(endpoint, address, request));

  const idle = takeIdle(targets, request.pool);
  if (idle !== undefined) {
    const result = await useLink(idle, message, started, until, request);
    // The receiver had closed the idle connection and sent no byte, so a new connection is safe.
    if (result !== "unused") return result;
  }
  const link = await openAny(targets, connect_until);
  if (link === undefined) return CONNECTION_FAILED;
  const result = await useLink(link, message, started, until, request);
  return result === "unused" ? CONNECTION_FAILED : result;
}

interface Link {
  target: ConnectTarget;
  connection: WebhookConnection;
}

/** Checks the URL again. Returns null if it is not allowed any more. */
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

/** Formats the whole request, for a single write: a small webhook is then one packet. */
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

/** Returns the addresses of the host, or an empty list if any of them is not allowed. */
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

/** Resolves the host. Returns an empty list if that fails or takes too long. */
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
    secure: endpoint.url.protocol === "https:",
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

/** Connects to the first target that accepts a connection. */
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
 * Sends the request and reads the response. Afterwards the connection is in the pool or closed.
 * @returns `unused` if the receiver closed the connection before the first byte of a response
 */
async function useLink(
  { target, connection }: Link,
  message: Uint8Array,
  started: number,
  until: number,
  { pool, response_bytes }: WebhookRequest,
): Promise<WebhookResult | "unused"> {
  const response = await ResponseReader.open(response_bytes).catch((error) => {
    connection.close();
    throw error;
  });
  let responded_at: number | undefined;
  let late = false;
  let timer = setTimeout(() => {
    late = true;
    connection.close();
  }, until - performance.now());
  try {
    connection.write(message);
    while (!response.done) {
      const bytes = await connection.read();
      if (bytes === null) break;
      response.push(bytes);
      if (response.status === undefined || responded_at !== undefined) continue;
      responded_at = performance.now();
      if (response.done) break;
      clearTimeout(timer);
      timer = setTimeout(() => connection.close(), Math.min(DRAIN_MS, until - responded_at));
    }
  } catch (error) {
    if (!(error instanceof MalformedResponseError)) throw error;
    return CONNECTION_FAILED;
  } finally {
    clearTimeout(timer);
    response.close();
    if (response.reusable && pool !== undefined) pool.put(target, connection);
    else connection.close();
  }
  if (response.status !== undefined) {
    const duration_ms = roundUp((responded_at ?? performance.now()) - started);
    const { status, retry_after } = response;
    return {
      outcome: "response",
      status,
      ...(retry_after && { retry_after }),
      duration_ms,
      ...(response_bytes !== undefined && { response: beginningOf(response) }),
    };
  }
  if (late) return { outcome: "timeout", duration_ms: roundUp(until - started) };
  return response.started ? CONNECTION_FAILED : "unused";
}

function beginningOf({ beginning, exceeds_beginning }: ResponseReader): ResponseBeginning {
  // "stream" leaves out a character whose last bytes are cut off.
  const text = new TextDecoder().decode(beginning, { stream: exceeds_beginning });
  // PostgreSQL stores no U+0000.
  return { text: text.replaceAll("\0", "\uFFFD"), truncated: exceeds_beginning };
}

/** Rounds up to `DURATION_STEP_MS`, at least one step. */
function roundUp(duration_ms: number): number {
  // The clock has fractions, and 500.0001 ms must count as 500.
  return Math.max(1, Math.ceil(Math.floor(duration_ms) / DURATION_STEP_MS)) * DURATION_STEP_MS;
}
