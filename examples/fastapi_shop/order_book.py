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

# Nothing was charged and nothing will be, so the payer can pay again.
PAYABLE_AGAIN = ["declined", "failed"]


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
    # The number of the payment: the payer can begin one more after a decline.
    attempt: int = 1
    # None until the shop knows the payment of this attempt.
    payment_id: str | None = None
    # The page of 3-D Secure, while the payment waits for the payer.
    bank_url: str | None = None
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

    def open(self, order_id, product):
        """Opens an order of a product."""
        self._orders[order_id] = Order(id=order_id, **product)
        return self._orders[order_id]

    def find(self, order_id):
        """Finds an order. Raises UnknownOrder if there is none."""
        if order_id not in self._orders:
            raise UnknownOrder(order_id)
        return self._orders[order_id]

    def pay_again(self, order):
        """Begins the next attempt to pay an order, if the last one has charged nothing."""
        if order.status not in PAYABLE_AGAIN:
            return
        order.attempt += 1
        order.status = "open"
        order.payment_id = None
        order.failure_code = None
        self._sequences.pop(order.id, None)

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
        """A payment carries the id of its order. Refunds and disputes name the payment."""
        if thing["object"] == "payment":
            return self._orders.get(thing["reference"])
        payment_id = thing.get("payment_id")
        orders = self._orders.values()
        return next((order for order in orders if order.payment_id == payment_id), None)

    def _apply_payment(self, order, event, payment):
        # A webhook of an earlier attempt can come late.
        if payment["metadata"].get("attempt") != str(order.attempt):
            return
        order.payment_id = payment["id"]
        # Webhooks can arrive in another order than their events happened.
        if event["sequence"] < self._sequences.get(order.id, 0):
            return
        self._sequences[order.id] = event["sequence"]
        order.status = STATUS_AFTER.get(event["type"], order.status)
        order.bank_url = bank_url(payment)
        order.failure_code = payment["failure_code"]
        order.refunded = payment["amount_refunded"]
        if event["type"] == "payment.completed" and order.fulfilled == 0:
            order.fulfilled = 1


def bank_url(payment):
    """The page of 3-D Secure to which the payer goes, or None."""
    action = payment["next_action"]
    return action["url"] if action and action["type"] == "authenticate" else None
