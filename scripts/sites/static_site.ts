/**
 * Serves a folder of files from memory, below one path.
 */

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

/** The file that is served at the path of the folder. */
const INDEX = "index.html";

/**
 * Serves a site. The first request builds it; if that fails, the next request builds it again.
 * @param mount path of the folder without a slash at its end, such as `/console`
 */
export function siteHandler(mount: string, build: () => Promise<StaticSite>): SiteHandler {
  let building: Promise<StaticSite> | undefined;
  return (request) => {
    const { pathname } = new URL(request.url);
    if (request.method !== "GET" && request.method !== "HEAD") return null;
    // The page names its files relative to the folder, so its path must end with a slash.
    if (pathname === mount) return Promise.resolve(redirect(`${mount}/`));
    if (!pathname.startsWith(`${mount}/`)) return null;
    building ??= build();
    return building.then(
      (site) => renderFile(site, pathname.slice(mount.length + 1) || INDEX),
      (error) => {
        building = undefined;
        return renderText(503, error instanceof Error ? error.message : String(error));
      },
    );
  };
}

function renderFile(site: StaticSite, name: string): Response {
  const file = site.files.get(name);
  if (!file) return renderText(404, `There is no file "${name}"`);
  const headers = { ...site.headers, "Content-Type": file.type, "Cache-Control": "no-cache" };
  return new Response(file.body, { headers });
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
