/** Reads `TxDtls`, one transaction of an entry. */

import { isValidIban, normalizeIban } from "../../core/iban.ts";
import { childOf, childrenOf, textOf, type XmlElement } from "./bank_xml_reader.ts";
import {
  amountIn,
  joinTexts,
  readBankCode,
  readCharges,
  readDate,
  readDirection,
  readFlag,
} from "./read_amount.ts";
import type {
  Batch,
  DetailRecord,
  Direction,
  EntryRecord,
  Party,
  Reason,
  Reference,
} from "./read_records.ts";

/** Texts in place of an id that nobody gave. */
const NO_ID = /^(NOT ?PROVIDED|NON ?REF|NO ?REF)$/i;

/** Text of Swiss banks about their own processing, such as `?REJECT?0`. */
const BANK_FLAG = /^\?[A-Z]+\?/;

/** Elements of a transaction with its day, the closest to that of its booking first. */
const DAYS = ["IntrBkSttlmDt", "TxDtTm", "AccptncDtTm"];

/** Longest code of a reason: that of a bank's own one in ISO 20022. */
const REASON_MAX = 35;

/** A transaction as it is written, before its entry has decided about its amount and direction. */
export interface WrittenDetail {
  record: DetailRecord;
  direction: Direction | null;
  /** Its amounts in the currency of the entry: of the instruction, and of the transaction. */
  instructed: number | null;
  stated: number | null;
  charge: number;
  /** The day of its settlement or execution. */
  day: string | null;
  /** Whether the bank says that its amount contains the charge. */
  includes_charge: boolean;
  debtor: Party;
  creditor: Party;
}

/** The entry around a transaction. */
interface DetailContext {
  currency: string;
  direction: Direction;
  batch: Batch | null;
}

/** Reads a transaction, with the counterparty and the direction that the entry implies. */
export function readDetail(
  element: XmlElement,
  { currency, direction, batch }: DetailContext,
): WrittenDetail {
  const id = (name: string) => withoutPlaceholder(textOf(element, "Refs", name));
  /** An amount below zero says nothing: the direction has a member of its own. */
  const amount = (...path: string[]) => {
    const read = amountIn(currency, childOf(element, ...path));
    return read === null || read < 0 ? null : read;
  };
  const written = readDirection(element);
  const debtor = readParty(element, "Dbtr");
  const creditor = readParty(element, "Cdtr");
  const stated = amount("Amt") ?? amount("AmtDtls", "TxAmt", "Amt") ??
    amount("AmtDtls", "InstdAmt", "Amt") ?? amount("AmtDtls", "CntrValAmt", "Amt");
  const charges = childOf(element, "Chrgs");
  const remittance = childOf(element, "RmtInf");
  return {
    record: {
      record: "detail",
      line: element.line,
      direction: written ?? direction,
      amount_minor: stated,
      message_id: id("MsgId") ?? batch?.message_id ?? null,
      payment_information_id: id("PmtInfId") ?? batch?.payment_information_id ?? null,
      instruction_id: id("InstrId"),
      end_to_end_id: id("EndToEndId"),
      transaction_id: id("TxId"),
      uetr: id("UETR"),
      mandate_id: id("MndtId"),
      bank_reference: id("AcctSvcrRef"),
      bank_code: readBankCode(element),
      references: remittance ? readReferences(remittance) : [],
      remittance: remittance && joinTexts([
        ...childrenOf(remittance, "Ustrd"),
        ...childrenOf(remittance, "Strd").flatMap((strd) => childrenOf(strd, "AddtlRmtInf"))
          .filter(({ text }) => !BANK_FLAG.test(text)),
      ], "\n"),
      other_references: [
        ...childrenOf(element, "RltdRmtInf").map((related) => textOf(related, "RmtId")),
        ...proprietaryIds(element),
      ].flatMap((text) => text ?? []),
      counterparty: direction === "credit" ? debtor : creditor,
      return: readReason(childOf(element, "RtrInf")),
      information: textOf(element, "AddtlTxInf"),
    },
    direction: written,
    instructed: amount("AmtDtls", "InstdAmt", "Amt"),
    stated,
    charge: readCharges(element, currency),
    day: DAYS.map((name) => readDate(childOf(element, "RltdDts", name))).find(Boolean) ?? null,
    includes_charge: charges !== null &&
      [charges, ...childrenOf(charges, "Rcrd")].some((each) => readFlag(each, "ChrgInclInd")),
    debtor,
    creditor,
  };
}

/**
 * Sets the direction of a transaction and its counterparty. A return has the parties of the
 * original transaction, in which the money moved the other way.
 */
export function turn(
  detail: WrittenDetail,
  direction: Direction,
  { account, is_reversal }: Pick<EntryRecord, "account" | "is_reversal">,
): void {
  const { record, debtor, creditor } = detail;
  const is_back = is_reversal || record.return !== null;
  const [first, second] = (direction === "credit") !== is_back
    ? [debtor, creditor]
    : [creditor, debtor];
  record.direction = direction;
  record.counterparty = isEmpty(first) || first.iban === account ? second : first;
}

/** Reads the reason of a return or of a status. Null without the element. */
export function readReason(element: XmlElement | null): Reason | null {
  if (element === null) return null;
  const code = textOf(element, "Rsn", "Cd") ?? textOf(element, "Rsn", "Prtry");
  return {
    code: code && code.slice(0, REASON_MAX),
    information: joinTexts(childrenOf(element, "AddtlInf")),
  };
}

/** Reads the id of an account: `iban` if it is one, also if it does not stand in `IBAN`. */
export function readAccountId(account: XmlElement | null): Pick<Party, "iban" | "account"> {
  const id = account && childOf(account, "Id");
  const iban = id && textOf(id, "IBAN");
  const other = id && (textOf(id, "Othr", "Id") ?? textOf(id, "PrtryAcct", "Id") ??
    textOf(id, "BBAN") ?? textOf(id, "UPIC"));
  const text = normalizeIban(iban ?? other ?? "");
  if (iban || isValidIban(text)) return { iban: text, account: null };
  return { iban: null, account: text || null };
}

function withoutPlaceholder(text: string | null): string | null {
  return text === null || NO_ID.test(text) ? null : text;
}

function readParty(element: XmlElement, role: "Dbtr" | "Cdtr"): Party {
  const parties = childOf(element, "RltdPties");
  const agent = childOf(element, "RltdAgts", `${role}Agt`, "FinInstnId");
  const name = (party: string) =>
    parties && (textOf(parties, party, "Nm") ?? textOf(parties, party, "Pty", "Nm") ??
      textOf(parties, party, "Agt", "FinInstnId", "Nm"));
  return {
    name: name(role) ?? name(`Ultmt${role}`),
    ...readAccountId(parties && childOf(parties, `${role}Acct`)),
    bic: agent && (textOf(agent, "BICFI") ?? textOf(agent, "BIC")),
  };
}

function isEmpty({ name, iban, account }: Party): boolean {
  return name === null && iban === null && account === null;
}

function proprietaryIds(element: XmlElement): (string | null)[] {
  const ids = childOf(element, "Refs");
  return ids === null ? [] : childrenOf(ids, "Prtry").map((id) => textOf(id, "Ref"));
}

function readReferences(remittance: XmlElement): Reference[] {
  return childrenOf(remittance, "Strd").flatMap((strd) => [
    ...childrenOf(strd, "CdtrRefInf").map((info) =>
      readReference(info, childOf(info, "Ref") === null ? "CdtrRef" : "Ref")
    ),
    ...childrenOf(strd, "RfrdDocInf").map((info) => readReference(info, "Nb")),
  ]).filter(({ reference }) => reference !== "");
}

/** Reads a reference. Version 1 has the name `CdtrRef`. */
function readReference(info: XmlElement, name: "Ref" | "CdtrRef" | "Nb"): Reference {
  const type = childOf(info, "Tp", "CdOrPrtry");
  return {
    type: type && (textOf(type, "Cd") ?? textOf(type, "Prtry")),
    reference: textOf(info, name) ?? "",
  };
}
