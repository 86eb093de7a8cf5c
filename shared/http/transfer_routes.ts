/** The operations of `api-v1-payments` on transfers. */

import { cancelTransferOf, transferOf } from "../domain/transfers/create_transfer.ts";
import { ListTransfersQuery } from "../schema/list.ts";
import { CreateTransferBody } from "../schema/transfer_body.ts";
import { Transfer } from "../schema/transfer.ts";
import { type Route, route } from "./route.ts";
import { createdBetween, listRoute } from "./page.ts";
import { readOne } from "./read_one.ts";

const writing = { group: "Transfers", scope: "transfers:write", response: "Transfer" } as const;

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
  listRoute({
    ...writing,
    id: "listTransfers",
    summary: "List transfers",
    paths: ["/v1/transfers"],
    scope: "transfers:read",
    query: ListTransfersQuery,
    kind: "transfers",
    filters: ({ created_after, created_before, ...others }) => ({
      ...others,
      ...createdBetween("tr_", created_after, created_before),
    }),
  }),
  readOne({
    ...writing,
    id: "getTransfer",
    summary: "Get a transfer",
    paths: ["/v1/transfers/:id"],
    kind: "transfers",
    scope: "transfers:read",
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
