/**
 * Time and chance as the client uses them.
 */

/** Time and chance, for tests. */
export interface Runtime {
  /** Milliseconds since 1970. */
  now(): number;
  /** 0 to below 1. */
  random(): number;
  /** Waits; rejects with the signal's reason when it aborts. */
  sleep(delay_ms: number, signal: AbortSignal | undefined): Promise<void>;
}

/** The machine's. */
export const RUNTIME: Runtime = {
  now: Date.now,
  random: Math.random,
  sleep: (delay_ms, signal) =>
    new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const end = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", end);
        if (signal?.aborted) reject(signal.reason);
        else resolve();
      };
      const timer = setTimeout(end, delay_ms);
      signal?.addEventListener("abort", end);
    }),
};
