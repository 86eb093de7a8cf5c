/** An operation of a provider: one shape from the request that begins it to its record. */

import { formatTime } from "../../core/clock.ts";
import type { NewOperationRow, OperationRow, ProviderOp } from "../../store/operation_row.ts";
import type { ProviderEvent, ProviderEventState } from "../../store/provider_rows.ts";
import type { PayeeCheck } from "../../schema/bank_account.ts";
import type { Dispute } from "../../schema/dispute.ts";
import type { AuthenticationResult, InstrumentUsage, Outcome } from "../../schema/payment_body.ts";
import type { Payment } from "../../schema/payment.ts";
import type { Refund } from "../../schema/refund.ts";
import type { Transfer } from "../../schema/transfer.ts";
import type { ResourceChange } from "../changes/change_builder.ts";
import { readRefund, readSubject } from "../changes/read_resource.ts";
import type { BankDetails } from "./bank_details.ts";
import type { TestBehaviour } from "./test_values.ts";

/** An operation of a provider: its row, with the resources that it is about. */
export interface Operation extends OperationRow {
  subject: Payment | Transfer;
  /** The refund of `op: "refund"`. */
  refund: Refund | null;
  dispute: Dispute | null;
  /** Of the payer or payee at a bank, within the request that names them or their instrument. */
  details?: BankDetails | null;
}

export interface TestValues {
  behaviour: TestBehaviour | null;
  outcome: Outcome | null;
  is_manual: boolean;
  /** How a payment uses a saved instrument. Null or absent: it uses none. */
  usage?: InstrumentUsage | null;
  /** The result of 3-D Secure within the request. Absent: the payer decides later. */
  authentication?: AuthenticationResult;
}

/** An operation that a request begins, with the change that the request makes by itself. */
export interface Begun<C extends ResourceChange = ResourceChange> {
  change: C;
  operation: Operation;
  /** The test values of a new payment or transfer of a sandbox, which decide its result. */
  test: TestValues | null;
  /** In a sandbox the result of the verification of the payee; null: none. */
  payee_check: PayeeCheck | null;
  /** True: no provider takes part, so the service itself does it. */
  is_internal: boolean;
  /** True: a live order to a bank, with the details of the operation, if it has some. */
  is_bank_order: boolean;
}

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
    subject_id: subject.id,
    subject,
    refund_id: more.refund?.id ?? null,
    refund: null,
    dispute: null,
    amount_minor: subject.amount_minor,
    currency: subject.currency,
    request: { token: null },
    state: "pending",
    attempts: 0,
    created_at: formatTime(context.at_ms),
    first_sent_at: null,
    may_repeat: true,
    provider_reference: null,
    request_id: context.request_id ?? "",
    traceparent: context.traceparent ?? null,
    decline_is_error: false,
    due_at: null,
    settings: null,
    reserved: null,
    ...more,
  };
  const begun = { change, operation, test: null, payee_check: null };
  return { ...begun, is_internal: false, is_bank_order: false };
}

/**
 * Returns an operation with its resources as they are stored. Bodies are JSON text.
 * @param dispute of the operation, if no body is given
 */
export function operationOf(
  row: OperationRow,
  { subject_body, refund_body, dispute_body }: {
    subject_body: string | null;
    refund_body: string | null;
    dispute_body: string | null;
  },
  dispute: Dispute | null = null,
): Operation {
  return {
    ...row,
    subject: readSubject(subject_body!),
    refund: refund_body === null ? null : readRefund(refund_body),
    dispute: row.request.dispute && dispute_body !== null ? JSON.parse(dispute_body) : dispute,
  };
}

/** Returns the members of a new row that follow from the request of an operation. */
export function rowOf(
  { op, refund_id, amount_minor, request, decline_is_error }: Operation,
): Pick<NewOperationRow, "op"> & Partial<NewOperationRow> {
  return { op, refund_id, amount_minor, request, decline_is_error };
}

/** Makes an event about an operation: our own, or a provider's if `more` names its account. */
export function eventOf(
  { id, op, subject, refund, amount_minor, currency, created_at }: Operation,
  state: ProviderEventState,
  more: Partial<ProviderEvent> = {},
): ProviderEvent {
  return {
    account_id: "",
    reference: `${id}:${more.op ?? op}:${state}`,
    object_id: id,
    op,
    state,
    subject_id: subject.id,
    refund_id: refund?.id ?? null,
    provider_reference: null,
    amount_minor,
    currency,
    at: created_at,
    livemode: subject.livemode,
    ...more,
  };
}
