"""Uses the Python client that openapi-python-client makes from the OpenAPI document.

It reads PAYMENTS_BASE_URL and PAYMENTS_API_KEY, and prints a line for each step.
"""

import os

from payments_api_client import AuthenticatedClient
from payments_api_client.api.payments import create_payment, list_payments
from payments_api_client.api.refunds import refund_payment
from payments_api_client.models import (
    CardInput,
    CreatePaymentBody,
    CreateRefundBody,
    ErrorBody,
    Payment,
    PaymentList,
    PersonInput,
    Refund,
)

client = AuthenticatedClient(base_url=os.environ["PAYMENTS_BASE_URL"], token=os.environ["PAYMENTS_API_KEY"])


def order(number: str) -> CreatePaymentBody:
    return CreatePaymentBody(
        amount_minor=1999,
        currency="EUR",
        payer=PersonInput(email="ada@example.com"),
        card=CardInput(number=number, exp_month=12, exp_year=2034, cvc="123"),
    )


payment = create_payment.sync(
    client=client, body=order("4242 4242 4242 4242"), idempotency_key="paid"
)
assert isinstance(payment, Payment), payment
print("create:", payment.status, payment.amount_minor, payment.currency)
again = create_payment.sync(
    client=client, body=order("4242 4242 4242 4242"), idempotency_key="paid"
)
assert isinstance(again, Payment), again
print("create again:", str(again.id == payment.id).lower())

error = create_payment.sync(
    client=client, body=order("4000 0000 0000 0002"), idempotency_key="declined"
)
assert isinstance(error, ErrorBody) and isinstance(error.error.payment, Payment), error
print("decline:", error.error.code, error.error.payment.status, error.error.advice)

page = list_payments.sync(client=client, limit=10)
assert isinstance(page, PaymentList), page
print("list:", len(page.data), page.data[0].status, str(page.has_more).lower())

refund = refund_payment.sync(payment.id, client=client, body=CreateRefundBody(amount=500))
assert isinstance(refund, Refund), refund
print("refund:", refund.status, refund.amount_minor, refund.payment_status)
