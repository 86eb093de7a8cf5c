/**
 * Several isolates over one database change one payment at the same time (contract §3, security §3:
 * R5). An isolate queues its changes of a payment. Between isolates only the database orders them.
 */

import assert from "node:assert/strict";
import { startService, type TestService } from "../support/service/service.ts";
import { recordOf } from "../support/database/payment_records.ts";
import {
  ADVANCE_ADDRESSES,
  paymentIn,
  PAYMENTS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";

const ISOLATES = 4;
const ROUNDS = 25;
/**
 * The number of times a refund is sent again after a 503. Fifty refunds contend for the payment.
 */
const TRIES = 50;

/** Runs with several isolates over the database of a service. */
async function withIsolates(
  service: TestService,
  run: (isolates: TestService[]) => Promise<void>,
): Promise<void> {
  const isolates = [service];
  try {
    const { functions_url } = service.database;
    while (isolates.length < ISOLATES) {
      isolates.push(await startService({ database_url: functions_url }));
    }
    await run(isolates);
  } finally {
    for (const isolate of isolates.slice(1)) await isolate.close();
  }
}

serviceCase("fifty refunds from four isolates never exceed the payment", async (_t, service) => {
  const { id } = await paymentIn(service, "completed");
  const key = service.key.text;
  await withIsolates(service, async (isolates) => {
    const results = { given: 0, refused: 0 };
    const refund = async (isolate: TestService, tries = TRIES): Promise<void> => {
      const url = `${PAYMENTS}/${id}/refund`;
      const { status, body, text } = await isolate.call("POST", url, { key, body: { amount: 30 } });
      // Other changes came first too often. Nothing has happened, and 503 tells the client to try
      // again.
      if (status === 503 && tries > 1) return await refund(isolate, tries - 1);
      if (status === 201) return void results.given++;
      assert.deepEqual([status, body.error?.amount_refundable], [400, 10], text);
      results.refused++;
    };
    await Promise.all(Array.from({ length: 50 }, (_, i) => refund(isolates[i % ISOLATES]!)));
    assert.deepEqual(results, { given: 33, refused: 17 });
  });
  const { body } = await service.call("GET", `${PAYMENTS}/${id}`);
  assert.deepEqual([body.amount_refunded, body.sequence], [990, 2 + 33 * 3]);
  const { events, ledger } = await recordOf(service, id);
  assert.deepEqual(events.map(({ sequence }) => sequence), events.map((_, i) => i + 1));
  assert.equal(ledger.size, 1 + 33);
});

/** Two commands that exclude each other: one of them succeeds. */
const RACES: [string, from: string, (id: string) => [path: string, body: unknown][]][] = [
  ["cancel and complete", "pending", (id) => [
    [`${PAYMENTS}/${id}/cancel`, {}],
    [ADVANCE_ADDRESSES[0](id), { to: "completed" }],
  ]],
  ["authenticate and cancel", "requires_action", (id) => [
    [`${SANDBOX}/payments/${id}/authenticate`, {}],
    [`${PAYMENTS}/${id}/cancel`, {}],
  ]],
  ["refund and chargeback", "completed", (id) => [
    [`${PAYMENTS}/${id}/refund`, {}],
    [ADVANCE_ADDRESSES[0](id), { to: "chargeback" }],
  ]],
];

for (const [name, from, commands] of RACES) {
  serviceCase(`${name} from two isolates: one of them succeeds`, async (_t, service) => {
    const key = service.key.text;
    await withIsolates(service, async (isolates) => {
      for (let round = 0; round < ROUNDS; round++) {
        const { id } = await paymentIn(service, from);
        const before = await recordOf(service, id);
        const answers = await Promise.all(
          commands(id).map(([path, body], i) => isolates[i]!.call("POST", path, { key, body })),
        );
        const refused = answers.filter(({ status }) => status === 409);
        const texts = answers.map(({ text }) => text).join("\n");
        assert.deepEqual([answers.length, refused.length], [2, 1], texts);
        const { status } = (await service.call("GET", `${PAYMENTS}/${id}`)).body;
        assert.equal(refused[0]!.body.error.current_status, status);
        const after = await recordOf(service, id);
        assert.equal(after.ledger.size - before.ledger.size, status === "cancelled" ? 0 : 1);
      }
    });
  });
}
