/** How a bank's entries are booked: as payments, payouts that come back, batches and charges. */

import assert from "node:assert/strict";
import { batchOf, bookEntry, partsOf } from "../../shared/connectors/bank/booked_entries.ts";
import { readOwnBusiness } from "../../shared/connectors/bank/own_business.ts";
import { creditorReference } from "../../shared/core/creditor_reference.ts";
import {
  readEntries,
  writeDetail,
  writeEntry,
  writeFile,
} from "../support/connectors/bank_file.ts";

const REFERENCE = creditorReference("pay_01k8zq3n5v8x1y2z3a4b000001");
const PAYOUT = "tr-01k8zq3n5v8x1y2z3a4b000002";
const COLLECTION = "pay-01k8zq3n5v8x1y2z3a4b000003";
const FILE = "bf-01k8zq3n5v8x1y2z3a4b000004";
/** A payout of 10.00, and a payment that waits and one that does not. */
const CUT = REFERENCE.slice(0, 12);
const OTHER_PAYOUT = PAYOUT.replace(/2$/, "3");
const FOUND = [
  { reference: PAYOUT, amount_minor: 1000, currency: "EUR", is_open: false },
  { reference: OTHER_PAYOUT, amount_minor: 1000, currency: "EUR", is_open: true },
  { reference: COLLECTION, amount_minor: 700, currency: "EUR", is_open: true },
  { reference: REFERENCE, amount_minor: 9900, currency: "EUR", is_open: true },
  {
    reference: `${REFERENCE.slice(0, 14)}000000`,
    amount_minor: 5,
    currency: "EUR",
    is_open: false,
  },
];

const refs = (id: string) => `<EndToEndId>${id}</EndToEndId>`;
const text = (text: string) => `<Ustrd>${text}</Ustrd>`;
const amounts = (InstdAmt: string, TxAmt: string) =>
  `<InstdAmt><Amt Ccy="EUR">${InstdAmt}</Amt></InstdAmt>` +
  `<TxAmt><Amt Ccy="EUR">${TxAmt}</Amt></TxAmt>`;
const RETURNED = "<Rsn><Cd>AC04</Cd></Rsn>";
const SENT = [["transfer", "succeeded", PAYOUT, 1000]];
const SPENT = [["adjustment", "succeeded", null, 1000]];
const CHARGED = [["account_fee", "succeeded", null, 1000]];
const PAID = [["authorize", "succeeded", REFERENCE, 1000]];
const BACK = [["transfer", "returned", PAYOUT, 1000]];
const UNKNOWN = [["adjustment", "returned", null, 1000]];
const RETURN_WITH_CHARGE = [
  ["authorize", "returned", COLLECTION, 700],
  ["account_fee", "succeeded", null, 350],
];
const BATCH = [["adjustment", "returned", null, 1000], { id: FILE, sum_minor: 1000 }];

type Case = [name: string, members: Record<string, string | null>, booked: unknown[]];
const detail = (members: Record<string, string | null>) => ({ NtryDtls: writeDetail(members) });
const debit = (members: Record<string, string | null>) => ({
  Amt: "10.50 EUR",
  CdtDbtInd: "DBIT",
  ...detail({ Refs: refs(COLLECTION), Amt: null, RtrInf: RETURNED, ...members }),
});

const charge = (code: string): Record<string, string> => ({ CdtDbtInd: "DBIT", BkTxCd: code });
const own = (code: string) => `<Prtry><Cd>${code}</Cd></Prtry>`;
const iso = (code: string) =>
  `<Domn><Cd>PMNT</Cd><Fmly><Cd>MDOP</Cd><SubFmlyCd>${code}</SubFmlyCd></Fmly></Domn>`;

const RULES = readOwnBusiness(
  "name:City Rent; iban:FR1420041010050500013M02606; code:PMNT-RCDT-SALA; code:153; ",
)!;
const OWN_OUT = [["payout", "succeeded", null, 1000]];
const OWN_IN = [["payout", "returned", null, 1000]];
const party = (role: string, name: string, iban = "NL91ABNA0417164300") =>
  `<${role}><Nm>${name}</Nm></${role}><${role}Acct><Id><IBAN>${iban}</IBAN></Id></${role}Acct>`;
const out = (members: Record<string, string | null>): Record<string, string | null> => ({
  CdtDbtInd: "DBIT",
  ...detail(members),
});
const salary = (family: string) =>
  `<Domn><Cd>PMNT</Cd><Fmly><Cd>${family}</Cd><SubFmlyCd>SALA</SubFmlyCd></Fmly></Domn>`;
const FRENCH = "FR1420041010050500013M02606";

const CASES: Case[] = [
  ["a payee of the rules", out({ RltdPties: party("Cdtr", "CITY RENT Gmbh") }), OWN_OUT],
  ["another payee", out({ RltdPties: party("Cdtr", "The City Rent") }), SPENT],
  ["a payer with the name of a payee", detail({ RltdPties: party("Dbtr", "City Rent") }), UNKNOWN],
  ["a payer by an IBAN of the rules", detail({ RltdPties: party("Dbtr", "X", FRENCH) }), OWN_IN],
  ["a code of the rules", { BkTxCd: salary("RCDT") }, OWN_IN],
  ["a code of another family", { BkTxCd: salary("ICDT") }, UNKNOWN],
  ["a bank's own code of the rules", charge(own("NTRF+153")), OWN_OUT],
  ["a bank's own code with more digits", charge(own("NTRF+1530")), SPENT],
  [
    "a payment by an IBAN of the rules",
    detail({ RltdPties: party("Dbtr", "X", FRENCH), RmtInf: text(REFERENCE) }),
    PAID,
  ],
  [
    "a payout to a payee of the rules",
    out({ Refs: refs(PAYOUT), RltdPties: party("Cdtr", "City Rent") }),
    SENT,
  ],
  [
    "a return by an IBAN of the rules",
    detail({ RltdPties: party("Dbtr", "X", FRENCH), RtrInf: RETURNED }),
    UNKNOWN,
  ],
  ["a batch with a code of the rules", {
    BkTxCd: salary("RCDT"),
    NtryDtls: `<Btch><MsgId>${FILE}</MsgId><NbOfTxs>2</NbOfTxs></Btch>`,
  }, BATCH],
  ["orders that do not add up, with a code of the rules", {
    BkTxCd: salary("RCDT"),
    NtryDtls: [COLLECTION, "NOTPROVIDED"].map((id) =>
      writeDetail({ Refs: refs(id), Amt: "7.00 EUR" })
    ).join(""),
  }, UNKNOWN],
  ["a payment that does not add up, with a code of the rules", {
    BkTxCd: salary("RCDT"),
    NtryDtls: writeDetail({ Amt: "7.00 EUR" }) +
      writeDetail({ RmtInf: text(REFERENCE), Amt: "7.00 EUR" }),
  }, UNKNOWN],
  ["the id of a payout of another amount, with a code of the rules", {
    ...charge(own("153")),
    AddtlNtryInf: OTHER_PAYOUT,
    Amt: "10.50 EUR",
  }, [["adjustment", "succeeded", null, 1050]]],
  ["the id of a collection in the text of a debit, with a code of the rules", {
    ...charge(own("153")),
    AddtlNtryInf: COLLECTION,
  }, SPENT],
  ...["NCHG", "NCOM", "CHG", "FEE", "NCHG+808", "NMSC+808", "808", "NMSC+808+9301"].map((
    code,
  ): Case => [`the bank's own code ${code} as a charge`, charge(own(code)), CHARGED]),
  ...["NTRF+166", "COMPENSATION", "NMSC+8080", "1808"].map((
    code,
  ): Case => [`the bank's own code ${code} as no charge`, charge(own(code)), SPENT]),
  ["a charge that ISO 20022 does not name", charge(iso("OTHR") + own("NCHG")), CHARGED],
  ["a commission without tax", charge(iso("COMT")), CHARGED],
  ["a code of ISO 20022 before that of the bank", charge(iso("SALA") + own("NCHG")), SPENT],
  [
    "the id of a payout in the text of the payee",
    {
      CdtDbtInd: "DBIT",
      ...detail({ RmtInf: text(`EREF+${PAYOUT.toUpperCase()} SVWZ+thanks`) }),
    },
    SENT,
  ],
  ["the id of a payout in the bank's text", {
    CdtDbtInd: "DBIT",
    AddtlNtryInf: `EREF: ${PAYOUT}`,
  }, SENT],
  ["the id of a payout without its dash", {
    CdtDbtInd: "DBIT",
    ...detail({ Refs: refs(PAYOUT.replace("-", "")) }),
  }, SENT],
  ["the id of a payout with spaces and over two lines", {
    CdtDbtInd: "DBIT",
    ...detail({ RmtInf: text(`tr ${PAYOUT.slice(3, 20)}`) + text(PAYOUT.slice(20)) }),
  }, SENT],
  [
    "the id of a payout in the text of a return",
    detail({ RmtInf: text(`RETURN ${PAYOUT}`), RtrInf: RETURNED }),
    BACK,
  ],
  ["the id of a payout of another amount in a text", {
    CdtDbtInd: "DBIT",
    Amt: "0.50 EUR",
    AddtlNtryInf: `FEE FOR ${PAYOUT}`,
  }, [["adjustment", "succeeded", null, 50]]],
  ["the id of a payout of another currency in a text", {
    CdtDbtInd: "DBIT",
    Amt: "10.00 USD",
    AddtlNtryInf: PAYOUT,
  }, SPENT],
  ["the ids of two payouts in a text", {
    CdtDbtInd: "DBIT",
    AddtlNtryInf: `${PAYOUT} ${OTHER_PAYOUT}`,
  }, SPENT],
  ["the ids of a payout and of its payment in a text", {
    CdtDbtInd: "DBIT",
    AddtlNtryInf: `${PAYOUT} ${COLLECTION}`,
  }, [["transfer", "succeeded", PAYOUT, 1000]]],
  ["the id of a payment in the text of a debit", {
    Amt: "7.00 EUR",
    CdtDbtInd: "DBIT",
    AddtlNtryInf: COLLECTION,
  }, [["adjustment", "succeeded", null, 700]]],
  ["a reference that is cut off at two lengths", {
    AddtlNtryInf: REFERENCE.slice(0, 14),
    ...detail({ RmtInf: text(CUT) }),
  }, PAID],
  ["the id of no order in a text", {
    CdtDbtInd: "DBIT",
    AddtlNtryInf: PAYOUT.replace("2", "9"),
  }, SPENT],
  ["a reference that is cut off", detail({ RmtInf: text(`Invoice ${CUT}`) }), PAID],
  [
    "a reference that is cut off at the end of a line",
    detail({
      RmtInf: text(`Invoice ${CUT.slice(0, 6)} ${REFERENCE.slice(6, 19)}`) + text("thanks"),
    }),
    PAID,
  ],
  ["a reference that is cut off too early", detail({ RmtInf: text(CUT.slice(0, 11)) }), UNKNOWN],
  ["a reference that is cut off within a line", detail({ RmtInf: text(`${CUT} - Mr`) }), UNKNOWN],
  [
    "the beginning of the reference of no payment that waits",
    detail({
      RmtInf: text(`${REFERENCE.slice(0, 14)}000`),
    }),
    UNKNOWN,
  ],
  ["a reference with a wrong end", detail({ RmtInf: text(`${REFERENCE.slice(0, 19)}?`) }), PAID],
  [
    "a reference that is cut off in a return",
    { CdtDbtInd: "DBIT", ...detail({ RmtInf: text(CUT), RtrInf: RETURNED }) },
    SPENT,
  ],
  ...[
    { Refs: `<TxId>${REFERENCE}</TxId>` },
    { Refs: `<Prtry><Tp>A</Tp><Ref>${REFERENCE}</Ref></Prtry>` },
    { RltdRmtInf: `<RmtId>${REFERENCE}</RmtId>` },
    { RmtInf: `<Strd><CdtrRefInf><CdtrRef>${REFERENCE}</CdtrRef></CdtrRefInf></Strd>` },
  ].map((
    members,
  ): Case => [
    `a reference in ${Object.values(members).join().match(/<(\w+)/)![1]}`,
    detail(members),
    PAID,
  ]),
  [
    "a charge with the id of a payout",
    {
      CdtDbtInd: "DBIT",
      BkTxCd: "<Domn><Cd>PMNT</Cd><Fmly><Cd>ICDT</Cd><SubFmlyCd>CHRG</SubFmlyCd></Fmly></Domn>",
      ...detail({ Refs: refs(PAYOUT) }),
    },
    [["account_fee", "succeeded", null, 1000]],
  ],
  ["a credit with the id of a payout", detail({ Refs: refs(PAYOUT) }), BACK],
  [
    "a credit with the id of a payout and the reference of a payment",
    detail({ Refs: refs(PAYOUT), RmtInf: text(REFERENCE) }),
    PAID,
  ],
  [
    "a return with the reference of a payment",
    detail({ Refs: refs(PAYOUT), RmtInf: text(REFERENCE), RtrInf: RETURNED }),
    BACK,
  ],
  [
    "a reversal with the reference of a payment",
    {
      CdtDbtInd: "CRDT",
      RvslInd: "true",
      ...detail({ Refs: refs(PAYOUT), RmtInf: text(REFERENCE) }),
    },
    BACK,
  ],
  ["a reference in the bank's text of a detail", detail({ AddtlTxInf: `SEPA ${REFERENCE}` }), PAID],
  ["a reference in the bank's text of an entry", { AddtlNtryInf: `GUTSCHRIFT ${REFERENCE}` }, PAID],
  [
    "a reference in the bank's text of an entry with a detail",
    { ...detail({ RmtInf: text("thanks") }), AddtlNtryInf: REFERENCE },
    PAID,
  ],
  [
    "a reference of the payer before that in the bank's text",
    {
      ...detail({ RmtInf: text(REFERENCE) }),
      AddtlNtryInf: creditorReference("pay_01k8zq3n5v8x1y2z3a4b000009"),
    },
    PAID,
  ],
  [
    "a reference in the bank's text of a batch",
    { NtryDtls: "<Btch><NbOfTxs>2</NbOfTxs></Btch>", AddtlNtryInf: REFERENCE },
    UNKNOWN,
  ],
  [
    "a reference in a text that the bank has copied to each detail",
    {
      NtryDtls: ["4.00 EUR", "6.00 EUR"].map((Amt) => writeDetail({ Amt, AddtlTxInf: REFERENCE }))
        .join(""),
      AddtlNtryInf: REFERENCE,
    },
    [["adjustment", "returned", null, 400], ["adjustment", "returned", null, 600]],
  ],
  [
    "a returned collection with a charge that is not told",
    debit({ AmtDtls: amounts("7.00", "10.50") }),
    RETURN_WITH_CHARGE,
  ],
  [
    "a returned collection below the amount of its entry",
    debit({ Amt: "7.00 EUR" }),
    RETURN_WITH_CHARGE,
  ],
  [
    "a returned collection with a charge that is told",
    debit({
      AmtDtls: amounts("7.00", "10.50"),
      Chrgs: '<Rcrd><Amt Ccy="EUR">3.50</Amt></Rcrd>',
    }),
    RETURN_WITH_CHARGE,
  ],
  [
    "several returned collections with charges that are not told",
    {
      Amt: "21.00 EUR",
      CdtDbtInd: "DBIT",
      NtryDtls: writeDetail({
        Refs: refs(COLLECTION),
        Amt: null,
        AmtDtls: amounts("7.00", "10.50"),
        RtrInf: RETURNED,
      }).repeat(2),
    },
    [
      RETURN_WITH_CHARGE[0]!,
      RETURN_WITH_CHARGE[0]!,
      ["account_fee", "succeeded", null, 700],
    ],
  ],
  [
    "a payout above the amount that was instructed",
    {
      CdtDbtInd: "DBIT",
      ...detail({ Refs: refs(PAYOUT), Amt: null, AmtDtls: amounts("7.00", "10.00") }),
    },
    [["transfer", "succeeded", PAYOUT, 1000]],
  ],
  [
    "a batch by the id of its file",
    { NtryDtls: `<Btch><MsgId>${FILE}</MsgId><NbOfTxs>2</NbOfTxs></Btch>` },
    BATCH,
  ],
  [
    "a batch by the bank's id and that of its file",
    {
      NtryDtls: `<Btch><MsgId>${FILE}</MsgId><PmtInfId>BANK1</PmtInfId><NbOfTxs>2</NbOfTxs></Btch>`,
    },
    BATCH,
  ],
  [
    "a batch by ids of the bank",
    { NtryDtls: "<Btch><MsgId>BANK1</MsgId><NbOfTxs>2</NbOfTxs></Btch>" },
    UNKNOWN,
  ],
];

for (const [name, members, booked] of CASES) {
  Deno.test(`bookEntry() books ${name}`, async () => {
    const file = writeFile([{ entries: writeEntry(members) }], { kind: "054" });
    const [{ details, ...entry }] = await readEntries(file) as [
      Awaited<ReturnType<typeof readEntries>>[number],
    ];
    const parts = await partsOf(entry, details);
    const found = new Map(
      parts.flatMap(({ beginnings }) => beginnings).map((beginning) => [
        beginning,
        FOUND.filter(({ reference }) => reference.startsWith(beginning))
          .map((each) => ({ beginning, ...each })),
      ]),
    );
    const { provider_events, batch } = bookEntry(
      { id: "pac_1", return_charge_minor: 1500, own_business: RULES },
      entry,
      { parts, batch: batchOf(entry, details) },
      found,
    );
    const events = provider_events.map((event) => [
      event.op,
      event.state,
      event.provider_reference,
      event.amount_minor,
    ]);
    assert.deepEqual([...events, ...batch === null ? [] : [batch]], booked);
  });
}
