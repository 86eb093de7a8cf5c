/**
 * The invariants and a sandbox that is a year ahead: they find nothing after ordinary work and its
 * retention, and they find each violation that the test writes past all other guards.
 */

import assert from "node:assert/strict";
import { afterwards, assertSilent, saidBy } from "../support/database/invariant_breaches.ts";
import { APPROVED_CARD, type TestService } from "../support/service/service.ts";
import { addEndpoint, settle } from "../support/webhook/recording_receiver.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";

const DAY_S = 86_400;

/** Statements that break one promise in the sandbox, and the invariants that must find it. */
const BREAKS: [what: string, statements: string, invariants: string[]][] = [
  [
    "a missing capture",
    `delete from pay.ledger_movements where subject_id = :newest`,
    ["invariant_payment_money"],
  ],
  [
    "a body that differs from its row",
    `update pay.payments set body = replace(body, '"completed"', '"pending"') where id = :newest`,
    ["invariant_bodies", "invariant_texts"],
  ],
  [
    "a missing event",
    `delete from pay.events where subject_id = :newest and type = 'payment.created'`,
    ["invariant_moves", "invariant_sequences"],
  ],
  [
    "a missing stored response",
    `delete from pay.idempotency_keys where key = 'newest'`,
    ["invariant_effects"],
  ],
  [
    "a missing delivery",
    `delete from pay.webhook_deliveries where subject_id = :newest
       and event_type = 'payment.completed'`,
    ["invariant_outbox"],
  ],
  [
    "a delivery that no advance makes due",
    `update pay.webhook_deliveries set status = 'pending', next_attempt_at = 'infinity'
     where subject_id = :newest and event_type = 'payment.created'`,
    ["invariant_endless_deliveries"],
  ],
  [
    "a delivery that is due in weeks of the sandbox",
    `update pay.webhook_deliveries set status = 'pending', next_attempt_at = 'infinity',
       due_at = due_at + interval '20 days', attempts = '{}'
     where subject_id = :newest and event_type = 'payment.completed'`,
    ["invariant_endless_deliveries"],
  ],
];

async function advance(service: TestService, days: number): Promise<void> {
  for (let body: unknown = { advance: days * DAY_S, mode: "frozen" };;) {
    const response = await service.call("POST", "/api-v1-sandbox/clock", { body });
    assert.equal(response.status, 200, response.text);
    if (!response.body.has_more) return;
    body = { to: response.body.target, mode: "frozen" };
  }
}

/** Work of several kinds. Returns the id of a payment that is completed. */
async function work(service: TestService, idempotency_key: string): Promise<string> {
  const { body: paid } = await service.pay({ card: APPROVED_CARD }, { idempotency_key });
  await service.pay({ card: { token: "pm_card_authenticationRequired" } });
  await service.pay({ card: { token: "pm_card_late" }, capture: "manual" });
  const made = await service.make({ outcome: "success" });
  const url = `/api-v1-payments/v1/payments/${made.body.id}/refund`;
  await service.call("POST", url, {
    body: { amount: 10 },
    idempotency_key: `re ${idempotency_key}`,
  });
  await service.make({ outcome: "chargeback" });
  await settle(service);
  return paid.id;
}

webhookCase("the invariants follow the clock of a sandbox", async (t, service, receiver) => {
  await addEndpoint(service, receiver.url("/hook"));
  await work(service, "first");
  // The endpoint has to be older than the events of which every one has a delivery.
  for (const days of [1, 8, 300, 20, 15]) {
    await advance(service, days);
    await work(service, `after ${days}`);
    await t.step(`find nothing after ${days} days`, () => assertSilent(service.sql));
  }
  const newest = await work(service, "newest");
  await t.step("find nothing in a frozen clock", () => assertSilent(service.sql));
  for (const [what, statements, invariants] of BREAKS) {
    await t.step(`${what}: ${invariants.join(", ")}`, async () => {
      const named = statements.replaceAll(":newest", `'${newest}'`);
      assert.deepEqual(await afterwards(service.sql, named, saidBy), invariants);
    });
  }
});
