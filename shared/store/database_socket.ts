/**
 * Sockets to the database with TLS, for the driver. postgres.js 3.4.9 cannot open a TLS connection
 * on Deno 2.1.4, the language level of the edge runtime, because upgrading a socket to TLS hangs
 * there (denoland/deno#28526). So this module makes the TLS connection and passes it to the driver
 * (ADR 0007).
 *
 * It always verifies the certificate of the server, against the authorities of the runtime and the
 * operator's own one.
 */

import { Buffer } from "node:buffer";
import { Duplex } from "node:stream";
import type { EncryptionMode } from "./database_encryption.ts";

interface DriverOptions {
  host: string[];
  port: number[];
}

/** The SSLRequest message: length 8, code 80877103 (PostgreSQL, "Message Formats"). */
const SSL_REQUEST = new Uint8Array([0, 0, 0, 8, 4, 210, 22, 47]);
const YES = "S".charCodeAt(0);
const READ_BYTES = 64 * 1024;

/** The server has no TLS or no valid certificate, which the URL requires. */
class EncryptionFailed extends Error {
  override readonly name = "EncryptionFailed";
}

/**
 * Returns the `socket` option of the driver.
 * @param authority an additional certificate authority in PEM
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
    const response = new Uint8Array(1);
    if (await plain.read(response) === null) throw new Deno.errors.ConnectionReset("no response");
    if (response[0] !== YES) {
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
    // The certificate is invalid. Like libpq, `prefer` then connects without TLS.
    if (!is_required) return await connect(hostname, port);
    throw new EncryptionFailed(error.message);
  }
}

async function connect(hostname: string, port: number): Promise<Deno.TcpConn> {
  const connection = await Deno.connect({ hostname, port });
  connection.setNoDelay();
  return connection;
}

/** A stream over a connection that is being opened. Earlier writes wait. */
class DatabaseSocket extends Duplex {
  readonly #opened: Promise<Deno.Conn>;
  readonly #buffer = new Uint8Array(READ_BYTES);

  constructor(open: () => Promise<Deno.Conn>) {
    super({ allowHalfOpen: false });
    this.#opened = open();
    this.#opened.catch((error) => this.destroy(asLost(error, "ECONNREFUSED")));
  }

  /** The driver reads it before it sends its last message. */
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
    // A connection that is still being opened closes later, and nothing waits for that.
    this.#opened.then((connection) => connection.close()).catch(() => {});
    done(error);
  }
}

/** Adds an error code to an error of the connection, as the sockets of Node.js do. */
function asLost(error: unknown, code = "ECONNRESET"): Error {
  if (error instanceof EncryptionFailed) return error;
  const { code: own, message } = error as { code?: unknown; message: string };
  return Object.assign(new Error(message), { code: typeof own === "string" ? own : code });
}
