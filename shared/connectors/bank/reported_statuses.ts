/**
 * A bank's reports about orders before it books them (pain.002): rejections and the results of the
 * verification of payees become provider events. Pure.
 */

import type { ProviderEvent } from "../../domain/providers/connector.ts";
import type { PayeeCheck } from "../../schema/bank_account.ts";
import type { BankOrder, NewCheck } from "../../store/bank_store.ts";
import { bankIdentifier, idOfBankIdentifier } from "./bank_identifier.ts";
import { PAYEE_CHECKS_BY_CODE } from "./read_status.ts";
import type { StatusRecord } from "./read_records.ts";

/** Returns the id or UETR of the order, batch or file of a status; null: it names none. */
export function reportedId(status: StatusRecord): string | null {
  switch (status.level) {
    case "transaction":
      // A bank writes texts such as NOTPROVIDED, or its own id, in place of one of them.
      return [status.end_to_end_id, status.instruction_id]
        .find((id) => idOfBankIdentifier(id ?? "") !== null) ?? status.uetr;
    case "payment_information":
      return status.payment_information_id;
    case "group":
      return status.original_message_id;
  }
}

/**
 * Reasons of a bank that has got the same before: a message, a batch, or a transaction by its id.
 * Source: ISO 20022, ExternalStatusReason1Code.
 */
const REPEATS = {
  group: ["AM05", "DU01"],
  payment_information: ["AM05", "DU01", "DU02"],
  transaction: ["DU03", "DU04", "DU05"],
} as const;

/**
 * Reports whether a bank refuses something because it has got it before. An order is in one file,
 * so this file was handed over twice, and the bank may execute the first one.
 * @param is_all_refused whether the bank refuses the whole file or batch. Otherwise AM05 is about
 *   an order that only looks like another one, and is not executed
 */
export function isRepeat({ level, reasons }: StatusRecord, is_all_refused: boolean): boolean {
  const codes: readonly string[] = REPEATS[level];
  return reasons.some(({ code }) =>
    code !== null && (codes.includes(code) || is_all_refused && code === "AM05")
  );
}

/** The parts of an order that its events need. */
type Reported = Pick<BankOrder, "id" | "subject_id" | "amount_minor" | "currency">;

/**
 * Makes the event that the bank, or before it the operator, has rejected an order.
 * @param status the report of the bank; null: the operator rejects it
 * @param reason in the words of the operator, for the merchant
 */
export function rejectionOf(
  account_id: string,
  order: Reported,
  at: string,
  status: Pick<StatusRecord, "reasons" | "level"> | null = null,
  reason?: string,
): ProviderEvent {
  const { id } = order;
  const [code] = (status?.reasons ?? []).flatMap((reason) => reason.code ?? []);
  return {
    ...aboutOrder(account_id, order, at),
    reference: `${bankIdentifier(id)}:rejected`,
    op: id.startsWith("pay_") ? "authorize" : id.startsWith("re_") ? "refund" : "transfer",
    state: "failed",
    failure_code: "provider_refused",
    ...(code !== undefined && { return_code: code }),
    ...(reason !== undefined && { reason }),
    ...(status && status.level !== "transaction" && { bank: { is_whole: true as const } }),
  };
}

/**
 * Makes the result of the verification of the payee of an order, with its event.
 * @param source the place of the status, unique in the account
 */
export function checkOf(
  account_id: string,
  order: Reported,
  at: string,
  code: string,
  source: string,
): NewCheck {
  const { id } = order;
  const payee_check = payeeCheckOf(code)!;
  return {
    id,
    code,
    provider_event: {
      ...aboutOrder(account_id, order, at),
      reference: `${bankIdentifier(id)}:payee_check:${source}`,
      op: "payee_check",
      state: payee_check === "pending" ? "pending" : "succeeded",
      bank: { payee_check },
    },
  };
}

/** Returns the result of the verification of a payee for the bank's code; null: another code. */
export function payeeCheckOf(code: string | null): PayeeCheck | null {
  return PAYEE_CHECKS_BY_CODE.get(code ?? "") ?? null;
}

function aboutOrder(
  account_id: string,
  { id, subject_id, amount_minor, currency }: Reported,
  at: string,
): Omit<ProviderEvent, "reference" | "op" | "state"> {
  return {
    account_id,
    subject_id,
    object_id: bankIdentifier(id),
    refund_id: id.startsWith("re_") ? id : null,
    provider_reference: bankIdentifier(id),
    amount_minor,
    currency,
    at,
    livemode: true,
  };
}
