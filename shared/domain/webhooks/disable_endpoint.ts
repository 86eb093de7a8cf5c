/** Disables an endpoint whose receiver is gone, or that has been failing for too long. */

import { formatTime } from "../../core/clock.ts";
import type { DisabledReason } from "../../schema/webhook.ts";
import { parseSettings } from "../../store/sandbox_settings.ts";
import type { LeasedDelivery, WebhookStore } from "../../store/webhook_store.ts";
import { eventRow } from "../changes/event.ts";
import type { Origins } from "../changes/origin.ts";
import type { EndedAttempt } from "./attempt.ts";
import { FAILING_LIMIT_MS } from "./retry_schedule.ts";

/** HTTP status of a receiver that does not want deliveries any more (contract §4). */
const GONE = 410;

/** Returns the reason to disable the endpoint after this attempt, or null. */
export function disablingReason(
  delivery: LeasedDelivery,
  ended: EndedAttempt,
  at_ms: number,
): "gone" | "failing" | null {
  if (ended.record.response_status === GONE) return "gone";
  const { livemode, failing_since } = delivery;
  const lasts = failing_since !== null && at_ms - failing_since.getTime() >= FAILING_LIMIT_MS;
  return livemode && !ended.delivered && lasts ? "failing" : null;
}

/** Disables an endpoint. Returns false if it has changed meanwhile or has another URL. */
export async function disableEndpoint(
  delivery: LeasedDelivery,
  reason: DisabledReason,
  at_ms: number,
  { store, origins }: { store: WebhookStore; origins: Origins },
): Promise<boolean> {
  const { environment_id, endpoint_id, livemode } = delivery;
  const stored = await store.loadEndpoint(environment_id, endpoint_id);
  if (!stored || stored.status !== "enabled") return false;
  const endpoint = JSON.parse(stored.body);
  if (endpoint.url !== delivery.url) return false;
  const body = JSON.stringify({
    ...endpoint,
    status: "disabled",
    disabled_reason: reason,
    updated_at: formatTime(at_ms),
  });
  const settings = parseSettings(delivery.settings);
  const label = () => `disabled ${endpoint_id} ${stored.revision}`;
  const origin = origins.of({ settings, livemode, at_ms, label });
  const event = eventRow({
    type: "webhook_endpoint.disabled",
    subject_id: endpoint_id,
    sequence: stored.revision + 1,
    object: body,
    before: null,
  }, origin);
  return await store.disableEndpoint({
    environment_id,
    id: endpoint_id,
    expects_revision: stored.revision,
    at_ms,
    body,
    event_id: event.id,
    delivery_id: event.delivery_id,
  });
}
