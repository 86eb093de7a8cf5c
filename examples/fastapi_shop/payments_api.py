"""Calls of the payments API over HTTP."""

import asyncio

import httpx

RETRIES = 2
RETRY_AFTER_SECONDS = 0.5


class PaymentsApi:
    """Sends every change with an idempotency key, so a retry has no second effect."""

    def __init__(self, base_url, key):
        self._http = httpx.AsyncClient(
            base_url=f"{base_url}/api-v1-payments/v1",
            headers={"Authorization": f"Bearer {key}"},
            timeout=30,
        )

    async def post(self, path, body, idempotency_key):
        """Returns the object of the response.

        Raises PaymentsError for an error of the API, and ServiceUnavailable if no response came.
        """
        headers = {"Idempotency-Key": idempotency_key}
        for attempt in range(RETRIES + 1):
            if attempt > 0:
                await asyncio.sleep(RETRY_AFTER_SECONDS * attempt)
            try:
                response = await self._http.post(path, json=body, headers=headers)
            except httpx.TransportError:
                continue
            if response.status_code == 429 or response.status_code >= 500:
                continue
            if response.is_success:
                return response.json()
            raise PaymentsError(response.status_code, response.json()["error"])
        raise ServiceUnavailable(path)


class PaymentsError(Exception):
    """The API refused the request."""

    def __init__(self, status, error):
        super().__init__(error["message"])
        self.status = status
        self.error = error


class ServiceUnavailable(Exception):
    """The result is unknown. The same call with the same key is safe."""
