/** Compressed bodies: those that are sent often, and every response above 1 kB. */

import { gzipSync } from "node:zlib";

/** Bytes in an `ArrayBuffer`. In Deno 2.1.4 the type `Uint8Array` has no parameter. */
export type Bytes = ReturnType<Uint8Array["slice"]>;

/** Tells whether an `Accept-Encoding` names gzip, and not with the quality 0. */
export function acceptsGzip(accept_encoding = ""): boolean {
  return accept_encoding.split(",").some((part) => {
    const [coding, quality = ""] = part.split(";", 2).map((text) => text.trim().toLowerCase());
    return coding === "gzip" && Number(quality.replace("q=", "") || 1) > 0;
  });
}

/** Longest response in characters that is not compressed: it takes a packet or two anyway. */
const PLAIN_MOST = 1_024;

/**
 * Compresses the body of a response, if it is long enough and its client takes that, and adds the
 * headers. At once, because a stream for each response would take several times as long.
 */
export function compressed(
  body: string,
  headers: Record<string, string>,
  request: Request,
): string | Bytes {
  // A HEAD has the length of the whole body.
  if (body.length <= PLAIN_MOST || request.method === "HEAD") return body;
  headers["Vary"] = "Accept-Encoding";
  if (!acceptsGzip(request.headers.get("Accept-Encoding") ?? "")) return body;
  headers["Content-Encoding"] = "gzip";
  return new Uint8Array(gzipSync(body));
}

export function gzip(bytes: Bytes): Promise<Bytes> {
  return throughStream(bytes, new CompressionStream("gzip"));
}

export function gunzip(bytes: Bytes): Promise<Bytes> {
  return throughStream(bytes, new DecompressionStream("gzip"));
}

async function throughStream(
  bytes: Bytes,
  stream: CompressionStream | DecompressionStream,
): Promise<Bytes> {
  const changed = new Blob([bytes]).stream().pipeThrough(stream);
  return new Uint8Array(await new Response(changed).arrayBuffer());
}
