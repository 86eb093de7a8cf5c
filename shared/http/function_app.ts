/**
 * Builds the app of a function: Hono over a table of operations. The order of the checks is the
 * contract's order of precedence (§6). The key comes first: a caller with an invalid key gets 401,
 * even if the request has other faults.
 */

import { type Context, type Handler, Hono, type Next } from "hono";
import { RegExpRouter } from "hono/router/reg-exp-router";
import { ApiError, type ErrorCode } from "../core/errors.ts";
import { fingerprint } from "../core/canonical_json.ts";
import { idGenerator } from "../core/ids.ts";
import { FAULT_HEADER, REPLAYED_HEADER } from "../core/vocabulary.ts";
import type { Scope } from "../schema/api_key.ts";
import { MAX_BODY_BYTES, MAX_URL, SMALL_BODY_BYTES } from "../schema/limits.ts";
import type { Health } from "../schema/service.ts";
import type { Reply } from "../domain/changes/service_request.ts";
import { renderError } from "../domain/changes/error_body.ts";
import type { StoredResponse } from "../store/commit_rows.ts";
import type { Access, Idempotency } from "../store/outcome.ts";
import { apiKeyHeader, invalidKey } from "./api_key_header.ts";
import { bodyInParts } from "./body_in_parts.ts";
import { crossOrigin } from "./cross_origin.ts";
import { compressed } from "./gzip.ts";
import type { Dependencies } from "./dependencies.ts";
import { isIdempotencyKey, readIdempotencyKey } from "./idempotency_header.ts";
import { observe, ownHeaders } from "./observe.ts";
import { type Route, scopeOf } from "./route.ts";
import { asSent, parseBody, parseQuery } from "./parse_input.ts";
import { noSuchResource, pathKind, pathOfResource } from "./path_id.ts";
import { parseBytes, type ReadBody, readRaw } from "./request_body.ts";
import { faultOf } from "./log_line.ts";
import type { Env, EnvironmentValues, RequestEnvironment } from "./request_state.ts";
import { takes, unknownRoute } from "./unknown_route.ts";

type Ctx = Context<Env>;

/** Errors that are returned without a check of the key in the database. */
const NEEDS_NO_KEY: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "unauthorized",
  "test_key_required",
  "origin_not_allowed",
  "service_unavailable",
]);

const JSON_TYPE = "application/json";
const NO_QUERY = new URLSearchParams();
/** Methods whose requests can carry an idempotency key. */
const MUTATING: ReadonlySet<string> = new Set(["POST", "PUT", "DELETE"]);

/** The environment of test keys, and routes without an API key besides `/health`. */
interface AppOptions {
  sandbox: RequestEnvironment;
  /** `GET` routes that any web page may read, by path. */
  open?: Readonly<Record<string, readonly Handler<Env>[]>>;
  /** Adds the routes of the payer's page, which has an origin of its own. */
  servePage?: (app: Hono<Env>) => void;
  /** Adds the routes of callers that have no API key. */
  serveKeyless?: (app: Hono<Env>) => void;
}

/** Builds the app of a function, with `/<name>/<path of a route>` and `/<name>/health`. */
export function createFunctionApp(
  name: string,
  table: readonly Route[],
  deps: Dependencies,
  { sandbox, open = {}, servePage, serveKeyless }: AppOptions,
): Hono<Env> {
  const routes = table.flatMap((route) =>
    route.paths.map((path) => ({ route, path: `/${name}${path}` }))
  );
  const open_paths = ["/health", ...Object.keys(open)].map((path) => `/${name}${path}`);
  const observed = observe(deps);
  const guarded = crossOrigin({ allowed: deps.allowed_origins });
  const keyed = apiKeyHeader(deps, sandbox);
  const others = routerApp();
  others.use(observed);
  for (const [path, handlers] of Object.entries(open)) {
    others.get(`/${name}${path}`, nameRoute, ...handlers);
  }
  servePage?.(others);
  others.use(guarded);
  others.get(`/${name}/health`, nameRoute, async (c) => {
    c.get("state").is_tick = true;
    await deps.store.ping();
    return c.json({ status: "ok" } satisfies Health);
  });
  serveKeyless?.(others);
  others.use(keyed);
  const served = [
    ...routes.map(({ route: { method }, path }) => ({ method, path })),
    ...open_paths.map((path) => ({ method: "GET", path })),
  ];
  others.notFound((c) =>
    keyFirst(c, null, () => {
      throw unknownRoute(c.req.path, served, deps.base_url);
    })
  );
  const app = routerApp();
  const settle = (c: Ctx, response: Promise<Response | void>) =>
    response.then((made) => {
      if (made) c.res = made;
    }, (error) => {
      c.res = failureOf(c, error);
    });
  // The same middleware in one handler of each route, which Hono calls without further promises.
  serveRoutes(app, routes, async (c, respond) => {
    const withKey = () => settle(c, keyed(c, () => settle(c, respond())));
    await observed(c, () => settle(c, guarded(c, withKey)));
    return c.res;
  });
  app.notFound((c) => others.fetch(c.req.raw, c.env));
  for (const each of [app, others]) each.onError((error, c) => failureOf(c, error));
  return app;
}

/** The fast router of Hono alone, which throws for paths that it does not take. */
function routerApp(): Hono<Env> {
  return new Hono<Env>({ getPath: pathBehindMount, router: new RegExpRouter() });
}

/** A route at one of its paths. */
interface ServedRoute {
  route: Route;
  /** With the name of the function. */
  path: string;
}

/**
 * Adds routes. The router does not take `/payments/totals` beside `/payments/:id`, so the handler
 * of the wider path serves the narrower one too.
 * @param serve calls `respond` behind the middleware
 */
function serveRoutes(
  app: Hono<Env>,
  served: readonly ServedRoute[],
  serve: (c: Ctx, respond: () => Promise<Response>) => Promise<Response>,
): void {
  const widerThan = (one: ServedRoute) =>
    served.find((wide) =>
      wide.path.includes(":") && wide.route.method === one.route.method &&
      takes(wide.path, one.path)
    );
  const handlers = Map.groupBy(
    served,
    (one) => one.path.includes(":") ? one : widerThan(one) ?? one,
  );
  for (const [wide, all] of handlers) {
    const by_path = new Map(all.map((one) => [one.path, one]));
    app.on(wide.route.method, wide.path, (c) => {
      const { route, path } = by_path.get(c.req.path) ?? wide;
      return serve(c, () => handle(c, route, path));
    });
  }
}

/** Sets the route for the log, for paths without parameters. */
function nameRoute(c: Ctx, next: Next): Promise<void> {
  c.get("state").route_template = c.req.path;
  return next();
}

/** Path before the name of a function. Supabase removes it; the local server does not. */
const MOUNT = "/functions/v1";

/**
 * Returns the path as it was sent. Hono would decode it, and then `/%69nternal/` passes the rule of
 * a proxy that keeps `/internal/` inside.
 */
function pathBehindMount({ url }: Request): string {
  // No route has it, and `keyFirst` refuses it. To match a long path would cost as much as a
  // create.
  if (url.length > MAX_URL) return "/";
  const start = url.indexOf("/", url.indexOf("://") + 3);
  const length = url.slice(start).search(/[?#]/);
  const path = url.slice(start, length < 0 ? undefined : start + length);
  return path.startsWith(`${MOUNT}/`) ? path.slice(MOUNT.length) : path;
}

function handle(c: Ctx, route: Route, path: string): Promise<Response> {
  const state = c.get("state");
  state.route_template = path;
  state.route = route;
  // A longer one is refused without being read.
  const has_query = !isLong(c) && c.req.url.includes("?");
  const query = has_query ? new URL(c.req.url).searchParams : NO_QUERY;
  const scope = scopeOf(route, query);
  const { store, large_bodies } = c.get("deps");
  const admit = async () => {
    await state.environment.admit(c, scope, (access) => store.authenticate(access));
    state.is_counted = true;
  };
  const check = (bytes: Uint8Array | null) => checkRequest(c, { route, path, scope, query, bytes });
  const serveBody = async () => {
    const bytes = await readRaw(c.req.raw, MAX_BODY_BYTES, { admit });
    const respond = bytes.length <= SMALL_BODY_BYTES
      ? check(bytes)
      : await large_bodies[state.key!.livemode ? "live" : "sandboxes"]
        .run(store.tenants.nameOf(state.key!.hash), () => check(bytes));
    return await respond();
  };
  return keyFirst(c, scope, () => {
    if (state.key!.livemode) refuseLiveKey(route, c.req.raw.headers);
    return MUTATING.has(route.method) ? serveBody() : check(null)();
  });
}

/** A request to a route. `bytes` are those of its body; null: its method has none. */
interface RoutedRequest {
  route: Route;
  path: string;
  scope: Scope | null;
  query: URLSearchParams;
  bytes: Uint8Array | null;
}

/**
 * Checks all parts of a request. This is the work that grows with the request, and nothing in it
 * waits. Throws `ApiError`; else returns the function that responds.
 */
function checkRequest(
  c: Ctx,
  { route, path, scope, query: searchParams, bytes }: RoutedRequest,
): () => Promise<Response> {
  const state = c.get("state");
  const deps = c.get("deps");
  const { headers } = c.req.raw;
  const sent = bytes && parseBytes(bytes, headers, route.body);
  if (sent) state.body = sent.value;
  state.body_bytes = bytes?.length ?? 0;
  const idempotency_key = bytes ? readIdempotencyKey(headers) : null;
  state.idempotency_key = idempotency_key;
  const sent_id = c.req.param("id") ?? "";
  const decide = state.environment.read(c, { route, sent_id, idempotency_key });
  const query = parseQuery(route.query, searchParams);
  const body = sent ? parseBody(route.body, sent) : undefined;
  route.refuse?.(body, state.key!.livemode);

  const id = ID_FORM.test(sent_id) ? sent_id : UNKNOWN_ID;
  const named_key = c.req.param("key") ?? "";
  const customer_id = c.req.param("customer") === undefined ? "" : customerIn(c.req.path);
  const idempotency = idempotency_key === null
    ? null
    : identify(route, { id, customer_id }, searchParams, idempotency_key, sent!);
  const run = (access: Access, { random, order_ms, run_number, settings }: EnvironmentValues) => {
    state.decided_ms = access.at_ms;
    return route.run({
      deps,
      request: {
        access,
        context: {
          request_id: state.request_id,
          idempotency_key,
          livemode: state.key!.livemode,
          run_number,
          at_ms: access.at_ms,
          newId: idGenerator(access.at_ms, random, order_ms),
          random,
          docs_url: deps.docs_url,
          traceparent: state.traceparent,
        },
        idempotency,
        settings,
      },
      key_text: state.key!.text,
      // Deno prints a warning when the signal is first read, so only reads that wait read it.
      signal: () => c.req.raw.signal,
      id,
      named_key: isIdempotencyKey(named_key) ? named_key : UNKNOWN_KEY,
      customer_id,
      body,
      query,
    });
  };
  return () =>
    decide(scope, run).then((outcome) => respond(c, outcome, route.media_type), (error) => {
      const kind = pathKind(path);
      const is_missing = error instanceof ApiError && error.code === "not_found";
      throw kind && is_missing ? noSuchResource(kind, sent_id) : asSent(error, sent);
    });
}

/** Refuses a live key where only test keys are taken. Throws `test_key_required`. */
function refuseLiveKey({ test_only }: Route, headers: Headers): void {
  if (test_only) {
    throw new ApiError(
      "test_key_required",
      'The sandbox takes test keys only: use a key that has "_test_" in its text',
    );
  }
  if (headers.has(FAULT_HEADER)) {
    throw new ApiError(
      "test_key_required",
      `The header "${FAULT_HEADER}" takes test keys only: use a key that has "_test_" in its text`,
    );
  }
}

/** The form of every id. The service neither hashes any other text nor sends it to the database. */
const ID_FORM = /^[a-z]{2,4}_[0-9a-z]{26}$/;
const UNKNOWN_ID = "unknown";
/** Contains a space, which no idempotency key contains. */
const UNKNOWN_KEY = "no key";

/**
 * Decodes the id of a customer at the end of a path; empty if that is not UTF-8, or has U+0000,
 * which PostgreSQL does not store. Hono would leave what it cannot decode.
 */
function customerIn(path: string): string {
  try {
    const id = decodeURIComponent(path.slice(path.lastIndexOf("/") + 1));
    return id.includes("\0") ? "" : id;
  } catch {
    return "";
  }
}

/**
 * Runs a handler. If it throws before the database has admitted the key, this function first checks
 * the key, so that a caller with an invalid key gets 401 and not the other error.
 */
async function keyFirst(
  c: Ctx,
  scope: Scope | null,
  run: () => Promise<Response> | Response,
): Promise<Response> {
  const state = c.get("state");
  try {
    if (isLong(c)) throw longUrl();
    return await run();
  } catch (error) {
    const is_unadmitted = state.key_id === null && error instanceof ApiError &&
      !NEEDS_NO_KEY.has(error.code);
    if (is_unadmitted) {
      const { store } = c.get("deps");
      await state.environment.admit(c, scope, (access) => store.authenticate(access))
        .catch((refusal) => {
          throw inKeyWords(refusal);
        });
    }
    throw inKeyWords(error);
  }
}

function isLong({ req: { url } }: Ctx): boolean {
  return url.length > MAX_URL;
}

/** Makes the 400 for a URL that is longer than any that has a meaning. */
function longUrl(): ApiError {
  return new ApiError(
    "invalid_parameter",
    `The URL has more than ${MAX_URL} characters, which is the limit: leave out what is not needed`,
  );
}

/** Replaces the database's 401 by the message for invalid keys. */
function inKeyWords(error: unknown): unknown {
  return error instanceof ApiError && error.code === "unauthorized" ? invalidKey() : error;
}

/**
 * Computes the fingerprint with the operation's own path, so that an alias is the same request. The
 * query of a request that changes something belongs to it, but can be personal data.
 */
function identify(
  route: Route,
  { id, customer_id }: { id: string; customer_id: string },
  query: URLSearchParams,
  key: string,
  body: ReadBody,
): Idempotency {
  const own_path = route.own_path ?? `/${route.home}${route.paths[0]}`;
  const path = own_path.replace(
    /:(?:id|customer)\b/,
    (name) => name === ":id" ? id : encodeURIComponent(customer_id),
  );
  const whole_path = query.size === 0 ? path : `${path}?${query}`;
  return {
    key,
    fingerprint: fingerprint(route.method, whole_path, body.value),
    request_line: `${route.method} ${path}`,
  };
}

function respond(
  c: Ctx,
  outcome: Reply | StoredResponse,
  media_type = JSON_TYPE,
): Response {
  const { response, replayed, rest, fault }: Reply = "response" in outcome
    ? outcome
    : { response: outcome, replayed: false };
  const state = c.get("state");
  // A plain object, because Hono would make `Headers` of it, and the runtime a list of those.
  if (fault) state.sandbox_fault = fault;
  const headers = ownHeaders(state);
  headers["Content-Type"] = media_type;
  if (replayed) headers[REPLAYED_HEADER] = "true";
  if (response.status === 201) headers["Location"] = locationOf(response, c.get("deps").base_url);
  if (response.status >= 400) state.code = JSON.parse(response.body).error.code;
  if (media_type === JSON_TYPE) state.response_body = response.body;
  let body: BodyInit = response.body;
  if (rest) body = bodyInParts(body, rest);
  else if (media_type === JSON_TYPE) body = compressed(body, headers, c.req.raw);
  state.is_replay = replayed;
  state.has_own_headers = true;
  return new Response(body, { status: response.status, headers });
}

function locationOf(response: StoredResponse, base_url: string): string {
  const [, id] = /^\{"id":"([a-z]+_[0-9a-z]+)"/.exec(response.body)!;
  return base_url + pathOfResource(id!);
}

/** The response to an error. */
function failureOf(c: Ctx, error: unknown): Response {
  return c.get("state").environment.responseTo?.(c, error) ?? renderFailure(c, error);
}

function renderFailure(c: Ctx, error: unknown): Response {
  const state = c.get("state");
  const shown = error instanceof ApiError
    ? error
    : new ApiError("internal_error", "Something went wrong on our side: try again");
  state.code = shown.code;
  const cause = shown === error ? shown.cause : error;
  if (cause !== undefined) state.fault = faultOf(cause);
  const { docs_url } = c.get("deps");
  state.response_body = renderError(shown, { request_id: state.request_id, docs_url });
  const headers = { "Content-Type": JSON_TYPE, ...shown.headers };
  const body = compressed(state.response_body, headers, c.req.raw);
  return c.body(body, shown.status as 500, headers);
}
