/**
 * Test keys that the service derives from the text of the caller's key, which the database does not
 * hold, and a random salt. So a stored response contains a reference in place of the new key, and a
 * replay derives the key again. A replay with another secret of the same key derives a different
 * text and gets `idempotency_conflict` (ADR 0015).
 */

import { createHmac } from "node:crypto";
import { generateApiKey, parseApiKey } from "../../core/api_key.ts";
import { ApiError } from "../../core/errors.ts";
import { randomHex, systemRandom } from "../../core/ids.ts";
import type { StoredSecret } from "../../store/api_key_store.ts";
import type { Reply, ServiceRequest } from "../changes/service_request.ts";

/** Length of a salt. A reference holds the salt and the last four characters, as a check. */
const SALT_BYTES = 16;
/**
 * The last member of a response that contains a reference. A prefix other than the caller's
 * follows.
 */
const REFERENCE =
  /,"(secret|test_key)":"key_reference:([0-9a-f]{32}):([0-9A-Za-z]{4})(?::([a-z0-9]+))?"\}$/;

/**
 * Derives a new key. Returns what is stored of it.
 * @param caller the text of the caller's key
 * @param own_prefix the beginning of the new key; by default that of the caller's
 */
export function deriveKey(
  { context }: ServiceRequest,
  caller: string,
  own_prefix?: string,
): StoredSecret {
  // A seed would make the same key again after a reset, and a hash is unique in the whole database.
  const salt = randomHex(SALT_BYTES, context.run_number !== null ? systemRandom : context.random);
  const { hash, prefix, last_four } = parseApiKey(derivedText(caller, salt, own_prefix))!;
  const parts = [
    "key_reference",
    salt,
    last_four,
    ...(own_prefix === undefined ? [] : [own_prefix]),
  ];
  return { hash, prefix, last_four, reference: parts.join(":") };
}

/**
 * Replaces the reference at the end of a response by the text of the key. Throws
 * `idempotency_conflict` if the key was derived from another text than `caller`.
 */
function revealKey(body: string, caller: string): string {
  return body.replace(
    REFERENCE,
    (_, member: string, salt: string, last_four: string, own?: string) => {
      const text = derivedText(caller, salt, own);
      if (text.endsWith(last_four)) return `,"${member}":${JSON.stringify(text)}}`;
      throw new ApiError(
        "idempotency_conflict",
        "The first request used another secret of this key: send the request with that secret",
      );
    },
  );
}

/** Returns the reply with the text of the new key in place of its reference. */
export function withKey(reply: Reply, caller: string): Reply {
  const { response } = reply;
  return { ...reply, response: { ...response, body: revealKey(response.body, caller) } };
}

function derivedText(caller: string, salt: string, own_prefix?: string): string {
  const { mode, prefix } = parseApiKey(caller)!;
  const digest = createHmac("sha256", caller).update(`api_key\n${salt}`).digest();
  return generateApiKey(mode, own_prefix ?? prefix.split("_")[0]!, (bytes) => {
    bytes.set(digest.subarray(0, bytes.length));
    return bytes;
  });
}
