/** Verifies recorded webhooks. */

import { verifyWebhook } from "../../../packages/client/webhook_signature.ts";
import type { Arrival } from "./recording_receiver.ts";

/** Returns for each secret whether it verifies the webhook at the time of its timestamp. */
export function verifiedBy(arrival: Arrival, secrets: readonly string[]): Promise<boolean[]> {
  const header = arrival.headers.get("Payment-Signature");
  const now_ms = Number(arrival.headers.get("Webhook-Timestamp")) * 1000;
  return Promise.all(
    secrets.map((secret) =>
      verifyWebhook(arrival.bytes, header, secret, { now_ms }).then(() => true, () => false)
    ),
  );
}
