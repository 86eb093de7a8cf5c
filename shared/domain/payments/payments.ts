/**
 * The operations on payments. They connect the store with the pure modules that decide.
 */

import type * as z from "zod";
import type {
  AdvancePaymentBody,
  AuthenticatePaymentBody,
  CreatePaymentBody,
  Payment,
} from "../../schema/payment.ts";
import type { CreateRefundBody } from "../../schema/refund.ts";
import { amountOf } from "../../schema/values.ts";
import type { Store } from "../../store/store.ts";
import { type ChangeWriter, providerOf, replyOf, unavailable } from "../changes/change_writer.ts";
import { decideCreate } from "./create_payment.ts";
import { KeyedQueue } from "../changes/keyed_queue.ts";
import { decideAdvance, decideAuthenticate, decideCancel } from "./move_payment.ts";
import { decideRefund } from "./refund_payment.ts";
import type { Reply, ServiceRequest } from "../changes/service_request.ts";

/** The operations that change payments. Each throws `ApiError`. */
export interface Payments {
  create(
    request: ServiceRequest,
    body: CreatePaymentBody,
    decline_is_error: boolean,
  ): Promise<Reply>;
  cancel(request: ServiceRequest, id: string): Promise<Reply>;
  refund(request: ServiceRequest, id: string, body: CreateRefundBody): Promise<Reply>;
  advance(
    request: ServiceRequest,
    id: string,
    body: z.infer<typeof AdvancePaymentBody>,
  ): Promise<Reply>;
  authenticate(
    request: ServiceRequest,
    id: string,
    body: z.infer<typeof AuthenticatePaymentBody>,
  ): Promise<Reply>;
  reset(request: ServiceRequest): Promise<Reply>;
}

/** Creates the operations over a store. */
export function createPayments(
  options: { store: Store; changes: ChangeWriter; base_url: string },
): Payments {
  const { store, changes, base_url } = options;
  const resets = new KeyedQueue();
  return {
    create: (request, body, decline_is_error) =>
      changes.create(request, () => {
        const { context } = request;
        const provider = providerOf(context);
        return decideCreate(body, { ...context, provider, base_url, decline_is_error });
      }),

    cancel: (request, id) =>
      changes.change<Payment>(request, "payments", id, async (payment) => {
        const change = decideCancel(payment, request.context);
        await providerOf(request.context).cancel(payment);
        return change;
      }),

    refund: (request, id, body) =>
      changes.change<Payment>(request, "payments", id, async (payment) => {
        const change = decideRefund(payment, amountOf(body), body, request.context);
        await providerOf(request.context).refund(payment, change.refunds[0]!.amount_minor);
        return change;
      }),

    advance: (request, id, { to }) =>
      changes.change<Payment>(
        request,
        "payments",
        id,
        (payment) => decideAdvance(payment, to, base_url, request.context),
      ),

    authenticate: (request, id, { result }) =>
      changes.change<Payment>(
        request,
        "payments",
        id,
        (payment) => decideAuthenticate(payment, result, request.context),
      ),

    // One at a time for each key: a reset that waits for running changes occupies a connection.
    reset: ({ access, idempotency }) =>
      resets.run(
        access.key_hash,
        async () => replyOf(await store.resetSandbox(access, idempotency)) ?? unavailable(),
      ),
  };
}
