/** The button that saves the filtered items of a list as a CSV file, page by page. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { ListParams, Page } from "../../../packages/client/mod.ts";
import { MAX_PAGE } from "../../../shared/schema/limits.ts";
import { type Call, readPages } from "../data/calls.ts";
import { type Exported, writeCsv } from "../data/csv.ts";
import { failureOf } from "../data/failure.ts";
import { showFlash } from "../data/flash.ts";
import { openCsvFile } from "../data/save_file.ts";

/**
 * The button.
 * @param props.noun the items in the plural, for the name of the file and the messages
 * @param props.read the list with its filters; null: the filters cannot be applied
 */
export function ExportButton<T extends object>(props: {
  noun: string;
  read: ((params: ListParams) => Call<Page<T>>) | null;
  /** The columns of the file, separated by spaces. */
  columns: string;
}) {
  const { noun, read, columns } = props;
  const [rows, setRows] = useState<number | null>(null);
  const running = useRef<AbortController | null>(null);
  // Another page, and another sandbox, end the export.
  useEffect(() => () => running.current?.abort(), []);
  if (read === null) return null;

  const start = async () => {
    const stopping = running.current = new AbortController();
    try {
      const name = `${noun.replaceAll(" ", "-")}-${new Date().toISOString().slice(0, 10)}.csv`;
      const file = await openCsvFile(name);
      if (file === null) return;
      setRows(0);
      const pages = readPages(read({ limit: MAX_PAGE }));
      const exported = await writeCsv(file, pages, columns.split(" "), setRows, stopping.signal);
      showFlash(
        exported === null ? "The export was stopped. There is no file." : textOf(exported, noun),
        exported === null ? "bad" : "good",
      );
    } catch (error) {
      const { message, code } = failureOf(error);
      if (!stopping.signal.aborted) showFlash(`No file: ${message}`, "bad", code ?? undefined);
    } finally {
      running.current = null;
      setRows(null);
    }
  };
  const click = () => running.current === null ? start() : running.current.abort();
  return (
    <button type="button" class="plain" onClick={click}>
      {rows === null ? "Export CSV" : `Stop: ${rows.toLocaleString("en")} exported`}
    </button>
  );
}

function textOf({ rows, is_cut }: Exported, noun: string): string {
  const count = rows.toLocaleString("en");
  return is_cut
    ? `Exported the newest ${count} ${noun}. There are more: narrow the filters.`
    : `Exported ${count} ${noun}.`;
}
