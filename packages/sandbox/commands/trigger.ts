/**
 * `trigger`: sends an event to a webhook endpoint, and shows the receiver's response. Without a
 * payment it makes the objects that have the event, so the endpoint also gets their other events.
 */

import type {
  Event,
  EventType,
  PaymentsClient,
  WebhookDelivery,
  WebhookEndpoint,
} from "../../client/mod.ts";
import {
  type Command,
  CommandError,
  EXIT,
  JSON_OPTION,
  onlyArgument,
  SERVICE_OPTIONS,
  type Surroundings,
  textOf,
  UsageError,
  type Values,
} from "../command.ts";
import { dataDir } from "../data_folder.ts";
import { readResponses } from "../forwarded_responses.ts";
import { knownListeners } from "../listener.ts";
import { findService, openClient } from "../service_access.ts";
import { oneLine } from "../terminal_text.ts";
import { makeTriggerObject, TRIGGER_TYPES } from "../trigger_objects.ts";

/** Longer than `listen` waits for its receiver (15 s), and than one read of the inbox takes. */
const RESPONSE_MS = 17_000;
/** Time between two looks at the responses of `listen`. */
const INTERVAL_MS = 50;
/** Time between two reads of a delivery. Each is a request. */
const READ_INTERVAL_MS = 200;

const NO_ENDPOINT = "There is no webhook endpoint: run listen, or register one";

/** The response of the receiver: its status or the error, and the beginning of its text. */
interface ApiResponse {
  response_status: number | null;
  error: string | null;
  response_body: string;
}

export const TRIGGER: Command = {
  name: "trigger",
  args: "EVENT",
  summary: "Send an event to a webhook endpoint, and show the response",
  options: {
    payment: { value: "ID", help: "pay_…; default: a new one, with a refund or the like" },
    endpoint: {
      value: "ID",
      help: "whe_…; default: that of listen in this folder, or the only one",
    },
    ...JSON_OPTION,
    ...SERVICE_OPTIONS,
  },
  examples: [
    "trigger payment.refunded",
    "trigger payment.completed --payment pay_1m7wvb3bsdsgqhzksxxwbk1970",
  ],
  async run(values, args, surroundings) {
    const event = onlyArgument(args, "The event is missing: payment.completed") as EventType;
    const payment_id = textOf(values, "payment");
    if (payment_id === undefined && !TRIGGER_TYPES.includes(event)) {
      throw new UsageError(
        event.startsWith("instrument.")
          ? `"${event}" cannot be triggered: "instruments end ID" makes instrument.ended, and the ` +
            "network of a live card instrument.updated"
          : `"${event}" is no event type: ${TRIGGER_TYPES.join(", ")}`,
      );
    }
    const client = openClient(values, surroundings);
    const endpoint_id = textOf(values, "endpoint") ??
      await defaultEndpoint(client, values, surroundings);
    if (endpoint_id === null) {
      if (payment_id !== undefined) throw new CommandError(NO_ENDPOINT);
      const found = await newEvent(client, event);
      const line = `${found.id}  ${event}  sent to nobody. ${NO_ENDPOINT}\n`;
      surroundings.print(values["json"] ? `${JSON.stringify(found, null, 2)}\n` : line);
      return EXIT.success;
    }
    const id = payment_id === undefined
      ? await deliveryOfNewEvent(client, event, endpoint_id)
      : (await client.sandbox.trigger({ endpoint_id, event, payment_id })).id;
    const data_dir = dataDir(values, surroundings);
    const forwarded = await responseOfListener(data_dir, endpoint_id, id);
    const delivery = await attemptedDelivery(client, id);
    const response = forwarded ?? responseOf(delivery);
    surroundings.print(
      values["json"]
        ? `${JSON.stringify({ ...delivery, answer: response }, null, 2)}\n`
        : describe(delivery, response, forwarded === null ? delivery.status : "forwarded"),
    );
    const { response_status } = response ?? {};
    const is_accepted = response_status && response_status >= 200 && response_status < 300;
    // An inbox that nobody reads has got the event.
    return response === null || is_accepted ? EXIT.success : EXIT.failure;
  },
};

/** The endpoint of `listen` in this folder, or else the only endpoint. Null if there is none. */
async function defaultEndpoint(
  client: PaymentsClient,
  values: Values,
  surroundings: Surroundings,
): Promise<string | null> {
  const all: WebhookEndpoint[] = [];
  for await (const endpoint of client.webhookEndpoints.list({ limit: 100 })) all.push(endpoint);
  const { base_url } = findService(values, surroundings);
  const known = knownListeners(dataDir(values, surroundings), base_url);
  const listeners = all.filter(({ id }) => known.has(id));
  for (const found of [listeners, all]) if (found.length === 1) return found[0]!.id;
  if (all.length === 0) return null;
  throw new CommandError(
    `There are several webhook endpoints: name one with --endpoint\n${list(all)}`,
  );
}

function list(endpoints: readonly WebhookEndpoint[]): string {
  return endpoints.map(({ id, url, description }) => `  ${id}  ${url ?? description ?? "inbox"}`)
    .join("\n");
}

/**
 * Makes objects that have an event of this type, and returns the event. It has no delivery.
 * @throws {CommandError} if only a trigger sends this type
 */
async function newEvent(client: PaymentsClient, type: EventType): Promise<Event> {
  const object = await makeTriggerObject(client, type);
  const { data: [event] } = await client.events.list({ ...object, type, limit: 1 });
  if (event !== undefined) return event;
  throw new CommandError(`${object.payment_id} has no ${type}. ${NO_ENDPOINT}`);
}

/**
 * Makes objects that have an event of this type, and returns the id of its delivery. An endpoint
 * that is not subscribed to the type gets the event by a trigger.
 */
async function deliveryOfNewEvent(
  client: PaymentsClient,
  event: EventType,
  endpoint_id: string,
): Promise<string> {
  await client.webhookEndpoints.retrieve(endpoint_id);
  const object = await makeTriggerObject(client, event);
  const deliveries = client.webhookDeliveries.list({ endpoint_id, ...object, limit: 100 });
  for await (const { id, event_type } of deliveries) if (event_type === event) return id;
  const { payment_id, transfer_id } = object;
  if (payment_id !== undefined) {
    return (await client.sandbox.trigger({ endpoint_id, event, payment_id })).id;
  }
  throw new CommandError(
    `${transfer_id} has the event, but ${endpoint_id} is not subscribed to ${event}`,
  );
}

/**
 * Waits for the first attempt of a delivery, or until it is in an inbox.
 * @throws {CommandError} if an earlier event keeps it waiting, or it takes too long
 */
async function attemptedDelivery(client: PaymentsClient, id: string): Promise<WebhookDelivery> {
  const end = performance.now() + RESPONSE_MS;
  while (performance.now() < end) {
    const delivery = await client.webhookDeliveries.retrieve(id);
    const { status, attempts, blocked_by } = delivery;
    if (status !== "pending" || attempts.length > 0) return delivery;
    const first = blocked_by && await client.webhookDeliveries.retrieve(blocked_by);
    // One that was delivered since the first read does not block any more.
    if (first && first.attempts.length > 0 && first.status !== "delivered") {
      const earlier = describe(first, responseOf(first)).trimEnd();
      throw new CommandError(`${id} waits until the endpoint takes an earlier event:\n${earlier}`);
    }
    await new Promise((resolve) => setTimeout(resolve, READ_INTERVAL_MS));
  }
  throw new CommandError(`${id} was not sent for ${RESPONSE_MS / 1000} s`);
}

/**
 * Waits for the response that a running `listen` gets to a delivery. Returns null if none runs in
 * this folder for the endpoint. Throws `CommandError` if the response does not come in time.
 */
async function responseOfListener(
  data_dir: string,
  endpoint_id: string,
  delivery_id: string,
): Promise<ApiResponse | null> {
  const end = performance.now() + RESPONSE_MS;
  while (performance.now() < end) {
    const responses = readResponses(data_dir, endpoint_id);
    if (responses === null) return null;
    const result = responses.get(delivery_id);
    if (result !== undefined) {
      const { status: response_status, error, text: response_body } = result;
      return { response_status, error, response_body };
    }
    await new Promise((resolve) => setTimeout(resolve, INTERVAL_MS));
  }
  throw new CommandError(
    `${delivery_id} is in the inbox, but listen has had no response to it for ${
      RESPONSE_MS / 1000
    } s. Does the receiver run?`,
  );
}

/** The response to the service. Null for an inbox. */
function responseOf({ attempts, exchanges }: WebhookDelivery): ApiResponse | null {
  const attempt = attempts.at(-1);
  if (attempt === undefined) return null;
  const { response_status, error } = attempt;
  const text = exchanges?.at(-1)?.response?.text ?? "";
  const [, response_body = ""] = /\r\n\r\n(.*)$/s.exec(text) ?? [];
  return { response_status, error, response_body };
}

/**
 * A line for the delivery, and one for the text of the response.
 * @param shown the status of the delivery, or "forwarded" if `listen` has got the response
 */
function describe(
  { id, event_type, endpoint_id, status }: WebhookDelivery,
  response: ApiResponse | null,
  shown: string = status,
): string {
  if (response === null) {
    return `${id}  ${event_type}  in the inbox of ${endpoint_id}: no listen runs in this folder\n`;
  }
  const { response_status, error, response_body } = response;
  const line = `${id}  ${event_type}  ${shown}  ${response_status ?? error}\n`;
  return response_body === "" ? line : `${line}  ${oneLine(response_body)}\n`;
}
