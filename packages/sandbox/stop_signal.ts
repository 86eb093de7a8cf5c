/** The end of commands that run until somebody stops them. */

import process from "node:process";
import { setTimeout } from "node:timers/promises";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * Returns a signal that is aborted by Ctrl-C, or when the system ends this process. The command can
 * finish its present work then. The same signal a second time ends the process at once.
 */
export function stopSignal(): AbortSignal {
  const stop = new AbortController();
  for (const signal of SIGNALS) process.once(signal, () => stop.abort());
  return stop.signal;
}

/** Waits. Ends at once, without an error, when the signal is aborted. */
export async function pause(duration_ms: number, stop: AbortSignal): Promise<void> {
  await setTimeout(duration_ms, undefined, { signal: stop }).catch(() => {});
}
