/**
 * Payments and transfers with live keys: claim, call, record (architecture §7). The claim commits
 * the payment or refund as `pending`, the idempotency key as under way, and the call. Nothing is
 * sent before that commit, and no database connection is held while the provider answers.
 */

import { ApiError } from "../../core/errors.ts";
import type { CreatePaymentBody, Payment } from "../../schema/payment.ts";
import type { Refund } from "../../schema/refund.ts";
import type { CreateTransferBody, Transfer } from "../../schema/transfer.ts";
import { amountOf } from "../../schema/values.ts";
import type { Answer, Change } from "../../store/commit_rows.ts";
import type { Store } from "../../store/store.ts";
import type { WaitingRequests } from "../../store/waiting_requests.ts";
import { ChangeBuilder, type Subject } from "../changes/change_builder.ts";
import type { ChangeWriter } from "../changes/change_writer.ts";
import { type Reply, type ServiceRequest, withoutRateCount } from "../changes/service_request.ts";
import { beginPayment } from "../payments/create_payment.ts";
import { invalidState, isCancellable, isDeposit, nextStatuses } from "../payments/lifecycle.ts";
import { checkEvidence, checkOpen } from "../payments/dispute_payment.ts";
import { type StoredDispute, withDispute } from "../payments/load_dispute.ts";
import { captureAmount } from "../payments/move_payment.ts";
import type { LivePayments } from "../payments/payments.ts";
import { claimRefund } from "../payments/refund_payment.ts";
import { cancel } from "../payments/settlement.ts";
import { beginTransfer } from "../transfers/create_transfer.ts";
import type { LiveTransfers } from "../transfers/transfers.ts";
import { CALL_DEADLINE_MS, type CallRunner } from "./call_runner.ts";
import type { OwnCall } from "./decide_result.ts";

/** Time for which a request has its call to itself: the deadline, and time to record. */
const LEASE_MS = CALL_DEADLINE_MS + 7_000;
/** Longest wait of a request for its twin, and the pause between two looks (contract §5). */
const TWIN_PATIENCE_MS = 3_000;
const TWIN_PAUSE_MS = 50;

/** The answer under the idempotency key while the call is under way. */
const UNDER_WAY: Answer = { status: 102, body: "" };

/** A change that needs no provider. */
interface Decided {
  change: Change;
}

/** A change that claims a call, and the parts of the call. */
interface Claim extends Decided {
  subject: Payment | Transfer;
  refund: Refund | null;
  dispute: OwnCall["dispute"];
  op: OwnCall["op"];
  amount_minor: number;
  token: string | null;
  decline_is_error: boolean;
}

/**
 * The operations of live keys over a writer of changes and a runner of calls.
 * @param waits limits the operations that wait for a provider or for a twin, before they claim
 */
export function createLiveOperations(
  store: Store,
  changes: ChangeWriter,
  runner: CallRunner,
  waits: WaitingRequests,
): LivePayments & { transfers: LiveTransfers } {
  function held(
    request: ServiceRequest,
    run: (request: ServiceRequest) => Promise<Reply>,
  ): Promise<Reply> {
    return waits.hold(request.access.key_hash, () => afterTwin(request, run));
  }

  /** Claims a new payment or transfer, and sends its call. */
  function create(request: ServiceRequest, decide: () => Claim): Promise<Reply> {
    return held(request, async (asked) => {
      let claim: Claim | null = null;
      const reply = await changes.create(asked, () => (claim = decide()).change);
      return await send(asked, reply, claim);
    });
  }

  /** Claims a change of a payment, and sends its call. */
  function change(
    request: ServiceRequest,
    id: string,
    decide: (payment: Payment) => Claim | Decided | Promise<Claim>,
  ): Promise<Reply> {
    return held(request, async (asked) => {
      let claim: Claim | null = null;
      const reply = await changes.change<Payment>(asked, "payments", id, async (payment) => {
        const decided = await decide(payment);
        claim = "op" in decided ? decided : null;
        return decided.change;
      });
      return await send(asked, reply, claim);
    });
  }

  /** Claims an operation on a dispute, and sends its call. */
  function changeDispute(
    request: ServiceRequest,
    id: string,
    decide: (payment: Payment, stored: StoredDispute) => Claim,
  ): Promise<Reply> {
    return held(
      request,
      (asked) =>
        withDispute(
          store,
          asked,
          id,
          (again, payment_id, present) =>
            change(again, payment_id, async (payment) => decide(payment, await present())),
        ),
    );
  }

  async function send(
    { context }: ServiceRequest,
    reply: Reply,
    claim: Claim | null,
  ): Promise<Reply> {
    if (!reply.call || !claim) return reply;
    const { call_id, account, provider_reference, created_at, deposit } = reply.call;
    const { subject, refund, dispute, op, amount_minor, token, decline_is_error } = claim;
    const answer = await runner.run(account, {
      id: call_id,
      environment_id: account.environment_id,
      op,
      subject,
      refund,
      dispute,
      amount_minor,
      currency: subject.currency,
      instrument: token === null ? null : { token },
      provider_reference,
      ...(deposit && { deposit }),
      created_at_ms: Date.parse(created_at),
      first_sent_at_ms: Date.parse(created_at),
      attempt: 1,
      may_repeat: true,
      request_id: context.request_id,
      decline_is_error,
    });
    return { answer, replayed: false };
  }

  return {
    create: (request, body, decline_is_error) =>
      create(request, () => claimPayment(request, body, decline_is_error)),

    capture: (request, id, body) =>
      change(request, id, (payment) => {
        const amount_minor = captureAmount(payment, body);
        return claimOf(request, payment, "capture", amount_minor);
      }),

    cancel: (request, id) =>
      change(request, id, (payment) => {
        if (!isCancellable(payment)) throw invalidState("cancel", payment, nextStatuses(payment));
        // A chain cannot cancel. The operator handles money that arrives later.
        if (isDeposit(payment)) return cancelDeposit(request, payment);
        return claimOf(request, payment, "cancel", payment.amount_minor);
      }),

    refund: (request, id, body) =>
      change(request, id, (payment) => {
        const builder = new ChangeBuilder(payment, request.context);
        const refund = claimRefund(builder, amountOf(body), body);
        return finishClaim(builder, "refund", { refund, amount_minor: refund.amount_minor });
      }),

    submitEvidence: (request, id, { text, submit = true }) =>
      changeDispute(request, id, (payment, stored) => {
        checkEvidence(stored.dispute, request.context.at_ms);
        return claimDispute(request, payment, "dispute_evidence", stored, { text, submit });
      }),

    acceptDispute: (request, id) =>
      changeDispute(request, id, (payment, stored) => {
        checkOpen(stored.dispute, "accept the dispute");
        return claimDispute(request, payment, "dispute_accept", stored, {
          text: null,
          submit: false,
        });
      }),

    transfers: {
      create: (request, body) => create(request, () => claimTransfer(request, body)),
    },
  };
}

function claimPayment(
  { context }: ServiceRequest,
  body: CreatePaymentBody,
  decline_is_error: boolean,
): Claim {
  const { change, instrument } = beginPayment(body, context);
  return finishClaim(change, "authorize", {
    token: instrument.token ?? null,
    decline_is_error,
  });
}

/** Cancels a payment whose address has received nothing. */
function cancelDeposit({ context }: ServiceRequest, payment: Payment): Decided {
  const builder = new ChangeBuilder(payment, context);
  cancel(builder);
  return { change: builder.finish({ status: 200, body: builder.body }) };
}

function claimTransfer({ context }: ServiceRequest, body: CreateTransferBody): Claim {
  return finishClaim(beginTransfer(body, context), "transfer", {});
}

/** Makes the claim of a call that changes nothing before its result. */
function claimOf(
  { context }: ServiceRequest,
  payment: Payment,
  op: OwnCall["op"],
  amount_minor: number,
): Claim {
  return finishClaim(new ChangeBuilder(payment, context), op, { amount_minor });
}

/** Makes the claim of an operation on a dispute. */
function claimDispute(
  { context }: ServiceRequest,
  payment: Payment,
  op: OwnCall["op"],
  { dispute, provider_reference: reference }: StoredDispute,
  more: { text: string | null; submit: boolean },
): Claim {
  const request = { id: dispute.id, reference, ...more };
  return finishClaim(new ChangeBuilder(payment, context), op, {
    amount_minor: dispute.amount_minor,
    dispute: { present: dispute, request },
  });
}

function finishClaim<T extends Subject>(
  builder: ChangeBuilder<T>,
  op: OwnCall["op"],
  more: Partial<Claim>,
): Claim {
  const { subject } = builder;
  const { refund = null, dispute = null, amount_minor = subject.amount_minor, token = null } = more;
  const decline_is_error = more.decline_is_error ?? false;
  builder.addCall({
    op,
    refund_id: refund?.id ?? null,
    amount_minor,
    request: {
      token,
      return_url: subject.object === "payment" ? subject.return_url : null,
      ...(dispute && { dispute: dispute.request }),
    },
    decline_is_error,
    lease_ms: LEASE_MS,
  });
  return {
    change: builder.finish(UNDER_WAY),
    subject,
    refund,
    dispute,
    op,
    amount_minor,
    token,
    decline_is_error,
  };
}

/**
 * Runs a request. If its twin is under way, the request waits for the twin's answer, without a
 * database connection. Throws `idempotency_in_progress` after `TWIN_PATIENCE_MS`.
 */
async function afterTwin(
  request: ServiceRequest,
  run: (request: ServiceRequest) => Promise<Reply>,
): Promise<Reply> {
  const give_up_at = performance.now() + TWIN_PATIENCE_MS;
  for (let asked = request;; asked = { ...request, access: withoutRateCount(request.access) }) {
    try {
      return await run(asked);
    } catch (error) {
      const waits = error instanceof ApiError && error.code === "idempotency_in_progress" &&
        performance.now() < give_up_at;
      if (!waits) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, TWIN_PAUSE_MS));
  }
}
