/** `events resend`: sends an event again to the endpoints that it belongs to. */

import { ApiError, type WebhookDelivery } from "../../client/mod.ts";
import { CommandError, LIVE_OPTION, textOf } from "../command.ts";
import { serviceCommand } from "./service_command.ts";

export const EVENTS_RESEND = serviceCommand({
  name: "events resend",
  id: "evt_…",
  summary: "Send an event again to its webhook endpoints",
  options: {
    endpoint: { value: "ID", help: "only to this endpoint, whe_…" },
  },
  live: LIVE_OPTION,
  examples: ["events resend evt_1m7wvb3bsdsgqhzksxxwbk1970"],
  begin(values, [id], { printMessage }) {
    const event_id = id!;
    const endpoint_id = textOf(values, "endpoint");
    return async ({ events, webhookDeliveries }) => {
      await events.retrieve(event_id);
      const found: WebhookDelivery[] = [];
      for await (const one of webhookDeliveries.list({ event_id, endpoint_id, limit: 100 })) {
        found.push(one);
      }
      if (found.length === 0) {
        throw new CommandError(
          `No endpoint has a delivery of ${event_id}: none was subscribed to its type at its time`,
        );
      }
      const data: WebhookDelivery[] = [];
      for (const { id, endpoint_id } of found) {
        try {
          data.push(await webhookDeliveries.redeliver(id));
        } catch (error) {
          // The endpoint is disabled or deleted. The others get the event all the same.
          if (!(error instanceof ApiError && error.is("invalid_state"))) throw error;
          if (found.length === 1) throw error;
          if (!values["json"]) printMessage(`${endpoint_id}: ${error.message}`);
        }
      }
      return { object: "list", data };
    };
  },
  describe: ({ data }) =>
    data.map(({ id, event_type, status, endpoint_id }) =>
      [id, event_type, status, endpoint_id].join("  ")
    ).join("\n"),
  fails: ({ data }) => data.length === 0,
});
