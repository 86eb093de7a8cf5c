/**
 * Lists as CSV (RFC 4180). Texts of a list come from customers and from programs, and a spreadsheet
 * runs a cell that begins like a formula. Such a cell gets an apostrophe in front.
 */

import type { Page } from "../../../packages/client/mod.ts";
import { plainMinor } from "./money.ts";
import type { FileSink } from "./save_file.ts";

/**
 * A column of a file: the path of a member, such as `customer.email`. `amount_decimal` is the
 * amount of `amount_minor` in units of the currency.
 */
type Column = string;

/** Marks the file as UTF-8. Without it Excel reads it in the code page of the machine. */
const BYTE_ORDER_MARK = "\uFEFF";
const END_OF_ROW = "\r\n";
/** Separators of spreadsheets. In many languages Excel splits at a semicolon, even in quotes. */
const SEPARATORS = ";\\t\\r\\n";
/** Blanks, control characters and separators, which can stand in front of a formula. */
const BLANKS = `;\\s\\p{Cc}\\p{Cf}`;
/**
 * The signs that begin a formula: = + - @, every character that Unicode reads as one of them
 * (NFKC), and the minus sign, which some programs take in. Source: OWASP, CSV injection.
 */
const SIGNS = "=+\\-@＝＋－＠﹦﹢﹣﹫⁼⁺⁻₌₊₋−﬩";
/** The blanks before a sign. Each run of blanks is read once, so the time is linear. */
const BEFORE_SIGN = new RegExp(`(?<![${BLANKS}])[${BLANKS}]*(?=[${SIGNS}])`, "gu");
const EACH_SEPARATOR = new RegExp(`[${SEPARATORS}]`, "g");
/** A cell that begins like this can begin a formula in itself. Source: OWASP, CSV injection. */
const BEGINS_BADLY = /^[\t\r\n]/;
/** A cell with one of these characters needs quotes. */
const NEEDS_QUOTES = new RegExp(`[",${SEPARATORS}]`);

export function csvHead(columns: readonly Column[]): string {
  return BYTE_ORDER_MARK + csvRow(columns);
}

export function csvRows(columns: readonly Column[], items: readonly object[]): string {
  return items.map((item) => csvRow(columns.map((column) => valueOf(item, column)))).join("");
}

function csvRow(values: readonly unknown[]): string {
  return values.map(csvCell).join(",") + END_OF_ROW;
}

/** Returns a value as a cell. Nothing is an empty cell, and an object is JSON. */
export function csvCell(value: unknown): string {
  if (value === null || value === undefined) return "";
  // The sign of a number begins no formula.
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const harmless = withoutFormulas(text);
  return NEEDS_QUOTES.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}

/** Puts an apostrophe in front of each formula: at the beginning, and behind each separator. */
function withoutFormulas(text: string): string {
  const harmless = text.replace(
    BEFORE_SIGN,
    (blanks, at) => (at === 0 ? "'" : "") + blanks.replace(EACH_SEPARATOR, "$&'"),
  );
  return BEGINS_BADLY.test(harmless) ? `'${harmless}` : harmless;
}

function valueOf(item: object, column: Column): unknown {
  if (column === "amount_decimal") {
    const { amount_minor, currency } = item as { amount_minor: number; currency: string };
    return plainMinor(amount_minor, currency);
  }
  return column.split(".").reduce<unknown>(
    (value, name) => (value as Record<string, unknown> | null | undefined)?.[name],
    item,
  );
}

/** Most rows of a file that the browser holds in memory: about 20 MB. */
export const MAX_ROWS_IN_MEMORY = 50_000;
/** Most rows of a file that is written page by page. Excel shows 1 048 576. */
export const MAX_ROWS = 1_000_000;

export interface Exported {
  rows: number;
  /** Whether the list has more items than the file. */
  is_cut: boolean;
}

/** Writes the pages into the file. Returns null if it was stopped, and then there is no file. */
export async function writeCsv<T extends object>(
  file: FileSink,
  pages: AsyncIterable<Page<T>>,
  columns: readonly Column[],
  report: (rows: number) => void,
  stopping: AbortSignal,
): Promise<Exported | null> {
  const most = file.is_in_memory ? MAX_ROWS_IN_MEMORY : MAX_ROWS;
  let rows = 0;
  let is_cut = false;
  try {
    await file.write(csvHead(columns));
    for await (const { data, has_more } of pages) {
      if (stopping.aborted) {
        await file.discard();
        return null;
      }
      const kept = data.slice(0, most - rows);
      await file.write(csvRows(columns, kept));
      rows += kept.length;
      report(rows);
      is_cut = has_more || kept.length < data.length;
      if (rows === most) break;
    }
  } catch (error) {
    await file.discard();
    throw error;
  }
  await file.close();
  return { rows, is_cut };
}
