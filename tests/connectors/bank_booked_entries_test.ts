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

const RULES = readOwnBusiness(
  "name:City Rent; iban:FR1420041010050500013M02606; code:PMNT-RCDT-SALA; code:PMNT-LDAS; code:153; ",
)!;
const FRENCH = "FR1420041010050500013M02606";

const SENT = [["transfer", "succeeded", PAYOUT, 1000]];
const SPENT = [["adjustment", "succeeded", null, 1000]];
const CHARGED = [["account_fee", "succeeded", null, 1000]];
const PAID = [["authorize", "succeeded", REFERENCE, 1000]];
const BACK = [["transfer", "returned", PAYOUT, 1000]];
const UNKNOWN = [["adjustment", "returned", null, 1000]];
const OWN_OUT = [["payout", "succeeded", null, 1000]];
const OWN_IN = [["payout", "returned", null, 1000]];
const RETURNED = ["authorize", "returned", COLLECTION, 700];
const RETURN_WITH_CHARGE = [RETURNED, ["account_fee", "succeeded", null, 350]];
const BATCH = [["adjustment", "returned", null, 1000], { id: FILE, sum_minor: 1000 }];

type Members = Record<string, string | null>;

/** An entry: a credit of 10.00 EUR, and its detail if one of the members is about it. */
interface Written {
  is_out?: boolean;
  amount?: string;
  /** The bank's text. */
  said?: string;
  /** Family and sub-family of ISO 20022, and the bank's own code. */
  iso?: string;
  own?: string;
  /** Further members. */
  entry?: Members;
  /** `EndToEndId` */
  id?: string;
  text?: string;
  /** Name and IBAN of the other side. */
  party?: [name: string, iban?: string];
  is_back?: boolean;
  detail?: Members;
}

function membersOf({ is_out = false, amount, said, iso, own, entry, ...of }: Written): Members {
  const { id, text, party: [name, iban = "NL91ABNA0417164300"] = [], is_back, detail } = of;
  const role = is_out ? "Cdtr" : "Dbtr";
  const [family, sub_family] = iso?.split(" ") ?? [];
  const codes = [
    iso &&
    `<Domn><Cd>PMNT</Cd><Fmly><Cd>${family}</Cd><SubFmlyCd>${sub_family}</SubFmlyCd></Fmly>` +
      "</Domn>",
    own && `<Prtry><Cd>${own}</Cd></Prtry>`,
  ].filter(Boolean).join("");
  return {
    ...{ CdtDbtInd: is_out ? "DBIT" : "CRDT", Amt: `${amount ?? "10.00"} EUR` },
    ...{ AddtlNtryInf: said ?? null, BkTxCd: codes || null },
    NtryDtls: Object.keys(of).length === 0 ? null : writeDetail({
      Refs: id ? `<EndToEndId>${id}</EndToEndId>` : null,
      RltdPties: name
        ? `<${role}><Nm>${name}</Nm></${role}><${role}Acct><Id><IBAN>${iban}</IBAN></Id></${role}Acct>`
        : null,
      RmtInf: text ? `<Ustrd>${text}</Ustrd>` : null,
      RtrInf: is_back ? "<Rsn><Cd>AC04</Cd></Rsn>" : null,
      ...detail,
    }),
    ...entry,
  };
}

/** A detail whose instructed amount is another one than that of the transaction. */
const amounts = (instructed: string, of_transaction: string) => ({
  Amt: null,
  AmtDtls: `<InstdAmt><Amt Ccy="EUR">${instructed}</Amt></InstdAmt>` +
    `<TxAmt><Amt Ccy="EUR">${of_transaction}</Amt></TxAmt>`,
});
const batch = (ids: string) => ({ NtryDtls: `<Btch>${ids}<NbOfTxs>2</NbOfTxs></Btch>` });
const TOLD_CHARGE = { Chrgs: '<Rcrd><Amt Ccy="EUR">3.50</Amt></Rcrd>' };
const TAKEN_CHARGE = { Chrgs: '<TtlChrgsAndTaxAmt Ccy="EUR">0.40</TtlChrgsAndTaxAmt>' };
const returned = (further: Written) => ({
  is_out: true,
  id: COLLECTION,
  is_back: true,
  ...further,
});
const is_out = true;

type Case = [name: string, entry: Written, booked: unknown[]];

const CASES: Case[] = [
  ["a payee of the rules", { is_out, party: ["CITY RENT Gmbh"] }, OWN_OUT],
  ["another payee", { is_out, party: ["The City Rent"] }, SPENT],
  ["a payer with the name of a payee", { party: ["City Rent"] }, UNKNOWN],
  ["a payer by an IBAN of the rules", { party: ["X", FRENCH] }, OWN_IN],
  ["a code of the rules", { iso: "RCDT SALA" }, OWN_IN],
  ["the beginning of a code of the rules", { iso: "LDAS CSLN" }, OWN_IN],
  ["a code of another family", { iso: "ICDT SALA" }, UNKNOWN],
  ["a bank's own code of the rules", { is_out, own: "NTRF+153" }, OWN_OUT],
  ["a bank's own code with more digits", { is_out, own: "NTRF+1530" }, SPENT],
  ["a payment by an IBAN of the rules", { party: ["X", FRENCH], text: REFERENCE }, PAID],
  ["a payout to a payee of the rules", { is_out, id: PAYOUT, party: ["City Rent"] }, SENT],
  ["a return by an IBAN of the rules", { party: ["X", FRENCH], is_back: true }, UNKNOWN],
  ["a batch with a code of the rules", {
    ...{ iso: "RCDT SALA", entry: batch(`<MsgId>${FILE}</MsgId>`) },
  }, BATCH],
  ["orders that do not add up, with a code of the rules", {
    iso: "RCDT SALA",
    entry: { NtryDtls: partsOf7({ Refs: `<EndToEndId>${COLLECTION}</EndToEndId>` }, {}) },
  }, UNKNOWN],
  ["a payment that does not add up, with a code of the rules", {
    ...{ iso: "RCDT SALA", entry: { NtryDtls: partsOf7({}, { RmtInf: REFERENCE }) } },
  }, UNKNOWN],
  [
    "the id of a payout of another amount, with a code of the rules",
    { is_out, own: "153", said: OTHER_PAYOUT, amount: "10.50" },
    [["adjustment", "succeeded", null, 1050]],
  ],
  [
    "the id of a collection in the text of a debit, with a code of the rules",
    { is_out, own: "153", said: COLLECTION },
    SPENT,
  ],
  ...["NCHG", "NCOM", "CHG", "FEE", "NCHG+808", "NMSC+808", "808", "NMSC+808+9301"].map((
    own,
  ): Case => [`the bank's own code ${own} as a charge`, { is_out, own }, CHARGED]),
  ...["NTRF+166", "COMPENSATION", "NMSC+8080", "1808"].map((
    own,
  ): Case => [`the bank's own code ${own} as no charge`, { is_out, own }, SPENT]),
  ["a charge that ISO 20022 does not name", { is_out, iso: "MDOP OTHR", own: "NCHG" }, CHARGED],
  ["a commission without tax", { is_out, iso: "MDOP COMT" }, CHARGED],
  ["a code of ISO 20022 before that of the bank", { is_out, iso: "MDOP SALA", own: "NCHG" }, SPENT],
  [
    "the id of a payout in the text of the payee",
    { is_out, text: `EREF+${PAYOUT.toUpperCase()} SVWZ+thanks` },
    SENT,
  ],
  ["the id of a payout in the bank's text", { is_out, said: `EREF: ${PAYOUT}` }, SENT],
  ["the id of a payout without its dash", { is_out, id: PAYOUT.replace("-", "") }, SENT],
  ["the id of a payout with spaces and over two lines", {
    is_out,
    text: `tr ${PAYOUT.slice(3, 20)}</Ustrd><Ustrd>${PAYOUT.slice(20)}`,
  }, SENT],
  ["the id of a payout in the text of a return", { text: `RETURN ${PAYOUT}`, is_back: true }, BACK],
  [
    "the id of a payout of another amount in a text",
    { is_out, amount: "0.50", said: `FEE FOR ${PAYOUT}` },
    [["adjustment", "succeeded", null, 50]],
  ],
  [
    "the id of a payout of another currency in a text",
    { is_out, said: PAYOUT, entry: { Amt: "10.00 USD" } },
    SPENT,
  ],
  ["the ids of two payouts in a text", { is_out, said: `${PAYOUT} ${OTHER_PAYOUT}` }, SPENT],
  ["ids of a payout and its payment in a text", { is_out, said: `${PAYOUT} ${COLLECTION}` }, SENT],
  [
    "the id of a payment in the text of a debit",
    { is_out, amount: "7.00", said: COLLECTION },
    [["adjustment", "succeeded", null, 700]],
  ],
  ["a reference that is cut off at two lengths", { said: REFERENCE.slice(0, 14), text: CUT }, PAID],
  ["the id of no order in a text", { is_out, said: PAYOUT.replace("2", "9") }, SPENT],
  ["a reference that is cut off", { text: `Invoice ${CUT}` }, PAID],
  ["a reference that is cut off at the end of a line", {
    text: `Invoice ${CUT.slice(0, 6)} ${REFERENCE.slice(6, 19)}</Ustrd><Ustrd>thanks`,
  }, PAID],
  ["a reference that is cut off too early", { text: CUT.slice(0, 11) }, UNKNOWN],
  ["a reference that is cut off within a line", { text: `${CUT} - Mr` }, UNKNOWN],
  ["the beginning of a reference that no waiting payment has", {
    text: `${REFERENCE.slice(0, 14)}000`,
  }, UNKNOWN],
  ["a reference with a wrong end", { text: `${REFERENCE.slice(0, 19)}?` }, PAID],
  ["a reference that is cut off in a return", { is_out, text: CUT, is_back: true }, SPENT],
  ["a reference in TxId", { detail: { Refs: `<TxId>${REFERENCE}</TxId>` } }, PAID],
  [
    "a reference in Prtry",
    { detail: { Refs: `<Prtry><Tp>A</Tp><Ref>${REFERENCE}</Ref></Prtry>` } },
    PAID,
  ],
  ["a reference in RmtId", { detail: { RltdRmtInf: `<RmtId>${REFERENCE}</RmtId>` } }, PAID],
  ["a reference in Strd", {
    detail: { RmtInf: `<Strd><CdtrRefInf><CdtrRef>${REFERENCE}</CdtrRef></CdtrRefInf></Strd>` },
  }, PAID],
  ["a charge with the id of a payout", { is_out, iso: "ICDT CHRG", id: PAYOUT }, CHARGED],
  ["a credit with the id of a payout", { id: PAYOUT }, BACK],
  ["a credit with ids of a payout and a payment", { id: PAYOUT, text: REFERENCE }, PAID],
  ["a return with a payment's reference", { id: PAYOUT, text: REFERENCE, is_back: true }, BACK],
  [
    "a reversal with the reference of a payment",
    { id: PAYOUT, text: REFERENCE, entry: { RvslInd: "true" } },
    BACK,
  ],
  ["a reference in the text of a detail", { detail: { AddtlTxInf: `SEPA ${REFERENCE}` } }, PAID],
  ["a reference in the bank's text of an entry", { said: `GUTSCHRIFT ${REFERENCE}` }, PAID],
  ["a reference in the text of an entry with a detail", { text: "thanks", said: REFERENCE }, PAID],
  [
    "a reference of the payer before that in the bank's text",
    { text: REFERENCE, said: creditorReference("pay_01k8zq3n5v8x1y2z3a4b000009") },
    PAID,
  ],
  ["a reference in the bank's text of a batch", { said: REFERENCE, entry: batch("") }, UNKNOWN],
  [
    "a reference in a text that the bank has copied to each detail",
    {
      said: REFERENCE,
      entry: {
        NtryDtls: ["4.00 EUR", "6.00 EUR"].map((Amt) => writeDetail({ Amt, AddtlTxInf: REFERENCE }))
          .join(""),
      },
    },
    [["adjustment", "returned", null, 400], ["adjustment", "returned", null, 600]],
  ],
  [
    "a returned collection with a charge that is not told",
    returned({ amount: "10.50", detail: amounts("7.00", "10.50") }),
    RETURN_WITH_CHARGE,
  ],
  [
    "a returned collection below the amount of its entry",
    returned({ amount: "10.50", detail: { Amt: "7.00 EUR" } }),
    RETURN_WITH_CHARGE,
  ],
  [
    "a returned collection with a charge that is told",
    returned({ amount: "10.50", detail: { ...amounts("7.00", "10.50"), ...TOLD_CHARGE } }),
    RETURN_WITH_CHARGE,
  ],
  [
    "several returned collections with charges that are not told",
    {
      ...{ is_out, amount: "21.00" },
      entry: {
        NtryDtls: membersOf(returned({ detail: amounts("7.00", "10.50") })).NtryDtls!.repeat(2),
      },
    },
    [RETURNED, RETURNED, ["account_fee", "succeeded", null, 700]],
  ],
  [
    "a payout above the amount that was instructed",
    { is_out, id: PAYOUT, detail: amounts("7.00", "10.00") },
    SENT,
  ],
  ["a batch by the id of its file", { entry: batch(`<MsgId>${FILE}</MsgId>`) }, BATCH],
  [
    "a batch by the bank's id and that of its file",
    { entry: batch(`<MsgId>${FILE}</MsgId><PmtInfId>BANK1</PmtInfId>`) },
    BATCH,
  ],
  [
    "a batch by the id of its only detail",
    { detail: { Refs: `<PmtInfId>${FILE}-1</PmtInfId>` } },
    [...UNKNOWN, { id: `${FILE}-1`, sum_minor: 1000 }],
  ],
  [
    "a batch without the charge that the bank took out of it",
    { entry: { ...batch(`<MsgId>${FILE}</MsgId>`), ...TAKEN_CHARGE } },
    [...UNKNOWN, { id: FILE, sum_minor: 1040 }],
  ],
  ["a batch by ids of the bank", { entry: batch("<MsgId>BANK1</MsgId>") }, UNKNOWN],
];

/** Two details of 7.00 EUR, which are more than their entry. */
function partsOf7(...details: Members[]): string {
  return details.map(({ RmtInf, ...members }) =>
    writeDetail({
      ...{ Refs: "<EndToEndId>NOTPROVIDED</EndToEndId>", Amt: "7.00 EUR", ...members },
      RmtInf: RmtInf ? `<Ustrd>${RmtInf}</Ustrd>` : null,
    })
  ).join("");
}

for (const [name, written, booked] of CASES) {
  Deno.test(`bookEntry() books ${name}`, async () => {
    const file = writeFile([{ entries: writeEntry(membersOf(written)) }], { kind: "054" });
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
