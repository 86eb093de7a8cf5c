/**
 * One keep-alive HTTP/1.1 connection of the load generator: it writes prepared bytes and reads a
 * response. It only parses `Content-Length` and looks for the last chunk, so that the load takes
 * little CPU time from the server on the same machine.
 */

/** The parts of a response that a benchmark needs. */
export interface LoadResponse {
  status: number;
  /** Status line and headers. */
  head: string;
  /** With the lengths of its chunks, if it has chunks. */
  body: string;
}

const READ_BYTES = 64 * 1024;
const HEAD_END = "\r\n\r\n";
const LAST_CHUNK = "\r\n0\r\n\r\n";
/** Each byte is one character, so a length in bytes is a length in characters. */
const LATIN_1 = new TextDecoder("latin1");

/** A connection to a server on loopback. */
export class HttpConnection {
  readonly #conn: Deno.Conn;
  readonly #buffer = new Uint8Array(READ_BYTES);

  private constructor(conn: Deno.Conn) {
    this.#conn = conn;
  }

  /** Connects to 127.0.0.1. */
  static async open(port: number): Promise<HttpConnection> {
    const conn = await Deno.connect({ hostname: "127.0.0.1", port });
    conn.setNoDelay(true);
    return new HttpConnection(conn);
  }

  /** Sends a request and reads its complete response. Throws if the connection ends earlier. */
  async ask(request: Uint8Array): Promise<LoadResponse> {
    for (let sent = 0; sent < request.length;) {
      sent += await this.#conn.write(request.subarray(sent));
    }
    let text = "";
    for (;;) {
      const count = await this.#conn.read(this.#buffer);
      if (count === null) throw new Error("the connection ended before the response");
      text += LATIN_1.decode(this.#buffer.subarray(0, count));
      const head_end = text.indexOf(HEAD_END);
      if (head_end < 0) continue;
      const head = text.slice(0, head_end);
      const body_start = head_end + HEAD_END.length;
      const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
      if (length !== undefined) {
        if (text.length < body_start + Number(length)) continue;
      } else if (/\r\ntransfer-encoding: chunked/i.test(head)) {
        if (!text.endsWith(LAST_CHUNK)) continue;
      } else throw new Error("a response without a length");
      return { status: Number(text.slice(9, 12)), head, body: text.slice(body_start) };
    }
  }

  /** Closes the connection. A response that has not arrived is lost. */
  close(): void {
    this.#conn.close();
  }
}
