/**
 * Notices that something in the sandbox has changed, for everything that is visible: one read waits
 * at the service until then. A hidden tab asks once a minute.
 */

import { effect, signal } from "@preact/signals";
import { ApiError } from "../../../packages/client/mod.ts";
import { call, readQuietly } from "./calls.ts";
import { session } from "./session.ts";

/** Increases when the visible data may have changed. */
export const moves = signal(0);

/** Seconds that a read waits at the service. */
const WAIT_S = 15;
/** Milliseconds between two reads while changes go on, and while the service tells none. */
export const PAUSE_MS = 2_000;
/** Maximum delay of reads that fail, unless the API asks for a longer one. */
export const MAX_PAUSE_MS = 15_000;
/** Milliseconds between two reads of a hidden tab. */
const HIDDEN_MS = 60_000;
/**
 * Milliseconds without a change after which everything is read again: some values change with the
 * time alone, such as the status of a key that expires.
 */
const SETTLED_MS = 20 * 60_000;
/** Responses of a service that has no such read, or has none for the scopes of the key. */
const UNKNOWN: readonly number[] = [403, 404, 405];

/** Watches the sandbox of the session, and then that of the next one. Called once. */
export function watchChanges(): void {
  effect(() => {
    if (session.value === null) return;
    const ended = new AbortController();
    void watch(ended.signal);
    return () => ended.abort();
  });
}

async function watch(ended: AbortSignal): Promise<void> {
  let after: string | undefined;
  let moved_ms = 0;
  let failures = 0;
  let is_known = true;
  const move = () => {
    moved_ms = performance.now();
    moves.value++;
  };
  /** Returns the milliseconds until the next turn. */
  const turn = async (signal: AbortSignal): Promise<number> => {
    if (!is_known) {
      move();
      return PAUSE_MS;
    }
    const wait = document.hidden ? 0 : WAIT_S;
    try {
      const found = await readQuietly(call("sandbox", "changes", { after, wait }, { signal }));
      after = found.next_cursor;
      failures = 0;
      if (found.changed || performance.now() - moved_ms > SETTLED_MS) move();
      return found.changed ? PAUSE_MS / 2 : 0;
    } catch (error) {
      if (signal.aborted) return 0;
      // The reads find out what has happened.
      move();
      is_known = !(error instanceof ApiError && UNKNOWN.includes(error.status));
      const requested_ms = error instanceof ApiError ? error.retryAfterMs ?? 0 : 0;
      return Math.max(requested_ms, Math.min(PAUSE_MS * 2 ** failures++, MAX_PAUSE_MS));
    }
  };
  while (!ended.aborted) {
    // Another visibility begins another turn.
    const control = new AbortController();
    const end = () => control.abort();
    ended.addEventListener("abort", end);
    document.addEventListener("visibilitychange", end);
    const pause_ms = await turn(control.signal);
    await pause(document.hidden ? Math.max(pause_ms, HIDDEN_MS) : pause_ms, control.signal);
    ended.removeEventListener("abort", end);
    document.removeEventListener("visibilitychange", end);
  }
}

/** Resolves after some milliseconds, or when the signal aborts. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (ms === 0 || signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
