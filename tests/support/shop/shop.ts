/**
 * A small shop: an Express program on the client, as a merchant writes it. It has one setting that
 * says where its payments go, the API key. It takes no card number: the page sends a token.
 */

import express from "express";
import {
  ApiError,
  type CreatePaymentInput,
  type Payment,
  type PaymentsClient,
  verifyWebhook,
  WEBHOOK_SIGNATURE_HEADER,
  WebhookVerificationError,
} from "../../../client/mod.ts";
import { type Order, OrderBook } from "./order_book.ts";

/** The settings of the shop. */
interface ShopSettings {
  client: PaymentsClient;
  webhook_secret: string;
  /** Address of the shop for payers. */
  public_url: string;
}

/** The part of an Express request that the shop reads. */
interface Request {
  // deno-lint-ignore no-explicit-any
  body: any;
  params: Record<string, string>;
  query: Record<string, string>;
  header(name: string): string | undefined;
}

/** The part of an Express response that the shop writes. */
interface Response {
  status(code: number): Response;
  json(body: unknown): void;
  end(): void;
}

type Next = (error?: unknown) => void;

/** Makes the shop. The return value handles requests of `node:http` and `node:https`. */
export function createShop({ client, webhook_secret, public_url }: ShopSettings) {
  const book = new OrderBook();
  const app = express();
  // The signature covers the raw bytes, so this route comes before the JSON parser.
  app.post(
    "/webhooks",
    express.raw({ type: () => true }),
    async (request: Request, response: Response) => {
      const header = request.header(WEBHOOK_SIGNATURE_HEADER);
      book.apply(await verifyWebhook(request.body, header, webhook_secret));
      response.status(204).end();
    },
  );
  app.use(express.json());

  app.post("/checkout", async (request: Request, response: Response) => {
    const { order: id, amount, currency, token, ships_later = false } = request.body;
    const order = book.open(id, amount, currency);
    const input: CreatePaymentInput = {
      amount,
      currency,
      card: { token },
      reference: id,
      return_url: `${public_url}/return?order=${id}`,
      ...(ships_later && { capture: "manual" }),
      ...request.body.more,
    };
    // A second click sends the same key, so it makes no second payment.
    const payment = await client.payments.create(input, { idempotencyKey: `checkout-${id}` })
      .catch(declined);
    order.payment_id = payment.id;
    response.json(toPayer(payment));
  });

  app.get("/return", async (request: Request, response: Response) => {
    const order = found(book, request.query.order!);
    response.json(toPayer(await client.payments.retrieve(order.payment_id!)));
  });

  app.post("/orders/:id/ship", async (request: Request, response: Response) => {
    const { payment_id, id } = found(book, request.params.id!);
    const options = { idempotencyKey: `ship-${id}` };
    const payment = await client.payments.capture(payment_id!, request.body ?? {}, options);
    response.json({ status: payment.status, captured: payment.amount_captured });
  });

  app.post("/orders/:id/refund", async (request: Request, response: Response) => {
    const { payment_id } = found(book, request.params.id!);
    const refund = await client.payments.refund(payment_id!, request.body ?? {});
    const { status, amount, payment_status } = refund;
    response.json({ status, amount, payment_status });
  });

  app.post("/orders/:id/cancel", async (request: Request, response: Response) => {
    const { payment_id } = found(book, request.params.id!);
    response.json(toPayer(await client.payments.cancel(payment_id!)));
  });

  app.get("/orders/:id", (request: Request, response: Response) => {
    response.json(found(book, request.params.id!));
  });

  // Express finds the handler of errors by its four parameters.
  app.use((error: unknown, _request: Request, response: Response, _next: Next) => {
    if (error instanceof WebhookVerificationError) return response.status(400).end();
    if (error instanceof UnknownOrder) return response.status(404).end();
    if (!(error instanceof ApiError)) return response.status(502).json({ error: String(error) });
    const { code, param = null, message } = error;
    response.status(error.status).json({ code, param, message });
  });
  return app;
}

class UnknownOrder extends Error {}

function found(book: OrderBook, id: string): Order {
  const order = book.find(id);
  if (!order) throw new UnknownOrder(id);
  return order;
}

/** Returns the payment of a decline. Other errors stay errors. */
function declined(error: unknown): Payment {
  if (error instanceof ApiError && error.status === 402 && error.payment) return error.payment;
  throw error;
}

/** The answer for the payer's browser. */
function toPayer({ status, next_action, failure_code }: Payment) {
  const url = next_action?.type === "authenticate" ? next_action.url : null;
  return { status, url, reason: failure_code };
}
