/**
 * The OpenAPI document at `GET /api-v1-payments/v1/openapi.json`, public for tools and any web
 * page. The document is in a separate, compressed module, because platforms limit the size of a
 * function. The first request for it loads the module, so other requests do not pay for it (ADR
 * 0031).
 */

import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import type { Handler } from "hono";
import { cors } from "hono/cors";
import { etag, RETAINED_304_HEADERS } from "hono/etag";
import type { Dependencies } from "./dependencies.ts";
import type { Env } from "./request_state.ts";

/** The first of `servers` in the stored document. The route replaces it by the base URL. */
export const DOCUMENTED_SERVER = "http://127.0.0.1:54321/functions/v1";

/** Seconds that a client may cache the document. */
const MAX_AGE_S = 300;

/** Returns the handlers of the route. */
export function openapiHandlers({ base_url }: Dependencies): Handler<Env>[] {
  let loading: ReturnType<typeof loadDocument> | undefined;
  return [
    cors({ origin: "*", exposeHeaders: ["ETag", "Request-Id"] }),
    etag({
      retainedHeaders: [
        ...RETAINED_304_HEADERS,
        "access-control-allow-origin",
        "access-control-expose-headers",
      ],
    }),
    async function sendDocument(c) {
      const { text, tag } = await (loading ??= loadDocument(base_url));
      return c.body(text, 200, {
        "Content-Type": "application/json",
        "Cache-Control": `public, max-age=${MAX_AGE_S}`,
        "ETag": tag,
      });
    },
  ];
}

/** Unpacks a document that is compressed with gzip and encoded in base64. */
export function unpackDocument(packed: string): Promise<string> {
  const gzipped = new Blob([Buffer.from(packed, "base64")]).stream();
  return new Response(gzipped.pipeThrough(new DecompressionStream("gzip"))).text();
}

/** Loads the document with the base URL of this service, and its ETag. */
async function loadDocument(base_url: string): Promise<{ text: string; tag: string }> {
  const { OPENAPI_GZIP } = await import("./openapi_document.ts");
  const text = (await unpackDocument(OPENAPI_GZIP)).replace(
    JSON.stringify(DOCUMENTED_SERVER),
    () => JSON.stringify(base_url),
  );
  return { text, tag: `"${createHash("sha256").update(text).digest("base64url")}"` };
}
