/**
 * Keeps visible data current. It reads the data again when something in the sandbox has changed,
 * and later while the API fails or asks to wait. A hidden tab reads nothing.
 */

import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, type Page } from "../../../packages/client/mod.ts";
import { type Call, perform, readPages, readQuietly, revision } from "./calls.ts";
import { MAX_PAUSE_MS, moves, PAUSE_MS } from "./changes.ts";
import { refusalOfCall } from "./permissions.ts";

/** The data of the last successful read, and the error of the last read. */
export interface Live<T> {
  /** Null before the first response. */
  data: T | null;
  /** Null if the last read succeeded. */
  error: unknown;
  /**
   * Whether the data is that of an earlier call, and the response to the present one is pending.
   */
  is_stale: boolean;
}

/**
 * Repeats a call after changes while the component is shown, and returns its newest response.
 * A call that the key may not make is not made: the error is `LacksScope` then.
 * @param call the call, or null for none
 * @param options.logged whether the first call is logged, because the user has caused it
 * @param options.every_ms milliseconds between the beginnings of two reads, at least
 */
export function useLive<T>(
  call: Call<T> | null,
  options: { logged?: boolean; every_ms?: number } = {},
): Live<T> {
  const logged_key = useRef<string | null>(null);
  const key = JSON.stringify(call);
  const refusal = call && refusalOfCall(call);
  const live = usePolled(
    key,
    options.every_ms ?? PAUSE_MS,
    call && !refusal
      ? () => {
        const is_requested = options.logged === true && logged_key.current !== key;
        logged_key.current = key;
        return is_requested ? perform(call) : readQuietly(call);
      }
      : null,
  );
  return refusal ? { data: null, error: refusal, is_stale: false } : live;
}

/**
 * Repeats a read of the data of a key after changes, while the component is shown.
 * @param read learns by `isStopped` that nobody needs its result any more
 */
function usePolled<T>(
  key: string,
  every_ms: number,
  read: ((isStopped: () => boolean) => Promise<T>) | null,
): Live<T> {
  const [state, setState] = useState<{ key: string; data: T | null; error: unknown }>({
    key,
    data: null,
    error: null,
  });
  const turn = revision.value;

  useEffect(() => {
    if (read === null) return;
    let stopped = false;
    let is_reading = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    /** The change after which the last successful read began. */
    let seen = -1;
    let failed_ms = every_ms;
    let next_ms = 0;

    const poll = async () => {
      timer = undefined;
      // `schedule` starts the next read when the tab is visible again.
      if (document.hidden) return;
      is_reading = true;
      const move = moves.peek();
      next_ms = performance.now() + every_ms;
      try {
        const data = await read(() => stopped);
        if (stopped) return;
        seen = move;
        failed_ms = every_ms;
        setState({ key, data, error: null });
      } catch (error) {
        if (stopped) return;
        seen = -1;
        const requested_ms = error instanceof ApiError ? error.retryAfterMs ?? 0 : 0;
        failed_ms = Math.max(requested_ms, every_ms, Math.min(failed_ms * 2, MAX_PAUSE_MS));
        next_ms = performance.now() + failed_ms;
        setState((last) => ({ key, data: last.key === key ? last.data : null, error }));
      }
      is_reading = false;
      schedule();
    };
    const schedule = () => {
      if (is_reading || timer !== undefined || seen === moves.peek()) return;
      if (document.hidden) return;
      timer = setTimeout(poll, Math.max(0, next_ms - performance.now()));
    };

    document.addEventListener("visibilitychange", schedule);
    poll();
    const unsubscribe = moves.subscribe(schedule);
    return () => {
      stopped = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", schedule);
      unsubscribe();
    };
  }, [key, turn]);

  return {
    data: state.data,
    error: state.key === key ? state.error : null,
    is_stale: state.key !== key,
  };
}

interface Newest<T> {
  items: readonly T[];
  /** Whether the list has older items. */
  is_cut: boolean;
}

/** Milliseconds between two reads of several pages, at least. */
const NEWEST_INTERVAL_MS = 15_000;
const NEWEST_PAGES = 5;

/**
 * Reads the newest items of a list, several pages of it, and again after changes, every 15 seconds
 * at most. Returns null before the first read. Until the next read succeeds, another
 * call has the last items: the charts of a next bar stay.
 */
export function useNewest<T>(call: Call<Page<T>>): Newest<T> | null {
  const last = useRef<Newest<T> | null>(null);
  const { data } = usePolled(
    JSON.stringify(call),
    NEWEST_INTERVAL_MS,
    refusalOfCall(call) ? null : async (isStopped) => {
      const items: T[] = [];
      let pages = 0;
      let is_cut = false;
      for await (const page of readPages(call)) {
        items.push(...page.data);
        is_cut = page.has_more;
        if (++pages === NEWEST_PAGES || isStopped()) break;
      }
      return { items, is_cut };
    },
  );
  return last.current = data ?? last.current;
}
