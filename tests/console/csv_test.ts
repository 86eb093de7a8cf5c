/** Lists as CSV: the cells of RFC 4180, and no cell that a spreadsheet runs as a formula. */

import assert from "node:assert/strict";
import type { Page } from "../../packages/client/mod.ts";
import {
  csvCell,
  csvHead,
  csvRows,
  MAX_ROWS,
  MAX_ROWS_IN_MEMORY,
  writeCsv,
} from "../../apps/console/data/csv.ts";
import type { FileSink } from "../../apps/console/data/save_file.ts";
import { findSlowText } from "../support/core/growth.ts";

/** A value and its cell. */
const CELLS: [value: unknown, cell: string][] = [
  [null, ""],
  [undefined, ""],
  ["", ""],
  ["A, B", '"A, B"'],
  ['say "hi"', '"say ""hi"""'],
  ["two\nlines", '"two\nlines"'],
  ["a;b", '"a;b"'],
  [1999, "1999"],
  [true, "true"],
  [{ order_id: "6735" }, '"{""order_id"":""6735""}"'],
  ["=1+1", "'=1+1"],
  ["+49 30 1234", "'+49 30 1234"],
  ["@SUM(A1)", "'@SUM(A1)"],
  ["\t=1", `"'\t'=1"`],
  ["\rx", `"'\rx"`],
  [" =1", "' =1"],
  ["＝1", "'＝1"],
  ['=HYPERLINK("http://x","y")', `"'=HYPERLINK(""http://x"",""y"")"`],
  ["a;=1+1;b", `"a;'=1+1;b"`],
  ["a; \u0000=1", `"a;' \u0000=1"`],
  ["\nx", `"'\nx"`],
  ["a =1", "a =1"],
  ["a;b-1", '"a;b-1"'],
  ...[..."＝＋－＠﹦﹢﹣﹫⁼⁺⁻₌₊₋−﬩"].map((sign): [string, string] => [`${sign}1`, `'${sign}1`]),
];

Deno.test("csvCell() takes linear time", async () => {
  // More than a value of a list has.
  const reader = { samples: ["a;\t=1\r\n b", ";;; \u0000\n"], longest: 65_536, read: csvCell };
  assert.equal(await findSlowText(reader, 1), null);
});

for (const [value, cell] of CELLS) {
  Deno.test(`csvCell() ${JSON.stringify(value)} → ${JSON.stringify(cell)}`, () => {
    assert.equal(csvCell(value), cell);
  });
}

/** Splits a file as a program does that takes a separator and looks at no quotes. */
const naively = (text: string, separator: RegExp) =>
  text.split(/\r\n|[\r\n]/).flatMap((line) => line.split(separator));

Deno.test("csvRows() has no cell that begins like a formula, at any separator", () => {
  const beginnings = ["=", "+", "-", "@", "\t=", "\r=", " =", "＝", "＋", "－", "＠"];
  const middles = ["", ";", "\t", "\n", "\r\n", "; ", "\n\t"];
  const texts = beginnings.flatMap((beginning) =>
    middles.map((middle) => `${middle === "" ? "" : `x${middle}`}${beginning}cmd|' /C calc'!A0`)
  );
  const text = csvRows(["text", "n"], texts.map((text) => ({ text, n: 1 })));
  for (const separator of [/;/, /\t/]) {
    for (const cell of naively(text, separator)) {
      assert.doesNotMatch(cell, /^"?[\s]*[=+\-@＝＋－＠]/, JSON.stringify(cell));
    }
  }
});

Deno.test("csvHead() and csvRows() follow paths, and write the amount in units", () => {
  const columns = ["id", "amount_decimal", "customer.email", "attempts.length"];
  const rows = [
    { id: "a", amount_minor: 123_456, currency: "EUR", customer: { email: "x@y" }, attempts: [1] },
    { id: "b", amount_minor: 5, currency: "JPY", customer: null, attempts: [] },
  ];
  assert.equal(csvHead(columns), `\uFEFF${columns.join(",")}\r\n`);
  assert.equal(csvRows(columns, rows), "a,1234.56,x@y,1\r\nb,5,,0\r\n");
});

/** Pages of 100 items of a list of this length. Counts the pages that were read. */
async function* pagesOf(length: number, read: { pages: number }): AsyncGenerator<Page<object>> {
  for (let at = 0; at < length; at += 100) {
    read.pages++;
    const data = Array.from({ length: Math.min(100, length - at) }, (_, i) => ({ n: at + i }));
    yield await Promise.resolve(
      { object: "list", url: "", data, has_more: at + 100 < length, next_cursor: null },
    );
  }
}

/** A file whose parts are counted. */
function countedFile(is_in_memory: boolean) {
  const counted = { rows: 0, ends: [] as string[] };
  const end = (name: string) => () => {
    counted.ends.push(name);
    return Promise.resolve();
  };
  const file: FileSink = {
    is_in_memory,
    write(part) {
      counted.rows += part.split("\r\n").length - 1;
      return Promise.resolve();
    },
    close: end("close"),
    discard: end("discard"),
  };
  return { file, counted };
}

/** The length of a list in rows, and the rows of its file in memory. */
const LENGTHS: [length: number, rows: number, is_cut: boolean][] = [
  [0, 0, false],
  [1, 1, false],
  [MAX_ROWS_IN_MEMORY, MAX_ROWS_IN_MEMORY, false],
  [MAX_ROWS_IN_MEMORY + 1, MAX_ROWS_IN_MEMORY, true],
];

for (const [length, rows, is_cut] of LENGTHS) {
  Deno.test(`writeCsv() of ${length} items in memory: ${rows} rows`, async () => {
    const { file, counted } = countedFile(true);
    const pages = pagesOf(length, { pages: 0 });
    const written = await writeCsv(file, pages, ["n"], () => {}, new AbortController().signal);
    assert.deepEqual(written, { rows, is_cut });
    assert.deepEqual(counted, { rows: rows + 1, ends: ["close"] });
  });
}

Deno.test("writeCsv() reads a page when the one before is written, and none after a stop", async () => {
  const { file, counted } = countedFile(false);
  const read = { pages: 0 };
  const stopping = new AbortController();
  const report = (rows: number) => {
    assert.equal(rows, read.pages * 100);
    if (rows === 300) stopping.abort();
  };
  const pages = pagesOf(100 * MAX_ROWS, read);
  assert.equal(await writeCsv(file, pages, ["n"], report, stopping.signal), null);
  assert.deepEqual([read.pages, counted.rows, counted.ends], [4, 301, ["discard"]]);
});

Deno.test("writeCsv() discards the file if a page cannot be read", async () => {
  const { file, counted } = countedFile(false);
  const broken = async function* (): AsyncGenerator<Page<object>> {
    yield* pagesOf(200, { pages: 0 });
    await Promise.reject(new Error("gone"));
  };
  const { signal } = new AbortController();
  await assert.rejects(writeCsv(file, broken(), ["n"], () => {}, signal), /gone/);
  assert.deepEqual(counted.ends, ["discard"]);
});
