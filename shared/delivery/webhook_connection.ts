/**
 * Connections to receivers of webhooks. Each goes to one address that the caller has checked; this
 * module resolves no names. TLS verifies the certificate for the host name of the URL.
 *
 * It uses `node:net` and `node:tls` because Deno and the edge runtime have both, they take address
 * and server name separately, and on Deno 2.9 they can abort a TLS handshake (ADR 0016). A pool
 * keeps connections for a few seconds after a complete response. Its key contains the address, so a
 * caller gets only connections to an address that it has checked again.
 */
import { isIP, type Socket } from "node:net";
import * as net from "node:net";
import * as tls from "node:tls";

/** Idle time after which the pool closes a connection: less than the 5 s of Node.js servers. */
const IDLE_MS_MAX = 4_000;

/** Age after which a connection is not reused, so that the pool notices a new certificate. */
const AGE_MS_MAX = 60_000;

/** Most idle connections in one pool. One for each concurrent delivery is enough. */
const IDLE_COUNT_MAX = 128;

/** Unread bytes after which the socket pauses. */
const BUFFERED_BYTES_MAX = 64 * 1024;

export interface ConnectTarget {
  /** A checked IP address, without brackets. */
  address: string;
  port: number;
  /** The host of the URL. The certificate must be valid for it. */
  host: string;
  /** True: TLS. False: plain TCP, for `http:`. */
  secure: boolean;
  /** Certificate authorities in PEM that replace those of the platform. Only tests set it. */
  ca_certs?: readonly string[];
}

export class WebhookConnection {
  readonly opened_at = performance.now();
  readonly #socket: Socket;
  readonly #chunks: Uint8Array[] = [];
  #buffered = 0;
  #closed = false;
  #wake: (() => void) | undefined;

  /** @param socket is connected and, with TLS, has completed the handshake */
  constructor(socket: Socket) {
    this.#socket = socket;
    const close = () => this.close();
    socket.on("data", (bytes: Uint8Array) => this.#take(bytes));
    socket.on("end", close);
    socket.on("close", close);
    socket.on("error", close);
  }

  /**
   * True if the connection can carry a request: it is open, holds no unread bytes, and has sent all
   * bytes. Otherwise a receiver that responds without reading could fill the memory of this
   * process.
   */
  get usable(): boolean {
    return !this.#closed && this.#buffered === 0 && this.#socket.writableLength === 0;
  }

  /** Queues bytes. Only `read` shows if they arrived. */
  write(bytes: Uint8Array): void {
    if (!this.#closed) this.#socket.write(bytes);
  }

  /** Waits for the next bytes. Returns null if the connection is closed, for any reason. */
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

  /** Closes at once and drops unsent bytes. A waiting `read` returns null. */
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
 * On Deno 2.1 this function does not notice an invalid certificate: there the connection closes at
 * the first write and sends no byte.
 * @param timeout_ms for TCP and TLS together
 * @returns null if the connection fails or takes too long
 * @throws {TypeError} if `address` is not an IP address
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
  // The platform would resolve a name itself, without a check of the address.
  if (isIP(address) === 0) throw new TypeError(`Cannot connect to "${address}": not an address`);
  const socket = secure
    ? tls.connect({
      host: address,
      port,
      // Without `servername` TLS verifies the certificate for the address.
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ...(ca_certs === undefined ? {} : { ca: [...ca_certs] }),
      // Explicit, so that no environment variable can turn it off.
      rejectUnauthorized: true,
      ALPNProtocols: ["http/1.1"],
    })
    : net.connect({ host: address, port });
  socket.setNoDelay(true);
  return socket;
}

/** Idle connections by target. The owner closes the pool at the end of the process or test. */
export class WebhookConnectionPool {
  readonly #idle = new Map<string, { connection: WebhookConnection; since: number }[]>();
  #count = 0;
  #sweep: ReturnType<typeof setTimeout> | undefined;
  #closed = false;

  /** Removes and returns a usable connection to this target, or undefined. */
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

  /** Keeps a connection after a complete response. If the pool is full, the oldest one closes. */
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

  /** Closes every idle connection. A connection in use closes when the caller puts it back. */
  close(): void {
    this.#closed = true;
    this.#closeIdle();
  }

  /** Closes the connection that has been idle longest. */
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
  // No host and no address contains a space.
  return `${secure} ${host} ${port} ${address} ${ca_certs ?? null}`;
}
