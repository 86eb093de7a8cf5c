/** The function `api-v1-payments` as a request handler. */

import type { SandboxDependencies } from "../sandbox/sandbox.ts";
import { API_KEY_ROUTES } from "../http/api_key_routes.ts";
import { type BridgeDependencies, serveBridge } from "./bridge_routes.ts";
import { CONSOLE_ROUTES } from "./console_routes.ts";
import { serveCheckoutPage } from "../http/checkout_page_routes.ts";
import { CHECKOUT_ROUTES } from "../http/checkout_routes.ts";
import { CUSTOMER_ROUTES } from "../http/customer_routes.ts";
import { DISPUTE_ROUTES } from "../http/dispute_routes.ts";
import { createFunctionApp } from "../http/function_app.ts";
import { serveInternalRoutes } from "../http/internal_routes.ts";
import { LEDGER_ROUTES } from "../http/ledger_routes.ts";
import { serveNotifications } from "../http/notification_route.ts";
import { openapiHandlers } from "../http/openapi_route.ts";
import { PAYMENTS_FUNCTION, type Route } from "../http/route.ts";
import { PAYMENT_ROUTES } from "../http/payment_routes.ts";
import { REFUND_ROUTES } from "../http/refund_routes.ts";
import { REQUEST_ROUTES } from "../http/request_routes.ts";
import { sandboxEnvironment } from "../sandbox/sandbox_environment.ts";
import { INSTRUMENT_ROUTES } from "../http/instrument_routes.ts";
import { TRANSFER_ROUTES } from "../http/transfer_routes.ts";
import { BANK_DETAILS_ROUTES } from "../http/bank_details_routes.ts";
import { WEBHOOK_ROUTES } from "../http/webhook_routes.ts";

export const PAYMENTS_FUNCTION_ROUTES: readonly Route[] = [
  ...PAYMENT_ROUTES,
  ...REFUND_ROUTES,
  ...DISPUTE_ROUTES,
  ...LEDGER_ROUTES,
  ...CONSOLE_ROUTES,
  ...INSTRUMENT_ROUTES,
  ...CHECKOUT_ROUTES,
  ...CUSTOMER_ROUTES,
  ...TRANSFER_ROUTES,
  ...BANK_DETAILS_ROUTES,
  ...WEBHOOK_ROUTES,
  ...API_KEY_ROUTES,
  ...REQUEST_ROUTES,
];

/** Responds to requests to `/api-v1-payments/…`. */
export function createPaymentsFunction(
  deps: SandboxDependencies & BridgeDependencies,
): (request: Request, info?: unknown) => Response | Promise<Response> {
  const sandbox = sandboxEnvironment(deps);
  const app = createFunctionApp(
    PAYMENTS_FUNCTION,
    PAYMENTS_FUNCTION_ROUTES,
    deps,
    {
      sandbox,
      open: { "/v1/openapi.json": openapiHandlers(deps) },
      servePage: (app) => serveCheckoutPage(app, deps, sandbox),
      serveKeyless(app) {
        serveInternalRoutes(app, deps);
        serveNotifications(app, deps);
        serveBridge(app, deps);
      },
    },
  );
  return (request, info) => app.fetch(request, info as object);
}
