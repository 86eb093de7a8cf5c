/**
 * The operations that only sandboxes have: they act for the provider, the payer and its bank. Their
 * decisions load with the first of them (ADR 0009).
 */

import type * as z from "zod";
import { FairQueue } from "../jobs/fair_queue.ts";
import type { AuthenticatePaymentBody } from "../schema/payment_body.ts";
import type { Payment } from "../schema/payment.ts";
import type { AdvancePaymentBody } from "../schema/payment_advance.ts";
import type { AdvanceRefundBody } from "../schema/refund_body.ts";
import type { ResetSandboxBody } from "../schema/service.ts";
import type { AdvanceTransferBody } from "../schema/transfer_body.ts";
import type { Transfer } from "../schema/transfer.ts";
import type { Store } from "../store/store.ts";
import { type ChangeWriter, replyOf, unavailable } from "../domain/changes/change_writer.ts";
import { readRefund } from "../domain/changes/read_resource.ts";
import {
  type Reply,
  type ServiceRequest,
  withoutRateCount,
} from "../domain/changes/service_request.ts";
import { currentDispute } from "../domain/operations/load_dispute.ts";
import type { PayerUrls } from "./challenge_url.ts";

const decisions = () => import("./advance.ts");

type Move<Schema extends z.ZodType> = (
  request: ServiceRequest,
  id: string,
  body: z.infer<Schema>,
) => Promise<Reply>;

/** The operations of sandboxes. Each throws `ApiError`. */
export interface SandboxMoves {
  advancePayment: Move<typeof AdvancePaymentBody>;
  authenticate: Move<typeof AuthenticatePaymentBody>;
  advanceRefund: Move<typeof AdvanceRefundBody>;
  advanceTransfer: Move<typeof AdvanceTransferBody>;
  reset(request: ServiceRequest, body: z.infer<typeof ResetSandboxBody>): Promise<Reply>;
}

/** Creates the operations over a store. */
export function createSandboxMoves(
  { store, changes, urls }: { store: Store; changes: ChangeWriter; urls: PayerUrls },
): SandboxMoves {
  const resets = new FairQueue({ slots: Infinity, levels: [1] });
  return {
    advancePayment: (request, id, { to, ...options }) =>
      changes.change<Payment>(
        request,
        "payments",
        id,
        async (payment) => {
          const { decideAdvance } = await decisions();
          const dispute = await currentDispute(store, request, payment);
          return decideAdvance(payment, to, urls, request.context, { ...options, dispute });
        },
      ),

    authenticate: (request, id, { result }) =>
      changes.change<Payment>(
        request,
        "payments",
        id,
        async (payment) => (await decisions()).decideAuthenticate(payment, result, request.context),
      ),

    async advanceRefund(request, id, { to, return_code }) {
      const loaded = await store.load(request.access, "refunds", id, request.idempotency);
      if (loaded.outcome === "replay") return { response: loaded.response, replayed: true };
      const access = withoutRateCount(request.access);
      const { payment_id } = readRefund(loaded.body);
      return await changes.change<Payment>(
        { ...request, access },
        "payments",
        payment_id,
        async (payment) => {
          // After the payment: each change of a refund changes its payment's sequence as well.
          const refund = await store.load(access, "refunds", id);
          if (refund.outcome === "replay") throw new Error("a load without a key has no replay");
          const { decideAdvanceRefund } = await decisions();
          return decideAdvanceRefund(payment, refund.body, to, request.context, return_code);
        },
      );
    },

    advanceTransfer: (request, id, { to, return_code }) =>
      changes.change<Transfer>(
        request,
        "transfers",
        id,
        async (transfer) =>
          (await decisions()).decideAdvanceTransfer(transfer, to, request.context, return_code),
      ),

    // One at a time for each key: a reset that waits for running changes occupies a connection.
    reset: ({ access, idempotency }, { webhook_endpoints }) =>
      resets.run(
        [access.key_hash],
        async () =>
          replyOf(await store.resetSandbox(access, idempotency, webhook_endpoints === true)) ??
            unavailable(),
      ),
  };
}
