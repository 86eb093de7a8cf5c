/** An operation of a provider: one shape from the request that begins it to its record. */

import type { DisputeRequest, ProviderOp } from "../../store/provider_call.ts";
import type { DepositIndex } from "../../store/provider_rows.ts";
import type { CallRow } from "../../store/commit_rows.ts";
import type { Dispute } from "../../schema/dispute.ts";
import type { Outcome, Payment } from "../../schema/payment.ts";
import type { Refund } from "../../schema/refund.ts";
import type { Transfer } from "../../schema/transfer.ts";
import type { ResourceChange } from "../changes/change_builder.ts";
import type { SimulatedResult, TestBehaviour } from "./test_values.ts";

/** An operation of a provider. */
export interface Operation {
  /** `pc_…`, the provider's idempotency key; empty until the operation is reserved. */
  id: string;
  /** Empty until the operation is reserved. */
  environment_id: string;
  op: ProviderOp;
  /** The payment or transfer as of the reservation. */
  subject: Payment | Transfer;
  /** The refund of `op: "refund"`. */
  refund: Refund | null;
  /** The dispute of an operation on one, and the rest of its request; null for other operations. */
  dispute: { present: Dispute; request: DisputeRequest } | null;
  /** The amount to authorize, capture, refund or transfer, in minor units of `currency`. */
  amount_minor: number;
  /** Upper case. */
  currency: string;
  /** The provider's reference of the instrument, for `op: "authorize"`; never a card number. */
  token: string | null;
  /** The provider's id of the payment; null until the provider has answered. */
  provider_reference: string | null;
  /** The address of a payment by stablecoin, for `op: "authorize"`. */
  deposit?: DepositIndex;
  /** The time of the reservation. */
  created_at_ms: number;
  /** The time of the first attempt. */
  first_sent_at_ms: number;
  /** Number of the attempt whose reply it is, from 1; 0: the provider replies within the request. */
  attempt: number;
  /** False: the provider would only replay its first answer, so the service looks instead. */
  may_repeat: boolean;
  request_id: string;
  /** True: a decline answers 402. */
  decline_is_error: boolean;
  /** The result that the sandbox's provider replies later; absent: that of its instrument. */
  simulated?: SimulatedResult;
  /** Of an operation that comes later: when it is due by the clock of its sandbox. */
  clock?: { due_ms: number; settings: unknown };
}

/** An operation that a request begins, with the change that the request makes by itself. */
export interface Begun<C extends ResourceChange = ResourceChange> {
  change: C;
  operation: Operation;
  /** The test values of a new payment or transfer of a sandbox, which decide its result. */
  test: { behaviour: TestBehaviour | null; outcome: Outcome | null; is_manual: boolean } | null;
  /** True: no provider takes part, so the service itself does it. */
  is_ours: boolean;
}

/** Begins an operation on the resource of a change. */
export function beginOperation<C extends ResourceChange>(
  change: C,
  op: ProviderOp,
  more: Partial<Operation> = {},
): Begun<C> {
  const { subject, context } = change;
  const operation: Operation = {
    id: "",
    environment_id: "",
    op,
    subject,
    refund: null,
    dispute: null,
    amount_minor: subject.amount_minor,
    currency: subject.currency,
    token: null,
    provider_reference: null,
    created_at_ms: context.at_ms,
    first_sent_at_ms: context.at_ms,
    attempt: 0,
    may_repeat: true,
    request_id: context.request_id ?? "",
    decline_is_error: false,
    ...more,
  };
  return { change, operation, test: null, is_ours: false };
}

/** Returns the members of the row of an operation that follow from its request. */
export function rowOf(
  { op, subject, refund, dispute, amount_minor, token, decline_is_error, simulated }: Operation,
): Pick<CallRow, "op"> & Partial<CallRow> {
  return {
    op,
    refund_id: refund?.id ?? null,
    amount_minor,
    request: {
      token,
      return_url: subject.object === "payment" && subject.livemode ? subject.return_url : null,
      ...(dispute && { dispute: dispute.request }),
      ...(simulated && { simulated }),
    },
    decline_is_error,
  };
}
