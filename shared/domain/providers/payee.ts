/**
 * The payee of a payout by a bank: checks the account and the details that banks ask for (contract
 * §3), and keeps the masked parts of the IBAN only. Pure.
 */

import { invalidParameter } from "../../core/errors.ts";
import { normalizeIban } from "../../core/iban.ts";
import type { IbanInput, PayeeInput } from "../../schema/bank_account.ts";
import { checkCurrency, type Instrument, readIban } from "./instrument.ts";
import { testIban } from "./test_values.ts";

/** The countries of the EEA, ISO 3166-1 alpha-2. Payees elsewhere need a postal address. */
const EEA = new Set(
  ("AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IS IT LI LT LU LV MT NL NO PL PT RO SE SI SK")
    .split(" "),
);

/** The countries that a BIC can name for an IBAN of another country: banks of territories. */
const TERRITORIES: Readonly<Record<string, string>> = {
  FR: "BL GF GP MC MF MQ NC PF PM RE TF WF YT",
  GB: "GG IM JE",
  MC: "FR",
};

/** A checked payee without its secret parts. */
export interface Payee extends Instrument {
  /** True: the sandbox's bank knows the account under another name, so somebody has to approve. */
  waits_for_approval: boolean;
}

/**
 * Reads the payee in `destination`. Throws `invalid_parameter` with the field at fault.
 * @param payee with the account as an object in `iban`, or its members beside it
 */
export function readPayee(
  payee: PayeeInput & { iban: IbanInput },
  { currency, livemode }: { currency: string; livemode: boolean },
): Payee {
  const instrument = readIban(payee.iban.iban, undefined, currency, { prefix: "destination." });
  checkCurrency(instrument.kind, currency);
  const bic = agreed(payee, "bic");
  const holder_name = agreed(payee, "holder_name");
  const country = normalizeIban(payee.iban.iban).slice(0, 2);
  if (bic !== undefined && !isOfCountry(bic, country)) {
    throw invalidParameter(
      payee.bic === undefined ? "destination.iban.bic" : "destination.bic",
      `The BIC and the IBAN belong to different countries: the IBAN is from ${country}`,
    );
  }
  if (livemode && holder_name === undefined) {
    throw invalidParameter(
      "destination.holder_name",
      '"destination.holder_name" is required with a live key: the bank verifies the name',
    );
  }
  const is_test = !livemode && testIban(payee.iban.iban) !== undefined;
  if (payee.address === undefined && !EEA.has(country) && !is_test) {
    throw invalidParameter(
      "destination.address",
      '"destination.address" is required for an IBAN from outside the EEA: send "city" and ' +
        '"country" at least',
    );
  }
  const waits_for_approval = !livemode && /^(no|close) match\b/i.test(holder_name ?? "");
  return { ...instrument, waits_for_approval };
}

/** Throws `invalid_parameter` if a payout asks for a speed that its rail does not have. */
export function checkSpeed(speed: string | undefined, is_sepa: boolean): void {
  if (speed !== "instant" || is_sepa) return;
  throw invalidParameter("speed", '"speed" can be "instant" only for EUR to an IBAN: leave it out');
}

/** Returns a detail of the account, which can stand in two places with one value. */
function agreed(payee: PayeeInput, name: "bic" | "holder_name"): string | undefined {
  const inner = payee.iban?.[name];
  const outer = payee[name];
  if (inner !== undefined && outer !== undefined && inner !== outer) {
    throw invalidParameter(
      `destination.${name}`,
      `"destination.${name}" differs from "destination.iban.${name}": send one of them`,
    );
  }
  return outer ?? inner;
}

function isOfCountry(bic: string, country: string): boolean {
  const of_bic = bic.slice(4, 6).toUpperCase();
  return of_bic === country || (TERRITORIES[country] ?? "").split(" ").includes(of_bic);
}
