/** The sums of bank statements: what refuses a file, and what proves the direction of a reversal. */

import assert from "node:assert/strict";
import {
  readEntries,
  readFile,
  readWarnings,
  writeBalance as balance,
  writeEntry,
  writeFile,
} from "../support/connectors/bank_file.ts";

const entry = (amount: string, members: Record<string, string> = {}) =>
  writeEntry({
    Amt: `${amount.replace("-", "")} EUR`,
    CdtDbtInd: amount.startsWith("-") ? "DBIT" : "CRDT",
    ...members,
  });
const later = { ValDt: "<Dt>2026-11-21</Dt>" };
const page = (number: number, is_last: boolean) =>
  `<StmtPgntn><PgNb>${number}</PgNb><LastPgInd>${is_last}</LastPgInd></StmtPgntn>`;
const summary = (entries: number, net: string, direction = "CRDT") =>
  `<TxsSummry><TtlNtries><NbOfNtries>${entries}</NbOfNtries><TtlNetNtry><Amt>${net}</Amt>` +
  `<CdtDbtInd>${direction}</CdtDbtInd></TtlNetNtry></TtlNtries></TxsSummry>`;

const NOT_CHECKED = /^the sums are not checked/;
const DIFFER = /Line 6, column \d+, <Bal>: the opening balance of \S+ EUR \(line 5\) plus/;

/** Statements with the warning, the error, or null if the sums are right. */
const CASES: readonly (readonly [
  rule: string,
  head: string,
  entries: string,
  result: { warning: RegExp } | { error: RegExp } | null,
])[] = [
  [
    "sums that are right",
    balance("OPBD", "1") + balance("CLBD", "4"),
    entry("5") + entry("-2"),
    null,
  ],
  [
    "sums that differ by a cent",
    balance("OPBD", "1") + balance("CLBD", "4.01"),
    entry("3"),
    { error: DIFFER },
  ],
  [
    "a missing entry",
    balance("OPBD", "1") + balance("CLBD", "4"),
    "",
    { error: DIFFER },
  ],
  ["no entries", balance("OPBD", "1") + balance("CLBD", "1"), "", null],
  ["an overdrawn account", balance("OPBD", "1", "DBIT") + balance("CLBD", "2"), entry("3"), null],
  ["the balance of the day before", balance("PRCD", "1") + balance("CLBD", "4"), entry("3"), null],
  [
    "pending entries and information do not count",
    balance("OPBD", "1") + balance("CLBD", "4"),
    entry("3") + entry("5", { Sts: "PDNG" }) + entry("6", { Sts: "INFO" }),
    null,
  ],
  [
    "balances of each day",
    ["1", "2"].map((day) =>
      balance("OPBD", day).replace("11-20", `11-0${day}`) +
      balance("CLBD", `${Number(day) + 1}`).replace("11-20", `11-0${day}`)
    ).reverse().join(""),
    entry("2", { ValDt: "<Dt>2026-11-01</Dt>" }),
    null,
  ],
  [
    "balances without a sign",
    balance("OPBD", "1", "") + balance("CLBD", "4", ""),
    entry("5"),
    { warning: /neither CRDT nor DBIT/ },
  ],
  [
    "balances below zero without a sign",
    balance("OPBD", "-1", "") + balance("CLBD", "-4", ""),
    entry("-3"),
    null,
  ],
  [
    "a closing balance by the day of value",
    balance("OPBD", "1") + balance("CLBD", "4"),
    entry("3") + entry("9", later),
    { warning: /leaves out entries with a later day of value/ },
  ],
  [
    "a closing balance by the day of booking with a later value",
    balance("OPBD", "1") + balance("CLBD", "13"),
    entry("3") + entry("9", later),
    null,
  ],
  ["no closing balance", balance("OPBD", "1"), entry("3"), { warning: NOT_CHECKED }],
  ["no balances", "", entry("3"), { warning: NOT_CHECKED }],
  [
    "balances of two currencies",
    balance("OPBD", "1") + balance("CLBD", "4").replace("EUR", "USD"),
    entry("3"),
    { warning: NOT_CHECKED },
  ],
  [
    "entries of two currencies",
    balance("OPBD", "1") + balance("CLBD", "4"),
    entry("3") + entry("3", { Amt: "3 USD" }),
    { warning: NOT_CHECKED },
  ],
  [
    "a closing balance that cannot be read",
    balance("OPBD", "1") + balance("CLBD", "4.001"),
    entry("3"),
    { warning: /the amount of the balance cannot be read|not checked/ },
  ],
  [
    "a balance of an unknown currency",
    balance("OPBD", "1") + balance("CLBD", "4") +
    balance("INFO", "1").replace("EUR", "XYZ"),
    entry("3"),
    {
      warning: /the amount of the balance cannot be read/,
    },
  ],
  ["available balances", balance("OPAV", "1") + balance("CLAV", "4"), entry("3"), null],
  [
    "available balances that differ",
    balance("OPAV", "1") + balance("CLAV", "5"),
    entry("3"),
    { warning: NOT_CHECKED },
  ],
  [
    "the first page",
    page(1, false) + balance("OPBD", "1") + balance("CLBD", "9"),
    entry("3"),
    { warning: /one page of several/ },
  ],
  [
    "the second page",
    page(2, true) + balance("OPBD", "1") + balance("CLBD", "9"),
    entry("3"),
    { warning: /one page of several/ },
  ],
  [
    "the only page",
    page(1, true) + balance("OPBD", "1") + balance("CLBD", "9"),
    entry("3"),
    { error: DIFFER },
  ],
  [
    "a summary that is right",
    balance("OPBD", "1") + balance("CLBD", "4") + summary(2, "3"),
    entry("5") + entry("-2"),
    null,
  ],
  [
    "a summary with another count",
    balance("OPBD", "1") + balance("CLBD", "4") + summary(3, "3"),
    entry("5") + entry("-2"),
    { warning: /the summary tells of 3 entries, not 2/ },
  ],
  [
    "a summary with another sum",
    balance("OPBD", "1") + balance("CLBD", "4") + summary(2, "3", "DBIT"),
    entry("5") + entry("-2"),
    { warning: /the net amount of the summary is not the sum/ },
  ],
];

for (const [rule, head, entries, result] of CASES) {
  Deno.test(`readBankFile() checks the sums of a statement: ${rule}`, async () => {
    const file = writeFile([{ head: `\n${head}`, entries }]);
    if (result && "error" in result) {
      await assert.rejects(readFile(file), result.error);
      return;
    }
    const warnings = await readWarnings(file);
    assert.equal(warnings.length > 0, result !== null, warnings.join());
    if (result) warnings.forEach((warning) => assert.match(warning, result.warning));
  });
}

Deno.test("readBankFile() names the statement whose sums differ, and reads those before it", async () => {
  const head = `\n${balance("OPBD", "1")}${balance("CLBD", "4")}`;
  const file = writeFile([{ head, entries: entry("3") }, { head, entries: entry("4") }]);
  await assert.rejects(
    readFile(file),
    /Line 12, column \d+, <Bal>: the opening balance of 1.00 EUR \(line 11\) plus the booked entries of 4.00 EUR is not /,
  );
});

Deno.test("readBankFile() does not check interim balances and notifications", async () => {
  const head = `${balance("OPBD", "1")}${balance("CLBD", "9")}${balance("ITBD", "7")}`;
  for (const kind of ["052", "054"] as const) {
    assert.deepEqual(await readWarnings(writeFile([{ head, entries: entry("3") }], { kind })), []);
  }
});

const reversal = (amount: string, further: Record<string, string> = {}) =>
  entry(amount, { RvslInd: "true", ...further });

/** Statements with a reversal that is written as a credit, and its direction. */
const REVERSALS: readonly (readonly [
  rule: string,
  kind: "053" | "054",
  head: string,
  entries: string,
  directions: readonly string[],
])[] = [
  [
    "the balances agree",
    "053",
    balance("OPBD", "1") + balance("CLBD", "7"),
    reversal("2") + entry("4"),
    ["credit", "credit"],
  ],
  [
    "the balances prove the opposite",
    "053",
    balance("OPBD", "1") + balance("CLBD", "3"),
    reversal("2") + entry("4"),
    ["credit", "debit"],
  ],
  [
    "the balances prove the opposite by the day of value",
    "053",
    balance("OPBD", "1") + balance("CLBD", "3"),
    reversal("2") + entry("4") + entry("9", later),
    ["credit", "credit", "debit"],
  ],
  [
    "the available balances prove the opposite",
    "053",
    balance("OPAV", "1") + balance("CLAV", "3"),
    reversal("2") + entry("4"),
    ["credit", "debit"],
  ],
  [
    "the balances count more than the summary",
    "053",
    balance("OPBD", "1") + balance("CLBD", "7") + summary(2, "2"),
    reversal("2") + entry("4"),
    ["credit", "credit"],
  ],
  [
    "the balances of several pages prove nothing",
    "053",
    page(1, false) + balance("OPBD", "1") + balance("CLBD", "3"),
    reversal("2") + entry("4"),
    ["credit", "credit"],
  ],
  ["nothing proves anything", "053", "", reversal("2"), ["credit"]],
  ["the summary agrees", "054", summary(2, "6"), reversal("2") + entry("4"), ["credit", "credit"]],
  [
    "the summary proves the opposite",
    "054",
    summary(2, "2"),
    reversal("2") + entry("4"),
    ["credit", "debit"],
  ],
];

for (const [rule, kind, head, entries, directions] of REVERSALS) {
  Deno.test(`readBankFile() reads a reversal: ${rule}`, async () => {
    const file = writeFile([{ head, entries }], { kind });
    const read = await readEntries(file);
    const is_turned = directions.includes("debit");
    assert.deepEqual(read.map(({ direction }) => direction).sort(), [...directions].sort());
    for (const { is_reversal, direction } of read) {
      assert.equal(direction, is_reversal && is_turned ? "debit" : "credit");
    }
    const warnings = await readWarnings(file);
    assert.equal(warnings.some((text) => text.includes("opposite direction")), is_turned);
  });
}

Deno.test("readBankFile() turns the details of a reversal too, and names the original payer", async () => {
  const NtryDtls = "<TxDtls><RltdPties><Dbtr><Nm>Payer</Nm></Dbtr><Cdtr><Nm>We</Nm></Cdtr>" +
    "</RltdPties></TxDtls>";
  const head = balance("OPBD", "9") + balance("CLBD", "7");
  const [entry] = await readEntries(writeFile([{ head, entries: reversal("2", { NtryDtls }) }]));
  assert.equal(entry?.details[0]?.direction, "debit");
  assert.equal(entry.details[0].counterparty.name, "Payer");
});

Deno.test("readBankFile() keeps few reversals in memory: the others are read as written", async () => {
  const head = balance("OPBD", "500") + balance("CLBD", "500");
  const entries = reversal("1").repeat(1500) + reversal("-1").repeat(1500);
  const read = await readEntries(writeFile([{ head, entries }]));
  assert.equal(read.length, 3000);
  assert.equal(read.filter(({ direction }) => direction === "credit").length, 1500);
  // Those that do not wait come first.
  assert.equal(read[0]?.direction, "debit");
});
