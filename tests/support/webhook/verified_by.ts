/** Verifies webhooks that have arrived. */

import { verifyWebhook } from "../../../client/webhook_signature.ts";
import type { Arrival } from "./recording_receiver.ts";

/** Tells for each secret whether it verifies the webhook at the time that the webhook states. */
export function verifiedBy(arrival: Arrival, secrets: readonly string[]): Promise<boolean[]> {
  const header = arrival.headers.get("Payment-Signature");
  const now_ms = Number(arrival.headers.get("Webhook-Timestamp")) * 1000;
  return Promise.all(
    secrets.map((secret) =>
      verifyWebhook(arrival.bytes, header, secret, { now_ms }).then(() => true, () => false)
    ),
  );
}
