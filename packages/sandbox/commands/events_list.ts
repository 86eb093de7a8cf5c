/** `events list`: prints a page of events, newest first. */

import type { Event, EventType } from "../../client/mod.ts";
import {
  type Command,
  EXIT,
  JSON_OPTION,
  refuseArguments,
  SERVICE_OPTIONS,
  textOf,
} from "../command.ts";
import { PAGE_OPTIONS, pageOf, printPage } from "../output.ts";
import { openClient } from "../service_access.ts";

export const EVENTS_LIST: Command = {
  name: "events list",
  summary: "List events, newest first",
  options: {
    type: { type: "string", value: "TYPE", help: "only this type, such as payment.completed" },
    payment: { type: "string", value: "ID", help: "only those of this payment, pay_…" },
    transfer: { type: "string", value: "ID", help: "only those of this transfer, tr_…" },
    ...PAGE_OPTIONS,
    ...JSON_OPTION,
    ...SERVICE_OPTIONS,
  },
  examples: ["events list", "events list --type payment.refunded --json"],
  async run(values, args, surroundings) {
    refuseArguments(args);
    const filters = {
      type: textOf(values, "type") as EventType | undefined,
      payment_id: textOf(values, "payment"),
      transfer_id: textOf(values, "transfer"),
      ...pageOf(values),
    };
    const { events } = openClient(values, surroundings);
    await printPage(events.list(filters), lineOf, values, surroundings);
    return EXIT.success;
  },
};

function lineOf({ id, type, data, created_at }: Event): string {
  return [id, type, data.object.id, created_at].join("  ");
}
