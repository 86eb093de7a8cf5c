/**
 * Serves HTTP on a listener with limits that `Deno.serve` does not have: a timeout for the head of
 * a request, a timeout for idle connections, a maximum number of connections, and one request at a
 * time on each.
 *
 * It passes each connection to the internal function that `Deno.serve` uses, because this function
 * lets it close each connection (ADR 0024). shared/http enforces the
 * timeout for bodies.
 */

import { CONNECTIONS } from "../../../shared/jobs/places.ts";

export interface ConnectionLimits {
  /** Timeout from the connect until the head of the first request is complete. */
  head_ms: number;
  /** Timeout from the response to a request until the head of the next request is complete. */
  idle_ms: number;
  /** Maximum of open connections. A further one closes the connection that is idle longest. */
  connections: number;
}

/**
 * Limits of the local start. Browsers and HTTP clients keep idle connections for up to a minute.
 */
export const CONNECTION_LIMITS: ConnectionLimits = {
  head_ms: 10_000,
  idle_ms: 75_000,
  connections: CONNECTIONS,
};

/** What the handler of a request can do with its connection. */
export interface ConnectionInfo {
  /** Closes the connection. Its requests get no response. */
  loseConnection: () => void;
}

type Handler = (request: Request, info: ConnectionInfo) => Response | Promise<Response>;

interface ConnectionServer {
  /** Waits for the requests in flight, then accepts no new connection and closes the idle ones. */
  shutdown(): Promise<void>;
}

interface ServedConnection {
  finished: Promise<void>;
  shutdown(): Promise<void>;
}

type ServeConnection = (
  connection: Deno.Conn,
  signal: Cutter,
  handler: (request: Request) => Promise<Response>,
  onError: (error: unknown) => Response,
  onListen: () => void,
) => ServedConnection;

interface Connection {
  served: ServedConnection;
  cutter: Cutter;
  /** Whether the handler of a request has not ended. */
  is_busy: boolean;
  /** When it last became idle, in milliseconds of `performance.now()`. */
  waits_since: number;
}

/** Checks per timeout. A connection can exceed its timeout by one interval between checks. */
const CHECKS_PER_TIMEOUT = 10;
/** Pause after a failed accept, because the next one could fail at once. */
const ACCEPT_PAUSE_MS = 50;

/** Serves a listener until `shutdown`, or until the signal closes every connection. */
export function serveConnections(
  listener: Deno.TcpListener,
  limits: ConnectionLimits,
  signal: AbortSignal,
  handler: Handler,
): ConnectionServer {
  const connections = new OpenConnections(limits, handler);
  const accepting = accept(listener, connections);
  const timer = setInterval(
    () => connections.cutOverdue(),
    Math.min(limits.head_ms, limits.idle_ms) / CHECKS_PER_TIMEOUT,
  );
  signal.addEventListener("abort", () => connections.cutAll());
  return {
    async shutdown() {
      // Deno alone would fail the requests whose body is still arriving.
      await Promise.race([connections.untilIdle(), aborted(signal)]);
      listener.close();
      await accepting;
      await connections.shutdown(aborted(signal));
      clearInterval(timer);
    },
  };
}

async function accept(listener: Deno.TcpListener, connections: OpenConnections): Promise<void> {
  for (;;) {
    let connection: Deno.TcpConn;
    try {
      connection = await listener.accept();
    } catch (error) {
      if (error instanceof Deno.errors.BadResource) return;
      // The client has left. The next client must not wait for that.
      if (error instanceof Deno.errors.NotConnected) continue;
      // The process has no free file descriptor. Closing idle connections frees some.
      connections.cutIdle();
      await new Promise((resolve) => setTimeout(resolve, ACCEPT_PAUSE_MS));
      continue;
    }
    try {
      connections.add(connection);
    } catch (error) {
      // One connection ends no server.
      failed(error);
    }
  }
}

/**
 * Closes a connection. Deno takes it for an abort signal, of which it uses one method. With a real
 * signal the error of its listener, which it throws for a connection that has ended, would reach no
 * `catch` and end the process.
 */
class Cutter {
  #listener: (() => void) | undefined;

  addEventListener(_type: "abort", listener: () => void): void {
    this.#listener = listener;
  }

  /** Closes the connection, unless it has ended. */
  cut(): void {
    try {
      this.#listener!();
    } catch (error) {
      if (!(error instanceof Deno.errors.BadResource)) throw error;
    }
  }
}

class OpenConnections {
  readonly #limits: ConnectionLimits;
  readonly #handler: Handler;
  readonly #serve = findServeConnection();
  readonly #open = new Set<Connection>();
  // Connections without a request in flight, in the order in which they became idle. #fresh ones
  // have had no request yet and the timeout `head_ms`; #idle ones have the timeout `idle_ms`.
  readonly #fresh = new Set<Connection>();
  readonly #idle = new Set<Connection>();
  /** Requests whose handler has not ended, also those of closed connections. */
  #in_flight = 0;
  #onIdle = () => {};

  constructor(limits: ConnectionLimits, handler: Handler) {
    this.#limits = limits;
    this.#handler = handler;
  }

  /** Serves a connection. At the maximum, closes the longest idle one, or else the new one. */
  add(connection: Deno.TcpConn): void {
    if (this.#open.size >= this.#limits.connections) {
      const oldest = this.#longestWaiting();
      if (oldest === null) return connection.close();
      this.#cut(oldest);
    }
    try {
      connection.setNoDelay(true);
    } catch {
      // The client has reset it.
      return connection.close();
    }
    const cutter = new Cutter();
    const response = (request: Request) => this.#respond(one, request);
    const one: Connection = {
      cutter,
      is_busy: false,
      waits_since: performance.now(),
      served: this.#serve(connection, cutter, response, failed, () => {}),
    };
    this.#open.add(one);
    this.#fresh.add(one);
    one.served.finished.catch(() => {}).finally(() => this.#forget(one));
  }

  /** Closes the connections whose timeout has passed. */
  cutOverdue(): void {
    this.#cutWaiting(this.#fresh, this.#limits.head_ms);
    this.#cutWaiting(this.#idle, this.#limits.idle_ms);
  }

  /** Closes the connections that have had a request and have none in flight. */
  cutIdle(): void {
    this.#cutWaiting(this.#idle, 0);
  }

  /** Resolves when no request is in flight. */
  untilIdle(): Promise<void> {
    return new Promise((resolve) => {
      this.#onIdle = resolve;
      if (this.#in_flight === 0) resolve();
    });
  }

  /** Closes all connections. */
  cutAll(): void {
    for (const one of [...this.#open]) this.#cut(one);
  }

  /** Resolves when the requests in flight have ended, or when `deadline` resolves. */
  async shutdown(deadline: Promise<void>): Promise<void> {
    // Deno would wait for the rest of a head that has begun to arrive.
    for (const one of [...this.#fresh]) this.#cut(one);
    await Promise.all(
      [...this.#open].map(({ served }) =>
        Promise.race([served.shutdown().catch(() => {}), deadline])
      ),
    );
  }

  async #respond(one: Connection, request: Request): Promise<Response> {
    if (one.is_busy) {
      // Only HTTP/2 sends a request beside another one. No proxy or client that the documents name
      // speaks it without TLS, and the limits count connections.
      this.#cut(one);
      return new Response(null, { status: 503 });
    }
    one.is_busy = true;
    this.#in_flight++;
    this.#fresh.delete(one);
    this.#idle.delete(one);
    try {
      return await this.#handler(request, { loseConnection: () => this.#cut(one) });
    } finally {
      // The idle timeout also covers the sending of the response, so the connection of a client
      // that does not read is closed.
      one.is_busy = false;
      if (this.#open.has(one)) {
        one.waits_since = performance.now();
        this.#idle.add(one);
      }
      if (--this.#in_flight === 0) this.#onIdle();
    }
  }

  #longestWaiting(): Connection | null {
    const [[first_fresh], [first_idle]] = [this.#fresh, this.#idle];
    if (first_fresh === undefined || first_idle === undefined) {
      return first_fresh ?? first_idle ?? null;
    }
    return first_fresh.waits_since < first_idle.waits_since ? first_fresh : first_idle;
  }

  #cutWaiting(waiting: Set<Connection>, limit_ms: number): void {
    for (const one of waiting) {
      if (performance.now() - one.waits_since < limit_ms) return;
      this.#cut(one);
    }
  }

  #cut(one: Connection): void {
    this.#forget(one);
    one.cutter.cut();
  }

  #forget(one: Connection): void {
    for (const set of [this.#open, this.#fresh, this.#idle]) set.delete(one);
  }
}

/** Resolves when the signal is aborted, or at once if it is. */
function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve());
  });
}

function failed(error: unknown): Response {
  console.error(error);
  return new Response("Internal Server Error", { status: 500 });
}

/** Returns Deno's internal function that serves one connection. Throws if Deno does not have it. */
function findServeConnection(): ServeConnection {
  const { internal } = Deno as unknown as { internal: symbol };
  const internals = (Deno as unknown as Record<symbol, Record<string, unknown>>)[internal];
  const serve = internals?.["serveHttpOnConnection"];
  if (typeof serve !== "function") {
    throw new Error(`Deno ${Deno.version.deno} cannot run this server: use Deno 2.9.6`);
  }
  return serve as ServeConnection;
}
