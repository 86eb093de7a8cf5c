/**
 * Reads the parts of an HTTP/1.1 response that a webhook sender needs: the status, `Retry-After`,
 * and the state of the connection for a next request.
 *
 * Reads at most 16 KiB of a response, head and body together, and keeps at most as many of its
 * first bytes as the caller asks for. llhttp finds the head and the end of the response in linear
 * time. If a response ends early or becomes malformed after its head, its status counts, but its
 * connection is not used again. Source: RFC 9112, contract §4, ADR 0016.
 */

import { type ResponseHead, ResponseParser } from "./llhttp.ts";

/** Most bytes of a response that are read (contract §4). */
export const RESPONSE_BYTES_MAX = 16 * 1024;

/** The accepted values of `Retry-After`: printable, at most about two HTTP dates long. */
const RETRY_AFTER = /^[ -~]{1,64}$/;

/** Thrown if the bytes are not an HTTP/1.1 response, or the head exceeds `RESPONSE_BYTES_MAX`. */
export class MalformedResponseError extends Error {
  override readonly name = "MalformedResponseError";
}

/** Parses the bytes of one response as they arrive. Call `close` after the last `push`. */
export class ResponseReader {
  /** The final status (never 1xx), once the head has been read. */
  status: number | undefined;
  /** `Retry-After` as sent, if there is exactly one and it matches `RETRY_AFTER`. */
  retry_after: string | undefined;
  /** True if the caller need not read more: the response has ended, or it exceeds the limit. */
  done = false;
  /** True if the response is complete and the server keeps the connection open. */
  reusable = false;
  /** True if any byte has arrived. */
  started = false;

  #parser!: ResponseParser;
  readonly #beginning: Uint8Array;
  #bytes = 0;
  #keeps_alive = false;
  /** The reason to refuse a head that llhttp accepts. */
  #refusal: string | undefined;

  private constructor(stored_bytes: number) {
    this.#beginning = new Uint8Array(stored_bytes);
  }

  /**
   * Creates a reader for one response.
   * @param stored_bytes how many of the first bytes `beginning` returns
   */
  static async open(stored_bytes = 0): Promise<ResponseReader> {
    const reader = new ResponseReader(stored_bytes);
    reader.#parser = await ResponseParser.open({
      header: "retry-after",
      onHead: (head) => reader.#takeHead(head),
      onEnd: () => reader.status !== undefined,
    });
    return reader;
  }

  /** The first bytes as they came, from the status line on. */
  get beginning(): Uint8Array {
    return this.#beginning.subarray(0, this.#bytes);
  }

  /** True if more bytes came than `beginning` has. */
  get exceeds_beginning(): boolean {
    return this.#bytes > this.#beginning.length;
  }

  /** Parses the next bytes. Throws `MalformedResponseError` only before the status is known. */
  push(bytes: Uint8Array): void {
    if (this.done || bytes.length === 0) return;
    this.started = true;
    const taken = bytes.subarray(0, RESPONSE_BYTES_MAX - this.#bytes);
    if (this.#bytes < this.#beginning.length) {
      this.#beginning.set(bytes.subarray(0, this.#beginning.length - this.#bytes), this.#bytes);
    }
    this.#bytes += bytes.length;
    const { outcome, length } = this.#parser.execute(taken);
    const is_full = this.#bytes >= RESPONSE_BYTES_MAX;
    if (this.status === undefined) this.#refuse(outcome === "malformed", is_full);
    else if (outcome !== "read" || is_full) {
      // Further bytes belong to no request, so the connection is not reused.
      this.reusable = outcome === "stopped" && length === bytes.length && this.#keeps_alive;
      this.close();
    }
  }

  /** Frees the parser. */
  close(): void {
    this.done = true;
    this.#parser.free();
  }

  #refuse(is_malformed: boolean, is_full: boolean): void {
    if (this.#refusal !== undefined) throw new MalformedResponseError(this.#refusal);
    if (is_malformed) throw new MalformedResponseError("no HTTP/1.1 response");
    if (is_full) throw new MalformedResponseError(`the head is over ${RESPONSE_BYTES_MAX} bytes`);
  }

  #takeHead({ status, major, keeps_alive, values }: ResponseHead): void {
    if (major !== 1) this.#refusal = "no HTTP/1.1 status line";
    else if (status < 100 || status > 599) this.#refusal = "no HTTP status";
    else if (status === 101) this.#refusal = "switches protocols unasked";
    if (this.#refusal !== undefined || status < 200) return;
    this.status = status;
    this.#keeps_alive = keeps_alive;
    const [value, ...others] = values.map((text) => text.trimEnd());
    // Two values can differ, so neither counts.
    if (others.length === 0 && value !== undefined && RETRY_AFTER.test(value)) {
      this.retry_after = value;
    }
  }
}
