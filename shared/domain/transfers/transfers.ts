/**
 * The operations on transfers. They connect the store with the pure module that decides.
 */

import type { CreateTransferBody, Transfer } from "../../schema/transfer.ts";
import type { ChangeWriter } from "../changes/change_writer.ts";
import { decideAdvanceTransfer, decideCancelTransfer, decideTransfer } from "./create_transfer.ts";
import type { Reply, ServiceRequest } from "../changes/service_request.ts";

/** The operations that change transfers. Each throws `ApiError`. */
export interface Transfers {
  create(request: ServiceRequest, body: CreateTransferBody): Promise<Reply>;
  cancel(request: ServiceRequest, id: string): Promise<Reply>;
  advance(request: ServiceRequest, id: string, to: Transfer["status"]): Promise<Reply>;
}

/** The operations of live keys, whose transfers a provider makes. */
export type LiveTransfers = Pick<Transfers, "create">;

/** Creates the operations over a writer of changes. */
export function createTransfers(changes: ChangeWriter, live: LiveTransfers): Transfers {
  return {
    create: (request, body) =>
      request.context.livemode
        ? live.create(request, body)
        : changes.create(request, () => decideTransfer(body, request.context)),

    cancel: (request, id) =>
      changes.change<Transfer>(
        request,
        "transfers",
        id,
        (transfer) => decideCancelTransfer(transfer, request.context),
      ),

    advance: (request, id, to) =>
      changes.change<Transfer>(
        request,
        "transfers",
        id,
        (transfer) => decideAdvanceTransfer(transfer, to, request.context),
      ),
  };
}
