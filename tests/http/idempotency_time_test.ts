/**
 * Idempotency keys over time (contract §5): a response is stored for 24 hours from the first
 * request, to the millisecond. The service checks the age when a request reads the response.
 */

import assert from "node:assert/strict";
import {
  assertRefused,
  paymentIn,
  PAYMENTS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";

const FIRST_AT = Date.parse("2026-03-01T12:00:00.000Z");
const DAY_MS = 24 * 60 * 60 * 1000;
const CREATE = { amount: 700, currency: "EUR" };

/** Requests that can be sent twice and have an effect each time. */
const REPEATABLE: [string, path: string, body: unknown, from: string | null][] = [
  ["POST /v1/payments", PAYMENTS, CREATE, null],
  ["POST /payments", `${SANDBOX}/payments`, CREATE, null],
  ["POST /v1/payments/{id}/refund", `${PAYMENTS}/{id}/refund`, { amount: 5 }, "completed"],
  ["a refused cancel", `${PAYMENTS}/{id}/cancel`, {}, "completed"],
  ["POST /payments/{id}/advance to where it is", `${SANDBOX}/payments/{id}/advance`, {
    to: "completed",
  }, "completed"],
  ["POST /reset", `${SANDBOX}/reset`, {}, null],
];

serviceCase("Idempotency-Key is stored for 24 hours", async (t, service) => {
  for (const [name, path, body, from] of REPEATABLE) {
    for (const [after_ms, result] of [[-1, "replayed"], [0, "new"], [1, "new"]] as const) {
      await t.step(`${name} after 24 h ${after_ms} ms is ${result}`, async () => {
        await service.setClock(FIRST_AT);
        const id = from === null ? "" : (await paymentIn(service, from)).id;
        const options = { body, idempotency_key: `${after_ms} ${name}`.replaceAll(/\W/g, "_") };
        const send = () => service.call("POST", path.replace("{id}", id), options);
        const first = await send();
        assert.equal(first.headers.get("Idempotent-Replayed"), null, first.text);
        await service.setClock(FIRST_AT + DAY_MS + after_ms);
        const second = await send();
        assert.equal(second.status, first.status, second.text);
        assert.equal(
          second.headers.get("Idempotent-Replayed"),
          result === "replayed" ? "true" : null,
        );
        // The new response is stored for 24 hours from its own first request.
        await service.setClock(FIRST_AT + DAY_MS + after_ms + (result === "new" ? DAY_MS - 1 : 0));
        const third = await send();
        assert.deepEqual([third.text, third.headers.get("Idempotent-Replayed")], [
          second.text,
          "true",
        ]);
      });
    }
  }
  await t.step("a replay does not extend the 24 hours", async () => {
    const send = () => service.pay({}, { idempotency_key: "length" });
    await service.setClock(FIRST_AT);
    const first = await send();
    await service.setClock(FIRST_AT + DAY_MS - 1);
    assert.equal((await send()).text, first.text);
    await service.setClock(FIRST_AT + DAY_MS);
    assert.notEqual((await send()).body.id, first.body.id);
  });
  await t.step("an expired key accepts a different request", async () => {
    await service.setClock(FIRST_AT);
    await service.pay({}, { idempotency_key: "reuse" });
    await service.setClock(FIRST_AT + DAY_MS - 1);
    const early = await service.pay({ amount: 5 }, { idempotency_key: "reuse" });
    assertRefused(early, 409, "idempotency_conflict");
    await service.setClock(FIRST_AT + DAY_MS);
    const late = await service.pay({ amount: 5 }, { idempotency_key: "reuse" });
    assert.deepEqual([late.status, late.body.amount], [201, 5]);
  });
});
