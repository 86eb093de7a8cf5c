/** Host names of the own machine. */

const LOOPBACK: ReadonlySet<string> = new Set(["127.0.0.1", "localhost", "[::1]"]);

/** Reports whether the host name of a URL belongs to the own machine. */
export function isLoopback(hostname: string): boolean {
  return LOOPBACK.has(hostname);
}
