/** The header `Idempotency-Key` (contract §5). */

import { containsCardNumber } from "../core/card_number.ts";
import { invalidParameter } from "../core/errors.ts";
import { MAX_IDEMPOTENCY_KEY } from "../schema/limits.ts";

const NAME = "Idempotency-Key";
/** A name of other APIs. To ignore it would make a retry a second payment. */
const OTHER_NAME = "X-Idempotency-Key";
const VISIBLE_ASCII = /^[\x21-\x7e]+$/;

export function isIdempotencyKey(text: string): boolean {
  return text.length <= MAX_IDEMPOTENCY_KEY && VISIBLE_ASCII.test(text);
}

/** Returns the idempotency key of a request, or null. Throws `invalid_parameter` for a bad one. */
export function readIdempotencyKey(headers: Headers): string | null {
  const key = headers.get(NAME);
  if (key === null) {
    if (!headers.has(OTHER_NAME)) return null;
    throw invalidParameter(OTHER_NAME, `"${OTHER_NAME}" is not read: send the header "${NAME}"`);
  }
  const refuse = (words: string) => invalidParameter(NAME, `"${NAME}" ${words}`);
  if (key.length > MAX_IDEMPOTENCY_KEY) {
    throw refuse(
      `has ${key.length} characters, and ${MAX_IDEMPOTENCY_KEY} are the limit: send a UUID`,
    );
  }
  if (!VISIBLE_ASCII.test(key)) {
    throw refuse(
      `must be 1 to ${MAX_IDEMPOTENCY_KEY} plain letters, digits and punctuation marks, without ` +
        "spaces: a UUID is best",
    );
  }
  // The database stores the key, and events send it to the merchant's endpoints.
  if (containsCardNumber(key)) throw refuse("looks like a card number: send a UUID");
  return key;
}
