/** The operations of `api-v1-payments` on transfers. */

import { cancelTransferOf, transferOf } from "../domain/transfers/create_transfer.ts";
import { EmptyBody, EmptyQuery } from "../schema/empty.ts";
import { listOf, ListTransfersQuery } from "../schema/list.ts";
import { CreateTransferBody, Transfer } from "../schema/transfer.ts";
import { PAYMENTS_FUNCTION, type Route, route } from "./route.ts";
import { createdBetween, responsePage } from "./page.ts";
import { readOne } from "./read_one.ts";

const writing = {
  home: PAYMENTS_FUNCTION,
  group: "Transfers",
  test_only: false,
  scope: "transfers:write",
  body: EmptyBody,
  query: EmptyQuery,
  response: Transfer,
  status: 200,
} as const;

/** The operations on transfers. */
export const TRANSFER_ROUTES: readonly Route[] = [
  route({
    ...writing,
    id: "createTransfer",
    summary: "Create a transfer",
    description: "Moves money from the available balance to a bank account or a wallet.",
    method: "POST",
    paths: ["/v1/transfers"],
    body: CreateTransferBody,
    status: 201,
    errors: ["balance_insufficient", "provider_not_configured"],
    run: ({ deps, request, body }) =>
      deps.operations.create(request, () => transferOf(body, request.context)),
  }),
  route({
    ...writing,
    id: "listTransfers",
    summary: "List transfers",
    method: "GET",
    paths: ["/v1/transfers"],
    scope: "transfers:read",
    query: ListTransfersQuery,
    response: listOf(Transfer),
    run(call) {
      const { status, currency, search, created_after, created_before } = call.query;
      return responsePage(call, "/v1/transfers", {
        kind: "transfers",
        filters: {
          status,
          currency,
          search,
          ...createdBetween("tr_", created_after, created_before),
        },
      });
    },
  }),
  readOne({
    id: "getTransfer",
    group: "Transfers",
    summary: "Get a transfer",
    path: "/v1/transfers/:id",
    kind: "transfers",
    scope: "transfers:read",
    response: Transfer,
  }),
  route({
    ...writing,
    id: "cancelTransfer",
    summary: "Cancel a transfer",
    description:
      "Cancels a transfer that is `pending`. The money returns to the balance. With a live " +
      "key it works until the order has left for the bank, and never for a wallet.",
    method: "POST",
    paths: ["/v1/transfers/:id/cancel"],
    errors: ["invalid_state", "provider_refused"],
    run: ({ deps, request, id }) =>
      deps.operations.change<Transfer>(
        request,
        "transfers",
        id,
        (transfer) => cancelTransferOf(transfer, request.context),
      ),
  }),
];
