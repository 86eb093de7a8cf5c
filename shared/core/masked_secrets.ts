/**
 * The secrets that a text can contain: card numbers, IBANs, API keys and secrets of webhook
 * endpoints. One place decides which texts are refused or masked (security §2, leaks through logs).
 */

import { containsCardNumber, mayHoldNumber, withoutIds } from "./card_number.ts";
import { containsIban, IBAN_LENGTH_MIN } from "./iban.ts";

/** Stands for what is left out of a log, a transcript or an error. */
export const LEFT_OUT = "…";
/** Replaces a secret in a stored response. */
const MASK = "***";
/**
 * The references that stored responses have in place of secrets, and the secrets themselves: API
 * keys and secrets of webhook endpoints. Each is a whole JSON string.
 */
const STORED =
  /"(?:[a-z_]{1,40}_reference:[^"\\]*|[a-z][a-z0-9]{0,15}_(?:test|live)_[0-9A-Za-z]{49}|whsec_[^"\\]*)"/g;
/** API keys, secrets of endpoints and tokens of checkouts, anywhere in a text, also in a word. */
const KEYS =
  /[a-z][a-z0-9]{0,15}_(?:test|live)_[0-9A-Za-z]{49}|whsec_[0-9A-Za-z+/=_-]+|cht_[0-9a-f]{48}/g;

/** Returns JSON text with `***` in place of each string that is a secret or refers to one. */
export function maskSecrets(json: string): string {
  return json.replace(STORED, `"${MASK}"`);
}

/** Leaves out the API keys, the secrets of endpoints and the tokens of checkouts in a text. */
export function withoutKeys(text: string): string {
  return text.replace(KEYS, LEFT_OUT);
}

/** Reports whether a text contains a card number, an IBAN, an API key or an endpoint's secret. */
export function containsSecret(text: string): boolean {
  return containsCardNumber(text) || containsBankAccount(text) || text.search(KEYS) >= 0;
}

/**
 * Reports whether letters cut a card number in a text: `4242a4242b4242c4242`. Such a text is left
 * out of a log, but it is not refused, because texts with numbers would be too often.
 */
export function containsCutNumber(text: string): boolean {
  return mayHoldNumber(text) && containsCardNumber(withoutIds(text).replace(/\p{L}+/gu, "|"));
}

/** Reports whether a text contains an IBAN, also with percent-encoded characters. */
export function containsBankAccount(text: string): boolean {
  if (text.length < IBAN_LENGTH_MIN) return false;
  const rest = withoutIds(text);
  if (containsIban(rest)) return true;
  if (!rest.includes("%")) return false;
  try {
    return containsIban(decodeURIComponent(rest));
  } catch {
    return false;
  }
}
