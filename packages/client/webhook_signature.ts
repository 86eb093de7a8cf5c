/**
 * Verifies that a webhook is from this payments API and is recent. The file has no imports and uses
 * only Web Crypto: you can copy it to Node 20+, Deno, Bun, a browser or an edge runtime.
 *
 * `verifyWebhook` returns an event only if the signature of the raw bytes matches the secret and
 * the timestamp is recent. Otherwise it throws a `WebhookVerificationError`. The receiver must
 * ignore event ids that it has seen before, because a delivery can arrive more than once. Source:
 * contract §4. `packages/client/test_vectors/webhook_signatures.json` tests every rule.
 */

/** The request header with the signature. Header names are case-insensitive. */
export const WEBHOOK_SIGNATURE_HEADER = "Payment-Signature";

/** A timestamp that is off the clock by this many seconds or more is refused (contract §4). */
export const DEFAULT_TOLERANCE_SECONDS = 300;

/**
 * Unix seconds without sign, leading zero or fraction. Twelve digits last until the year 33658.
 * Milliseconds have thirteen digits, so they are refused.
 */
const TIMESTAMP = /^(?:0|[1-9][0-9]{0,11})$/;
/** HMAC-SHA256 in lower-case hex (contract §4). */
const SIGNATURE = /^[0-9a-f]{64}$/;
/** The form of an endpoint's secret. It only selects a hint in a message, and decides nothing. */
const SECRET_SHAPE = /^whsec_[A-Za-z0-9+/]+=*$/;

/**
 * The reason why a webhook is refused. If there are several, the first one of this list is given.
 * One exception: if the body is neither text nor bytes, `invalid_payload` comes before
 * `no_matching_signature`.
 */
export type WebhookRefusal =
  | "missing_secret"
  | "missing_header"
  | "malformed_header"
  | "timestamp_outside_tolerance"
  | "no_matching_signature"
  | "invalid_payload";

/** A webhook is refused. Respond with 400 and do nothing else. The message is for your log. */
export class WebhookVerificationError extends Error {
  override readonly name = "WebhookVerificationError";

  /**
   * @param reason the reason, for programs
   * @param message the probable mistake, for people. It contains no secret and no payload
   */
  constructor(readonly reason: WebhookRefusal, message: string) {
    super(`Webhook refused: ${message}`);
  }
}

/** The payload of a delivery (contract §4). Later versions can add members. */
export interface WebhookEvent {
  /** `evt_…`. The same in every delivery of the event. */
  id: string;
  object: "event";
  /** The event type, such as `payment.completed`. */
  type: string;
  api_version: string;
  /** RFC 3339 in UTC. */
  created_at: string;
  livemode: boolean;
  /** Number of the event among those of its resource, from 1. */
  sequence: number;
  /** The resource at the time of the event. */
  data: { object: Record<string, unknown> };
  /** The request that caused the event. Its members are null if no request did. */
  request: { id: string | null; idempotency_key: string | null };
  /** True if `sandbox.trigger` sent the event. No payment has changed then. */
  triggered?: true;
}

/** Options of `verifyWebhook`. */
export interface VerifyWebhookOptions {
  /** A timestamp that is off by this many seconds or more, either way, is refused. Default 300. */
  tolerance_seconds?: number;
  /** The present time in milliseconds since 1970, for tests. Default: the machine's clock. */
  now_ms?: number;
}

/**
 * Verifies one delivery and returns its event.
 *
 * The header is `t=<unix seconds>,v1=<64 lower-case hex>[,v1=…]`, with exactly one `t` and at least
 * one valid `v1`. Parts with other names, and `v1` parts of another form (upper case, another
 * length, white space), are ignored. During a rotation of the secret the header has a `v1` for each
 * valid secret, and one match is sufficient.
 *
 * @param rawBody the request body exactly as received, not parsed JSON
 * @param signatureHeader value of the `Payment-Signature` header
 * @param secret the whole text of the endpoint's secret, `whsec_…`
 * @typeParam Event the type of the payload, such as `Event` of the client
 * @returns the parsed payload. It is a JSON object; its members are not checked
 * @throws {WebhookVerificationError} if the webhook is refused; `reason` names the reason
 * @throws {TypeError} if an option does not exist
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
  if (typeof options !== "object") throw new TypeError("options must be an object");
  const { tolerance_seconds = DEFAULT_TOLERANCE_SECONDS, now_ms = Date.now(), ...rest } = options;
  const unknown = Object.entries(rest).find(([, value]) => value !== undefined)?.[0];
  if (unknown !== undefined) {
    throw new TypeError(`"${unknown}" is not an option: there are tolerance_seconds, now_ms`);
  }
  requireSecret(secret);
  const { timestamp, signatures } = parseHeader(signatureHeader);
  requireFresh(Number(timestamp), tolerance_seconds, now_ms);

  const signed = signedContent(timestamp, rawBody);
  const expected = await hmacHex(secret, signed);
  let matched = false;
  // Every candidate is compared to its end, so that the time shows neither which one matches nor
  // how many characters do.
  for (const candidate of signatures) matched = equalInConstantTime(candidate, expected) || matched;
  if (!matched) {
    throw new WebhookVerificationError("no_matching_signature", noMatchHint(secret));
  }
  // The event is parsed from the verified copy, because the caller's buffer can change meanwhile.
  return parseEvent(signed.subarray(timestamp.length + 1)) as Event;
}

/** The arguments of `signWebhook`. */
export interface WebhookToSign {
  body: string | Uint8Array;
  /** `whsec_…` */
  secret: string;
  /** Unix seconds, a whole number. */
  timestamp_seconds: number;
}

/**
 * Returns the value of `Payment-Signature` for a body, for tests of a receiver.
 *
 * @throws {RangeError} if the timestamp is not a whole number of seconds of at most 12 digits
 * @throws {WebhookVerificationError} with reason `missing_secret` if the secret is empty, or
 * `invalid_payload` if the body is neither text nor bytes
 */
export async function signWebhook(webhook: WebhookToSign): Promise<string> {
  const timestamp = String(webhook.timestamp_seconds);
  if (!TIMESTAMP.test(timestamp)) {
    throw new RangeError(`timestamp_seconds is ${timestamp}, but must be whole Unix seconds`);
  }
  requireSecret(webhook.secret);
  const signed = signedContent(timestamp, webhook.body);
  return `t=${timestamp},v1=${await hmacHex(webhook.secret, signed)}`;
}

function requireSecret(secret: unknown): void {
  if (typeof secret === "string" && secret !== "") return;
  throw new WebhookVerificationError(
    "missing_secret",
    "the secret is empty. Does this environment have the setting with the endpoint's secret " +
      "(whsec_…)?",
  );
}

function parseHeader(header: unknown): { timestamp: string; signatures: string[] } {
  if (header === null || header === undefined || header === "") {
    throw new WebhookVerificationError(
      "missing_header",
      `there is no ${WEBHOOK_SIGNATURE_HEADER} header. Either the request is not from the ` +
        "payments API, or a proxy or framework before this code drops or renames headers.",
    );
  }
  if (typeof header !== "string") throw malformed("the value is not a string; pass one value");
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
  if (!TIMESTAMP.test(timestamp)) throw malformed("t is not a whole number of Unix seconds");
  if (signatures.length === 0) throw malformed("no v1 part of 64 lower-case hex digits");
  return { timestamp, signatures };
}

function malformed(problem: string): WebhookVerificationError {
  return new WebhookVerificationError(
    "malformed_header",
    `the ${WEBHOOK_SIGNATURE_HEADER} header is malformed: ${problem}. Expected ` +
      "t=<unix seconds>,v1=<64 lower-case hex>: pass the value of the header unchanged.",
  );
}

function requireFresh(timestamp: number, tolerance_seconds: number, now_ms: number): void {
  const age_seconds = now_ms / 1000 - timestamp;
  // In this form NaN as tolerance or clock makes the check refuse, not accept.
  if (Math.abs(age_seconds) < tolerance_seconds) return;
  throw new WebhookVerificationError(
    "timestamp_outside_tolerance",
    `the timestamp ${timestamp} is ${Math.abs(age_seconds)} s ` +
      `${age_seconds < 0 ? "after" : "before"} this machine's clock, but the difference must be ` +
      `less than ${tolerance_seconds} s. Is the clock correct (NTP), did the request wait in a ` +
      "queue before its verification, or is this a replay?",
  );
}

/**
 * Returns `<timestamp>.<body>` as new bytes. The return type is inferred, because no written type
 * suits Web Crypto in TypeScript both before and since 5.7.
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
  // instanceof would fail for bytes of test runners and workers with a Uint8Array of their own.
  if (ArrayBuffer.isView(body)) {
    return new Uint8Array(body.buffer, body.byteOffset, body.byteLength);
  }
  throw new WebhookVerificationError(
    "invalid_payload",
    "the body is neither text nor bytes. Was it parsed as JSON before? Pass the raw body: " +
      "new Uint8Array(await request.arrayBuffer()), or req.body after express.raw().",
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
    : " The secret does not look like one: it must be whsec_ and base64, nothing before or after.";
  return "no signature matches. Usual causes: the body was parsed and serialized again, so its " +
    "bytes differ, or the secret is that of another endpoint, of the other mode (test or live), " +
    `or from before a rotation.${shape}`;
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
    "the signature matches, but the body is not a JSON object in UTF-8.",
  );
}
