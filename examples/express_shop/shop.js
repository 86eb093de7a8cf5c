/**
 * A shop with a checkout page. The API key alone decides whether its payments are real. The shop
 * never sees a card number: the browser sends a token of the card.
 */

import express from "express";
import {
  ApiError,
  PaymentsError,
  verifyWebhook,
  WEBHOOK_SIGNATURE_HEADER,
  WebhookVerificationError,
} from "@payments-api/client";
import { createBackOffice } from "./back_office.js";
import { OrderBook, UnknownOrder } from "./order_book.js";
import { messagePage, orderPage, productsPage } from "./pages.js";
import { PRODUCTS } from "./products.js";

/**
 * Makes the shop.
 * @param {object} settings
 * @param {import("@payments-api/client").PaymentsClient} settings.client
 * @param {string} settings.webhookSecret secret of the webhook endpoint, `whsec_…`
 * @param {string} settings.publicUrl address of the shop for browsers
 * @param {string} settings.adminToken the token that opens the back office
 * @param {() => string} [settings.newId] makes the ids of orders, which must not be guessable
 */
export function createShop(
  { client, webhookSecret, publicUrl, adminToken, newId = () => crypto.randomUUID() },
) {
  const book = new OrderBook();
  const app = express();

  // The signature covers the bytes of the body, so no parser may come before this route.
  app.post("/webhooks", express.raw({ type: () => true }), async (request, response) => {
    const header = request.get(WEBHOOK_SIGNATURE_HEADER);
    book.apply(await verifyWebhook(request.body, header, webhookSecret));
    response.status(204).end();
  });

  app.use("/admin", createBackOffice({ book, client, adminToken }));
  app.use(express.urlencoded({ extended: false }));

  app.get("/", (_request, response) => response.send(productsPage(PRODUCTS)));

  app.post("/orders", (request, response) => {
    const product = PRODUCTS.get(request.body?.product);
    if (!product) return response.status(400).send(messagePage("We do not sell this"));
    const { id } = book.open(newId(), product);
    response.redirect(303, `/orders/${id}`);
  });

  // The bank sends the payer back to this page. Anybody can open the address, so the visit proves
  // nothing: the page shows the status that webhooks have set.
  app.get("/orders/:id", (request, response) => {
    response.set("Cache-Control", "no-store").send(orderPage(book.find(request.params.id)));
  });

  app.post("/orders/:id/pay", async (request, response) => {
    const order = book.find(request.params.id);
    book.payAgain(order);
    const { id, amount, currency, ships_later, attempt } = order;
    const page = `/orders/${id}`;
    if (order.payment_id !== null) return response.redirect(303, page);
    const payment = await client.payments.create({
      amount,
      currency,
      card: { token: request.body?.token ?? "" },
      reference: id,
      metadata: { attempt: String(attempt) },
      return_url: publicUrl + page,
      capture: ships_later ? "manual" : "automatic",
    }, {
      // A second click, and a retry after a lost response, make no second payment.
      idempotencyKey: `order-${id}-${attempt}`,
    }).catch(declinedPayment);
    // A webhook can tell the decline before this response, and the payer can have begun to pay
    // again.
    if (order.attempt === attempt) order.payment_id = payment.id;
    const { next_action } = payment;
    response.redirect(303, next_action?.type === "authenticate" ? next_action.url : page);
  });

  // Express finds the handler of errors by its four parameters.
  app.use((error, _request, response, _next) => {
    if (error instanceof WebhookVerificationError) return response.status(400).end();
    if (error instanceof UnknownOrder) {
      return response.status(404).send(messagePage("There is no such order"));
    }
    if (error instanceof ApiError && error.status < 500) {
      return response.status(error.status).send(messagePage(error.message));
    }
    console.error(error);
    if (!(error instanceof PaymentsError)) {
      return response.status(500).send(messagePage("Something went wrong"));
    }
    const text =
      "The payment service did not respond. Go back and try again: you do not pay twice.";
    response.status(502).send(messagePage(text));
  });
  return app;
}

/** Returns the payment of a decline, which is stored too. Other errors stay errors. */
function declinedPayment(error) {
  if (error instanceof ApiError && error.status === 402 && error.payment) return error.payment;
  throw error;
}
