/**
 * Internal routes that start the workers (of deliveries, of operations and of search words) and the
 * retention, and the metrics. `pg_cron` calls the former through `pg_net`, or the local server's
 * ticker does (architecture §4); Prometheus reads the latter. They require a token, which is
 * compared in constant time. Frequent calls are harmless.
 */

import { createHash, timingSafeEqual } from "node:crypto";
import type { Context, Hono } from "hono";
import { ApiError } from "../core/errors.ts";
import type { DispatcherAwake, Purged } from "../schema/service.ts";
import type { Metric } from "../store/store.ts";
import { inBackground } from "./background.ts";
import type { Dependencies } from "./dependencies.ts";
import { PAYMENTS_FUNCTION } from "./route.ts";
import type { Env } from "./request_state.ts";
import { webhooksOf } from "./webhook_routes.ts";

/** Longest duration of one call of retention. The next call deletes the rest. */
const RETENTION_BUDGET_MS = 2_000;

/** The text form of Prometheus. */
export const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** Adds `POST /internal/relay`, `POST /internal/retention` and `GET /internal/metrics`. */
export function serveInternalRoutes(app: Hono<Env>, deps: Dependencies): void {
  app.post(`/${PAYMENTS_FUNCTION}/internal/relay`, (c) => {
    admitToken(c, deps);
    inBackground(deps.provider_worker.notify());
    inBackground(deps.webhook_store.writeSearchWords());
    // Without webhooks this is 503, because pg_cron and pay.health would take a 202 for a delivery.
    inBackground(webhooksOf(deps).dispatcher.notify());
    return c.json({ status: "awake" } satisfies DispatcherAwake, 202);
  });
  app.post(`/${PAYMENTS_FUNCTION}/internal/retention`, async (c) => {
    admitToken(c, deps);
    const until = performance.now() + RETENTION_BUDGET_MS;
    let purged = 0;
    for (;;) {
      const began_ms = performance.now();
      const batch = await deps.webhook_store.purge(c.get("state").at_ms);
      purged += batch;
      if (batch === 0 || performance.now() > until) break;
      // Half of the time belongs to requests, which would wait for the processor and the disk.
      await new Promise((resolve) => setTimeout(resolve, performance.now() - began_ms));
    }
    return c.json({ purged } satisfies Purged);
  });
  app.get(`/${PAYMENTS_FUNCTION}/internal/metrics`, async (c) => {
    admitToken(c, deps);
    const metrics = await deps.store.readMetrics();
    return c.body(metrics.map(gauge).join(""), 200, { "Content-Type": METRICS_TYPE });
  });
}

function admitToken(c: Context<Env>, deps: Dependencies): void {
  const state = c.get("state");
  state.route_template = c.req.path;
  state.is_tick = true;
  const header = c.req.header("Authorization") ?? "";
  const expected = `Bearer ${deps.relay_token}`;
  const is_right = timingSafeEqual(digest(header), digest(expected));
  if (deps.relay_token === null || !is_right) {
    throw new ApiError(
      "unauthorized",
      "This path is internal to the service: send the RELAY_TOKEN of the functions as the Bearer " +
        "token",
      {},
      { "WWW-Authenticate": "Bearer" },
    );
  }
}

/** Renders one metric. Its help is a comment of ours, without line breaks and backslashes. */
function gauge({ name, help, value }: Metric): string {
  const metric = `payments_${name}`;
  return `# HELP ${metric} ${help}\n# TYPE ${metric} gauge\n${metric} ${value}\n`;
}

/** Hashes to a fixed length, so that the comparison does not reveal the length of the token. */
function digest(text: string): Uint8Array {
  return createHash("sha256").update(text).digest();
}
