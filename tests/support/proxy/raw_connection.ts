/** HTTP/1.1 as bytes, over a connection that clients keep. */

/** A request: method and path, further headers, and the body. */
export interface RawRequest {
  line: string;
  headers?: Record<string, string>;
  body?: string;
}

/** Sends a first request over a new connection, and keeps it. */
export async function keepConnection(connection: Deno.Conn, first: RawRequest) {
  const kept = rawConnection(connection);
  const text = await kept.send(first);
  if (!/^HTTP\/1\.1 2/.test(text)) throw new Error(`The first response is ${text}`);
  return kept;
}

/** Writes requests to a connection. */
export function rawConnection(connection: Deno.Conn) {
  const buffer = new Uint8Array(65_536);
  return {
    /** Sends a request and returns its response as text; "" if none arrives. */
    async send({ line, headers = {}, body = "" }: RawRequest) {
      const lines = Object.entries({ Host: "localhost", "Content-Length": body.length, ...headers })
        .map(([name, value]) => `${name}: ${value}\r\n`);
      await connection.write(
        new TextEncoder().encode(`${line} HTTP/1.1\r\n${lines.join("")}\r\n${body}`),
      );
      let text = "";
      while (!isWhole(text)) {
        const length = await connection.read(buffer).catch(() => null);
        if (length === null) break;
        text += new TextDecoder().decode(buffer.subarray(0, length));
      }
      return text;
    },
    close: () => connection.close(),
  };
}

/** Tells whether a response of ASCII has arrived with its body. */
function isWhole(text: string): boolean {
  const [head, body] = text.split("\r\n\r\n", 2);
  const length = /^content-length: (\d+)$/im.exec(head!)?.[1];
  return body !== undefined && body.length >= Number(length ?? 0);
}
