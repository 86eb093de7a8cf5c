/**
 * Bank files at programs of others: random files keep the schemas, and two programs read the same
 * orders from them as were written. sepaxml writes the same elements for the same orders.
 */

import assert from "node:assert/strict";
import fc from "fast-check";
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
import { idOfBankIdentifier } from "../../shared/connectors/bank/bank_identifier.ts";
import { writeCollections } from "../../shared/connectors/bank/write_collections.ts";
import type { BankFile } from "../../shared/connectors/bank/write_file.ts";
import { writePayouts } from "../../shared/connectors/bank/write_payouts.ts";
import { writeRecall } from "../../shared/connectors/bank/write_recall.ts";
import { collections, sepaPayouts, swiftPayouts } from "../support/connectors/bank_arbitraries.ts";
import {
  bankCaseId,
  COLLECTION,
  OWN_ACCOUNT,
  SEPA_PAYOUT,
} from "../support/connectors/bank_case.ts";
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

Deno.test({
  name: "sepaxml writes the same elements for the same orders",
  ignore: no_bank_programs,
  async fn() {
    const input = {
      id: bankCaseId("bf", 1),
      created_at,
      account: { ...OWN_ACCOUNT, address: null },
    };
    const collection: CollectionOrder = { ...COLLECTION, remittance: { text: "Abo" } };
    const config = {
      ...{ name: toSepaText(OWN_ACCOUNT.name), IBAN: OWN_ACCOUNT.iban, BIC: OWN_ACCOUNT.bic },
      ...{ currency: "EUR", batch: true, creditor_id: OWN_ACCOUNT.creditor_identifier },
    };
    const readings = await readWithPrograms([
      ["payouts.xml", writePayouts(input, [SEPA_PAYOUT]).bytes],
      ["collections.xml", writeCollections(input, [collection]).bytes],
      ["payouts.json", {
        ...{ class: "SepaTransfer", schema: "pain.001.001.09", config },
        payments: [{
          ...sepaxmlPayment(SEPA_PAYOUT, SEPA_PAYOUT.payee),
          execution_date: SEPA_PAYOUT.execute_on,
        }],
      }],
      ["collections.json", {
        ...{ class: "SepaDD", schema: "pain.008.001.08", config },
        payments: [{
          ...sepaxmlPayment(collection, collection.payer),
          ...{ type: "RCUR", collection_date: collection.due_on },
          ...{ mandate_id: collection.mandate.id, mandate_date: collection.mandate.signed_on },
        }],
      }],
    ]);
    for (const kind of ["payouts", "collections"]) {
      const [ours, theirs] = ["xml", "json"].map((type) =>
        leavesOf(readings[`${kind}.${type}`]!.mock_bank!.tree)
      );
      const own_account = kind === "payouts" ? "DbtrAcct" : "CdtrAcct";
      assert.deepEqual(ours!.difference(theirs!), new Set([`PmtInf.0.${own_account}.Ccy EUR`]));
      const only_theirs = ["PmtInf.0.BtchBookg true"];
      if (kind === "collections") {
        only_theirs.push(`GrpHdr.InitgPty.Id.OrgId.Othr.0.Id ${OWN_ACCOUNT.creditor_identifier}`);
      }
      assert.deepEqual([...theirs!.difference(ours!)].toSorted(), only_theirs.toSorted());
    }
  },
});

function sepaxmlPayment(order: PayoutOrder | CollectionOrder, party: BankParty): object {
  return {
    name: toSepaText(party.name),
    IBAN: party.iban,
    ...(party.bic !== null && { BIC: party.bic }),
    amount: order.amount_minor,
    description: writtenRemittance(order.remittance!),
    endtoend_id: order.id.replace("_", "-"),
  };
}

/** Returns the texts of a message with their paths, without the ids and the time of the message. */
function leavesOf(tree: unknown, path: string[] = []): Set<string> {
  if (typeof tree !== "object" || tree === null) {
    const is_own = /^(MsgId|CreDtTm|PmtInfId)$/.test(path.at(-1)!);
    return new Set(is_own ? [] : [`${path.join(".")} ${tree}`]);
  }
  const leaves = Object.entries(tree).map(([key, member]) => leavesOf(member, [...path, key]));
  return leaves.reduce((all, some) => all.union(some), new Set());
}
