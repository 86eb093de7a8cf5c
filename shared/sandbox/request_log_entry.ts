/**
 * The entry of a request in the log of its sandbox (store/request_log.ts). An entry has the path
 * and the query in a form without the client's own text: ids, words of the API, numbers and times
 * stay, and everything else is masked (security §2, leaks through logs). It has no header but the
 * idempotency key. Bodies are a part of some entries (`logged_bodies.ts`).
 */

import { formatTime } from "../core/clock.ts";
import { MAX_URL } from "../schema/limits.ts";
import { memberOf } from "../schema/requirement.ts";
import type { RequestLogEntry } from "../store/request_log.ts";
import type { ObservedRequest, RequestState } from "../http/request_state.ts";
import { maskedText } from "./masked_body.ts";
import type { LoggedBodies } from "./logged_bodies.ts";

/** Replaces text of the client. */
const MASK = "***";
/** Longest path and query in the log. */
const MAX_CHARACTERS = 300;
const ID = /^[a-z]{2,4}_[0-9a-z]{26}$/;
/** The resource of a response, of an error with a payment, and of a path. */
const MADE = /^\{"id":"([a-z]{2,4}_[0-9a-z]{26})"/;
const DECLINED = /^\{"error":.*"payment":\{"id":"(pay_[0-9a-z]{26})"/;
const ID_IN_PATH = /\/([a-z]{2,4}_[0-9a-z]{26})(?:\/|$)/;
/** A step of a path that has no route: a version or a word. */
const PLAIN_STEP = /^(?:v[0-9]|[a-z_]{1,40})$/;
/** Values of a query: an id, a word of the API, a currency, a number, a time. */
const PLAIN_VALUE =
  /^(?:[a-z]{2,4}_[0-9a-z]{26}|[a-z_.*]{1,40}|[A-Z]{3,5}|[0-9]{1,4}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{5,15}(?:Z|[+-][0-9]{2}:[0-9]{2}))$/;
/** Parameters whose value is free text, even if it looks like a word. */
const FREE_TEXT: ReadonlySet<string> = new Set(["reference", "customer", "customer_id", "search"]);

/** Makes the entry of a request, or null if it does not belong into the log of a sandbox. */
export function requestLogEntry(
  state: RequestState,
  observed: ObservedRequest,
  bodies: LoggedBodies,
): RequestLogEntry | null {
  const { key, key_id, environment_id, route, code, idempotency_key, sandbox_fault } = state;
  if (key_id === null || environment_id === null || key!.livemode) return null;
  if (route?.unlogged) return null;
  // A page such as the console repeats its reads, which would soon fill the log.
  if (observed.is_from_page && observed.method === "GET") return null;
  const has_query = observed.url.length <= MAX_URL && observed.url.includes("?");
  const path = shownPath(state.route_template, observed.path);
  const is_change = observed.method !== "GET" && state.decided_ms !== null;
  return {
    environment_id,
    api_key_id: key_id,
    id: state.request_id,
    method: observed.method,
    path,
    query: has_query ? shownQuery(state, observed.url) || null : null,
    status: observed.status,
    error_code: code,
    idempotency_key: idempotency_key && maskedText(idempotency_key),
    is_replay: observed.is_replay,
    duration_us: Math.round(observed.duration_ms * 1000),
    source: observed.is_from_page ? "web_page" : null,
    at: formatTime(state.at_ms),
    resource_id: madeBy(state) ?? ID_IN_PATH.exec(path)?.[1] ?? null,
    fault: sandbox_fault?.fault ?? null,
    fault_id: sandbox_fault?.id ?? null,
    decided_at: is_change ? formatTime(state.decided_ms!) : null,
    ...bodies.of(state),
  };
}

/**
 * Returns the resource of the response, or of the one that a fault hides. A decline has its payment
 * in the error.
 */
function madeBy({ hidden_body, response_body }: RequestState): string | undefined {
  const text = hidden_body ?? response_body ?? "";
  return MADE.exec(text)?.[1] ?? DECLINED.exec(text)?.[1];
}

/** The forms of the paths of each route with an id in place of each parameter. */
const forms = new Map<string, RegExp>();

function formOf(route: string): RegExp {
  let form = forms.get(route);
  if (form === undefined) {
    form = new RegExp(`^${route.replaceAll(/:\w+/g, "[a-z]{2,4}_[0-9a-z]{26}")}$`);
    forms.set(route, form);
  }
  return form;
}

/** Returns the route with the ids of the path, or the masked path if there is no route. */
function shownPath(route: string, path: string): string {
  const is_known = route.startsWith("/");
  if (is_known && formOf(route).test(path)) return path;
  const sent = path.split("/");
  const steps = is_known
    ? route.split("/").map((step, i) => {
      if (!step.startsWith(":")) return step;
      return ID.test(sent[i] ?? "") ? sent[i] : `{${step.slice(1)}}`;
    })
    // The first step is the name of the function.
    : sent.map((step, i) => i < 2 || step === "" || PLAIN_STEP.test(step) ? step : MASK);
  return steps.join("/").slice(0, MAX_CHARACTERS);
}

/** Returns the known parameters of the query. Masks the values that can be text of the client. */
function shownQuery({ route }: RequestState, url: string): string {
  if (route === null) return "";
  return [...new URL(url).searchParams]
    .filter(([name]) => memberOf(route.query, name) !== undefined)
    .map(([name, value]) =>
      `${name}=${PLAIN_VALUE.test(value) && !FREE_TEXT.has(name) ? value : MASK}`
    )
    .join("&").slice(0, MAX_CHARACTERS);
}
