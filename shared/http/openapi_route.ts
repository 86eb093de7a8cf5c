/**
 * The OpenAPI document at `GET /api-v1-payments/v1/openapi.json`, public for tools and any web
 * page. The document is in a separate, compressed module, because platforms limit the size of a
 * function. The first request for it loads the module, so other requests do not pay for it (ADR
 * 0012). Clients that accept gzip get the compressed document, which is a tenth of it.
 */

import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import type { Handler } from "hono";
import { cors } from "hono/cors";
import { etag, RETAINED_304_HEADERS } from "hono/etag";
import { once } from "../core/once.ts";
import type { Dependencies } from "./dependencies.ts";
import { acceptsGzip, type Bytes, gunzip, gzip } from "./gzip.ts";
import { keylessLimit } from "./keyless_limit.ts";
import type { Env } from "./request_state.ts";

/** The first of `servers` in the stored document. The route replaces it by the base URL. */
export const DOCUMENTED_SERVER = "http://127.0.0.1:54321/functions/v1";

/** Seconds that a client may cache the document. */
const MAX_AGE_S = 300;

interface EncodedDocument {
  bytes: Bytes;
  /** It differs between the encodings, as their bytes do. */
  etag: string;
}

export function openapiHandlers(deps: Dependencies): Handler<Env>[] {
  const document = once(() => loadDocument(deps.base_url));
  const limited = keylessLimit(deps, { counts_responses: true });
  return [
    cors({ origin: "*", exposeHeaders: ["ETag", "Request-Id"] }),
    function limitByNetwork(c, next) {
      return limited(c, async () => {
        await next();
        return c.res;
      });
    },
    etag({
      retainedHeaders: [
        ...RETAINED_304_HEADERS,
        "access-control-allow-origin",
        "access-control-expose-headers",
      ],
    }),
    async function sendDocument(c) {
      const { plain, gzipped } = await document();
      const is_gzipped = acceptsGzip(c.req.header("Accept-Encoding"));
      const { bytes, etag } = is_gzipped ? gzipped : plain;
      return c.body(bytes, 200, {
        "Content-Type": "application/json",
        ...(is_gzipped && { "Content-Encoding": "gzip" }),
        "Cache-Control": `public, max-age=${MAX_AGE_S}`,
        "ETag": etag,
        "Vary": "Accept-Encoding",
      });
    },
  ];
}

/** Unpacks a document that is compressed with gzip and encoded in base64. */
export async function unpackDocument(packed: string): Promise<string> {
  const bytes = await gunzip(Buffer.from(packed, "base64"));
  return new TextDecoder().decode(bytes);
}

async function loadDocument(base_url: string) {
  const { OPENAPI_GZIP } = await import("./openapi_document.ts");
  const text = (await unpackDocument(OPENAPI_GZIP)).replace(
    JSON.stringify(DOCUMENTED_SERVER),
    () => JSON.stringify(base_url),
  );
  const bytes = new TextEncoder().encode(text);
  return {
    plain: tagged(bytes),
    gzipped: tagged(await gzip(bytes)),
  };
}

function tagged(bytes: Bytes): EncodedDocument {
  return { bytes, etag: `"${createHash("sha256").update(bytes).digest("base64url")}"` };
}
