/**
 * A folder of files that is kept in memory and answered below one path.
 */

/** One file. */
export interface StaticFile {
  /** Its `Content-Type`. */
  type: string;
  body: string | Uint8Array<ArrayBuffer>;
}

/** Files by name, and the headers that each of them is served with. */
export interface StaticSite {
  files: ReadonlyMap<string, StaticFile>;
  headers: Readonly<Record<string, string>>;
}

/** Answers requests below a path, or null where the site has no such file. */
export type SiteHandler = (request: Request) => Promise<Response> | null;

/** The file behind the address of the folder itself. */
const INDEX = "index.html";

/**
 * Serves a site that is built when it is first asked for, and again if that failed.
 * @param mount path of the folder without a slash at its end, as in `/console`
 */
export function siteHandler(mount: string, build: () => Promise<StaticSite>): SiteHandler {
  let building: Promise<StaticSite> | undefined;
  return (request) => {
    const { pathname } = new URL(request.url);
    if (request.method !== "GET" && request.method !== "HEAD") return null;
    // Names in the page are relative to the folder.
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
  if (!file) return renderText(404, `Not here: ${name}`);
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
