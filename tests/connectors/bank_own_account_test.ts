/** The forms in which banks write the number of an account, and those of other accounts. */

import assert from "node:assert/strict";
import { isOwnNumber } from "../../shared/connectors/bank/own_account.ts";

/** Numbers by the IBAN of an account in EUR: those that are its own, and others. */
const CASES: Readonly<Record<string, { own: string[]; others: string[] }>> = {
  DE02120300000000202051: {
    own: [
      "DE02120300000000202051",
      "de02 1203 0000 0000 2020 51",
      "DE02-1203-0000-0000-2020-51",
      "DE02120300000000202051 EUR",
      "120300000000202051",
      "12030000/0000202051",
      "12030000/202051",
      "12030000202051",
      "0000202051",
      "202051",
    ],
    others: [
      "",
      "EUR",
      "DE02120300000000202051 USD",
      "DE02120300000000202052",
      "DE03120300000000202051",
      "12030001/202051",
      "12030000/2051",
      "12030000/",
      "12030000/202051/1",
      "02051",
      "9000202051",
      "0000000051",
      "2051",
      "9202051",
    ],
  },
  DE12500105170532013000: { own: ["0532013000"], others: ["32013000", "00032013000"] },
  NO9386011117947: { own: ["86011117947", "8601.11.17947"], others: ["8602.11.17947"] },
  BE68539007547034: { own: ["539-0075470-34"], others: ["539-0075470-35"] },
  ES9121000418450200051332: { own: ["2100-0418-45-0200051332"], others: ["2100-0418-45"] },
  HU42117730161111101800000000: {
    own: ["11773016-11111018-00000000", "11773016-11111018"],
    others: ["11773016", "11773016-11111018-00000001", "00000000"],
  },
  HU93116000060000000012345676: { own: [], others: ["11600006-00000000"] },
  CH9300762011623852957: { own: ["0076-2011623852957", "011623852957"], others: ["762"] },
  PL61109010140000071219812874: {
    own: ["61 1090 1014 0000 0712 1981 2874", "109010140000071219812874"],
    others: ["62 1090 1014 0000 0712 1981 2874"],
  },
  CZ6508000000192000145399: {
    own: ["19-2000145399/0800", "000019-2000145399/0800"],
    others: ["2000145399/0800", "19-2000145399/0801"],
  },
  GB33BUKB20201555555555: { own: ["20-20-15 55555555"], others: ["20-20-16 55555555"] },
};

for (const [iban, { own, others }] of Object.entries(CASES)) {
  Deno.test(`isOwnNumber() knows the numbers of ${iban}`, () => {
    const found = (numbers: string[]) =>
      numbers.filter((text) => isOwnNumber(text, { iban, currency: "EUR" }));
    assert.deepEqual(found(own), own);
    assert.deepEqual(found(others), []);
  });
}
