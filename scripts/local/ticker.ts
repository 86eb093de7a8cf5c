/**
 * The clock of the local start, in the place of pg_cron and pg_net: it calls the addresses that they
 * would call, with the same token.
 */

import type { EdgeFunction } from "./local_server.ts";

/** How often the relay looks for deliveries that have become due: a retry is at most this late. */
const RELAY_EVERY_MS = 1_000;
/** How often data that has outlived its retention is looked for. */
const RETENTION_EVERY_MS = 60_000;

/** Starts ticking; returns what stops it. A tick that fails is followed by the next. */
export function startTicker(payments: EdgeFunction, relay_token: string): () => void {
  const call = async (path: string) => {
    const request = new Request(`http://127.0.0.1/api-v1-payments/internal/${path}`, {
      method: "POST",
      headers: { Authorization: `Bearer ${relay_token}` },
    });
    await (await payments(request)).body?.cancel();
  };
  const timers = [
    setInterval(() => call("relay"), RELAY_EVERY_MS),
    setInterval(() => call("retention"), RETENTION_EVERY_MS),
  ];
  return () => timers.forEach(clearInterval);
}
