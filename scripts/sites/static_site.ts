/**
 * Serves a folder of files from memory, below one path. Browsers ask again at each visit, and an
 * unchanged file is answered 304. Texts are compressed once, at their first visit.
 */

import { createHash } from "node:crypto";

/** A file. */
export interface StaticFile {
  /** Its `Content-Type`. */
  type: string;
  body: string | Uint8Array<ArrayBuffer>;
}

/** Files by name, and the headers of every answer. */
export interface StaticSite {
  files: ReadonlyMap<string, StaticFile>;
  headers: Readonly<Record<string, string>>;
}

/** Answers GET and HEAD below its path. Returns null for other requests. */
export type SiteHandler = (request: Request) => Promise<Response> | null;

/** A file that is ready to be sent. */
interface ReadyFile {
  body: string | Uint8Array<ArrayBuffer>;
  /** The body compressed with gzip; null for a file that is compressed already. */
  gzip: Uint8Array<ArrayBuffer> | null;
  /** Its `ETag`, which is weak because both forms of the body have it. */
  tag: string;
}

/** Types of files that gzip makes smaller. */
const COMPRESSIBLE = /^text\/|^application\/json|^image\/svg/;

/** The file that is served at the path of the folder. */
const INDEX = "index.html";

/**
 * Serves a site. The first request builds it; if that fails, the next request builds it again.
 * @param mount path of the folder without a slash at its end, such as `/console`
 */
export function siteHandler(mount: string, build: () => Promise<StaticSite>): SiteHandler {
  let building: Promise<StaticSite> | undefined;
  const ready = new Map<StaticFile, Promise<ReadyFile>>();
  const answer = async (site: StaticSite, name: string, request: Request) => {
    const file = site.files.get(name);
    if (!file) return renderText(404, `There is no file "${name}"`);
    if (!ready.has(file)) ready.set(file, prepare(file));
    return renderFile(site, file.type, await ready.get(file)!, request.headers);
  };
  return (request) => {
    const { pathname } = new URL(request.url);
    if (request.method !== "GET" && request.method !== "HEAD") return null;
    // The page names its files relative to the folder, so its path must end with a slash.
    if (pathname === mount) return Promise.resolve(redirect(`${mount}/`));
    if (!pathname.startsWith(`${mount}/`)) return null;
    building ??= build();
    return building.then(
      (site) => answer(site, pathname.slice(mount.length + 1) || INDEX, request),
      (error) => {
        building = undefined;
        return renderText(503, error instanceof Error ? error.message : String(error));
      },
    );
  };
}

async function prepare({ type, body }: StaticFile): Promise<ReadyFile> {
  const gzip = COMPRESSIBLE.test(type)
    ? await new Response(new Response(body).body!.pipeThrough(new CompressionStream("gzip")))
      .bytes()
    : null;
  return { body, gzip, tag: `W/"${createHash("sha256").update(body).digest("base64url")}"` };
}

function renderFile(
  site: StaticSite,
  type: string,
  { body, gzip, tag }: ReadyFile,
  asked: Headers,
): Response {
  const headers: Record<string, string> = {
    ...site.headers,
    "Cache-Control": "no-cache",
    "ETag": tag,
    ...(gzip && { "Vary": "Accept-Encoding" }),
  };
  if (isKnown(tag, asked.get("If-None-Match"))) return new Response(null, { status: 304, headers });
  headers["Content-Type"] = type;
  if (gzip === null || !takesGzip(asked.get("Accept-Encoding"))) {
    return new Response(body, { headers });
  }
  return new Response(gzip, { headers: { ...headers, "Content-Encoding": "gzip" } });
}

/** Whether the client has this version of the file: `If-None-Match` (RFC 9110, 13.1.2). */
function isKnown(tag: string, if_none_match: string | null): boolean {
  const tags = if_none_match?.split(",").map((text) => text.trim()) ?? [];
  return tags.some((text) => text === "*" || text === tag || `W/${text}` === tag);
}

/** Whether the client takes gzip: `Accept-Encoding` (RFC 9110, 12.5.3). */
function takesGzip(accept_encoding: string | null): boolean {
  const codings = accept_encoding?.toLowerCase().replaceAll(" ", "").split(",") ?? [];
  return codings.some((coding) => {
    const [name, weight = "1"] = coding.split(";q=");
    return name === "gzip" && Number(weight) > 0;
  });
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
