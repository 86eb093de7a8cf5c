/**
 * Bank files that nobody of this project wrote: some are examples of banks, some are wrong on
 * purpose. Each is read, and imported for the account in it. They stand beside the project, in
 * `../shared/samples`, or in the folder that BANK_SAMPLES names. Without them nothing is tested.
 */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { importWhole } from "../../shared/connectors/bank/import_whole_file.ts";
import { isValidIban } from "../../shared/core/iban.ts";
import { Vault } from "../../shared/core/vault.ts";
import { addBankAccount, KEYS } from "../support/bank/bank.ts";
import { ACCOUNT } from "../support/connectors/bank_file.ts";
import { startService, type TestService } from "../support/service/service.ts";

const FOLDER = Deno.env.get("BANK_SAMPLES") ??
  fileURLToPath(new URL("../../../shared/samples", import.meta.url));
const has_samples = await Deno.stat(FOLDER).then(() => true, () => false);
if (!has_samples) console.warn("Bank files of others are not tested: BANK_SAMPLES names no folder");

const SENT_BY_US = /^Line \d, .*: not one of the messages that banks send/;
const UNKNOWN = /never exported/;
/** The account in the file has wrong check digits. */
const NO_IBAN = /^Line 9, <Stmt>: the file is about .0000, and not about the account .2051$/;

/**
 * Files by a pattern of their names, with the reason why the import refuses it, or the numbers of
 * new entries, of events and of exceptions, and the sum that is booked, in minor units.
 */
const SAMPLES: Readonly<Record<string, readonly [name: string, outcome: number[] | RegExp][]>> = {
  "genkgo-camt": [
    ["camt052.v1.", [1, 1, 1, -20000000]],
    ["camt052.v2.other-", [1, 1, 1, -20000000]],
    ["camt052.v2.with-", [0, 0, 0, 0]],
    ["camt052.v2.xml", [1, 1, 1, -20000000]],
    // Pending.
    ["camt052.v4.", [0, 0, 0, 0]],
    ["camt052.v6.Amt-", [0, 0, 0, 0]],
    ["camt052.v6.xml", [0, 0, 0, 0]],
    ["camt052.v8.", [1, 1, 1, -20000000]],
    ["camt053.v2.all-", /^Line 68, .*1\.01 EUR .* 8\.85 EUR is not .* 4\.04 EUR$/],
    ["camt053.v2.five.", /^Line 49, .*18\.15 EUR .* 8\.85 EUR is not .* 27\.05 EUR$/],
    // The closing balance is in another currency.
    ["camt053.v2.minimal.ultimate.", [1, 1, 1, 885]],
    ["camt053.v2.minimal.xml", [1, 1, 1, 885]],
    ["camt053.v2.multi.", [2, 2, 2, 185]],
    // No opening balance.
    ["camt053.v2.with-account-", [1, 1, 1, 885]],
    ["camt053.v2.with-party-", [1, 1, 1, 885]],
    // No statement.
    ["camt053.v2.wrong.", [0, 0, 0, 0]],
    // The detail has another amount, and the closing balance is in another currency.
    ["camt053.v3.", [1, 1, 1, 885]],
    // The second page of a statement.
    ["camt053.v4.", [1, 1, 1, 885]],
    ["camt053.v8.", [1, 1, 1, 885]],
    ["camt054.v2.with-", [0, 0, 0, 0]],
    // Three details without amounts, or with amounts of another currency.
    ["camt054.v2.xml", [1, 1, 1, -20000000]],
    ["camt054.v4.", [1, 1, 1, -20000000]],
    ["camt054.v8-with-UETR.", [0, 0, 0, 0]],
    ["camt054.v8-with-financial-", [1, 1, 1, -20000000]],
    ["camt054.v8\\.", [1, 1, 1, -20000000]],
    // No closing balance.
    ["camt53.", [0, 0, 0, 0]],
  ],
  "moov-iso20022": [
    ["200519_camt.052_", [2, 2, 2, -101600]],
    ["200519_camt.054-Credit_", [1, 1, 1, 150000]],
    ["200519_camt.054-Debit_", [1, 1, 1, -91300]],
    ["200519_camt.054_", [1, 2, 2, 169222]],
    ["200519_camt054-ESR-", [2, 6, 6, 139000]],
    ["200519_camt054-chdd_", [1, 2, 2, 450]],
    ["200519_camt054-epo.*20190520", [1, 3, 3, -75000]],
    ["200519_camt054-epo.*20190521", [1, 3, 3, -75000]],
    ["200519_camt054-returns_", [1, 1, 1, 40000]],
    ["200924.*1110092703_", [1, 6, 6, 150000]],
    ["200924.*1111091335_", [1, 2, 2, 169222]],
    ["FI_camt_052_", [1, 1, 1, 10000]],
    ["FI_camt_053_", [10, 14, 13, 1364483]],
    // The net amount of the summary proves that the reversal is a debit.
    ["FI_camt_054_", [5, 11, 11, 26995]],
    ["International_payment_RUB_", SENT_BY_US],
    ["International_payment_USD_", SENT_BY_US],
    // The closing balance leaves out an entry whose value is of the next day.
    ["camt\\.", [5, 5, 5, 465602]],
    ["camt054-", [1, 1, 1, 50000]],
    ["gistfile1.", SENT_BY_US],
    // No status.
    ["invalid_", [0, 0, 0, 0]],
    ["musterfile_", SENT_BY_US],
    ["pain002-chdd-", UNKNOWN],
    ["pain002-epo_p_0.*0315", UNKNOWN],
    ["pain002-epo_p_0.*0326", UNKNOWN],
    ["pain002-epo_p_ch29", UNKNOWN],
    ["pain002-epo_p_ch51", UNKNOWN],
    ["pain008-", SENT_BY_US],
    ["sepa_", SENT_BY_US],
    ["statement_", NO_IBAN],
    ["valid_camt_", SENT_BY_US],
    ["valid_pain_", [0, 0, 0, 0]],
  ],
};

Deno.test({
  name: "samples of banks are read, and imported for their own account",
  ignore: !has_samples,
  fn: async (t) => {
    const service = await startService({ vault: Vault.read(KEYS) });
    try {
      for (const [folder, samples] of Object.entries(SAMPLES)) {
        for await (const { name } of Deno.readDir(join(FOLDER, folder))) {
          if (!name.endsWith(".xml")) continue;
          await t.step(`${folder}/${name}`, async () => {
            const [sample, ...others] = samples.filter(([pattern]) =>
              new RegExp(`^${pattern}`).test(name)
            );
            assert.ok(sample && others.length === 0, "a sample has one row");
            const bytes = await Deno.readFile(join(FOLDER, folder, name));
            const result = await importSample(service, name, bytes);
            const [, outcome] = sample;
            if (outcome instanceof RegExp) assert.match(`${result}`, outcome);
            else assert.deepEqual(result, outcome);
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
  bytes: Uint8Array<ArrayBuffer>,
): Promise<string | number[]> {
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
  const [net] = await sql`select coalesce(sum(booked_minor), 0)::float8 as minor
    from pay.provider_events where account_id = ${id}`;
  // A method has one account at a time, and an IBAN one for ever.
  const used = sql.json({ iban: id });
  await sql`update pay.provider_accounts set settings = settings || ${used} where id = ${id}`;
  await sql`select pay.disable_provider_account(${id})`;
  return "error" in outcome
    ? outcome.error
    : [outcome.imported.new_entries, booked, exceptions, net!.minor];
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
