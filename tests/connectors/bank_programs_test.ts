/**
 * Bank files at programs of others: the files keep the schemas, and two programs read the same
 * orders from them as were written.
 */

import assert from "node:assert/strict";
import type {
  BankParty,
  CollectionOrder,
  OwnBankAccount,
  PayoutOrder,
  PostalAddress,
  Remittance,
} from "../../shared/core/bank_order.ts";
import { formatDecimal } from "../../shared/core/currency.ts";
import { toSepaText } from "../../shared/core/sepa_text.ts";
import { MANDATE_SEQUENCES } from "../../shared/core/vocabulary.ts";
import { idOfBankIdentifier } from "../../shared/connectors/bank/bank_identifier.ts";
import { writeCollections } from "../../shared/connectors/bank/write_collections.ts";
import type { BankFile } from "../../shared/connectors/bank/write_file.ts";
import { writePayouts } from "../../shared/connectors/bank/write_payouts.ts";
import { writeRecall } from "../../shared/connectors/bank/write_recall.ts";
import {
  bankCaseId,
  COLLECTION,
  LONDON,
  OWN_ACCOUNT,
  SEPA_PAYOUT,
  SWIFT_PAYOUT,
} from "../support/connectors/bank_case.ts";
import {
  type CheckedFile,
  no_bank_programs,
  readWithPrograms,
  type Tree,
} from "../support/bank/bank_programs.ts";

const created_at = new Date("2026-11-27T10:00:00Z");
const FRENCH: OwnBankAccount = {
  ...OWN_ACCOUNT,
  iban: "FR1420041010050500013M02606",
  bic: null,
  address: null,
};

/** An order as a program has read it, or as it was written. */
interface ReadOrder {
  id: string | null;
  amount: unknown;
  /** Name, IBAN, BIC and address of the other side. */
  party: unknown[];
  remittance: unknown;
  /** Day, sequence, speed, charges and UETR, or the mandate. */
  terms: unknown[];
}

Deno.test({
  name: "bank files keep their schemas and are read by other programs",
  ignore: no_bank_programs,
  async fn() {
    const cases = casesOf();
    const readings = await readWithPrograms(cases.map(({ file, name }) => [name, file.bytes]));
    for (const { file, name, account, expected } of cases) {
      const { mock_bank, pyiso20022 } = readings[name]!;
      assert.deepEqual(mock_bank?.problems, []);
      assert.deepEqual(mock_bank.tree, pyiso20022);
      const message = pyiso20022!;
      const batches = message["PmtInf"] as Tree[];
      assert.deepEqual(batches.map((batch) => batch["PmtInfId"]), file.batches.map(({ id }) => id));
      const sum = formatDecimal(file.sum_minor, account.currency);
      const { NbOfTxs, CtrlSum } = message["GrpHdr"] as Tree;
      assert.deepEqual([NbOfTxs, CtrlSum], [String(file.payments), sum]);
      assert.deepEqual(batches.flatMap(readBatch).toSorted(byId), expected.toSorted(byId));
    }
  },
});

const NAMES = [
  "Jürgen Groß",
  "Łukasz & Zoë <Sons>",
  "Γιώργος Θεοδωράκης",
  'Ђорђе "Djole" Ђокић',
  "O’Brien / Partners; Ltd",
  "a".repeat(70),
];
const { payee } = SEPA_PAYOUT;
const NO_LINES = { ...LONDON, line1: null, line2: null, postal_code: null };
const LONG = { text: "Ä/?:().,'+ –<&> ".repeat(8).slice(0, 126) };

/** Changes of a sound order. */
const SEPA: Partial<PayoutOrder>[] = [
  { id: bankCaseId("re", 1), remittance: null, amount_minor: 1, execute_on: "2026-12-24" },
  { remittance: { reference: "RF18539007547034" }, amount_minor: 99_999_999_999 },
  { remittance: LONG, payee: { ...payee, iban: "GB82WEST12345698765432", address: LONDON } },
  ...NAMES.map((name) => ({ payee: { ...payee, name, bic: "BNPAFRPPXXX" } })),
];
const SWIFT: Partial<PayoutOrder>[] = [
  { remittance: LONG, charges: "DEBT" },
  { remittance: null, charges: "CRED", payee: { ...SWIFT_PAYOUT.payee, bic: "NWBKGB2L" } },
  ...NAMES.map((name) => ({ payee: { ...SWIFT_PAYOUT.payee, name, address: NO_LINES } })),
];
const COLLECTED: Partial<CollectionOrder>[] = [
  { remittance: null, payer: { ...COLLECTION.payer, bic: null }, due_on: "2026-12-14" },
  { remittance: LONG, payer: { ...SWIFT_PAYOUT.payee, address: LONDON } },
  ...NAMES.map((name) => ({ payer: { ...COLLECTION.payer, name } })),
  ...MANDATE_SEQUENCES.map((sequence) => ({ mandate: { ...COLLECTION.mandate, sequence } })),
];

interface Case {
  file: BankFile;
  name: `${string}.xml`;
  account: OwnBankAccount;
  expected: ReadOrder[];
}

function casesOf(): Case[] {
  const cases: Case[] = [];
  const add = (file: BankFile, account: OwnBankAccount, expected: ReadOrder[]) =>
    cases.push({ file, name: `${cases.length}.xml`, account, expected });
  const input = (account: OwnBankAccount) => ({
    ...{ id: bankCaseId("bf", cases.length), created_at, account },
  });
  const addPayouts = (
    account: OwnBankAccount,
    order: PayoutOrder,
    changes: Partial<PayoutOrder>[],
  ) => {
    const orders = [{}, ...changes].map((change, at) => ({
      ...{ ...order, id: bankCaseId("tr", at), ...change },
    })) as [PayoutOrder, ...PayoutOrder[]];
    add(writePayouts(input(account), orders), account, orders.map(writtenPayout));
  };
  for (const account of [OWN_ACCOUNT, FRENCH]) {
    for (const speed of ["standard", "instant"] as const) {
      addPayouts(account, { ...SEPA_PAYOUT, speed }, SEPA);
    }
    const orders = [{}, ...COLLECTED].map((change, at) => ({
      ...{ ...COLLECTION, id: bankCaseId("pay", at), ...change },
    })) as [CollectionOrder, ...CollectionOrder[]];
    add(writeCollections(input(account), orders), account, orders.map(writtenCollection));
  }
  for (const currency of ["USD", "JPY", "BHD"]) {
    addPayouts({ ...OWN_ACCOUNT, currency }, { ...SWIFT_PAYOUT, currency }, SWIFT);
  }
  return cases;
}

function writtenPayout(order: PayoutOrder): ReadOrder {
  const { rail, speed, payee } = order;
  const bic = payee.bic ?? (rail === "sepa" ? null : "NOTPROVIDED");
  return {
    ...writtenOrder(order, { ...payee, bic }),
    terms: [
      order.execute_on,
      rail === "sepa" ? "SEPA" : "NURG",
      speed === "instant" ? "INST" : null,
      order.charges,
      order.uetr,
    ],
  };
}

const SEQUENCES = { first: "FRST", recurring: "RCUR", final: "FNAL", one_off: "OOFF" };

function writtenCollection(order: CollectionOrder): ReadOrder {
  const { mandate, payer, due_on } = order;
  return {
    ...writtenOrder(order, { ...payer, bic: payer.bic ?? "NOTPROVIDED" }),
    terms: [
      due_on,
      SEQUENCES[mandate.sequence],
      mandate.id,
      mandate.signed_on,
      "DE98ZZZ09999999999",
    ],
  };
}

function writtenOrder(
  order: PayoutOrder | CollectionOrder,
  { name, iban, bic, address }: BankParty,
): Omit<ReadOrder, "terms"> {
  const { id, amount_minor, currency, remittance } = order;
  return {
    id,
    amount: { value: formatDecimal(amount_minor, currency), Ccy: currency },
    party: [toSepaText(name), iban, bic, address && writtenAddress(address)],
    remittance: remittance && writtenRemittance(remittance),
  };
}

function writtenAddress({ line1, line2, city, postal_code, country }: PostalAddress): unknown {
  const lines = [line1, line2].filter((line) => line !== null);
  return {
    ...(postal_code !== null && { PstCd: postal_code }),
    TwnNm: toSepaText(city),
    Ctry: country,
    ...(lines.length > 0 && { AdrLine: lines.map(toSepaText) }),
  };
}

function writtenRemittance(remittance: Remittance): unknown {
  return "text" in remittance ? toSepaText(remittance.text) : remittance.reference;
}

/** Returns the orders of a batch as a program has read them. */
function readBatch(batch: Tree): ReadOrder[] {
  const is_payout = batch["CdtTrfTxInf"] !== undefined;
  const orders = (batch["CdtTrfTxInf"] ?? batch["DrctDbtTxInf"]) as Tree[];
  const [side, date] = is_payout ? ["Cdtr", "ReqdExctnDt.Dt"] : ["Dbtr", "ReqdColltnDt"];
  return orders.map((order) => ({
    id: idOfBankIdentifier(String(at(order, "PmtId.EndToEndId"))),
    amount: at(order, is_payout ? "Amt.InstdAmt" : "InstdAmt"),
    party: [
      at(order, `${side}.Nm`),
      at(order, `${side}Acct.Id.IBAN`),
      at(order, `${side}Agt.FinInstnId.BICFI`) ?? at(order, `${side}Agt.FinInstnId.Othr.Id`),
      at(order, `${side}.PstlAdr`),
    ],
    remittance: at(order, "RmtInf.Ustrd.0") ?? at(order, "RmtInf.Strd.0.CdtrRefInf.Ref"),
    terms: is_payout
      ? [
        at(batch, date!),
        at(batch, "PmtTpInf.SvcLvl.0.Cd"),
        at(batch, "PmtTpInf.LclInstrm.Cd"),
        at(batch, "ChrgBr"),
        at(order, "PmtId.UETR"),
      ]
      : [
        at(batch, date!),
        at(batch, "PmtTpInf.SeqTp"),
        at(order, "DrctDbtTx.MndtRltdInf.MndtId"),
        at(order, "DrctDbtTx.MndtRltdInf.DtOfSgntr"),
        at(batch, "CdtrSchmeId.Id.PrvtId.Othr.0.Id"),
      ],
  }));
}

/** Returns the member at a path; null if there is none. */
function at(tree: Tree, path: string): unknown {
  let value: unknown = tree;
  for (const key of path.split(".")) {
    value = (value as Record<string, unknown> | null)?.[key] ?? null;
  }
  return value;
}

function byId(a: ReadOrder, b: ReadOrder): number {
  return a.id! < b.id! ? -1 : 1;
}

Deno.test({
  name: "writeRecall() writes messages of both versions that pyiso20022 reads",
  ignore: no_bank_programs,
  async fn() {
    const order = { amount_minor: 1999, currency: "EUR", reason: "DUPL" as const };
    const recalled = { id: bankCaseId("bf", 1), kind: "collections" as const, created_at };
    const files = [OWN_ACCOUNT, FRENCH].map((account, number): CheckedFile => {
      const file = writeRecall({ id: bankCaseId("bf", 2), created_at, account }, recalled, [
        { ...order, id: bankCaseId("pay", 1), batch_id: "batch-2" },
        { ...order, id: bankCaseId("pay", 2), batch_id: "batch-1" },
      ]);
      return [`${number}.xml`, file.bytes];
    });
    for (const { pyiso20022 } of Object.values(await readWithPrograms(files))) {
      assert.deepEqual(pyiso20022!["CtrlData"], { NbOfTxs: "2", CtrlSum: "39.98" });
      const [underlying] = pyiso20022!["Undrlyg"] as Tree[];
      const batches = underlying!["OrgnlPmtInfAndCxl"] as Tree[];
      assert.deepEqual(batches.map((batch) => at(batch, "OrgnlPmtInfId")), ["batch-2", "batch-1"]);
      for (const [number, batch] of batches.entries()) {
        assert.equal(at(batch, "OrgnlGrpInf.OrgnlMsgNmId"), "pain.008.001.08");
        const id = String(at(batch, "TxInf.0.OrgnlEndToEndId"));
        assert.equal(idOfBankIdentifier(id), bankCaseId("pay", number + 1));
        assert.equal(at(batch, "TxInf.0.CxlRsnInf.0.Rsn.Cd"), "DUPL");
      }
    }
  },
});
