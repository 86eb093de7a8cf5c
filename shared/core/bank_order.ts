/**
 * Orders to a bank: money that it pays out, and money that it collects by a mandate. The module has
 * their shape and the rules of the schemes that a schema of XML cannot hold. The sandbox and the
 * writer of bank files check the same rules.
 *
 * Sources: the rulebooks and guidelines of SEPA (EPC125-05, EPC004-16, EPC016-06, EPC132-08,
 * EPC130-08), EPC153-22 for addresses, and CBPR+ for SWIFT.
 */

import { isInEea, isInSepa } from "./bank_countries.ts";
import { BANK_SCHEMES, type BankRail } from "./bank_schemes.ts";
import { bicFitsIban, isValidBic } from "./bic.ts";
import { isValidCreditorIdentifier } from "./creditor_identifier.ts";
import { formatAmount } from "./currency.ts";
import { ibanCountry, isValidIban, remainderOf97 } from "./iban.ts";
import { saysAnything, toSepaText } from "./sepa_text.ts";
import { isTargetDay } from "./target_calendar.ts";
import type { MANDATE_SEQUENCES } from "./vocabulary.ts";

/** Most characters of the remittance, after its conversion to the characters of SEPA. */
const MAX_REMITTANCE_LENGTH = 140;
const MAX_ADDRESS_LENGTH = { line1: 70, line2: 70, city: 35, postal_code: 16 };

/** RF, two check digits and 1 to 21 letters or digits (ISO 11649). */
const CREDITOR_REFERENCE = /^RF[0-9]{2}[A-Z0-9]{1,21}$/;
/** Longest id of a mandate, and its characters: those of SEPA, slashes and spaces inside. */
export const MAX_MANDATE_ID_LENGTH = 35;
export const MANDATE_ID = /^[A-Za-z0-9+?:().,'-]+(?:[/ ][A-Za-z0-9+?:().,'-]+)*$/;

const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** The scheme that collects, as the rails say (`collects`). */
const COLLECTING: BankRail = "sepa";

/** The place of a collection among those of its mandate. */
export type MandateSequence = typeof MANDATE_SEQUENCES[number];

/** A postal address. Its lines are free text: street and number, building, flat. */
export interface PostalAddress {
  line1: string | null;
  line2: string | null;
  city: string;
  postal_code: string | null;
  /** ISO 3166, two capital letters. */
  country: string;
}

/** The other side of an order, with its bank account. Only its address can be missing by rule. */
export interface BankParty {
  name: string;
  /** Normalized. */
  iban: string;
  bic: string | null;
  address: PostalAddress | null;
}

export interface OwnBankAccount extends BankParty {
  currency: string;
  /** Needed to collect. */
  creditor_identifier: string | null;
  /** From this time on the bank takes a file for its next day: `HH:MM` in central Europe. */
  cut_off: string;
}

/** The purpose that the other side reads on its statement: a creditor reference, or free text. */
export type Remittance = { reference: string } | { text: string };

/** The members of both kinds of orders. */
interface BankOrder {
  /** Our id of the payment, refund or transfer. */
  id: string;
  amount_minor: number;
  currency: string;
  remittance: Remittance | null;
}

/** An order to pay out: a transfer or a refund. */
export interface PayoutOrder extends BankOrder {
  rail: BankRail;
  payee: BankParty;
  speed: "standard" | "instant";
  charges: typeof BANK_SCHEMES[BankRail]["charges"][number];
  /** The unique end-to-end transaction reference of a SWIFT payment: a UUID of version 4. */
  uetr: string | null;
  /** The day on which our bank shall pay, as `YYYY-MM-DD`. */
  execute_on: string;
}

/** An order to collect by a SEPA mandate. */
export interface CollectionOrder extends BankOrder {
  payer: BankParty;
  mandate: { id: string; /** `YYYY-MM-DD` */ signed_on: string; sequence: MandateSequence };
  /** The day on which the payer's bank shall pay, as `YYYY-MM-DD`. */
  due_on: string;
}

/** A rule that an order breaks: the member at fault, as a path, and the reason for people. */
export interface OrderFault {
  field: string;
  reason: string;
}

/** Returns the first rule that an order to pay out breaks, or null. */
export function payoutFault(order: PayoutOrder, account: OwnBankAccount): OrderFault | null {
  const { rail, speed, charges, uetr, payee } = order;
  const { name, has_instant, has_uetr, charges: known } = BANK_SCHEMES[rail];
  return amountFault(order, rail, account) ??
    partyFault("payee", payee, rail, needsAddress(payee.iban)) ??
    remittanceFault(order.remittance) ??
    fault("speed", !has_instant && speed === "instant", `${name} has no instant payments`) ??
    fault("charges", !known.includes(charges), `${name} only knows ${known.join(", ")}`) ??
    fault("uetr", !has_uetr && uetr !== null, `${name} payments have none`) ??
    fault("uetr", has_uetr && !UUID_V4.test(uetr ?? ""), "must be a UUID of version 4");
}

/** Returns the first rule that an order to collect breaks, or null. */
export function collectionFault(
  order: CollectionOrder,
  account: OwnBankAccount,
): OrderFault | null {
  const { mandate, due_on } = order;
  const creditor = account.creditor_identifier ?? "";
  return fault(
    "creditor_identifier",
    !isValidCreditorIdentifier(creditor),
    "the account needs a creditor identifier with right check digits",
  ) ?? amountFault(order, COLLECTING, account) ??
    partyFault("payer", order.payer, COLLECTING, needsAddress(order.payer.iban, account.iban)) ??
    fault("payer.iban", order.payer.iban === account.iban, "is that of the account itself") ??
    remittanceFault(order.remittance) ??
    fault(
      "mandate.id",
      mandate.id.length > MAX_MANDATE_ID_LENGTH || !MANDATE_ID.test(mandate.id),
      "must have 1 to 35 characters of SEPA, each slash and space between two others",
    ) ??
    fault("mandate.signed_on", mandate.signed_on > due_on, "is after the due date") ??
    fault("due_on", !isTargetDay(due_on), "is not a day on which banks collect (TARGET)");
}

/** Returns the first rule that our own account breaks, or null. */
export function accountFault(account: OwnBankAccount, rail: BankRail): OrderFault | null {
  return partyFault("account", account, rail, false);
}

/** Returns the scheme that reaches an account in every currency that the scheme has. */
export function railOfAccount(iban: string): BankRail {
  return isInSepa(ibanCountry(iban)) ? "sepa" : "swift";
}

/**
 * Reports whether an order needs the address of the other side: a payout if the payee's bank is
 * outside the European Economic Area, a collection if one of the two banks is.
 */
export function needsAddress(...ibans: readonly string[]): boolean {
  return ibans.some((iban) => !isInEea(ibanCountry(iban)));
}

/**
 * Returns the first rule that an address breaks, or null. Unstructured addresses break one: town
 * and country have members of their own, and at most two lines hold the rest. Nobody splits a free
 * text.
 */
export function addressFault(address: PostalAddress): OrderFault | null {
  for (const field of ["line1", "line2", "postal_code", "city"] as const) {
    const text = address[field];
    if (text === null) continue;
    const max = MAX_ADDRESS_LENGTH[field];
    const found = textFault(field, text, max);
    if (found) return found;
  }
  return fault("country", !/^[A-Z]{2}$/.test(address.country), "must be a code of ISO 3166");
}

/** Returns the first rule that a party breaks, or null. `path` begins the names of its members. */
export function partyFault(
  path: string,
  party: BankParty,
  rail: BankRail,
  needs_address: boolean,
): OrderFault | null {
  const { name, iban, bic, address } = party;
  const { name_max, is_sepa_only } = BANK_SCHEMES[rail];
  const at = (field: string) => `${path}.${field}`;
  const address_fault = address && addressFault(address);
  return textFault(at("name"), name, name_max) ??
    fault(at("iban"), !isValidIban(iban), "is not a valid IBAN") ??
    fault(
      at("iban"),
      is_sepa_only && !isInSepa(ibanCountry(iban)),
      "banks of this country do not take part in SEPA",
    ) ??
    fault(at("bic"), bic !== null && !isValidBic(bic), "is not a valid BIC") ??
    fault(
      at("bic"),
      bic !== null && !bicFitsIban(bic, iban),
      "is of another country than the IBAN",
    ) ??
    fault(
      at("address"),
      address === null && needs_address,
      "is needed by banks outside the EEA",
    ) ??
    (address_fault && { ...address_fault, field: at(`address.${address_fault.field}`) });
}

function amountFault(
  { amount_minor, currency }: BankOrder,
  rail: BankRail,
  account: OwnBankAccount,
): OrderFault | null {
  const { name, currency: only, amount_max } = BANK_SCHEMES[rail];
  return fault("currency", only !== null && currency !== only, `${name} only knows ${only}`) ??
    fault("currency", currency !== account.currency, "is not the currency of the account") ??
    fault(
      "amount_minor",
      !Number.isSafeInteger(amount_minor) || amount_minor < 1,
      "must be a positive integer",
    ) ??
    (amount_max !== null && amount_minor > amount_max
      ? {
        field: "amount_minor",
        reason: `is above the limit of ${name}, ${formatAmount(amount_max, currency)}`,
      }
      : null);
}

function remittanceFault(remittance: Remittance | null): OrderFault | null {
  if (remittance === null) return null;
  if ("text" in remittance) {
    return textFault("remittance.text", remittance.text, MAX_REMITTANCE_LENGTH);
  }
  const { reference } = remittance;
  const is_valid = CREDITOR_REFERENCE.test(reference) &&
    remainderOf97(reference.slice(4) + reference.slice(0, 4)) === 1;
  return fault("remittance.reference", !is_valid, "is not a creditor reference of ISO 11649");
}

function textFault(field: string, text: string, max: number): OrderFault | null {
  const converted = toSepaText(text);
  return fault(
    field,
    !saysAnything(converted),
    "has no letter or digit in the characters of SEPA",
  ) ??
    fault(field, converted.length > max, `has more than ${max} characters`);
}

function fault(field: string, is_broken: boolean, reason: string): OrderFault | null {
  return is_broken ? { field, reason } : null;
}
