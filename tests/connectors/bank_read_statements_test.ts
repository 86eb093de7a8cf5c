/**
 * The sums of bank statements: what refuses a file, and what proves the direction of a reversal. And
 * the identity of an entry, equal in all files that tell of the entry, and in no others.
 */

import assert from "node:assert/strict";
import { Counts } from "../../shared/connectors/bank/identity_counts.ts";
import { hashOf } from "../../shared/connectors/bank/read_identity.ts";
import {
  readEntries,
  readFile,
  readWarnings,
  writeBalance as balance,
  writeDetail,
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

const NOT_CHECKED = /^the sums are not checked/;
const DIFFER = /Line 6, column \d+, <Bal>: the opening balance of \S+ EUR \(line 5\) plus/;

/** Statements whose sums are right. */
const RIGHT: [rule: string, head: string, entries: string][] = [
  ["credits and debits", from("1", "4"), entry("5") + entry("-2")],
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
  [
    "balances of a day that is in no calendar",
    from("1", "4").replaceAll("2026-11-20", "2026-13-45"),
    entry("3"),
  ],
  [
    "balances below zero without a sign",
    balance("OPBD", "-1", "") + balance("CLBD", "-4", ""),
    entry("-3"),
  ],
  [
    "a closing balance by the day of booking with a later value",
    from("1", "13"),
    entry("3") + entry("9", later),
  ],
  ["available balances", available("1", "4"), entry("3")],
  ["a summary", from("1", "4") + summary(2, "3"), entry("5") + entry("-2")],
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
    /neither CRDT nor DBIT/,
  ],
  [
    "a closing balance by the day of value",
    from("1", "4"),
    entry("3") + entry("9", later),
    /leaves out entries with a later day of value/,
  ],
  ["no closing balance", balance("OPBD", "1"), entry("3"), NOT_CHECKED],
  ["no balances", "", entry("3"), NOT_CHECKED],
  [
    "balances of two currencies",
    balance("OPBD", "1") + inOther(balance("CLBD", "4"), "USD"),
    entry("3"),
    NOT_CHECKED,
  ],
  [
    "entries of two currencies",
    from("1", "4"),
    entry("3") + entry("3", { Amt: "3 USD" }),
    NOT_CHECKED,
  ],
  [
    "a closing balance that cannot be read",
    from("1", "4.001"),
    entry("3"),
    /the amount of the balance cannot be read|not checked/,
  ],
  [
    "a balance of an unknown currency",
    from("1", "4") + inOther(balance("INFO", "1"), "XYZ"),
    entry("3"),
    /the amount of the balance cannot be read/,
  ],
  ["available balances that differ", available("1", "5"), entry("3"), NOT_CHECKED],
  ["the first page", page(1, false) + from("1", "9"), entry("3"), /one page of several/],
  ["the second page", page(2, true) + from("1", "9"), entry("3"), /one page of several/],
  [
    "a summary with another count",
    from("1", "4") + summary(3, "3"),
    entry("5") + entry("-2"),
    /the summary tells of 3 entries, not 2/,
  ],
  [
    "a summary with another sum",
    from("1", "4") + summary(2, "3", "DBIT"),
    entry("5") + entry("-2"),
    /the net amount of the summary is not the sum/,
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

type Members = Record<string, string | null>;

async function identities(entries: readonly Members[], kind: "052" | "053" | "054" = "053") {
  const text = entries.map(writeEntry).join("");
  return (await readEntries(writeFile([{ entries: text }], { kind }))).map((entry) =>
    entry.identity
  );
}

const detail = (e2e: string | null, text = "", further: Members = {}) =>
  writeDetail({
    Refs: e2e && `<EndToEndId>${e2e}</EndToEndId>`,
    RmtInf: text && `<Ustrd>${text}</Ustrd>`,
    ...further,
  });
const REFERENCE = "2026112000001234";
const ORDER = "tr-01h000000000000000000000q0";
const batchOf = (id: string, count = 2) =>
  `<Btch><PmtInfId>${id}</PmtInfId><NbOfTxs>${count}</NbOfTxs>` +
  "</Btch>";

/** Two ways in which a report, a notification or a statement writes one entry. */
const EQUAL: readonly (readonly [rule: string, a: Members, b: Members])[] = [
  ["the same reference with and without details", { AcctSvcrRef: REFERENCE }, {
    AcctSvcrRef: REFERENCE,
    NtryDtls: detail("E", "text"),
    AddtlNtryInf: "SEPA",
  }],
  ["a long reference on another day", { AcctSvcrRef: REFERENCE }, {
    AcctSvcrRef: REFERENCE,
    BookgDt: "<Dt>2026-11-23</Dt>",
  }],
  ["the day with a time", {}, { BookgDt: "<DtTm>2026-11-20T09:00:00+01:00</DtTm>" }],
  ["another day of value", {}, { ValDt: "<Dt>2026-11-23</Dt>" }],
  ["no day of booking", {}, { BookgDt: null }],
  ["another text of the bank", {}, { AddtlNtryInf: "SEPA", BkTxCd: "<Prtry><Cd>1</Cd></Prtry>" }],
  ["a pending entry", { Sts: "PDNG", NtryDtls: detail("E") }, { NtryDtls: detail("E") }],
  ["NONREF and no reference", { AcctSvcrRef: "NONREF" }, {}],
  ["zeros and no reference", { AcctSvcrRef: "0000000000" }, {}],
  ["more decimals", { Amt: "10.00000 EUR" }, {}],
  ["an unknown id and none", { NtryDtls: detail("NOTPROVIDED", "a") }, {
    NtryDtls: detail(null, "a"),
  }],
  ["text with other spaces", { NtryDtls: detail(null, "Rf 18 x") }, {
    NtryDtls: detail(null, "RF18X"),
  }],
  ["a batch with and without its details", {
    NtryDtls: batchOf("P"),
  }, {
    NtryDtls: batchOf("P") + detail("A", "", { Amt: "4 EUR" }) + detail("B", "", { Amt: "6 EUR" }),
  }],
  ["a batch of one with and without its details", { NtryDtls: batchOf("P", 1) }, {
    NtryDtls: batchOf("P", 1) + detail(ORDER),
  }],
  ["an order of ours with and without its text", { NtryDtls: detail(ORDER) }, {
    NtryDtls: detail(ORDER.toUpperCase(), "text"),
  }],
];

for (const [rule, a, b] of EQUAL) {
  Deno.test(`identityOf() is the same for ${rule}`, async () => {
    for (const kind of ["052", "054"] as const) {
      assert.deepEqual(await identities([a], kind), await identities([b], "053"));
    }
  });
}

/** Two entries that are not the same. */
const DIFFERENT: readonly (readonly [rule: string, a: Members, b: Members])[] = [
  ["another amount", {}, { Amt: "10.01 EUR" }],
  ["another currency", {}, { Amt: "10.00 USD" }],
  ["another direction", {}, { CdtDbtInd: "DBIT" }],
  ["another day", {}, { BookgDt: "<Dt>2026-11-21</Dt>" }],
  ["another reference", { AcctSvcrRef: REFERENCE }, { AcctSvcrRef: `${REFERENCE}5` }],
  ["one reference with two amounts", { AcctSvcrRef: REFERENCE }, {
    AcctSvcrRef: REFERENCE,
    Amt: "11.00 EUR",
  }],
  ["a number of the day on another day", { AcctSvcrRef: "000000000017" }, {
    AcctSvcrRef: "000000000017",
    BookgDt: "<Dt>2026-11-21</Dt>",
  }],
  ["another end-to-end id", { NtryDtls: detail("A") }, { NtryDtls: detail("B") }],
  ["one end-to-end id with two texts", { NtryDtls: detail("A", "1") }, {
    NtryDtls: detail("A", "2"),
  }],
  ["another batch", { NtryDtls: batchOf("P") }, { NtryDtls: batchOf("Q") }],
  ["another transaction id", {
    NtryDtls: writeDetail({ Refs: "<TxId>1</TxId>" }),
  }, { NtryDtls: writeDetail({ Refs: "<TxId>2</TxId>" }) }],
];

for (const [rule, a, b] of DIFFERENT) {
  Deno.test(`identityOf() differs for ${rule}`, async () => {
    const [[first], [second]] = [await identities([a]), await identities([b])];
    assert.notEqual(first, second);
  });
}

Deno.test("identityOf() counts equal entries of a file, and those of each account apart", async () => {
  const [first, second, third] = await identities([{}, {}, { AcctSvcrRef: "NONREF" }]);
  assert.match(first!, /^[0-9a-f]{32}$/);
  assert.deepEqual([second, third], [`${first}-2`, `${first}-3`]);
  const account = "<Id><Othr><Id>12</Id></Othr></Id>";
  const entries = writeEntry();
  const [one, other] = await readEntries(writeFile([{ entries }, { account, entries }]));
  assert.deepEqual([one?.identity, other?.identity], [first, first]);
});

Deno.test("identityOf() counts over the statements of a file, but not over a repeated one", async () => {
  const entries = writeEntry();
  const file = writeFile([{ entries }, { entries }]);
  const [first, second] = await readEntries(file);
  assert.equal(second?.identity, `${first?.identity}-2`);
  const repeated = file.replaceAll("S-1", "S-0");
  const [one, again] = await readEntries(repeated);
  assert.equal(again?.identity, one?.identity);
  assert.ok(
    (await readWarnings(repeated)).includes("the statement stands in the file more than once"),
  );
});

Deno.test("identityOf() does not count a pending entry with the booked one that follows", async () => {
  const [pending, booked] = await identities([{ Sts: "PDNG" }, {}], "052");
  assert.equal(pending, booked);
});

Deno.test("identityOf() does not depend on the direction that balances prove", async () => {
  const reversal = writeEntry({ RvslInd: "true" });
  const head = from("30", "20");
  const [statement] = await readEntries(writeFile([{ head, entries: reversal }]));
  const [notification] = await readEntries(writeFile([{ entries: reversal }], { kind: "054" }));
  assert.deepEqual([statement?.direction, notification?.direction], ["debit", "credit"]);
  assert.equal(statement?.identity, notification?.identity);
});

Deno.test("Counts.add() counts many texts", () => {
  const counts = new Counts();
  for (const round of [1, 2, 3]) {
    for (let at = 0; at < 5000; at++) assert.equal(counts.add(hashOf([at])), round);
  }
});
