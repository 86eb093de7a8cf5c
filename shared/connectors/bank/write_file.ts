/**
 * Parts that the files to a bank share: their result, the split of their orders into batches, and
 * the elements of names, accounts, banks, addresses and remittance information.
 */

import type {
  BankParty,
  OrderFault,
  OwnBankAccount,
  PostalAddress,
  Remittance,
} from "../../core/bank_order.ts";
import { formatDecimal } from "../../core/currency.ts";
import { toSepaText } from "../../core/sepa_text.ts";
import { bankIdentifier } from "./bank_identifier.ts";
import { element, textElement, type Xml } from "./bank_xml_writer.ts";

/** Kinds of files. Banks have a service of its own for each, with its own order type of EBICS. */
export type FileKind =
  | "sepa_transfers"
  | "instant_transfers"
  | "swift_transfers"
  | "collections"
  | "recall";

export interface FileInput {
  /** Our id of the file. The ids of the message and of its batches are derived from it. */
  id: string;
  created_at: Date;
  account: OwnBankAccount;
}

/** A file for the bank. The same input gives the same bytes. */
export interface BankFile {
  kind: FileKind;
  name: string;
  bytes: Uint8Array;
  payments: number;
  sum_minor: number;
  currency: string;
  /** The batches with the ids of their orders. A bank can book a batch by its id alone. */
  batches: { id: string; order_ids: string[] }[];
}

/** An order that cannot be written: it breaks a rule that its request should have checked. */
export class UnwritableOrder extends Error {
  override readonly name = "UnwritableOrder";

  constructor(readonly order_id: string, readonly fault: OrderFault) {
    super(`${order_id} cannot be written to a bank file: ${fault.field} ${fault.reason}`);
  }
}

/** Throws `UnwritableOrder` if there is a fault. */
export function refuse(id: string, fault: OrderFault | null): void {
  if (fault) throw new UnwritableOrder(id, fault);
}

interface WrittenOrder {
  id: string;
  amount_minor: number;
}

/** Orders that a bank executes together. */
export interface Batch<Order extends WrittenOrder> {
  id: string;
  orders: readonly [Order, ...Order[]];
}

/** Splits orders into batches with the same key. The id of a batch is its file's, numbered. */
export function splitIntoBatches<Order extends WrittenOrder>(
  { id }: FileInput,
  orders: readonly Order[],
  keyOf: (order: Order) => string,
): Batch<Order>[] {
  return groupOrders(orders, keyOf).map(([, orders], at) => ({
    id: `${bankIdentifier(id)}-${at + 1}`,
    orders,
  }));
}

/**
 * Returns the orders of each key. Orders and keys are sorted by the ids of the orders, so that the
 * bytes of a file do not depend on the order in which somebody has loaded them.
 */
export function groupOrders<Order extends WrittenOrder>(
  orders: readonly Order[],
  keyOf: (order: Order) => string,
): [key: string, orders: [Order, ...Order[]]][] {
  const groups = new Map<string, [Order, ...Order[]]>();
  for (const order of orders.toSorted((a, b) => a.id < b.id ? -1 : 1)) {
    const group = groups.get(keyOf(order));
    if (group) group.push(order);
    else groups.set(keyOf(order), [order]);
  }
  return [...groups];
}

/** Returns the description of a file, with its number of payments and their sum. */
export function bankFile(
  kind: FileKind,
  { id, account }: FileInput,
  batches: readonly Batch<WrittenOrder>[],
  bytes: Uint8Array,
): BankFile {
  const orders = batches.flatMap(({ orders }) => orders);
  return {
    kind,
    name: `${kind}_${bankIdentifier(id)}.xml`,
    bytes,
    payments: orders.length,
    sum_minor: sumOf(orders),
    currency: account.currency,
    batches: batches.map(({ id, orders }) => ({ id, order_ids: orders.map(({ id }) => id) })),
  };
}

export function groupHeader(
  { id, created_at, account }: FileInput,
  orders: readonly WrittenOrder[],
): Xml {
  return element("GrpHdr", [
    textElement("MsgId", bankIdentifier(id)),
    textElement("CreDtTm", dateTime(created_at)),
    ...counts(orders, account.currency),
    element("InitgPty", [nameElement(account.name)]),
  ]);
}

/** Returns the number of payments and their sum. */
export function counts(orders: readonly WrittenOrder[], currency: string): [Xml, Xml] {
  return [
    textElement("NbOfTxs", String(orders.length)),
    textElement("CtrlSum", formatDecimal(sumOf(orders), currency)),
  ];
}

/** Returns a time in UTC without a fraction of a second. */
export function dateTime(at: Date): string {
  return `${at.toISOString().slice(0, 19)}Z`;
}

export function amountElement(tag: string, amount_minor: number, currency: string): Xml {
  return textElement(tag, formatDecimal(amount_minor, currency), { Ccy: currency });
}

export function paymentIds(id: string, uetr: string | null): Xml {
  return element("PmtId", [
    textElement("EndToEndId", bankIdentifier(id)),
    uetr === null ? null : textElement("UETR", uetr),
  ]);
}

/** Returns the name and the address of a person or company: `Dbtr` or `Cdtr`. */
export function partyElement(tag: string, { name, address }: BankParty): Xml {
  return element(tag, [nameElement(name), address && addressElement(address)]);
}

/** Returns an account, with its currency if it is ours. */
export function accountElement(tag: string, iban: string, currency?: string): Xml {
  return element(
    tag,
    [
      element("Id", [textElement("IBAN", iban)]),
      currency === undefined ? null : textElement("Ccy", currency),
    ],
  );
}

/** Returns a bank by its BIC. `NOTPROVIDED` is the convention for a bank without one. */
export function agentElement(tag: string, bic: string | null): Xml {
  const id = bic === null
    ? element("Othr", [textElement("Id", "NOTPROVIDED")])
    : textElement("BICFI", bic);
  return element(tag, [element("FinInstnId", [id])]);
}

/** Returns the remittance information: a creditor reference (ISO 11649), or free text. */
export function remittanceElement(remittance: Remittance | null): Xml | null {
  if (remittance === null) return null;
  if ("text" in remittance) {
    return element("RmtInf", [textElement("Ustrd", toSepaText(remittance.text))]);
  }
  const type = element("Tp", [
    element("CdOrPrtry", [textElement("Cd", "SCOR")]),
    textElement("Issr", "ISO"),
  ]);
  const reference = element("CdtrRefInf", [type, textElement("Ref", remittance.reference)]);
  return element("RmtInf", [element("Strd", [reference])]);
}

export function nameElement(name: string): Xml {
  return textElement("Nm", toSepaText(name));
}

/** Returns an address: a hybrid one if it has lines of free text, else a structured one. */
function addressElement({ line1, line2, city, postal_code, country }: PostalAddress): Xml {
  const optional = (tag: string, text: string | null) =>
    text === null ? null : textElement(tag, toSepaText(text));
  return element("PstlAdr", [
    optional("PstCd", postal_code),
    optional("TwnNm", city),
    textElement("Ctry", country),
    optional("AdrLine", line1),
    optional("AdrLine", line2),
  ]);
}

/** @throws {RangeError} if the sum is not a safe integer */
function sumOf(orders: readonly WrittenOrder[]): number {
  const sum = orders.reduce((total, { amount_minor }) => total + amount_minor, 0);
  if (!Number.isSafeInteger(sum)) throw new RangeError("the sum of a file is not a safe integer");
  return sum;
}
