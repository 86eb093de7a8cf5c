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
 * Compresses a response, if it is long enough and its client takes that. At once, because a stream
 * for each response would take several times as long.
 * @param body the body of the response
 * @param request the headers of the request
 */
export function compressResponse(response: Response, body: string, request: Headers): Response {
  if (body.length <= PLAIN_MOST) return response;
  response.headers.append("Vary", "Accept-Encoding");
  if (!acceptsGzip(request.get("Accept-Encoding") ?? "")) return response;
  response.headers.set("Content-Encoding", "gzip");
  return new Response(new Uint8Array(gzipSync(body)), response);
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
