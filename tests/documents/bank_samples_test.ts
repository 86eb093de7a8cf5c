/**
 * The samples of bank files in examples/bank_files: the service writes the first three byte for
 * byte, and reads the others as docs/going-live/bank.md says. `UPDATE_SAMPLES=1` writes the first
 * three again.
 */

import assert from "node:assert/strict";
import { batchOf, bookEntry, partsOf } from "../../shared/connectors/bank/booked_entries.ts";
import { writeCollections } from "../../shared/connectors/bank/write_collections.ts";
import { writePayouts } from "../../shared/connectors/bank/write_payouts.ts";
import { writeRecall } from "../../shared/connectors/bank/write_recall.ts";
import { creditorReference } from "../../shared/core/creditor_reference.ts";
import { isValidIban } from "../../shared/core/iban.ts";
import {
  type CheckedFile,
  no_bank_programs,
  readWithPrograms,
} from "../support/bank/bank_programs.ts";
import {
  bankCaseId,
  COLLECTION,
  OWN_ACCOUNT,
  SEPA_PAYOUT,
} from "../support/connectors/bank_case.ts";
import { readEntries, readFile } from "../support/connectors/bank_file.ts";

const FOLDER = new URL("../../examples/bank_files/", import.meta.url);
/** The samples: first those that the service writes. */
const NAMES = [
  "payouts.pain001",
  "collections.pain008",
  "recall.camt055",
  "recall_reply.camt029",
  "status_report.pain002",
  "statement.camt053",
  "notification.camt054",
  "report.camt052",
];
const pathOf = (name: string) => new URL(`${name}.xml`, FOLDER);

const at = (hour: number) => new Date(Date.UTC(2026, 10, 27, hour));
// The service knows no address of the merchant, and writes its texts without structure.
const account = { ...OWN_ACCOUNT, address: null };
const collection = { ...COLLECTION, remittance: { text: "Membership 2026" } };
const input = (number: number, created_at: Date) => ({
  account,
  id: bankCaseId("bf", number),
  created_at,
});
const payouts = writePayouts(input(1, at(9)), [SEPA_PAYOUT]);
const WRITTEN = [
  payouts,
  writeCollections(input(2, at(9)), [collection]),
  writeRecall(input(3, at(10)), {
    id: bankCaseId("bf", 1),
    kind: "sepa_transfers",
    created_at: at(9),
  }, [{ ...SEPA_PAYOUT, batch_id: payouts.batches[0]!.id, reason: "CUST" }]),
].map(({ bytes }) => new TextDecoder().decode(bytes));

if (Deno.env.get("UPDATE_SAMPLES") === "1") {
  for (const [i, text] of WRITTEN.entries()) {
    await Deno.writeTextFile(pathOf(NAMES[i]!), `${text.trimEnd()}\n`);
  }
}
const SAMPLES = await Promise.all(NAMES.map((name) => Deno.readTextFile(pathOf(name))));
const [resolution, status, statement, notification, report] = SAMPLES.slice(WRITTEN.length);

Deno.test("examples/bank_files has the files that the service writes", () => {
  for (const [i, text] of WRITTEN.entries()) assert.equal(SAMPLES[i]!.trimEnd(), text.trimEnd());
});

for (
  const [name, text, expected] of [
    ["status report that rejects its payout", status!, ["rejected", "AC01"]],
    ["reply to the recall of its payout", resolution!, ["accepted", "CUST"]],
  ] as const
) {
  Deno.test(`examples/bank_files has a ${name}`, async () => {
    const records = (await readFile(text)).flatMap((each) =>
      (each.record === "status" || each.record === "cancellation") && each.end_to_end_id
        ? [each]
        : []
    );
    assert.deepEqual(
      records.map(({ end_to_end_id, result, reasons }) => [
        ...[end_to_end_id, result, reasons[0]?.code],
      ]),
      [[SEPA_PAYOUT.id.replace("_", "-"), ...expected]],
    );
  });
}

for (
  const [name, text, expected] of [
    ["statement", statement!, [
      ["authorize", "succeeded", 1000, creditorReference(bankCaseId("pay", 2))],
      ["authorize", "succeeded", 5000, COLLECTION.id.replace("_", "-")],
    ]],
    ...([["notification", notification!], ["report", report!]] as const).map(([name, text]) =>
      [name, text, [
        ["authorize", "returned", 5000, COLLECTION.id.replace("_", "-"), "AM04"],
      ]] as const
    ),
  ] as const
) {
  Deno.test(`examples/bank_files has a ${name} that the service books as the page says`, async () => {
    const booked = (await readEntries(text)).map(async (entry) => {
      assert.equal(batchOf(entry, entry.details), null);
      const own = { id: "pac_1", return_charge_minor: 1500, own_business: [] };
      const parts = await partsOf(entry, entry.details);
      return bookEntry(own, entry, { parts, batch: null }, new Map()).provider_events;
    });
    const events = (await Promise.all(booked)).flat();
    assert.deepEqual(
      events.map(({ op, state, amount_minor, provider_reference, return_code }) => [
        ...[op, state, amount_minor, provider_reference],
        ...return_code ? [return_code] : [],
      ]),
      expected,
    );
    const warnings = (await readFile(text)).filter(({ record }) => record === "warning");
    assert.deepEqual(warnings, []);
  });
}

Deno.test("examples/bank_files has valid IBANs only", () => {
  const ibans = SAMPLES.flatMap((text) => [...text.matchAll(/<IBAN>([^<]+)/g)]);
  assert.ok(ibans.length > 5);
  for (const [, iban] of ibans) assert.ok(isValidIban(iban!), iban);
});

Deno.test({
  name: "examples/bank_files has files that other programs read",
  ignore: no_bank_programs,
  fn: async () => {
    const files = SAMPLES.map((text, i): CheckedFile => [
      `${i}.xml`,
      new TextEncoder().encode(text),
    ]);
    const readings = await readWithPrograms(files);
    assert.equal(Object.keys(readings).length, files.length);
  },
});
