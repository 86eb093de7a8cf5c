/**
 * The payee of a payout by a bank: checks the account and the details that banks ask for (contract
 * §3), and keeps the masked parts of the IBAN only. Pure.
 */

import { invalidParameter } from "../../core/errors.ts";
import { bicFitsIban } from "../../core/bic.ts";
import { ibanCountry, normalizeIban } from "../../core/iban.ts";
import type { AddressInput, IbanInput, PayeeCheck, PayeeInput } from "../../schema/bank_account.ts";
import { type BankDetails, bankDetailsOf, checkAddress } from "./bank_details.ts";
import { railOfAccount } from "../../core/bank_order.ts";
import { BANK_SCHEMES } from "../../core/bank_schemes.ts";
import type { MethodKind } from "../../schema/payment_body.ts";
import { checkCurrency, type Instrument, readIban } from "./instrument.ts";
import { RAILS } from "../rails.ts";

/** A checked payee without its secret parts. */
export interface Payee extends Instrument {
  /** The result of the sandbox's bank; null: it says nothing, or a real bank says it later. */
  payee_check: PayeeCheck | null;
  /** The whole account, for a live order to a bank; null for a test key. */
  details: BankDetails | null;
}

/**
 * Reads the payee in `destination`. Throws `invalid_parameter` with the field at fault.
 * @param payee with the account as an object in `iban`, or its members beside it
 */
export function readPayee(
  payee: PayeeInput & { iban: IbanInput },
  { currency, livemode }: { currency: string; livemode: boolean },
): Payee {
  const iban = normalizeIban(payee.iban.iban);
  const country = ibanCountry(iban);
  // Banks outside of SEPA get EUR by SWIFT, as every other currency. In SEPA the currency decides.
  const rail = railOfAccount(iban);
  const kind = BANK_SCHEMES[rail].is_sepa_only ? undefined : rail;
  const instrument = readIban(iban, kind, currency, { prefix: "destination." });
  checkCurrency(instrument.kind, currency);
  const bic = agreed("bic", payee.iban.bic, payee.bic);
  const holder_name = agreed("holder_name", payee.iban.holder_name, payee.holder_name);
  const address = agreed<AddressInput>("address", payee.iban.address, payee.address);
  if (bic !== undefined && !bicFitsIban(bic.toUpperCase(), iban)) {
    throw invalidParameter(
      payee.bic === undefined ? "destination.iban.bic" : "destination.bic",
      `The BIC and the IBAN belong to different countries: the IBAN is from ${country}`,
    );
  }
  checkAddress({ iban, address }, "destination.", livemode);
  const details = livemode
    ? bankDetailsOf(
      { iban, bic, holder_name, address },
      "destination.",
      RAILS[instrument.kind].bank!,
    )
    : null;
  return { ...instrument, payee_check: livemode ? null : simulatedCheck(holder_name), details };
}

/** Returns the result of the sandbox's bank, which the beginning of the name decides. */
function simulatedCheck(holder_name = ""): PayeeCheck | null {
  const [, words] = /^((?:no |close )?match)\b/i.exec(holder_name) ?? [];
  return words === undefined ? null : words.toLowerCase().replace(" ", "_") as PayeeCheck;
}

/** Throws `invalid_parameter` if a payout asks for a speed that its rail does not have. */
export function checkSpeed(speed: string | undefined, kind: MethodKind): void {
  const { bank } = RAILS[kind];
  if (speed !== "instant" || bank && BANK_SCHEMES[bank].has_instant) return;
  throw invalidParameter(
    "speed",
    '"speed" can be "instant" only for EUR to an IBAN of SEPA: leave it out',
  );
}

/** Returns a detail of the account, which can stand in two places with one value. */
function agreed<Detail>(
  name: string,
  inner: Detail | undefined,
  outer: Detail | undefined,
): Detail | undefined {
  const differ = JSON.stringify(inner) !== JSON.stringify(outer);
  if (inner !== undefined && outer !== undefined && differ) {
    throw invalidParameter(
      `destination.${name}`,
      `"destination.${name}" and "destination.iban.${name}" differ: send one of them`,
    );
  }
  return outer ?? inner;
}
