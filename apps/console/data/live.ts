/**
 * Keeps visible data current. It reads the data every two seconds, less often while the API fails
 * or asks to wait, and not at all while the tab is hidden.
 */

import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, type Page } from "../../../packages/client/mod.ts";
import { type Call, perform, readPages, readQuietly, revision } from "./calls.ts";

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

/** Milliseconds between two reads. A key can make 100 requests a second. */
const INTERVAL_MS = 2_000;
/** Maximum delay between two failed reads, unless the API asks for a longer one. */
const MAX_INTERVAL_MS = 15_000;

/**
 * Repeats a call while the component is shown, and returns its newest response.
 * @param call the call, or null for none
 * @param options.logged whether the first call is logged, because the user has caused it
 * @param options.every_ms milliseconds between two reads
 */
export function useLive<T>(
  call: Call<T> | null,
  options: { logged?: boolean; every_ms?: number } = {},
): Live<T> {
  const logged_key = useRef<string | null>(null);
  const key = JSON.stringify(call);
  return usePolled(
    key,
    options.every_ms ?? INTERVAL_MS,
    call && (() => {
      const is_requested = options.logged === true && logged_key.current !== key;
      logged_key.current = key;
      return is_requested ? perform(call) : readQuietly(call);
    }),
  );
}

/**
 * Repeats a read of the data of a key while the component is shown.
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
    let timer: ReturnType<typeof setTimeout> | undefined;
    let wait_ms = every_ms;

    const poll = async () => {
      timer = undefined;
      // `wake` starts the next read when the tab is visible again.
      if (document.hidden) return;
      try {
        const data = await read(() => stopped);
        if (stopped) return;
        wait_ms = every_ms;
        setState({ key, data, error: null });
      } catch (error) {
        if (stopped) return;
        const requested_ms = error instanceof ApiError ? error.retryAfterMs ?? 0 : 0;
        wait_ms = Math.max(requested_ms, every_ms, Math.min(wait_ms * 2, MAX_INTERVAL_MS));
        setState((last) => ({ key, data: last.key === key ? last.data : null, error }));
      }
      timer = setTimeout(poll, wait_ms);
    };
    const wake = () => {
      if (!document.hidden && timer === undefined) poll();
    };

    document.addEventListener("visibilitychange", wake);
    poll();
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

/** The newest items of a list. */
interface Newest<T> {
  items: readonly T[];
  /** Whether the list has older items. */
  is_cut: boolean;
}

/** Milliseconds between two reads of several pages. */
const NEWEST_INTERVAL_MS = 15_000;
/** Most pages of a read. */
const NEWEST_PAGES = 5;

/**
 * Reads the newest items of a list, several pages of it, and again after each change of the user
 * and every 15 seconds. Returns null before the first read. Until the next read succeeds, another
 * call has the last items: the charts of a next bar stay.
 */
export function useNewest<T>(call: Call<Page<T>>): Newest<T> | null {
  const last = useRef<Newest<T> | null>(null);
  const { data } = usePolled(JSON.stringify(call), NEWEST_INTERVAL_MS, async (isStopped) => {
    const items: T[] = [];
    let pages = 0;
    let is_cut = false;
    for await (const page of readPages(call)) {
      items.push(...page.data);
      is_cut = page.has_more;
      if (++pages === NEWEST_PAGES || isStopped()) break;
    }
    return { items, is_cut };
  });
  return last.current = data ?? last.current;
}
