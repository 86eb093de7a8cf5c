/**
 * The operations on transfers. They connect the store with the pure module that decides.
 */

import type { CreateTransferBody, Transfer } from "../../schema/transfer.ts";
import type { ChangeWriter } from "../changes/change_writer.ts";
import type { FaultStore } from "../../store/fault_store.ts";
import { FaultOfRequest } from "../providers/provider_fault.ts";
import {
  decideAdvanceTransfer,
  decideCancelTransfer,
  decideTransfer,
  kindOfTransfer,
} from "./create_transfer.ts";
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
export function createTransfers(
  changes: ChangeWriter,
  live: LiveTransfers,
  faults: FaultStore,
): Transfers {
  return {
    async create(request, body) {
      if (request.context.livemode) return await live.create(request, body);
      if (!request.has_provider_faults) {
        return await changes.create(request, () => decideTransfer(body, request.context));
      }
      const fault = new FaultOfRequest(faults, request);
      const reply = await changes.create(request, async () => {
        const found = await fault.find("transfer", kindOfTransfer(body));
        return decideTransfer(body, request.context, found);
      });
      return fault.name(reply);
    },

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
