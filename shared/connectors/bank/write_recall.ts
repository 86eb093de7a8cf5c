/**
 * Writes the recall of orders of one file that the bank has already got, as a payment cancellation
 * request (camt.055). The bank replies with a camt.029, and may refuse.
 */

import type { OwnBankAccount } from "../../core/bank_order.ts";
import { ibanCountry } from "../../core/iban.ts";
import { bankIdentifier } from "./bank_identifier.ts";
import { block, element, messageBytes, textElement, type Xml } from "./bank_xml_writer.ts";
import {
  agentElement,
  amountElement,
  type BankFile,
  bankFile,
  type Batch,
  counts,
  dateTime,
  type FileInput,
  type FileKind,
  groupOrders,
  nameElement,
} from "./write_file.ts";
import { COLLECTIONS_MESSAGE } from "./write_collections.ts";
import { PAYOUTS_MESSAGE } from "./write_payouts.ts";

/** Reasons of a recall: the merchant asks for it, sent twice, a technical fault, and a fraud. */
export const RECALL_REASONS = ["CUST", "DUPL", "TECH", "FRAD"] as const;
export type RecallReason = typeof RECALL_REASONS[number];

interface RecalledFile {
  id: string;
  kind: Exclude<FileKind, "recall">;
  created_at: Date;
}

export interface RecalledOrder {
  id: string;
  batch_id: string;
  amount_minor: number;
  currency: string;
  reason: RecallReason;
}

export function writeRecall(
  file: FileInput,
  original: RecalledFile,
  orders: readonly [RecalledOrder, ...RecalledOrder[]],
): BankFile {
  const message = recallMessageOf(file.account);
  const batches = groupOrders(orders, ({ batch_id }) => batch_id)
    .map(([id, orders]) => ({ id, orders }));
  const sorted = batches.flatMap(({ orders }) => orders);
  const root = block("CstmrPmtCxlReq", [
    element("Assgnmt", [
      textElement("Id", bankIdentifier(file.id)),
      element("Assgnr", [element("Pty", [nameElement(file.account.name)])]),
      element("Assgne", [agentElement("Agt", file.account.bic)]),
      textElement("CreDtTm", dateTime(file.created_at)),
    ]),
    element("CtrlData", [...counts(sorted, file.account.currency)]),
    block("Undrlyg", [...batches.map((batch) => batchElement(batch, original))]),
  ]);
  return bankFile("recall", file, batches, messageBytes(message, root));
}

/**
 * The German banks accept version 05 and no other (DFÜ-Abkommen, annex 3). Version 08 is of the
 * same year as the pain.001.001.09 and the pain.008.001.08 that are recalled, and SWIFT has it too.
 * All elements that are written are in both.
 */
function recallMessageOf({ iban }: OwnBankAccount): "camt.055.001.05" | "camt.055.001.08" {
  return ibanCountry(iban) === "DE" ? "camt.055.001.05" : "camt.055.001.08";
}

function messageOf(kind: RecalledFile["kind"]): string {
  return kind === "collections" ? COLLECTIONS_MESSAGE : PAYOUTS_MESSAGE;
}

function batchElement({ id, orders }: Batch<RecalledOrder>, original: RecalledFile): Xml {
  return block("OrgnlPmtInfAndCxl", [
    textElement("OrgnlPmtInfId", id),
    element("OrgnlGrpInf", [
      textElement("OrgnlMsgId", bankIdentifier(original.id)),
      textElement("OrgnlMsgNmId", messageOf(original.kind)),
      textElement("OrgnlCreDtTm", dateTime(original.created_at)),
    ]),
    ...orders.map((order) =>
      element("TxInf", [
        textElement("OrgnlEndToEndId", bankIdentifier(order.id)),
        amountElement("OrgnlInstdAmt", order.amount_minor, order.currency),
        element("CxlRsnInf", [element("Rsn", [textElement("Cd", order.reason)])]),
      ])
    ),
  ]);
}
