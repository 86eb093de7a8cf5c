/**
 * Bank files at programs of others: random files keep the schemas, and two programs read the same
 * orders from them as were written.
 */

import assert from "node:assert/strict";
import fc from "fast-check";
import {
  type BankParty,
  collectionFault,
  type CollectionOrder,
  type OwnBankAccount,
  payoutFault,
  type PayoutOrder,
  type PostalAddress,
  type Remittance,
} from "../../shared/core/bank_order.ts";
import { formatDecimal } from "../../shared/core/currency.ts";
import { remainderOf97 } from "../../shared/core/iban.ts";
import { saysAnything, toSepaText } from "../../shared/core/sepa_text.ts";
import { addDays, firstTargetDay } from "../../shared/core/target_calendar.ts";
import { MANDATE_SEQUENCES } from "../../shared/core/vocabulary.ts";
import { idOfBankIdentifier } from "../../shared/connectors/bank/bank_identifier.ts";
import { writeCollections } from "../../shared/connectors/bank/write_collections.ts";
import type { BankFile } from "../../shared/connectors/bank/write_file.ts";
import { writePayouts } from "../../shared/connectors/bank/write_payouts.ts";
import { writeRecall } from "../../shared/connectors/bank/write_recall.ts";
import { bankCaseId, OWN_ACCOUNT } from "../support/connectors/bank_case.ts";
import {
  type CheckedFile,
  no_bank_programs,
  readWithPrograms,
  type Tree,
} from "../support/bank/bank_programs.ts";

const SEED = Number(Deno.env.get("SEED") ?? Date.now() % 2 ** 31);
/** Random files of each kind. */
const RUNS = 15;

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
  name: `bank files keep their schemas and are read by other programs, seed ${SEED}`,
  ignore: no_bank_programs,
  async fn() {
    const cases = randomCases();
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

interface Case {
  file: BankFile;
  name: `${string}.xml`;
  account: OwnBankAccount;
  expected: ReadOrder[];
}

function randomCases(): Case[] {
  const cases: Case[] = [];
  const add = (file: BankFile, account: OwnBankAccount, expected: ReadOrder[]) =>
    cases.push({ file, name: `${cases.length}.xml`, account, expected });
  const sample = <T>(arbitrary: fc.Arbitrary<T>) =>
    fc.sample(arbitrary, { numRuns: RUNS, seed: SEED });
  const input = (account: OwnBankAccount) => ({
    id: bankCaseId("bf", cases.length),
    created_at,
    account,
  });
  for (const account of [OWN_ACCOUNT, FRENCH]) {
    for (const orders of sample(sepaPayouts(account))) {
      add(writePayouts(input(account), orders), account, orders.map(writtenPayout));
    }
    for (const orders of sample(collections(account))) {
      add(writeCollections(input(account), orders), account, orders.map(writtenCollection));
    }
  }
  for (const currency of ["USD", "JPY", "BHD"]) {
    const account = { ...OWN_ACCOUNT, currency };
    for (const orders of sample(swiftPayouts(account))) {
      add(writePayouts(input(account), orders), account, orders.map(writtenPayout));
    }
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

const NAMES = [
  "Jürgen Groß",
  "Łukasz & Zoë <Sons>",
  "Γιώργος Θεοδωράκης",
  'Ђорђе "Djole" Ђокић',
  "O’Brien / Partners; Ltd",
  "Ørsted Æbelø A/S",
];

/** Texts that have at most `max` characters after their conversion, and still say something. */
const text = (max: number) =>
  fc.oneof(
    fc.constantFrom(...NAMES),
    fc.string({ unit: "grapheme", minLength: 1, maxLength: max }),
    fc.string({ minLength: 1, maxLength: max }),
  ).filter((text) => saysAnything(toSepaText(text)) && toSepaText(text).length <= max);

const digits = (length: number) =>
  fc.string({ unit: fc.constantFrom(..."0123456789"), minLength: length, maxLength: length });

/** Banks of the EEA, of SEPA outside it, and of other countries. */
const COUNTRIES = { sepa: ["DE", "FR", "IE", "NO", "GB", "CH"], swift: ["DE", "GB", "TR", "BR"] };

const iban = (rail: "sepa" | "swift") =>
  fc.tuple(fc.constantFrom(...COUNTRIES[rail]), digits(18))
    .map(([country, account]) => withCheckDigits(country, account));

const nullable = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: null });

const address: fc.Arbitrary<PostalAddress> = fc.record({
  line1: text(70),
  line2: nullable(text(70)),
  city: text(35),
  postal_code: nullable(digits(5)),
  country: fc.constantFrom("DE", "GB", "CH", "TR"),
});

const party = (rail: "sepa" | "swift") =>
  fc.record({ name: text(70), iban: iban(rail), address, has_bic: fc.boolean() })
    .map(({ has_bic, ...rest }) => ({
      ...rest,
      bic: has_bic ? `BANK${rest.iban.slice(0, 2)}2L` : null,
    }));

const remittance: fc.Arbitrary<Remittance | null> = nullable(fc.oneof(
  text(140).map((text): Remittance => ({ text })),
  digits(16).map((body): Remittance => ({ reference: withCheckDigits("RF", body) })),
));

const date = fc.nat(400).map((days) => addDays("2026-11-27", days));

const shared = { amount_minor: fc.integer({ min: 1, max: 99_999_999_999 }), remittance };

/** Orders of one file, by SEPA. */
function sepaPayouts(
  account: OwnBankAccount,
): fc.Arbitrary<[PayoutOrder, ...PayoutOrder[]]> {
  return fc.constantFrom("standard" as const, "instant" as const).chain((speed) =>
    some(fc.record({
      ...shared,
      payee: party("sepa"),
      execute_on: date,
      prefix: fc.constantFrom("tr", "re"),
    })).map((orders) =>
      orders.map(({ prefix, ...order }, at) => ({
        ...order,
        ...{ id: bankCaseId(prefix, at), rail: "sepa" as const, currency: account.currency },
        ...{ speed, charges: "SLEV" as const, uetr: null },
      }))
    )
  ).filter(isSound((order) => payoutFault(order, account)));
}

/** Orders of one file, by SWIFT. */
function swiftPayouts(
  account: OwnBankAccount,
): fc.Arbitrary<[PayoutOrder, ...PayoutOrder[]]> {
  return some(fc.record({
    ...shared,
    payee: party("swift"),
    execute_on: date,
    charges: fc.constantFrom("SHAR" as const, "DEBT" as const, "CRED" as const),
    uetr: fc.uuid({ version: 4 }),
  })).map((orders) =>
    orders.map((order, at) => ({
      ...order,
      ...{ id: bankCaseId("tr", at), rail: "swift" as const, currency: account.currency },
      speed: "standard" as const,
    }))
  ).filter(isSound((order) => payoutFault(order, account)));
}

/** Collections of one file. */
function collections(
  account: OwnBankAccount,
): fc.Arbitrary<[CollectionOrder, ...CollectionOrder[]]> {
  return some(fc.record({
    ...shared,
    payer: party("sepa"),
    mandate: fc.record({
      id: digits(35),
      signed_on: fc.nat(400).map((days) => addDays("2025-10-01", days)),
      sequence: fc.constantFrom(...MANDATE_SEQUENCES),
    }),
    due_on: date.map((day) => firstTargetDay(addDays(day, 4))),
  })).map((orders) =>
    orders.map((order, at) => ({ ...order, id: bankCaseId("pay", at), currency: "EUR" }))
  ).filter(isSound((order) => collectionFault(order, account)));
}

function some<T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T[]> {
  return fc.array(arbitrary, { minLength: 1, maxLength: 5 });
}

/** Tells whether a list has an order, and only such as keep all rules. */
function isSound<T>(faultOf: (order: T) => unknown): (orders: T[]) => orders is [T, ...T[]] {
  return (orders): orders is [T, ...T[]] =>
    orders.length > 0 && orders.every((order) => faultOf(order) === null);
}

function withCheckDigits(start: string, rest: string): string {
  const check = 98 - remainderOf97(`${rest}${start}00`);
  return start + String(check).padStart(2, "0") + rest;
}
