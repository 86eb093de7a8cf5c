/** The operations of `api-v1-payments` on refunds. */

import { refundOf } from "../domain/payments/refund_payment.ts";
import type { Payment } from "../schema/payment.ts";
import { ListPaymentRefundsQuery, ListRefundsQuery } from "../schema/list.ts";
import { CreateRefundBody } from "../schema/refund_body.ts";
import { type Route, route } from "./route.ts";
import { listRoute, responsePage } from "./page.ts";
import { readOne } from "./read_one.ts";

const refunds = { group: "Refunds", scope: "payments:read" } as const;

export const REFUND_ROUTES: readonly Route[] = [
  route({
    ...refunds,
    id: "refundPayment",
    summary: "Refund a payment",
    description: "Refunds a part of the payment, or without an amount the rest.",
    method: "POST",
    paths: ["/v1/payments/:id/refund"],
    scope: "refunds:write",
    body: CreateRefundBody,
    response: "Refund",
    status: 201,
    errors: ["invalid_state", "provider_not_configured"],
    run: ({ deps, request, id, body }) =>
      deps.operations.change<Payment>(
        request,
        "payments",
        id,
        (payment) => refundOf(payment, body, request.context),
      ),
  }),
  route({
    ...refunds,
    id: "listPaymentRefunds",
    summary: "List the refunds of a payment",
    method: "GET",
    paths: ["/v1/payments/:id/refunds"],
    response: "RefundList",
    query: ListPaymentRefundsQuery,
    run: (call) =>
      responsePage(call, `/v1/payments/${call.id}/refunds`, {
        kind: "refunds",
        filters: { payment_id: call.id },
        parent_id: call.id,
      }),
  }),
  listRoute({
    ...refunds,
    id: "listRefunds",
    summary: "List refunds",
    paths: ["/v1/refunds"],
    response: "Refund",
    query: ListRefundsQuery,
    kind: "refunds",
  }),
  readOne({
    ...refunds,
    id: "getRefund",
    summary: "Get a refund",
    paths: ["/v1/refunds/:id"],
    kind: "refunds",
    response: "Refund",
  }),
];
