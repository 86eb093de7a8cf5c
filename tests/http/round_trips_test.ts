/**
 * Statements per request, counted at the driver. The round trips to the database are most of the
 * cost of a request.
 */

import assert from "node:assert/strict";
import { APPROVED_CARD, startService } from "../support/service/service.ts";

Deno.test("round trips to the database by request", async (t) => {
  const service = await startService();
  try {
    const paid = await service.pay({ card: APPROVED_CARD });
    const pending = await service.pay();
    const path = `/api-v1-payments/v1/payments/${paid.body.id}`;
    const refund = await service.call("POST", `${path}/refund`, { body: { amount: 1 } });
    const cases: [string, string, string, unknown, number][] = [
      ["create", "POST", "/api-v1-payments/v1/payments", { amount: 1, currency: "EUR" }, 1],
      ["sandbox create", "POST", "/api-v1-sandbox/payments", { amount: 1, currency: "EUR" }, 1],
      ["get", "GET", path, undefined, 1],
      ["list", "GET", "/api-v1-payments/v1/payments", undefined, 1],
      ["refund", "POST", `${path}/refund`, { amount: 1 }, 2],
      ["advance", "POST", `/api-v1-sandbox/payments/${paid.body.id}/advance`, {
        to: "chargeback",
      }, 2],
      ["cancel", "POST", `/api-v1-payments/v1/payments/${pending.body.id}/cancel`, undefined, 2],
      ["get refund", "GET", `/api-v1-payments/v1/refunds/${refund.body.id}`, undefined, 1],
      ["list refunds", "GET", `${path}/refunds`, undefined, 1],
      ["ledger entries", "GET", "/api-v1-payments/v1/ledger_entries", undefined, 1],
      ["refused body", "POST", "/api-v1-payments/v1/payments", {}, 1],
      ["unknown route", "GET", "/api-v1-payments/v1/nothing", undefined, 1],
      ["reset", "POST", "/api-v1-sandbox/reset", undefined, 1],
    ];
    for (const [name, method, url, body, expected] of cases) {
      await t.step(`${name} takes ${expected}`, async () => {
        service.forgetStatements();
        await service.call(method, url, { body, idempotency_key: crypto.randomUUID() });
        service.assertStatements(expected);
      });
    }
    await t.step("a replay takes 1", async () => {
      await service.pay({}, { idempotency_key: "again" });
      service.forgetStatements();
      const replay = await service.pay({}, { idempotency_key: "again" });
      assert.equal(replay.headers.get("Idempotent-Replayed"), "true");
      service.assertStatements(1);
    });
  } finally {
    await service.close();
  }
});
