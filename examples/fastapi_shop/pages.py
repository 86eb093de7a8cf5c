"""The pages of the shop, as HTML."""

from html import escape

from order_book import PAYABLE_AGAIN

# Tokens of test cards. With a live key, the provider's form takes the card in the browser and gives
# the page a token.
TEST_CARDS = {
    "pm_card_visa": "Visa: accepted",
    "pm_card_authenticationRequired": "Visa with 3-D Secure",
    "pm_card_chargeDeclined": "Visa: declined",
    "pm_card_chargeDeclinedInsufficientFunds": "Visa: no funds",
}

STYLE = """:root { color-scheme: light dark; background: canvas; color: canvastext }
html { font: 1.1rem/1.5 system-ui, sans-serif }
body { max-width: 34rem; margin: 3rem auto; padding: 0 1rem }
label, select, button { display: block; font: inherit; margin: .5rem 0 }
select { width: 100% } button { padding: .4rem 1.2rem } a { padding: .2rem 0 }"""

# The texts of an order whose payment has begun.
TEXTS = {
    "open": "We wait for the confirmation of your payment.",
    "waiting": "Your bank asks you to approve the payment.",
    "processing": "Your bank has not responded yet. We will send you a mail.",
    "authorized": "Thank you. We charge your card when the order ships.",
    "paid": "Thank you. Your order is paid.",
    "declined": "Your card was declined, and nothing was charged.",
    "failed": "The payment failed, and nothing was charged.",
    "cancelled": "The order is cancelled.",
    "disputed": "Your bank has asked for the money back.",
}

# The statuses that change soon. Their page loads itself again.
CHANGES_SOON = ["open", "waiting", "processing"]


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
    """The order: the form for the card first, and then the state of its payment."""
    title = f"{order.product}, {_price(order.amount, order.currency)}"
    if order.payment_id is None:
        return _page(title, _card_form(order.id))
    parts = [f'<p role="status">{TEXTS[order.status]}</p>']
    if order.bank_url is not None:
        parts.append(f'<p><a href="{escape(order.bank_url)}">Go to your bank</a></p>')
    if order.status in PAYABLE_AGAIN:
        parts.append(_card_form(order.id))
    if order.status in CHANGES_SOON:
        parts.append("<script>setTimeout(() => location.reload(), 1000)</script>")
    if order.refunded > 0:
        parts.append(f"<p>We gave {_price(order.refunded, order.currency)} back.</p>")
    parts.append('<p><a href="/">Back to the shop</a></p>')
    return _page(title, "\n".join(parts))


def message_page(text):
    """A page with one sentence."""
    return _page("Shop", f'<p>{escape(text)}</p><p><a href="/">Back to the shop</a></p>')


def _card_form(order_id):
    options = "".join(
        f'<option value="{token}">{escape(text)}</option>' for token, text in TEST_CARDS.items()
    )
    return f"""<form method="post" action="/orders/{escape(order_id)}/pay">
<label for="token">Card</label>
<select id="token" name="token">{options}</select>
<button>Pay</button>
</form>"""


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
