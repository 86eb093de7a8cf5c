/**
 * Concurrent duplicates of a refund that takes the rest, which the reservation of the first one
 * already holds.
 */

import assert from "node:assert/strict";
import { liveCase } from "../support/live/live_case.ts";

liveCase(
  "POST /v1/payments/{id}/refund duplicates of a refund of the rest get one response",
  async ({
    pay,
    call,
    double,
    books,
  }) => {
    const { body: { id } } = await pay();
    await double.plant({
      method: "POST",
      path: "/refunds$",
      at: "before",
      act: "delay",
      delay_ms: 300,
    });
    const responses = await Promise.all(
      [1, 2, 3].map(() =>
        call("POST", `/payments/${id}/refund`, {
          body: { amount_minor: 1000 },
          idempotency_key: "rest",
        })
      ),
    );
    for (const { status, text } of responses) {
      assert.deepEqual([status, text], [201, responses[0]!.text]);
    }
    assert.deepEqual((await books()).refund.map(({ amount }) => amount), [1000]);
  },
);
