/** `events resend`: sends an event again to the endpoints that it belongs to. */

import { ApiError, type WebhookDelivery } from "../../client/mod.ts";
import {
  type Command,
  CommandError,
  EXIT,
  idArgument,
  JSON_OPTION,
  LIVE_OPTION,
  SERVICE_OPTIONS,
  textOf,
} from "../command.ts";
import { printResult } from "../output.ts";
import { openChange } from "../service_access.ts";

export const EVENTS_RESEND: Command = {
  name: "events resend",
  args: "ID",
  summary: "Send an event again to its webhook endpoints",
  options: {
    endpoint: { type: "string", value: "ID", help: "only to this endpoint, whe_…" },
    ...LIVE_OPTION,
    ...JSON_OPTION,
    ...SERVICE_OPTIONS,
  },
  examples: ["events resend evt_1m7wvb3bsdsgqhzksxxwbk1970"],
  async run(values, args, surroundings) {
    const event_id = idArgument(args, "evt_…");
    const endpoint_id = textOf(values, "endpoint");
    const { client: { events, webhookDeliveries } } = openChange(values, surroundings);
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
    const sent: WebhookDelivery[] = [];
    for (const { id, endpoint_id } of found) {
      try {
        sent.push(await webhookDeliveries.redeliver(id));
      } catch (error) {
        // The endpoint is disabled or deleted. The others get the event all the same.
        if (!(error instanceof ApiError && error.is("invalid_state"))) throw error;
        if (found.length === 1) throw error;
        if (!values["json"]) surroundings.printMessage(`${endpoint_id}: ${error.message}`);
      }
    }
    const describe = () => sent.map(lineOf).join("\n");
    printResult({ object: "list", data: sent }, describe, values, surroundings);
    return sent.length > 0 ? EXIT.success : EXIT.failure;
  },
};

function lineOf({ id, event_type, status, endpoint_id }: WebhookDelivery): string {
  return [id, event_type, status, endpoint_id].join("  ");
}
