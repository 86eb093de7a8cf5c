/**
 * Files that the page saves. Where the browser has the File System Access API, the page writes a
 * file part by part. Other browsers hold the whole file in memory until it is complete.
 */

export interface FileSink {
  /** Whether the parts are in memory until `close`. */
  is_in_memory: boolean;
  write(part: string): Promise<void>;
  close(): Promise<void>;
  discard(): Promise<void>;
}

/** The part of the File System Access API that the page uses. Chromium has it. */
type ShowSaveFilePicker = (options: {
  suggestedName: string;
  types: { accept: Record<string, string[]> }[];
}) => Promise<{
  createWritable(): Promise<
    { write(part: string): Promise<void>; close(): Promise<void>; abort(): Promise<void> }
  >;
}>;

export function saveText(name: string, type: string, ...parts: string[]): void {
  const url = URL.createObjectURL(new Blob(parts, { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}

/** Opens a CSV file, after a click. Returns null if the user has chosen no file. */
export async function openCsvFile(name: string): Promise<FileSink | null> {
  const { showSaveFilePicker } = globalThis as { showSaveFilePicker?: ShowSaveFilePicker };
  if (showSaveFilePicker === undefined) return inMemory(name);
  try {
    const types = [{ accept: { "text/csv": [".csv"] } }];
    const handle = await showSaveFilePicker.call(globalThis, { suggestedName: name, types });
    const file = await handle.createWritable();
    return {
      is_in_memory: false,
      write: (part) => file.write(part),
      close: () => file.close(),
      discard: () => file.abort(),
    };
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") return null;
    // A frame, or a policy of the browser, can forbid the dialog.
    if (error instanceof DOMException && error.name === "SecurityError") return inMemory(name);
    throw error;
  }
}

function inMemory(name: string): FileSink {
  const parts: string[] = [];
  return {
    is_in_memory: true,
    write(part) {
      parts.push(part);
      return Promise.resolve();
    },
    close() {
      saveText(name, "text/csv;charset=utf-8", ...parts);
      return Promise.resolve();
    },
    discard: () => Promise.resolve(),
  };
}
