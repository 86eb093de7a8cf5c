/**
 * Serves a folder of files from memory, below one path. Browsers ask again at each visit, and an
 * unchanged file gets 304.
 */

import { Hono } from "hono";
import { etag, RETAINED_304_HEADERS } from "hono/etag";
import { createHash } from "node:crypto";
import { escapeHtml } from "./docs_site/html.ts";
import { acceptsGzip, gzip } from "../../shared/http/gzip.ts";

export interface StaticFile {
  /** Its `Content-Type`. */
  type: string;
  body: string | Uint8Array<ArrayBuffer>;
  /** Its own headers beside those of the site, such as the policy of one document. */
  headers?: Readonly<Record<string, string>>;
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
/** The policy of a page at a wrong address. */
const POLICY = "default-src 'none'; style-src 'self'; font-src 'self'; frame-ancestors 'none'";
/** Types of texts. Fonts and pictures are compressed already. */
const COMPRESSIBLE = /^(text\/|application\/(json|javascript)|image\/svg)/;

/**
 * Serves a site. The first request builds it; if that fails, the next request builds it again.
 * @param mount path of the folder without a slash at its end, such as `/console`
 */
export function siteHandler(mount: string, build: () => Promise<StaticSite>): SiteHandler {
  let building: Promise<StaticSite> | undefined;
  const prepared = new WeakMap<StaticFile, PreparedFile>();
  const app = new Hono();
  app.use(etag({ retainedHeaders: [...RETAINED_304_HEADERS, "x-content-type-options"] }));
  app.get(`${mount}/*`, async ({ req }) => {
    const { files, headers } = await (building ??= build());
    const path = req.path.slice(mount.length + 1);
    const name = path === "" || path.endsWith("/") ? path + INDEX : path;
    // Other hosts, too, serve a page without the end of its address.
    const file = files.get(name) ?? files.get(`${name}.html`);
    if (!file) return render(404, "html", missingPage(name, mount));
    const is_gzipped = COMPRESSIBLE.test(file.type) && acceptsGzip(req.header("Accept-Encoding"));
    let ready = prepared.get(file);
    if (!ready) prepared.set(file, ready = prepare(file));
    return new Response(is_gzipped ? await ready.gzipped() : ready.bytes, {
      headers: {
        ...headers,
        ...file.headers,
        ...ready.headers,
        ...(is_gzipped && { "Content-Encoding": "gzip" }),
      },
    });
  });
  app.onError((error) => {
    building = undefined;
    return render(503, "plain", error.message);
  });
  return (request) => {
    const { pathname } = new URL(request.url);
    if (request.method !== "GET" && request.method !== "HEAD") return null;
    // The page names its files relative to the folder, so its path must end with a slash.
    if (pathname === mount) {
      return Promise.resolve(
        new Response(null, { status: 308, headers: { Location: `${mount}/` } }),
      );
    }
    if (!pathname.startsWith(`${mount}/`)) return null;
    return Promise.resolve(app.fetch(request));
  };
}

/** A file with what is computed for it once: a visitor without a key pays for no more. */
interface PreparedFile {
  bytes: Uint8Array<ArrayBuffer>;
  headers: Record<string, string>;
  gzipped(): Promise<Uint8Array<ArrayBuffer>>;
}

function prepare({ type, body }: StaticFile): PreparedFile {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  let gzipped: Promise<Uint8Array<ArrayBuffer>> | undefined;
  return {
    bytes,
    headers: {
      "Content-Type": type,
      "Cache-Control": "no-cache",
      // Weak, because the compressed and the plain file have the same.
      "ETag": `W/"${createHash("sha256").update(bytes).digest("base64url")}"`,
      ...(COMPRESSIBLE.test(type) && { "Vary": "Accept-Encoding" }),
    },
    gzipped: () => gzipped ??= gzip(bytes),
  };
}

/** The page at a wrong address, with the colours and the first page of its site. */
function missingPage(name: string, mount: string): string {
  return `<!DOCTYPE html>
<html lang="en">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <title>Page not found</title>
  <link rel="stylesheet" href="${mount}/theme.css">
  <main class="missing">
    <h1>Page not found</h1>
    <p>There is no file "${escapeHtml(name)}".</p>
    <p><a href="${mount}/">Go to ${mount}</a></p>
  </main>
</html>`;
}

function render(status: number, type: "html" | "plain", text: string): Response {
  return new Response(`${text}\n`, {
    status,
    headers: {
      "Content-Type": `text/${type}; charset=utf-8`,
      "Cache-Control": "no-store",
      "Content-Security-Policy": POLICY,
      "X-Content-Type-Options": "nosniff",
    },
  });
}
