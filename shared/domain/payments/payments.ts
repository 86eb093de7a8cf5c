/**
 * The operations on payments. They connect the store with the pure modules that decide.
 */

import type * as z from "zod";
import { FairQueue } from "../../jobs/fair_queue.ts";
import type {
  AuthenticatePaymentBody,
  CapturePaymentBody,
  CreatePaymentBody,
  Payment,
} from "../../schema/payment.ts";
import type { AdvancePaymentBody } from "../../schema/payment_advance.ts";
import type { Dispute, SubmitEvidenceBody } from "../../schema/dispute.ts";
import type { ResetSandboxBody } from "../../schema/service.ts";
import type { AdvanceRefundBody, CreateRefundBody } from "../../schema/refund.ts";
import { amountOf } from "../../schema/values.ts";
import type { Change } from "../../store/commit_rows.ts";
import type { FaultStore } from "../../store/fault_store.ts";
import type { Store } from "../../store/store.ts";
import { readRefund } from "../changes/read_resource.ts";
import { type ChangeWriter, replyOf, unavailable } from "../changes/change_writer.ts";
import type { PayerUrls } from "./challenge_url.ts";
import { decideCreate } from "./create_payment.ts";
import { decideAccept, decideEvidence } from "./dispute_payment.ts";
import { currentDispute, withDispute } from "./load_dispute.ts";
import { faultyRefund } from "./faulty_moves.ts";
import { readInstrument } from "../providers/instrument.ts";
import { FaultOfRequest, type ProviderFault } from "../providers/provider_fault.ts";
import { decideAdvance, decideAuthenticate, decideCancel, decideCapture } from "./move_payment.ts";
import { decideAdvanceRefund, decideRefund } from "./refund_payment.ts";
import { type Reply, type ServiceRequest, withoutRateCount } from "../changes/service_request.ts";

/** The operations that change payments. Each throws `ApiError`. */
export interface Payments {
  create(
    request: ServiceRequest,
    body: CreatePaymentBody,
    decline_is_error: boolean,
  ): Promise<Reply>;
  capture(request: ServiceRequest, id: string, body: CapturePaymentBody): Promise<Reply>;
  cancel(request: ServiceRequest, id: string): Promise<Reply>;
  refund(request: ServiceRequest, id: string, body: CreateRefundBody): Promise<Reply>;
  /** Sends evidence for a dispute. `id` is that of the dispute, here and in `acceptDispute`. */
  submitEvidence(request: ServiceRequest, id: string, body: SubmitEvidenceBody): Promise<Reply>;
  acceptDispute(request: ServiceRequest, id: string): Promise<Reply>;
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
  /** Moves a pending refund of the sandbox. */
  advanceRefund(
    request: ServiceRequest,
    id: string,
    body: z.infer<typeof AdvanceRefundBody>,
  ): Promise<Reply>;
  reset(request: ServiceRequest, body: z.infer<typeof ResetSandboxBody>): Promise<Reply>;
}

/** The operations that a provider takes part in. Live keys and sandboxes have one set each. */
export type LivePayments = Pick<
  Payments,
  "create" | "capture" | "cancel" | "refund" | "submitEvidence" | "acceptDispute"
>;

/** Creates the operations over a store. */
export function createPayments(
  options: {
    store: Store;
    faults: FaultStore;
    changes: ChangeWriter;
    live: LivePayments;
    urls: PayerUrls;
  },
): Payments {
  const { store, faults, changes, live, urls } = options;
  const resets = new FairQueue({ slots: Infinity, levels: [1] });
  const sandbox = sandboxPayments(store, changes, faults, urls);
  const of = ({ context }: ServiceRequest) => context.livemode ? live : sandbox;
  return {
    create: (request, body, decline_is_error) =>
      of(request).create(request, body, decline_is_error),
    capture: (request, id, body) => of(request).capture(request, id, body),
    cancel: (request, id) => of(request).cancel(request, id),
    refund: (request, id, body) => of(request).refund(request, id, body),
    submitEvidence: (request, id, body) => of(request).submitEvidence(request, id, body),
    acceptDispute: (request, id) => of(request).acceptDispute(request, id),

    advance: (request, id, { to, reason, amount_received }) =>
      changes.change<Payment>(
        request,
        "payments",
        id,
        async (payment) => {
          const dispute = await currentDispute(store, request, payment);
          const options = { dispute, reason, amount_received };
          return decideAdvance(payment, to, urls, request.context, options);
        },
      ),

    authenticate: (request, id, { result }) =>
      changes.change<Payment>(
        request,
        "payments",
        id,
        (payment) => decideAuthenticate(payment, result, request.context),
      ),

    async advanceRefund(request, id, { to }) {
      const loaded = await store.load(request.access, "refunds", id, request.idempotency);
      if (loaded.outcome === "replay") return { answer: loaded.answer, replayed: true };
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
          return decideAdvanceRefund(payment, refund.body, to, request.context);
        },
      );
    },

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

/**
 * The operations of sandboxes, whose provider is a pure function. Each is one commit. If the sandbox
 * has declared faults of its provider, each asks for them before.
 */
function sandboxPayments(
  store: Store,
  changes: ChangeWriter,
  faults: FaultStore,
  urls: PayerUrls,
): LivePayments {
  function change(
    request: ServiceRequest,
    id: string,
    operation: "capture" | "cancel" | "refund",
    decide: (payment: Payment, fault: ProviderFault | null) => Change,
  ): Promise<Reply> {
    if (!request.has_provider_faults) {
      return changes.change<Payment>(request, "payments", id, (payment) => decide(payment, null));
    }
    const fault = new FaultOfRequest(faults, request);
    return changes.change<Payment>(
      request,
      "payments",
      id,
      async (payment) => decide(payment, await fault.find(operation, payment.method_kind)),
    ).then((reply) => fault.name(reply));
  }

  /** Changes a dispute together with its payment. */
  const dispute = (
    request: ServiceRequest,
    id: string,
    decide: (payment: Payment, dispute: Dispute) => Change,
  ) =>
    withDispute(store, request, id, (asked, payment_id, present) =>
      changes.change<Payment>(
        asked,
        "payments",
        payment_id,
        async (payment) => decide(payment, (await present()).dispute),
      ));
  return {
    async create(request, body, decline_is_error) {
      const context = { ...request.context, urls, decline_is_error };
      if (!request.has_provider_faults) {
        return await changes.create(request, () => decideCreate(body, context));
      }
      const fault = new FaultOfRequest(faults, request);
      const reply = await changes.create(request, async () => {
        const { kind } = readInstrument(body, false, context.at_ms);
        return decideCreate(body, { ...context, fault: await fault.find("authorize", kind) });
      });
      return fault.name(reply);
    },

    capture: (request, id, body) =>
      change(
        request,
        id,
        "capture",
        (payment, fault) => decideCapture(payment, body, request.context, fault),
      ),

    cancel: (request, id) =>
      change(
        request,
        id,
        "cancel",
        (payment, fault) => decideCancel(payment, request.context, fault),
      ),

    refund: (request, id, body) =>
      change(
        request,
        id,
        "refund",
        (payment, fault) =>
          fault
            ? faultyRefund(payment, amountOf(body), body, fault, request.context)
            : decideRefund(payment, amountOf(body), body, request.context),
      ),

    submitEvidence: (request, id, body) =>
      dispute(
        request,
        id,
        (payment, present) => decideEvidence(payment, present, body, request.context),
      ),

    acceptDispute: (request, id) =>
      dispute(request, id, (payment, present) => decideAccept(payment, present, request.context)),
  };
}
