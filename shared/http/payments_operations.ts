/**
 * The operations of `api-v1-payments`.
 */

import { CreatePaymentBody, EmptyBody } from "../schema/payment.ts";
import {
  EmptyQuery,
  ListLedgerEntriesQuery,
  ListPaymentRefundsQuery,
  ListPaymentsQuery,
  ListRefundsQuery,
} from "../schema/list.ts";
import { CreateRefundBody } from "../schema/refund.ts";
import { answerPage, createdBetween } from "./page.ts";
import { type Operation, operation, PAYMENTS_FUNCTION } from "./operation.ts";
import { readOne } from "./read_one.ts";
import { advancePayment } from "./sandbox_operations.ts";

const home = PAYMENTS_FUNCTION;
const payment_paths = { home, test_only: false, body: EmptyBody, query: EmptyQuery };

/** Everything that `api-v1-payments` answers with a key. */
export const PAYMENTS_OPERATIONS: readonly Operation[] = [
  operation({
    ...payment_paths,
    method: "POST",
    paths: ["/v1/payments"],
    scope: "payments:write",
    body: CreatePaymentBody,
    run: ({ deps, request, body }) => deps.payments.create(request, body, true),
  }),
  operation({
    ...payment_paths,
    method: "GET",
    paths: ["/v1/payments"],
    scope: "payments:read",
    query: ListPaymentsQuery,
    run(call) {
      const { status, currency, method_kind, reference, created_after, created_before } =
        call.query;
      return answerPage(call, "/v1/payments", {
        kind: "payments",
        filters: {
          status,
          currency,
          method_kind,
          reference,
          ...createdBetween("pay_", created_after, created_before),
        },
      });
    },
  }),
  readOne("/v1/payments/:id", "payments", "payments:read"),
  operation({
    ...payment_paths,
    method: "POST",
    paths: ["/v1/payments/:id/cancel"],
    scope: "payments:write",
    run: ({ deps, request, id }) => deps.payments.cancel(request, id),
  }),
  operation({
    ...payment_paths,
    method: "POST",
    paths: ["/v1/payments/:id/refund"],
    scope: "refunds:write",
    body: CreateRefundBody,
    run: ({ deps, request, id, body }) => deps.payments.refund(request, id, body),
  }),
  operation({
    ...payment_paths,
    method: "GET",
    paths: ["/v1/payments/:id/refunds"],
    scope: "payments:read",
    query: ListPaymentRefundsQuery,
    run: (call) =>
      answerPage(call, `/v1/payments/${call.id}/refunds`, {
        kind: "refunds",
        filters: { payment_id: call.id },
        parent_id: call.id,
      }),
  }),
  operation({
    ...payment_paths,
    method: "GET",
    paths: ["/v1/refunds"],
    scope: "payments:read",
    query: ListRefundsQuery,
    run: (call) =>
      answerPage(call, "/v1/refunds", {
        kind: "refunds",
        filters: { payment_id: call.query.payment_id },
      }),
  }),
  readOne("/v1/refunds/:id", "refunds", "payments:read"),
  operation({
    ...payment_paths,
    method: "GET",
    paths: ["/v1/ledger_entries"],
    scope: "ledger:read",
    query: ListLedgerEntriesQuery,
    run(call) {
      const { payment_id, transfer_id, transaction_id, account } = call.query;
      return answerPage(call, "/v1/ledger_entries", {
        kind: "ledger_entries",
        filters: { subject_id: payment_id ?? transfer_id, transaction_id, account },
      });
    },
  }),
  operation({
    ...payment_paths,
    method: "GET",
    paths: ["/v1/balance"],
    scope: "ledger:read",
    async run({ deps, request }) {
      const balance = JSON.parse(await deps.store.balance(request.access));
      return { status: 200, body: JSON.stringify(balance) };
    },
  }),
  // The console's address of a sandbox operation.
  {
    ...advancePayment,
    own_path: `/${advancePayment.home}${advancePayment.paths[0]}`,
    paths: ["/v1/sandbox/:id/advance"],
  },
];
