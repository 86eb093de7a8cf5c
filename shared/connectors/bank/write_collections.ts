/**
 * Writes orders to collect as a direct debit initiation (pain.008.001.08) of SEPA's core scheme.
 * The rules are those of `shared/core/bank_order.ts`.
 */

import {
  accountFault,
  collectionFault,
  type CollectionOrder,
  type MandateSequence,
  type OwnBankAccount,
} from "../../core/bank_order.ts";
import { addTargetDays, targetDayOfOrder } from "../../core/target_calendar.ts";
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
  groupHeader,
  partyElement,
  paymentIds,
  refuse,
  remittanceElement,
  splitIntoBatches,
} from "./write_file.ts";

/** The name of the message in ISO 20022. */
export const COLLECTIONS_MESSAGE = "pain.008.001.08";

const SEQUENCE_CODES: Readonly<Record<MandateSequence, string>> = {
  first: "FRST",
  recurring: "RCUR",
  final: "FNAL",
  one_off: "OOFF",
};

/** TARGET days that banks want a collection before its due date (EPC016-06, section 4.3). */
const DAYS_BEFORE_DUE = 1;

/**
 * Writes a file with at least one order. Orders with another sequence or due date are in other
 * batches. If it is too late for the due date of an order, its due date is the next possible one.
 * Throws `UnwritableOrder` if an order breaks a rule.
 */
export function writeCollections(
  file: FileInput,
  orders: readonly [CollectionOrder, ...CollectionOrder[]],
): BankFile {
  const { account, created_at, id } = file;
  refuse(id, accountFault(account, "sepa"));
  for (const order of orders) refuse(order.id, collectionFault(order, account));
  const first = targetDayOfOrder(created_at, account.cut_off);
  const earliest = addTargetDays(first, DAYS_BEFORE_DUE);
  const dated = orders.map((order) =>
    order.due_on < earliest ? { ...order, due_on: earliest } : order
  );
  const batches = splitIntoBatches(
    file,
    dated,
    ({ mandate, due_on }) => [mandate.sequence, due_on].join(),
  );
  const root = block("CstmrDrctDbtInitn", [
    groupHeader(file, orders),
    ...batches.map((batch) => batchElement(batch, account)),
  ]);
  return bankFile("collections", file, batches, messageBytes(COLLECTIONS_MESSAGE, root));
}

function batchElement({ id, orders }: Batch<CollectionOrder>, account: OwnBankAccount): Xml {
  const { mandate, due_on } = orders[0];
  return block("PmtInf", [
    textElement("PmtInfId", id),
    textElement("PmtMtd", "DD"),
    ...counts(orders, account.currency),
    element("PmtTpInf", [
      element("SvcLvl", [textElement("Cd", "SEPA")]),
      element("LclInstrm", [textElement("Cd", "CORE")]),
      textElement("SeqTp", SEQUENCE_CODES[mandate.sequence]),
    ]),
    textElement("ReqdColltnDt", due_on),
    partyElement("Cdtr", account),
    accountElement("CdtrAcct", account.iban, account.currency),
    agentElement("CdtrAgt", account.bic),
    textElement("ChrgBr", "SLEV"),
    creditorElement(account.creditor_identifier ?? ""),
    ...orders.map(collectionElement),
  ]);
}

function creditorElement(creditor_identifier: string): Xml {
  const id = element("Othr", [
    textElement("Id", creditor_identifier),
    element("SchmeNm", [textElement("Prtry", "SEPA")]),
  ]);
  return element("CdtrSchmeId", [element("Id", [element("PrvtId", [id])])]);
}

function collectionElement({ id, mandate, payer, ...order }: CollectionOrder): Xml {
  const written_mandate = element("MndtRltdInf", [
    textElement("MndtId", mandate.id),
    textElement("DtOfSgntr", mandate.signed_on),
  ]);
  return element("DrctDbtTxInf", [
    paymentIds(id, null),
    amountElement("InstdAmt", order.amount_minor, order.currency),
    element("DrctDbtTx", [written_mandate]),
    agentElement("DbtrAgt", payer.bic),
    partyElement("Dbtr", payer),
    accountElement("DbtrAcct", payer.iban),
    remittanceElement(order.remittance),
  ]);
}
