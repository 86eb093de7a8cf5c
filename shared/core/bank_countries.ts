/**
 * Countries of bank accounts, as ISO 3166 codes: those of SEPA, of the European Economic Area, and
 * the territories whose banks use the IBAN of another country.
 *
 * Sources: EPC409-09 (countries of the SEPA schemes, with Albania, Moldova, Montenegro, North
 * Macedonia and Serbia), EPC's table of IBAN and BIC, and the registry of ISO 13616.
 */

/** The European Economic Area. */
const EEA = new Set(
  ("AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IS IT LI LT LU LV MT NL NO PL PT RO SE SI SK")
    .split(" "),
);

/** Countries of SEPA outside the European Economic Area. */
const SEPA_OUTSIDE_EEA = new Set("AD AL CH GB GI MC MD ME MK RS SM VA".split(" "));

/** Countries of a BIC that an IBAN can have besides its own. */
const OTHER_BIC_COUNTRIES: Readonly<Record<string, string>> = {
  DK: "FO GL",
  FI: "AX",
  FR: "BL GF GP MC MF MQ NC PF PM RE TF WF YT",
  GB: "GG IM JE",
  IE: "GB",
  MC: "FR",
};

/** Reports whether a country is in the European Economic Area. */
export function isInEea(country: string): boolean {
  return EEA.has(country);
}

export function isInSepa(country: string): boolean {
  return EEA.has(country) || SEPA_OUTSIDE_EEA.has(country);
}

/** Reports whether a bank of `bic_country` can have accounts with an IBAN of `iban_country`. */
export function isBankOf(iban_country: string, bic_country: string): boolean {
  return bic_country === iban_country ||
    (OTHER_BIC_COUNTRIES[iban_country]?.split(" ").includes(bic_country) ?? false);
}
