/**
 * Signatures of Stripe's notifications: HMAC-SHA256 of `{t}.{body}`, in hex, one `v1` for each
 * secret that signs. The key is the whole text of the secret. Other schemes, such as `v0`, are
 * ignored. Source: docs.stripe.com/webhooks/signature.
 */

import { Buffer } from "node:buffer";
import { createHmac, timingSafeEqual } from "node:crypto";
import { ApiError } from "../../core/errors.ts";

/** Accepted difference between the signature's time and ours, as in Stripe's own package. */
const SIGNATURE_TOLERANCE_SECONDS = 300;

/**
 * Checks that one of the secrets has signed the bytes of a notification within the tolerance.
 *
 * @param header the value of `Stripe-Signature`
 * @throws {ApiError} `unauthorized`; no message contains a secret or a signature
 */
export function requireSignature(
  raw: Uint8Array,
  header: string | null,
  secrets: readonly string[],
  at_ms: number,
): void {
  const keys = secrets.filter((secret) => secret.trim() !== "");
  if (keys.length === 0) {
    throw refusal("This account has no notification secret: set the variable that it names");
  }
  if (header === null) throw refusal("The header Stripe-Signature is missing");
  const { time, signatures } = readHeader(header);
  if (time === null || signatures.length === 0) {
    throw refusal("The header Stripe-Signature has no time or no signature of scheme v1");
  }
  const signed = keys.some((key) => {
    const expected = createHmac("sha256", key).update(`${time}.`).update(raw).digest();
    return signatures.some((signature) => timingSafeEqual(signature, expected));
  });
  if (!signed) throw refusal("No notification secret of this account has signed this body");
  if (Math.abs(Math.floor(at_ms / 1000) - Number(time)) > SIGNATURE_TOLERANCE_SECONDS) {
    throw refusal(
      `The signature is more than ${SIGNATURE_TOLERANCE_SECONDS} seconds older or newer than the ` +
        "clock of this server",
    );
  }
}

/** Returns the time as its text, because the signature covers the text. */
function readHeader(header: string): { time: string | null; signatures: Uint8Array[] } {
  let time: string | null = null;
  const signatures: Uint8Array[] = [];
  for (const part of header.split(",")) {
    const [name, value = ""] = part.split("=").map((side) => side.trim());
    if (name === "t" && /^\d{1,12}$/.test(value)) time = value;
    if (name === "v1" && /^[0-9a-f]{64}$/i.test(value)) signatures.push(Buffer.from(value, "hex"));
  }
  return { time, signatures };
}

function refusal(message: string): ApiError {
  return new ApiError("unauthorized", message);
}
