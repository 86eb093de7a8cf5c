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
import type { BankRecord } from "../../shared/connectors/bank/read_records.ts";
import { isValidIban } from "../../shared/core/iban.ts";
import { Vault } from "../../shared/core/vault.ts";
import { addBankAccount, KEYS } from "../support/bank/bank.ts";
import { ACCOUNT, readFile } from "../support/connectors/bank_file.ts";
import { startService, type TestService } from "../support/service/service.ts";

const FOLDER = Deno.env.get("BANK_SAMPLES") ??
  fileURLToPath(new URL("../../../shared/samples", import.meta.url));
const has_samples = await Deno.stat(FOLDER).then(() => true, () => false);
if (!has_samples) console.warn("Bank files of others are not tested: BANK_SAMPLES names no folder");

/**
 * A file by a pattern of its name, with its records, and the counts of its import or the reason why
 * it is refused. The booked sums, in minor units, are of the entries. A file that cannot be read
 * has the reason only.
 */
type Sample =
  | readonly [
    name: string,
    kind: string,
    entries_details_statuses_warnings: number[],
    credits_and_debits: number[],
    new_entries_booked_exceptions: number[] | RegExp,
  ]
  | readonly [name: string, error: RegExp];

const SENT_BY_US = /^Line \d, .*: not one of the messages that banks send/;
const UNKNOWN = /never exported/;
/** The account in the file has wrong check digits. */
const NO_IBAN = /^Line 9, <Stmt>: the file is about .0000, and not about the account .2051$/;

const SAMPLES: Readonly<Record<string, readonly Sample[]>> = {
  "genkgo-camt": [
    ["camt052.v1.", "camt.052.01", [1, 0, 0, 0], [0, 20000000], [1, 1, 1]],
    ["camt052.v2.other-", "camt.052.02", [1, 1, 0, 0], [0, 20000000], [1, 1, 1]],
    ["camt052.v2.with-", "camt.052.02", [1, 1, 0, 1], [0, 0], [0, 0, 0]],
    ["camt052.v2.xml", "camt.052.02", [1, 1, 0, 0], [0, 20000000], [1, 1, 1]],
    // Pending.
    ["camt052.v4.", "camt.052.04", [1, 1, 0, 0], [0, 0], [0, 0, 0]],
    ["camt052.v6.Amt-", "camt.052.06", [1, 1, 0, 0], [0, 0], [0, 0, 0]],
    ["camt052.v6.xml", "camt.052.06", [1, 1, 0, 0], [0, 0], [0, 0, 0]],
    ["camt052.v8.", "camt.052.08", [1, 0, 0, 0], [0, 20000000], [1, 1, 1]],
    ["camt053.v2.all-", /^Line 68, .*1\.01 EUR .* 8\.85 EUR is not .* 4\.04 EUR$/],
    ["camt053.v2.five.", /^Line 49, .*18\.15 EUR .* 8\.85 EUR is not .* 27\.05 EUR$/],
    // The closing balance is in another currency.
    ["camt053.v2.minimal.ultimate.", "camt.053.02", [1, 1, 0, 1], [885, 0], [1, 1, 1]],
    ["camt053.v2.minimal.xml", "camt.053.02", [1, 1, 0, 1], [885, 0], [1, 1, 1]],
    ["camt053.v2.multi.", "camt.053.02", [2, 2, 0, 0], [885, 700], [2, 2, 2]],
    // No opening balance.
    ["camt053.v2.with-account-", "camt.053.02", [1, 1, 0, 1], [885, 0], [1, 1, 1]],
    ["camt053.v2.with-party-", "camt.053.02", [1, 1, 0, 1], [885, 0], [1, 1, 1]],
    // No statement.
    ["camt053.v2.wrong.", "camt.053.02", [0, 0, 0, 1], [0, 0], [0, 0, 0]],
    // The detail has another amount, and the closing balance is in another currency.
    ["camt053.v3.", "camt.053.03", [1, 1, 0, 2], [885, 0], [1, 1, 1]],
    // The second page of a statement.
    ["camt053.v4.", "camt.053.04", [1, 1, 0, 1], [885, 0], [1, 1, 1]],
    ["camt053.v8.", "camt.053.08", [1, 1, 0, 1], [885, 0], [1, 1, 1]],
    ["camt054.v2.with-", "camt.054.02", [1, 1, 0, 1], [0, 0], [0, 0, 0]],
    // Three details without amounts, or with amounts of another currency.
    ["camt054.v2.xml", "camt.054.02", [1, 3, 0, 1], [0, 20000000], [1, 1, 1]],
    ["camt054.v4.", "camt.054.04", [1, 3, 0, 1], [0, 20000000], [1, 1, 1]],
    ["camt054.v8-with-UETR.", "camt.054.08", [1, 1, 0, 1], [0, 0], [0, 0, 0]],
    ["camt054.v8-with-financial-", "camt.054.08", [1, 1, 0, 1], [0, 20000000], [1, 1, 1]],
    ["camt054.v8\\.", "camt.054.08", [1, 3, 0, 1], [0, 20000000], [1, 1, 1]],
    // No closing balance.
    ["camt53.", "camt.053.02", [0, 0, 0, 1], [0, 0], [0, 0, 0]],
  ],
  "moov-iso20022": [
    ["200519_camt.052_", "camt.052.04", [2, 2, 0, 0], [0, 101600], [2, 2, 2]],
    ["200519_camt.054-Credit_", "camt.054.04", [1, 1, 0, 0], [150000, 0], [1, 1, 1]],
    ["200519_camt.054-Debit_", "camt.054.04", [1, 1, 0, 0], [0, 91300], [1, 1, 1]],
    ["200519_camt.054_", "camt.054.04", [1, 2, 0, 0], [169222, 0], [1, 2, 2]],
    ["200519_camt054-ESR-", "camt.054.04", [2, 6, 0, 0], [153700, 14700], [2, 6, 6]],
    ["200519_camt054-chdd_", "camt.054.04", [1, 2, 0, 0], [450, 0], [1, 2, 2]],
    ["200519_camt054-epo.*20190520", "camt.054.04", [1, 3, 0, 0], [0, 75000], [1, 3, 3]],
    ["200519_camt054-epo.*20190521", "camt.054.04", [1, 3, 0, 0], [0, 75000], [1, 3, 3]],
    ["200519_camt054-returns_", "camt.054.04", [1, 1, 0, 0], [40000, 0], [1, 1, 1]],
    ["200924.*1110092703_", "camt.054.04", [1, 6, 0, 0], [150000, 0], [1, 6, 6]],
    ["200924.*1111091335_", "camt.054.04", [1, 2, 0, 0], [169222, 0], [1, 2, 2]],
    ["FI_camt_052_", "camt.052.02", [2, 2, 0, 0], [10000, 0], [1, 1, 1]],
    ["FI_camt_053_", "camt.053.02", [10, 12, 0, 0], [2307500, 943017], [10, 14, 13]],
    // The net amount of the summary proves that the reversal is a debit.
    ["FI_camt_054_", "camt.054.02", [6, 13, 0, 1], [550000, 523005], [5, 11, 11]],
    ["International_payment_RUB_", SENT_BY_US],
    ["International_payment_USD_", SENT_BY_US],
    // The closing balance leaves out an entry whose value is of the next day.
    ["camt\\.", "camt.053.04", [5, 5, 0, 1], [473372, 7770], [5, 5, 5]],
    ["camt054-", "camt.054.04", [1, 1, 0, 0], [50000, 0], [1, 1, 1]],
    ["gistfile1.", SENT_BY_US],
    // No status.
    ["invalid_", "pain.002.null", [0, 0, 0, 1], [0, 0], [0, 0, 0]],
    ["musterfile_", SENT_BY_US],
    ["pain002-chdd-", "pain.002.03", [0, 0, 1, 0], [0, 0], UNKNOWN],
    ["pain002-epo_p_0.*0315", "pain.002.03", [0, 0, 1, 0], [0, 0], UNKNOWN],
    ["pain002-epo_p_0.*0326", "pain.002.03", [0, 0, 1, 0], [0, 0], UNKNOWN],
    ["pain002-epo_p_ch29", "pain.002.03", [0, 0, 2, 0], [0, 0], UNKNOWN],
    ["pain002-epo_p_ch51", "pain.002.03", [0, 0, 2, 0], [0, 0], UNKNOWN],
    ["pain008-", SENT_BY_US],
    ["sepa_", SENT_BY_US],
    ["statement_", "camt.053.02", [4, 4, 0, 0], [0, 276808], NO_IBAN],
    ["valid_camt_", SENT_BY_US],
    ["valid_pain_", "pain.002.11", [0, 0, 0, 1], [0, 0], [0, 0, 0]],
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
            const outcome = sample.at(-1) as number[] | RegExp;
            if (outcome instanceof RegExp) assert.match(`${result}`, outcome);
            else assert.deepEqual(result, outcome);
            if (sample.length === 2) {
              await assert.rejects(
                readFile(bytes),
                (error: Error) => sample[1].test(error.message),
              );
            } else {
              assert.deepEqual(await summarize(bytes), sample.slice(1, -1));
            }
          });
        }
      }
    } finally {
      await service.close();
    }
  },
});

/** Files of one bank, with the number of entries that both tell of. */
const PAIRS = [
  ["FI_camt_053_sample", "FI_camt_054_sample", 4],
  ["camt.053_P", "200519_camt054-ESR-ASR", 1],
  ["camt.053_P", "200519_camt054-chdd", 1],
  ["200519_camt.052_P", "200519_camt.054-Debit", 1],
  // One reference stands for two amounts.
  ["FI_camt_053_sample", "FI_camt_052_sample", 0],
] as const;

for (const [a, b, count] of PAIRS) {
  Deno.test({
    name: `identityOf() is the same for ${count} entries of ${a} and ${b}`,
    ignore: !has_samples,
    async fn() {
      const [first, second] = [await identities(a), await identities(b)];
      assert.equal(first.filter((identity) => second.includes(identity)).length, count);
    },
  });
}

/** Counts the records of a sample. Its elements are counted in the text too. */
async function summarize(bytes: Uint8Array<ArrayBuffer>): Promise<unknown[]> {
  const records = await readFile(bytes);
  const count = (kind: BankRecord["record"]) =>
    records.filter(({ record }) => record === kind).length;
  const sum = (direction: string) =>
    records.reduce(
      (sum, record) =>
        record.record === "entry" && record.status === "booked" && record.direction === direction
          ? sum + record.amount_minor
          : sum,
      0,
    );
  const [message] = records;
  assert.ok(message?.record === "message");
  const text = new TextDecoder().decode(bytes);
  assert.equal(count("entry"), text.match(/<Ntry>/g)?.length ?? 0);
  assert.equal(count("detail"), text.match(/<TxDtls>/g)?.length ?? 0);
  return [
    `${message.kind}.${message.version}`,
    (["entry", "detail", "status", "warning"] as const).map(count),
    ["credit", "debit"].map(sum),
  ];
}

async function identities(start: string): Promise<string[]> {
  const folder = join(FOLDER, "moov-iso20022");
  const names = await Array.fromAsync(Deno.readDir(folder), ({ name }) => name);
  const name = names.find((name) => name.startsWith(start))!;
  return (await readFile(await Deno.readFile(join(folder, name)))).flatMap((record) =>
    record.record === "entry" ? [record.identity] : []
  );
}

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
