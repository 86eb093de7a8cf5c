/**
 * The whole bank details of a payer or payee. A live order to a bank needs them until it has left;
 * everything else sees the country and the last four characters (security §2).
 */

import {
  needsAddress,
  partyFault,
  type PostalAddress,
  railOfAccount,
} from "../../core/bank_order.ts";
import { BANK_SCHEMES, type BankRail } from "../../core/bank_schemes.ts";
import { invalidParameter } from "../../core/errors.ts";
import { bicFitsIban, isValidBic } from "../../core/bic.ts";
import { normalizeIban } from "../../core/iban.ts";
import { toSepaText } from "../../core/sepa_text.ts";
import type { AddressInput, IbanInput } from "../../schema/bank_account.ts";
import { testIban } from "./test_values.ts";

/** The details that a live order to a bank is made of. They are kept sealed. */
export interface BankDetails {
  holder_name: string;
  /** Normalized. */
  iban: string;
  bic: string | null;
  address: PostalAddress | null;
}

type BankAccountInput = Omit<IbanInput, "address"> & { address?: AddressInput | undefined };

/**
 * Throws `invalid_parameter` if banks need the address of an account holder and the request has
 * none. The test IBANs of a sandbox need none.
 *
 * @param prefix of the names of the fields, such as `destination.`
 */
export function checkAddress(
  { iban, address }: BankAccountInput,
  prefix: string,
  livemode: boolean,
): void {
  const is_test = !livemode && testIban(iban) !== undefined;
  if (address !== undefined || is_test || !needsAddress(normalizeIban(iban))) return;
  throw invalidParameter(
    `${prefix}address`,
    `"${prefix}address" is required for an IBAN from outside the EEA: send "city" and "country" ` +
      "at least",
  );
}

/**
 * Reads the details of a live order. Throws `invalid_parameter` for what the bank would refuse.
 *
 * @param prefix of the names of the fields, such as `destination.`
 */
export function bankDetailsOf(
  { iban: text, bic: given_bic, holder_name, address }: BankAccountInput,
  prefix: string,
  rail: BankRail,
): BankDetails {
  if (holder_name === undefined) {
    throw invalidParameter(
      `${prefix}holder_name`,
      `"${prefix}holder_name" is required with a live key: banks refuse an order without the name`,
    );
  }
  const iban = normalizeIban(text);
  const bic = given_bic?.toUpperCase() ?? null;
  const postal = addressOf(address);
  const party = { name: holder_name, iban, bic, address: postal };
  const fault = partyFault("", party, rail, needsAddress(iban));
  if (fault !== null) {
    const field = prefix + fault.field.replace(/^\./, "").replace(/^name$/, "holder_name");
    throw invalidParameter(field, `"${field}" ${fault.reason}`);
  }
  return { holder_name, iban, bic, address: postal };
}

/** Returns the details of a payer as a bank names them; null: it names no account to pay to. */
export function payerDetails(
  { name, iban, bic }: Record<"name" | "iban" | "bic", string | null>,
): BankDetails | null {
  if (iban === null || !name) return null;
  const holder_name = toSepaText(name).slice(0, BANK_SCHEMES.sepa.name_max).trim();
  const fits = bic !== null && isValidBic(bic) && bicFitsIban(bic, iban);
  return { holder_name, iban, bic: fits ? bic : null, address: null };
}

/** Returns the member without which no payout to an account can be written; null: none. */
export function lackOf({ holder_name: name, iban, bic, address }: BankDetails): string | null {
  const party = { name, iban, bic, address };
  const fault = partyFault("", party, railOfAccount(iban), needsAddress(iban));
  return fault && fault.field.slice(1);
}

function addressOf(input: AddressInput | undefined): PostalAddress | null {
  if (input?.city === undefined || input.country === undefined) return null;
  const { line1 = null, line2 = null, city, postal_code = null, country } = input;
  return { line1, line2, city, postal_code, country: country.toUpperCase() };
}
