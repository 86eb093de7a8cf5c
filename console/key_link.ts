/**
 * Links to the console that carry a test key: `…/console/#key=sk_test_…`. A browser sends no
 * fragment to a server. The console removes the key from the address bar before anything else.
 */

const PREFIX = "#key=";

/**
 * Returns the link that opens the console with a key.
 * @param base_url base URL of the API, whose origin serves the console
 */
export function keyLink(base_url: string, key: string): string {
  return new URL(`/console/${PREFIX}${encodeURIComponent(key)}`, base_url).href;
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
