/**
 * The HTTP side of the local start: one loopback port that serves both functions under
 * `/functions/v1`, as Supabase does, and sites beside them. Takes the port before anything slow
 * begins.
 */

import { ApiError, invalidParameter, tryAgain } from "../../shared/core/errors.ts";
import { idMint } from "../../shared/core/ids.ts";
import { renderError } from "../../shared/domain/changes/error_body.ts";
import { CONNECTION_LIMITS, type ConnectionLimits, serveConnections } from "./http_connections.ts";
import { SettingsError } from "../data_dir/settings.ts";
import type { SiteHandler } from "../sites/static_site.ts";

/** One of the two functions: answers every request, errors included. */
export type EdgeFunction = (request: Request) => Response | Promise<Response>;

/** The functions by name. */
export type EdgeFunctions = Readonly<Record<"api-v1-payments" | "api-v1-sandbox", EdgeFunction>>;

/** The local server; it answers 503 before it is given its functions and once it is stopping. */
export interface LocalServer {
  readonly port: number;
  /** `http://127.0.0.1:<port>/functions/v1` */
  readonly base_url: string;
  serve(functions: EdgeFunctions): void;
  /** Finishes the requests in flight, cuts what lasts longer, gives up the port. */
  stop(deadline_ms: number): Promise<void>;
}

/** Where Supabase mounts functions; they see the path behind it. */
const MOUNT = "/functions/v1";
const HOSTNAME = "127.0.0.1";

/**
 * Takes the port. Errors: `SettingsError` naming PORT when somebody has it.
 * @param sites what is served beside the functions; the first that answers does
 */
export async function openLocalServer(
  port: number,
  sites: readonly SiteHandler[] = [],
  limits: ConnectionLimits = CONNECTION_LIMITS,
): Promise<LocalServer> {
  if (port !== 0) await refuseTakenPort(port);
  let functions: EdgeFunctions | null = null;
  const in_flight = new Set<Promise<Response>>();
  const abort = new AbortController();
  const listener = listenOn(port);
  const server = serveConnections(listener, limits, abort.signal, (request) => {
    if (functions === null) return renderAway();
    const response = Promise.resolve(answer(functions, sites, request));
    in_flight.add(response);
    return response.finally(() => in_flight.delete(response));
  });
  /** Waits for requests whose body is still arriving, because Deno would fail them. */
  const drain = async (deadline_ms: number) => {
    functions = null;
    const timer = setTimeout(() => abort.abort(), deadline_ms);
    while (in_flight.size > 0 && !abort.signal.aborted) {
      const aborted = new Promise((resolve) => abort.signal.addEventListener("abort", resolve));
      await Promise.race([aborted, Promise.allSettled(in_flight)]);
    }
    await server.shutdown();
    clearTimeout(timer);
  };
  let stopping: Promise<void> | undefined;
  return {
    port: listener.addr.port,
    base_url: `http://${HOSTNAME}:${listener.addr.port}${MOUNT}`,
    serve: (them) => functions = them,
    stop: (deadline_ms) => stopping ??= drain(deadline_ms),
  };
}

function listenOn(port: number): Deno.TcpListener {
  try {
    return Deno.listen({ hostname: HOSTNAME, port });
  } catch (error) {
    if (error instanceof Deno.errors.AddrInUse) throw takenPort(port);
    if (error instanceof Deno.errors.PermissionDenied) {
      throw new SettingsError(
        `PORT ${port} needs rights that this user has not: set PORT to another`,
      );
    }
    throw error;
  }
}

/** Binding alone would succeed on systems that let a narrower address shadow a wider one. */
async function refuseTakenPort(port: number): Promise<void> {
  const connection = await Deno.connect({ hostname: HOSTNAME, port }).catch(() => null);
  if (connection === null) return;
  connection.close();
  throw takenPort(port);
}

function takenPort(port: number): SettingsError {
  return new SettingsError(
    `PORT ${port} is taken by another program on this machine (another start, or the Supabase ` +
      "stack?): stop it, or set PORT to a free one",
  );
}

function answer(
  functions: EdgeFunctions,
  sites: readonly SiteHandler[],
  request: Request,
): Response | Promise<Response> {
  // The runtime builds the URL from the Host header, which the client chooses.
  if (!URL.canParse(request.url)) {
    return renderApiError(
      invalidParameter(
        "Host",
        '"Host" is not a name or an address: leave the header to your HTTP client',
      ),
    );
  }
  const path_start = request.url.indexOf("/", "http://".length);
  const path = request.url.slice(path_start);
  if (path.startsWith(MOUNT + "/")) {
    const name = /^[^/?]*/.exec(path.slice(MOUNT.length + 1))![0];
    if (Object.hasOwn(functions, name)) {
      // As it is: the functions cut the mount off themselves, which spares a copy of each request.
      return functions[name as keyof EdgeFunctions](request);
    }
  }
  if (path === "/" && request.method === "GET") return renderIndex(request.url);
  for (const site of sites) {
    const response = site(request);
    if (response) return response;
  }
  return renderApiError(
    new ApiError("not_found", `Nothing is served at this path: use ${nearestAddress(request.url)}`),
  );
}

/** Where the API is: payments, or those of the sandbox if the path names it. */
function nearestAddress(url: string): string {
  const { origin, pathname } = new URL(url);
  const path = pathname.includes("api-v1-sandbox")
    ? "/api-v1-sandbox/payments"
    : "/api-v1-payments/v1/payments";
  return origin + MOUNT + path;
}

/** A short page for whoever opens the address in a browser. */
function renderIndex(url: string): Response {
  const base_url = new URL(MOUNT, url).href;
  return new Response(
    [
      "Payments API with sandbox",
      "",
      `console    ${new URL("/console", url).href}`,
      `payments   ${base_url}/api-v1-payments/v1/payments`,
      `sandbox    ${base_url}/api-v1-sandbox/payments`,
      `health     ${base_url}/api-v1-payments/health`,
      `reference  ${new URL("/docs", url).href}`,
      `OpenAPI    ${base_url}/api-v1-payments/v1/openapi.json`,
      "",
      "Keys: credentials.json in the data folder (.local unless DATA_DIR says otherwise)",
      "",
    ].join("\n"),
    { headers: { "Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store" } },
  );
}

function renderAway(): Response {
  return renderApiError(
    tryAgain("service_unavailable", "The service is starting or stopping: try again"),
  );
}

function renderApiError(error: ApiError): Response {
  const request_id = idMint(Date.now())("req_");
  return new Response(renderError(error, request_id), {
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
