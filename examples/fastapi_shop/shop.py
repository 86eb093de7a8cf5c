"""A shop with a checkout page. The API key alone decides whether its payments are real.

The shop never sees a card number: the browser sends a token of the card.
"""

import os
import uuid
from typing import Annotated

from fastapi import FastAPI, Form, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from back_office import create_back_office
from order_book import OrderBook, UnknownOrder, bank_url
from pages import message_page, order_page, products_page
from payments_api import PaymentsApi, PaymentsError, ServiceUnavailable
from webhook_signature import verify_webhook

# The products, by their id in the form. The shop decides the price, never the browser.
PRODUCTS = {
    "print": {"product": "Print", "amount": 2500, "currency": "EUR", "ships_later": False},
    # Made to order: the card is charged when the frame ships, at most 7 days later.
    "frame": {"product": "Frame", "amount": 4000, "currency": "EUR", "ships_later": True},
}

PUBLIC_URL = os.environ.get("PUBLIC_URL", "http://127.0.0.1:3000")
WEBHOOK_SECRET = os.environ["WEBHOOK_SECRET"]

book = OrderBook()
payments = PaymentsApi(os.environ["PAYMENTS_BASE_URL"], os.environ["PAYMENTS_API_KEY"])
app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
app.include_router(create_back_office(book, payments, os.environ["ADMIN_TOKEN"]), prefix="/admin")


@app.post("/webhooks")
async def receive_webhook(request: Request):
    # The signature covers the bytes of the body, so nothing may parse them before.
    body = await request.body()
    try:
        event = verify_webhook(body, request.headers.get("Payment-Signature"), WEBHOOK_SECRET)
    except ValueError:
        return Response(status_code=400)
    book.apply(event)
    return Response(status_code=204)


@app.get("/", response_class=HTMLResponse)
async def show_products():
    return products_page(PRODUCTS)


@app.post("/orders")
async def open_order(product: Annotated[str, Form()] = ""):
    if product not in PRODUCTS:
        return HTMLResponse(message_page("We do not sell this"), 400)
    # Nobody can guess the id, so only the payer knows the page of the order.
    order = book.open(str(uuid.uuid4()), PRODUCTS[product])
    return RedirectResponse(f"/orders/{order.id}", 303)


@app.get("/orders/{order_id}")
async def show_order(order_id: str):
    # The bank sends the payer back to this page. Anybody can open the address, so the visit proves
    # nothing: the page shows the status that webhooks have set.
    return HTMLResponse(order_page(book.find(order_id)), headers={"Cache-Control": "no-store"})


@app.post("/orders/{order_id}/pay")
async def pay(order_id: str, token: Annotated[str, Form()] = ""):
    order = book.find(order_id)
    book.pay_again(order)
    attempt = order.attempt
    page = f"/orders/{order.id}"
    if order.payment_id is not None:
        return RedirectResponse(page, 303)
    body = {
        "amount": order.amount,
        "currency": order.currency,
        "card": {"token": token},
        "reference": order.id,
        "metadata": {"attempt": str(attempt)},
        "return_url": PUBLIC_URL + page,
        "capture": "manual" if order.ships_later else "automatic",
    }
    try:
        # A second click, and a retry after a lost response, make no second payment.
        key = f"order-{order.id}-{attempt}"
        payment = await payments.post("/payments", body, idempotency_key=key)
    except PaymentsError as error:
        # A declined payment is stored too. Other errors stay errors.
        if error.payment is None:
            raise
        payment = error.payment
    # A webhook can tell the decline before this response, and the payer can have begun to pay again.
    if order.attempt == attempt:
        order.payment_id = payment["id"]
    return RedirectResponse(bank_url(payment) or page, 303)


@app.exception_handler(UnknownOrder)
async def no_order(request, _error):
    if request.url.path.startswith("/admin/"):
        return JSONResponse({"code": "not_found"}, 404)
    return HTMLResponse(message_page("There is no such order"), 404)


@app.exception_handler(PaymentsError)
async def refused(request, error):
    if request.url.path.startswith("/admin/"):
        body = {name: error.error.get(name) for name in ("code", "param", "message")}
        return JSONResponse(body, error.status)
    return HTMLResponse(message_page(str(error)), error.status)


@app.exception_handler(ServiceUnavailable)
async def unavailable(_request, _error):
    text = "The payment service did not respond. Go back and try again: you do not pay twice."
    return HTMLResponse(message_page(text), 502)
