/** The clock, the randomness and the waiting of the client. */

/** Clock, randomness and waiting. Tests can replace them. */
export interface Runtime {
  /** Returns milliseconds since 1970. */
  now(): number;
  /** Returns a number of 0 or more and less than 1. */
  random(): number;
  /** Resolves after the delay. Rejects with the reason of the signal when it is aborted. */
  sleep(delay_ms: number, signal: AbortSignal | undefined): Promise<void>;
}

/** The runtime of the machine. */
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
