/**
 * The operations of `api-v1-payments`.
 */

import { Balance, LedgerEntry } from "../schema/ledger.ts";
import {
  EmptyQuery,
  ListLedgerEntriesQuery,
  listOf,
  ListPaymentRefundsQuery,
  ListPaymentsQuery,
  ListRefundsQuery,
} from "../schema/list.ts";
import { CreatePaymentBody, EmptyBody, Payment } from "../schema/payment.ts";
import { CreateRefundBody, Refund } from "../schema/refund.ts";
import { answerPage, createdBetween } from "./page.ts";
import { type Operation, operation, PAYMENTS_FUNCTION } from "./operation.ts";
import { readOne } from "./read_one.ts";
import { advancePayment } from "./sandbox_operations.ts";

const home = PAYMENTS_FUNCTION;
const payment_paths = {
  home,
  group: "Payments",
  test_only: false,
  body: EmptyBody,
  query: EmptyQuery,
  answer: Payment,
  status: 200,
} as const;
const RefundList = listOf(Refund);

/** Everything that `api-v1-payments` answers with a key. */
export const PAYMENTS_OPERATIONS: readonly Operation[] = [
  operation({
    ...payment_paths,
    id: "createPayment",
    summary: "Create a payment",
    description:
      "With a test key the instrument decides the result, and `outcome` overrides it. A decline " +
      "answers 402 and stores the payment, which comes with the error.",
    method: "POST",
    paths: ["/v1/payments"],
    scope: "payments:write",
    body: CreatePaymentBody,
    status: 201,
    errors: ["payment_declined", "insufficient_funds", "aml_blocked", "provider_not_configured"],
    run: ({ deps, request, body }) => deps.payments.create(request, body, true),
  }),
  operation({
    ...payment_paths,
    id: "listPayments",
    summary: "List payments",
    method: "GET",
    paths: ["/v1/payments"],
    scope: "payments:read",
    answer: listOf(Payment),
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
  readOne({
    id: "getPayment",
    group: "Payments",
    summary: "Get a payment",
    path: "/v1/payments/:id",
    kind: "payments",
    scope: "payments:read",
    answer: Payment,
  }),
  operation({
    ...payment_paths,
    id: "cancelPayment",
    summary: "Cancel a payment",
    description: "Only while it is `pending` or `requires_action`: no money has moved.",
    method: "POST",
    paths: ["/v1/payments/:id/cancel"],
    scope: "payments:write",
    errors: ["invalid_state", "provider_not_configured"],
    run: ({ deps, request, id }) => deps.payments.cancel(request, id),
  }),
  operation({
    ...payment_paths,
    id: "refundPayment",
    group: "Refunds",
    summary: "Refund a payment",
    description: "A part of it, or without an amount what is left.",
    method: "POST",
    paths: ["/v1/payments/:id/refund"],
    scope: "refunds:write",
    body: CreateRefundBody,
    answer: Refund,
    status: 201,
    errors: ["invalid_state", "provider_not_configured"],
    run: ({ deps, request, id, body }) => deps.payments.refund(request, id, body),
  }),
  operation({
    ...payment_paths,
    id: "listPaymentRefunds",
    group: "Refunds",
    summary: "List the refunds of a payment",
    method: "GET",
    paths: ["/v1/payments/:id/refunds"],
    scope: "payments:read",
    answer: RefundList,
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
    id: "listRefunds",
    group: "Refunds",
    summary: "List refunds",
    method: "GET",
    paths: ["/v1/refunds"],
    scope: "payments:read",
    answer: RefundList,
    query: ListRefundsQuery,
    run: (call) =>
      answerPage(call, "/v1/refunds", {
        kind: "refunds",
        filters: { payment_id: call.query.payment_id },
      }),
  }),
  readOne({
    id: "getRefund",
    group: "Refunds",
    summary: "Get a refund",
    path: "/v1/refunds/:id",
    kind: "refunds",
    scope: "payments:read",
    answer: Refund,
  }),
  operation({
    ...payment_paths,
    id: "listLedgerEntries",
    group: "Ledger",
    summary: "List ledger entries",
    method: "GET",
    paths: ["/v1/ledger_entries"],
    scope: "ledger:read",
    answer: listOf(LedgerEntry),
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
    id: "getBalance",
    group: "Ledger",
    summary: "Get the balance",
    description:
      "`amount_minor` of the account `available` is the amount that can be transferred. Sums are " +
      "exact JSON integers and can exceed 2^53. A client that parses numbers as doubles, as " +
      "JavaScript does, rounds such a sum unless it reads the text of the answer.",
    method: "GET",
    paths: ["/v1/balance"],
    scope: "ledger:read",
    answer: Balance,
    async run({ deps, request }) {
      // The database's text: sums can exceed the integers that JavaScript holds exactly.
      return { status: 200, body: await deps.store.balance(request.access) };
    },
  }),
  // The console's address of a sandbox operation.
  {
    ...advancePayment,
    id: "advanceSandboxPayment",
    own_path: `/${advancePayment.home}${advancePayment.paths[0]}`,
    paths: ["/v1/sandbox/:id/advance"],
  },
];
