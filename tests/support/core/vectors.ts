/** The vectors in tests/vectors, typed. */

import url_vectors from "../../vectors/endpoint_urls.json" with { type: "json" };
import json_vectors from "../../vectors/json.json" with { type: "json" };

/** A body, and the result of reading it. */
interface JsonVector {
  name: string;
  /** The body; `base64` if it is not valid UTF-8. */
  text?: string;
  base64?: string;
  expect: string;
  param?: string;
  literals?: Record<string, string | undefined>;
}

/** A URL of an endpoint, and whether it is allowed. */
export interface UrlVector {
  url: string;
  /** `ok`, or the reason of the refusal. */
  result: string;
  href?: string;
  allow_private?: boolean;
  own_hosts?: string[];
}

export const JSON_VECTORS = json_vectors as unknown as readonly JsonVector[];
export const URL_VECTORS: readonly UrlVector[] = url_vectors.urls;
/** IP addresses, and whether they are public. */
export const ADDRESS_VECTORS = url_vectors.addresses;

/** Returns the bytes of a JSON vector. */
export function bytesOf({ text, base64 }: JsonVector): Uint8Array {
  if (text !== undefined) return new TextEncoder().encode(text);
  return Uint8Array.from(atob(base64!), (character) => character.charCodeAt(0));
}
