/**
 * Bank files at programs of others: the files keep the schemas whatever texts the orders have, and
 * two programs find no fault with them. bank_write_test.ts has the bytes of each field.
 */

import assert from "node:assert/strict";
import type { CollectionOrder, OwnBankAccount, PayoutOrder } from "../../shared/core/bank_order.ts";
import { MANDATE_SEQUENCES } from "../../shared/core/vocabulary.ts";
import { writeCollections } from "../../shared/connectors/bank/write_collections.ts";
import type { BankFile, FileInput } from "../../shared/connectors/bank/write_file.ts";
import { writePayouts } from "../../shared/connectors/bank/write_payouts.ts";
import { type RecalledOrder, writeRecall } from "../../shared/connectors/bank/write_recall.ts";
import {
  bankCaseId,
  COLLECTION,
  LONDON,
  OWN_ACCOUNT,
  SEPA_PAYOUT,
  SWIFT_PAYOUT,
} from "../support/connectors/bank_case.ts";
import { no_bank_programs, readWithPrograms } from "../support/bank/bank_programs.ts";

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
    const files = filesOf().map(({ bytes }, at) => [`${at}.xml`, bytes] as const);
    const problems = await readWithPrograms(files);
    assert.deepEqual(problems, Object.fromEntries(files.map(([name]) => [name, []])));
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

/** Files of each kind. */
function filesOf(): BankFile[] {
  const files: BankFile[] = [];
  const input = (account: OwnBankAccount) => ({
    ...{ id: bankCaseId("bf", files.length), created_at, account },
  });
  const add = <T extends PayoutOrder | CollectionOrder>(
    account: OwnBankAccount,
    write: (input: FileInput, orders: [T, ...T[]]) => BankFile,
    order: T,
    changes: Partial<T>[],
  ) => {
    const [prefix] = order.id.split("_") as [string];
    const orders = [{}, ...changes].map((change, at) => ({
      ...{ ...order, id: bankCaseId(prefix, at), ...change },
    })) as [T, ...T[]];
    files.push(write(input(account), orders));
  };
  const recalled = { id: bankCaseId("bf", 1), kind: "collections", created_at } as const;
  const terms = { amount_minor: 1999, currency: "EUR", reason: "DUPL" } as const;
  for (const account of [OWN_ACCOUNT, FRENCH]) {
    for (const speed of ["standard", "instant"] as const) {
      add(account, writePayouts, { ...SEPA_PAYOUT, speed }, SEPA);
    }
    add(account, writeCollections, COLLECTION, COLLECTED);
    const orders = ["batch-2", "batch-1"].map((batch_id, at) => ({
      ...{ ...terms, id: bankCaseId("pay", at), batch_id },
    })) as [RecalledOrder, ...RecalledOrder[]];
    files.push(writeRecall(input(account), recalled, orders));
  }
  for (const currency of ["USD", "JPY", "BHD"]) {
    add({ ...OWN_ACCOUNT, currency }, writePayouts, { ...SWIFT_PAYOUT, currency }, SWIFT);
  }
  return files;
}
