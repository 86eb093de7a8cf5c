/**
 * Reads an HTTP/1.1 answer as far as a webhook sender needs it: the status, `Retry-After`, and
 * where the answer ends, so that its connection can carry the next request.
 *
 * Holds at most 16 KiB of an answer, head and body together, and gives none of it out. Strict where
 * leniency lets two readers disagree about the end of an answer; an answer whose end is in doubt
 * still has its status, but its connection is not used again. Source: RFC 9112, contract §4.
 */

import { Buffer } from "node:buffer";

/** Most bytes of an answer that are read (contract §4). */
export const ANSWER_BYTES_MAX = 16 * 1024;

/** What is passed on as `Retry-After`: printable, and no longer than twice an HTTP date. */
const RETRY_AFTER = /^[ -~]{1,64}$/;

const STATUS_LINE = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: [^\0]*)?$/;
const HEADER_LINE = /^([!#$%&'*+.^_`|~0-9a-z-]+):[ \t]*(.*?)[ \t]*$/i;
const LINE_END = "\r\n";

/** The bytes are no HTTP/1.1 answer, or its head is longer than what is read. */
export class MalformedAnswerError extends Error {
  override readonly name = "MalformedAnswerError";
}

/** Header lines by their names in lower case. */
type HeaderLines = ReadonlyMap<string, string>;

/** How the end of a body is found (RFC 9112 §6.3). */
type Framing = "length" | "chunked" | "until_close";

/** Takes the bytes of one answer as they arrive. */
export class AnswerReader {
  /** The final status (never 1xx), once the head has been read. */
  status: number | undefined;
  /** `Retry-After` as sent, when there is one of sensible length. */
  retry_after: string | undefined;
  /** Nothing more is to be read: the answer has ended, or its end is not worth waiting for. */
  done = false;
  /** The answer ended where it said it would and the server keeps the connection. */
  reusable = false;
  /** Whether any byte has arrived. */
  started = false;

  /** Latin-1 text of the bytes not yet understood. */
  #rest = "";
  #bytes = 0;
  #framing: Framing = "until_close";
  #keep = false;
  /** Bytes of the body, or of the current chunk with its line end, still to come. */
  #missing = 0;
  #in_trailer = false;

  /**
   * Takes the next bytes.
   * @throws {MalformedAnswerError} as long as there is no status
   */
  push(bytes: Uint8Array): void {
    if (this.done || bytes.length === 0) return;
    this.started = true;
    const taken = bytes.subarray(0, ANSWER_BYTES_MAX - this.#bytes);
    this.#bytes += bytes.length;
    this.#rest += latin1(taken);
    while (this.status === undefined && this.#readHead());
    const full = this.#bytes >= ANSWER_BYTES_MAX;
    if (this.status === undefined) {
      if (full) throw new MalformedAnswerError(`the head is over ${ANSWER_BYTES_MAX} bytes`);
      return;
    }
    this.#readBody();
    if (full && !this.done) this.#end(false);
  }

  /** Reads one head; true when it was an interim one (1xx) and another follows. */
  #readHead(): boolean {
    const end = this.#rest.indexOf(LINE_END + LINE_END);
    if (end < 0) return false;
    const [first, ...lines] = this.#rest.slice(0, end).split(LINE_END);
    this.#rest = this.#rest.slice(end + 4);
    const start = STATUS_LINE.exec(first!);
    if (start === null) throw new MalformedAnswerError("no HTTP/1.1 status line");
    const status = Number(start[2]);
    if (status === 101) throw new MalformedAnswerError("switches protocols unasked");
    if (status < 200) return true;
    this.#readHeaders(status, start[1] === "1", readLines(lines));
    this.status = status;
    return false;
  }

  #readHeaders(status: number, keeps_by_default: boolean, headers: HeaderLines): void {
    const retry_after = headers.get("retry-after");
    if (retry_after !== undefined && RETRY_AFTER.test(retry_after)) this.retry_after = retry_after;
    const connection = (headers.get("connection") ?? "").toLowerCase();
    this.#keep = keeps_by_default && !/\bclose\b/.test(connection);
    const coding = headers.get("transfer-encoding");
    const length = headers.get("content-length");
    if (status === 204 || status === 304) {
      this.#framing = "length";
    } else if (coding !== undefined) {
      if (coding.toLowerCase() === "chunked") this.#framing = "chunked";
      // Both framings at once is how requests are smuggled (RFC 9112 §6.1).
      if (length !== undefined) this.#keep = false;
    } else if (length !== undefined && /^\d{1,15}$/.test(length)) {
      this.#framing = "length";
      this.#missing = Number(length);
    }
  }

  #readBody(): void {
    if (this.#framing === "length") {
      this.#skip();
      if (this.#missing === 0) this.#end(this.#rest === "");
    } else if (this.#framing === "chunked") {
      while (!this.done && this.#readChunk());
    } else {
      this.#rest = "";
    }
  }

  /** Reads one line or chunk of a chunked body; false when more bytes are needed. */
  #readChunk(): boolean {
    this.#skip();
    if (this.#missing > 0) return false;
    const end = this.#rest.indexOf(LINE_END);
    if (end < 0) return false;
    const line = this.#rest.slice(0, end);
    this.#rest = this.#rest.slice(end + 2);
    if (this.#in_trailer) {
      if (line === "") this.#end(this.#rest === "");
      return true;
    }
    const size = /^([0-9a-f]{1,8})(?:[ \t]*;.*)?$/i.exec(line)?.[1];
    if (size === undefined) this.#end(false);
    else if (Number.parseInt(size, 16) === 0) this.#in_trailer = true;
    else this.#missing = Number.parseInt(size, 16) + LINE_END.length;
    return true;
  }

  #skip(): void {
    const skipped = Math.min(this.#missing, this.#rest.length);
    this.#missing -= skipped;
    this.#rest = this.#rest.slice(skipped);
  }

  #end(clean: boolean): void {
    this.done = true;
    this.reusable = clean && this.#keep;
    this.#rest = "";
  }
}

/** Header lines by name; of a repeated header the values are joined, so that it fits no pattern. */
function readLines(lines: readonly string[]): HeaderLines {
  const headers = new Map<string, string>();
  for (const line of lines) {
    const match = HEADER_LINE.exec(line);
    if (match === null || /[\0\r\n]/.test(line)) throw new MalformedAnswerError("a bad header");
    const name = match[1]!.toLowerCase();
    const before = headers.get(name);
    headers.set(name, before === undefined ? match[2]! : `${before}, ${match[2]}`);
  }
  return headers;
}

/** One character per byte, so that positions in the text are positions in the bytes. */
function latin1({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString("latin1");
}
