/**
 * Every route of the interface with the scope that it needs, copied from the contract and not from
 * the code. A new operation needs a row here. Tests of all routes, such as tests of
 * authentication, run once for each row.
 */

import { PAYMENTS_FUNCTION_ROUTES } from "../../../shared/functions/payments_function.ts";
import { PAYMENTS_FUNCTION, SANDBOX_FUNCTION } from "../../../shared/http/route.ts";
import { SANDBOX_ROUTES } from "../../../shared/sandbox/sandbox_routes.ts";
import { ADDRESSES } from "../../../tools/generate/openapi/operations.ts";
import { CATALOGUE } from "../catalogue/requests.ts";
import { fill, firstValues } from "../catalogue/run_catalogue.ts";

/** A route; the scope is null if any key may use it. `:pay` stands for the id of a payment, and so on. */
type ListedRoute = [method: string, path: string, scope: string | null];

/** All routes that take a key, without the aliases of the sandbox. */
const OWN_ROUTES: ListedRoute[] = [
  ["POST", "/api-v1-payments/v1/payments", "payments:write"],
  ["GET", "/api-v1-payments/v1/payments", "payments:read"],
  ["GET", "/api-v1-payments/v1/payments/totals", "payments:read"],
  ["GET", "/api-v1-payments/v1/payments/:pay", "payments:read"],
  ["POST", "/api-v1-payments/v1/payments/:pay/capture", "payments:write"],
  ["POST", "/api-v1-payments/v1/payments/:pay/cancel", "payments:write"],
  ["POST", "/api-v1-payments/v1/payments/:pay/refund", "refunds:write"],
  ["GET", "/api-v1-payments/v1/payments/:pay/refunds", "payments:read"],
  ["DELETE", "/api-v1-payments/v1/payments/:pay/bank_details", "payments:write"],
  ["GET", "/api-v1-payments/v1/instruments", "payments:read"],
  ["GET", "/api-v1-payments/v1/instruments/:ins", "payments:read"],
  ["DELETE", "/api-v1-payments/v1/instruments/:ins", "instruments:write"],
  ["POST", "/api-v1-payments/v1/checkouts", "payments:write"],
  ["GET", "/api-v1-payments/v1/checkouts", "payments:read"],
  ["GET", "/api-v1-payments/v1/checkouts/:chk", "payments:read"],
  ["POST", "/api-v1-payments/v1/checkouts/:chk/cancel", "payments:write"],
  ["DELETE", "/api-v1-payments/v1/customers/:cus", "customers:erase"],
  ["DELETE", "/api-v1-payments/v1/customers", "customers:erase"],
  ["GET", "/api-v1-payments/v1/refunds", "payments:read"],
  ["GET", "/api-v1-payments/v1/refunds/:re", "payments:read"],
  ["GET", "/api-v1-payments/v1/disputes", "payments:read"],
  ["GET", "/api-v1-payments/v1/disputes/:dp", "payments:read"],
  ["POST", "/api-v1-payments/v1/disputes/:dp/evidence", "payments:write"],
  ["POST", "/api-v1-payments/v1/disputes/:dp/accept", "payments:write"],
  ["GET", "/api-v1-payments/v1/ledger_entries", "ledger:read"],
  ["GET", "/api-v1-payments/v1/balance", "ledger:read"],
  ["POST", "/api-v1-payments/v1/transfers", "transfers:write"],
  ["GET", "/api-v1-payments/v1/transfers", "transfers:read"],
  ["GET", "/api-v1-payments/v1/transfers/:tr", "transfers:read"],
  ["POST", "/api-v1-payments/v1/transfers/:tr/cancel", "transfers:write"],
  ["DELETE", "/api-v1-payments/v1/transfers/:tr/bank_details", "transfers:write"],
  ["POST", "/api-v1-payments/v1/api_keys", "keys:write"],
  ["GET", "/api-v1-payments/v1/api_keys", "keys:write"],
  ["GET", "/api-v1-payments/v1/api_keys/:key", "keys:write"],
  ["GET", "/api-v1-payments/v1/api_key", null],
  ["POST", "/api-v1-payments/v1/api_keys/:key/rotate", "keys:write"],
  ["DELETE", "/api-v1-payments/v1/api_keys/:key", "keys:write"],
  ["GET", "/api-v1-payments/v1/idempotency_keys/:key", "payments:read"],
  ["POST", "/api-v1-payments/v1/sandbox/:pay/advance", "sandbox:write"],
  ["POST", "/api-v1-payments/v1/webhook_endpoints", "webhooks:write"],
  ["GET", "/api-v1-payments/v1/webhook_endpoints", "webhooks:read"],
  ["GET", "/api-v1-payments/v1/webhook_endpoints/:whe", "webhooks:read"],
  ["PUT", "/api-v1-payments/v1/webhook_endpoints/:whe", "webhooks:write"],
  ["DELETE", "/api-v1-payments/v1/webhook_endpoints/:whe", "webhooks:write"],
  ["POST", "/api-v1-payments/v1/webhook_endpoints/:whe/rotate_secret", "webhooks:write"],
  ["GET", "/api-v1-payments/v1/webhook_endpoints/:whe/inbox", "webhooks:read"],
  ["POST", "/api-v1-payments/v1/webhook_endpoints/:whe/recover", "webhooks:write"],
  ["GET", "/api-v1-payments/v1/webhook_deliveries", "webhooks:read"],
  ["GET", "/api-v1-payments/v1/webhook_deliveries/:whd", "webhooks:read"],
  ["POST", "/api-v1-payments/v1/webhook_deliveries/:whd/redeliver", "webhooks:write"],
  ["GET", "/api-v1-payments/v1/events", "events:read"],
  ["GET", "/api-v1-payments/v1/events/:evt", "events:read"],
  ["POST", "/api-v1-sandbox/payments", "sandbox:write"],
  ["POST", "/api-v1-sandbox/payments/:pay/advance", "sandbox:write"],
  ["POST", "/api-v1-sandbox/payments/:pay/authenticate", "sandbox:write"],
  ["POST", "/api-v1-sandbox/checkouts/:chk/pay", "sandbox:write"],
  ["POST", "/api-v1-sandbox/refunds/:re/advance", "sandbox:write"],
  ["POST", "/api-v1-sandbox/transfers/:tr/advance", "sandbox:write"],
  ["POST", "/api-v1-sandbox/webhooks/trigger", "sandbox:write"],
  ["GET", "/api-v1-sandbox/changes", null],
  ["GET", "/api-v1-sandbox/clock", null],
  ["GET", "/api-v1-sandbox/clock/due", "sandbox:write"],
  ["POST", "/api-v1-sandbox/clock", "sandbox:write"],
  ["GET", "/api-v1-sandbox/transcript", "sandbox:write"],
  ["POST", "/api-v1-sandbox/reset", "sandbox:write"],
  ["POST", "/api-v1-sandbox/sandboxes", "sandbox:write"],
  ["GET", "/api-v1-sandbox/sandboxes", "sandbox:write"],
  ["GET", "/api-v1-sandbox/sandboxes/:env", "sandbox:write"],
  ["POST", "/api-v1-sandbox/sandboxes/:env/keys", "sandbox:write"],
  ["DELETE", "/api-v1-sandbox/sandboxes/:env", "sandbox:write"],
  ["GET", "/api-v1-sandbox/requests", "sandbox:write"],
  ["GET", "/api-v1-sandbox/requests/:req", "sandbox:write"],
  ["POST", "/api-v1-sandbox/faults", "sandbox:write"],
  ["GET", "/api-v1-sandbox/faults", "sandbox:write"],
  ["GET", "/api-v1-sandbox/faults/:flt", "sandbox:write"],
  ["DELETE", "/api-v1-sandbox/faults/:flt", "sandbox:write"],
];

/** All routes that take a key. Those of the sandbox have an alias with `/v1`. */
export const ROUTES: ListedRoute[] = OWN_ROUTES.flatMap(([method, path, scope]): ListedRoute[] => [
  [method, path, scope],
  ...path.startsWith("/api-v1-sandbox/")
    ? [[method, path.replace("sandbox/", "sandbox/v1/"), scope] as ListedRoute]
    : [],
]);

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

/** Returns `METHOD /path` of every route that the product serves, in the form of ROUTES. */
export function servedRoutes(): string[] {
  const served = [
    [PAYMENTS_FUNCTION, PAYMENTS_FUNCTION_ROUTES],
    [SANDBOX_FUNCTION, SANDBOX_ROUTES],
  ] as const;
  return served.flatMap(([name, routes]) =>
    routes.flatMap(({ method, paths }) =>
      paths.map((path) => `${method} /${name}${path.replace(/:[a-z]+/, ":id")}`)
    )
  );
}
