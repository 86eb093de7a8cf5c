/**
 * A receiver of webhooks on loopback that responds with raw bytes, so that a test can imitate every
 * fault of a customer's server. It counts its connections and keeps the requests that it has read.
 */

/** Responds to a complete request on its connection. */
export type Respond = (conn: Deno.Conn, request: Uint8Array) => Promise<void> | void;

/** A certificate and its key in PEM. */
interface Certificate {
  cert: string;
  key: string;
}

/** An open receiver; `close` ends it and every connection. */
interface LoopbackReceiver {
  port: number;
  connections: number;
  requests: Uint8Array[];
  close: () => Promise<void>;
}

/** Starts a receiver that calls `respond` for every complete request. */
export function openReceiver(
  respond: Respond,
  certificate?: Certificate,
  hostname = "127.0.0.1",
): LoopbackReceiver {
  const where = { port: 0, hostname };
  const listener: Deno.Listener = certificate === undefined
    ? Deno.listen(where)
    : Deno.listenTls({ ...where, ...certificate });
  const open = new Set<Deno.Conn>();
  const work: Promise<void>[] = [];
  const receiver: LoopbackReceiver = {
    port: (listener.addr as Deno.NetAddr).port,
    connections: 0,
    requests: [],
    close: async () => {
      listener.close();
      for (const conn of open) closeQuietly(conn);
      await Promise.all(work);
    },
  };
  work.push(accept());
  return receiver;

  async function accept(): Promise<void> {
    for (;;) {
      const conn = await listener.accept().catch((error) =>
        error instanceof Deno.errors.BadResource || error instanceof Deno.errors.Interrupted
          ? null
          : undefined
      );
      if (conn === null) return;
      if (conn === undefined) continue;
      receiver.connections++;
      open.add(conn);
      work.push(serve(conn));
    }
  }

  async function serve(conn: Deno.Conn): Promise<void> {
    try {
      for (;;) {
        const request = await readRequest(conn);
        if (request === null) break;
        receiver.requests.push(request);
        await respond(conn, request);
      }
    } catch {
      // The sender closed the connection, or the test did.
    } finally {
      open.delete(conn);
      closeQuietly(conn);
    }
  }
}

/** Returns a response that sends this text. */
export function say(text: string): Respond {
  return async (conn) => {
    await writeAll(conn, new TextEncoder().encode(text));
  };
}

/** Writes all of the bytes. */
export async function writeAll(conn: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let sent = 0; sent < bytes.length;) sent += await conn.write(bytes.subarray(sent));
}

/** Reads a head and `Content-Length` bytes of body. Returns null if the connection ends before. */
async function readRequest(conn: Deno.Conn): Promise<Uint8Array | null> {
  let held = new Uint8Array(0);
  const buffer = new Uint8Array(65536);
  for (;;) {
    const text = new TextDecoder("latin1").decode(held);
    const end = text.indexOf("\r\n\r\n");
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(text)?.[1] ?? 0);
    if (end >= 0 && held.length >= end + 4 + length) return held;
    const count = await conn.read(buffer);
    if (count === null) return null;
    const grown = new Uint8Array(held.length + count);
    grown.set(held);
    grown.set(buffer.subarray(0, count), held.length);
    held = grown;
  }
}

function closeQuietly(conn: Deno.Conn): void {
  try {
    conn.close();
  } catch {
    // The connection is closed already.
  }
}
