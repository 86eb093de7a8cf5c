/**
 * What a bank reports about orders before it books them (pain.002): rejections become provider
 * events, and the results of the verification of payee are noted for the operator. Pure.
 */

import type { ProviderEvent } from "../../domain/providers/connector.ts";
import type { BankOrder } from "../../store/bank_store.ts";
import { bankIdentifier } from "./bank_identifier.ts";
import type { StatusRecord } from "./read_records.ts";

/** Returns the id of the order, batch or file that a status is about; null: it names none. */
export function reportedId(status: StatusRecord): string | null {
  switch (status.level) {
    case "transaction":
      return status.end_to_end_id ?? status.instruction_id;
    case "payment_information":
      return status.payment_information_id;
    case "group":
      return status.original_message_id;
  }
}

/** Makes the event that the bank, or before it the operator, has rejected an order. */
export function rejectionOf(
  account_id: string,
  order: Pick<BankOrder, "id" | "subject_id" | "amount_minor" | "currency">,
  at: string,
  reasons: StatusRecord["reasons"] = [],
): ProviderEvent {
  const { id, subject_id, amount_minor, currency } = order;
  const [code] = reasons.flatMap((reason) => reason.code ?? []);
  return {
    account_id,
    reference: `${bankIdentifier(id)}:rejected`,
    op: id.startsWith("pay_") ? "authorize" : id.startsWith("re_") ? "refund" : "transfer",
    state: "failed",
    subject_id,
    refund_id: id.startsWith("re_") ? id : null,
    provider_reference: bankIdentifier(id),
    amount_minor,
    currency,
    at,
    livemode: true,
    failure_code: "provider_refused",
    ...(code !== undefined && { return_code: code }),
  };
}
