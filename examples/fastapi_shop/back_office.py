"""Shipping, refunds and cancels, for the people of the shop. Responses and errors are JSON."""

import secrets
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Body, Depends, Header, HTTPException
from fastapi.responses import JSONResponse

# The body of a request. The API checks it, so a misspelt `amount` does not charge the whole.
Part = Annotated[dict, Body(default_factory=dict)]


def create_back_office(book, payments, admin_token):
    """Makes the routes. Each request carries `Authorization: Bearer <admin_token>`."""

    def check_token(authorization: Annotated[str, Header()] = ""):
        expected = f"Bearer {admin_token}"
        if not secrets.compare_digest(authorization.encode(), expected.encode()):
            raise HTTPException(401)

    office = APIRouter(dependencies=[Depends(check_token)])

    @office.get("/orders/{order_id}")
    async def read(order_id: str):
        return asdict(book.find(order_id))

    @office.post("/orders/{order_id}/ship")
    async def ship(order_id: str, part: Part):
        """Charges an authorized order. The body can have a smaller `amount`."""
        order = book.find(order_id)
        path = f"/payments/{order.payment_id}/capture"
        payment = await payments.post(path, part, idempotency_key=f"ship-{order.payment_id}")
        return {"status": payment["status"], "captured": payment["amount_captured"]}

    @office.post("/orders/{order_id}/refund")
    async def refund(order_id: str, part: Part, idempotency_key: Annotated[str, Header()] = ""):
        """Refunds the whole order, or `amount` of it. Each refund has a key of the caller."""
        path = f"/payments/{book.find(order_id).payment_id}/refund"
        if not idempotency_key:
            return JSONResponse({"code": "idempotency_key_missing"}, 400)
        made = await payments.post(path, part, idempotency_key=idempotency_key)
        return {name: made[name] for name in ("status", "amount", "payment_status")}

    @office.post("/orders/{order_id}/cancel")
    async def cancel(order_id: str):
        """Releases an authorized payment. Before that it ends the checkout, so nobody pays."""
        order = book.find(order_id)
        is_paid = order.status == "authorized"
        kind, key = ("payments", order.payment_id) if is_paid else ("checkouts", order.checkout_id)
        cancelled = await payments.post(f"/{kind}/{key}/cancel", {}, idempotency_key=f"cancel-{key}")
        # A checkout without a payment has no event.
        order.status = cancelled["status"]
        return {"status": order.status}

    return office
