/**
 * Deliveries (contract §4): every change arrives at every endpoint that subscribes to it, once and
 * in the order of the payment's sequence, as the stored bytes, with signatures that existing
 * libraries accept and the `traceparent` of its request.
 */

import assert from "node:assert/strict";
import Stripe from "stripe";
import { Webhook } from "standardwebhooks";
import { verifyWebhook } from "../../packages/client/webhook_signature.ts";
import { PAYMENT_STATUSES } from "../../shared/core/vocabulary.ts";
import { paymentIn, PAYMENTS } from "../support/service/service_case.ts";
import { APPROVED_CARD } from "../support/service/service.ts";
import { addInbox, readInbox } from "../support/webhook/inbox_reader.ts";
import {
  type AddedEndpoint,
  addEndpoint,
  DELIVERIES,
  deliveriesOf,
  ENDPOINTS,
  EVENTS,
  settle,
  TRIGGER,
} from "../support/webhook/recording_receiver.ts";
import { addLive, addLiveDelivery } from "../support/webhook/live_endpoint.ts";
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
  for (const status of PAYMENT_STATUSES) await paymentIn(service, status);
  await settle(service);
  const events = await service.sql`
    select id, type, subject_id, sequence, pay_internal.event_body(e) as body from pay.events e`;

  await t.step("payments have caused events of every kind", () => {
    const changes = PAYMENT_STATUSES.filter((status) => status !== "pending").map((to) =>
      `payment.${to}`
    );
    const others = ["payment.created", "dispute.created", "refund.created", "refund.completed"];
    const types = new Set(events.map(({ type }) => type));
    assert.deepEqual([...types].sort(), [...changes, ...others].sort());
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
      assert.deepEqual(await Stripe.webhooks.constructEventAsync(text, signature, secret), event);
      const named = Object.fromEntries(headers);
      assert.deepEqual(new Webhook(secret).verify(text, named), event);
      if (secret === foreign) continue;
      await assert.rejects(verifyWebhook(bytes, signature, foreign));
      assert.throws(() => new Webhook(foreign).verify(text, named));
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

webhookCase("live events arrive, but not at a private address", async (_, service, hooks) => {
  // The database then holds a URL that the API refuses. The sender checks it again.
  const live = { key: service.live.text };
  const { id } = await addLive(service, "/");
  await service.sql`update pay.webhook_endpoints set url = ${hooks.url("/live")} where id = ${id}`;
  await addLiveDelivery(service, id, Date.now());
  await settle(service);
  assert.equal(hooks.arrivals.length, 0);
  const [delivery] = await deliveriesOf(service, "", live);
  assert.equal(delivery.attempts[0].error, "connection_failed");
});

webhookCase("deliveries have the traceparent of their request", async (t, service, hooks) => {
  const { id: endpoint_id } = await addEndpoint(service, hooks.url("/"));
  const { id: inbox_id } = await addInbox(service);
  const [CREATE, OTHER] = ["a", "b"].map((digit) =>
    `00-${digit.repeat(32)}-${digit.repeat(16)}-01`
  ) as [string, string];
  /** Returns what has arrived since the last call: `type traceparent`. */
  const arrived = async () => {
    await settle(service);
    return hooks.arrivals.splice(0).map(({ event, headers }) =>
      `${event.type} ${headers.get("traceparent")}`
    );
  };
  const pay = async (traceparent: string) =>
    (await service.pay({ card: APPROVED_CARD }, { headers: { traceparent } })).body.id;
  const post = (path: string, traceparent: string, body: unknown = {}) =>
    service.call("POST", path, { body, headers: { traceparent } });
  const payment_id = await pay(CREATE);
  assert.deepEqual(await arrived(), [`payment.created ${CREATE}`, `payment.completed ${CREATE}`]);

  await t.step("an inbox has the same header, and the payload does not contain it", async () => {
    const { body } = await readInbox(service, inbox_id);
    assert.equal(body.data.length, 2);
    for (const delivery of body.data) {
      assert.equal(delivery.headers.traceparent, CREATE);
      assert.equal(delivery.body.includes(CREATE), false);
    }
  });
  await t.step("a redelivery has that of the event, and not its own", async () => {
    const [delivery] = await deliveriesOf(service, `&endpoint_id=${endpoint_id}`);
    await post(`${DELIVERIES}/${delivery.id}/redeliver`, OTHER);
    assert.deepEqual(await arrived(), [`${delivery.event_type} ${CREATE}`]);
  });
  await t.step("a refund has its own", async () => {
    await post(`${PAYMENTS}/${payment_id}/refund`, OTHER);
    const lines = await arrived();
    assert.ok(lines.length > 0 && lines.every((line) => line.split(" ")[1] === OTHER), `${lines}`);
  });
  await t.step("a triggered delivery has that of its trigger", async () => {
    await post(TRIGGER, OTHER, { endpoint_id, payment_id, event: "payment.failed" });
    assert.deepEqual(await arrived(), [`payment.failed ${OTHER}`]);
  });
  for (const [name, sent] of [["wrong", "00-1-2-3"], ["overlong", CREATE + "0".repeat(8_000)]]) {
    await t.step(`one that is ${name} is ignored and not stored`, async () => {
      const id = await pay(sent!);
      assert.deepEqual(await arrived(), ["payment.created null", "payment.completed null"]);
      const stored = await service.sql`
        select traceparent from pay.events where subject_id = ${id} and traceparent is not null
        union all
        select traceparent from pay.provider_operations
        where subject_id = ${id} and traceparent is not null`;
      assert.deepEqual([...stored], []);
    });
  }
});
