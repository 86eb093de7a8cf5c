/**
 * The record that a receiver writes for each delivery. The audit checks with it that deliveries were
 * genuine, fresh, complete and in order.
 */

import { createHash } from "node:crypto";
import { verifyWebhook } from "../../packages/client/webhook_signature.ts";

/** The ways in which the receiver fails a delivery on purpose. */
export const WAYS_TO_FAIL = ["500", "503", "302", "silent"] as const;
export type WayToFail = typeof WAYS_TO_FAIL[number];

/** A received delivery. */
export interface Arrival {
  at_ms: number;
  path: string;
  event_id: string;
  type: string;
  subject_id: string;
  sequence: number;
  /** The idempotency key of the request that caused the event. */
  key: string | null;
  attempt: number;
  /** SHA-256 of the body, in hex. */
  body_hash: string;
  /** Age of the signature (its `t`) on arrival in milliseconds. Up to 1 000 come from rounding. */
  age_ms: number;
  /** `Webhook-Timestamp` minus `t` in seconds; they must be equal. */
  timestamps_apart_s: number;
  is_genuine: boolean;
  /** Whether the receiver returned 2xx. */
  is_taken: boolean;
  failed_by: WayToFail | null;
}

/** A received request. */
interface ReceivedRequest {
  path: string;
  headers: Headers;
  bytes: Uint8Array;
  /** Time of arrival by the clock of the receiver. */
  at_ms: number;
}

/**
 * Verifies a delivery and makes its record. `is_taken` is true if the delivery is genuine.
 * @param secret signing secret of the endpoint
 */
export async function readArrival(
  { path, headers, bytes, at_ms }: ReceivedRequest,
  secret: string,
): Promise<Arrival> {
  const signature = headers.get("Payment-Signature");
  const is_genuine = await verifyWebhook(bytes, signature, secret, { now_ms: at_ms })
    .then(() => true, () => false);
  const signed_at_s = Number(/(?:^|,)t=(\d+)/.exec(signature ?? "")?.[1] ?? NaN);
  const event = JSON.parse(new TextDecoder().decode(bytes));
  return {
    at_ms,
    path,
    event_id: event.id,
    type: event.type,
    subject_id: event.data.object.payment_id ?? event.data.object.id,
    sequence: event.sequence,
    key: event.request.idempotency_key,
    attempt: Number(headers.get("Webhook-Attempt")),
    body_hash: createHash("sha256").update(bytes).digest("hex"),
    age_ms: at_ms - signed_at_s * 1_000,
    timestamps_apart_s: Number(headers.get("Webhook-Timestamp")) - signed_at_s,
    is_genuine,
    is_taken: is_genuine,
    failed_by: null,
  };
}
