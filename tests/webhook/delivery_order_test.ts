/**
 * Order and retries with an injected clock (contract §4): an event waits only while an earlier
 * event of the same payment is still being tried, and `blocked_by` names the delivery of that
 * event. The list (contract §5) shows the deliveries of one change by event, the newest first, and
 * those of one event by endpoint.
 */

import assert from "node:assert/strict";
import { PAYMENTS, SANDBOX, serviceCase } from "../support/service/service_case.ts";
import {
  addEndpoint,
  DELIVERIES,
  deliveriesOf,
  settle,
  TRIGGER,
} from "../support/webhook/recording_receiver.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";

const AT = Date.parse("2026-08-09T10:11:12.013Z");

webhookCase("182 events of one payment arrive in order", async (_, service, hooks) => {
  await addEndpoint(service, hooks.url("/"));
  let responses = 0;
  const busy = { status: 429, headers: { "Retry-After": "8" } };
  hooks.judge = () => ++responses === 1 ? new Response(null, busy) : 200;
  await service.setClock(AT);
  const { body: payment } = await service.make({ outcome: "success" });
  await settle(service);
  for (let i = 0; i < 60; i++) {
    const url = `${PAYMENTS}/${payment.id}/refund`;
    await service.post(url, { amount: 1 });
  }
  const { body: other } = await service.make({ outcome: "success" });
  await settle(service);
  assert.deepEqual(
    hooks.arrivals.slice(1).map(({ event }) => event.data.object.id),
    [other.id, other.id],
    "the row waits, others do not",
  );
  await service.setClock(AT + 7_999);
  await settle(service);
  assert.equal(hooks.arrivals.length, 3, "nothing is sent before Retry-After");
  await service.setClock(AT + 8_000);
  await settle(service);
  const sequences = hooks.arrivals.slice(3).map(({ event }) => event.sequence);
  assert.deepEqual(sequences, Array.from({ length: 182 }, (_, i) => i + 1));
  const pending = await service.get(`${DELIVERIES}?status=pending`);
  assert.deepEqual(pending.data, []);
});

webhookCase("blocked_by names the delivery that one waits for", async (t, service, hooks) => {
  await service.setClock(AT);
  const { id: endpoint_id } = await addEndpoint(service, hooks.url("/failing"));
  // Its first event of the payment is a later one, and nothing of its own is before it.
  await addEndpoint(service, hooks.url("/late"), { events: ["payment.refunded"] });
  hooks.judge = () => 500;
  const { id: payment_id } = (await service.make({ outcome: "refunded" })).body;
  await service.make({ outcome: "refunded" });
  await settle(service);

  await t.step("the first that is pending, of the same payment and endpoint", async () => {
    const all = await deliveriesOf(service);
    assert.equal(all.filter(({ blocked_by }) => blocked_by !== undefined).length, 8);
    for (const { id, blocked_by, payment_id, endpoint_id } of all) {
      const first = all.find((one) =>
        one.payment_id === payment_id && one.endpoint_id === endpoint_id
      );
      assert.equal(blocked_by, first.id === id ? undefined : first.id);
    }
    const body = await service.get(`${DELIVERIES}/${all.at(-1).id}`);
    assert.equal(body.blocked_by, all.at(-1).blocked_by);
  });
  await t.step("a triggered event waits for none", async () => {
    const body = { endpoint_id, event: "payment.completed", payment_id };
    assert.equal((await service.post(TRIGGER, body)).blocked_by, undefined);
  });
  await t.step("nothing is blocked when the first has arrived", async () => {
    hooks.judge = () => 200;
    await service.setClock(AT + 60_000);
    await settle(service);
    const all = await deliveriesOf(service);
    assert.ok(all.every(({ blocked_by }) => blocked_by === undefined));
  });
});

/** More endpoints than a live environment has, and than one character of an id tells apart. */
const ENDPOINTS = 33;
/** By chance, random ids of two events would be in order in half of all changes. */
const CHANGES = 10;

serviceCase("the list has a change by event and by endpoint", async (t, service) => {
  const endpoints: string[] = [];
  for (let i = 0; i < ENDPOINTS; i++) {
    endpoints.push((await addEndpoint(service, `https://hooks.example.com/${i}`)).id);
  }
  for (const clock of ["real", "moved"]) {
    await t.step(`with a ${clock} clock`, async () => {
      if (clock === "moved") {
        const body = { advance: 60, mode: "frozen" };
        await service.post(`${SANDBOX}/clock`, body);
      }
      for (let i = 0; i < CHANGES; i++) {
        const { body: { id } } = await service.make({ outcome: "success" });
        const path = `${DELIVERIES}?limit=100&payment_id=${id}`;
        const rows: { event_type: string; endpoint_id: string }[] = (await service.get(path)).data;
        // Each event has all of its deliveries together, the newest event first.
        const types = ["payment.completed", "payment.created"];
        assert.deepEqual(
          rows.map(({ event_type }) => event_type),
          types.flatMap((type) => Array(ENDPOINTS).fill(type)),
        );
        const order = rows.map(({ endpoint_id }) => endpoint_id);
        assert.deepEqual(order.slice(0, ENDPOINTS), order.slice(ENDPOINTS));
        assert.deepEqual(order.slice(ENDPOINTS).toSorted(), endpoints.toSorted());
        // The endpoints of the first 32 slots are in the order of their slots.
        assert.deepEqual(
          order.slice(ENDPOINTS).filter((id) => id !== endpoints[32]),
          endpoints.slice(0, 32).reverse(),
        );
      }
    });
  }
});
