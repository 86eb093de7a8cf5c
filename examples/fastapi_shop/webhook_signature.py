"""Verifies webhooks. The same function is in docs/webhook_verification.md."""

import hashlib
import hmac
import json
import re
import time


def verify_webhook(raw_body, header, secret, now=None):
    """raw_body: bytes, header: str or None, now: Unix seconds. Returns the event or raises ValueError."""
    if not secret:
        raise ValueError("the secret is empty")
    parts = (header or "").split(",")
    timestamps = [part[2:] for part in parts if part.startswith("t=")]
    signatures = [part[3:] for part in parts if re.fullmatch("v1=[0-9a-f]{64}", part)]
    if len(timestamps) != 1 or not re.fullmatch("0|[1-9][0-9]{0,11}", timestamps[0]):
        raise ValueError("no single well-formed t")
    now = time.time() if now is None else now
    if not abs(now - int(timestamps[0])) < 300:
        raise ValueError("too old or too new")
    signed = timestamps[0].encode() + b"." + raw_body
    expected = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    matches = [hmac.compare_digest(signature, expected) for signature in signatures]
    if not any(matches):
        raise ValueError("no matching signature")
    event = json.loads(raw_body.decode("utf-8"))
    if not isinstance(event, dict):
        raise ValueError("not a JSON object")
    return event
