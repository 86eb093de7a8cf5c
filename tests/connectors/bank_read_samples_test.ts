/** The reader on bank files that nobody of this project wrote (bank_samples.ts). */

import assert from "node:assert/strict";
import type { BankRecord } from "../../shared/connectors/bank/read_records.ts";
import { readFile } from "../support/connectors/bank_file.ts";
import { has_samples, samplePath } from "../support/connectors/bank_samples.ts";

/** A file with its records: the booked sums, in minor units, are of the entries. */
type Sample =
  | readonly [
    name: string,
    kind: string,
    entries: number,
    details: number,
    statuses: number,
    warnings: number,
    credits: number,
    debits: number,
  ]
  | readonly [name: string, error: RegExp];

const SENT_BY_US = /^Line \d, .*: not one of the messages that banks send/;
const GENKGO: readonly Sample[] = [
  ["camt052.v1.xml", "camt.052.01", 1, 0, 0, 0, 0, 20000000],
  ["camt052.v2.other-account.xml", "camt.052.02", 1, 1, 0, 0, 0, 20000000],
  ["camt052.v2.with-account-name.xml", "camt.052.02", 1, 1, 0, 1, 0, 0],
  ["camt052.v2.xml", "camt.052.02", 1, 1, 0, 0, 0, 20000000],
  // Pending.
  ["camt052.v4.xml", "camt.052.04", 1, 1, 0, 0, 0, 0],
  ["camt052.v6.Amt-zero.xml", "camt.052.06", 1, 1, 0, 0, 0, 0],
  ["camt052.v6.xml", "camt.052.06", 1, 1, 0, 0, 0, 0],
  ["camt052.v8.xml", "camt.052.08", 1, 0, 0, 0, 0, 20000000],
  ["camt053.v2.all-balance-types.xml", /^Line 68, .*1\.01 EUR .* 8\.85 EUR is not .* 4\.04 EUR$/],
  ["camt053.v2.five.decimals.xml", /^Line 49, .*18\.15 EUR .* 8\.85 EUR is not .* 27\.05 EUR$/],
  // The closing balance is in another currency.
  ["camt053.v2.minimal.ultimate.xml", "camt.053.02", 1, 1, 0, 1, 885, 0],
  ["camt053.v2.minimal.xml", "camt.053.02", 1, 1, 0, 1, 885, 0],
  ["camt053.v2.multi.statement.xml", "camt.053.02", 2, 2, 0, 0, 885, 700],
  // No opening balance.
  ["camt053.v2.with-account-name.xml", "camt.053.02", 1, 1, 0, 1, 885, 0],
  ["camt053.v2.with-party-ids.xml", "camt.053.02", 1, 1, 0, 1, 885, 0],
  // No statement.
  ["camt053.v2.wrong.xml", "camt.053.02", 0, 0, 0, 1, 0, 0],
  // The detail has another amount, and the closing balance is in another currency.
  ["camt053.v3.xml", "camt.053.03", 1, 1, 0, 2, 885, 0],
  // The second page of a statement.
  ["camt053.v4.xml", "camt.053.04", 1, 1, 0, 1, 885, 0],
  ["camt053.v8.xml", "camt.053.08", 1, 1, 0, 1, 885, 0],
  ["camt054.v2.with-account-name.xml", "camt.054.02", 1, 1, 0, 1, 0, 0],
  // Three details without amounts, or with amounts of another currency.
  ["camt054.v2.xml", "camt.054.02", 1, 3, 0, 1, 0, 20000000],
  ["camt054.v4.xml", "camt.054.04", 1, 3, 0, 1, 0, 20000000],
  ["camt054.v8-with-UETR.xml", "camt.054.08", 1, 1, 0, 1, 0, 0],
  ["camt054.v8-with-financial-institution.xml", "camt.054.08", 1, 1, 0, 1, 0, 20000000],
  ["camt054.v8.xml", "camt.054.08", 1, 3, 0, 1, 0, 20000000],
  // No closing balance.
  ["camt53.only-Dt-with-DtTm.xml", "camt.053.02", 0, 0, 0, 1, 0, 0],
];

const P = "P_CH2909000000250094239";
const MOOV: readonly Sample[] = [
  [`200519_camt.052_${P}_1110092686_0_2019042416072347.xml`, "camt.052.04", 2, 2, 0, 0, 0, 101600],
  [
    `200519_camt.054-Credit_${P}_1110092691_0_2019042421291293.xml`,
    "camt.054.04",
    1,
    1,
    0,
    0,
    150000,
    0,
  ],
  [
    `200519_camt.054-Debit_${P}_1110092692_0_2019042401501580.xml`,
    "camt.054.04",
    1,
    1,
    0,
    0,
    0,
    91300,
  ],
  [`200519_camt.054_${P}_1111091335_0_2020061900081727.xml`, "camt.054.04", 1, 2, 0, 0, 169222, 0],
  [
    `200519_camt054-ESR-ASR_${P}_1110092704_0_2019042500372179.xml`,
    "camt.054.04",
    2,
    6,
    0,
    0,
    153700,
    14700,
  ],
  [
    "200519_camt054-chdd_p_ch2909000000250094239_1110097484_0_20190520700381159.xml",
    "camt.054.04",
    1,
    2,
    0,
    0,
    450,
    0,
  ],
  [
    "200519_camt054-epo_p_ch5109000000250092291_1110097605_0_2019052003522556.xml",
    "camt.054.04",
    1,
    3,
    0,
    0,
    0,
    75000,
  ],
  [
    "200519_camt054-epo_p_ch5109000000250092291_1110097605_0_2019052103322231.xml",
    "camt.054.04",
    1,
    3,
    0,
    0,
    0,
    75000,
  ],
  [
    "200519_camt054-returns_p_ch2909000000250094239_1109800798_0_2019052023472022.xml",
    "camt.054.04",
    1,
    1,
    0,
    0,
    40000,
    0,
  ],
  [`200924_camt.054_${P}_1110092703_0_2019042423412214.xml`, "camt.054.04", 1, 6, 0, 0, 150000, 0],
  [`200924_camt.054_${P}_1111091335_0_2020061900081727.xml`, "camt.054.04", 1, 2, 0, 0, 169222, 0],
  ["FI_camt_052_sample.xml.xml", "camt.052.02", 2, 2, 0, 0, 10000, 0],
  ["FI_camt_053_sample.xml.xml", "camt.053.02", 10, 12, 0, 0, 2307500, 943017],
  // The net amount of the summary proves that the reversal is a debit.
  ["FI_camt_054_sample.xml.xml", "camt.054.02", 6, 13, 0, 1, 550000, 523005],
  ["International_payment_RUB_naujas_1.xml", SENT_BY_US],
  ["International_payment_USD_naujas_1.xml", SENT_BY_US],
  // The closing balance leaves out an entry whose value is of the next day.
  [`camt.053_${P}_1110092698_0_2020112503071366.xml`, "camt.053.04", 5, 5, 0, 1, 473372, 7770],
  [
    "camt054-returns_p_ch5109000000250092291_1110097606_0_2020112500512470.xml",
    "camt.054.04",
    1,
    1,
    0,
    0,
    50000,
    0,
  ],
  ["gistfile1.xml", SENT_BY_US],
  // No status.
  ["invalid_pain_v11.xml", "pain.002.null", 0, 0, 0, 1, 0, 0],
  ["musterfile_pain.001_Nov2020.xml", SENT_BY_US],
  [
    "pain002-chdd-cor1_p_ch2909000000250094239_1110097483_0_2018031317221082.xml",
    "pain.002.03",
    0,
    0,
    1,
    0,
    0,
    0,
  ],
  ["pain002-epo_p_0_0_0_2018031510491259.xml", "pain.002.03", 0, 0, 1, 0, 0, 0],
  ["pain002-epo_p_0_0_0_2018032614401842.xml", "pain.002.03", 0, 0, 1, 0, 0, 0],
  [
    "pain002-epo_p_ch2909000000250094239_1109800799_0_2018032612092784.xml",
    "pain.002.03",
    0,
    0,
    2,
    0,
    0,
    0,
  ],
  [
    "pain002-epo_p_ch5109000000250092291_1110097605_0_2018031511252307.xml",
    "pain.002.03",
    0,
    0,
    2,
    0,
    0,
    0,
  ],
  ["pain008-musterfile.xml", SENT_BY_US],
  ["sepa_payment_naujas_1.xml", SENT_BY_US],
  ["statement_1.xml", "camt.053.02", 4, 4, 0, 0, 0, 276808],
  ["valid_camt_v09.xml", SENT_BY_US],
  ["valid_pain_v11.xml", "pain.002.11", 0, 0, 0, 1, 0, 0],
];

for (const [folder, samples] of [["genkgo-camt", GENKGO], ["moov-iso20022", MOOV]] as const) {
  for (const [name, ...expected] of samples) {
    sampleTest(`readBankFile() reads ${folder}/${name}`, async () => {
      const [first] = expected;
      if (typeof first === "string") {
        assert.deepEqual(await summarize(folder, name), expected);
      } else {
        await assert.rejects(
          readSample(folder, name),
          (error: Error) => first!.test(error.message),
        );
      }
    });
  }
  sampleTest(`every sample of ${folder} has a test`, async () => {
    const files = await Array.fromAsync(Deno.readDir(samplePath(folder)), ({ name }) => name);
    assert.deepEqual(
      files.filter((name) => name.endsWith(".xml")).sort(),
      samples.map(([name]) => name).sort(),
    );
  });
}

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
  sampleTest(`identityOf() is the same for ${count} entries of ${a} and ${b}`, async () => {
    const [first, second] = [await identities(a), await identities(b)];
    assert.equal(first.filter((identity) => second.includes(identity)).length, count);
  });
}

function sampleTest(name: string, fn: () => Promise<void>): void {
  Deno.test({ name, ignore: !has_samples, fn });
}

async function readSample(folder: string, name: string): Promise<BankRecord[]> {
  return await readFile(await Deno.readFile(samplePath(folder, name)));
}

/** Reads a sample. Its elements are counted in the text too. */
async function summarize(folder: string, name: string): Promise<(string | number)[]> {
  const records = await readSample(folder, name);
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
  const text = await Deno.readTextFile(samplePath(folder, name));
  assert.equal(count("entry"), text.match(/<Ntry>/g)?.length ?? 0);
  assert.equal(count("detail"), text.match(/<TxDtls>/g)?.length ?? 0);
  return [
    `${message.kind}.${message.version}`,
    count("entry"),
    count("detail"),
    count("status"),
    count("warning"),
    sum("credit"),
    sum("debit"),
  ];
}

async function identities(start: string): Promise<string[]> {
  const name = MOOV.map(([name]) => name).find((name) => name.startsWith(start))!;
  return (await readSample("moov-iso20022", name)).flatMap((record) =>
    record.record === "entry" ? [record.identity] : []
  );
}
