/** How a bank's entries are booked: as payments, payouts that come back, batches and charges. */

import assert from "node:assert/strict";
import { batchOf, bookEntry } from "../../shared/connectors/bank/booked_entries.ts";
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
const ORDERS = [
  { id: "pay_01k8zq3n5v8x1y2z3a4b000005", amount_minor: 300, is_open: true },
  { id: "pay_01k8zq3n5v8x1y2z3a4b000006", amount_minor: 700, is_open: true },
];

const refs = (id: string) => `<EndToEndId>${id}</EndToEndId>`;
const text = (text: string) => `<Ustrd>${text}</Ustrd>`;
const amounts = (InstdAmt: string, TxAmt: string) =>
  `<InstdAmt><Amt Ccy="EUR">${InstdAmt}</Amt></InstdAmt>` +
  `<TxAmt><Amt Ccy="EUR">${TxAmt}</Amt></TxAmt>`;
const RETURNED = "<Rsn><Cd>AC04</Cd></Rsn>";
const PAID = [["authorize", "succeeded", REFERENCE, 1000]];
const BACK = [["transfer", "returned", PAYOUT, 1000]];
const UNKNOWN = [["adjustment", "returned", null, 1000]];
const RETURN_WITH_CHARGE = [
  ["authorize", "returned", COLLECTION, 700],
  ["account_fee", "succeeded", null, 350],
];
const BATCH = ORDERS.map(({ id, amount_minor }) => [
  "authorize",
  "succeeded",
  id.replace("_", "-"),
  amount_minor,
]);

type Case = [name: string, members: Record<string, string | null>, booked: unknown[][]];
const detail = (members: Record<string, string | null>) => ({ NtryDtls: writeDetail(members) });
const debit = (members: Record<string, string | null>) => ({
  Amt: "10.50 EUR",
  CdtDbtInd: "DBIT",
  ...detail({ Refs: refs(COLLECTION), Amt: null, RtrInf: RETURNED, ...members }),
});

const CASES: Case[] = [
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
    const batch_id = batchOf(entry, details);
    const { provider_events } = bookEntry("pac_1", entry, details, batch_id === FILE ? ORDERS : []);
    const events = provider_events.map((event) => [
      event.op,
      event.state,
      event.provider_reference,
      event.amount_minor,
    ]);
    assert.deepEqual(events, booked);
  });
}
