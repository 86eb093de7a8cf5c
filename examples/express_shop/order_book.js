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
 * @property {string} checkout_id the payer can try again in it after a decline
 * @property {string} checkout_url the page on which the payer pays
 * @property {string | null} payment_id the newest payment of the checkout
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

/** The payment has paid nothing, so any other one of the checkout can take its place. */
const PAID_NOTHING = ["open", "waiting", "declined", "failed", "cancelled"];

/** The order book. It applies each event once, and never an older event after a newer one. */
export class OrderBook {
  /** @type {Map<string, Order>} */
  #orders = new Map();
  #handled = new Set();
  #sequences = new Map();

  /** Opens an order of a product, which its checkout sells. */
  open(id, { name, amount, currency, ships_later }, checkout) {
    /** @type {Order} */
    const order = {
      id,
      product: name,
      amount,
      currency,
      ships_later,
      checkout_id: checkout.id,
      checkout_url: checkout.url,
      payment_id: null,
      status: "open",
      fulfilled: 0,
      refunded: 0,
      failed_refunds: 0,
      failure_code: null,
    };
    this.#orders.set(id, order);
  }

  /** Finds an order. Throws an UnknownOrder if there is none. */
  find(id) {
    const order = this.#orders.get(id);
    if (!order) throw new UnknownOrder(id);
    return order;
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

  /** A payment names its checkout. Refunds and disputes name the payment. */
  #orderOf({ object, checkout_id, payment_id }) {
    const is_payment = object === "payment";
    return [...this.#orders.values()].find((order) =>
      is_payment ? order.checkout_id === checkout_id : order.payment_id === payment_id
    );
  }

  #applyPayment(order, { type, sequence }, payment) {
    // A webhook of an earlier attempt can come late. Ids sort by time.
    const is_earlier = order.payment_id !== null && payment.id < order.payment_id;
    if (is_earlier && !PAID_NOTHING.includes(order.status)) return;
    order.payment_id = payment.id;
    // Webhooks can arrive in another order than their events happened.
    if (sequence < (this.#sequences.get(payment.id) ?? 0)) return;
    this.#sequences.set(payment.id, sequence);
    order.status = STATUS_AFTER[type] ?? order.status;
    order.failure_code = payment.failure_code;
    order.refunded = payment.amount_refunded;
    if (type === "payment.completed" && order.fulfilled === 0) order.fulfilled++;
  }
}

/** There is no order with this id. */
export class UnknownOrder extends Error {}
