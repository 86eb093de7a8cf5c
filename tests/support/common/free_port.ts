/** Above 10080, the last port that `fetch` refuses. */
const LOWEST = 10_081;
/** Below the ports that systems give to outgoing connections. */
const HIGHEST = 32_000;

/**
 * Returns a free port. No outgoing connection gets it, so it is still free after the program that
 * listens at it has been stopped and started again.
 */
export function freePort(): number {
  while (true) {
    const port = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST));
    try {
      Deno.listen({ hostname: "127.0.0.1", port }).close();
      return port;
    } catch (error) {
      if (!(error instanceof Deno.errors.AddrInUse)) throw error;
    }
  }
}
