/**
 * What a receiver keeps of a delivery: enough to tell afterwards whether it was genuine, fresh, whole
 * and in order.
 */

import { createHash } from "node:crypto";
import { verifyWebhook } from "../client/webhook_signature.ts";

/** How the receiver fails a delivery on purpose. */
export const WAYS_TO_FAIL = ["500", "503", "302", "silent"] as const;
export type WayToFail = typeof WAYS_TO_FAIL[number];

/** A delivery as it arrived. */
export interface Arrival {
  at_ms: number;
  path: string;
  event_id: string;
  type: string;
  subject_id: string;
  sequence: number;
  /** The idempotency key of the request that the event is of. */
  key: string | null;
  attempt: number;
  /** SHA-256 of the body, in hex. */
  body_hash: string;
  /** Age of the signature (its `t`) when it arrived, in milliseconds; 0 to 1 000 is its rounding. */
  age_ms: number;
  /** `Webhook-Timestamp` less `t`, in seconds: they are one time. */
  timestamps_apart_s: number;
  is_genuine: boolean;
  /** Answered 2xx. */
  is_taken: boolean;
  failed_by: WayToFail | null;
}

/** A request as a receiver has it. */
interface ReceivedRequest {
  path: string;
  headers: Headers;
  bytes: Uint8Array;
  /** The receiver's clock. */
  at_ms: number;
}

/** Reads a delivery; it counts as taken when it is genuine. @param secret of the endpoint */
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
