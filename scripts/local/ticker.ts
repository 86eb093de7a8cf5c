/**
 * The scheduler of the local start, which replaces pg_cron and pg_net. It calls the internal
 * addresses of the payments function with `RELAY_TOKEN`, as pg_net does.
 */

import type { EdgeFunction } from "./local_server.ts";

/** Interval between wakes of the dispatcher. A retry is late by at most this time. */
const WAKE_EVERY_MS = 1_000;
/** Interval between calls of retention, which deletes data that is too old. */
const RETENTION_EVERY_MS = 60_000;

/** Starts the calls and returns a function that stops them. They continue after a failed call. */
export function startTicker(payments: EdgeFunction, relay_token: string): () => void {
  const call = async (path: string) => {
    const request = new Request(`http://127.0.0.1/api-v1-payments/internal/${path}`, {
      method: "POST",
      headers: { Authorization: `Bearer ${relay_token}` },
    });
    await (await payments(request)).body?.cancel();
  };
  const timers = [
    setInterval(() => call("relay"), WAKE_EVERY_MS),
    setInterval(() => call("retention"), RETENTION_EVERY_MS),
  ];
  return () => timers.forEach(clearInterval);
}
