/** `trigger`: sends an event of a payment to a webhook endpoint. */

import type { EventType, PaymentsClient } from "../../client/mod.ts";
import {
  type Command,
  CommandError,
  EXIT,
  JSON_OPTION,
  SERVICE_OPTIONS,
  textOf,
  UsageError,
} from "../command.ts";
import { openClient } from "../service_access.ts";

export const TRIGGER: Command = {
  name: "trigger",
  args: "EVENT",
  summary: "Send an event of a payment to a webhook endpoint, and show the answer",
  options: {
    payment: { type: "string", value: "ID", help: "the payment, pay_… (required)" },
    endpoint: { type: "string", value: "ID", help: "whe_…; default: the only endpoint" },
    ...JSON_OPTION,
    ...SERVICE_OPTIONS,
  },
  examples: ["trigger payment.completed --payment pay_1m7wvb3bsdsgqhzksxxwbk1970"],
  async run(values, [event, ...more], surroundings) {
    if (event === undefined) throw new UsageError("The event is missing: payment.completed");
    if (more.length > 0) throw new UsageError(`Unexpected argument "${more[0]}". See --help`);
    const payment_id = textOf(values, "payment");
    if (payment_id === undefined) throw new UsageError("--payment is missing: pay_…");
    const client = openClient(values, surroundings);
    const endpoint_id = textOf(values, "endpoint") ?? await onlyEndpoint(client);
    const delivery = await client.sandbox.trigger({
      endpoint_id,
      event: event as EventType,
      payment_id,
    });
    const attempt = delivery.attempts.at(-1);
    const answer = attempt?.response_status ?? attempt?.error ?? "no answer";
    const line = `${delivery.id}  ${event}  ${delivery.status}  ${answer}`;
    surroundings.print(`${values["json"] ? JSON.stringify(delivery, null, 2) : line}\n`);
    return delivery.status === "failed" ? EXIT.failure : EXIT.success;
  },
};

async function onlyEndpoint(client: PaymentsClient): Promise<string> {
  const { data } = await client.webhookEndpoints.list({ limit: 2 });
  if (data.length === 1) return data[0]!.id;
  throw new CommandError(
    data.length === 0
      ? "There is no webhook endpoint: register one first"
      : "There are several webhook endpoints: name one with --endpoint",
  );
}
