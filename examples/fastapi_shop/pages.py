"""The pages of the shop, as HTML."""

from html import escape

STYLE = """:root { color-scheme: light dark; background: canvas; color: canvastext }
html { font: 1.1rem/1.5 system-ui, sans-serif }
body { max-width: 34rem; margin: 3rem auto; padding: 0 1rem }
button { display: block; font: inherit; margin: .5rem 0; padding: .4rem 1.2rem }
a { padding: .2rem 0 }"""

# The texts of the states of an order.
TEXTS = {
    "open": "We wait for your payment.",
    "waiting": "Your bank asks you to approve the payment.",
    "processing": "Your bank has not responded yet. We will send you a mail.",
    "authorized": "Thank you. We charge your card when the order ships.",
    "paid": "Thank you. Your order is paid.",
    "declined": "Your payment was declined, and nothing was charged.",
    "failed": "The payment failed. You can order again.",
    "cancelled": "The payment is cancelled, and nothing was charged.",
    "disputed": "Your bank has asked for the money back.",
}

# The statuses that change soon. Their page loads itself again.
CHANGES_SOON = ["open", "waiting", "processing"]
# The statuses in which the payer can pay, by another method too.
PAYABLE = ["open", "waiting", "declined"]


def products_page(products):
    """The products, each with a button that opens an order."""
    forms = [
        f"""<h2>{escape(product["product"])}</h2>
<form method="post" action="/orders">
<p>{_price(product["amount"], product["currency"])}</p>
<button name="product" value="{escape(key)}">Buy the {escape(product["product"])}</button>
</form>"""
        for key, product in products.items()
    ]
    return _page("Shop", "\n".join(forms))


def order_page(order):
    """The state of the order, with the way to its checkout until it is paid."""
    title = f"{order.product}, {_price(order.amount, order.currency)}"
    parts = [f'<p role="status">{TEXTS[order.status]}</p>']
    if order.status in PAYABLE:
        parts.append(f'<p><a href="{escape(order.checkout_url)}">Pay</a></p>')
    if order.status in CHANGES_SOON:
        parts.append("<script>setTimeout(() => location.reload(), 1000)</script>")
    if order.refunded > 0:
        parts.append(f"<p>We gave {_price(order.refunded, order.currency)} back.</p>")
    parts.append('<p><a href="/">Back to the shop</a></p>')
    return _page(title, "\n".join(parts))


def message_page(text):
    """A page with one sentence."""
    return _page("Shop", f'<p>{escape(text)}</p><p><a href="/">Back to the shop</a></p>')


def _page(title, content):
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{escape(title)}</title>
<style>{STYLE}</style>
<main><h1>{escape(title)}</h1>
{content}
</main>
</html>"""


def _price(amount, currency):
    # Both products cost euros, which have two decimals.
    return f"{amount // 100}.{amount % 100:02d} {currency}"
