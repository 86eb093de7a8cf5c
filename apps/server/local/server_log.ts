/**
 * Writes the log lines of the functions to a file, so that the terminal shows only messages for
 * the user. Lines are buffered and written in batches, because a write per line would slow down
 * each request. A killed process can lose its last lines. Several processes can write one file.
 */

interface ServerLog {
  write(line: string): void;
  /** Writes the buffered lines and closes the file. */
  close(): void;
}

/** Time from the first buffered line until the batch is written. */
const FLUSH_MS = 100;
/** At this size the file is renamed to `<path>.1`, which replaces an older one. */
const MAX_BYTES = 64 * 1024 * 1024;

/** Opens the file for appending and creates it with mode 600 if it is missing. */
export function openServerLog(path: string): ServerLog {
  const encoder = new TextEncoder();
  let file = open(path);
  let gathered: string[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const flush = () => {
    timer = undefined;
    const bytes = encoder.encode(gathered.join(""));
    gathered = [];
    try {
      for (let at = 0; at < bytes.length;) at += file.writeSync(bytes.subarray(at));
      const { size, ino } = file.statSync();
      const is_renamed = Deno.statSync(path).ino !== ino;
      if (size < MAX_BYTES && !is_renamed) return;
      if (!is_renamed) Deno.renameSync(path, `${path}.1`);
      file.close();
      file = open(path);
    } catch {
      // If the disk is full, log lines are lost and the service continues.
    }
  };
  return {
    write(line) {
      gathered.push(line, "\n");
      timer ??= setTimeout(flush, FLUSH_MS);
    },
    close() {
      clearTimeout(timer);
      flush();
      file.close();
    },
  };
}

/** Redirects the output of `console` to the log. */
export function redirectConsole(log: ServerLog): void {
  const textOf = (value: unknown) =>
    typeof value === "string" ? value : Deno.inspect(value, { colors: false });
  for (const method of ["debug", "log", "info", "warn", "error"] as const) {
    console[method] = (...values: unknown[]) => log.write(values.map(textOf).join(" "));
  }
}

function open(path: string): Deno.FsFile {
  return Deno.openSync(path, { append: true, create: true, mode: 0o600 });
}
