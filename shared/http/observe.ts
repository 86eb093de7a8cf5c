/**
 * The outermost middleware. It sets the id and the time of a request and the headers of every
 * response (contract §6), and writes the log line.
 */

import type { Context, MiddlewareHandler, Next } from "hono";
import { formatTime } from "../core/clock.ts";
import { idGenerator } from "../core/ids.ts";
import { FAULT_HEADER } from "../core/vocabulary.ts";
import { type Describe, requestDurations, span, traceparentOf } from "../core/tracing.ts";
import { Retries } from "../jobs/retries.ts";
import type { RateLimits } from "../store/outcome.ts";
import { isFromPage } from "./cross_origin.ts";
import type { Dependencies } from "./dependencies.ts";
import type { Env, ObservedRequest, RequestState } from "./request_state.ts";
import { LIVE_ENVIRONMENT } from "./request_environment.ts";

/** Window of the rate limit in seconds, as in the database (`pay_internal.requests_used`). */
const WINDOW_S = 2;

/** Methods that the log names. Any other one is text of the client. */
const LOGGED_METHODS: ReadonlySet<string> = new Set([
  "GET",
  "HEAD",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "OPTIONS",
]);

/** The route of a request whose path has none, or that ended before. */
const UNKNOWN_ROUTE = "unknown";

export function observe(deps: Dependencies): MiddlewareHandler<Env> {
  const policy = `"default";q=${quotaOf(deps.rate_limits)};w=${WINDOW_S}`;
  const respond = async (
    c: Context<Env>,
    next: Next,
    parent: string | null,
    describe?: Describe,
  ) => {
    const started = performance.now();
    const at_ms = deps.clock();
    const state: RequestState = {
      request_id: idGenerator(at_ms, deps.random)("req_"),
      at_ms,
      retries: new Retries(),
      traceparent: traceparentOf(parent),
      key: null,
      environment: LIVE_ENVIRONMENT,
      rate_policy: policy,
      is_replay: false,
      has_own_headers: false,
      is_counted: false,
      body: null,
      body_bytes: 0,
      response_body: null,
      key_id: null,
      environment_id: null,
      idempotency_key: null,
      route_template: UNKNOWN_ROUTE,
      route: null,
      remaining: null,
      code: null,
      fault: null,
      sandbox_fault: null,
      hidden_body: null,
      decided_ms: null,
      is_tick: false,
    };
    c.set("state", state);
    c.set("deps", deps);
    await next();
    await state.environment.end?.(c);
    // Not the headers of a response that has these: the runtime would make a list of them.
    if (!state.has_own_headers) {
      const { headers } = c.res;
      for (const [name, value] of Object.entries(ownHeaders(state))) {
        if (!headers.has(name)) headers.set(name, value);
      }
    }
    // Hono drops the body of a HEAD, and then the server would send the length 0.
    if (c.req.method === "HEAD" && c.res.body) {
      let length = 0;
      for await (const part of c.res.body) length += part.length;
      c.res.headers.set("Content-Length", String(length));
    }
    const { status } = c.res;
    const { is_replay } = state;
    const method = LOGGED_METHODS.has(c.req.method) ? c.req.method : null;
    const duration_ms = performance.now() - started;
    const observed: ObservedRequest = {
      method: method ?? "other",
      url: c.req.url,
      path: c.req.path,
      status,
      is_replay,
      is_from_page: isFromPage(c.req.raw.headers),
      duration_ms,
    };
    if (requestDurations !== undefined) {
      const attributes = attributesOf(method, c.req.url, status, state.route_template);
      requestDurations.record(duration_ms / 1000, attributes);
      describe?.({
        ...attributes,
        // In place of the path, which can contain a token.
        "url.path": state.route_template,
        "http.response.header.request-id": [state.request_id],
      }, spanName(method, state.route_template));
    }
    state.environment.log?.(state, observed);
    const { key_id, environment_id, idempotency_key } = state;
    if (is_replay && idempotency_key !== null) {
      deps.request_log.countReplay(environment_id!, key_id!, idempotency_key);
    }
    if (state.is_tick && status < 400) return;
    deps.log({
      time: formatTime(at_ms),
      request_id: state.request_id,
      key_id,
      route: `${observed.method} ${state.route_template}`,
      status,
      ms: Math.round(duration_ms * 100) / 100,
      code: state.code,
      ...(state.fault && { fault: state.fault }),
    });
  };
  return function observed(c, next) {
    const parent = c.req.header("traceparent") ?? null;
    return span("HTTP", (describe) => respond(c, next, parent, describe), {
      kind: "server",
      parent,
    });
  };
}

/**
 * Returns the headers of every response: those that it always has, unless it has a Cache-Control of
 * its own, and those of its request.
 */
export function ownHeaders(
  { request_id, remaining, rate_policy, sandbox_fault }: RequestState,
): Record<string, string> {
  const headers: Record<string, string> = {
    "Request-Id": request_id,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
  };
  if (remaining !== null) {
    headers["RateLimit-Policy"] = rate_policy;
    headers["RateLimit"] = `"default";r=${remaining};t=${WINDOW_S}`;
  }
  if (sandbox_fault) headers[FAULT_HEADER] = sandbox_fault.fault;
  return headers;
}

/** Returns the attributes of a request with few values, by the conventions of OpenTelemetry. */
function attributesOf(method: string | null, url: string, status: number, route: string) {
  return {
    "http.request.method": method ?? "_OTHER",
    "http.response.status_code": BigInt(status),
    "url.scheme": url.slice(0, url.indexOf(":")),
    ...(route !== UNKNOWN_ROUTE && { "http.route": route }),
    ...(status >= 500 && { "error.type": String(status) }),
  };
}

function spanName(method: string | null, route: string): string {
  const name = method ?? "HTTP";
  return route === UNKNOWN_ROUTE ? name : `${name} ${route}`;
}

/** Returns the requests of a key in a window, if no other key of its environment sends any. */
function quotaOf(limits: RateLimits | null): number {
  const set = Object.values(limits ?? {}).filter((rate) => rate > 0);
  return 2 * Math.min(...set);
}
