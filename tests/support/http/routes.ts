/**
 * Every route with the scope that it needs, by the resource in its path: the scopes are copied from
 * the contract and not from the code. contract_test.ts compares the routes with the contract. Tests
 * of all routes, such as tests of authentication, run once for each.
 */

import { ADDRESSES } from "../../../tools/generate/openapi/operations.ts";
import { CATALOGUE } from "../catalogue/requests.ts";
import { fill, firstValues } from "../catalogue/run_catalogue.ts";

/** A route; the scope is null if any key may use it. `:pay` is the id of a payment, and so on. */
type ListedRoute = [method: string, path: string, scope: string | null];

/** By the first step of a path: the prefix of its ids, and the scopes of reads and changes. */
const RESOURCES: Record<string, [prefix: string, read: string | null, write?: string]> = {
  payments: ["pay", "payments:read", "payments:write"],
  refunds: ["re", "payments:read"],
  disputes: ["dp", "payments:read", "payments:write"],
  instruments: ["ins", "payments:read", "instruments:write"],
  checkouts: ["chk", "payments:read", "payments:write"],
  customers: ["cus", null, "customers:erase"],
  transfers: ["tr", "transfers:read", "transfers:write"],
  ledger_entries: ["le", "ledger:read"],
  balance: ["", "ledger:read"],
  events: ["evt", "events:read"],
  webhook_endpoints: ["whe", "webhooks:read", "webhooks:write"],
  webhook_deliveries: ["whd", "webhooks:read", "webhooks:write"],
  api_keys: ["key", "keys:write", "keys:write"],
  api_key: ["", null],
  idempotency_keys: ["key", "payments:read"],
};
/** The same of sandboxes, whose scope is that of all but some reads. */
const OF_SANDBOXES: Record<string, string> = {
  sandbox: "pay",
  sandboxes: "env",
  requests: "req",
  faults: "flt",
};
const FOR_ALL = ["GET changes", "GET clock"];

function scopeOf(method: string, home: string, steps: readonly string[]): string | null {
  const [resource = "", , action] = steps;
  if (FOR_ALL.includes(`${method} ${steps.join("/")}`)) return null;
  if (home === "api-v1-sandbox" || resource === "sandbox") return "sandbox:write";
  if (method === "POST" && action === "refund") return "refunds:write";
  const [, read, write] = RESOURCES[resource]!;
  return method === "GET" ? read : write!;
}

/** All routes that take a key. */
export const ROUTES: ListedRoute[] = ADDRESSES.map(({ operation: { method }, path }) => {
  const [, home, ...steps] = path.replace("/v1", "").split("/") as [string, string, ...string[]];
  const prefix = OF_SANDBOXES[steps[0]!] ?? RESOURCES[steps[0]!]?.[0];
  return [method, path.replace(/\{\w+\}/, `:${prefix}`), scopeOf(method, home, steps)];
});

/** Every scope of a key (contract §5). */
export const SCOPES = [
  "payments:read",
  "payments:write",
  "refunds:write",
  "instruments:use",
  "instruments:write",
  "customers:erase",
  "transfers:read",
  "transfers:write",
  "webhooks:read",
  "webhooks:write",
  "events:read",
  "ledger:read",
  "keys:write",
  "sandbox:write",
];

/** The routes whose requests have a body. */
export function mutatingRoutes(): ListedRoute[] {
  return ROUTES.filter(([method]) => method !== "GET");
}

/** Returns a body that is valid if the ids in it and in the path are those of the caller. */
export function bodyOf(method: string, path: string): Record<string, unknown> {
  const form = path.replace(/:\w+/, "{id}");
  const address = ADDRESSES.find((address) =>
    address.operation.method === method &&
    address.path.replace(/\{(key|customer)\}/, "{id}") === form
  )!;
  const main = ADDRESSES.find(({ operation }) => operation === address.operation)!;
  const request = CATALOGUE.find(({ operation, body }) => operation === main.id && body);
  return request ? fill(request, firstValues()).body! : {};
}

/** Returns the path of a route with this id, by default an unknown id of the right kind. */
export function pathOf([, path]: ListedRoute, id?: string): string {
  return path.replace(/:([a-z]+)/, (_, kind) => id ?? `${kind}_${"0".repeat(26)}`);
}
