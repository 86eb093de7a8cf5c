/** Shipping, refunds and cancels, for the people of the shop. Responses and errors are JSON. */

import { createHash, timingSafeEqual } from "node:crypto";
import express from "express";
import { ApiError } from "@payments-api/client";
import { UnknownOrder } from "./order_book.js";

/** Makes the routes. Each request carries `Authorization: Bearer <adminToken>`. */
export function createBackOffice({ book, client, adminToken }) {
  const office = express.Router();
  const expected = sha256(`Bearer ${adminToken}`);
  office.use((request, response, next) => {
    if (timingSafeEqual(sha256(request.get("Authorization") ?? ""), expected)) return next();
    response.status(401).json({ code: "unauthorized" });
  });
  office.use(express.json());

  office.get("/orders/:id", (request, response) => {
    response.json(book.find(request.params.id));
  });

  /**
   * Charges an authorized order. The body can have a smaller `amount`. The API checks it, so a
   * misspelt `amount` does not charge the whole.
   */
  office.post("/orders/:id/ship", async (request, response) => {
    const { payment_id } = book.find(request.params.id);
    const options = { idempotencyKey: `ship-${payment_id}` };
    const payment = await client.payments.capture(payment_id, request.body ?? {}, options);
    response.json({ status: payment.status, captured: payment.amount_captured });
  });

  /** Refunds the whole order, or `amount` of it. Each refund has a key of the caller. */
  office.post("/orders/:id/refund", async (request, response) => {
    const { payment_id } = book.find(request.params.id);
    const idempotencyKey = request.get("Idempotency-Key");
    if (!idempotencyKey) {
      return response.status(400).json({ code: "idempotency_key_missing" });
    }
    const refund = await client.payments.refund(payment_id, request.body ?? {}, { idempotencyKey });
    const { status, amount, payment_status } = refund;
    response.json({ status, amount, payment_status });
  });

  /** Releases an authorized payment. Before that it ends the checkout, so that nobody pays. */
  office.post("/orders/:id/cancel", async (request, response) => {
    const order = book.find(request.params.id);
    const is_paid = order.status === "authorized";
    const id = is_paid ? order.payment_id : order.checkout_id;
    const { payments, checkouts } = client;
    const cancelled = await (is_paid ? payments : checkouts).cancel(id, {
      idempotencyKey: `cancel-${id}`,
    });
    // A checkout without a payment has no event.
    order.status = cancelled.status;
    response.json({ status: cancelled.status });
  });

  office.use((error, _request, response, next) => {
    if (error instanceof UnknownOrder) return response.status(404).json({ code: "not_found" });
    if (!(error instanceof ApiError)) return next(error);
    const { status, code, param = null, message } = error;
    response.status(status).json({ code, param, message });
  });
  return office;
}

/** Hashes have one length, which `timingSafeEqual` needs. */
function sha256(text) {
  return createHash("sha256").update(text).digest();
}
