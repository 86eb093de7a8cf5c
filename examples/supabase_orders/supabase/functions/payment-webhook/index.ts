/**
 * Receives the webhooks of the payments service, and writes `public.orders`. `verify_jwt` is false
 * in config.toml, because the signature takes the place of a token.
 */

import {
  type Event,
  verifyWebhook,
  WEBHOOK_SIGNATURE_HEADER,
  WebhookVerificationError,
} from "@payments-api/client";
import { applyPaymentEvent } from "../_shared/orders.ts";

Deno.serve(async (request) => {
  // The signature covers the bytes of the body, so they are not parsed before.
  const body = new Uint8Array(await request.arrayBuffer());
  const header = request.headers.get(WEBHOOK_SIGNATURE_HEADER);
  try {
    const event = await verifyWebhook<Event>(body, header, Deno.env.get("WEBHOOK_SECRET")!);
    const { object } = event.data;
    if (object.object === "payment") await applyPaymentEvent(event, object);
    return new Response(null, { status: 204 });
  } catch (error) {
    // After any other response than 2xx the service sends the webhook again.
    if (!(error instanceof WebhookVerificationError)) throw error;
    console.error(error.reason, error.message);
    return new Response(null, { status: 400 });
  }
});
