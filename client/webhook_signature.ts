/**
 * Verifies that a webhook comes from this payments API and is fresh. One file without imports, on
 * Web Crypto alone: copy it into Node 20+, Deno, Bun, a browser or an edge runtime.
 *
 * Guarantees: an event is returned only when the signature over the raw bytes matches under the
 * given secret and the timestamp is fresh; everything else is a `WebhookVerificationError`. Left to
 * the receiver: ignoring an event id seen before (deliveries are at least once). Source:
 * interface §6, contract §4; `client/test_vectors/webhook_signatures.json` pins every rule.
 */

/** The request header that carries the signature; header names are case-insensitive. */
export const WEBHOOK_SIGNATURE_HEADER = "Payment-Signature";

/** A timestamp this far from the receiver's clock, or farther, is refused (interface §6.4). */
export const DEFAULT_TOLERANCE_SECONDS = 300;

/**
 * A canonical count of seconds: no sign, no leading zero, no fraction. Twelve digits reach the year
 * 33658; a count of milliseconds has thirteen and is refused here.
 */
const TIMESTAMP = /^(?:0|[1-9][0-9]{0,11})$/;
/** A signature as it is sent: HMAC-SHA256 in lower-case hex (interface §6.3). */
const SIGNATURE = /^[0-9a-f]{64}$/;
/** What an endpoint secret looks like; used only to word a hint, never to decide. */
const SECRET_SHAPE = /^whsec_[A-Za-z0-9+/]+=*$/;

/**
 * Why a webhook was refused. When several hold, the first of this list is reported, except that
 * `invalid_payload` comes before `no_matching_signature` for a body that is neither text nor bytes.
 */
export type WebhookRefusal =
  | "missing_secret"
  | "missing_header"
  | "malformed_header"
  | "timestamp_outside_tolerance"
  | "no_matching_signature"
  | "invalid_payload";

/** A refused webhook: answer 400 and do nothing else. The message is for the log. */
export class WebhookVerificationError extends Error {
  override readonly name = "WebhookVerificationError";

  /**
   * @param reason for programs
   * @param message for the integrator: the probable mistake; holds no secret and no payload
   */
  constructor(readonly reason: WebhookRefusal, message: string) {
    super(`Webhook refused: ${message}`);
  }
}

/** The payload of a delivery (contract §4). Later versions may add members. */
export interface WebhookEvent {
  /** `evt_…`; the same in every delivery and redelivery of one event. */
  id: string;
  object: "event";
  /** For example `payment.completed`. */
  type: string;
  api_version: string;
  /** RFC 3339 in UTC. */
  created_at: string;
  livemode: boolean;
  /** Rises by one with each event of one resource. */
  sequence: number;
  /** The resource as of the event. */
  data: { object: Record<string, unknown> };
  /** The request that caused the event; members are null when no request did. */
  request: { id: string | null; idempotency_key: string | null };
  /** Present on a delivery that the sandbox was asked for: no payment changed. */
  triggered?: true;
}

/** Options of `verifyWebhook`. */
export interface VerifyWebhookOptions {
  /** Seconds; a difference of this or more is refused, either way. Default 300. */
  tolerance_seconds?: number;
  /** The receiver's time in milliseconds since 1970, for tests. Default: the machine's clock. */
  now_ms?: number;
}

/**
 * Verifies one delivery and returns its event.
 *
 * The header is `t=<unix seconds>,v1=<64 lower-case hex>[,v1=…]`, taken literally: exactly one `t`,
 * and at least one well-formed `v1`. Parts with other names, and `v1` parts of another form
 * (upper case, another length, white space), are ignored. During a rotation of the secret there is
 * one `v1` per live secret and any match suffices.
 *
 * @param rawBody the request body exactly as received, before any JSON parser touched it
 * @param signatureHeader value of the `Payment-Signature` header
 * @param secret the endpoint's secret, whole text, `whsec_…`
 * @typeParam Event what the caller knows of its shape, such as the client's `Event`
 * @returns the payload, parsed; that it is a JSON object is checked, its members are not
 * @throws {WebhookVerificationError} with `reason` for every refusal; nothing else
 * @example
 * ```ts
 * const event = await verifyWebhook(
 *   new Uint8Array(await request.arrayBuffer()),
 *   request.headers.get("Payment-Signature"),
 *   secret,
 * );
 * ```
 */
export async function verifyWebhook<Event extends { id: string; type: string } = WebhookEvent>(
  rawBody: string | Uint8Array,
  signatureHeader: string | null | undefined,
  secret: string,
  options: VerifyWebhookOptions = {},
): Promise<Event> {
  const { tolerance_seconds = DEFAULT_TOLERANCE_SECONDS, now_ms = Date.now() } = options;
  requireSecret(secret);
  const { timestamp, signatures } = parseHeader(signatureHeader);
  requireFresh(Number(timestamp), tolerance_seconds, now_ms);

  const signed = signedContent(timestamp, rawBody);
  const expected = await hmacHex(secret, signed);
  let matched = false;
  // Every candidate is compared to its end: time tells neither which matched nor how far.
  for (const candidate of signatures) matched = equalInConstantTime(candidate, expected) || matched;
  if (!matched) {
    throw new WebhookVerificationError("no_matching_signature", noMatchHint(secret));
  }
  // Parsed from the bytes that were verified, not from the caller's buffer, which may change.
  return parseEvent(signed.subarray(timestamp.length + 1)) as Event;
}

/** What `signWebhook` signs. */
export interface WebhookToSign {
  body: string | Uint8Array;
  /** `whsec_…` */
  secret: string;
  /** Unix seconds, a whole number. */
  timestamp_seconds: number;
}

/**
 * Makes the `Payment-Signature` value of a body, for tests of a receiver.
 *
 * @throws {RangeError} for a timestamp that is not a whole number of seconds of at most 12 digits
 * @throws {WebhookVerificationError} `missing_secret`
 */
export async function signWebhook(webhook: WebhookToSign): Promise<string> {
  const timestamp = String(webhook.timestamp_seconds);
  if (!TIMESTAMP.test(timestamp)) {
    throw new RangeError(`Signing a webhook at "${timestamp}": not whole Unix seconds`);
  }
  requireSecret(webhook.secret);
  const signed = signedContent(timestamp, webhook.body);
  return `t=${timestamp},v1=${await hmacHex(webhook.secret, signed)}`;
}

function requireSecret(secret: unknown): void {
  if (typeof secret === "string" && secret !== "") return;
  throw new WebhookVerificationError(
    "missing_secret",
    "the secret is empty. Is the setting that holds the endpoint's whsec_… secret filled in here?",
  );
}

function parseHeader(header: unknown): { timestamp: string; signatures: string[] } {
  if (header === null || header === undefined || header === "") {
    throw new WebhookVerificationError(
      "missing_header",
      `there is no ${WEBHOOK_SIGNATURE_HEADER} header. Either the request is not from the ` +
        "payments API, or something in front of this code drops or renames headers.",
    );
  }
  if (typeof header !== "string") throw malformed("the value is not text; pass one header's value");
  const timestamps: string[] = [];
  const signatures: string[] = [];
  for (const part of header.split(",")) {
    if (part.startsWith("t=")) timestamps.push(part.slice(2));
    else if (part.startsWith("v1=") && SIGNATURE.test(part.slice(3))) {
      signatures.push(part.slice(3));
    }
  }
  const [timestamp] = timestamps;
  if (timestamp === undefined) throw malformed("no t part");
  if (timestamps.length > 1) throw malformed("more than one t part");
  if (!TIMESTAMP.test(timestamp)) throw malformed("t is not a plain count of Unix seconds");
  if (signatures.length === 0) throw malformed("no v1 part of 64 lower-case hex digits");
  return { timestamp, signatures };
}

function malformed(problem: string): WebhookVerificationError {
  return new WebhookVerificationError(
    "malformed_header",
    `the ${WEBHOOK_SIGNATURE_HEADER} header is malformed: ${problem}. Expected ` +
      "t=<unix seconds>,v1=<64 lower-case hex>; pass the header's value unchanged.",
  );
}

function requireFresh(timestamp: number, tolerance_seconds: number, now_ms: number): void {
  const age_seconds = now_ms / 1000 - timestamp;
  // Asked this way round, a tolerance or clock that is not a number refuses instead of accepting.
  if (Math.abs(age_seconds) < tolerance_seconds) return;
  throw new WebhookVerificationError(
    "timestamp_outside_tolerance",
    `signed at ${timestamp}, ${age_seconds} s before this machine's clock, where less than ` +
      `${tolerance_seconds} s either way is accepted. Is the clock right (NTP), did the request ` +
      "wait in a queue before it was verified, or is this a replay?",
  );
}

/**
 * A fresh copy of `<timestamp>.<body>` as bytes. The type is inferred: Web Crypto's own type for
 * such bytes cannot be written so that TypeScript before and after 5.7 accepts it.
 */
function signedContent(timestamp: string, body: unknown) {
  const head = new TextEncoder().encode(`${timestamp}.`);
  const payload = bodyBytes(body);
  const signed = new Uint8Array(head.length + payload.length);
  signed.set(head);
  signed.set(payload, head.length);
  return signed;
}

function bodyBytes(body: unknown): Uint8Array {
  if (typeof body === "string") return new TextEncoder().encode(body);
  // Not instanceof: test runners and workers have a Uint8Array of their own.
  if (ArrayBuffer.isView(body)) {
    return new Uint8Array(body.buffer, body.byteOffset, body.byteLength);
  }
  throw new WebhookVerificationError(
    "invalid_payload",
    "the body is neither text nor bytes. Was it parsed as JSON before it came here? Pass the raw " +
      "body: new Uint8Array(await request.arrayBuffer()), or req.body behind express.raw().",
  );
}

async function hmacHex(
  secret: string,
  content: ReturnType<typeof signedContent>,
): Promise<string> {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const secret_bytes = new TextEncoder().encode(secret);
  const key = await crypto.subtle.importKey("raw", secret_bytes, algorithm, false, ["sign"]);
  const digest = new Uint8Array(await crypto.subtle.sign("HMAC", key, content));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Compares two texts of the same length (64 here) without an early exit. */
function equalInConstantTime(left: string, right: string): boolean {
  let difference = left.length ^ right.length;
  for (let i = 0; i < right.length; i++) difference |= left.charCodeAt(i) ^ right.charCodeAt(i);
  return difference === 0;
}

function noMatchHint(secret: string): string {
  const shape = SECRET_SHAPE.test(secret)
    ? ""
    : " The secret given does not look like one: whsec_ and base64, nothing before or after.";
  return "no signature matches. Usual causes: the body was parsed and written again instead of " +
    "passed as raw bytes, or the secret is another endpoint's, another mode's or one from before " +
    `a rotation.${shape}`;
}

function parseEvent(payload: Uint8Array): unknown {
  let event: unknown;
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(payload);
    event = JSON.parse(text);
  } catch {
    event = undefined;
  }
  if (typeof event === "object" && event !== null && !Array.isArray(event)) {
    return event;
  }
  throw new WebhookVerificationError(
    "invalid_payload",
    "the signature is genuine, but the body is not a JSON object in UTF-8.",
  );
}
