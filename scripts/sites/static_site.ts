/**
 * Serves a folder of files from memory, below one path. Browsers ask again at each visit, and an
 * unchanged file gets 304.
 */

import { Hono } from "hono";
import { compress } from "hono/compress";
import { etag, RETAINED_304_HEADERS } from "hono/etag";
import { createHash } from "node:crypto";

/** A file. */
export interface StaticFile {
  /** Its `Content-Type`. */
  type: string;
  body: string | Uint8Array<ArrayBuffer>;
}

/** Files by name, and the headers of every response. */
export interface StaticSite {
  files: ReadonlyMap<string, StaticFile>;
  headers: Readonly<Record<string, string>>;
}

/** Responds to GET and HEAD below its path. Returns null for other requests. */
export type SiteHandler = (request: Request) => Promise<Response> | null;

/** The file that is served at the path of the folder. */
const INDEX = "index.html";

/**
 * Serves a site. The first request builds it; if that fails, the next request builds it again.
 * @param mount path of the folder without a slash at its end, such as `/console`
 */
export function siteHandler(mount: string, build: () => Promise<StaticSite>): SiteHandler {
  let building: Promise<StaticSite> | undefined;
  const app = new Hono();
  app.use(etag({ retainedHeaders: [...RETAINED_304_HEADERS, "x-content-type-options"] }));
  app.use(compress({ encoding: "gzip" }));
  app.get(`${mount}/*`, async ({ req }) => {
    const { files, headers } = await (building ??= build());
    const path = req.path.slice(mount.length + 1);
    const name = path === "" || path.endsWith("/") ? path + INDEX : path;
    // Other hosts, too, serve a page without the end of its address.
    const file = files.get(name) ?? files.get(`${name}.html`);
    if (!file) return renderText(404, `There is no file "${name}"`);
    return new Response(file.body, { headers: { ...headers, ...headersOf(file) } });
  });
  app.onError((error) => {
    building = undefined;
    return renderText(503, error.message);
  });
  return (request) => {
    const { pathname } = new URL(request.url);
    if (request.method !== "GET" && request.method !== "HEAD") return null;
    // The page names its files relative to the folder, so its path must end with a slash.
    if (pathname === mount) return Promise.resolve(redirect(`${mount}/`));
    if (!pathname.startsWith(`${mount}/`)) return null;
    return Promise.resolve(app.fetch(request));
  };
}

/** The tag is weak, because the compressed and the plain file have the same. */
function headersOf({ type, body }: StaticFile): Record<string, string> {
  return {
    "Content-Type": type,
    "Cache-Control": "no-cache",
    "ETag": `W/"${createHash("sha256").update(body).digest("base64url")}"`,
  };
}

function redirect(location: string): Response {
  return new Response(null, { status: 308, headers: { Location: location } });
}

function renderText(status: number, text: string): Response {
  return new Response(`${text}\n`, {
    status,
    headers: {
      "Content-Type": "text/plain; charset=utf-8",
      "Cache-Control": "no-store",
      "X-Content-Type-Options": "nosniff",
    },
  });
}
