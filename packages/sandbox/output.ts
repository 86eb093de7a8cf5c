/** The output of commands: a line for each object, or with `--json` what the API sends. */

import type { Page } from "../client/mod.ts";
import { type Option, type Surroundings, textOf, type Values, wholeNumberOf } from "./command.ts";

/** Items of a page that the API allows (contract §5). */
const MAX_PAGE = 100;

/** Options of every list. */
export const PAGE_OPTIONS: Readonly<Record<string, Option>> = {
  limit: { value: "N", help: `items of the page, 1 to ${MAX_PAGE} (10)` },
  "starting-after": { value: "CURSOR", help: "go on behind this item" },
};

/** Returns the parameters of a page. The API checks the cursor. */
export function pageOf(values: Values) {
  return {
    limit: wholeNumberOf(values, "limit", 1, MAX_PAGE),
    starting_after: textOf(values, "starting-after"),
  };
}

/** Prints the result of a command: as a text for people, or with `--json` as it is. */
export function printResult<T>(
  result: T,
  describe: (result: T) => string,
  values: Values,
  { print }: Surroundings,
): void {
  print(`${values["json"] ? jsonText(result) : describe(result)}\n`);
}

export function jsonText(result: unknown): string {
  return JSON.stringify(result, null, 2);
}

/**
 * Prints a page: a line for each item, newest first, or with `--json` the page. A message says how
 * the list goes on.
 */
export function printPage<T>(
  page: Page<T>,
  toLine: (item: T) => string,
  values: Values,
  surroundings: Surroundings,
): void {
  if (values["json"]) return printResult(page, () => "", values, surroundings);
  if (page.data.length === 0) surroundings.printMessage("The list is empty");
  for (const item of page.data) surroundings.print(`${toLine(item)}\n`);
  if (page.next_cursor !== null) {
    surroundings.printMessage(`More: --starting-after ${page.next_cursor}`);
  }
}
