/**
 * The route of the console, in the hash of the URL. A reload and a shared link open the same page,
 * and any static host can serve the console.
 */

import { effect, signal } from "@preact/signals";
import { keyOfHash } from "../../../packages/sandbox/key_link.ts";

/** A route: `#/payments/pay_1?tab=x` has the steps `["payments", "pay_1"]` and the query `tab`. */
export interface Route {
  steps: readonly string[];
  query: Readonly<Record<string, string>>;
}

/** The key of the link that was opened, until the session takes it. Null without one. */
export const linked_key = signal<string | null>(null);
/** The hash of each list as it was last shown, with its filters and its page. */
const shown_lists = new Map<string, string>();
export const route = signal<Route>(readHash());

effect(() => {
  const { steps, query } = route.value;
  const [section = "home"] = steps;
  if (steps.length <= 1) shown_lists.set(section, href([section], query));
});

// The back button, a link, or a typed URL has changed the hash.
addEventListener("hashchange", () => {
  route.value = readHash();
});

/** Reads the route of the address bar. A key is removed from there before anything else happens. */
function readHash(): Route {
  const key = keyOfHash(location.hash);
  if (key !== null) {
    history.replaceState(null, "", href([]));
    linked_key.value = key;
  }
  return parseRoute(location.hash);
}

/** Returns the hash of a route. Leaves out empty values of the query. */
export function href(
  steps: readonly string[],
  query: Readonly<Record<string, string>> = {},
): string {
  const path = steps.map(encodeURIComponent).join("/");
  const values = Object.entries(query).filter(([, value]) => value !== "");
  const search = new URLSearchParams(values).toString();
  return `#/${path}${search && `?${search}`}`;
}

/** Returns the hash of a list as it was last shown. */
export function hrefOfList(section: string): string {
  return shown_lists.get(section) ?? href([section]);
}

/** Forgets how the lists were shown. Their cursors belong to data that is gone. */
export function forgetLists(): void {
  shown_lists.clear();
}

/** Opens a route as a step of the history. With `replace` the back button skips the present one. */
export function go(steps: readonly string[], query?: Record<string, string>, replace = false) {
  const target = href(steps, query);
  if (replace || target === location.hash) history.replaceState(null, "", target);
  else history.pushState(null, "", target);
  route.value = parseRoute(target);
}

/** Returns the page of a route without its query: `payments/pay_1`. */
export function place({ steps }: Route): string {
  return steps.join("/");
}

function parseRoute(hash: string): Route {
  const [path = "", search = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return {
    steps: path.split("/").filter((step) => step !== "").map(decode),
    query: Object.fromEntries(new URLSearchParams(search)),
  };
}

/** Decodes a step. A typed URL can contain an invalid escape, which is kept as it is. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
