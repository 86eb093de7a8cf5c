/**
 * The route of providers' notifications (architecture §7). It takes no API key: the connector
 * checks the signature over the raw body, and the response is 200 only after the provider events
 * are stored. The worker applies them.
 */

import type { Context, Hono } from "hono";
import { ApiError } from "../core/errors.ts";
import { isId } from "../core/ids.ts";
import { inBackground } from "./background.ts";
import type { Dependencies } from "./dependencies.ts";
import { keylessLimit } from "./keyless_limit.ts";
import { PAYMENTS_FUNCTION } from "./route.ts";
import { readRaw } from "./request_body.ts";
import type { Env } from "./request_state.ts";

const MAX_NOTIFICATION_BYTES = 256 * 1024;

/** Adds `POST /providers/{pac_…}/notifications`. */
export function serveNotifications(app: Hono<Env>, deps: Dependencies): void {
  const limited = keylessLimit(deps);
  const path = `/${PAYMENTS_FUNCTION}/providers/:id/notifications`;
  app.post(path, (c) => {
    c.get("state").route_template = path;
    return limited(c, () => receive(c, deps));
  });
}

async function receive(c: Context<Env>, deps: Dependencies): Promise<Response> {
  const { provider_store, provider_accounts, provider_worker } = deps;
  const id = c.req.param("id") ?? "";
  const stored = isId("pac_", id) ? await provider_store.readAccount(id) : null;
  const ready = stored && provider_accounts.open(stored);
  if (!ready || typeof ready === "string") throw unsigned();
  const { at_ms } = c.get("state");
  const { account, connector: { notifications } } = ready;
  if (notifications === null) throw unsigned();
  // Only now, so that nobody sends a body to an unknown account.
  const raw = await readRaw(c.req.raw, MAX_NOTIFICATION_BYTES);
  const provider_events = await notifications.read(account, raw, c.req.raw.headers, at_ms);
  if (provider_events === null) {
    await provider_store.countIgnored(id);
    return c.json({ received: true });
  }
  if (provider_events.length > 0) await provider_store.storeProviderEvents(id, provider_events);
  inBackground(provider_worker.notify());
  return c.json({ received: true });
}

/** Makes the response for an unknown account, which is that for a wrong signature. */
function unsigned(): ApiError {
  return new ApiError(
    "unauthorized",
    "No enabled provider account with this id has signed the notification",
  );
}
