/**
 * Webhooks of captures and of refunds that wait (contract §3, §4): each event arrives once, in the
 * order of the payment's sequence, and shows its resource as of the event.
 */

import assert from "node:assert/strict";
import { advance, card, PAYMENTS, SANDBOX } from "../support/service/service_case.ts";
import { addEndpoint, settle } from "../support/webhook/recording_receiver.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";

webhookCase("captures and pending refunds arrive in order", async (t, service, hooks) => {
  await addEndpoint(service, hooks.url("/all"));
  await addEndpoint(service, hooks.url("/refunds"), { events: ["refund.*"] });
  await addEndpoint(service, hooks.url("/authorized"), { events: ["payment.authorized"] });
  const post = async (path: string, body?: unknown) => {
    const response = await service.call("POST", path, { body });
    assert.ok(response.status < 300, response.text);
    return response.body;
  };
  const { id } = await post(PAYMENTS, {
    amount: 1000,
    currency: "EUR",
    capture: "manual",
    settlement: "manual",
    ...card({}),
  });
  await post(`${PAYMENTS}/${id}/capture`, { amount: 900 });
  const first = await post(`${PAYMENTS}/${id}/refund`, { amount: 400 });
  const second = await post(`${PAYMENTS}/${id}/refund`, { amount: 300 });
  await post(`${SANDBOX}/refunds/${second.id}/advance`, { to: "failed" });
  await post(`${SANDBOX}/refunds/${first.id}/advance`, { to: "completed" });
  await advance(service, id, "chargeback");
  await advance(service, id, "partially_refunded");
  await settle(service);

  /** Type, and the members of the resource that the event has changed. */
  const EXPECTED: [type: string, members: Record<string, unknown>][] = [
    ["payment.created", { status: "pending", amount_captured: 0 }],
    ["payment.authorized", { status: "authorized", amount_captured: 0 }],
    ["payment.completed", { status: "completed", amount_captured: 900, capture_before: null }],
    ["refund.created", { id: first.id, status: "pending", amount: 400 }],
    ["refund.created", { id: second.id, status: "pending", amount: 300 }],
    ["refund.failed", { id: second.id, status: "failed", failure_code: "processing_failed" }],
    ["refund.completed", { id: first.id, payment_status: "partially_refunded" }],
    ["payment.partially_refunded", { amount_refunded: 400, amount_refunding: 0 }],
    ["dispute.created", { status: "needs_response", amount_minor: 500, reason: "general" }],
    ["payment.chargeback", { status: "chargeback", amount_disputed: 500 }],
    ["dispute.won", { status: "won", amount_minor: 500 }],
    ["payment.partially_refunded", { status: "partially_refunded", amount_disputed: 0 }],
  ];
  const arrived = hooks.at("/all").map(({ event }) => event);
  await t.step("an endpoint for all events gets each once, in order", () => {
    assert.deepEqual(
      arrived.map(({ sequence, type }) => `${sequence} ${type}`),
      EXPECTED.map(([type], i) => `${i + 1} ${type}`),
    );
  });
  for (const [i, [type, members]] of EXPECTED.entries()) {
    await t.step(`${i + 1} ${type} shows ${JSON.stringify(members)}`, () => {
      const { object } = arrived[i]!.data;
      assert.deepEqual({ ...object, ...members }, object);
    });
  }
  await t.step("an endpoint for refund.* gets the refunds only", () => {
    assert.deepEqual(hooks.at("/refunds").map(({ event }) => event.type), [
      "refund.created",
      "refund.created",
      "refund.failed",
      "refund.completed",
    ]);
  });
  await t.step("an endpoint for payment.authorized gets the authorization only", () => {
    assert.deepEqual(hooks.at("/authorized").map(({ event }) => event.type), [
      "payment.authorized",
    ]);
  });
});

webhookCase("an instant refund arrives as created, then completed", async (_, service, hooks) => {
  await addEndpoint(service, hooks.url("/all"));
  const { body } = await service.pay({ outcome: "refunded" });
  await settle(service);
  const arrived = hooks.at("/all").map(({ event }) => event);
  assert.deepEqual(arrived.map(({ type }) => type), [
    "payment.created",
    "payment.completed",
    "refund.created",
    "refund.completed",
    "payment.refunded",
  ]);
  const [created, completed] = arrived.slice(2).map(({ data }) => data.object);
  assert.deepEqual([created.status, completed.status], ["pending", "completed"]);
  assert.deepEqual({ ...created, ...completed }, completed);
  assert.equal(created.payment_id, body.id);
});
