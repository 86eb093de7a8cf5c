/**
 * Signing of webhook deliveries and the secrets it is done with (interface §6, contract §4).
 *
 * Every delivery is signed in two forms: `Payment-Signature`, and the headers of Standard Webhooks
 * 1.0.0, so that receivers may use a library they already have. Synchronous, and pure but for the
 * keys of secrets that are kept at hand. Left to the caller: which secrets are live, and the time of
 * the attempt. The receiver's side is `client/webhook_signature.ts`.
 */

import { Buffer } from "node:buffer";
import { createHash, createHmac, type Hash } from "node:crypto";

/** Fewest bytes of a master secret: as many as the HMAC puts out (RFC 2104 §3). */
export const MASTER_SECRET_MIN_BYTES = 32;

const SECRET_PREFIX = "whsec_";
/** Prefix and canonical base64 of 32 bytes (contract §4). */
const ENDPOINT_SECRET = /^whsec_[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/;
/** Separates these secrets from whatever else may be derived from the same master secret. */
const DERIVATION_LABEL = "webhook_endpoint_secret";
/** Secrets whose keys are kept at hand. */
const SIGNERS_MAX = 256;
/** Bytes that SHA-256 takes at a time, and what an HMAC's key is combined with (RFC 2104 §2). */
const [BLOCK_BYTES, INNER_PAD, OUTER_PAD] = [64, 0x36, 0x5c];
/** What receivers accept: at most 12 digits, so that milliseconds are noticed. */
const MAX_TIMESTAMP_SECONDS = 999_999_999_999;

/** One attempt at a delivery. */
interface DeliveryToSign {
  /** `evt_…`; contains no dot, so the signed content of Standard Webhooks reads one way only. */
  event_id: string;
  /** The stored payload, sent as its UTF-8 bytes. */
  body: string;
  /** The endpoint's live secrets, newest first; at least one. */
  secrets: readonly string[];
  /** Unix seconds of the attempt, never of the event. */
  timestamp_seconds: number;
}

/**
 * The signature headers of one attempt: `Payment-Signature` (hex; key: the bytes of the whole
 * secret text), and `Webhook-Id`, `Webhook-Timestamp`, `Webhook-Signature` (base64; key: the
 * decoded part after `whsec_`). Both carry one signature per secret, in the order given.
 *
 * @throws {RangeError} for no secret, a secret of another form, or a timestamp that is not whole
 * seconds; no message contains a secret
 */
export function signDelivery(delivery: DeliveryToSign): Record<string, string> {
  const { event_id, body, secrets, timestamp_seconds: timestamp } = delivery;
  requireTimestamp(timestamp);
  if (secrets.length === 0) throw new RangeError("Signing a delivery: no secret is given");
  const own_content = `${timestamp}.${body}`;
  const standard_content = `${event_id}.${timestamp}.${body}`;
  const signers = secrets.map(signerOf);
  const own = signers.map((signer) => `v1=${signer.own.sign(own_content, "hex")}`);
  const standard = signers.map((signer) =>
    `v1,${signer.standard.sign(standard_content, "base64")}`
  );
  return {
    "Payment-Signature": [`t=${timestamp}`, ...own].join(","),
    "Webhook-Id": event_id,
    "Webhook-Timestamp": String(timestamp),
    "Webhook-Signature": standard.join(" "),
  };
}

/** The keys of one secret, one for each form of signature. */
interface Signer {
  own: HmacKey;
  standard: HmacKey;
}

const signers = new Map<string, Signer>();

/** Made once for each secret: a busy endpoint's signs thousands of deliveries. */
function signerOf(secret: string): Signer {
  let signer = signers.get(secret);
  if (signer === undefined) {
    if (!ENDPOINT_SECRET.test(secret)) {
      throw new RangeError("Signing a delivery: a secret is not whsec_ and base64 of 32 bytes");
    }
    const decoded = Buffer.from(secret.slice(SECRET_PREFIX.length), "base64");
    signer = { own: new HmacKey(Buffer.from(secret)), standard: new HmacKey(decoded) };
    if (signers.size >= SIGNERS_MAX) signers.clear();
    signers.set(secret, signer);
  }
  return signer;
}

/**
 * HMAC-SHA256 under a key of at most 64 bytes that is hashed once, not with each message, as RFC 2104
 * §4 has it: half of the price of a message of 1 kB.
 */
class HmacKey {
  readonly #inner: Hash;
  readonly #outer: Hash;

  constructor(key: Uint8Array) {
    const padded = (pad: number) =>
      createHash("sha256").update(
        Uint8Array.from({ length: BLOCK_BYTES }, (_, i) => (key[i] ?? 0) ^ pad),
      );
    this.#inner = padded(INNER_PAD);
    this.#outer = padded(OUTER_PAD);
  }

  sign(text: string, encoding: "hex" | "base64"): string {
    const inner = this.#inner.copy().update(text).digest();
    return this.#outer.copy().update(inner).digest(encoding);
  }
}

/** What an endpoint's secret is derived from. */
interface EndpointSecretSource {
  /** From the functions' environment; its UTF-8 bytes are the key, at least 32 of them. */
  master_secret: string;
  /** `whe_…` */
  endpoint_id: string;
  /** A whole number from 0; rises by one with each rotation. */
  version: number;
  /** Random text of at least 128 bits, drawn for each version and stored beside it. */
  salt: string;
}

/**
 * The secret of one version of an endpoint: `whsec_` and the base64 of 32 bytes.
 *
 * The bytes are HMAC-SHA256 under the master secret of four netstrings in a row, each the decimal
 * length in UTF-8 bytes, a colon, the bytes, a comma: `webhook_endpoint_secret`, the endpoint id,
 * the version in decimal, the salt. So no two sources share an encoding: for id `whe_1`, version 2
 * and salt `abc` it is `23:webhook_endpoint_secret,5:whe_1,1:2,3:abc,`.
 *
 * @throws {RangeError} for a master secret of fewer than 32 bytes or a version that is not a whole
 * number from 0; no message contains a secret
 */
export function deriveEndpointSecret(source: EndpointSecretSource): string {
  const { master_secret, endpoint_id, version, salt } = source;
  if (Buffer.byteLength(master_secret) < MASTER_SECRET_MIN_BYTES) {
    throw new RangeError(
      `Deriving an endpoint's secret: the master secret has fewer than ${MASTER_SECRET_MIN_BYTES}` +
        " bytes",
    );
  }
  if (!Number.isSafeInteger(version) || version < 0) {
    throw new RangeError(
      `Deriving an endpoint's secret of version "${version}": not a whole number from 0`,
    );
  }
  const fields = [DERIVATION_LABEL, endpoint_id, String(version), salt];
  const content = fields.map((field) => `${Buffer.byteLength(field)}:${field},`).join("");
  return SECRET_PREFIX + createHmac("sha256", master_secret).update(content).digest("base64");
}

function requireTimestamp(timestamp: number): void {
  if (Number.isSafeInteger(timestamp) && timestamp >= 0 && timestamp <= MAX_TIMESTAMP_SECONDS) {
    return;
  }
  throw new RangeError(`Signing a delivery at "${timestamp}": not whole Unix seconds`);
}
