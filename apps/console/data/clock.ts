/** The clock of the sandbox, which runs on between two reads. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { Clock } from "../../../packages/client/mod.ts";
import { call } from "./calls.ts";
import { useLive } from "./live.ts";

/** Milliseconds after which a clock that runs is shown again. */
const TICK_MS = 5_000;

/** Reads the clock. Returns it as it is now; null before the first read. */
export function useClock(): Clock | null {
  const { data } = useLive(call("sandbox", "clock"));
  const [, setTicks] = useState(0);
  const read = useRef<{ clock: Clock; at_ms: number } | null>(null);
  if (data !== (read.current?.clock ?? null)) {
    read.current = data && { clock: data, at_ms: performance.now() };
  }
  useEffect(() => {
    const timer = setInterval(() => setTicks((ticks) => ticks + 1), TICK_MS);
    return () => clearInterval(timer);
  }, []);
  if (read.current === null) return null;
  const { clock, at_ms } = read.current;
  if (clock.mode === "frozen") return clock;
  const now = Date.parse(clock.now) + performance.now() - at_ms;
  return { ...clock, now: new Date(now).toISOString() };
}
