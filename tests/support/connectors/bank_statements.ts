/**
 * Statements as an arbitrary of fast-check, written in the forms in which banks write them. This
 * module shares no code with the reader.
 */

import fc from "fast-check";

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
export interface Statement {
  opening: number;
  closing: number;
  lines: Line[];
}

/** How a bank writes. */
export interface Form {
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
export const statements: fc.Arbitrary<Statement[]> = fc.array(
  fc.tuple(fc.integer({ min: -(10 ** 9), max: 10 ** 9 }), fc.array(line, { maxLength: 8 }))
    .map(([opening, lines]) => ({ opening, closing: opening + netOf(lines), lines })),
  { minLength: 1, maxLength: 3 },
);

/** Forms of banks. */
export const forms: fc.Arbitrary<Form> = fc.record({
  version: fc.constantFrom(2, 4, 6, 8, 13),
  prefix: fc.constantFrom("", "", "ns2:", "Doc:"),
  indentation: fc.constantFrom("", "\n", "\r\n\t"),
  encoding: fc.constantFrom("UTF-8", "UTF-8", "UTF-16LE", "UTF-16BE"),
  has_empty_decimals: fc.boolean(),
});

/** Writes a camt.053. */
export function writeStatements(given: readonly Statement[], form: Form): Uint8Array<ArrayBuffer> {
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
