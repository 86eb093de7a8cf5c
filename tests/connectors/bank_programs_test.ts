/**
 * Bank files at programs of others: the files keep the schemas whatever texts the orders have, and
 * two programs read the same from them. bank_write_test.ts has the bytes of each field.
 */

import assert from "node:assert/strict";
import type { CollectionOrder, OwnBankAccount, PayoutOrder } from "../../shared/core/bank_order.ts";
import { formatDecimal } from "../../shared/core/currency.ts";
import { MANDATE_SEQUENCES } from "../../shared/core/vocabulary.ts";
import { idOfBankIdentifier } from "../../shared/connectors/bank/bank_identifier.ts";
import { writeCollections } from "../../shared/connectors/bank/write_collections.ts";
import type { BankFile, FileInput } from "../../shared/connectors/bank/write_file.ts";
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

Deno.test({
  name: "bank files keep their schemas and are read by other programs",
  ignore: no_bank_programs,
  async fn() {
    const cases = casesOf();
    const readings = await readWithPrograms(cases.map(({ file, name }) => [name, file.bytes]));
    for (const { file, name, currency } of cases) {
      const { mock_bank, pyiso20022 } = readings[name]!;
      assert.deepEqual(mock_bank?.problems, []);
      assert.deepEqual(mock_bank.tree, pyiso20022);
      const message = pyiso20022!;
      const batches = message["PmtInf"] as Tree[];
      assert.deepEqual(batches.map((batch) => batch["PmtInfId"]), file.batches.map(({ id }) => id));
      const sum = formatDecimal(file.sum_minor, currency);
      const { NbOfTxs, CtrlSum } = message["GrpHdr"] as Tree;
      assert.deepEqual([NbOfTxs, CtrlSum], [String(file.payments), sum]);
      const orders = batches.flatMap((batch) =>
        (batch["CdtTrfTxInf"] ?? batch["DrctDbtTxInf"]) as Tree[]
      );
      const ids = orders.map((order) => idOfBankIdentifier(String(at(order, "PmtId.EndToEndId"))));
      assert.deepEqual(ids, file.batches.flatMap(({ order_ids }) => order_ids));
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

/** Files of each kind, with the currency of their accounts. */
function casesOf(): { file: BankFile; name: `${string}.xml`; currency: string }[] {
  const cases: ReturnType<typeof casesOf> = [];
  const add = <T extends PayoutOrder | CollectionOrder>(
    account: OwnBankAccount,
    write: (input: FileInput, orders: [T, ...T[]]) => BankFile,
    order: T,
    changes: Partial<T>[],
  ) => {
    const [prefix] = order.id.split("_") as [string];
    const input = { id: bankCaseId("bf", cases.length), created_at, account };
    const orders = [{}, ...changes].map((change, at) => ({
      ...{ ...order, id: bankCaseId(prefix, at), ...change },
    })) as [T, ...T[]];
    const file = write(input, orders);
    cases.push({ file, name: `${cases.length}.xml`, currency: account.currency });
  };
  for (const account of [OWN_ACCOUNT, FRENCH]) {
    for (const speed of ["standard", "instant"] as const) {
      add(account, writePayouts, { ...SEPA_PAYOUT, speed }, SEPA);
    }
    add(account, writeCollections, COLLECTION, COLLECTED);
  }
  for (const currency of ["USD", "JPY", "BHD"]) {
    add({ ...OWN_ACCOUNT, currency }, writePayouts, { ...SWIFT_PAYOUT, currency }, SWIFT);
  }
  return cases;
}

/** Returns the member at a path; null if there is none. */
function at(tree: Tree, path: string): unknown {
  let value: unknown = tree;
  for (const key of path.split(".")) {
    value = (value as Record<string, unknown> | null)?.[key] ?? null;
  }
  return value;
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
