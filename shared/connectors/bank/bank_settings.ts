/**
 * Settings of an account at a bank: the merchant's own bank account. They are checked when an
 * account is added, and again for each request. None is a secret.
 */

import { isInSepa } from "../../core/bank_countries.ts";
import { accountFault, type OwnBankAccount } from "../../core/bank_order.ts";
import { SWIFT_CHARGES } from "../../core/bank_schemes.ts";
import { isCurrency, isStablecoin } from "../../core/currency.ts";
import { type ApiError, invalidParameter } from "../../core/errors.ts";
import { isValidCreditorIdentifier } from "../../core/creditor_identifier.ts";
import { ibanCountry, isValidIban, normalizeIban } from "../../core/iban.ts";
import { PRENOTIFICATION_DAYS } from "../../domain/payments/collection.ts";
import { checkCurrency } from "../../domain/providers/instrument.ts";
import type { MethodKind } from "../../schema/payment_body.ts";
import { type OwnBusinessRule, readOwnBusiness } from "./own_business.ts";

/** The longest name that a SEPA file can have (EPC rulebooks, AT-D001). */
const HOLDER_NAME_MAX = 70;
const BIC = /^[A-Z]{6}[A-Z0-9]{2}([A-Z0-9]{3})?$/;
/** Settings of a number of days: the default and the largest. The smallest is 1. */
const DAYS = {
  /** A bank transfer can be late, and no payer needs more than a year. */
  expires_after_days: { usual: 14, max: 365 },
  /** Merchant and payer can agree on another number (EPC016-06, section 4.3). */
  prenotification_days: { usual: PRENOTIFICATION_DAYS, max: 30 },
} as const;

/** Whether the bank verifies the payees of a file, or the merchant waives that where it can. */
const VOP = ["check", "opt_out"] as const;
/**
 * What banks charge for a return, in minor units. The interbank charges of a returned direct debit
 * are some EUR, and banks of payees deduct up to 15.00 EUR from a returned payout by SWIFT.
 */
const RETURN_CHARGE = { usual: 1_500, max: 100_000 };
/** Most banks take direct debits of the next day until the afternoon. An early one is free. */
const CUT_OFF = "12:00";

const NAMES: readonly string[] = [
  "iban",
  "bic",
  "holder_name",
  "currency",
  "creditor_id",
  "vop",
  "charges",
  "cut_off",
  "return_charge_minor",
  "own_business",
  ...Object.keys(DAYS),
];

export interface BankSettings {
  /** Without spaces. */
  iban: string;
  bic: string;
  holder_name: string;
  currency: string;
  /** Null: the account collects nothing. */
  creditor_id: string | null;
  /** `opt_out`: files of two or more SEPA payouts waive the verification of payees. */
  vop: typeof VOP[number];
  /** Who pays what the banks charge for a payout by SWIFT. */
  charges: typeof SWIFT_CHARGES[number];
  /** From this time on the bank takes a file for its next day: `HH:MM` in central Europe. */
  cut_off: string;
  /** Entries that have nothing to do with payments, refunds and transfers. */
  own_business: readonly OwnBusinessRule[];
  /** The most that the bank takes for a return inside of its amount. */
  return_charge_minor: number;
  /** Days that a payer has for a bank transfer. */
  expires_after_days: number;
  /** Days between a create and the earliest due date of its collection. */
  prenotification_days: number;
}

type Texts = Readonly<Record<string, string>>;

/** Reads the settings of an account. Throws `invalid_parameter` with the name of the setting. */
export function readBankSettings(settings: Texts): BankSettings {
  for (const name of Object.keys(settings)) {
    if (NAMES.includes(name)) continue;
    throw refusal(name, `is not a setting of bank: the settings are ${NAMES.join(", ")}`);
  }
  return {
    iban: readIban(settings.iban),
    bic: readBic(settings.bic),
    holder_name: readHolderName(settings.holder_name),
    currency: readCurrency(settings.currency),
    creditor_id: readCreditorId(settings.creditor_id),
    vop: readChoice("vop", VOP, settings.vop),
    charges: readChoice("charges", SWIFT_CHARGES, settings.charges),
    cut_off: readCutOff(settings.cut_off),
    own_business: readRules(settings.own_business),
    return_charge_minor: readReturnCharge(settings.return_charge_minor),
    expires_after_days: readDays(settings, "expires_after_days"),
    prenotification_days: readDays(settings, "prenotification_days"),
  };
}

export function ownBankAccount(settings: BankSettings): OwnBankAccount {
  const { holder_name: name, iban, bic, currency, creditor_id, cut_off } = settings;
  return { name, iban, bic, address: null, currency, creditor_identifier: creditor_id, cut_off };
}

/**
 * Checks settings, and returns those to store: with the defaults of those that never change.
 *
 * @param method_kinds that the account serves
 * @throws {ApiError} `invalid_parameter` with the name of the setting
 */
export function checkBankSettings(
  settings: Texts,
  method_kinds: readonly MethodKind[] = [],
): Record<string, string> {
  const read = readBankSettings(settings);
  const { iban, bic, holder_name, currency } = read;
  for (const kind of method_kinds) checkCurrency(kind, currency);
  // It sends EUR to accounts in SEPA by SEPA, whatever its methods are.
  const is_in_sepa = currency === "EUR" && isInSepa(ibanCountry(iban));
  const rail = method_kinds.includes("sepa") || is_in_sepa ? "sepa" : "swift";
  const fault = accountFault(ownBankAccount(read), rail);
  if (fault !== null) {
    throw refusal(
      fault.field.replace("account.", "").replace(/^name$/, "holder_name"),
      fault.reason,
    );
  }
  return { ...settings, iban, bic, holder_name, currency };
}

function readIban(text: string | undefined): string {
  const iban = normalizeIban(text ?? "");
  if (isValidIban(iban)) return iban;
  throw refusal("iban", "must be the IBAN of the bank account: a character is wrong");
}

function readBic(text: string | undefined): string {
  const bic = (text ?? "").replace(/\s/g, "").toUpperCase();
  if (BIC.test(bic)) return bic;
  throw refusal("bic", "must be the BIC of the bank, of 8 or 11 characters");
}

function readHolderName(text: string | undefined): string {
  const name = (text ?? "").trim();
  if (name !== "" && [...name].length <= HOLDER_NAME_MAX) return name;
  throw refusal(
    "holder_name",
    `must be the name of the account holder, of at most ${HOLDER_NAME_MAX} characters`,
  );
}

function readCurrency(text = "EUR"): string {
  if (isCurrency(text) && !isStablecoin(text)) return text;
  throw refusal("currency", 'must be the currency of the bank account, such as "EUR"');
}

function readCreditorId(text: string | undefined): string | null {
  if (text === undefined) return null;
  const id = text.replace(/\s/g, "").toUpperCase();
  if (isValidCreditorIdentifier(id)) return id;
  throw refusal(
    "creditor_id",
    "must be the creditor identifier of the merchant, such as DE98ZZZ09999999999: its check " +
      "digits are wrong",
  );
}

/** Reads one of some texts; the first is the default. */
function readChoice<Choice extends string>(
  name: string,
  choices: readonly [Choice, ...Choice[]],
  text: string = choices[0],
): Choice {
  const found = choices.find((choice) => choice === text);
  if (found !== undefined) return found;
  throw refusal(name, `must be ${choices.map((choice) => `"${choice}"`).join(" or ")}`);
}

function readCutOff(text = CUT_OFF): string {
  if (/^([01]\d|2[0-3]):[0-5]\d$/.test(text)) return text;
  throw refusal("cut_off", 'must be a time of day in central Europe, such as "17:30"');
}

function readReturnCharge(text = String(RETURN_CHARGE.usual)): number {
  const charge = /^\d{1,6}$/.test(text) ? Number(text) : NaN;
  if (charge <= RETURN_CHARGE.max) return charge;
  throw refusal(
    "return_charge_minor",
    `must be an amount in minor units from 0 to ${RETURN_CHARGE.max}, such as 1500`,
  );
}

function readRules(text = ""): readonly OwnBusinessRule[] {
  const rules = readOwnBusiness(text);
  if (rules !== null) return rules;
  throw refusal(
    "own_business",
    'must have rules separated by ";", each of an IBAN, the beginning of a payee or a ' +
      'transaction code: "iban:DE89…; name:City Rent; code:PMNT-ICDT-SALA", at most 50',
  );
}

function readDays(settings: Texts, name: keyof typeof DAYS): number {
  const { usual, max } = DAYS[name];
  const text = settings[name] ?? String(usual);
  const days = /^\d{1,3}$/.test(text) ? Number(text) : NaN;
  if (days >= 1 && days <= max) return days;
  throw refusal(name, `must be a whole number from 1 to ${max}`);
}

function refusal(name: string, reason: string): ApiError {
  return invalidParameter(name, `"${name}" ${reason}`);
}
