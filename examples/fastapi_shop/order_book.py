"""The orders of the shop. Only webhooks change their status.

This book is in memory. A real shop keeps its orders in a database, as examples/supabase_orders
does.
"""

from dataclasses import dataclass

# The status of an order after each event of its payment.
STATUS_AFTER = {
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
}

# The payment has paid nothing, so any other one of the checkout can take its place.
PAID_NOTHING = ["open", "waiting", "declined", "failed", "cancelled"]


class UnknownOrder(Exception):
    """There is no order with this id."""


@dataclass
class Order:
    """Amounts are in the minor unit of the currency."""

    id: str
    product: str
    amount: int
    currency: str
    ships_later: bool
    # The payer can try again in it after a decline.
    checkout_id: str
    # The page on which the payer pays.
    checkout_url: str
    # The newest payment of the checkout.
    payment_id: str | None = None
    status: str = "open"
    # Parcels that the shop has packed: one, however often a webhook comes.
    fulfilled: int = 0
    refunded: int = 0
    failed_refunds: int = 0
    failure_code: str | None = None


class OrderBook:
    """Applies each event once, and never an older event after a newer one."""

    def __init__(self):
        self._orders = {}
        self._handled = set()
        self._sequences = {}

    def open(self, order_id, product, checkout):
        """Opens an order of a product, which its checkout sells."""
        self._orders[order_id] = Order(
            id=order_id, **product, checkout_id=checkout["id"], checkout_url=checkout["url"]
        )

    def find(self, order_id):
        """Finds an order. Raises UnknownOrder if there is none."""
        if order_id not in self._orders:
            raise UnknownOrder(order_id)
        return self._orders[order_id]

    def apply(self, event):
        """Applies an event. It ignores an event that it knows, and one of no order of this shop."""
        thing = event["data"]["object"]
        order = self._order_of(thing)
        if order is None or event["id"] in self._handled:
            return
        self._handled.add(event["id"])
        if event["type"] == "refund.failed":
            order.failed_refunds += 1
        if thing["object"] == "payment":
            self._apply_payment(order, event, thing)

    def _order_of(self, thing):
        """A payment names its checkout. Refunds and disputes name the payment."""
        name = "checkout_id" if thing["object"] == "payment" else "payment_id"
        orders = self._orders.values()
        return next((order for order in orders if getattr(order, name) == thing.get(name)), None)

    def _apply_payment(self, order, event, payment):
        # A webhook of an earlier attempt can come late. Ids sort by time.
        is_earlier = payment["id"] < (order.payment_id or "")
        if is_earlier and order.status not in PAID_NOTHING:
            return
        order.payment_id = payment["id"]
        # Webhooks can arrive in another order than their events happened.
        if event["sequence"] < self._sequences.get(payment["id"], 0):
            return
        self._sequences[payment["id"]] = event["sequence"]
        order.status = STATUS_AFTER.get(event["type"], order.status)
        order.failure_code = payment["failure_code"]
        order.refunded = payment["amount_refunded"]
        if event["type"] == "payment.completed" and order.fulfilled == 0:
            order.fulfilled = 1
