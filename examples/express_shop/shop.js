/**
 * A shop that sells through checkouts: the payer pays on the page of the payments service, which
 * sends them back. The shop never sees a card number.
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
 */
export function createShop({ client, webhookSecret, publicUrl, adminToken }) {
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

  app.post("/orders", async (request, response) => {
    const product = PRODUCTS.get(request.body?.product);
    if (!product) return response.status(400).send(messagePage("We do not sell this"));
    // Nobody can guess the id, so only the payer knows the page of the order.
    const id = crypto.randomUUID();
    const { name, amount, currency, ships_later } = product;
    const checkout = await client.checkouts.create({
      amount,
      currency,
      description: name,
      reference: id,
      return_url: `${publicUrl}/orders/${id}`,
      cancel_url: publicUrl,
      // Only cards can be authorized first and charged later.
      ...(ships_later && { methods: ["card"], capture: "manual" }),
      // A retry after a lost response makes no second checkout.
    }, { idempotencyKey: `order-${id}` });
    book.open(id, product, checkout);
    response.redirect(303, checkout.url);
  });

  // The checkout sends the payer back to this page. Anybody can open the address, so the visit
  // proves nothing: the page shows the status that webhooks have set.
  app.get("/orders/:id", (request, response) => {
    response.set("Cache-Control", "no-store").send(orderPage(book.find(request.params.id)));
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
