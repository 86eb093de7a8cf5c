/**
 * A connection to the database over TLS. postgres.js 3.4.9 cannot make one on Deno 2.1.4, the
 * language level of the edge runtime: its change of a used socket to TLS never ends there
 * (denoland/deno#28526). So it is given this socket, which has done that already.
 *
 * The server's certificate is checked wherever it is used: by the authorities that the runtime trusts
 * and, where one is given, one more.
 */

import { Buffer } from "node:buffer";
import { Duplex } from "node:stream";
import type { EncryptionMode } from "./database_encryption.ts";

/** What of the driver's options it is told. */
interface DriverOptions {
  host: string[];
  port: number[];
}

/** "Do you speak TLS?": length 8, code 80877103 (PostgreSQL, "Message Formats"). */
const SSL_REQUEST = new Uint8Array([0, 0, 0, 8, 4, 210, 22, 47]);
const YES = "S".charCodeAt(0);
const READ_BYTES = 64 * 1024;

/** The server's certificate, or its lack of TLS, is not what the URL asks for. */
class EncryptionFailed extends Error {
  override readonly name = "EncryptionFailed";
}

/**
 * The driver's `socket` option.
 * @param authority PEM of one more authority
 */
export function encryptedSockets(mode: EncryptionMode, authority?: string) {
  const is_required = mode !== "prefer";
  return ({ host, port }: DriverOptions): Duplex =>
    new DatabaseSocket(() => open(host[0]!, port[0]!, is_required, authority));
}

async function open(
  hostname: string,
  port: number,
  is_required: boolean,
  authority?: string,
): Promise<Deno.Conn> {
  const plain = await connect(hostname, port);
  try {
    await plain.write(SSL_REQUEST);
    const answer = new Uint8Array(1);
    if (await plain.read(answer) === null) throw new Deno.errors.ConnectionReset("no answer");
    if (answer[0] !== YES) {
      if (!is_required) return plain;
      throw new EncryptionFailed("the database server does not speak TLS");
    }
  } catch (error) {
    plain.close();
    throw error;
  }
  const caCerts = authority === undefined ? [] : [authority];
  const encrypted = await Deno.startTls(plain, { hostname, caCerts });
  try {
    await encrypted.handshake();
    return encrypted;
  } catch (error) {
    encrypted.close();
    if (!(error instanceof Deno.errors.InvalidData)) throw error;
    // Not to be trusted: libpq's `prefer` goes on without TLS then, too.
    if (!is_required) return await connect(hostname, port);
    throw new EncryptionFailed(error.message);
  }
}

async function connect(hostname: string, port: number): Promise<Deno.TcpConn> {
  const connection = await Deno.connect({ hostname, port });
  connection.setNoDelay();
  return connection;
}

/** A stream over a connection that is being opened; what is written meanwhile waits. */
class DatabaseSocket extends Duplex {
  readonly #opened: Promise<Deno.Conn>;
  readonly #buffer = new Uint8Array(READ_BYTES);

  constructor(open: () => Promise<Deno.Conn>) {
    super({ allowHalfOpen: false });
    this.#opened = open();
    this.#opened.catch((error) => this.destroy(asLost(error, "ECONNREFUSED")));
  }

  /** What the driver looks at before it says goodbye. */
  get readyState(): "open" | "closed" {
    return this.destroyed ? "closed" : "open";
  }

  override _read(): void {
    this.#opened.then(async (connection) => {
      const length = await connection.read(this.#buffer);
      this.push(length === null ? null : Buffer.from(this.#buffer.subarray(0, length)));
    }).catch((error) => this.destroy(asLost(error)));
  }

  override _write(bytes: Uint8Array, _coding: string, done: (error?: Error) => void): void {
    this.#opened.then(async (connection) => {
      for (let sent = 0; sent < bytes.length;) sent += await connection.write(bytes.subarray(sent));
      done();
    }).catch((error) => done(asLost(error)));
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    // One that is still being opened is closed when it is open: nobody waits for it.
    this.#opened.then((connection) => connection.close()).catch(() => {});
    done(error);
  }
}

/** An error of the connection with a code that says so, as those of node's sockets have. */
function asLost(error: unknown, code = "ECONNRESET"): Error {
  if (error instanceof EncryptionFailed) return error;
  const { code: own, message } = error as { code?: unknown; message: string };
  return Object.assign(new Error(message), { code: typeof own === "string" ? own : code });
}
