/**
 * The operations of `api-v1-payments` on transfers.
 */

import { EmptyQuery, ListTransfersQuery } from "../schema/list.ts";
import { EmptyBody } from "../schema/payment.ts";
import { CreateTransferBody } from "../schema/transfer.ts";
import { type Operation, operation, PAYMENTS_FUNCTION } from "./operation.ts";
import { answerPage, createdBetween } from "./page.ts";
import { readOne } from "./read_one.ts";

const writing = {
  home: PAYMENTS_FUNCTION,
  test_only: false,
  scope: "transfers:write",
  body: EmptyBody,
  query: EmptyQuery,
} as const;

/** Money out. */
export const TRANSFER_OPERATIONS: readonly Operation[] = [
  operation({
    ...writing,
    method: "POST",
    paths: ["/v1/transfers"],
    body: CreateTransferBody,
    run: ({ deps, request, body }) => deps.transfers.create(request, body),
  }),
  operation({
    ...writing,
    method: "GET",
    paths: ["/v1/transfers"],
    scope: "transfers:read",
    query: ListTransfersQuery,
    run(call) {
      const { status, currency, created_after, created_before } = call.query;
      return answerPage(call, "/v1/transfers", {
        kind: "transfers",
        filters: { status, currency, ...createdBetween("tr_", created_after, created_before) },
      });
    },
  }),
  readOne("/v1/transfers/:id", "transfers", "transfers:read"),
  operation({
    ...writing,
    method: "POST",
    paths: ["/v1/transfers/:id/cancel"],
    run: ({ deps, request, id }) => deps.transfers.cancel(request, id),
  }),
];
