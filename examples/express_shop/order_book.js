/**
 * The orders of the shop. Only webhooks change their status. This book is in memory: a real shop
 * keeps its orders in a database, as examples/supabase_orders does.
 */

/**
 * An order. Amounts are in the minor unit of the currency.
 * @typedef {object} Order
 * @property {string} id
 * @property {string} product
 * @property {number} amount
 * @property {string} currency
 * @property {boolean} ships_later the card is charged when the order ships
 * @property {number} attempt the number of the payment: a decline can be followed by one more
 * @property {string | null} payment_id null until the shop knows the payment of this attempt
 * @property {string | null} bank_url the page of 3-D Secure, while the payment waits for the payer
 * @property {"open" | "waiting" | "processing" | "authorized" | "paid" | "declined" | "failed"
 *   | "cancelled" | "disputed"} status
 * @property {number} fulfilled parcels that the shop has packed: one, however often a webhook comes
 * @property {number} refunded
 * @property {number} failed_refunds
 * @property {string | null} failure_code
 */

/**
 * The status of an order after each event of its payment.
 * @type {Record<string, Order["status"]>}
 */
const STATUS_AFTER = {
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

/** Nothing was charged and nothing will be, so the payer can pay again. */
export const PAYABLE_AGAIN = ["declined", "failed"];

/** The order book. It applies each event once, and never an older event after a newer one. */
export class OrderBook {
  /** @type {Map<string, Order>} */
  #orders = new Map();
  #handled = new Set();
  #sequences = new Map();

  /**
   * Opens an order of a product.
   * @returns {Order}
   */
  open(id, { name, amount, currency, ships_later }) {
    /** @type {Order} */
    const order = {
      id,
      product: name,
      amount,
      currency,
      ships_later,
      attempt: 1,
      payment_id: null,
      bank_url: null,
      status: "open",
      fulfilled: 0,
      refunded: 0,
      failed_refunds: 0,
      failure_code: null,
    };
    this.#orders.set(id, order);
    return order;
  }

  /** Finds an order. Throws an UnknownOrder if there is none. */
  find(id) {
    const order = this.#orders.get(id);
    if (!order) throw new UnknownOrder(id);
    return order;
  }

  /** Begins the next attempt to pay an order, if the last one has charged nothing. */
  payAgain(order) {
    if (!PAYABLE_AGAIN.includes(order.status)) return;
    order.attempt++;
    order.status = "open";
    order.payment_id = null;
    order.failure_code = null;
    this.#sequences.delete(order.id);
  }

  /** Applies an event. It ignores an event that it knows, and one of no order of this shop. */
  apply(event) {
    const { object } = event.data;
    const order = this.#orderOf(object);
    if (!order || this.#handled.has(event.id)) return;
    this.#handled.add(event.id);
    if (event.type === "refund.failed") order.failed_refunds++;
    if (object.object === "payment") this.#applyPayment(order, event, object);
  }

  /** The reference of a payment is the id of its order. Refunds and disputes name the payment. */
  #orderOf({ object, reference, payment_id }) {
    if (object === "payment") return this.#orders.get(reference);
    return [...this.#orders.values()].find((order) => order.payment_id === payment_id);
  }

  #applyPayment(order, { type, sequence }, payment) {
    // A webhook of an earlier attempt can come late.
    if (payment.metadata.attempt !== String(order.attempt)) return;
    order.payment_id = payment.id;
    // Webhooks can arrive in another order than their events happened.
    if (sequence < (this.#sequences.get(order.id) ?? 0)) return;
    this.#sequences.set(order.id, sequence);
    order.status = STATUS_AFTER[type] ?? order.status;
    order.bank_url = payment.next_action?.type === "authenticate" ? payment.next_action.url : null;
    order.failure_code = payment.failure_code;
    order.refunded = payment.amount_refunded;
    if (type === "payment.completed" && order.fulfilled === 0) order.fulfilled++;
  }
}

/** There is no order with this id. */
export class UnknownOrder extends Error {}
