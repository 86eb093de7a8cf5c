/**
 * Files for a bank, byte for byte, and how orders are put into batches. bank_programs_test.ts shows
 * that programs of others read them.
 */

import assert from "node:assert/strict";
import type { CollectionOrder, PayoutOrder } from "../../shared/core/bank_order.ts";
import {
  bankIdentifier,
  idOfBankIdentifier,
} from "../../shared/connectors/bank/bank_identifier.ts";
import {
  block,
  element,
  messageBytes,
  textElement,
} from "../../shared/connectors/bank/bank_xml_writer.ts";
import { writeCollections } from "../../shared/connectors/bank/write_collections.ts";
import { type FileInput, UnwritableOrder } from "../../shared/connectors/bank/write_file.ts";
import { payoutFileKind, writePayouts } from "../../shared/connectors/bank/write_payouts.ts";
import { type RecalledOrder, writeRecall } from "../../shared/connectors/bank/write_recall.ts";
import {
  bankCaseId,
  COLLECTION,
  LONDON,
  OWN_ACCOUNT,
  SEPA_PAYOUT,
  SWIFT_PAYOUT,
} from "../support/connectors/bank_case.ts";

const VECTORS = new URL("../vectors/bank/", import.meta.url);

const FILE: FileInput = {
  id: bankCaseId("bf", 1),
  created_at: new Date("2026-11-27T10:00:00.123Z"),
  account: OWN_ACCOUNT,
};

const refund: PayoutOrder = {
  ...SEPA_PAYOUT,
  id: bankCaseId("re", 2),
  payee: { ...SEPA_PAYOUT.payee, bic: "BNPAFRPPXXX" },
  remittance: { reference: "RF18539007547034" },
};
const later: PayoutOrder = { ...SEPA_PAYOUT, id: bankCaseId("tr", 3), execute_on: "2026-11-30" };
const one_off: CollectionOrder = {
  ...COLLECTION,
  id: bankCaseId("pay", 2),
  payer: { name: "Acme Ltd", iban: "GB82WEST12345698765432", bic: null, address: LONDON },
  mandate: { id: "MND-2", signed_on: "2026-11-01", sequence: "one_off" },
  remittance: null,
};
const recalled: RecalledOrder = {
  id: bankCaseId("tr", 1),
  batch_id: "bf-1",
  amount_minor: 1999,
  currency: "EUR",
  reason: "DUPL",
};

/** Each kind of file, with the name of the file of bytes that it must give. */
const FILES = {
  sepa_transfers: () => writePayouts(FILE, [SEPA_PAYOUT, refund, later]),
  instant_transfers: () => writePayouts(FILE, [{ ...SEPA_PAYOUT, speed: "instant" }]),
  swift_transfers: () => writePayouts(FILE, [SWIFT_PAYOUT]),
  collections: () => writeCollections(FILE, [COLLECTION, one_off]),
  recall: () =>
    writeRecall(
      FILE,
      { id: bankCaseId("bf", 0), kind: "sepa_transfers", created_at: new Date(0) },
      [recalled],
    ),
};

for (const [kind, write] of Object.entries(FILES)) {
  Deno.test(`a file of ${kind} has these bytes`, async () => {
    const file = write();
    assert.equal(file.kind, kind);
    assert.equal(file.name, `${kind}_bf-01k8zq3n5v8x1y2z3a4b000001.xml`);
    const text = new TextDecoder().decode(file.bytes);
    assert.equal(text, await Deno.readTextFile(new URL(`${kind}.xml`, VECTORS)));
  });
}

Deno.test("writePayouts() gives the same bytes for the same orders in another order", () => {
  const bytes = writePayouts(FILE, [SEPA_PAYOUT, refund, later]).bytes;
  assert.deepEqual(writePayouts(FILE, [later, SEPA_PAYOUT, refund]).bytes, bytes);
});

Deno.test("writePayouts() returns number, sum, currency and batches", () => {
  const { payments, sum_minor, currency, batches } = FILES.sepa_transfers();
  assert.deepEqual([payments, sum_minor, currency], [3, 5997, "EUR"]);
  const id = "bf-01k8zq3n5v8x1y2z3a4b000001";
  assert.deepEqual(batches, [
    { id: `${id}-1`, order_ids: [refund.id, SEPA_PAYOUT.id] },
    { id: `${id}-2`, order_ids: [later.id] },
  ]);
});

Deno.test("writePayouts() has a batch for each payer of charges", () => {
  const orders = (["SHAR", "DEBT", "CRED", "SHAR"] as const).map((charges, at) => ({
    ...SWIFT_PAYOUT,
    id: bankCaseId("tr", at),
    charges,
  }));
  const { batches } = writePayouts(FILE, orders as [PayoutOrder, ...PayoutOrder[]]);
  assert.deepEqual(batches.map(({ order_ids }) => order_ids.length), [2, 1, 1]);
});

/** Time of the file, day of the order, and day in the file. */
const DAYS: [created_at: string, day: string, expected: string][] = [
  ["2026-11-27T10:00:00Z", "2026-11-27", "2026-11-27"],
  ["2026-11-27T10:00:00Z", "2026-11-01", "2026-11-27"],
  ["2026-11-27T23:30:00Z", "2026-11-27", "2026-11-28"], // already the 28th in Frankfurt
  ["2026-11-27T10:00:00Z", "2026-12-24", "2026-12-24"],
];

for (const [created_at, execute_on, expected] of DAYS) {
  Deno.test(`writePayouts() at ${created_at} for ${execute_on} has ${expected}`, () => {
    const file = { ...FILE, created_at: new Date(created_at) };
    const { bytes } = writePayouts(file, [{ ...SEPA_PAYOUT, execute_on }]);
    assert.equal(dateIn(bytes, "ReqdExctnDt"), expected);
  });
}

const DUE_DAYS: [created_at: string, due_on: string, expected: string][] = [
  ["2026-11-27T10:00:00Z", "2026-12-11", "2026-12-11"],
  ["2026-11-27T10:00:00Z", "2026-11-30", "2026-11-30"], // Friday to Monday
  ["2026-11-27T10:00:00Z", "2026-11-27", "2026-11-30"], // too late for the same day
  ["2026-11-27T11:00:00Z", "2026-11-30", "2026-12-01"], // at the cut-off, 12:00 in Berlin
  ["2026-11-27T22:59:00Z", "2026-11-30", "2026-12-01"],
  ["2026-11-28T10:00:00Z", "2026-11-30", "2026-12-01"], // a Saturday counts as the Monday
  ["2026-12-24T10:00:00Z", "2026-12-24", "2026-12-28"],
];

for (const [created_at, due_on, expected] of DUE_DAYS) {
  Deno.test(`writeCollections() at ${created_at} for ${due_on} has ${expected}`, () => {
    const file = { ...FILE, created_at: new Date(created_at) };
    const { bytes } = writeCollections(file, [{ ...COLLECTION, due_on }]);
    assert.equal(dateIn(bytes, "ReqdColltnDt"), expected);
  });
}

Deno.test("writeCollections() has a batch for each sequence and due date", () => {
  const sequences = ["first", "recurring", "final", "one_off", "recurring"] as const;
  const orders = sequences.map((sequence, at) => ({
    ...COLLECTION,
    id: bankCaseId("pay", at),
    mandate: { ...COLLECTION.mandate, sequence },
  }));
  const next_day = { ...COLLECTION, id: bankCaseId("pay", 9), due_on: "2026-12-14" };
  const { batches } = writeCollections(FILE, [next_day, ...orders]);
  assert.deepEqual(batches.map(({ order_ids }) => order_ids.length), [1, 2, 1, 1, 1]);
});

Deno.test("a broken rule refuses the file and names the order or the file", () => {
  const bad = { ...refund, currency: "USD" };
  assert.throws(() => writePayouts(FILE, [SEPA_PAYOUT, bad]), isRefusal(refund.id, "currency"));
  const bad_collection = { ...COLLECTION, due_on: "2026-12-12" };
  assert.throws(() => writeCollections(FILE, [bad_collection]), isRefusal(COLLECTION.id, "due_on"));
  const bad_file = { ...FILE, account: { ...OWN_ACCOUNT, bic: "BNPAFRPP" } };
  for (
    const write of [
      () => writePayouts(bad_file, [SEPA_PAYOUT]),
      () => writeCollections(bad_file, [COLLECTION]),
    ]
  ) assert.throws(write, isRefusal(FILE.id, "account.bic"));
});

Deno.test("writePayouts() refuses orders of two kinds", () => {
  const instant = { ...refund, speed: "instant" as const };
  assert.equal(payoutFileKind(instant), "instant_transfers");
  assert.throws(() => writePayouts(FILE, [SEPA_PAYOUT, instant]), RangeError);
});

Deno.test("writePayouts() refuses a sum that is not exact", () => {
  const large = { ...SWIFT_PAYOUT, amount_minor: Number.MAX_SAFE_INTEGER };
  const other = { ...large, id: bankCaseId("tr", 2) };
  assert.throws(() => writePayouts(FILE, [large, other]), RangeError);
});

Deno.test("writeRecall() takes version 05 to a German bank and 08 to others", () => {
  const original = {
    id: bankCaseId("bf", 0),
    kind: "collections",
    created_at: new Date(0),
  } as const;
  const french = { ...OWN_ACCOUNT, iban: "FR1420041010050500013M02606", bic: "BNPAFRPP" };
  for (const [account, version] of [[OWN_ACCOUNT, "05"], [french, "08"]] as const) {
    const { bytes } = writeRecall({ ...FILE, account }, original, [recalled]);
    const text = new TextDecoder().decode(bytes);
    assert.match(text, new RegExp(`xsd:camt\\.055\\.001\\.${version}"`));
    assert.match(text, /<OrgnlMsgNmId>pain\.008\.001\.08</);
  }
});

Deno.test("bankIdentifier() and idOfBankIdentifier() are inverse, in any case", () => {
  const id = bankCaseId("pay", 7);
  assert.equal(bankIdentifier(id), "pay-01k8zq3n5v8x1y2z3a4b000007");
  assert.equal(idOfBankIdentifier(bankIdentifier(id)), id);
  assert.equal(idOfBankIdentifier(` ${bankIdentifier(id).toUpperCase()}\n`), id);
  for (const other of ["", "NOTPROVIDED", id, `${bankIdentifier(id)}-1`, "pay-01"]) {
    assert.equal(idOfBankIdentifier(other), null, other);
  }
});

Deno.test("the writer escapes texts and attributes, and leaves out null", () => {
  const text = textElement("T", 'a & <b> "c"', { Ccy: '"<' });
  const escaped = '<T Ccy="&quot;&lt;">a &amp; &lt;b&gt; &quot;c&quot;</T>';
  assert.equal(text, escaped);
  assert.equal(element("E", [null, text]), `<E>${escaped}</E>`);
  assert.equal(block("B", [null, text, text]), `<B>\n${escaped}\n${escaped}</B>`);
  const message = new TextDecoder().decode(messageBytes("camt.055.001.05", element("R", [])));
  assert.equal(
    message.split("\n")[1],
    '<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.055.001.05">',
  );
});

function dateIn(bytes: Uint8Array, tag: string): string | undefined {
  return new RegExp(`<${tag}>(?:<Dt>)?([0-9-]+)<`).exec(new TextDecoder().decode(bytes))?.[1];
}

function isRefusal(id: string, field: string): (error: unknown) => boolean {
  return (error) =>
    error instanceof UnwritableOrder && error.order_id === id && error.fault.field === field;
}
