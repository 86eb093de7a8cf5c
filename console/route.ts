/**
 * The place in the console, kept behind the `#` of the address: a reload and a shared link lead
 * back to it, and no server has to know it.
 */

import { signal } from "@preact/signals";

/** Where the reader is: `#/payments/pay_1?tab=x` is `["payments", "pay_1"]` and its query. */
export interface Route {
  steps: readonly string[];
  query: Readonly<Record<string, string>>;
}

/** The current place. */
export const route = signal<Route>(parseRoute(location.hash));

// The back button, a link, an address typed by hand.
addEventListener("hashchange", () => {
  route.value = parseRoute(location.hash);
});

/** The address of a place; empty values are left out. */
export function href(steps: readonly string[], query: Record<string, string> = {}): string {
  const path = steps.map(encodeURIComponent).join("/");
  const values = Object.entries(query).filter(([, value]) => value !== "");
  const search = new URLSearchParams(values).toString();
  return `#/${path}${search && `?${search}`}`;
}

/** Goes to a place; `replace` leaves no step for the back button. */
export function go(steps: readonly string[], query?: Record<string, string>, replace = false) {
  const target = href(steps, query);
  if (replace) history.replaceState(null, "", target);
  else history.pushState(null, "", target);
  route.value = parseRoute(target);
}

/** The page of a route, whatever its query: `payments/pay_1`. */
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

/** A hand-written address may hold a broken escape. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
