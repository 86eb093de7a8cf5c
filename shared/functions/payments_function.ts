/**
 * The function `api-v1-payments` as a request handler.
 */

import type { Dependencies } from "../http/dependencies.ts";
import { API_KEY_OPERATIONS } from "../http/api_key_operations.ts";
import { CONSOLE_OPERATIONS } from "./console_operations.ts";
import { DISPUTE_OPERATIONS } from "../http/dispute_operations.ts";
import { createFunctionApp } from "../http/function_app.ts";
import { serveInternalRoutes } from "../http/internal_routes.ts";
import { LEDGER_OPERATIONS } from "../http/ledger_operations.ts";
import { serveNotifications } from "../http/notification_route.ts";
import { openapiHandlers } from "../http/openapi_route.ts";
import { type Operation, PAYMENTS_FUNCTION } from "../http/operation.ts";
import { PAYMENTS_OPERATIONS } from "../http/payments_operations.ts";
import { REFUND_OPERATIONS } from "../http/refund_operations.ts";
import { REQUEST_OPERATIONS } from "../http/request_operations.ts";
import { sandboxWorld } from "../sandbox/sandbox_world.ts";
import { TRANSFER_OPERATIONS } from "../http/transfer_operations.ts";
import { WEBHOOK_OPERATIONS } from "../http/webhook_operations.ts";

/** Every operation of the function. */
export const PAYMENTS_FUNCTION_OPERATIONS: readonly Operation[] = [
  ...PAYMENTS_OPERATIONS,
  ...REFUND_OPERATIONS,
  ...DISPUTE_OPERATIONS,
  ...LEDGER_OPERATIONS,
  ...CONSOLE_OPERATIONS,
  ...TRANSFER_OPERATIONS,
  ...WEBHOOK_OPERATIONS,
  ...API_KEY_OPERATIONS,
  ...REQUEST_OPERATIONS,
];

/** Answers requests to `/api-v1-payments/…`. */
export function createPaymentsFunction(
  deps: Dependencies,
): (request: Request, info?: unknown) => Response | Promise<Response> {
  const app = createFunctionApp(
    PAYMENTS_FUNCTION,
    PAYMENTS_FUNCTION_OPERATIONS,
    deps,
    {
      world: sandboxWorld(deps),
      open: { "/v1/openapi.json": openapiHandlers(deps) },
      serveKeyless(app) {
        serveInternalRoutes(app, deps);
        serveNotifications(app, deps);
      },
    },
  );
  return (request, info) => app.fetch(request, info as object);
}
