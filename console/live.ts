/**
 * Reading what is on the screen again and again while it is open, so that it fills by itself: every
 * two seconds, slower while the API is away or asks to wait, and not at all while nobody looks.
 */

import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../client/mod.ts";
import { type Call, perform, readQuietly, revision } from "./calls.ts";

/** What was read, and why the last reading failed. */
export interface Live<T> {
  /** Null before the first answer. */
  data: T | null;
  /** Null when the last reading was answered. */
  error: unknown;
  /** The data belongs to what was asked for before, and the answer is on its way. */
  is_stale: boolean;
}

/** Milliseconds between two readings: one key may make 100 requests a second. */
const INTERVAL_MS = 2_000;
/** Longest wait between two readings that fail. */
const MAX_INTERVAL_MS = 15_000;

/**
 * Keeps the answer of a reading call current while the component is shown.
 * @param call what to read; null reads nothing
 * @param options.logged whether the first reading is one that the reader asked for
 */
export function useLive<T>(call: Call<T> | null, options: { logged?: boolean } = {}): Live<T> {
  const key = JSON.stringify(call);
  const [state, setState] = useState<{ key: string; data: T | null; error: unknown }>({
    key,
    data: null,
    error: null,
  });
  const logged_key = useRef<string | null>(null);
  const turn = revision.value;

  useEffect(() => {
    if (call === null) return;
    let stopped = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let wait_ms = INTERVAL_MS;

    const read = async () => {
      timer = undefined;
      // The tab's return begins the next turn.
      if (document.hidden) return;
      const is_asked_for = options.logged === true && logged_key.current !== key;
      logged_key.current = key;
      try {
        const data = await (is_asked_for ? perform(call) : readQuietly(call));
        if (stopped) return;
        wait_ms = INTERVAL_MS;
        setState({ key, data, error: null });
      } catch (error) {
        if (stopped) return;
        const asked_ms = error instanceof ApiError ? error.retryAfterMs ?? 0 : 0;
        wait_ms = Math.max(asked_ms, Math.min(wait_ms * 2, MAX_INTERVAL_MS));
        setState((last) => ({ key, data: last.key === key ? last.data : null, error }));
      }
      timer = setTimeout(read, wait_ms);
    };
    const wake = () => {
      if (!document.hidden && timer === undefined) read();
    };

    document.addEventListener("visibilitychange", wake);
    read();
    return () => {
      stopped = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", wake);
    };
  }, [key, turn]);

  return {
    data: state.data,
    error: state.key === key ? state.error : null,
    is_stale: state.key !== key,
  };
}
