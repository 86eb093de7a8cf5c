/** Reads the body of another server's response: a bounded number of bytes, as JSON. */

import { Buffer } from "node:buffer";

/** Returns the bytes; null: there are more than `bytes_max`. Throws if the connection breaks. */
export async function boundedBytes(
  { body }: Response,
  bytes_max: number,
): Promise<Uint8Array | null> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body ?? []) {
    length += chunk.length;
    // Leaving the loop cancels the stream.
    if (length > bytes_max) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Parses JSON in UTF-8. Returns null for other bytes. */
export function jsonIn(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return null;
  }
}
