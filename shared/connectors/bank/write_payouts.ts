/**
 * Writes orders to pay out as a credit transfer initiation (pain.001.001.09): SEPA credit
 * transfers, instant ones, and SWIFT payments. The rules are those of `shared/core/bank_order.ts`.
 */

import {
  accountFault,
  type OwnBankAccount,
  payoutFault,
  type PayoutOrder,
} from "../../core/bank_order.ts";
import { centralEuropeanDate } from "../../core/target_calendar.ts";
import { block, element, messageBytes, textElement, type Xml } from "./bank_xml_writer.ts";
import {
  accountElement,
  agentElement,
  amountElement,
  type BankFile,
  bankFile,
  type Batch,
  counts,
  type FileInput,
  type FileKind,
  groupHeader,
  partyElement,
  paymentIds,
  refuse,
  remittanceElement,
  splitIntoBatches,
} from "./write_file.ts";

/** The name of the message in ISO 20022. */
export const PAYOUTS_MESSAGE = "pain.001.001.09";

export function payoutFileKind({ rail, speed }: PayoutOrder): FileKind {
  if (rail === "swift") return "swift_transfers";
  return speed === "instant" ? "instant_transfers" : "sepa_transfers";
}

/**
 * Writes a file with at least one order, all of one kind. Orders with another payer of charges or
 * another day are in other batches. An order whose day has passed has the day of the file. Throws
 * `UnwritableOrder` if an order breaks a rule.
 */
export function writePayouts(
  file: FileInput,
  orders: readonly [PayoutOrder, ...PayoutOrder[]],
): BankFile {
  const { account, created_at, id } = file;
  const kind = payoutFileKind(orders[0]);
  refuse(id, accountFault(account, orders[0].rail));
  for (const order of orders) {
    refuse(order.id, payoutFault(order, account));
    if (payoutFileKind(order) !== kind) throw new RangeError(`${order.id} is not of ${kind}`);
  }
  const today = centralEuropeanDate(created_at);
  const dated = orders.map((order) =>
    order.execute_on < today ? { ...order, execute_on: today } : order
  );
  const batches = splitIntoBatches(
    file,
    dated,
    ({ charges, execute_on }) => [charges, execute_on].join(),
  );
  const root = block("CstmrCdtTrfInitn", [
    groupHeader(file, orders),
    ...batches.map((batch) => batchElement(batch, account)),
  ]);
  return bankFile(kind, file, batches, messageBytes(PAYOUTS_MESSAGE, root));
}

function batchElement({ id, orders }: Batch<PayoutOrder>, account: OwnBankAccount): Xml {
  const { rail, speed, charges, execute_on } = orders[0];
  return block("PmtInf", [
    textElement("PmtInfId", id),
    textElement("PmtMtd", "TRF"),
    ...counts(orders, account.currency),
    element("PmtTpInf", [
      element("SvcLvl", [textElement("Cd", rail === "sepa" ? "SEPA" : "NURG")]),
      speed === "instant" ? element("LclInstrm", [textElement("Cd", "INST")]) : null,
    ]),
    element("ReqdExctnDt", [textElement("Dt", execute_on)]),
    partyElement("Dbtr", account),
    accountElement("DbtrAcct", account.iban, account.currency),
    agentElement("DbtrAgt", account.bic),
    textElement("ChrgBr", charges),
    ...orders.map(payoutElement),
  ]);
}

function payoutElement({ id, rail, uetr, payee, ...order }: PayoutOrder): Xml {
  return element("CdtTrfTxInf", [
    paymentIds(id, uetr),
    element("Amt", [amountElement("InstdAmt", order.amount_minor, order.currency)]),
    // SEPA finds the bank by the IBAN alone.
    rail === "sepa" && payee.bic === null ? null : agentElement("CdtrAgt", payee.bic),
    partyElement("Cdtr", payee),
    accountElement("CdtrAcct", payee.iban),
    remittanceElement(order.remittance),
  ]);
}
