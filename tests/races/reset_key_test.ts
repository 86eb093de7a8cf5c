/**
 * A reset and a refund at the same time under one idempotency key: one of them is first and has its
 * whole effect, and no response is a 503.
 */

import assert from "node:assert/strict";
import { startService } from "../support/service/service.ts";

const ROUNDS = 20;
const FILLER = 3_000;

Deno.test("a reset and a refund under one key get 200 or 201, 404 or 409", async () => {
  const service = await startService();
  try {
    // PostgreSQL then looks for deadlocks after 20 ms instead of a second, which keeps the test
    // fast.
    const [row] = await service.sql`select current_database() as name`;
    await service.sql.unsafe(`alter database "${row!.name}" set deadlock_timeout = '20ms'`);
    const seen: number[] = [];
    for (let i = 0; i < ROUNDS; i++) {
      // A reset with many rows to count takes long enough for the refund to arrive.
      await service.sql`
        insert into pay.payments (environment_id, id, status, amount_minor, amount_refunded, currency,
          method_kind, sequence, created_at, updated_at, body)
        select ${await service.environmentOf(
        service.key,
      )}, 'pay_0' || lpad(n::text, 25, '0'), 'pending', 1, 0, 'EUR',
          'card', 1, now(), now(), '{}'
        from generate_series(1, ${FILLER}) n on conflict do nothing`;
      const made = await service.make({ outcome: "success" });
      const idempotency_key = `round ${i}`.replace(" ", "-");
      const refund = `/api-v1-payments/v1/payments/${made.body.id}/refund`;
      const responses = await Promise.all([
        service.call("POST", refund, { idempotency_key }),
        service.call("POST", "/api-v1-sandbox/reset", { idempotency_key }),
      ]);
      seen.push(...responses.map(({ status }) => status));
    }
    assert.deepEqual(seen.filter((status) => ![200, 201, 404, 409].includes(status)), []);
  } finally {
    await service.close();
  }
});
