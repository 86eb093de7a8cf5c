/** BICs: their form, and the countries of IBANs that they fit. */

import assert from "node:assert/strict";
import { isInEea, isInSepa } from "../../shared/core/bank_countries.ts";
import { bicFitsIban, isValidBic } from "../../shared/core/bic.ts";

const FORMS: [bic: string, is_valid: boolean][] = [
  ["COBADEFF", true],
  ["COBADEFFXXX", true],
  ["BNPAFRPP123", true],
  ["TRWIBEB1", true],
  ["E097AEXX", true], // digits are allowed in the prefix since 2014
  ["", false],
  ["COBADEF", false],
  ["COBADEFFX", false],
  ["COBADEFFXXXX", false],
  ["COBA12FF", false],
  ["cobadeff", false],
  ["COBADEFF\n", false],
];

for (const [bic, is_valid] of FORMS) {
  Deno.test(`isValidBic() ${JSON.stringify(bic)} is ${is_valid}`, () => {
    assert.equal(isValidBic(bic), is_valid);
  });
}

/** Country of the IBAN, countries of BICs that fit it, and countries of BICs that do not. */
const COUNTRIES: [iban: string, fits: string, fits_not: string][] = [
  ["DE", "DE", "AT FR LU"],
  ["FR", "FR GP MQ GF RE YT PM BL MC MF NC PF WF TF", "BE GG"],
  ["MC", "MC FR", "IT"],
  ["GB", "GB JE GG IM", "IE GI FR"],
  ["IE", "IE GB", "JE"],
  ["DK", "DK FO GL", "SE"],
  ["FO", "FO", "DK"],
  ["FI", "FI AX", "SE"],
  ["SM", "SM", "IT"],
  ["VA", "VA", "IT"],
  ["GI", "GI", "GB"],
];

for (const [iban, fits, fits_not] of COUNTRIES) {
  Deno.test(`bicFitsIban() an IBAN of ${iban} has banks of ${fits}`, () => {
    const fitsBank = (country: string) => bicFitsIban(`TEST${country}22`, `${iban}00`);
    for (const country of fits.split(" ")) assert.ok(fitsBank(country), country);
    for (const country of fits_not.split(" ")) assert.ok(!fitsBank(country), country);
  });
}

const AREAS: [country: string, is_in_sepa: boolean, is_in_eea: boolean][] = [
  ["DE", true, true],
  ["NO", true, true],
  ["IS", true, true],
  ["LI", true, true],
  ["HR", true, true],
  ["CH", true, false],
  ["GB", true, false],
  ["MC", true, false],
  ["SM", true, false],
  ["VA", true, false],
  ["AD", true, false],
  ["RS", true, false],
  ["GI", true, false],
  ["FO", false, false],
  ["TR", false, false],
  ["UA", false, false],
  ["BR", false, false],
];

for (const [country, is_in_sepa, is_in_eea] of AREAS) {
  Deno.test(`isInSepa() ${country} is ${is_in_sepa}, isInEea() ${is_in_eea}`, () => {
    assert.deepEqual([isInSepa(country), isInEea(country)], [is_in_sepa, is_in_eea]);
  });
}
