/**
 * Statements that a bank could write are read back, in every form. The message of a failure has the
 * seed; `SEED` repeats it. The writer here shares no code with the reader.
 */

import assert from "node:assert/strict";
import fc from "fast-check";
import { BankFileError } from "../../shared/connectors/bank/bank_file_error.ts";
import { readFile } from "../support/connectors/bank_file.ts";

/** A transaction. */
interface Transaction {
  cents: number;
  end_to_end_id: string;
  text: string;
  payer: string;
}

/** A line of a statement, with the amounts of its transactions or one of its own. */
interface Line {
  cents: number;
  is_credit: boolean;
  is_booked: boolean;
  day: string;
  reference: string | null;
  transactions: Transaction[];
}

/** A statement. */
interface Statement {
  opening: number;
  closing: number;
  lines: Line[];
}

/** How a bank writes. */
interface Form {
  version: number;
  prefix: string;
  indentation: string;
  encoding: "UTF-8" | "UTF-16LE" | "UTF-16BE";
  has_empty_decimals: boolean;
}

const letters = fc.constantFrom(..."abcXYZ 019-/?:().,'+&<>\"äöüßéŠ€");
const text = fc.string({ unit: letters, minLength: 1, maxLength: 70 })
  .map((text) => text.replace(/\s+/g, " ").trim()).filter((text) => text !== "");
const id = fc.string({ unit: fc.constantFrom(..."ABCdef0189-"), minLength: 12, maxLength: 35 });
const cents = fc.integer({ min: 1, max: 10 ** 9 });

const PLAIN = { noNullPrototype: true };
const transaction = fc.record({ cents, end_to_end_id: id, text, payer: text }, PLAIN);
const line: fc.Arbitrary<Line> = fc.record({
  cents,
  is_credit: fc.boolean(),
  is_booked: fc.boolean(),
  day: fc.integer({ min: 1, max: 28 }).map((day) => `2026-11-${String(day).padStart(2, "0")}`),
  reference: fc.option(id),
  transactions: fc.array(transaction, { maxLength: 4 }),
}, PLAIN).map((line) => {
  const [first, ...others] = line.transactions;
  if (first === undefined) return line;
  return { ...line, cents: others.reduce((sum, { cents }) => sum + cents, first.cents) };
});

/** Statements of one account, with balances that agree with their lines. */
const statements: fc.Arbitrary<Statement[]> = fc.array(
  fc.tuple(fc.integer({ min: -(10 ** 9), max: 10 ** 9 }), fc.array(line, { maxLength: 8 }))
    .map(([opening, lines]) => ({ opening, closing: opening + netOf(lines), lines })),
  { minLength: 1, maxLength: 3 },
);

/** Forms of banks. */
const forms: fc.Arbitrary<Form> = fc.record({
  version: fc.constantFrom(2, 4, 6, 8, 13),
  prefix: fc.constantFrom("", "", "ns2:", "Doc:"),
  indentation: fc.constantFrom("", "\n", "\r\n\t"),
  encoding: fc.constantFrom("UTF-8", "UTF-8", "UTF-16LE", "UTF-16BE"),
  has_empty_decimals: fc.boolean(),
});

/** Writes a camt.053. */
function writeStatements(given: readonly Statement[], form: Form): Uint8Array<ArrayBuffer> {
  const { version, prefix, indentation, encoding, has_empty_decimals } = form;
  const tag = (name: string, content: string | string[], attribute = "") =>
    `${indentation}<${prefix}${name}${attribute}>${
      typeof content === "string" ? content : content.join("") + indentation
    }</${prefix}${name}>`;
  const amount = (cents: number) =>
    tag("Amt", (cents / 100).toFixed(2) + (has_empty_decimals ? "000" : ""), ' Ccy="EUR"');
  const sign = (is_credit: boolean) => tag("CdtDbtInd", is_credit ? "CRDT" : "DBIT");
  const party = (name: string) => {
    const content = tag("Nm", escaped(name));
    return version < 8 ? [content] : [tag("Pty", [content])];
  };
  const balance = (code: string, cents: number) =>
    tag("Bal", [
      tag("Tp", [tag("CdOrPrtry", [tag("Cd", code)])]),
      amount(Math.abs(cents)),
      sign(cents >= 0),
      tag("Dt", [tag("Dt", "2026-11-28")]),
    ]);
  const writeTransaction = ({ cents, end_to_end_id, text, payer }: Transaction, line: Line) =>
    tag("TxDtls", [
      tag("Refs", [tag("EndToEndId", end_to_end_id)]),
      version < 4 ? tag("AmtDtls", [tag("TxAmt", [amount(cents)])]) : amount(cents),
      ...version < 4 ? [] : [sign(line.is_credit)],
      tag("RltdPties", [tag(line.is_credit ? "Dbtr" : "Cdtr", party(payer))]),
      tag("RmtInf", [tag("Ustrd", escaped(text))]),
    ]);
  const writeLine = (line: Line) => {
    const status = line.is_booked ? "BOOK" : "PDNG";
    return tag("Ntry", [
      amount(line.cents),
      sign(line.is_credit),
      tag("Sts", version < 8 ? status : [tag("Cd", status)]),
      tag("BookgDt", [tag("Dt", line.day)]),
      tag("ValDt", [tag("DtTm", `${line.day}T12:00:00`)]),
      ...line.reference === null ? [] : [tag("AcctSvcrRef", line.reference)],
      ...line.transactions.length === 0
        ? []
        : [tag("NtryDtls", line.transactions.map((each) => writeTransaction(each, line)))],
    ]);
  };
  const content = given.map(({ opening, closing, lines }, at) =>
    tag("Stmt", [
      tag("Id", `S-${at}`),
      tag("Acct", [tag("Id", [tag("IBAN", "DE02120300000000202051")])]),
      balance("OPBD", opening),
      balance("CLBD", closing),
      ...lines.map(writeLine),
    ])
  );
  const namespace = `urn:iso:std:iso:20022:tech:xsd:camt.053.001.${
    String(version).padStart(2, "0")
  }`;
  const attribute = ` xmlns${prefix && ":"}${prefix.slice(0, -1)}="${namespace}"`;
  const body = tag("Document", [tag("BkToCstmrStmt", [tag("GrpHdr", []), ...content])], attribute);
  const name = encoding === "UTF-8" ? "UTF-8" : "UTF-16";
  return encode(`<?xml version="1.0" encoding="${name}"?>${body}`, encoding);
}

function netOf(lines: readonly Line[]): number {
  return lines.filter(({ is_booked }) => is_booked)
    .reduce((sum, { cents, is_credit }) => is_credit ? sum + cents : sum - cents, 0);
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&#62;");
}

function encode(text: string, encoding: Form["encoding"]): Uint8Array<ArrayBuffer> {
  if (encoding === "UTF-8") return new TextEncoder().encode(text);
  const view = new DataView(new ArrayBuffer(text.length * 2));
  for (let at = 0; at < text.length; at++) {
    view.setUint16(at * 2, text.charCodeAt(at), encoding === "UTF-16LE");
  }
  return new Uint8Array(view.buffer);
}

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
