/**
 * Log lines of the functions in a file, so that the terminal shows what a person needs and no
 * more. Lines are gathered and written together: one write per line would cost more than the
 * line is worth. The last lines of a killed process may be missing; nothing relies on them.
 */

/** A file that takes lines. */
interface ServerLog {
  write(line: string): void;
  /** Writes what is gathered and closes the file. */
  close(): void;
}

/** Lines are written together at most this often. */
const FLUSH_MS = 100;
/** Beyond this the file becomes `<path>.1`, replacing an older one. */
const MAX_BYTES = 64 * 1024 * 1024;

/** Opens the file for appending, mode 600. */
export function openServerLog(path: string): ServerLog {
  const encoder = new TextEncoder();
  let file = open(path);
  let size = file.statSync().size;
  let gathered: string[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const flush = () => {
    timer = undefined;
    const bytes = encoder.encode(gathered.join(""));
    gathered = [];
    try {
      for (let at = 0; at < bytes.length;) at += file.writeSync(bytes.subarray(at));
      size += bytes.length;
      if (size < MAX_BYTES) return;
      Deno.renameSync(path, `${path}.1`);
      file.close();
      file = open(path);
      size = 0;
    } catch {
      // A full disk costs log lines, not the service.
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

/** Sends everything that is printed through `console` to the log instead. */
export function redirectConsole(log: ServerLog): void {
  for (const method of ["debug", "log", "info", "warn", "error"] as const) {
    console[method] = (...values: unknown[]) => log.write(values.map(asText).join(" "));
  }
}

function open(path: string): Deno.FsFile {
  return Deno.openSync(path, { append: true, create: true, mode: 0o600 });
}

function asText(value: unknown): string {
  return typeof value === "string" ? value : Deno.inspect(value, { colors: false });
}
