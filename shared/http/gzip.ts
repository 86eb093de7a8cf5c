/** Bodies that are compressed once and sent often. */

/** Bytes in an `ArrayBuffer`. In Deno 2.1.4 the type `Uint8Array` has no parameter. */
export type Bytes = ReturnType<Uint8Array["slice"]>;

/** Tells whether an `Accept-Encoding` names gzip, and not with the quality 0. */
export function acceptsGzip(accept_encoding = ""): boolean {
  return accept_encoding.split(",").some((part) => {
    const [coding, quality = ""] = part.split(";", 2).map((text) => text.trim().toLowerCase());
    return coding === "gzip" && Number(quality.replace("q=", "") || 1) > 0;
  });
}

/** Compresses bytes. */
export function gzip(bytes: Bytes): Promise<Bytes> {
  return throughStream(bytes, new CompressionStream("gzip"));
}

/** Decompresses bytes. */
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
