/**
 * The invariant of stored responses accepts responses that show a state between two events of a
 * payment. A pending refund changes its payment, and its event shows only the refund.
 */

import assert from "node:assert/strict";
import { checkBooks } from "../../apps/operator/check_books.ts";
import { APPROVED_CARD, startService } from "../support/service/service.ts";

Deno.test("checkBooks() accepts responses stored while a refund was pending", async () => {
  const service = await startService();
  try {
    const post = async (path: string, body: Record<string, unknown>) => {
      const response = await service.call("POST", path, {
        body,
        idempotency_key: crypto.randomUUID(),
      });
      assert.ok(response.status < 300, response.text);
      return response.body;
    };
    const { id } = await post("/api-v1-payments/v1/payments", {
      amount: 1_000,
      currency: "EUR",
      card: APPROVED_CARD,
      settlement: "manual",
    });
    const refund = await post(`/api-v1-payments/v1/payments/${id}/refund`, { amount: 400 });
    // Changes nothing. The response shows the payment with the pending refund.
    const shown = await post(`/api-v1-sandbox/payments/${id}/advance`, { to: "completed" });
    assert.equal(shown.amount_refunding, 400);
    await post(`/api-v1-sandbox/refunds/${refund.id}/advance`, { to: "completed" });
    const broken = (await checkBooks(service.sql)).filter(({ breaches }) => breaches > 0);
    assert.deepEqual(broken, []);
  } finally {
    await service.close();
  }
});
