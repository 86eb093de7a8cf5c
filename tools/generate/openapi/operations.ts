/** Every operation at each of its addresses, from the tables that the functions use for routing. */

import { PAYMENTS_FUNCTION, type Route, SANDBOX_FUNCTION } from "../../../shared/http/route.ts";
import { PAYMENTS_FUNCTION_ROUTES } from "../../../shared/functions/payments_function.ts";
import { SANDBOX_ROUTES } from "../../../shared/sandbox/sandbox_routes.ts";

export interface Address {
  /** Unique. An alias does not have the id of its operation. */
  id: string;
  operation: Route;
  /** `/api-v1-payments/v1/payments/{id}` */
  path: string;
  /** The main address of the operation if this address is an alias, or null. */
  alias_of: string | null;
}

export const OPERATIONS: readonly Route[] = [
  ...PAYMENTS_FUNCTION_ROUTES,
  ...SANDBOX_ROUTES,
];

/** All addresses, those of the payments function first. */
export const ADDRESSES: readonly Address[] = [
  ...PAYMENTS_FUNCTION_ROUTES.flatMap((operation) => addressesOf(PAYMENTS_FUNCTION, operation)),
  ...SANDBOX_ROUTES.flatMap((operation) => addressesOf(SANDBOX_FUNCTION, operation)),
];

/** The operation whose examples an alias shares. */
export function mainOperation(operation_id: string): string {
  const alias_of = ADDRESSES.find(({ id }) => id === operation_id)?.alias_of ?? null;
  return ADDRESSES.find(({ path }) => path === alias_of)?.id ?? operation_id;
}

function addressesOf(function_name: string, operation: Route): Address[] {
  const own_path = inBraces(operation.own_path ?? `/${operation.home}${operation.paths[0]}`);
  return operation.paths.map((template, i) => {
    const path = inBraces(`/${function_name}${template}`);
    const alias_of = path === own_path ? null : own_path;
    return { id: i === 0 ? operation.id : `${operation.id}V1`, operation, path, alias_of };
  });
}

function inBraces(template: string): string {
  return template.replace(/:(\w+)/g, "{$1}");
}
