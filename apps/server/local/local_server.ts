/**
 * The HTTP server of the local start and of `deno task serve`. One port serves both functions under
 * `/functions/v1`, as Supabase does, and sites beside them, such as the console. The server opens
 * the port before the database starts, so a port that is in use is reported at once.
 */

import { ApiError, invalidParameter, tryAgain } from "../../../shared/core/errors.ts";
import { idGenerator } from "../../../shared/core/ids.ts";
import { renderError } from "../../../shared/domain/changes/error_body.ts";
import {
  CONNECTION_LIMITS,
  type ConnectionInfo,
  type ConnectionLimits,
  serveConnections,
} from "./http_connections.ts";
import { SettingsError } from "../data_dir/settings.ts";
import type { SiteHandler } from "../../../tools/site/static_site.ts";

/** One of the two functions. It returns a response to every request, also for errors. */
export type EdgeFunction = (
  request: Request,
  info?: ConnectionInfo,
) => Response | Promise<Response>;

export type EdgeFunctions = Readonly<Record<"api-v1-payments" | "api-v1-sandbox", EdgeFunction>>;

/** The local server. It returns 503 until `serve` is called, and again after `stop` is called. */
export interface LocalServer {
  readonly port: number;
  /** `http://127.0.0.1:<port>/functions/v1` */
  readonly base_url: string;
  serve(functions: EdgeFunctions): void;
  /**
   * Waits for the requests in flight, closes the connections of those that are not done after
   * `deadline_ms`, and releases the port.
   * @param notice_ms for so long only the health check gets 503 before, so that a proxy sends
   * further requests elsewhere; by default 0
   */
  stop(deadline_ms: number, notice_ms?: number): Promise<void>;
}

export interface ServerOptions {
  /** The address to listen at; by default 127.0.0.1. */
  hostname?: string;
  /** Handlers beside the functions. The first one that does not return null responds. */
  sites?: readonly SiteHandler[];
  limits?: ConnectionLimits;
  /** This process shares the port with others, as the first or as a worker. Linux only. */
  sharing?: "first" | "worker";
  /** The public base URL, if it is another one than that of the port. */
  public_url?: string;
  /** URL of the documentation for the server's own errors; by default that of the port. */
  docs_url?: string | null;
}

/** The path under which Supabase serves functions. Their own routes begin after it. */
export const MOUNT = "/functions/v1";
export const CONSOLE_PATH = "/console";
/** The page for payers. */
export const CHECKOUT_PATH = "/pay";
/** The path of the documentation, to which `doc_url` of errors leads. */
export const DOCS_PATH = "/docs";
/** The path of the interactive reference, inside the documentation. */
export const REFERENCE_PATH = `${DOCS_PATH}/reference`;
/** The console, relative to the documentation. */
export const CONSOLE_LINK = "../console/";
const LOOPBACK = "127.0.0.1";
/** The end of the path of each function's health check. */
const HEALTH = "/health";

/**
 * Opens the port.
 * @param port 0 for any free one
 * @throws {SettingsError} if the port is in use or not allowed
 */
export async function openLocalServer(
  port: number,
  options: ServerOptions = {},
): Promise<LocalServer> {
  const { hostname = LOOPBACK, sites = [], limits = CONNECTION_LIMITS } = options;
  if (port !== 0 && options.sharing !== "worker") await refuseTakenPort(hostname, port);
  let functions: EdgeFunctions | null = null;
  let is_leaving = false;
  const abort = new AbortController();
  const listener = listenOn(hostname, port, options.sharing !== undefined);
  const host = hostname.includes(":") ? `[${hostname}]` : hostname;
  const origin = `http://${host}:${listener.addr.port}`;
  const { public_url, docs_url = origin + DOCS_PATH } = options;
  const renderApiError = (error: ApiError) => renderOwnError(error, docs_url);
  const server = serveConnections(listener, limits, abort.signal, (request, info) => {
    if (functions === null || is_leaving && request.url.endsWith(HEALTH)) {
      const message = "The service is starting or stopping: try again";
      return renderApiError(tryAgain("service_unavailable", message));
    }
    try {
      return respond(functions, sites, public_url, request, info);
    } catch (error) {
      if (error instanceof ApiError) return renderApiError(error);
      throw error;
    }
  });
  const drain = async (deadline_ms: number, notice_ms: number) => {
    is_leaving = true;
    if (notice_ms > 0) await new Promise((resolve) => setTimeout(resolve, notice_ms));
    functions = null;
    const timer = setTimeout(() => abort.abort(), deadline_ms);
    await server.shutdown();
    clearTimeout(timer);
  };
  let stopping: Promise<void> | undefined;
  return {
    port: listener.addr.port,
    base_url: origin + MOUNT,
    serve: (them) => functions = them,
    stop: (deadline_ms, notice_ms = 0) => stopping ??= drain(deadline_ms, notice_ms),
  };
}

function listenOn(hostname: string, port: number, reusePort: boolean): Deno.TcpListener {
  try {
    return Deno.listen({ hostname, port, reusePort });
  } catch (error) {
    if (error instanceof Deno.errors.AddrInUse) throw takenPort(port);
    if (error instanceof Deno.errors.AddrNotAvailable) {
      throw new SettingsError(`HOST "${hostname}" is no address of this machine`);
    }
    if (error instanceof Deno.errors.PermissionDenied) {
      throw new SettingsError(
        `PORT ${port} needs privileges that this user does not have: set PORT to another port`,
      );
    }
    throw error;
  }
}

/**
 * Throws if a program accepts connections at the port. On some systems 127.0.0.1 can be opened
 * although another program listens on all addresses, so `Deno.listen` alone does not notice it.
 */
async function refuseTakenPort(hostname: string, port: number): Promise<void> {
  const connection = await Deno.connect({ hostname, port }).catch(() => null);
  if (connection === null) return;
  connection.close();
  throw takenPort(port);
}

function takenPort(port: number): SettingsError {
  return new SettingsError(
    `PORT ${port} is in use by another program on this machine, such as another start or the ` +
      "Supabase stack: stop it, or set PORT to a free port",
  );
}

/** Responds to a request. Throws `ApiError` for one that neither a function nor a site serves. */
function respond(
  functions: EdgeFunctions,
  sites: readonly SiteHandler[],
  public_url: string | undefined,
  request: Request,
  info: ConnectionInfo,
): Response | Promise<Response> {
  const path_start = request.url.indexOf("/", "http://".length);
  // The runtime builds the URL from the Host header, which the client controls.
  if (!isOrigin(request.url.slice(0, path_start))) {
    throw invalidParameter(
      "Host",
      '"Host" is not a name or an address: leave the header to your HTTP client',
    );
  }
  const path = request.url.slice(path_start);
  if (path.startsWith(MOUNT + "/")) {
    const name = /^[^/?]*/.exec(path.slice(MOUNT.length + 1))![0];
    if (Object.hasOwn(functions, name)) {
      // The functions remove the mount path themselves. To remove it here would copy each request.
      return functions[name as keyof EdgeFunctions](request, info);
    }
  }
  for (const site of sites) {
    const response = site(request);
    if (response) return response;
  }
  throw new ApiError(
    "not_found",
    `Nothing is served at this path: use ${nearestAddress(request.url, public_url)}`,
  );
}

/** The last origin that was one, because most requests have the same. */
let last_origin = "";

function isOrigin(text: string): boolean {
  if (text === last_origin) return true;
  if (!URL.canParse(text)) return false;
  last_origin = text;
  return true;
}

/** Returns the address of the payments, or of the sandbox's payments if the path names it. */
function nearestAddress(url: string, public_url?: string): string {
  const { origin, pathname } = new URL(url);
  const path = pathname.includes("api-v1-sandbox")
    ? "/api-v1-sandbox/payments"
    : "/api-v1-payments/v1/payments";
  return (public_url ?? origin + MOUNT) + path;
}

/** A short page for a user who opens the address of the local start in a browser. */
export function indexPage({ method, url }: Request): Promise<Response> | null {
  const { pathname } = new URL(url);
  return pathname === "/" && method === "GET" ? Promise.resolve(renderIndex(url)) : null;
}

function renderIndex(url: string): Response {
  const base_url = new URL(MOUNT, url).href;
  return new Response(
    [
      "Payments API with sandbox",
      "",
      `console    ${new URL(CONSOLE_PATH, url).href}`,
      `payments   ${base_url}/api-v1-payments/v1/payments`,
      `sandbox    ${base_url}/api-v1-sandbox/payments`,
      `health     ${base_url}/api-v1-payments/health`,
      `docs       ${new URL(DOCS_PATH, url).href}`,
      `reference  ${new URL(REFERENCE_PATH, url).href}`,
      `OpenAPI    ${base_url}/api-v1-payments/v1/openapi.json`,
      "",
      "Your keys are in credentials.json in the data folder: DATA_DIR, or .local by default",
      "",
    ].join("\n"),
    { headers: { "Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store" } },
  );
}

function renderOwnError(error: ApiError, docs_url: string | null): Response {
  const request_id = idGenerator(Date.now())("req_");
  return new Response(renderError(error, { request_id, docs_url }), {
    status: error.status,
    headers: {
      ...error.headers,
      "Content-Type": "application/json",
      "Cache-Control": "no-store",
      "X-Content-Type-Options": "nosniff",
      "Request-Id": request_id,
    },
  });
}
