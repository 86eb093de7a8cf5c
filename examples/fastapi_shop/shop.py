"""A shop that sells through checkouts.

The payer pays on the page of the payments service, which sends them back. The shop never sees a
card number.
"""

import os
import uuid
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import FastAPI, Form, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from back_office import create_back_office
from order_book import OrderBook, UnknownOrder
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


@asynccontextmanager
async def start(_app):
    """Finds a service without a page for payers now, and not by the first payer."""
    body = {"amount": 100, "currency": "EUR"}
    checkout = await payments.post("/checkouts", body, idempotency_key=str(uuid.uuid4()))
    path = f"/checkouts/{checkout['id']}/cancel"
    await payments.post(path, {}, idempotency_key=str(uuid.uuid4()))
    if checkout["url"] is None:
        text = "The payments service has no page for payers: its operator sets CHECKOUT_URL"
        raise RuntimeError(text)
    yield


app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=start)
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
    order_id = str(uuid.uuid4())
    sold = PRODUCTS[product]
    body = {
        "amount": sold["amount"],
        "currency": sold["currency"],
        "description": sold["product"],
        "reference": order_id,
        "return_url": f"{PUBLIC_URL}/orders/{order_id}",
        "cancel_url": PUBLIC_URL,
    }
    if sold["ships_later"]:
        # Only cards can be authorized first and charged later.
        body |= {"methods": ["card"], "capture": "manual"}
    # A retry after a lost response makes no second checkout.
    checkout = await payments.post("/checkouts", body, idempotency_key=f"order-{order_id}")
    book.open(order_id, sold, checkout)
    return RedirectResponse(checkout["url"], 303)


@app.get("/orders/{order_id}")
async def show_order(order_id: str):
    # The checkout sends the payer back to this page. Anybody can open the address, so the visit
    # proves nothing: the page shows the status that webhooks have set.
    return HTMLResponse(order_page(book.find(order_id)), headers={"Cache-Control": "no-store"})


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
