/** The import of bank files that nobody of this project wrote, each for the account in it. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { importWhole } from "../../shared/connectors/bank/import_whole_file.ts";
import { isValidIban } from "../../shared/core/iban.ts";
import { Vault } from "../../shared/core/vault.ts";
import { addBankAccount, KEYS } from "../support/bank/bank.ts";
import { ACCOUNT } from "../support/connectors/bank_file.ts";
import { has_samples, samplePath } from "../support/connectors/bank_samples.ts";
import { startService, type TestService } from "../support/service/service.ts";

/** The counts of a file, or the reason why it is refused. */
type Result = string | [new_entries: number, booked: number, exceptions: number];

const OURS = "not one of the messages that banks send";
const UNKNOWN = "never exported";
/** The account in the file has wrong check digits. */
const NO_IBAN = "^Line 9, <Stmt>: the file is about .0000, and not about the account .2051$";
const SUMS = "is not the closing balance";

/** Files by the beginnings of their names. */
const RESULTS: Readonly<Record<string, Readonly<Record<string, Result>>>> = {
  "genkgo-camt": {
    "camt052.v1.": [1, 1, 1],
    "camt052.v2.other-": [1, 1, 1],
    "camt052.v2.with-": [0, 0, 0],
    "camt052.v2.xml": [1, 1, 1],
    "camt052.v4.": [0, 0, 0],
    "camt052.v6.Amt-": [0, 0, 0],
    "camt052.v6.xml": [0, 0, 0],
    "camt052.v8.": [1, 1, 1],
    "camt053.v2.all-": SUMS,
    "camt053.v2.five.": SUMS,
    "camt053.v2.minimal.ultimate.": [1, 1, 1],
    "camt053.v2.minimal.xml": [1, 1, 1],
    "camt053.v2.multi.": [2, 2, 2],
    "camt053.v2.with-account-": [1, 1, 1],
    "camt053.v2.with-party-": [1, 1, 1],
    "camt053.v2.wrong.": [0, 0, 0],
    "camt053.v3.": [1, 1, 1],
    "camt053.v4.": [1, 1, 1],
    "camt053.v8.": [1, 1, 1],
    "camt054.v2.with-": [0, 0, 0],
    "camt054.v2.xml": [1, 1, 1],
    "camt054.v4.": [1, 1, 1],
    "camt054.v8-with-UETR.": [0, 0, 0],
    "camt054.v8-with-financial-": [1, 1, 1],
    "camt054.v8.": [1, 1, 1],
    "camt53.": [0, 0, 0],
  },
  "moov-iso20022": {
    "200519_camt.052_": [2, 2, 2],
    "200519_camt.054-Credit_": [1, 1, 1],
    "200519_camt.054-Debit_": [1, 1, 1],
    "200519_camt.054_": [1, 2, 2],
    "200519_camt054-ESR-": [2, 6, 6],
    "200519_camt054-chdd_": [1, 2, 2],
    "200519_camt054-epo_p_ch5109000000250092291_1110097605_0_20190520": [1, 3, 3],
    "200519_camt054-epo_p_ch5109000000250092291_1110097605_0_20190521": [1, 3, 3],
    "200519_camt054-returns_": [1, 1, 1],
    "200924_camt.054_P_CH2909000000250094239_1110092703_": [1, 6, 6],
    "200924_camt.054_P_CH2909000000250094239_1111091335_": [1, 2, 2],
    "FI_camt_052_": [1, 1, 1],
    "FI_camt_053_": [10, 14, 13],
    "FI_camt_054_": [5, 11, 11],
    "International_payment_RUB_": OURS,
    "International_payment_USD_": OURS,
    "camt.": [5, 5, 5],
    "camt054-": [1, 1, 1],
    "gistfile1.": OURS,
    "invalid_": [0, 0, 0],
    "musterfile_": OURS,
    "pain002-chdd-": UNKNOWN,
    "pain002-epo_p_0_0_0_2018031510491259.": UNKNOWN,
    "pain002-epo_p_0_0_0_2018032614401842.": UNKNOWN,
    "pain002-epo_p_ch2909000000250094239_": UNKNOWN,
    "pain002-epo_p_ch5109000000250092291_": UNKNOWN,
    "pain008-": OURS,
    "sepa_": OURS,
    "statement_": NO_IBAN,
    "valid_camt_": OURS,
    "valid_pain_": [0, 0, 0],
  },
};

Deno.test({
  name: "samples of banks are imported for their own account",
  ignore: !has_samples,
  fn: async (t) => {
    const service = await startService({ vault: Vault.read(KEYS) });
    try {
      for (const [folder, results] of Object.entries(RESULTS)) {
        for await (const { name } of Deno.readDir(samplePath(folder))) {
          if (!name.endsWith(".xml")) continue;
          await t.step(`${folder}/${name}`, async () => {
            const beginnings = Object.keys(results).filter((text) => name.startsWith(text));
            assert.equal(beginnings.length, 1, "a sample has one row");
            const expected = results[beginnings[0]!]!;
            const result = await importSample(service, name, samplePath(folder, name));
            if (typeof expected === "string") assert.match(`${result}`, new RegExp(expected));
            else assert.deepEqual(result, expected);
          });
        }
      }
    } finally {
      await service.close();
    }
  },
});

/** Imports a file for an account of its own, with the number and the currency in the file. */
async function importSample(
  { sql, deps }: TestService,
  name: string,
  path: string,
): Promise<Result> {
  const bytes = await Deno.readFile(path);
  const { id } = await addBankAccount({ sql }, {
    methods: "swift",
    iban: ACCOUNT,
    currency: "EUR",
  });
  const own = sql.json(accountOf(bytes));
  await sql`update pay.provider_accounts set settings = settings || ${own} where id = ${id}`;
  const ready = deps.provider_accounts.open((await deps.provider_store.readAccount(id))!);
  assert.ok(typeof ready === "object");
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  const file = { bytes, sha256, name };
  const outcome = await importWhole(ready.account, file, deps.bank_store, deps.vault!);
  await deps.provider_worker.notify();
  const { booked, exceptions } = await deps.bank_store.importState(id, sha256);
  // A method has one account at a time, and an IBAN one for ever.
  const used = sql.json({ iban: id });
  await sql`update pay.provider_accounts set settings = settings || ${used} where id = ${id}`;
  await sql`select pay.disable_provider_account(${id})`;
  return "error" in outcome ? outcome.error : [outcome.imported.new_entries, booked, exceptions];
}

/** Finds the account of a file: its first IBAN, and its currency or that of the first amount. */
function accountOf(bytes: Uint8Array): Record<string, string> {
  const text = new TextDecoder().decode(bytes);
  const [account = ""] = /<Acct>.*?<\/Acct>/s.exec(text) ?? [];
  const [, number = ""] = /<(?:IBAN|Id)>\s*([A-Z]{2}\d\d[A-Z0-9]+)/.exec(account) ?? [];
  const iban = isValidIban(number) ? number : ACCOUNT;
  const [, currency = "EUR"] = /<Ccy>(\w+)/.exec(account) ?? / Ccy="(\w+)"/.exec(text) ?? [];
  return { iban, currency, bic: `AAAA${iban.slice(0, 2)}22` };
}
