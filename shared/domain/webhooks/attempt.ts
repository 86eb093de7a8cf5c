/**
 * Makes one attempt to deliver an event: signs the payload with the time of the attempt, sends it,
 * and makes the record that the API shows (contract §4).
 */

import { formatTime } from "../../core/clock.ts";
import { callAttributes, responseAttributes, span, traceparentOf } from "../../core/tracing.ts";
import { FAULT_HEADER } from "../../core/vocabulary.ts";
import { signDelivery } from "../../core/webhook_signature.ts";
import type { DeliveryAttempt } from "../../schema/webhook.ts";
import type { AttemptLogEntry, LeasedDelivery } from "../../store/webhook_store.ts";
import type { WebhookRequest, WebhookResult } from "../../delivery/webhook_sender.ts";
import { WEBHOOK_TIMEOUTS } from "../../delivery/webhook_timeouts.ts";

/** How many of the first bytes of a response a sandbox stores (contract §4, ADR 0018). */
const KEPT_RESPONSE_BYTES = 1024;

/** Sends a signed request. Production uses `sendWebhook`; some tests pass another function. */
export type Send = (
  request: Pick<
    WebhookRequest,
    "url" | "headers" | "body" | "allow_private" | "response_bytes" | "timeouts"
  >,
) => Promise<WebhookResult>;

interface AttemptToMake {
  event_id: string;
  /** The payload's text. */
  body: string;
  url: string;
  number: number;
  /** The secrets that sign now, as text, newest first. */
  secrets: readonly string[];
  allow_private: boolean;
  /** The mode of the endpoint. Nothing of a live attempt is logged. */
  livemode: boolean;
  /** The real time, which the signature carries because receivers compare it with their own. */
  signed_ms: number;
  /** The declared fault of the attempt; absent: none. */
  fault?: LeasedDelivery["fault"];
  /** The place in a trace from which the event came; absent or null: none. */
  traceparent?: string | null;
}

export interface EndedAttempt {
  /** True if the receiver returned any 2xx. */
  delivered: boolean;
  record: DeliveryAttempt;
  retry_after: string | undefined;
  /** The request and the beginning of the response, to store them; null for a live endpoint. */
  log_entry: AttemptLogEntry | null;
}

/** Makes the record of an attempt whose process ended before the attempt (ADR 0017). */
export function crashedAttempt(number: number, at_ms: number): EndedAttempt {
  return {
    delivered: false,
    record: {
      number,
      at: formatTime(at_ms),
      response_status: null,
      duration_ms: 0,
      error: "crashed",
    },
    retry_after: undefined,
    log_entry: null,
  };
}

/** A secret of no endpoint, which signs attempts with the fault `wrong_signature`. */
const WRONG_SECRET = "whsec_" + btoa("\0".repeat(32));

/**
 * Makes the headers of an attempt, signed with the real time `signed_ms`. With the fault
 * `wrong_signature` no secret of the endpoint signs.
 */
export function deliveryHeaders(
  { event_id, body, number, secrets, fault, traceparent }: Pick<
    AttemptToMake,
    "event_id" | "body" | "number" | "secrets" | "fault" | "traceparent"
  >,
  signed_ms: number,
): Record<string, string> {
  const signature = signDelivery({
    event_id,
    body,
    secrets: fault === "wrong_signature" ? [WRONG_SECRET] : secrets,
    timestamp_seconds: Math.floor(signed_ms / 1000),
  });
  return {
    "Content-Type": "application/json",
    "User-Agent": "Payments-Webhooks/1",
    ...signature,
    "Webhook-Attempt": String(number),
    ...(fault && { [FAULT_HEADER]: fault }),
    ...(traceparent && { traceparent }),
  };
}

/**
 * Makes one attempt. `at_ms` is its time, by the clock of the environment. With the fault
 * `duplicate` the request is sent again after the response; the attempt has the result of the first
 * one.
 */
export async function makeAttempt(
  attempt: AttemptToMake,
  at_ms: number,
  send: Send,
): Promise<EndedAttempt> {
  const { body, url, number, allow_private, livemode, signed_ms, fault } = attempt;
  const began = performance.now();
  const { headers, result } = await inSpan(attempt, async (traceparent) => {
    const headers = deliveryHeaders({ ...attempt, traceparent }, signed_ms);
    const result = await send({
      url,
      headers,
      body,
      allow_private,
      ...(!livemode && { response_bytes: KEPT_RESPONSE_BYTES }),
    });
    return { headers, result };
  });
  if (fault === "duplicate") {
    // Both together take as long as one attempt may, so that they end within the lease.
    const { connect_ms, total_ms } = WEBHOOK_TIMEOUTS;
    const left_ms = total_ms - (performance.now() - began);
    const timeouts = { connect_ms, total_ms: Math.max(left_ms, 1) };
    await send({ url, headers, body, allow_private, timeouts });
  }
  const response_status = result.outcome === "response" ? result.status : null;
  return {
    delivered: response_status !== null && response_status >= 200 && response_status <= 299,
    record: {
      number,
      at: formatTime(at_ms),
      response_status,
      duration_ms: result.duration_ms,
      error: result.outcome === "response" ? null : result.outcome,
    },
    retry_after: result.outcome === "response" ? result.retry_after : undefined,
    log_entry: livemode ? null : logEntryOf(url, headers, result),
  };
}

/** Runs an attempt in a span, with the `traceparent` to send. */
function inSpan<T extends { result: WebhookResult }>(
  { event_id, url, number, traceparent = null }: AttemptToMake,
  run: (traceparent: string | null) => Promise<T>,
): Promise<T> {
  const attributes = {
    ...callAttributes("POST", url),
    "http.request.header.webhook-id": [event_id],
    ...(number > 1 && { "http.request.resend_count": BigInt(number - 1) }),
  };
  return span("delivery", async (describe) => {
    const ended = await run(traceparentOf(traceparent));
    const { result } = ended;
    describe?.(
      result.outcome === "response"
        ? responseAttributes(result.status)
        : { "error.type": result.outcome },
    );
    return ended;
  }, { kind: "client", attributes, parent: traceparent });
}

function logEntryOf(
  url: string,
  headers: Record<string, string>,
  result: WebhookResult,
): AttemptLogEntry {
  const response = result.outcome === "response" ? result.response : undefined;
  return {
    url,
    headers: JSON.stringify(headers),
    response: response?.text ?? null,
    response_truncated: response?.truncated ?? false,
  };
}
