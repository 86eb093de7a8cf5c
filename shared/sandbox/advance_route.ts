/** The advance of a payment, the one operation of sandboxes that `api-v1-payments` serves too. */

import { AdvancePaymentBody } from "../schema/payment_advance.ts";
import { type Route, SANDBOX_FUNCTION } from "../http/route.ts";
import { sandboxRoute } from "./sandbox.ts";

/** What the operations of sandboxes share. */
export const SANDBOX_ROUTE = {
  home: SANDBOX_FUNCTION,
  group: "Sandbox",
  method: "POST",
  scope: "sandbox:write",
  test_only: true,
  response: "Payment",
} as const;

/** The advance of a payment. Both functions serve it (console_routes.ts). */
export const advancePayment: Route = sandboxRoute({
  ...SANDBOX_ROUTE,
  id: "advancePayment",
  summary: "Advance a payment",
  description:
    "Moves a payment to another status without waiting. An advance to the current status changes " +
    "nothing.",
  paths: ["/payments/:id/advance", "/v1/payments/:id/advance"],
  body: AdvancePaymentBody,
  errors: ["invalid_state"],
  run: ({ deps, request, id, body }) => deps.sandbox.moves.advancePayment(request, id, body),
});
