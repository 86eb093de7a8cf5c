/**
 * Statements that a bank could write are read back, in every form. The message of a failure has the
 * seed; `SEED` repeats it.
 */

import assert from "node:assert/strict";
import fc from "fast-check";
import { BankFileError } from "../../shared/connectors/bank/bank_file_error.ts";
import { readFile } from "../support/connectors/bank_file.ts";
import {
  type Form,
  forms,
  type Statement,
  statements,
  writeStatements,
} from "../support/connectors/bank_statements.ts";

const RUN = { seed: Number(Deno.env.get("SEED") ?? Date.now() % 2 ** 31), numRuns: 200 };
const pieces = fc.integer({ min: 1, max: 5000 });

/** Reads statements into the form of the arbitrary. */
async function readBack(file: Uint8Array<ArrayBuffer>, piece_bytes: number): Promise<Statement[]> {
  const read: Statement[] = [];
  for (const record of await readFile(file, { piece_bytes })) {
    if (record.record === "statement") {
      const [opening, closing] = record.balances.map(({ amount_minor }) => amount_minor);
      read.push({ opening: opening!, closing: closing!, lines: [] });
    } else if (record.record === "entry") {
      read.at(-1)!.lines.push({
        cents: record.amount_minor,
        is_credit: record.direction === "credit",
        is_booked: record.status === "booked",
        day: record.booked_on!,
        reference: record.bank_reference,
        transactions: [],
      });
      assert.equal(record.value_on, record.booked_on);
    } else if (record.record === "detail") {
      read.at(-1)!.lines.at(-1)!.transactions.push({
        cents: record.amount_minor!,
        end_to_end_id: record.end_to_end_id!,
        text: record.remittance!,
        payer: record.counterparty.name!,
      });
    } else {
      assert.match(record.record, /^(message|statement_end)$/);
    }
  }
  return read;
}

Deno.test("readBankFile() reads back every statement, in every form", async () => {
  const property = fc.asyncProperty(statements, forms, pieces, async (given, form, piece_bytes) => {
    const read = await readBack(writeStatements(given, form), piece_bytes);
    assert.deepEqual(read, given);
  });
  await fc.assert(property, RUN);
});

Deno.test("readBankFile() gives every entry an identity that no form changes", async () => {
  const identities = async (given: Statement[], form: Form) =>
    (await readFile(writeStatements(given, form))).flatMap((record) =>
      record.record === "entry" ? [record.identity] : []
    );
  const property = fc.asyncProperty(statements, forms, forms, async (given, form, other) => {
    const booked = given.map((statement) => ({
      ...statement,
      lines: statement.lines.filter(({ is_booked }) => is_booked),
    }));
    const first = await identities(booked, form);
    assert.equal(new Set(first).size, first.length);
    assert.deepEqual(await identities(booked, other), first);
  });
  await fc.assert(property, RUN);
});

Deno.test("readBankFile() refuses every file that ends early", async () => {
  const property = fc.asyncProperty(
    statements,
    forms,
    fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
    async (given, form, share) => {
      const file = writeStatements(given, form);
      const part = file.subarray(0, Math.floor(file.length * share));
      await assert.rejects(readFile(part), BankFileError);
    },
  );
  await fc.assert(property, RUN);
});

Deno.test("readBankFile() refuses every statement without one of its booked entries", async () => {
  const property = fc.asyncProperty(statements, forms, fc.nat(), async (given, form, pick) => {
    const booked = given.flatMap(({ lines }) => lines).filter(({ is_booked }) => is_booked);
    fc.pre(booked.length > 0);
    const missing = booked[pick % booked.length];
    const part = given.map((statement) => ({
      ...statement,
      lines: statement.lines.filter((line) => line !== missing),
    }));
    await assert.rejects(readFile(writeStatements(part, form)), /is not the closing balance/);
  });
  await fc.assert(property, RUN);
});
