/**
 * The scheduler of the local start and of `deno task serve`, which replaces pg_cron and pg_net. It
 * calls the internal addresses of the payments function with `RELAY_TOKEN`, as pg_net does. Several
 * instances may tick: each delivery and each operation is leased by one of them.
 */

import type { Purged } from "../../../shared/schema/service.ts";
import type { EdgeFunction } from "./local_server.ts";

/** Interval between wakes of the dispatcher. A retry is late by at most this time. */
const WAKE_EVERY_MS = 1_000;
/** Interval between runs of retention, which deletes data that is too old. */
const RETENTION_EVERY_MS = 60_000;
/** Longest duration of a run, as in the job of pg_cron. */
const RETENTION_FOR_MS = 45_000;
/** Interval between calls of the check of the books, which runs once an hour by itself. */
const BOOKS_EVERY_MS = 60_000;

/**
 * Starts the calls and returns a function that stops them. They continue after a failed call.
 * @param checkBooks checks the books if an hour has passed; never rejects
 */
export function startTicker(
  payments: EdgeFunction,
  relay_token: string,
  checkBooks?: () => Promise<void>,
): () => void {
  let is_stopped = false;
  const call = async (path: string) => {
    const request = new Request(`http://127.0.0.1/api-v1-payments/internal/${path}`, {
      method: "POST",
      headers: { Authorization: `Bearer ${relay_token}` },
    });
    return await (await payments(request)).json() as Partial<Purged>;
  };
  const retain = async () => {
    const until = performance.now() + RETENTION_FOR_MS;
    while (!is_stopped && performance.now() < until) {
      if (!(await call("retention")).purged) return;
    }
  };
  // Also at once, for an instance that never lives long.
  retain();
  checkBooks?.();
  const timers = [
    setInterval(() => call("relay"), WAKE_EVERY_MS),
    setInterval(retain, RETENTION_EVERY_MS),
    ...checkBooks ? [setInterval(checkBooks, BOOKS_EVERY_MS)] : [],
  ];
  return () => {
    is_stopped = true;
    timers.forEach(clearInterval);
  };
}
