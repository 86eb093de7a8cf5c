/**
 * POST {order_id, product, token} opens an order of the signed-in payer and pays it. Returns
 * {status, url}: with a url, send the browser there for 3-D Secure. The status is for the payer's
 * eyes only: the webhook decides what is paid. If the payment is declined or failed, the next call
 * pays the order again.
 */

import { ApiError, type Payment, PaymentsClient } from "@payments-api/client";
import { nextAttempt, type OpenOrder, openOrder, storePayment, UUID } from "../_shared/orders.ts";
import { CORS_HEADERS, type Payer, payerOf } from "../_shared/payer.ts";

/** The shop decides the price, never the browser. */
const PRODUCTS = new Map([["print", { amount: 2500, currency: "EUR" }]]);

/** Reads PAYMENTS_API_KEY. */
const client = new PaymentsClient({
  // By default the service is in this project.
  baseUrl: Deno.env.get("PAYMENTS_BASE_URL") ?? `${Deno.env.get("SUPABASE_URL")}/functions/v1`,
});
/** The page to which the payer comes back. */
const RETURN_URL = Deno.env.get("SHOP_RETURN_URL") ?? "http://127.0.0.1:3000/order";

Deno.serve(async (request) => {
  if (request.method === "OPTIONS") return new Response(null, { headers: CORS_HEADERS });
  const payer = payerOf(request);
  if (payer === null) return respond(401, { error: "Sign in first" });
  const { order_id, product, token } = await request.json().catch(() => ({}));
  const price = PRODUCTS.get(product);
  if (!UUID.test(order_id) || !price || typeof token !== "string") {
    return respond(400, { error: "Send order_id (a UUID), a product that we sell, and a token" });
  }
  const order = await openOrder({ id: order_id, user_id: payer.id, product, ...price });
  if (order === null) return respond(404, { error: "There is no such order" });
  try {
    const payment = await paymentOf(order, payer, token);
    const { next_action } = payment;
    const url = next_action?.type === "authenticate" ? next_action.url : null;
    return respond(200, { status: payment.status, url });
  } catch (error) {
    if (error instanceof ApiError && error.status < 500) {
      return respond(error.status, { error: error.message });
    }
    console.error(error);
    return respond(502, { error: "Try again with the same order_id: you do not pay twice" });
  }
});

/** Returns the payment of an order. Creates it, and one more if the last one charged nothing. */
async function paymentOf(order: OpenOrder, payer: Payer, token: string): Promise<Payment> {
  // A key is valid for 24 hours. After that time the order knows its payment.
  if (order.payment_id === null) return await pay(order, payer, token);
  const payment = await client.payments.retrieve(order.payment_id);
  const is_payable_again = payment.status === "declined" || payment.status === "failed";
  return is_payable_again ? await pay(await nextAttempt(order), payer, token) : payment;
}

/** Creates the payment of an order. Returns it also if the card is declined. */
async function pay(order: OpenOrder, payer: Payer, token: string): Promise<Payment> {
  const { id, amount, currency, attempt } = order;
  const return_url = new URL(RETURN_URL);
  return_url.searchParams.set("order", id);
  const payment = await client.payments.create({
    amount,
    currency,
    card: { token },
    // By this id the user may read the payment (web/my_payments.ts).
    ...(payer.email !== null && { customer: { id: payer.id, email: payer.email } }),
    reference: id,
    metadata: { attempt: String(attempt) },
    return_url: return_url.href,
  }, {
    // The key belongs to the attempt, so a second click makes no second payment.
    idempotencyKey: `order-${id}-${attempt}`,
  }).catch(declinedPayment);
  await storePayment(order, payment);
  return payment;
}

function respond(status: number, body: object): Response {
  return Response.json(body, { status, headers: CORS_HEADERS });
}

/** Returns the payment of a decline, which is stored too. Other errors stay errors. */
function declinedPayment(error: unknown): Payment {
  if (error instanceof ApiError && error.status === 402 && error.payment) return error.payment;
  throw error;
}
