/**
 * A TCP proxy that makes faults by a seed: it cuts connections, delays bytes, or passes half of a
 * response and then cuts. It can also freeze: then no byte passes, and connections stay open.
 */

import { type Random, randomOf } from "./random.ts";

/** Probability of each fault for a chunk of bytes, 0 to 1. */
export interface FaultRates {
  /** Closes both sides. */
  reset: number;
  /** Delays the bytes by `stall_ms`. */
  stall: number;
  /** Passes half of the target's bytes, then closes both sides. */
  halve: number;
  stall_ms: readonly [min: number, max: number];
}

/** Numbers of connections and faults. */
export interface FaultCounts {
  connections: number;
  reset: number;
  stall: number;
  halve: number;
}

/** The options of a proxy. */
interface ProxyOptions {
  target_port: number;
  seed?: number;
  /** Makes two proxies with the same seed differ. */
  name?: string;
  rates?: FaultRates;
}

const HOSTNAME = "127.0.0.1";
const CHUNK_BYTES = 64 * 1024;

/** An open proxy on loopback. */
export class TcpProxy {
  readonly port: number;
  readonly counts: FaultCounts = { connections: 0, reset: 0, stall: 0, halve: 0 };
  readonly #options: ProxyOptions;
  readonly #listener: Deno.TcpListener;
  readonly #open = new Set<Deno.Conn>();
  #rates: FaultRates | null;
  #frozen: { until: Promise<void>; end: () => void } | null = null;

  constructor(options: ProxyOptions) {
    this.#options = options;
    this.#rates = options.rates ?? null;
    this.#listener = Deno.listen({ hostname: HOSTNAME, port: 0 });
    this.port = this.#listener.addr.port;
    this.#accept();
  }

  /** Stops making faults. */
  calm(): void {
    this.#rates = null;
  }

  /** Lets no byte pass until `thaw`; accepts connections. */
  freeze(): void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#frozen = { until: promise, end: resolve };
  }

  /** Ends a freeze. The delayed bytes pass. */
  thaw(): void {
    this.#frozen?.end();
    this.#frozen = null;
  }

  /** Closes the proxy and its connections. */
  close(): void {
    this.thaw();
    this.#listener.close();
    for (const connection of this.#open) shut(connection);
  }

  async #accept(): Promise<void> {
    try {
      for await (const client of this.#listener) this.#serve(client, this.counts.connections++);
    } catch {
      // The listener is closed.
    }
  }

  async #serve(client: Deno.TcpConn, number: number): Promise<void> {
    this.#open.add(client);
    let target: Deno.TcpConn | undefined;
    try {
      target = await Deno.connect({ hostname: HOSTNAME, port: this.#options.target_port });
      this.#open.add(target);
      client.setNoDelay();
      target.setNoDelay();
      const { seed = 0, name = "" } = this.#options;
      const cut = () => {
        shut(client);
        shut(target!);
      };
      await Promise.all([
        this.#pass(client, target, randomOf(seed, name, number, "up"), cut, false),
        this.#pass(target, client, randomOf(seed, name, number, "down"), cut, true),
      ]);
    } catch {
      // The target does not respond, or one side has ended. The `finally` block closes both.
    } finally {
      for (const connection of [client, target]) {
        if (connection === undefined) continue;
        this.#open.delete(connection);
        shut(connection);
      }
    }
  }

  async #pass(
    from: Deno.TcpConn,
    to: Deno.TcpConn,
    random: Random,
    cut: () => void,
    is_response: boolean,
  ): Promise<void> {
    const buffer = new Uint8Array(CHUNK_BYTES);
    for (;;) {
      const size = await from.read(buffer);
      if (size === null) return cut();
      let bytes = buffer.subarray(0, size);
      if (this.#frozen) await this.#frozen.until;
      const rates = this.#rates;
      if (rates !== null) {
        if (random.chance(rates.reset)) {
          this.counts.reset++;
          return cut();
        }
        if (random.chance(rates.stall)) {
          this.counts.stall++;
          await pause(random.integer(...rates.stall_ms));
        }
        if (is_response && random.chance(rates.halve)) {
          this.counts.halve++;
          bytes = bytes.subarray(0, size >> 1);
          await writeAll(to, bytes);
          return cut();
        }
      }
      await writeAll(to, bytes);
    }
  }
}

async function writeAll(to: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let sent = 0; sent < bytes.length;) sent += await to.write(bytes.subarray(sent));
}

function shut(connection: Deno.Conn): void {
  try {
    connection.close();
  } catch {
    // The connection is closed already.
  }
}

function pause(delay_ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, delay_ms));
}
