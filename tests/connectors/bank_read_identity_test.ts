/** The identity of an entry: equal in all files that tell of the entry, and in no others. */

import assert from "node:assert/strict";
import { Counts } from "../../shared/connectors/bank/identity_counts.ts";
import { hashOf } from "../../shared/connectors/bank/read_identity.ts";
import {
  readEntries,
  readWarnings,
  writeBalance,
  writeDetail,
  writeEntry,
  writeFile,
} from "../support/connectors/bank_file.ts";

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
const batch = (id: string, count = 2) =>
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
  ["no id in two ways", { NtryDtls: detail("NOTPROVIDED", "a") }, { NtryDtls: detail(null, "a") }],
  ["other spaces", { NtryDtls: detail(null, "Rf 18 x") }, { NtryDtls: detail(null, "RF18X") }],
  ["a batch with and without its details", {
    NtryDtls: batch("P"),
  }, {
    NtryDtls: batch("P") + detail("A", "", { Amt: "4 EUR" }) + detail("B", "", { Amt: "6 EUR" }),
  }],
  ["a batch of one with and without its details", { NtryDtls: batch("P", 1) }, {
    NtryDtls: batch("P", 1) + detail(ORDER),
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
  ["one end-to-end id, two texts", { NtryDtls: detail("A", "1") }, { NtryDtls: detail("A", "2") }],
  ["another batch", { NtryDtls: batch("P") }, { NtryDtls: batch("Q") }],
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

Deno.test("identityOf() counts over the statements of a file, but not a repeated one", async () => {
  const entries = writeEntry();
  const file = writeFile([{ entries }, { entries }]);
  const [first, second] = await readEntries(file);
  assert.equal(second?.identity, `${first?.identity}-2`);
  const same = file.replaceAll("S-1", "S-0");
  const [one, again] = await readEntries(same);
  assert.equal(again?.identity, one?.identity);
  assert.ok((await readWarnings(same)).includes("the statement stands in the file more than once"));
});

Deno.test("identityOf() does not count a pending entry with the booked one that follows", async () => {
  const [pending, booked] = await identities([{ Sts: "PDNG" }, {}], "052");
  assert.equal(pending, booked);
});

Deno.test("identityOf() does not depend on the direction that balances prove", async () => {
  const reversal = writeEntry({ RvslInd: "true" });
  const head = writeBalance("OPBD", "30") + writeBalance("CLBD", "20");
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
