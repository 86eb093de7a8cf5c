/**
 * Deliveries (contract §4): every change arrives at every endpoint that subscribes to it, as the
 * stored bytes, with signatures that existing libraries accept.
 */

import assert from "node:assert/strict";
import StripeWorker from "stripe";
import { Webhook } from "standardwebhooks";
import { verifyWebhook } from "../../packages/client/webhook_signature.ts";
import { paymentIn, PAYMENTS, STATUSES } from "../support/service/service_case.ts";
import {
  type AddedEndpoint,
  addEndpoint,
  deliveriesOf,
  ENDPOINTS,
  EVENTS,
  settle,
} from "../support/webhook/recording_receiver.ts";
import { addLiveDelivery } from "../support/webhook/live_endpoint.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";

/** The path of an endpoint, its list of events, and the types that the list stands for. */
const SUBSCRIPTIONS: [path: string, events: string[], wants: RegExp][] = [
  ["/all", ["*"], /./],
  ["/payments", ["payment.*"], /^payment\./],
  ["/refunds", ["refund.*"], /^refund\./],
  ["/one", ["payment.completed"], /^payment\.completed$/],
  ["/two", ["refund.completed", "payment.chargeback"], /^(refund\.completed|payment\.chargeback)$/],
  ["/both", ["*", "payment.*", "payment.created"], /./],
  ["/transfers", ["transfer.*", "ping", "webhook_endpoint.*"], /^transfer\./],
];

webhookCase("every change arrives at each subscribed endpoint", async (t, service, hooks) => {
  const endpoints = new Map<string, AddedEndpoint>();
  for (const [path, events] of SUBSCRIPTIONS) {
    endpoints.set(path, await addEndpoint(service, hooks.url(path), { events }));
  }
  const off = await addEndpoint(service, hooks.url("/off"));
  const { body } = await service.call("PUT", `${ENDPOINTS}/${off.id}`, {
    body: { status: "disabled" },
  });
  assert.equal(body.status, "disabled");
  await addEndpoint(service, hooks.url("/other"), {}, { key: service.other.text });
  for (const status of STATUSES) await paymentIn(service, status);
  await settle(service);
  const events = await service.sql`
    select id, type, subject_id, sequence, pay_internal.event_body(e) as body from pay.events e`;

  await t.step("payments have caused events of every kind", () => {
    const kinds = new Set(events.map(({ type }) => type));
    assert.deepEqual(
      [...kinds].sort(),
      [
        ...STATUSES.filter((status) => status !== "pending").map((status) => `payment.${status}`),
        "payment.created",
        "dispute.created",
        "refund.created",
        "refund.completed",
      ].sort(),
    );
  });
  for (const [path, listed, wants] of SUBSCRIPTIONS) {
    await t.step(`an endpoint for ${listed.join(", ")} gets each once`, () => {
      const expected = events.filter(({ type }) => wants.test(type)).map(({ id }) => id).sort();
      assert.deepEqual(hooks.at(path).map(({ event }) => event.id).sort(), expected);
    });
  }
  await t.step("a disabled endpoint and another environment get nothing", () => {
    assert.deepEqual([hooks.at("/off").length, hooks.at("/other").length], [0, 0]);
  });
  await t.step("events arrive in the order of each payment's sequence", () => {
    for (const [path] of SUBSCRIPTIONS) {
      const last = new Map<string, number>();
      for (const { event } of hooks.at(path)) {
        const subject = event.data.object.payment_id ?? event.data.object.id;
        assert.ok(event.sequence > (last.get(subject) ?? 0), `${path} ${event.type}`);
        last.set(subject, event.sequence);
      }
    }
  });
  await t.step("bodies are the stored bytes, as GET /v1/events/{id} shows them", async () => {
    for (const { bytes, event } of hooks.at("/all")) {
      const stored = events.find(({ id }) => id === event.id)!.body;
      assert.deepEqual(bytes, new TextEncoder().encode(stored));
      const read = await service.call("GET", `${EVENTS}/${event.id}`);
      assert.equal(read.text, stored);
    }
  });
  await t.step("deliveries have every header", () => {
    for (const { headers, event } of hooks.arrivals) {
      assert.equal(headers.get("Webhook-Id"), event.id);
      assert.equal(headers.get("Webhook-Attempt"), "1");
      assert.equal(headers.get("Content-Type"), "application/json");
      assert.match(headers.get("Payment-Signature")!, /^t=\d{10},v1=[0-9a-f]{64}$/);
      assert.match(headers.get("Webhook-Signature")!, /^v1,[A-Za-z0-9+/]{43}=$/);
      assert.equal(
        headers.get("Payment-Signature")!.slice(2, 12),
        headers.get("Webhook-Timestamp"),
      );
    }
  });
  await t.step("signatures pass verifyWebhook(), stripe and standardwebhooks", async () => {
    const foreign = endpoints.get("/all")!.secret;
    for (const { path, headers, bytes, text, event } of hooks.arrivals) {
      const { secret } = endpoints.get(path)!;
      const signature = headers.get("Payment-Signature")!;
      assert.deepEqual(await verifyWebhook(bytes, signature, secret), event);
      assert.deepEqual(
        await StripeWorker.webhooks.constructEventAsync(text, signature, secret),
        event,
      );
      const named = Object.fromEntries(headers);
      assert.deepEqual(new Webhook(secret).verify(text, named), event);
      if (secret === foreign) continue;
      await assert.rejects(verifyWebhook(bytes, signature, foreign));
      assert.throws(() => new Webhook(foreign).verify(text, named));
    }
  });
  await t.step("every delivery is recorded as delivered by its first attempt", async () => {
    const rows = await deliveriesOf(service, `&endpoint_id=${endpoints.get("/all")!.id}`);
    assert.equal(rows.length, events.length);
    for (const { status, attempts, next_attempt_at, event_id, event_type, payment_id } of rows) {
      const event = events.find(({ id }) => id === event_id)!;
      assert.deepEqual([event_type, payment_id], [event.type, event.subject_id]);
      assert.deepEqual([status, next_attempt_at, attempts.length], ["delivered", null, 1]);
      const [{ number, response_status, duration_ms, error }] = attempts;
      assert.deepEqual([number, response_status, error], [1, 200, null]);
      assert.ok(duration_ms > 0 && duration_ms % 100 === 0);
    }
  });
});

webhookCase("an endpoint gets no event from before its creation", async (_, service, hooks) => {
  const { body: payment } = await service.make({ outcome: "pending" });
  const { id } = await addEndpoint(service, hooks.url("/"));
  await service.call("POST", `${PAYMENTS}/${payment.id}/cancel`);
  await settle(service);
  assert.deepEqual(hooks.arrivals.map(({ event }) => event.type), ["payment.cancelled"]);
  await service.call("PUT", `${ENDPOINTS}/${id}`, { body: { events: ["refund.*"] } });
  await service.make();
  await settle(service);
  assert.equal(hooks.arrivals.length, 1);
});

webhookCase("a replay, a refusal and an advance to the same status send nothing", async (
  _,
  service,
  hooks,
) => {
  await addEndpoint(service, hooks.url("/"));
  const { body: payment } = await service.pay({}, { idempotency_key: "once" });
  await settle(service);
  const before = hooks.arrivals.length;
  await service.pay({}, { idempotency_key: "once" });
  await service.pay({ currency: "XXX" });
  await service.call("POST", `${PAYMENTS}/${payment.id}/refund`);
  await service.call("POST", `/api-v1-sandbox/payments/${payment.id}/advance`, {
    body: { to: "pending" },
  });
  await settle(service);
  assert.equal(hooks.arrivals.length, before);
});

webhookCase("live events arrive too, but never at a private address", async (
  _,
  service,
  hooks,
) => {
  // The database then holds a URL that the API refuses. The sender checks it again.
  const live = { key: service.live.text };
  const { id } = await addEndpoint(service, "https://hooks.example.com/", {}, live);
  await service.sql`update pay.webhook_endpoints set url = ${hooks.url("/live")} where id = ${id}`;
  await addLiveDelivery(service, id, Date.now());
  await settle(service);
  assert.equal(hooks.arrivals.length, 0);
  const [delivery] = await deliveriesOf(service, "", live);
  assert.equal(delivery.attempts[0].error, "connection_failed");
});
