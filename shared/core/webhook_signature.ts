/**
 * Signatures of webhook deliveries, and the secrets of endpoints (contract §4).
 *
 * Every delivery has two signatures: `Payment-Signature`, and the headers of Standard Webhooks
 * 1.0.0, so that receivers can use an existing library. The module is synchronous and pure, except
 * for a cache of keys. The caller chooses the secrets that still sign and the time of the attempt.
 * Receivers verify with `packages/client/webhook_signature.ts`.
 */

import { Buffer } from "node:buffer";
import { createHash, createHmac, type Hash } from "node:crypto";
import { RecentMap } from "./recent_map.ts";

/** Minimum length of a master secret: the length of the HMAC's output (RFC 2104 §3). */
export const MASTER_SECRET_MIN_BYTES = 32;

const SECRET_PREFIX = "whsec_";
/** Prefix and canonical base64 of 32 bytes (contract §4). */
const ENDPOINT_SECRET = /^whsec_[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/;
/** Label of this derivation, so that another one from the same master secret gives other bytes. */
const DERIVATION_LABEL = "webhook_endpoint_secret";
/** Secrets in the cache of keys. */
const SIGNERS_MAX = 256;
/** Block length of SHA-256 in bytes, and the pads that HMAC combines with a key (RFC 2104 §2). */
const [BLOCK_BYTES, INNER_PAD, OUTER_PAD] = [64, 0x36, 0x5c];
/** Receivers accept at most 12 digits, so a time in milliseconds is an error. */
const MAX_TIMESTAMP_SECONDS = 999_999_999_999;

interface DeliveryToSign {
  /** `evt_…`. It has no dot, so the signed content of Standard Webhooks is unambiguous. */
  event_id: string;
  /** The stored payload. The dispatcher sends its UTF-8 bytes. */
  body: string;
  /** The endpoint's secrets that still sign, newest first; at least one. */
  secrets: readonly string[];
  /** Time of the attempt, not of the event, in Unix seconds. */
  timestamp_seconds: number;
}

/**
 * Makes the signature headers of one attempt: `Payment-Signature` (hex; key: the bytes of the whole
 * secret text), and `Webhook-Id`, `Webhook-Timestamp`, `Webhook-Signature` (base64; key: the
 * decoded part after `whsec_`). Both have one signature for each secret, in the given order.
 *
 * @throws {RangeError} without a secret, for a secret of another form, or for a timestamp that is
 * not whole seconds; no message contains a secret
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

interface Signer {
  own: HmacKey;
  standard: HmacKey;
}

const signers = new RecentMap<string, Signer>(SIGNERS_MAX);

/** Returns the keys of a secret from the cache, because a busy endpoint signs many deliveries. */
function signerOf(secret: string): Signer {
  let signer = signers.get(secret);
  if (signer === undefined) {
    if (!ENDPOINT_SECRET.test(secret)) {
      throw new RangeError("Signing a delivery: a secret is not whsec_ and base64 of 32 bytes");
    }
    const decoded = Buffer.from(secret.slice(SECRET_PREFIX.length), "base64");
    signer = { own: new HmacKey(Buffer.from(secret)), standard: new HmacKey(decoded) };
    signers.set(secret, signer);
  }
  return signer;
}

/**
 * HMAC-SHA256 with a key of at most 64 bytes. It hashes the key once and not for each message
 * (RFC 2104 §4), which halves the cost of a message of 1 kB.
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

/** The inputs from which an endpoint's secret is derived. */
interface EndpointSecretSource {
  /** From the environment of the functions. The key is its UTF-8 bytes, at least 32. */
  master_secret: string;
  /** `whe_…` */
  endpoint_id: string;
  /** A whole number from 0. Each rotation raises it by one. */
  version: number;
  /** Random text of at least 128 bits. Each version has its own, which the database stores. */
  salt: string;
}

/**
 * Derives the secret of one version of an endpoint: `whsec_` and the base64 of 32 bytes.
 *
 * The bytes are HMAC-SHA256 with the master secret as the key. The message is four netstrings:
 * `webhook_endpoint_secret`, the endpoint id, the version in decimal, and the salt. A netstring is
 * the decimal length in UTF-8 bytes, a colon, the bytes, and a comma. For id `whe_1`, version 2 and
 * salt `abc` the message is `23:webhook_endpoint_secret,5:whe_1,1:2,3:abc,`. Two different sources
 * never have the same message.
 *
 * @throws {RangeError} for a master secret of fewer than 32 bytes or a version that is not a whole
 * number from 0; no message contains a secret
 */
export function deriveEndpointSecret(source: EndpointSecretSource): string {
  const { master_secret, endpoint_id, version, salt } = source;
  if (!Number.isSafeInteger(version) || version < 0) {
    throw new RangeError(
      `Deriving an endpoint's secret of version "${version}": not a whole number from 0`,
    );
  }
  const fields = [DERIVATION_LABEL, endpoint_id, String(version), salt];
  return SECRET_PREFIX + deriveBytes(master_secret, fields).toString("base64");
}

/**
 * Derives 32 bytes from the master secret. The first field is the label of the derivation.
 * @throws {RangeError} for a master secret that is too short
 */
export function deriveBytes(master_secret: string, fields: readonly string[]): Buffer {
  if (Buffer.byteLength(master_secret) < MASTER_SECRET_MIN_BYTES) {
    throw new RangeError(
      `Deriving a secret: the master secret has fewer than ${MASTER_SECRET_MIN_BYTES} bytes`,
    );
  }
  const content = fields.map((field) => `${Buffer.byteLength(field)}:${field},`).join("");
  return createHmac("sha256", master_secret).update(content).digest();
}

function requireTimestamp(timestamp: number): void {
  if (Number.isSafeInteger(timestamp) && timestamp >= 0 && timestamp <= MAX_TIMESTAMP_SECONDS) {
    return;
  }
  throw new RangeError(`Signing a delivery at "${timestamp}": not whole Unix seconds`);
}
