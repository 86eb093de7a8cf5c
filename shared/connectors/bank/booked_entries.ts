/**
 * Turns booked entries into provider events (architecture §7). Each booked entry of the account has
 * events that together move its whole amount: money that names a payment, refund or transfer is
 * for that one, the bank's charges are fees, and everything else is money that the operator has to
 * assign. Does no I/O.
 */

import { cutReferences, findReference } from "../../core/creditor_reference.ts";
import { mapInSlices } from "../../core/time_slice.ts";
import { payerDetails } from "../../domain/providers/bank_details.ts";
import type { AccountOp, ProviderEvent } from "../../domain/providers/connector.ts";
import type { FoundReference, NewBatch } from "../../store/bank_store.ts";
import {
  bankIdentifier,
  identifiersIn,
  idOfBankIdentifier,
  isBatchIdentifier,
  isFileIdentifier,
} from "./bank_identifier.ts";
import type { BankSettings } from "./bank_settings.ts";
import { isOwnBusiness } from "./own_business.ts";
import type { NamedPayer } from "./payers_to_keep.ts";
import { grossOf } from "./read_amount.ts";
import type { BankCode, DetailRecord, Direction, EntryRecord, Party } from "./read_records.ts";

/** What the bank tells about money that a person has to assign. It is kept sealed. */
export interface EntryAbout {
  /** The other side: who has sent the money, or got it. */
  counterparty: Party;
  text: string | null;
}

/** An event of an entry, with what a person needs to assign it. */
export type BookedEvent = ProviderEvent & { about?: EntryAbout };

export interface BookedEntry {
  /** The same in every file that has the entry. */
  id: string;
  /** `YYYY-MM-DD` */
  booked_on: string;
  /** The change of the balance: negative if money left. */
  amount_minor: number;
  currency: string;
  /**
   * Whether its one event is its total, of which nobody knows what it is, or only a rule of the
   * account. A later file can tell.
   */
  is_total: boolean;
  /** Our batch or file of which it is the total; null: it is none. */
  batch: NewBatch | null;
  provider_events: BookedEvent[];
  /** The payers of payments by bank transfer, by the reference of the payment. */
  payers: NamedPayer[];
}

interface Part {
  direction: Direction;
  amount_minor: number;
  currency: string;
  bank_code: BankCode;
  detail: DetailRecord | null;
  is_reversal: boolean;
  /** The bank's text about this part alone. */
  information: string | null;
}

/** A part of an entry that one event is about. */
export interface EntryPart extends Part {
  /** The match by its fields alone; an `adjustment` without one. */
  match: Matched;
  /** Whether its entry names our batch or order that it does not book. */
  names_ours: boolean;
  /** Then the texts to look up (`beginningsIn`). */
  beginnings: readonly string[];
}

/** References of an account by the text with which they begin. */
type FoundReferences = ReadonlyMap<string, readonly FoundReference[]>;

/** The part of an event that the movement decides: which subject it is for, and its result. */
type Matched = Pick<ProviderEvent, "op" | "state" | "provider_reference"> & Partial<ProviderEvent>;

const CHARGES: ReadonlySet<string> = new Set(["CHRG", "COMM", "FEES", "COME", "COMI", "COMT"]);
/** Sub-families without a meaning, so that the bank's own code decides. */
const UNSPECIFIC: ReadonlySet<string | null> = new Set([null, "OTHR", "NTAV"]);
/**
 * Codes of banks for what they charge: the types CHG and COM of SWIFT, FEE, and 808 in the German
 * list, alone or among others, such as `NCHG+808`. Sources: SWIFT MT940, field 61; DFÜ-Abkommen,
 * annex 3.
 */
const OWN_CHARGE = /^[FNS]?(CHG|COM|FEE)(\+|$)|(^|\+)808(\+|$)/;
/** Longest text of a bank in the reference of an event, which is part of a key. */
const SUFFIX_MAX = 35;
/** Longest text that is kept of an entry: that of a remittance and of the bank together. */
const TEXT_MAX = 600;
/** Texts of a part that are looked up. */
const BEGINNINGS_MAX = 5;
/** Of a total without a payment, payout or charge: a later file can tell what it is. */
const UNKNOWN_OPS: ReadonlySet<string> = new Set(["adjustment", "payout"]);
/** Of an event that takes money, and of one that brings it (`ProviderEventOp`). */
const STATES = { debit: "succeeded", credit: "returned" } as const;

/** Splits an entry into parts whose sum is its amount, and tells by its fields what each is for. */
export async function partsOf(
  entry: EntryRecord,
  details: readonly DetailRecord[],
): Promise<EntryPart[]> {
  const parts = split(entry, details);
  const is_total = entry.booked_by === "total";
  const unbooked = await mapInSlices(
    is_total ? details : [],
    (detail) => matchByFields({ ...parts[0]!, detail }).provider_reference !== null,
  );
  const names_ours = batchOf(entry, details) !== null || unbooked.includes(true);
  return await mapInSlices(parts, (part) => {
    const match = matchByFields(part);
    const beginnings = match.op === "adjustment" ? beginningsIn(part) : [];
    return { ...part, match, names_ours, beginnings };
  });
}

/** Returns our batch, or else our file, whose orders an entry books without listing them. */
export function batchOf(entry: EntryRecord, details: readonly DetailRecord[]): NewBatch | null {
  const is_whole = entry.booked_by === "total" &&
    !details.some((detail) => idOfBankIdentifier(detail.end_to_end_id ?? "") !== null);
  if (!is_whole) return null;
  const named = [entry.batch, details[0]].flatMap((place) => place ?? []);
  const id = named.map((place) => place.payment_information_id ?? "").find(isBatchIdentifier) ??
    named.map((place) => place.message_id ?? "").find(isFileIdentifier);
  if (id === undefined) return null;
  return { id: id.trim().toLowerCase(), sum_minor: grossOf(entry, entry.charge_minor) };
}

/**
 * Makes the events of a booked entry.
 *
 * @param account `id` is `pac_…`
 * @param found the references of the account that begin with one of the `beginnings`, by that text
 */
export function bookEntry(
  account: Pick<BankSettings, "return_charge_minor" | "own_business"> & { id: string },
  entry: EntryRecord,
  { parts, batch }: { parts: readonly EntryPart[]; batch: NewBatch | null },
  found: FoundReferences,
): BookedEntry {
  const { identity: id, currency } = entry;
  const booked_on = (entry.booked_on ?? entry.value_on)!;
  const provider_events: BookedEvent[] = [];
  const payers: BookedEntry["payers"] = [];
  let is_total = false;
  for (const [i, part] of parts.entries()) {
    const event = eventOf(part, found, account.own_business);
    is_total = entry.booked_by === "total" && UNKNOWN_OPS.has(event.op);
    const number = is_total ? 0 : i + 1;
    provider_events.push({
      account_id: account.id,
      reference: `${id}:${number}${event.provider_reference === null ? suffixOf(part) : ""}`,
      object_id: id,
      subject_id: null,
      refund_id: null,
      amount_minor: part.amount_minor,
      currency,
      at: `${booked_on}T00:00:00.000Z`,
      livemode: true,
      bank: {
        entry: {
          part: number,
          line: entry.line,
          bank_reference: part.detail?.bank_reference ?? entry.bank_reference,
        },
        // The bank can have taken its charge out of what came back.
        ...(event.failure_code === "bank_return" &&
          { charge_minor: [0, account.return_charge_minor] as const }),
      },
      ...event,
      ...(event.op === "adjustment" && { about: aboutPart(part) }),
    });
    payers.push(...payerOf(part, event));
  }
  const amount_minor = signed(entry);
  return {
    ...{ id, booked_on, amount_minor, currency, is_total, provider_events, payers },
    batch: is_total ? batch : null,
  };
}

function split(entry: EntryRecord, details: readonly DetailRecord[]): Part[] {
  const { direction, amount_minor, currency, bank_code, charge_minor, is_reversal } = entry;
  const is_one = details.length <= 1 && (entry.batch?.transactions ?? 1) <= 1;
  const whole = {
    direction,
    amount_minor,
    currency,
    bank_code,
    is_reversal,
    detail: null,
    information: is_one ? entry.information : null,
  };
  if (entry.booked_by === "total") {
    const [only = null, ...others] = details;
    return [{ ...whole, detail: others.length === 0 ? only : null }];
  }
  const parts = details.map((detail): Part => ({
    ...whole,
    direction: detail.direction,
    amount_minor: detail.amount_minor!,
    bank_code: isUnspecific(detail.bank_code) ? bank_code : detail.bank_code,
    detail,
    information: [detail.information, whole.information].filter(Boolean).join("\n") || null,
  }));
  if (charge_minor !== 0) {
    parts.push(chargePart(charge_minor, currency));
  }
  return parts.filter((part) => part.amount_minor > 0);
}

function chargePart(charge_minor: number, currency: string): Part {
  return {
    direction: charge_minor > 0 ? "debit" : "credit",
    amount_minor: Math.abs(charge_minor),
    currency,
    bank_code: { domain: null, family: null, sub_family: "CHRG", proprietary: null },
    detail: null,
    is_reversal: false,
    information: null,
  };
}

/** Matches a part by its own fields, without the texts that are looked up. */
function matchByFields(part: Part): Matched {
  const { direction, detail, bank_code } = part;
  // Its charge for an order has the id of the order, too.
  if (isCharge(bank_code)) return ofAccount("account_fee", direction);
  const id = idOfBankIdentifier(detail?.end_to_end_id ?? "");
  const order = id === null ? null : ofOrder(id, part);
  const is_back = direction === "debit" || detail !== null && detail.return !== null;
  const reference = is_back ? null : referenceOf(part);
  // A payee knows the id of the payout, and can send it with a payment.
  const is_payment = reference !== null && order?.state === "returned" && !part.is_reversal;
  if (order && !is_payment) return order;
  if (reference !== null) return ofPayment(reference);
  return ofAccount("adjustment", direction);
}

function ofPayment(provider_reference: string): Matched {
  return { op: "authorize", state: "succeeded", provider_reference };
}

/**
 * The texts of a part that can be an order's id, or the beginning of a payment's reference that was
 * cut off.
 */
function beginningsIn(part: Part): string[] {
  const { detail } = part;
  const texts = [...textsOf(part), detail?.instruction_id ?? null];
  const is_payment = part.direction === "credit" && !isBack(part);
  const found = texts.flatMap((text) => [
    ...identifiersIn(text ?? ""),
    ...is_payment ? cutReferences(text ?? "") : [],
  ]);
  return [...new Set(found)].slice(0, BEGINNINGS_MAX);
}

/**
 * Tells what a part is for. Money that names anything of ours is no business of the account, and
 * what comes back can be an order without its id.
 */
function eventOf(
  part: EntryPart,
  found: FoundReferences,
  rules: BankSettings["own_business"],
): Matched {
  if (part.match.op !== "adjustment") return part.match;
  const named = part.beginnings.flatMap((beginning) => found.get(beginning) ?? []);
  const is_business = named.length === 0 && !part.names_ours && !isBack(part) &&
    isOwnBusiness(part, rules);
  // The money moves between the account at the provider and the rest of the merchant's money.
  return is_business ? ofAccount("payout", part.direction) : ofText(part, named) ?? part.match;
}

/**
 * Tells what a part says by its texts: about the only order that they name, if the amount is that
 * of the order, or about the only payment that still waits whose reference begins like one. A
 * payout names in its text the payment that it is for, which is no return of that payment.
 */
function ofText(part: EntryPart, references: readonly FoundReference[]): Matched | null {
  const names_payments = part.direction === "credit" || isBack(part);
  const named = references.filter(({ beginning, reference, currency, is_open }) =>
    currency === part.currency && (is_open || reference === beginning) &&
    (names_payments || !reference.startsWith("pay-"))
  );
  const [only] = named;
  // A bank can write one text twice, cut at two lengths.
  if (only === undefined || named.some(({ reference }) => reference !== only.reference)) {
    return null;
  }
  const id = idOfBankIdentifier(only.reference);
  if (id === null) return ofPayment(only.reference);
  return only.amount_minor === part.amount_minor ? ofOrder(id, part) : null;
}

function isBack({ detail, is_reversal }: Part): boolean {
  return detail?.return != null || is_reversal;
}

function isUnspecific({ sub_family, proprietary }: BankCode): boolean {
  return UNSPECIFIC.has(sub_family) && proprietary === null;
}

function isCharge({ sub_family, proprietary }: BankCode): boolean {
  return UNSPECIFIC.has(sub_family) ? OWN_CHARGE.test(proprietary ?? "") : CHARGES.has(sub_family!);
}

/**
 * Returns the account from which a payment by bank transfer came, if the bank names it: only these
 * have a reference that is no order's id. The payer of a collection is known from its create.
 */
function payerOf({ detail }: Part, { provider_reference }: Matched): BookedEntry["payers"] {
  if (provider_reference === null || idOfBankIdentifier(provider_reference) !== null) return [];
  const details = detail && payerDetails(detail.counterparty);
  return details ? [{ reference: provider_reference, details }] : [];
}

/** Tells what a part says about one of our orders. Null if it is not a movement of the order. */
function ofOrder(id: string, { direction, detail }: Part): Matched | null {
  const provider_reference = bankIdentifier(id);
  const back = {
    failure_code: "bank_return",
    ...(detail?.return?.code && { return_code: detail.return.code }),
  } as const;
  switch (id.slice(0, id.indexOf("_"))) {
    case "pay":
      return direction === "credit"
        ? detail?.return ? null : { op: "authorize", state: "succeeded", provider_reference }
        : { op: "authorize", state: "returned", provider_reference, ...back };
    case "tr":
      return direction === "debit"
        ? { op: "transfer", state: "succeeded", provider_reference }
        : { op: "transfer", state: "returned", provider_reference, ...back };
    case "re":
      return direction === "debit"
        ? { op: "refund", state: "succeeded", provider_reference, refund_id: id }
        : { op: "refund", state: "returned", provider_reference, refund_id: id, ...back };
    default:
      return null;
  }
}

function ofAccount(op: AccountOp, direction: Direction): Matched {
  return { op, state: STATES[direction], provider_reference: null };
}

function aboutPart({ detail, information }: Part): EntryAbout {
  const { name = null, iban = null, account = null, bic = null } = detail?.counterparty ?? {};
  const text = [detail?.remittance, information].filter(Boolean).join("\n").slice(0, TEXT_MAX);
  return { counterparty: { name, iban, account, bic }, text: text || null };
}

/** Finds the reference of a payment: in its own field, in the text of the payer, or of the bank. */
function referenceOf(part: Part): string | null {
  for (const text of textsOf(part)) {
    const found = findReference(text ?? "");
    if (found !== null) return found;
  }
  return null;
}

/** The texts in which a reference can stand, the surest ones first. */
function textsOf({ detail, information }: Part): (string | null)[] {
  if (detail === null) return [information];
  const { references, remittance, end_to_end_id, transaction_id, other_references } = detail;
  return [
    ...references.map(({ reference }) => reference),
    remittance,
    end_to_end_id,
    transaction_id,
    ...other_references,
    information,
  ];
}

/** The last part of the reference of money that belongs to no payment tells people what it is. */
function suffixOf({ bank_code: { sub_family, proprietary }, direction }: Part): string {
  const text = (sub_family ?? proprietary ?? direction).slice(0, SUFFIX_MAX);
  return `:${text.replace(/[^A-Za-z0-9+]+/g, "-")}`;
}

function signed({ direction, amount_minor }: Pick<EntryRecord, "direction" | "amount_minor">) {
  return direction === "credit" ? amount_minor : -amount_minor;
}
