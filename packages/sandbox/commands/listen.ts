/**
 * `listen`: forwards webhooks to a receiver on this machine, through an inbox of the service. It
 * needs no tunnel, because it only makes requests. The service signs the deliveries, and the
 * receiver gets their headers and bytes unchanged.
 *
 * Each read takes one delivery and acknowledges the one before. So a restart goes on where the last
 * run stopped, and after `kill -9` the receiver gets at most one delivery again. Signatures are
 * those of the read, so a delivery that waits for its receiver is read again.
 */

import type { InboxDelivery, PaymentsClient, Subscription } from "../../client/mod.ts";
import {
  type Command,
  EXIT,
  refuseArguments,
  SERVICE_OPTIONS,
  type Surroundings,
  textOf,
  UsageError,
  type Values,
} from "../command.ts";
import { dataDir } from "../data_folder.ts";
import { ResponsesOfListener } from "../forwarded_responses.ts";
import { forward, type ForwardResult } from "../forwarding.ts";
import { type Listener, openListener, shownUrl } from "../listener.ts";
import { patientCaller } from "../patient_call.ts";
import { findService, openClient } from "../service_access.ts";
import { pause, stopSignal } from "../stop_signal.ts";
import { localTime, oneLine } from "../terminal_text.ts";

/** The longest wait of one read that the API allows. */
const WAIT_S = 20;
/** Time between two attempts to reach the receiver. */
const AGAIN_MS = 1_000;
/** The read that acknowledges the last delivery. Somebody waits for the end of the command. */
const LAST_READ = { maxRetries: 0, timeoutMs: 5_000 };

export const LISTEN: Command = {
  name: "listen",
  summary: "Forward webhooks to a receiver on this machine, without a tunnel",
  options: {
    "forward-to": { value: "URL", help: "the receiver (required)" },
    events: { value: "LIST", help: "event types, with commas between them (*)" },
    endpoint: { value: "ID", help: "read this inbox, whe_…; default: one of its own" },
    "print-secret": { help: "print the secret of the endpoint, and end" },
    json: { help: "print a line of JSON for each delivery" },
    ...SERVICE_OPTIONS,
  },
  examples: [
    "listen --forward-to http://localhost:3000/webhooks",
    "listen --forward-to http://localhost:3000/webhooks --events payment.completed,refund.*",
    "listen --forward-to http://localhost:3000/webhooks --print-secret",
  ],
  is_stream: true,
  async run(values, args, surroundings) {
    refuseArguments(args);
    const url = receiverOf(values);
    const client = openClient(values, surroundings);
    const listener = await findListener(client, url, values, surroundings);
    if (values["print-secret"] && !values["json"]) surroundings.print(`${listener.secret}\n`);
    else announce(listener, url, values, surroundings);
    if (values["print-secret"]) return EXIT.success;
    const stop = stopSignal();
    const responses = new ResponsesOfListener(dataDir(values, surroundings), listener.endpoint_id);
    try {
      await forwardAll(client, listener.endpoint_id, {
        url,
        stop,
        printMessage: surroundings.printMessage,
        onForwarded: (delivery, result) => {
          const line = values["json"] ? jsonLine(delivery, result) : textLine(delivery, result);
          surroundings.print(`${line}\n`);
          responses.add(delivery.id, result);
        },
      });
    } finally {
      responses.end();
    }
    return EXIT.success;
  },
};

function receiverOf(values: Values): URL {
  const text = textOf(values, "forward-to");
  const example = "http://localhost:3000/webhooks";
  if (text === undefined) throw new UsageError(`--forward-to is missing: ${example}`);
  const url = /^https?:\/\/\S+$/i.test(text) && URL.canParse(text) ? new URL(text) : null;
  if (url === null) throw new UsageError(`--forward-to must be a URL such as ${example}`);
  return url;
}

async function findListener(
  client: PaymentsClient,
  url: URL,
  values: Values,
  surroundings: Surroundings,
): Promise<Listener> {
  const endpoint_id = textOf(values, "endpoint");
  const events = textOf(values, "events")?.split(",").map((type) => type.trim()) ?? ["*"];
  if (endpoint_id !== undefined) {
    for (const name of ["events", "print-secret"]) {
      if (values[name] !== undefined) {
        throw new UsageError(`--${name} cannot be used with --endpoint, which has its own`);
      }
    }
    await client.webhookEndpoints.retrieve(endpoint_id);
    return { endpoint_id, secret: null };
  }
  return await openListener(client, {
    base_url: findService(values, surroundings).base_url,
    forward_to: url.href,
    // The API checks the types and names those that are unknown.
    events: events as Subscription[],
    data_dir: dataDir(values, surroundings),
  });
}

function announce(
  { endpoint_id, secret }: Listener,
  url: URL,
  values: Values,
  { print, printMessage }: Surroundings,
): void {
  const forward_to = shownUrl(url);
  if (values["json"]) {
    print(`${JSON.stringify({ object: "listener", endpoint_id, secret, forward_to })}\n`);
    return;
  }
  if (secret !== null) printMessage(`Secret for the verification: ${secret}`);
  printMessage(`Forwarding the webhooks of ${endpoint_id} to ${forward_to} (Ctrl-C stops)`);
}

/** Options of `forwardAll`. */
interface Forwarding {
  url: URL;
  stop: AbortSignal;
  printMessage: (line: string) => void;
  onForwarded: (delivery: InboxDelivery, result: ForwardResult) => void;
}

/**
 * Forwards the deliveries of an inbox until the stop, in their order. Every response of the
 * receiver counts, also an error: it is shown, and the next delivery follows. A receiver without a
 * connection has got nothing, so its delivery waits.
 * @throws {PaymentsError} if the inbox cannot be read any more
 */
async function forwardAll(
  client: PaymentsClient,
  endpoint_id: string,
  { url, stop, printMessage, onForwarded }: Forwarding,
): Promise<void> {
  const call = patientCaller(stop, printMessage);
  let after: string | undefined;
  let is_waiting = false;
  const announceEnd = () => printMessage("Ending after the response to this delivery");
  while (!stop.aborted) {
    const page = await call((signal) =>
      client.webhookEndpoints.inbox(endpoint_id, { after, limit: 1, wait: WAIT_S }, { signal })
    );
    const delivery = page?.data[0];
    if (delivery === undefined) continue;
    stop.addEventListener("abort", announceEnd);
    const result = await forward(delivery, url);
    stop.removeEventListener("abort", announceEnd);
    if (result.error === "unreachable") {
      if (!is_waiting) printMessage(`${oneLine(result.text)}: waiting for the receiver`);
      is_waiting = true;
      await pause(AGAIN_MS, stop);
      continue;
    }
    is_waiting = false;
    onForwarded(delivery, result);
    after = page!.next_cursor;
  }
  if (after === undefined) return;
  // The receiver has got this delivery. Without the acknowledgement the next run sends it again.
  const last = client.webhookEndpoints.inbox(endpoint_id, { after, limit: 1 }, LAST_READ);
  await last.then(() => {}, () => {});
}

/** The members of an event that a line shows. The text can come from a newer service. */
function readEvent(body: string): { type: string; resource_id: string | null } {
  try {
    const { type, data } = JSON.parse(body);
    return { type: String(type), resource_id: data?.object?.id ?? null };
  } catch {
    return { type: "?", resource_id: null };
  }
}

function jsonLine({ id, event_id, body }: InboxDelivery, result: ForwardResult): string {
  const { type, resource_id } = readEvent(body);
  const { status, error, duration_ms, text } = result;
  const event = { event_id, event_type: type, resource_id };
  const response = { response_status: status, error, duration_ms, response_body: text };
  return JSON.stringify({ object: "forwarded_delivery", id, ...event, ...response });
}

/** One line. The beginning of the response follows if it is not 2xx. */
function textLine({ body }: InboxDelivery, result: ForwardResult): string {
  const { type, resource_id } = readEvent(body);
  const { status, error, duration_ms, text } = result;
  const is_success = status !== null && status >= 200 && status < 300;
  const parts = [localTime(), type, resource_id ?? "-", status ?? error, `${duration_ms} ms`];
  return [...parts, ...(is_success ? [] : [oneLine(text)])].join("  ");
}
