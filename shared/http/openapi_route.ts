/**
 * The OpenAPI document at `GET /api-v1-payments/v1/openapi.json`: public, for tools and any web page.
 * It is a module of its own, packed because a platform counts what it loads, and loaded by the first
 * request for it, so that no other pays for it.
 */

import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import type { Handler } from "hono";
import { cors } from "hono/cors";
import { etag, RETAINED_304_HEADERS } from "hono/etag";
import type { Dependencies } from "./dependencies.ts";
import type { Env } from "./request_state.ts";

/** The first of the document's `servers`, as it is written; served, it is this service's address. */
export const DOCUMENTED_SERVER = "http://127.0.0.1:54321/functions/v1";

/** How long the document may be used without asking again, in seconds. */
const MAX_AGE_S = 300;

/** Handlers of the route. */
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

/** The text of a document that is gzipped and in base64. */
export function unpackDocument(packed: string): Promise<string> {
  const gzipped = new Blob([Buffer.from(packed, "base64")]).stream();
  return new Response(gzipped.pipeThrough(new DecompressionStream("gzip"))).text();
}

/** The document with this service's address, and what names this version of it. */
async function loadDocument(base_url: string): Promise<{ text: string; tag: string }> {
  const { OPENAPI_GZIP } = await import("./openapi_document.ts");
  const text = (await unpackDocument(OPENAPI_GZIP)).replace(
    JSON.stringify(DOCUMENTED_SERVER),
    () => JSON.stringify(base_url),
  );
  return { text, tag: `"${createHash("sha256").update(text).digest("base64url")}"` };
}
