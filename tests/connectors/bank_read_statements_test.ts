/**
 * The statements of a bank's file: their account, their day and their members. And their sums: what
 * refuses a file, and what proves the direction of a reversal.
 */

import assert from "node:assert/strict";
import {
  ACCOUNT,
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

/** The booked balances of a statement. */
const from = (opening: string, closing: string) =>
  balance("OPBD", opening) + balance("CLBD", closing);
const available = (opening: string, closing: string) =>
  balance("OPAV", opening) + balance("CLAV", closing);
const inOther = (text: string, currency: string) => text.replace("EUR", currency);

const SUM = entry("5") + entry("-2");
const NOT_CHECKED = /^the sums are not checked/;
const DIFFER = /Line 6, column \d+, <Bal>: the opening balance of \S+ EUR \(line 5\) plus/;

/** Statements whose sums are right. */
const RIGHT: [rule: string, head: string, entries: string][] = [
  ["credits and debits", from("1", "4"), SUM],
  ["no entries", from("1", "1"), ""],
  ["an overdrawn account", balance("OPBD", "1", "DBIT") + balance("CLBD", "2"), entry("3")],
  ["the balance of the day before", balance("PRCD", "1") + balance("CLBD", "4"), entry("3")],
  [
    "pending entries and information do not count",
    from("1", "4"),
    entry("3") + entry("5", { Sts: "PDNG" }) + entry("6", { Sts: "INFO" }),
  ],
  [
    "balances of each day",
    ["2", "1"].map((day) => from(day, `${Number(day) + 1}`).replaceAll("11-20", `11-0${day}`))
      .join(""),
    entry("2", { ValDt: "<Dt>2026-11-01</Dt>" }),
  ],
  ["balances of no day", from("1", "4").replaceAll("2026-11-20", "2026-13-45"), entry("3")],
  ["balances below zero", balance("OPBD", "-1", "") + balance("CLBD", "-4", ""), entry("-3")],
  ["a closing balance by the day of booking", from("1", "13"), entry("3") + entry("9", later)],
  ["available balances", available("1", "4"), entry("3")],
  ["a summary", from("1", "4") + summary(2, "3"), SUM],
];

/** Statements with a warning, or with an error about their balances. */
const WRONG: [rule: string, head: string, entries: string, warning: RegExp][] = [
  ["sums that differ by a cent", from("1", "4.01"), entry("3"), DIFFER],
  ["a missing entry", from("1", "4"), "", DIFFER],
  ["the only page", page(1, true) + from("1", "9"), entry("3"), DIFFER],
  [
    "balances without a sign",
    balance("OPBD", "1", "") + balance("CLBD", "4", ""),
    entry("5"),
    /neither CRDT nor/,
  ],
  [
    "a closing balance by the day of value",
    from("1", "4"),
    entry("3") + entry("9", later),
    /entries with a later day of value/,
  ],
  ["no closing balance", balance("OPBD", "1"), entry("3"), NOT_CHECKED],
  ["no balances", "", entry("3"), NOT_CHECKED],
  [
    "balances of two currencies",
    balance("OPBD", "1") + inOther(balance("CLBD", "4"), "USD"),
    entry("3"),
    NOT_CHECKED,
  ],
  ["EUR and USD entries", from("1", "4"), entry("3") + entry("3", { Amt: "3 USD" }), NOT_CHECKED],
  ["an unreadable closing balance", from("1", "4.001"), entry("3"), /cannot be read|not checked/],
  [
    "a balance in XYZ",
    from("1", "4") + inOther(balance("INFO", "1"), "XYZ"),
    entry("3"),
    /cannot be read/,
  ],
  ["available balances that differ", available("1", "5"), entry("3"), NOT_CHECKED],
  ["the first page", page(1, false) + from("1", "9"), entry("3"), /one page of several/],
  ["the second page", page(2, true) + from("1", "9"), entry("3"), /one page of several/],
  ["a summary with another count", from("1", "4") + summary(3, "3"), SUM, /of 3 entries, not 2/],
  [
    "a summary with another sum",
    from("1", "4") + summary(2, "3", "DBIT"),
    SUM,
    /net amount of the summary/,
  ],
];

for (const [rule, head, entries] of RIGHT) {
  Deno.test(`readBankFile() finds the sums of a statement right: ${rule}`, async () => {
    assert.deepEqual(await readWarnings(writeFile([{ head, entries }])), []);
  });
}

for (const [rule, head, entries, expected] of WRONG) {
  Deno.test(`readBankFile() finds fault with the sums of a statement: ${rule}`, async () => {
    const file = writeFile([{ head: `\n${head}`, entries }]);
    if (expected === DIFFER) return await assert.rejects(readFile(file), DIFFER);
    const warnings = await readWarnings(file);
    assert.ok(warnings.length > 0);
    for (const warning of warnings) assert.match(warning, expected);
  });
}

Deno.test("readBankFile() names the statement whose sums differ, and reads those before it", async () => {
  const head = `\n${from("1", "4")}`;
  const file = writeFile([{ head, entries: entry("3") }, { head, entries: entry("4") }]);
  await assert.rejects(
    readFile(file),
    /Line 12, column \d+, <Bal>: the opening balance of 1.00 EUR \(line 11\) plus the booked entries of 4.00 EUR is not /,
  );
});

Deno.test("readBankFile() does not check interim balances and notifications", async () => {
  const head = from("1", "9") + balance("ITBD", "7");
  for (const kind of ["052", "054"] as const) {
    assert.deepEqual(await readWarnings(writeFile([{ head, entries: entry("3") }], { kind })), []);
  }
});

const reversal = (amount: string, further: Record<string, string> = {}) =>
  entry(amount, { RvslInd: "true", ...further });

const TURNED = reversal("2") + entry("4");

/** Statements with a reversal that is written as a credit, and whether it is a debit. */
const REVERSALS: [rule: string, kind: "053" | "054", head: string, is_debit: boolean][] = [
  ["the balances agree", "053", from("1", "7"), false],
  ["the balances prove the opposite", "053", from("1", "3"), true],
  ["the available balances prove the opposite", "053", available("1", "3"), true],
  ["the balances count more than the summary", "053", from("1", "7") + summary(2, "2"), false],
  ["the balances of several pages prove nothing", "053", page(1, false) + from("1", "3"), false],
  ["nothing proves anything", "053", "", false],
  ["the summary agrees", "054", summary(2, "6"), false],
  ["the summary proves the opposite", "054", summary(2, "2"), true],
];

for (const [rule, kind, head, is_debit] of REVERSALS) {
  Deno.test(`readBankFile() reads a reversal: ${rule}`, () =>
    readTurned(kind, head, TURNED, is_debit));
}

Deno.test("readBankFile() reads a reversal: the balances prove the opposite by the day of value", () =>
  readTurned("053", from("1", "3"), TURNED + entry("9", later), true));

async function readTurned(kind: "053" | "054", head: string, entries: string, is_debit: boolean) {
  const file = writeFile([{ head, entries }], { kind });
  const read = await readEntries(file);
  assert.equal(read.length, entries.split("</Ntry>").length - 1);
  for (const { is_reversal, direction } of read) {
    assert.equal(direction, is_reversal && is_debit ? "debit" : "credit");
  }
  assert.equal(read.filter(({ is_reversal }) => is_reversal).length, 1);
  const warnings = await readWarnings(file);
  assert.equal(warnings.some((text) => text.includes("opposite direction")), is_debit);
}

Deno.test("readBankFile() turns the details of a reversal too, and names the original payer", async () => {
  const NtryDtls = "<TxDtls><RltdPties><Dbtr><Nm>Payer</Nm></Dbtr><Cdtr><Nm>We</Nm></Cdtr>" +
    "</RltdPties></TxDtls>";
  const head = from("9", "7");
  const [entry] = await readEntries(writeFile([{ head, entries: reversal("2", { NtryDtls }) }]));
  assert.equal(entry?.details[0]?.direction, "debit");
  assert.equal(entry.details[0].counterparty.name, "Payer");
});

Deno.test("readBankFile() keeps few reversals in memory: the others are read as written", async () => {
  const head = from("500", "500");
  const entries = reversal("1").repeat(1500) + reversal("-1").repeat(1500);
  const read = await readEntries(writeFile([{ head, entries }]));
  assert.equal(read.length, 3000);
  assert.equal(read.filter(({ direction }) => direction === "credit").length, 1500);
  // Those that do not wait come first.
  assert.equal(read[0]?.direction, "debit");
});

Deno.test("readBankFile() reads every kind and version by the local names", async () => {
  for (const kind of ["052", "053", "054"] as const) {
    for (const version of ["02", "04", "06", "08", "13"]) {
      const entries = writeEntry({ Sts: Number(version) < 8 ? "BOOK" : "<Cd>BOOK</Cd>" });
      const [head, statement, entry] = await readFile(writeFile([{ entries }], { kind, version }));
      assert.deepEqual(head, {
        record: "message",
        line: 2,
        kind: `camt.${kind}`,
        version,
        message_id: "M-1",
        created_at: "2026-11-20T20:00:00+01:00",
      });
      assert.equal(statement?.record, "statement");
      assert.equal(entry?.record === "entry" && entry.status, "booked");
    }
  }
  const of_version_1 = writeFile([{ entries: writeEntry() }], { version: "01" })
    .replaceAll("BkToCstmrStmt", "BkToCstmrStmtV01");
  assert.equal((await readEntries(of_version_1)).length, 1);
  const [first] = await readFile(writeFile([]).replace(/ xmlns="[^"]*"/, ""));
  assert.equal(first?.record === "message" && first.version, null);
});

Deno.test("readBankFile() reads several accounts of a file", async () => {
  const file = writeFile([
    { entries: writeEntry() },
    { account: "<Id><Othr><Id>ch93 0076 2011 6238 5295 7</Id></Othr></Id>", entries: writeEntry() },
    { account: "<Id><PrtryAcct><Id>12-3</Id></PrtryAcct></Id>", entries: writeEntry() },
  ]);
  const accounts = (await readEntries(file)).map(({ account }) => account);
  assert.deepEqual(accounts, [ACCOUNT, "CH9300762011623852957", "12-3"]);
});

/** The days around an entry without a date, from the closest one, and the day of the entry. */
const DAYS_AROUND: [closing: string, statement: string, message: string, day: string | null][] = [
  ["2026-11-17", "2026-11-18", "2026-11-19", "2026-11-17"],
  ["", "2026-11-18", "2026-11-19", "2026-11-18"],
  ["", "", "2026-11-19", "2026-11-19"],
  ["", "", "", null],
];

for (const [closing, statement, message, day] of DAYS_AROUND) {
  Deno.test(`readBankFile() gives an entry without a date the day ${day}`, async () => {
    const head = (statement && `<CreDtTm>${statement}T00:10:00Z</CreDtTm>`) +
      (closing && balance("CLBD", "10.00", "CRDT", closing));
    const entries = writeEntry({ BookgDt: null, ValDt: null });
    const file = writeFile([{ head, entries }])
      .replace("2026-11-20T20:00:00+01:00", message && `${message}T23:50:00Z`);
    if (day === null) {
      await assert.rejects(readFile(file), /Line 5, .*<Ntry>: a booked entry has no date/);
    } else {
      assert.equal((await readEntries(file))[0]?.booked_on, day);
    }
  });
}

const OWN_NUMBER = { iban: ACCOUNT, currency: "EUR" };
const OTHER = "<Id><IBAN>FR1420041010050500013M02606</IBAN></Id>";

/** Statements that are not of the account, whatever is in them, and a warning. */
const OTHERS: [name: string, account: string, content: string, warning?: RegExp][] = [
  ["with wrong sums", OTHER, balance("OPBD", "0.00") + balance("CLBD", "9.00") + writeEntry()],
  ["in an unknown currency", OTHER, writeEntry({ Amt: "1.00 XAU" })],
  ["without an amount", OTHER, writeEntry({ Amt: null })],
  ["without a number", "", writeEntry(), /^a statement without an account is left out$/],
  [
    "in another currency",
    `<Id><IBAN>${ACCOUNT}</IBAN></Id><Ccy>USD</Ccy>`,
    writeEntry({ Amt: "9.00 USD" }),
    /the statement is in USD, which is not the currency of the account: it is not booked/,
  ],
  [
    "with balances in another currency",
    `<Id><IBAN>${ACCOUNT}</IBAN></Id>`,
    balance("CLBD", "9.00").replace("EUR", "USD") + writeEntry({ Amt: "9.00 USD" }),
    /the statement is in USD/,
  ],
];

for (const [name, account, content, warning] of OTHERS) {
  Deno.test(`readBankFile() leaves out a statement ${name} beside those of the account`, async () => {
    const own = balance("OPBD", "0.00") + balance("CLBD", "10.00") + writeEntry();
    const file = writeFile([{ entries: own }, { account, entries: content }, { entries: own }]);
    const records = await readFile(file, { own: OWN_NUMBER });
    const entries = records.filter(({ record }) => record === "entry");
    assert.equal(entries.length, 2);
    const warnings = records.flatMap((each) => each.record === "warning" ? [each.message] : []);
    assert.equal(warnings.length, warning ? 1 : 0, warnings.join());
    if (warning) assert.match(warnings[0]!, warning);
  });
}

Deno.test("readBankFile() reads amounts without a currency in that of the account", async () => {
  const account = `<Id><Othr><Id>${ACCOUNT.slice(4)}</Id></Othr></Id>`;
  const file = writeFile([{ account, entries: writeEntry({ Amt: "7" }) }], { kind: "054" });
  const records = await readFile(file, { own: { ...OWN_NUMBER, currency: "PLN" } });
  const [entry] = records.flatMap((each) => each.record === "entry" ? [each] : []);
  assert.deepEqual([entry?.account, entry?.amount_minor, entry?.currency], [ACCOUNT, 700, "PLN"]);
});

Deno.test("readBankFile() refuses a statement without an account", async () => {
  const file = writeFile([{ account: "", entries: writeEntry() }]);
  await assert.rejects(readFile(file), /Line 4, column \d+, <Stmt>: the statement has no account/);
});

for (
  const [rule, file, error] of [
    [
      "an entry outside of a statement",
      writeFile([]).replace("</BkToCstmrStmt>", `${writeEntry()}</BkToCstmrStmt>`),
      /<Ntry>: an entry is outside of a statement/,
    ],
    [
      "an entry inside of another",
      writeFile([{ entries: writeEntry({ NtryDtls: writeEntry() }) }]),
      /<Ntry>: an entry is inside of another/,
    ],
    [
      "a statement inside of another",
      writeFile([{ head: "<Stmt/>" }]),
      /<Stmt>: a statement is inside of another/,
    ],
  ] as const
) {
  Deno.test(`readBankFile() refuses ${rule}`, async () => {
    await assert.rejects(readFile(file), error);
  });
}

Deno.test("readBankFile() reads the members of a statement", async () => {
  const head = "<ElctrncSeqNb>12</ElctrncSeqNb><LglSeqNb>3</LglSeqNb><StmtPgntn><PgNb>1</PgNb>" +
    `<LastPgInd>true</LastPgInd></StmtPgntn>\n${balance("OPBD", "1.00000", "DBIT")}` +
    balance("CLBD", "9.00");
  const records = await readFile(writeFile([{ head, entries: writeEntry() }]));
  const common = { currency: "EUR", date: "2026-11-20" };
  const opening = { line: 5, code: "OPBD", amount_minor: -100, ...common };
  const closing = { line: 6, code: "CLBD", amount_minor: 900, ...common };
  assert.deepEqual(records[1], {
    record: "statement",
    line: 4,
    statement_id: "S-0",
    account: ACCOUNT,
    currency: "EUR",
    sequence: "12",
    page: { number: 1, is_last: true },
    balances: [opening, closing],
    booked: { opening, closing },
  });
  assert.deepEqual(records.at(-1), { record: "statement_end", line: 4, is_proven: true });
});

Deno.test("readBankFile() tells of a file without statements, and of a report without entries", async () => {
  assert.deepEqual(await readWarnings(writeFile([])), ["the file has no statement"]);
  for (const kind of ["052", "054"] as const) {
    assert.deepEqual(await readWarnings(writeFile([{}], { kind })), ["there are no entries"]);
  }
});
