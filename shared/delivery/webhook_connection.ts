/**
 * Connections to receivers of webhooks, each to one address that the caller has checked: nothing
 * here resolves names. TLS is verified for the receiver's name, whatever the address is.
 *
 * `node:net` and `node:tls` because they exist on Deno and on the edge runtime, take an address
 * and a server name apart from each other, and on Deno 2.9 give a socket back when the receiver
 * stalls inside the TLS handshake (ADR 0007 has the comparison). A pool keeps connections whose
 * answer ended cleanly for a few seconds; whoever takes one has to name its address again.
 */
import { isIP, type Socket } from "node:net";
import * as net from "node:net";
import * as tls from "node:tls";

/** Idle time after which a connection is closed: under the 5 s at which Node.js servers close. */
const IDLE_MS_MAX = 4_000;

/** Age after which a connection is not used again, so that a new certificate is seen. */
const AGE_MS_MAX = 60_000;

/** Idle connections in one pool; the oldest goes first. One per concurrent delivery is enough. */
const IDLE_COUNT_MAX = 128;

/** Bytes that wait for a reader before the socket is paused. */
const BUFFERED_BYTES_MAX = 64 * 1024;

/** Where to connect to and whom to expect there. */
export interface ConnectTarget {
  /** A checked IP address, without brackets. */
  address: string;
  port: number;
  /** The host of the URL: the name that the certificate must be valid for. */
  host: string;
  /** TLS, or plain TCP for `http:`. */
  secure: boolean;
  /** Certificate authorities in PEM in place of the platform's: tests only. */
  ca_certs?: readonly string[];
}

/** One open connection; it has no memory of requests. */
export class WebhookConnection {
  readonly opened_at = performance.now();
  readonly #socket: Socket;
  readonly #chunks: Uint8Array[] = [];
  #buffered = 0;
  #closed = false;
  #wake: (() => void) | undefined;

  /** @param socket connected, and past the TLS handshake where there is one */
  constructor(socket: Socket) {
    this.#socket = socket;
    const close = () => this.close();
    socket.on("data", (bytes: Uint8Array) => this.#take(bytes));
    socket.on("end", close);
    socket.on("close", close);
    socket.on("error", close);
  }

  /**
   * Whether it can carry a request: it is open, has no unrequested bytes, and all requests are sent.
   * A receiver that answers without reading would otherwise fill the memory of this process.
   */
  get usable(): boolean {
    return !this.#closed && this.#buffered === 0 && this.#socket.writableLength === 0;
  }

  /** Queues bytes; whether they arrive shows in `read`. */
  write(bytes: Uint8Array): void {
    if (!this.#closed) this.#socket.write(bytes);
  }

  /** The next bytes, or null when the connection is closed, by either side and for any cause. */
  async read(): Promise<Uint8Array | null> {
    while (this.#chunks.length === 0 && !this.#closed) {
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
    const bytes = this.#chunks.shift();
    if (bytes === undefined) return null;
    this.#buffered -= bytes.length;
    if (this.#socket.isPaused()) this.#socket.resume();
    return bytes;
  }

  /** Closes at once, without waiting for what is unsent; a waiting `read` gets null. */
  close(): void {
    if (!this.#closed) {
      this.#closed = true;
      this.#socket.destroy();
    }
    this.#wake?.();
  }

  #take(bytes: Uint8Array): void {
    this.#chunks.push(bytes);
    this.#buffered += bytes.length;
    if (this.#buffered > BUFFERED_BYTES_MAX) this.#socket.pause();
    this.#wake?.();
  }
}

/**
 * Opens a connection.
 *
 * On Deno 2.1 a certificate that fails does not show here: the connection closes at the first
 * write, before any byte of it is sent.
 * @param timeout_ms for TCP and TLS together
 * @returns null when it cannot be had in time, for whatever reason
 * @throws {TypeError} when `address` is not an IP address
 */
export function openConnection(
  target: ConnectTarget,
  timeout_ms: number,
): Promise<WebhookConnection | null> {
  return new Promise((resolve) => {
    const socket = dial(target);
    const fail = () => {
      clearTimeout(timer);
      socket.destroy();
      resolve(null);
    };
    const timer = setTimeout(fail, timeout_ms);
    socket.on("error", fail);
    socket.on("close", fail);
    socket.once(target.secure ? "secureConnect" : "connect", () => {
      clearTimeout(timer);
      socket.off("close", fail);
      socket.off("error", fail);
      resolve(new WebhookConnection(socket));
    });
  });
}

function dial({ address, port, host, secure, ca_certs }: ConnectTarget): Socket {
  // A name here would be resolved by the platform, unchecked.
  if (isIP(address) === 0) throw new TypeError(`Cannot connect to "${address}": not an address`);
  const socket = secure
    ? tls.connect({
      host: address,
      port,
      // Without a name the certificate is verified for the address itself.
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ...(ca_certs === undefined ? {} : { ca: [...ca_certs] }),
      // Said aloud, so that no environment variable can turn it off.
      rejectUnauthorized: true,
      ALPNProtocols: ["http/1.1"],
    })
    : net.connect({ host: address, port });
  socket.setNoDelay(true);
  return socket;
}

/** Idle connections by target; close it when the process or test is over. */
export class WebhookConnectionPool {
  readonly #idle = new Map<string, { connection: WebhookConnection; since: number }[]>();
  #count = 0;
  #sweep: ReturnType<typeof setTimeout> | undefined;
  #closed = false;

  /** A usable connection to exactly this target, or undefined. */
  take(target: ConnectTarget): WebhookConnection | undefined {
    const waiting = this.#idle.get(keyOf(target));
    while (waiting !== undefined && waiting.length > 0) {
      const { connection } = waiting.pop()!;
      this.#count--;
      if (connection.usable) return connection;
      connection.close();
    }
    return undefined;
  }

  /** Keeps a connection whose last answer ended cleanly. If the pool is full, the oldest one closes. */
  put(target: ConnectTarget, connection: WebhookConnection): void {
    const now = performance.now();
    const keeps = !this.#closed && connection.usable && now - connection.opened_at < AGE_MS_MAX;
    if (!keeps) return connection.close();
    if (this.#count >= IDLE_COUNT_MAX) this.#closeOldest();
    const key = keyOf(target);
    const waiting = this.#idle.get(key);
    if (waiting === undefined) this.#idle.set(key, [{ connection, since: now }]);
    else waiting.push({ connection, since: now });
    this.#count++;
    this.#sweep ??= setTimeout(() => this.#closeIdle(), IDLE_MS_MAX);
  }

  /** Closes every idle connection; those in use are closed when they come back. */
  close(): void {
    this.#closed = true;
    this.#closeIdle();
  }

  /** Closes the connection that has been idle longest, in favour of connections in use. */
  #closeOldest(): void {
    let oldest: { connection: WebhookConnection; since: number }[] | undefined;
    for (const waiting of this.#idle.values()) {
      const since = waiting[0]?.since ?? Infinity;
      if (since < (oldest?.[0]?.since ?? Infinity)) oldest = waiting;
    }
    oldest?.shift()?.connection.close();
    this.#count--;
  }

  #closeIdle(): void {
    clearTimeout(this.#sweep);
    this.#sweep = undefined;
    const oldest = this.#closed ? Infinity : performance.now() - IDLE_MS_MAX / 2;
    for (const [key, waiting] of this.#idle) {
      const kept = waiting.filter(({ connection, since }) => {
        const keep = since > oldest && connection.usable;
        if (!keep) connection.close();
        return keep;
      });
      this.#count -= waiting.length - kept.length;
      if (kept.length === 0) this.#idle.delete(key);
      else this.#idle.set(key, kept);
    }
    if (this.#idle.size > 0) this.#sweep = setTimeout(() => this.#closeIdle(), IDLE_MS_MAX / 2);
  }
}

function keyOf({ address, port, host, secure, ca_certs }: ConnectTarget): string {
  return JSON.stringify([secure, host, port, address, ca_certs ?? null]);
}
