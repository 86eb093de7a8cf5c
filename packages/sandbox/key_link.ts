/**
 * Links to the console and to the reference that carry a test key: `…/console/#key=sk_test_…`. A
 * browser sends no fragment to a server. Both pages remove the key from the address bar before
 * anything else.
 */

const PREFIX = "#key=";

/**
 * Returns the link that opens the console with a key.
 * @param base_url base URL of the API, whose origin serves the console
 */
export function keyLink(base_url: string, key: string): string {
  return linkWithKey(base_url, "/console/", key);
}

/** Returns the link that opens the reference with a key. */
export function referenceKeyLink(base_url: string, key: string): string {
  return linkWithKey(base_url, "/docs/reference/", key);
}

function linkWithKey(base_url: string, page: string, key: string): string {
  return new URL(`${page}${hashOfKey(key)}`, base_url).href;
}

/** Returns the hash that carries a key. */
export function hashOfKey(key: string): string {
  return PREFIX + encodeURIComponent(key);
}

/** Returns the text of the key in the hash of a URL, or null if the hash has none. */
export function keyOfHash(hash: string): string | null {
  if (!hash.startsWith(PREFIX)) return null;
  const text = hash.slice(PREFIX.length);
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
