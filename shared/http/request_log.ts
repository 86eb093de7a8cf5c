/**
 * Structured logs: one line per request, of an allow-list of fields. No header, body, path
 * parameter or message ever gets into it.
 */

/** What a log line may hold (security §2, leaks through logs). */
export interface LogLine {
  /** RFC 3339, UTC. */
  time: string;
  request_id: string;
  /** The API key's id once the database has named it. */
  key_id: string | null;
  /** Method and route template, never the path itself. */
  route: string;
  status: number;
  /** Milliseconds from the first middleware to the answer. */
  ms: number;
  /** The error's code, or null. */
  code: string | null;
  /** Only with `internal_error`: class and SQLSTATE of what was thrown. */
  fault?: string;
}

/** Writes a line to standard output. */
export function writeLogLine(line: LogLine): void {
  console.log(JSON.stringify(line));
}
