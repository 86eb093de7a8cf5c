/** Entries and details of bank statements: what is booked, its direction, and what it tells. */

import assert from "node:assert/strict";
import type { DetailRecord, EntryRecord } from "../../shared/connectors/bank/read_records.ts";
import {
  ACCOUNT,
  readEntries,
  readFile,
  readWarnings,
  writeDetail,
  writeEntry,
  writeFile,
} from "../support/connectors/bank_file.ts";

type Members = Record<string, string | null>;
type Expected = Partial<Omit<EntryRecord, "record">> & {
  details?: Partial<Omit<DetailRecord, "record">>[];
};

/** Members of an entry: those of a batch, its details, and others. */
interface Written {
  batch?: string;
  details?: Members[];
  entry?: Members;
}

const money = (amount: string) => {
  const [, value, currency] = /(\S+) (\w+)/.exec(amount)!;
  return `<Amt Ccy="${currency}">${value}</Amt>`;
};
const details = (...members: Members[]) => members.map(writeDetail).join("");
const charges = (amount: string) => `<TtlChrgsAndTaxAmt Ccy="EUR">${amount}</TtlChrgsAndTaxAmt>`;
const record = (amount: string, further = "") => `<Rcrd>${money(amount)}${further}</Rcrd>`;
const instructed = (amount: string) => `<InstdAmt>${money(amount)}</InstdAmt>`;
const transacted = (amount: string) => `<TxAmt>${money(amount)}</TxAmt>`;
const returned = (code: string) => `<Rsn><Cd>${code}</Cd></Rsn>`;

function membersOf({ batch, details: of, entry }: Written): Members {
  const is_plain = batch === undefined && of === undefined;
  const NtryDtls = `${batch ? `<Btch>${batch}</Btch>` : ""}${details(...of ?? [])}`;
  return { ...!is_plain && { NtryDtls }, ...entry };
}

const [TEN, TWENTY] = [{ Amt: "10.00 EUR" }, { Amt: "20.00 EUR" }];
const THIRTY = { Amt: "30.00 EUR" };
/** The other side of a detail of whom nothing is told. */
const NOBODY: DetailRecord["counterparty"] = { name: null, iban: null, account: null, bic: null };
const OWN_DEBIT = { Amt: "12.50 EUR", CdtDbtInd: "DBIT" };
const UNDATED = /^booked entries without a date: 1\. Their day is that of their details/;

/** Entries by rule, with the members that the rule is about, and a warning. */
const CASES: [rule: string, entry: Written, expected: Expected, warning?: RegExp][] = [
  ["a plain entry is booked by its total", {}, {
    ...{ account: ACCOUNT, status: "booked", direction: "credit", amount_minor: 1000 },
    ...{ currency: "EUR", booked_on: "2026-11-20", value_on: "2026-11-20", is_reversal: false },
    ...{ booked_by: "total", charge_minor: 0, details: [] },
  }],
  [
    "the only detail has the amount of its entry",
    { details: [{ Amt: null }] },
    { booked_by: "details", details: [{ amount_minor: 1000, direction: "credit" }] },
  ],
  ["a batch is booked by its details and not at its total too", {
    batch: "<MsgId>M</MsgId><PmtInfId>P</PmtInfId><NbOfTxs>2</NbOfTxs>",
    details: [TEN, { ...TWENTY, Refs: "<PmtInfId>Q</PmtInfId>" }],
    entry: THIRTY,
  }, {
    booked_by: "details",
    batch: { message_id: "M", payment_information_id: "P", transactions: 2 },
    details: [
      { amount_minor: 1000, payment_information_id: "P", message_id: "M" },
      { amount_minor: 2000, payment_information_id: "Q", message_id: "M" },
    ],
  }],
  ["a batch without details is booked by its total", {
    batch: "<PmtInfId>P</PmtInfId><NbOfTxs>20</NbOfTxs>",
  }, {
    booked_by: "total",
    batch: { message_id: null, payment_information_id: "P", transactions: 20 },
    details: [],
  }],
  [
    "the only detail of a batch tells of the batch",
    { batch: "<PmtInfId>P</PmtInfId><NbOfTxs>2</NbOfTxs>", details: [{}] },
    { booked_by: "total", details: [{ payment_information_id: "P", amount_minor: 1000 }] },
  ],
  [
    "details of several groups have the batch of their group",
    {
      entry: {
        ...THIRTY,
        NtryDtls: `<Btch><PmtInfId>P</PmtInfId></Btch>${details(TEN)}</NtryDtls><NtryDtls>` +
          `<Btch><PmtInfId>Q</PmtInfId></Btch>${details(TWENTY)}`,
      },
    },
    { details: [{ payment_information_id: "P" }, { payment_information_id: "Q" }] },
  ],
  ["version 1 has batch and details directly in the entry", {
    entry: { Btch: "<PmtInfId>P</PmtInfId>", TxDtls: "<Refs><EndToEndId>E</EndToEndId></Refs>" },
  }, {
    batch: { message_id: null, payment_information_id: "P", transactions: null },
    details: [{ end_to_end_id: "E", amount_minor: 1000 }],
  }],
  [
    "details that do not add up inform only",
    { details: [TEN, TEN], entry: THIRTY },
    { booked_by: "total", amount_minor: 3000, details: [{}, {}] },
    /do not add up to the entry: it is booked by its total/,
  ],
  [
    "details without amounts inform only",
    { details: [{ Amt: null }, { Amt: null }] },
    { booked_by: "total", details: [{ amount_minor: null }, { amount_minor: null }] },
    /not every detail has an amount/,
  ],
  [
    "an amount of a detail below zero does not count",
    { details: [{ Amt: "15.00 EUR" }, { Amt: "-5.00 EUR" }] },
    { booked_by: "total" },
    /not every detail has an amount/,
  ],
  [
    "another amount of the only detail does not count",
    { details: [{ Amt: "99.00 EUR" }] },
    { booked_by: "details", charge_minor: 0, details: [{ amount_minor: 1000 }] },
    /the entry's is used/,
  ],
  [
    "a batch can have credits and debits",
    { details: [THIRTY, { ...TWENTY, CdtDbtInd: "DBIT" }] },
    { details: [{ direction: "credit" }, { direction: "debit", amount_minor: 2000 }] },
  ],
  ["a wrong direction of details does not count", {
    details: [{ ...TEN, CdtDbtInd: "CRDT" }, { ...TWENTY, CdtDbtInd: "CRDT" }],
    entry: { ...THIRTY, CdtDbtInd: "DBIT" },
  }, { direction: "debit", details: [{ direction: "debit" }, { direction: "debit" }] }],
  ["amounts of another currency in AmtDtls are left out", {
    details: [{ Amt: "11.70 USD", AmtDtls: instructed("11.70 USD") + transacted("10.00 EUR") }],
  }, { details: [{ amount_minor: 1000 }] }],
  ["the amount of a detail can stand in AmtDtls", {
    details: [
      { Amt: null, AmtDtls: transacted("10.00 EUR") },
      { Amt: null, AmtDtls: instructed("20.00 EUR") },
    ],
    entry: THIRTY,
  }, { booked_by: "details", details: [{ amount_minor: 1000 }, { amount_minor: 2000 }] }],
  [
    "a charge that the bank took out of a credit",
    { details: [{ AmtDtls: instructed("12.50 EUR"), Chrgs: charges("2.50") }] },
    { amount_minor: 1000, charge_minor: 250, details: [{ amount_minor: 1250 }] },
  ],
  ["a charge that the bank added to a return", {
    details: [{
      ...{ Amt: "12.50 EUR", AmtDtls: instructed("10.00 EUR") },
      Chrgs: record("2.00 EUR") + record("0.50 EUR"),
      RtrInf: `${returned("AC04")}<AddtlInf>account</AddtlInf><AddtlInf>closed</AddtlInf>`,
    }],
    entry: OWN_DEBIT,
  }, {
    ...{ amount_minor: 1250, charge_minor: 250 },
    details: [{
      ...{ amount_minor: 1000, direction: "debit" },
      return: { code: "AC04", information: "account closed" },
    }],
  }],
  ["charges that the bank added to the returns of a batch", {
    details: [1, 2].map(() => ({
      ...{ Amt: "12.50 EUR", AmtDtls: instructed("10.00 EUR") },
      ...{ Chrgs: record("2.50 EUR"), RtrInf: returned("AM04") },
    })),
    entry: { Amt: "25.00 EUR", CdtDbtInd: "DBIT" },
  }, {
    ...{ booked_by: "details", charge_minor: 500 },
    details: [{ amount_minor: 1000 }, { amount_minor: 1000 }],
  }],
  ["a charge that the amount of a return includes", {
    details: [{
      ...{ Amt: "12.50 EUR", RtrInf: returned("AM04") },
      Chrgs: record("2.50 EUR", "<ChrgInclInd>true</ChrgInclInd>"),
    }],
    entry: OWN_DEBIT,
  }, { amount_minor: 1250, charge_minor: 250, details: [{ amount_minor: 1000 }] }],
  ["a charge that a return without an amount includes", {
    details: [{
      ...{ Amt: null, RtrInf: returned("AM04") },
      Chrgs: record("2.50 EUR", "<ChrgInclInd>true</ChrgInclInd>"),
    }],
    entry: OWN_DEBIT,
  }, { amount_minor: 1250, charge_minor: 0, details: [{ amount_minor: 1250 }] }],
  ["a charge of a batch", {
    details: [TEN, TWENTY],
    entry: { Amt: "27.50 EUR", Chrgs: charges("2.50") },
  }, {
    ...{ booked_by: "details", charge_minor: 250 },
    details: [{ amount_minor: 1000 }, { amount_minor: 2000 }],
  }],
  [
    "a charge that is not part of the entry",
    { details: [TEN], entry: { Chrgs: charges("4.40") } },
    { charge_minor: 0, details: [{ amount_minor: 1000 }] },
  ],
  ["the direction is that of the money, also in a reversal", {
    details: [{ RltdPties: "<Dbtr><Nm>We</Nm></Dbtr><Cdtr><Nm>Payee</Nm></Cdtr>" }],
    entry: { RvslInd: "true" },
  }, {
    ...{ direction: "credit", is_reversal: true },
    details: [{ direction: "credit", counterparty: { ...NOBODY, name: "Payee" } }],
  }],
  ["the bank's text belongs to the entry, not to each detail", {
    details: [{ AddtlTxInf: "BATCH RF18" }, { AddtlTxInf: "own" }],
    entry: { ...TWENTY, AddtlNtryInf: "BATCH RF18" },
  }, {
    information: "BATCH RF18",
    details: [{ information: null, remittance: null }, { information: "own" }],
  }],
  ["before version 8 the status has no code", { entry: { Sts: "PDNG" } }, { status: "pending" }],
  ["a future entry is pending", { entry: { Sts: "<Cd>FUTR</Cd>" } }, { status: "pending" }],
  ["information is not booked", { entry: { Sts: "<Cd>INFO</Cd>" } }, { status: "information" }],
  ["a status in other letters", { entry: { Sts: "<Cd>Book</Cd>" } }, { status: "booked" }],
  ["a status as a word", { entry: { Sts: "BOOKED" } }, { status: "booked" }],
  ["an entry without a status is booked", { entry: { Sts: null } }, { status: "booked" }],
  [
    "an unknown status is not booked",
    { entry: { Sts: "<Prtry>XYZ</Prtry>" } },
    { status: "information" },
    /the status of the entry is not known/,
  ],
  ["dates can have a time, of the bank's day", {
    entry: {
      BookgDt: "<DtTm>2026-11-20T23:30:00.000-05:00</DtTm>",
      ValDt: "<Dt>2026-11-21+01:00</Dt>",
    },
  }, { booked_on: "2026-11-20", value_on: "2026-11-21" }],
  ["a date that cannot be read beside one with a time", {
    entry: { BookgDt: "<Dt>20.11.2026</Dt><DtTm>2026-11-19T10:00:00</DtTm>" },
  }, { booked_on: "2026-11-19" }],
  [
    "an entry without a date is of the day of its details",
    {
      details: [{
        RltdDts: "<AccptncDtTm>2026-11-17T10:00:00</AccptncDtTm>" +
          "<IntrBkSttlmDt>2026-11-18</IntrBkSttlmDt>",
      }],
      entry: { BookgDt: null, ValDt: "<Dt/>" },
    },
    { booked_on: "2026-11-18", value_on: null },
    UNDATED,
  ],
  [
    "an entry without any date is of the day of the file, whatever the time",
    { entry: { BookgDt: null, ValDt: null } },
    { booked_on: "2026-11-20", value_on: null },
    UNDATED,
  ],
  [
    "a pending entry without a date",
    { entry: { Sts: "PDNG", BookgDt: null, ValDt: null } },
    { booked_on: null, value_on: null },
  ],
  ["five decimals that are zero", { entry: { Amt: "8.85000 EUR" } }, { amount_minor: 885 }],
  ...([
    ["a currency without decimals", "200000 JPY", 200_000, "JPY"],
    ["a currency with three decimals", "1.5 KWD", 1500, "KWD"],
    ["the largest amount", "90071992547409.91 EUR", 2 ** 53 - 1, "EUR"],
    ["an amount without a currency has that of the account", "7", 700, "EUR"],
    ["a currency in small letters", "7 eur", 700, "EUR"],
    ["nothing at all", "0 EUR", 0, "EUR"],
  ] as const).map(([rule, Amt, amount_minor, currency]): typeof CASES[number] => [
    rule,
    { entry: { Amt } },
    { amount_minor, currency },
  ]),
  ["codes of the bank", {
    entry: {
      BkTxCd: "<Domn><Cd>PMNT</Cd><Fmly><Cd>RCDT</Cd><SubFmlyCd>ESCT</SubFmlyCd></Fmly></Domn>" +
        "<Prtry><Cd>NTRF+166</Cd><Issr>DK</Issr></Prtry>",
      AcctSvcrRef: "REF-1",
    },
  }, {
    bank_code: { domain: "PMNT", family: "RCDT", sub_family: "ESCT", proprietary: "NTRF+166" },
    bank_reference: "REF-1",
  }],
  ["ids of a transaction", {
    details: [{
      Refs: "<MsgId>M</MsgId><AcctSvcrRef>A</AcctSvcrRef><PmtInfId>P</PmtInfId>" +
        "<InstrId>I</InstrId><EndToEndId>E</EndToEndId><UETR>U</UETR><TxId>T</TxId>" +
        "<MndtId>D</MndtId>",
    }],
  }, {
    details: [{
      ...{ message_id: "M", bank_reference: "A", payment_information_id: "P" },
      ...{ instruction_id: "I", end_to_end_id: "E", uetr: "U", transaction_id: "T" },
      mandate_id: "D",
    }],
  }],
  ["NOTPROVIDED is no id", {
    details: [{
      Refs: "<EndToEndId>NOTPROVIDED</EndToEndId><TxId>Not Provided</TxId><MndtId>NONREF</MndtId>",
    }],
  }, { details: [{ end_to_end_id: null, transaction_id: null, mandate_id: null }] }],
  ["structured references and joined text", {
    details: [{
      RmtInf: `<Ustrd>Invoice 1 and</Ustrd><Ustrd>
          2 </Ustrd><Strd>
        <RfrdDocInf><Tp><CdOrPrtry><Cd>CINV</Cd></CdOrPrtry></Tp><Nb>4711</Nb></RfrdDocInf>
        <CdtrRefInf><Tp><CdOrPrtry><Cd>SCOR</Cd></CdOrPrtry></Tp><Ref>RF18539007547034</Ref>
        </CdtrRefInf><AddtlRmtInf>thanks</AddtlRmtInf><AddtlRmtInf>?REJECT?0</AddtlRmtInf></Strd><Strd>
        <CdtrRefInf><Tp><CdOrPrtry><Prtry>QRR</Prtry></CdOrPrtry></Tp>
        <Ref>210000000003139471430009017</Ref></CdtrRefInf></Strd>
        <Strd><CdtrRefInf><Ref>120000000000234478943216899</Ref></CdtrRefInf></Strd>`,
    }],
  }, {
    details: [{
      remittance: "Invoice 1 and\n2\nthanks",
      references: [
        { type: "SCOR", reference: "RF18539007547034" },
        { type: "CINV", reference: "4711" },
        { type: "QRR", reference: "210000000003139471430009017" },
        { type: null, reference: "120000000000234478943216899" },
      ],
    }],
  }],
  ["references of version 1, of related remittance and of the bank", {
    details: [{
      Refs: "<Prtry><Tp>A</Tp><Ref>1</Ref></Prtry><Prtry><Tp>B</Tp><Ref>2</Ref></Prtry>",
      RmtInf: "<Strd><CdtrRefInf><CdtrRef>RF18539007547034</CdtrRef></CdtrRefInf></Strd>",
      RltdRmtInf: "<RmtId>3</RmtId>",
    }],
  }, {
    details: [{
      references: [{ type: null, reference: "RF18539007547034" }],
      other_references: ["3", "1", "2"],
    }],
  }],
];

/** Details, and the other side that they name. */
const PARTIES: [rule: string, detail: Members, party: Partial<typeof NOBODY>, is_debit?: true][] = [
  ["the payer of a credit", {
    RltdPties: "<Dbtr><Pty><Nm>Payer</Nm></Pty></Dbtr><DbtrAcct><Id><IBAN>de89 3704 0044 0532 " +
      "0130 00</IBAN></Id></DbtrAcct><Cdtr><Pty><Nm>We</Nm></Pty></Cdtr>",
    RltdAgts: "<DbtrAgt><FinInstnId><BICFI>COBADEFFXXX</BICFI></FinInstnId></DbtrAgt>",
  }, { name: "Payer", iban: "DE89370400440532013000", bic: "COBADEFFXXX" }],
  [
    "the payee of a debit, with the IBAN in Othr and the names of version 2",
    {
      RltdPties: "<UltmtCdtr><Nm>Payee</Nm></UltmtCdtr><CdtrAcct><Id><Othr>" +
        "<Id>DE89370400440532013000</Id></Othr></Id></CdtrAcct>",
      RltdAgts: "<CdtrAgt><FinInstnId><BIC>COBADEFF</BIC></FinInstnId></CdtrAgt>",
    },
    { name: "Payee", iban: "DE89370400440532013000", bic: "COBADEFF" },
    true,
  ],
  ["not the account itself", {
    RltdPties: `<Dbtr><Nm>We</Nm></Dbtr><DbtrAcct><Id><IBAN>${ACCOUNT}</IBAN></Id></DbtrAcct>` +
      "<Cdtr><Nm>Payee</Nm></Cdtr>",
  }, { name: "Payee" }],
  ["an account that is no IBAN, and a bank as the payer", {
    RltdPties: "<Dbtr><Agt><FinInstnId><Nm>Bank</Nm></FinInstnId></Agt></Dbtr><DbtrAcct><Id>" +
      "<Othr><Id>00125574999</Id></Othr></Id></DbtrAcct>",
  }, { name: "Bank", account: "00125574999" }],
];

for (const [rule, detail, party, is_debit] of PARTIES) {
  Deno.test(`readBankFile() reads the other side of a detail: ${rule}`, async () => {
    const entry = { CdtDbtInd: is_debit ? "DBIT" : "CRDT", NtryDtls: writeDetail(detail) };
    const [read] = await readEntries(writeFile([{ entries: writeEntry(entry) }]));
    assert.deepEqual(read!.details[0]!.counterparty, { ...NOBODY, ...party });
  });
}

for (const [rule, written, expected, warning] of CASES) {
  Deno.test(`readBankFile() reads an entry: ${rule}`, async () => {
    const file = writeFile([{ entries: writeEntry(membersOf(written)) }]);
    const [entry, ...others] = await readEntries(file);
    assert.ok(entry);
    assert.deepEqual(others, []);
    const { details, ...rest } = expected;
    assert.deepEqual(pick(entry, rest), rest);
    if (details) {
      assert.equal(entry.details.length, details.length);
      details.forEach((each, at) => assert.deepEqual(pick(entry.details[at]!, each), each));
    }
    const warnings = (await readWarnings(file)).filter((text) => !text.includes("not checked"));
    assert.equal(warnings.length, warning ? 1 : 0, warnings.join());
    if (warning) assert.match(warnings[0]!, warning);
  });
}

const NO_DATE = /<BookgDt>: not a date like 2026-11-20/;
/** Entries that refuse the file, with the element and the reason. */
const REFUSED: readonly (readonly [rule: string, entry: Members, error: RegExp])[] = [
  ["no amount", { Amt: null }, /<Ntry>: the entry has no amount/],
  ["a text as amount", { Amt: "ten EUR" }, /<Amt>: "ten" EUR is not an amount/],
  ["an empty amount", { Amt: "<!-- --> EUR" }, /<Amt>/],
  ["a decimal comma", { Amt: "10,00 EUR" }, /<Amt>: "10,00" EUR is not an amount/],
  ["parts of a cent", { Amt: "10.001 EUR" }, /<Amt>: "10.001" EUR is not .* more decimals/],
  ["an amount over 2^53", { Amt: "90071992547409.92 EUR" }, /<Amt>: .* too large/],
  ["an amount below zero", { Amt: "-1.00 EUR" }, /<Amt>: the amount of an entry is below zero/],
  ["an unknown currency", { Amt: "1.00 XYZ" }, /<Amt>: the currency is not known/],
  ...["2026-13-45", "0000-00-00"].map((day): typeof REFUSED[number] => [
    `the day ${day}`,
    { BookgDt: `<Dt>${day}</Dt>`, ValDt: `<Dt>${day}</Dt>` },
    NO_DATE,
  ]),
  ["a date in another form", { BookgDt: "<Dt>20261120</Dt>", ValDt: null }, NO_DATE],
  [
    "another form beside an empty one",
    { BookgDt: "<Dt>20261120</Dt><DtTm/>", ValDt: null },
    NO_DATE,
  ],
  [
    "a date that is in no calendar",
    { BookgDt: null, ValDt: "<DtTm>2026-02-30T10:00:00</DtTm>" },
    /<ValDt>: not a date like 2026-11-20/,
  ],
  ["no direction", { CdtDbtInd: null }, /<Ntry>: the entry is neither CRDT nor DBIT/],
];

for (const [rule, members, error] of REFUSED) {
  Deno.test(`readBankFile() refuses an entry with ${rule}`, async () => {
    const entries = writeEntry() + writeEntry(members);
    await assert.rejects(readFile(writeFile([{ entries }])), (thrown) => {
      assert.match(String(thrown), /Line 6, column \d+, /);
      assert.match(String(thrown), error);
      return true;
    });
  });
}

/** A batch of so many details is not in memory at once. */
const LARGE = 1500;
/** Such batches: their amount, members of each detail, their charge, and how they are booked. */
const LARGE_BATCHES: [
  amount: string,
  members: Members,
  Chrgs: string | null,
  booked: [by: string, charge_minor: number] | RegExp,
][] = [
  ["15000.00 EUR", {}, null, ["details", 0]],
  ...([["14995.00 EUR", true, 500], ["15000.00 EUR", false, 0]] as const).map((
    [amount, is_included, charge_minor],
  ): typeof LARGE_BATCHES[number] => [
    amount,
    {},
    record("5.00 EUR", `<ChrgInclInd>${is_included}</ChrgInclInd>`),
    ["details", charge_minor],
  ]),
  ["1.00 EUR", { Amt: null }, null, ["total", 0]],
  ["15000.01 EUR", {}, null, /<Ntry>: the amounts of more than 1000 details/],
];
for (const [at, [amount, members, Chrgs, booked]] of LARGE_BATCHES.entries()) {
  Deno.test(`readBankFile() reads a batch with very many details: ${at} ${booked}`, async () => {
    const NtryDtls = details(...Array.from({ length: LARGE }, (_, at) => ({
      ...{ Refs: `<EndToEndId>E-${at}</EndToEndId>`, ...members },
    })));
    const batch = writeEntry({ Amt: amount, Chrgs, NtryDtls, AddtlNtryInf: "LATE" });
    const file = writeFile([{ entries: batch + writeEntry() }]);
    if (booked instanceof RegExp) return await assert.rejects(readFile(file), booked);
    const [read, other] = await readEntries(file);
    assert.deepEqual([read?.booked_by, read?.charge_minor], booked);
    assert.equal(other?.details.length, 0);
    if (read?.booked_by === "total") return;
    const ids = read!.details.map(({ end_to_end_id }) => end_to_end_id);
    assert.deepEqual(ids, Array.from({ length: LARGE }, (_, at) => `E-${at}`));
    assert.ok(read!.details.every(({ amount_minor }) => amount_minor === 1000));
  });
}

/** The members of a value that another one has. */
function pick<T extends object>(value: T, members: Partial<T>): Partial<T> {
  const names = Object.keys(members) as (keyof T)[];
  return Object.fromEntries(names.map((name) => [name, value[name]])) as Partial<T>;
}
