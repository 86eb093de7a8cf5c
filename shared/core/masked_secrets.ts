/** Masks the secrets in a stored response (security §2, leaks through logs). */

/** Replaces a secret. */
const MASK = "***";
/**
 * The references that stored responses have in place of secrets, and the secrets themselves: API
 * keys and secrets of webhook endpoints. Each is a whole JSON string.
 */
const SECRET =
  /"(?:[a-z_]{1,40}_reference:[^"\\]*|[a-z][a-z0-9]{0,15}_(?:test|live)_[0-9A-Za-z]{49}|whsec_[^"\\]*)"/g;

/** Returns JSON text with `***` in place of each string that is a secret or refers to one. */
export function maskSecrets(json: string): string {
  return json.replace(SECRET, `"${MASK}"`);
}
