/** The operations of `api-v1-payments` on payments. */

import { DECLINE_CODES } from "../core/errors.ts";
import { cancelOf, captureOf } from "../domain/payments/capture_and_cancel.ts";
import { CANCELLABLE_STATUSES } from "../domain/payments/lifecycle.ts";
import { refuseRealCard } from "../domain/providers/instrument.ts";
import { ListPaymentsQuery, PaymentTotalsQuery } from "../schema/list.ts";
import { CapturePaymentBody, CreatePaymentBody } from "../schema/payment_body.ts";
import { Payment } from "../schema/payment.ts";
import { createPayment } from "./create_payment.ts";
import { createdBetween, listRoute } from "./page.ts";
import { type Route, route } from "./route.ts";
import { readOne } from "./read_one.ts";

const payment_paths = { group: "Payments", response: "Payment" } as const;

export const PAYMENT_ROUTES: readonly Route[] = [
  route({
    ...payment_paths,
    id: "createPayment",
    summary: "Create a payment",
    description:
      "With a test key the instrument decides the result, and `outcome` overrides it. A decline " +
      "returns 402 and stores the payment. The error contains it.",
    method: "POST",
    paths: ["/v1/payments"],
    scope: "payments:write",
    body: CreatePaymentBody,
    refuse: refuseRealCard,
    status: 201,
    errors: [...DECLINE_CODES, "invalid_state", "provider_refused", "provider_not_configured"],
    run: ({ deps, request, body }) => createPayment(deps, request, body, true),
  }),
  listRoute({
    ...payment_paths,
    id: "listPayments",
    summary: "List payments",
    paths: ["/v1/payments"],
    scope: "payments:read",
    query: ListPaymentsQuery,
    kind: "payments",
    filters: ({ created_after, created_before, ...others }) => ({
      ...others,
      ...createdBetween("pay_", created_after, created_before),
    }),
  }),
  listRoute({
    ...payment_paths,
    id: "listPaymentTotals",
    summary: "List totals of payments",
    description:
      "Counts and sums of payments by status and currency, and by span of time with `span`. A page " +
      "reads up to 20 000 payments: while `has_more` is true, read the next page, and add up items " +
      "that have the same `from`, `status` and `currency`. Sums are exact JSON integers and can " +
      "exceed 2^53.",
    paths: ["/v1/payments/totals"],
    scope: "payments:read",
    response: "PaymentTotal",
    query: PaymentTotalsQuery,
    kind: "payment_totals",
    filters: ({ from, to, span, ...others }) => ({
      ...others,
      ...createdBetween("pay_", from === undefined ? from : from - 1, to),
      ...(span !== undefined && { from_ms: String(from), bucket_s: String(span) }),
    }),
  }),
  readOne({
    ...payment_paths,
    id: "getPayment",
    summary: "Get a payment",
    paths: ["/v1/payments/:id"],
    kind: "payments",
    scope: "payments:read",
  }),
  route({
    ...payment_paths,
    id: "capturePayment",
    summary: "Capture a payment",
    description:
      "Takes the amount of an `authorized` payment, once: the whole, or less. The service " +
      "releases the rest.",
    method: "POST",
    paths: ["/v1/payments/:id/capture"],
    scope: "payments:write",
    body: CapturePaymentBody,
    errors: ["invalid_state", "provider_refused", "provider_not_configured"],
    run: ({ deps, request, id, body }) =>
      deps.operations.change<Payment>(
        request,
        "payments",
        id,
        (payment) => captureOf(payment, body, request.context),
      ),
  }),
  route({
    ...payment_paths,
    id: "cancelPayment",
    summary: "Cancel a payment",
    description: `Cancels a payment that is ${
      CANCELLABLE_STATUSES.map((status) => `\`${status}\``).join(" or ")
    }: no money has moved yet. An authorization is released.`,
    method: "POST",
    paths: ["/v1/payments/:id/cancel"],
    scope: "payments:write",
    errors: ["invalid_state", "provider_refused", "provider_not_configured"],
    run: ({ deps, request, id }) =>
      deps.operations.change<Payment>(
        request,
        "payments",
        id,
        (payment) => cancelOf(payment, request.context),
      ),
  }),
];
