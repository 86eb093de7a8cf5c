/** readPayee(): the details that banks ask for, and the names that the sandbox's bank verifies. */

import assert from "node:assert/strict";
import { checkSpeed, readPayee } from "../../shared/domain/providers/payee.ts";
import type { IbanInput, PayeeInput } from "../../shared/schema/bank_account.ts";
import { isValidIban } from "../../shared/core/iban.ts";
import { refusalOf } from "../support/domain/decided_change.ts";

const ADDRESS = { city: "London", country: "GB" };
const FR = "FR1420041010050500013M02606";
const GB = "GB29NWBK60161331926819";
const CH = "CH9300762011623852957";
const MC = "MC5811222000010123456789030";
const NO = "NO9386011117947";

const read = (payee: Omit<PayeeInput, "iban"> & { iban: string | IbanInput }, options = {}) => {
  const iban = typeof payee.iban === "string" ? { iban: payee.iban } : payee.iban;
  return readPayee({ ...payee, iban }, { currency: "EUR", livemode: false, ...options });
};

/** [name, payee, refused field or null, options] */
const CASES: [string, Parameters<typeof read>[0], string | null, object?][] = [
  ["an IBAN alone", { iban: FR }, null],
  ["a name", { iban: FR, holder_name: "Ada" }, null],
  ["a BIC of the country", { iban: FR, bic: "BNPAFRPP" }, null],
  ["a BIC in lower case", { iban: FR, bic: "bnpafrppxxx" }, null],
  ["a BIC of another country", { iban: FR, bic: "COBADEFF" }, "destination.bic"],
  ["the same in the object", { iban: { iban: FR, bic: "COBADEFF" } }, "destination.iban.bic"],
  ["a BIC of Réunion with an IBAN of France", { iban: FR, bic: "BNPAREPP" }, null],
  ["a BIC of Monaco with an IBAN of France", { iban: FR, bic: "BNPAMCPP" }, null],
  ["a BIC of France with an IBAN of Monaco", { iban: MC, bic: "BNPAFRPP", address: ADDRESS }, null],
  [
    "a BIC of Jersey with an IBAN of Britain",
    { iban: GB, bic: "NWBKJESH", address: ADDRESS },
    null,
  ],
  ["a BIC of Britain with an IBAN of France", { iban: FR, bic: "NWBKGB2L" }, "destination.bic"],
  ["the same BIC twice", { iban: { iban: FR, bic: "BNPAFRPP" }, bic: "BNPAFRPP" }, null],
  [
    "two BICs",
    { iban: { iban: FR, bic: "BNPAFRPP" }, bic: "BNPAFRPPXXX" },
    "destination.bic",
  ],
  [
    "two names",
    { iban: { iban: FR, holder_name: "Ada" }, holder_name: "Eve" },
    "destination.holder_name",
  ],
  ["an address in the object", { iban: { iban: GB, address: ADDRESS } }, null],
  ["the same address twice", { iban: { iban: GB, address: ADDRESS }, address: ADDRESS }, null],
  [
    "two addresses",
    { iban: { iban: GB, address: ADDRESS }, address: { ...ADDRESS, city: "Leeds" } },
    "destination.address",
  ],
  ["Norway, which is in the EEA", { iban: NO }, null],
  ["Britain without an address", { iban: GB }, "destination.address"],
  ["Britain with one", { iban: GB, address: ADDRESS }, null],
  ["Switzerland without an address", { iban: CH }, "destination.address"],
  ["Monaco without an address", { iban: MC }, "destination.address"],
  ["a test IBAN of Britain", { iban: "GB82 WEST 1234 5698 7654 32" }, null, { currency: "USD" }],
  ["a live payee without a name", { iban: FR }, "destination.holder_name", { livemode: true }],
  ["a live payee", { iban: FR, holder_name: "Ada" }, null, { livemode: true }],
  [
    "the same IBAN with a live key",
    { iban: "GB82 WEST 1234 5698 7654 32", holder_name: "Ada" },
    "destination.address",
    { livemode: true, currency: "USD" },
  ],
  ["a wrong IBAN", { iban: `${FR}1` }, "destination.iban.iban"],
];
for (const [name, payee, param, options] of CASES) {
  Deno.test(`readPayee() ${name}: ${param ?? "taken"}`, () => {
    if (param === null) return void read(payee, options);
    assert.equal(refusalOf(() => read(payee, options)), `invalid_parameter ${param}`);
  });
}

const NAMES: [name: string | undefined, payee_check: string | null][] = [
  [undefined, null],
  ["Ada Lovelace", null],
  ["Match", "match"],
  ["Match Ltd", "match"],
  ["match ltd", "match"],
  ["Matchbox Ltd", null],
  ["No match", "no_match"],
  ["No match Ltd", "no_match"],
  ["no match ltd", "no_match"],
  ["Close match Ltd", "close_match"],
  ["No matchbox Ltd", null],
  ["Ada No match", null],
];
for (const [holder_name, payee_check] of NAMES) {
  Deno.test(`readPayee() payee named ${holder_name}: ${payee_check}`, () => {
    const payee = { iban: FR, ...(holder_name !== undefined && { holder_name }) };
    assert.equal(read(payee).payee_check, payee_check);
    if (payee_check) assert.equal(read(payee, { livemode: true }).payee_check, null);
  });
}

Deno.test("readPayee() keeps only country and last four characters", () => {
  const { method } = read({ iban: GB, holder_name: "Ada", bic: "NWBKGB2L", address: ADDRESS });
  assert.deepEqual(method && "iban" in method && method.iban, { country: "GB", last4: "6819" });
});

Deno.test("checkSpeed() instant is for SEPA only", () => {
  for (const speed of [undefined, "standard"]) checkSpeed(speed, "swift");
  checkSpeed("instant", "sepa");
  for (const kind of ["card", "swift", "stablecoin"] as const) {
    assert.equal(refusalOf(() => checkSpeed("instant", kind)), "invalid_parameter speed");
  }
});

Deno.test("the IBANs of these cases are valid", () => {
  for (const iban of [FR, GB, CH, MC, NO]) assert.ok(isValidIban(iban), iban);
});
