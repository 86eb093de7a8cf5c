/** The result of the import of a file, as the command and the bridge report it. Pure. */

import type { ImportedFile } from "./import_bank_file.ts";

export interface FileResult {
  file: string;
  result: "applied" | "unchanged" | "refused";
  entries: number;
  details: number;
  /** Provider events that have moved money in the ledger. */
  booked: number;
  /** Provider events that an operator has to look at. */
  exceptions: number;
  warnings: string[];
  error: string | null;
}

/** An imported file. Not new: it was imported before, with this result. */
export interface Imported {
  imported: ImportedFile;
  is_new: boolean;
}

export function resultOf(
  file: string,
  { imported: { entries, details, warnings }, is_new }: Imported,
  { booked, exceptions }: Pick<FileResult, "booked" | "exceptions">,
): FileResult {
  const result = is_new ? "applied" : "unchanged";
  return { file, result, entries, details, booked, exceptions, warnings, error: null };
}

export function refusedResult(file: string, error: string): FileResult {
  const nothing = { entries: 0, details: 0, booked: 0, exceptions: 0, warnings: [] };
  return { file, result: "refused", ...nothing, error };
}
