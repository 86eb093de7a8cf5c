/**
 * Settings of an account at a bank: the merchant's own bank account. They are checked when an
 * account is added, and again for each request. None is a secret.
 */

import type { OwnBankAccount } from "../../core/bank_order.ts";
import { isCurrency, isStablecoin } from "../../core/currency.ts";
import { invalidParameter } from "../../core/errors.ts";
import { isValidCreditorIdentifier } from "../../core/creditor_identifier.ts";
import { isValidIban, normalizeIban } from "../../core/iban.ts";

/** The longest name that a SEPA file can have (EPC rulebooks, AT-D001). */
const HOLDER_NAME_MAX = 70;
const BIC = /^[A-Z]{6}[A-Z0-9]{2}([A-Z0-9]{3})?$/;
/** Days that a payer has for a bank transfer. */
const EXPIRES_AFTER_DAYS = 14;
const EXPIRES_AFTER_DAYS_MAX = 365;

const NAMES: readonly string[] = [
  "iban",
  "bic",
  "holder_name",
  "currency",
  "creditor_id",
  "expires_after_days",
];

/** The settings, with defaults. */
export interface BankSettings {
  /** Without spaces. */
  iban: string;
  bic: string;
  holder_name: string;
  /** The one currency of the bank account. */
  currency: string;
  /** Null: the account collects nothing. */
  creditor_id: string | null;
  expires_after_days: number;
}

/** Settings as they are stored. */
type Texts = Readonly<Record<string, string>>;

/**
 * Reads the settings of an account.
 *
 * @throws {ApiError} `invalid_parameter` with the name of the setting
 */
export function readBankSettings(settings: Texts): BankSettings {
  for (const name of Object.keys(settings)) {
    if (NAMES.includes(name)) continue;
    throw invalidParameter(name, `is not a setting of bank: the settings are ${NAMES.join(", ")}`);
  }
  return {
    iban: readIban(settings.iban),
    bic: readBic(settings.bic),
    holder_name: readHolderName(settings.holder_name),
    currency: readCurrency(settings.currency),
    creditor_id: readCreditorId(settings.creditor_id),
    expires_after_days: readDays(settings.expires_after_days),
  };
}

/** Returns the account as orders to the bank name it. */
export function ownBankAccount(settings: BankSettings): OwnBankAccount {
  const { holder_name: name, iban, bic, currency, creditor_id } = settings;
  return { name, iban, bic, address: null, currency, creditor_identifier: creditor_id };
}

/** Checks settings, and returns those to store: with the defaults of those that never change. */
export function checkBankSettings(settings: Texts): Record<string, string> {
  const { iban, bic, holder_name, currency } = readBankSettings(settings);
  return { ...settings, iban, bic, holder_name, currency };
}

function readIban(text: string | undefined): string {
  const iban = normalizeIban(text ?? "");
  if (isValidIban(iban)) return iban;
  throw invalidParameter("iban", "must be the IBAN of the bank account: a character is wrong");
}

function readBic(text: string | undefined): string {
  const bic = (text ?? "").replace(/\s/g, "").toUpperCase();
  if (BIC.test(bic)) return bic;
  throw invalidParameter("bic", "must be the BIC of the bank, of 8 or 11 characters");
}

function readHolderName(text: string | undefined): string {
  const name = (text ?? "").trim();
  if (name !== "" && [...name].length <= HOLDER_NAME_MAX) return name;
  throw invalidParameter(
    "holder_name",
    `must be the name of the account holder, of at most ${HOLDER_NAME_MAX} characters`,
  );
}

function readCurrency(text = "EUR"): string {
  if (isCurrency(text) && !isStablecoin(text)) return text;
  throw invalidParameter("currency", 'must be the currency of the bank account, such as "EUR"');
}

function readCreditorId(text: string | undefined): string | null {
  if (text === undefined) return null;
  const id = text.replace(/\s/g, "").toUpperCase();
  if (isValidCreditorIdentifier(id)) return id;
  throw invalidParameter(
    "creditor_id",
    "must be the creditor identifier of the merchant, such as DE98ZZZ09999999999: its check " +
      "digits are wrong",
  );
}

function readDays(text = String(EXPIRES_AFTER_DAYS)): number {
  const days = /^\d{1,3}$/.test(text) ? Number(text) : NaN;
  if (days >= 1 && days <= EXPIRES_AFTER_DAYS_MAX) return days;
  throw invalidParameter(
    "expires_after_days",
    `must be a whole number from 1 to ${EXPIRES_AFTER_DAYS_MAX}`,
  );
}
