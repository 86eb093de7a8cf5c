/**
 * A TCP proxy that makes faults by a seed: it cuts connections, delays bytes, or passes half of a
 * response and then cuts. It can also freeze: then no byte passes, and connections stay open.
 */

import { type Random, randomOf } from "../core/random.ts";
import { pause } from "../common/until.ts";

/** Probability of each fault for a chunk of bytes, 0 to 1. */
interface FaultRates {
  /** Closes both sides. */
  reset: number;
  /** Delays the bytes by `stall_ms`. */
  stall: number;
  /** Passes half of the target's bytes, then closes both sides. */
  halve: number;
  stall_ms: readonly [min: number, max: number];
}

/** Numbers of faults. */
export type FaultCounts = Record<"reset" | "stall" | "halve", number>;

/** The options of a proxy. `name` makes two proxies with the same seed differ. */
interface ProxyOptions {
  target_port: number;
  seed?: number;
  name?: string;
  rates?: FaultRates;
}

const HOSTNAME = "127.0.0.1";
const CHUNK_BYTES = 64 * 1024;

/** An open proxy on loopback. */
export class TcpProxy {
  readonly port: number;
  readonly counts: FaultCounts = { reset: 0, stall: 0, halve: 0 };
  readonly #options: ProxyOptions;
  readonly #listener: Deno.TcpListener;
  readonly #open = new Set<Deno.Conn>();
  #connections = 0;
  #rates: FaultRates | null;
  #frozen: PromiseWithResolvers<void> | null = null;

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
    this.#frozen = Promise.withResolvers();
  }

  /** Ends a freeze. The delayed bytes pass. */
  thaw(): void {
    this.#frozen?.resolve();
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
      for await (const client of this.#listener) this.#serve(client, this.#connections++);
    } catch {
      // The listener is closed.
    }
  }

  async #serve(client: Deno.TcpConn, number: number): Promise<void> {
    const both: Deno.TcpConn[] = [client];
    this.#open.add(client);
    const cut = () => both.forEach(shut);
    try {
      const { target_port: port, seed = 0, name = "" } = this.#options;
      const target = await Deno.connect({ hostname: HOSTNAME, port });
      both.push(target);
      this.#open.add(target);
      for (const connection of both) connection.setNoDelay();
      await Promise.all([
        this.#pass(client, target, randomOf(seed, name, number, "up"), cut, false),
        this.#pass(target, client, randomOf(seed, name, number, "down"), cut, true),
      ]);
    } catch {
      // The target does not respond, or one side has ended.
    } finally {
      for (const connection of both) this.#open.delete(connection);
      cut();
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
      if (this.#frozen) await this.#frozen.promise;
      const rates = this.#rates;
      const happens = (fault: keyof FaultCounts) => {
        const does = rates !== null && random.chance(rates[fault]);
        if (does) this.counts[fault]++;
        return does;
      };
      if (happens("reset")) return cut();
      if (happens("stall")) await pause(random.integer(...rates!.stall_ms));
      const is_halved = is_response && happens("halve");
      await writeAll(to, buffer.subarray(0, is_halved ? size >> 1 : size));
      if (is_halved) return cut();
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
