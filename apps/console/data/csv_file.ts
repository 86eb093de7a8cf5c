/** Writes the pages of a list into a CSV file, up to a limit of rows. */

import type { Page } from "../../../packages/client/mod.ts";
import { type Column, csvHead, csvRows } from "./csv.ts";
import type { FileSink } from "./save_file.ts";

/** Most rows of a file that the browser holds in memory: about 20 MB. */
export const MAX_ROWS_IN_MEMORY = 50_000;
/** Most rows of a file that is written page by page. Excel shows 1 048 576. */
export const MAX_ROWS = 1_000_000;

/** A written file. */
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
