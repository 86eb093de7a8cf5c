/** The orders of the shop. Webhooks decide what is paid; answers only tell the payer. */

import type { Event, Payment, Refund } from "../../../client/mod.ts";

/** An order. Money is in minor units. */
export interface Order {
  id: string;
  amount: number;
  currency: string;
  /** Null until the payment is known. */
  payment_id: string | null;
  status:
    | "open"
    | "waiting"
    | "processing"
    | "authorized"
    | "paid"
    | "declined"
    | "failed"
    | "cancelled"
    | "disputed";
  /** Number of parcels that the shop has packed: one, however often a webhook comes. */
  fulfilled: number;
  refunded: number;
  failed_refunds: number;
  failure_code: string | null;
}

/** The status of an order after each event of its payment. */
const STATUS_AFTER: Record<string, Order["status"]> = {
  "payment.created": "open",
  "payment.requires_action": "waiting",
  "payment.processing": "processing",
  "payment.authorized": "authorized",
  "payment.completed": "paid",
  "payment.partially_refunded": "paid",
  "payment.refunded": "paid",
  "payment.declined": "declined",
  "payment.failed": "failed",
  "payment.cancelled": "cancelled",
  "payment.chargeback": "disputed",
};

/** The order book. It applies each event once, in the order of the payment's sequence. */
export class OrderBook {
  readonly #orders = new Map<string, Order>();
  readonly #handled = new Set<string>();
  readonly #sequences = new Map<string, number>();

  /** Opens an order, or returns the one that has this id. */
  open(id: string, amount: number, currency: string): Order {
    const found = this.#orders.get(id);
    if (found) return found;
    const order: Order = {
      id,
      amount,
      currency,
      payment_id: null,
      status: "open",
      fulfilled: 0,
      refunded: 0,
      failed_refunds: 0,
      failure_code: null,
    };
    this.#orders.set(id, order);
    return order;
  }

  /** Finds an order. */
  find(id: string): Order | undefined {
    return this.#orders.get(id);
  }

  /** Applies an event. Returns false if it was applied before, or is of no order of this shop. */
  apply(event: Event): boolean {
    if (this.#handled.has(event.id)) return false;
    const order = this.#orderOf(event.data.object);
    if (!order) return false;
    this.#handled.add(event.id);
    const { object } = event.data;
    if (event.type === "refund.failed") order.failed_refunds++;
    if (object.object === "payment") this.#applyPayment(order, event, object);
    return true;
  }

  #orderOf(object: { object: string }): Order | undefined {
    if (object.object === "payment") {
      const { id, reference } = object as Payment;
      const order = this.#orders.get(reference ?? "");
      if (order) order.payment_id = id;
      return order;
    }
    const { payment_id } = object as Refund;
    return [...this.#orders.values()].find((order) => order.payment_id === payment_id);
  }

  #applyPayment(order: Order, { type, sequence }: Event, payment: Payment): void {
    // A late webhook says nothing new about the status.
    if (sequence < (this.#sequences.get(order.id) ?? 0)) return;
    this.#sequences.set(order.id, sequence);
    order.status = STATUS_AFTER[type] ?? order.status;
    order.failure_code = payment.failure_code;
    order.refunded = payment.amount_refunded;
    if (type === "payment.completed" && order.fulfilled === 0) order.fulfilled++;
  }
}
