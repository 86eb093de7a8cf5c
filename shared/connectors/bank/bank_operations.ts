/**
 * Operations at the merchant's own bank. Nothing here calls the bank: orders leave, and results
 * come, in files that the operator or a bridge carries (ADR 0021). So every operation has its reply
 * at once, and what the bank does are events of its files.
 */

import { needsAddress } from "../../core/bank_order.ts";
import { formatTime } from "../../core/clock.ts";
import { creditorReference } from "../../core/creditor_reference.ts";
import { bankTransferTo } from "../../domain/payments/bank_transfer.ts";
import { dueDate, OWN_IBAN } from "../../domain/payments/collection.ts";
import type {
  Operation,
  ProviderAccount,
  ProviderEvent,
  ProviderEventState,
  ProviderReply,
} from "../../domain/providers/connector.ts";
import { eventOf } from "../../domain/providers/operation.ts";
import type { Payment } from "../../schema/payment.ts";
import type { BankStore } from "../../store/bank_store.ts";
import { bankIdentifier } from "./bank_identifier.ts";
import { readBankSettings } from "./bank_settings.ts";

const DAY_MS = 24 * 3_600_000;
/** Within these days a statement has what the bank booked in time, also after Easter. */
const REPORT_DAYS = 5;

export async function replyTo(
  account: ProviderAccount,
  operation: Operation,
  store: BankStore,
): Promise<ProviderReply> {
  switch (operation.op) {
    case "authorize":
      return (operation.subject as Payment).method === null
        ? openTransfer(account, operation)
        : collect(account, operation);
    case "refund":
    case "transfer":
      return accepted(account, operation);
    case "cancel":
      return await withdraw(account, operation, store);
    case "abandon": {
      const expired = ofAccount(account, operation, "failed");
      return { provider_events: [{ ...expired, failure_code: "expired" }] };
    }
    default:
      return { refused: "provider_refused", message: "A bank has no disputes" };
  }
}

/** Tells the payer where to send the money. The bank repeats the reference in its statement. */
function openTransfer(account: ProviderAccount, operation: Operation): ProviderReply {
  const { expires_after_days, iban, bic, holder_name } = readBankSettings(account.settings);
  const payment = operation.subject as Payment;
  const window_ms = expires_after_days * DAY_MS;
  const expires_at = formatTime(Date.parse(operation.created_at) + window_ms);
  return {
    provider_events: [{
      ...ofAccount(account, operation, "pending"),
      provider_reference: creditorReference(payment.id),
      next_action: bankTransferTo({ iban, bic, holder_name }, payment, expires_at),
      later: { op: "abandon", delay_ms: window_ms + REPORT_DAYS * DAY_MS },
    }],
  };
}

/** Takes a collection, which waits for its export. */
function collect(account: ProviderAccount, operation: Operation): ProviderReply {
  const { method } = operation.subject as Payment;
  if (method?.type !== "sepa" || method.mandate === null) {
    return {
      refused: "invalid_parameter",
      message: 'A live payment by SWIFT takes no "iban": the payer sends the money',
      param: "iban",
    };
  }
  const { creditor_id, iban, prenotification_days } = readBankSettings(account.settings);
  if (creditor_id === null) {
    return {
      refused: "provider_refused",
      message: "The bank account collects nothing: it has no creditor identifier",
    };
  }
  if (operation.details?.iban === iban) return { refused: "invalid_parameter", ...OWN_IBAN };
  if (needsAddress(iban) && !operation.request.has_address) {
    return {
      refused: "invalid_parameter",
      message: '"iban.address" is required: the bank account of the merchant is outside the EEA',
      param: "iban.address",
    };
  }
  // A mandate is saved without money: no order waits, and nothing is left to do.
  if (operation.amount_minor === 0) {
    return { provider_events: [ofAccount(account, operation, "succeeded")] };
  }
  const due_on = dueDate(Date.parse(operation.created_at), prenotification_days);
  return accepted(account, operation, { bank: { due_on } });
}

/** Takes an order, which waits for its export. The bank repeats the id in its files. */
function accepted(
  account: ProviderAccount,
  operation: Operation,
  more: Pick<ProviderEvent, "bank"> = {},
): ProviderReply {
  const { refund_id, subject_id } = operation;
  return {
    provider_events: [{
      ...ofAccount(account, operation, "pending"),
      provider_reference: bankIdentifier(refund_id ?? subject_id),
      ...more,
    }],
  };
}

/** Keeps an order from its export. An order that has left cannot be taken back here. */
async function withdraw(
  account: ProviderAccount,
  operation: Operation,
  store: BankStore,
): Promise<ProviderReply> {
  try {
    const state = await store.endOrder(account.id, operation.subject_id, "withdrawn");
    return state === "withdrawn"
      ? { provider_events: [ofAccount(account, operation, "cancelled")] }
      : { refused: "provider_refused", message: "The order has left for the bank already" };
  } catch {
    return { unknown: "connection", may_repeat: true };
  }
}

function ofAccount(
  { id }: ProviderAccount,
  operation: Operation,
  state: ProviderEventState,
): ProviderEvent {
  return eventOf(operation, state, { account_id: id });
}
