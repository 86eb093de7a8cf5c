/**
 * Order and retries with an injected clock (contract §4): an event waits only while an earlier
 * event of the same payment is still being tried, and `blocked_by` names the delivery of that
 * event. The list (contract §5) shows the deliveries of one change by event, the newest first, and
 * those of one event by endpoint.
 */

import assert from "node:assert/strict";
import { verifyWebhook } from "../../packages/client/webhook_signature.ts";
import { PAYMENTS, SANDBOX, serviceCase } from "../support/service/service_case.ts";
import type { TestService } from "../support/service/service.ts";
import {
  addEndpoint,
  type Arrival,
  DELIVERIES,
  deliveriesOf,
  settle,
  shown,
  TRIGGER,
} from "../support/webhook/recording_receiver.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";

const AT = Date.parse("2026-08-09T10:11:12.013Z");

webhookCase("an event waits only for earlier ones of its payment", async (t, service, hooks) => {
  const { id, secret } = await addEndpoint(service, hooks.url("/"));
  await addEndpoint(service, hooks.url("/beside"));
  const { body: slow } = await service.make({ outcome: "pending" });
  await settle(service);
  hooks.arrivals.length = 0;
  let failures = 2;
  hooks.judge = ({ path, event }: Arrival) =>
    path === "/" && event.data.object.id === slow.id && failures-- > 0 ? 500 : 200;
  await service.setClock(AT);
  await service.call("POST", `/api-v1-sandbox/payments/${slow.id}/advance`, {
    body: { to: "processing" },
  });
  await settle(service);
  await service.call("POST", `/api-v1-sandbox/payments/${slow.id}/advance`, {
    body: { to: "completed" },
  });
  const { body: fast } = await service.make({ outcome: "success" });
  await settle(service);
  const of = (id: string, path = "/") =>
    shown(hooks.at(path).filter(({ event }) => event.data.object.id === id));

  await t.step("events of other payments are delivered meanwhile", () => {
    assert.deepEqual(of(fast.id), ["payment.created 1", "payment.completed 1"]);
    assert.deepEqual(of(slow.id, "/beside"), ["payment.processing 1", "payment.completed 1"]);
    assert.deepEqual(of(slow.id), ["payment.processing 1"]);
  });
  await t.step("nothing is sent a millisecond before the next attempt is due", async () => {
    await service.setClock(AT + 4_999);
    await settle(service);
    assert.deepEqual(of(slow.id), ["payment.processing 1"]);
  });
  await t.step("the next attempt is made when it is due, and fails again", async () => {
    await service.setClock(AT + 5_000);
    await settle(service);
    assert.deepEqual(of(slow.id), ["payment.processing 1", "payment.processing 2"]);
  });
  await t.step("after the delivery the waiting events follow at once", async () => {
    await service.setClock(AT + 65_000);
    await settle(service);
    assert.deepEqual(of(slow.id), [
      "payment.processing 1",
      "payment.processing 2",
      "payment.processing 3",
      "payment.completed 1",
    ]);
  });
  await t.step("each attempt is signed with its own time", async () => {
    const tries = hooks.at("/").filter(({ event }) => event.type === "payment.processing");
    const times = tries.map(({ headers }) => Number(headers.get("Webhook-Timestamp")) * 1000);
    assert.deepEqual(times, [AT, AT + 5_000, AT + 65_000].map((at) => at - at % 1000));
    for (const [i, { bytes, headers }] of tries.entries()) {
      const signature = headers.get("Payment-Signature");
      await verifyWebhook(bytes, signature, secret, { now_ms: times[i]! });
    }
    assert.equal(new Set(tries.map(({ text }) => text)).size, 1);
  });
  await t.step("the attempts are recorded", async () => {
    const event_id = hooks.at("/").at(-2)!.event.id;
    const [delivery] = await deliveriesOf(service, `&event_id=${event_id}&endpoint_id=${id}`);
    const recorded = delivery.attempts.map(
      // deno-lint-ignore no-explicit-any
      ({ number, at, response_status, error }: any) => [number, at, response_status, error],
    );
    assert.deepEqual(recorded, [
      [1, new Date(AT).toISOString(), 500, null],
      [2, new Date(AT + 5_000).toISOString(), 500, null],
      [3, new Date(AT + 65_000).toISOString(), 200, null],
    ]);
  });
});

webhookCase(
  "an attempt whose dispatcher died delays no other delivery",
  async (t, service, hooks) => {
    await addEndpoint(service, hooks.url("/"));
    hooks.judge = ({ event }: Arrival) => event.type === "payment.created" ? 503 : 200;
    await service.setClock(AT);
    const { body: payment } = await service.make({ outcome: "success" });
    for (const after_ms of [0, 5_000, 65_000]) {
      await service.setClock(AT + after_ms);
      await settle(service);
    }
    const deliveries = await deliveriesOf(service, `&payment_id=${payment.id}`);
    const [created, completed] = ["payment.created", "payment.completed"].map((type) =>
      deliveries.find(({ event_type }) => event_type === type)
    );
    const now = AT + 66_000;
    /** Leaves the delivery as a dispatcher does that has leased it and was killed. */
    const orphan = (next_attempt_at: number) =>
      service.sql`
      update pay.webhook_deliveries
      set status = 'pending', attempt_count = 1, leased_until = ${new Date(now - 1)},
        next_attempt_at = ${new Date(next_attempt_at)}
      where id = ${completed.id}`;
    const redeliver = async (id: string) => {
      const { status } = await service.call("POST", `${DELIVERIES}/${id}/redeliver`, { body: {} });
      assert.equal(status, 200);
      await settle(service);
    };
    await service.setClock(now);
    hooks.judge = () => 200;

    await t.step("the delivery waits for the event before it", async () => {
      await orphan(now);
      await settle(service);
      assert.equal(hooks.arrivals.length, 3);
    });
    await t.step("it is sent at once after that event", async () => {
      await redeliver(created.id);
      assert.deepEqual(shown(hooks.arrivals).slice(3), [
        "payment.created 4",
        "payment.completed 2",
      ]);
    });
    await t.step("it can be redelivered", async () => {
      hooks.arrivals.length = 0;
      await orphan(now + 600_000);
      await redeliver(completed.id);
      assert.equal(hooks.arrivals.length, 1);
    });
  },
);

webhookCase("the receiver's Retry-After sets the next attempt", async (_, service, hooks) => {
  await addEndpoint(service, hooks.url("/"), { events: ["payment.created"] });
  hooks.judge = () => new Response(null, { status: 429, headers: { "Retry-After": "8" } });
  await service.setClock(AT);
  await service.make({ outcome: "success" });
  await settle(service);
  const [delivery] = await deliveriesOf(service);
  assert.equal(delivery.next_attempt_at, new Date(AT + 8_000).toISOString());
  assert.equal(delivery.attempts[0].response_status, 429);
});

webhookCase("182 events of one payment arrive in order", async (_, service, hooks) => {
  await addEndpoint(service, hooks.url("/"));
  let responses = 0;
  hooks.judge = () => ++responses === 1 ? 500 : 200;
  await service.setClock(AT);
  const { body: payment } = await service.make({ outcome: "success" });
  await settle(service);
  for (let i = 0; i < 60; i++) {
    const url = `${PAYMENTS}/${payment.id}/refund`;
    assert.equal((await service.call("POST", url, { body: { amount: 1 } })).status, 201);
  }
  const { body: other } = await service.make({ outcome: "success" });
  await settle(service);
  assert.deepEqual(
    hooks.arrivals.slice(1).map(({ event }) => event.data.object.id),
    [other.id, other.id],
    "the row waits, others do not",
  );
  await service.setClock(AT + 5_000);
  await settle(service);
  const sequences = hooks.arrivals.slice(3).map(({ event }) => event.sequence);
  assert.deepEqual(sequences, Array.from({ length: 182 }, (_, i) => i + 1));
  const pending = await service.call("GET", `${DELIVERIES}?status=pending`);
  assert.deepEqual(pending.body.data, []);
});

webhookCase("blocked_by names the delivery that another one waits for", async (
  t,
  service,
  hooks,
) => {
  await service.setClock(AT);
  const { id: endpoint_id } = await addEndpoint(service, hooks.url("/failing"));
  await addEndpoint(service, hooks.url("/good"));
  // Its first event of the payment is a later one, and nothing of its own is before it.
  const late = await addEndpoint(service, hooks.url("/late"), { events: ["payment.refunded"] });
  hooks.judge = ({ path }) => path === "/good" ? 200 : 500;
  const { id: payment_id } = (await service.make({ outcome: "refunded" })).body;
  await service.make({ outcome: "refunded" });
  await settle(service);
  const failing = `&endpoint_id=${endpoint_id}&payment_id=${payment_id}`;
  const [first, ...behind] = await deliveriesOf(service, failing);

  await t.step("each later delivery names the first that is pending", () => {
    assert.equal(first.blocked_by, undefined);
    assert.ok(behind.length >= 2);
    for (const delivery of behind) assert.equal(delivery.blocked_by, first.id);
  });
  await t.step("a read of one delivery shows the same", async () => {
    const { body } = await service.call("GET", `${DELIVERIES}/${behind[0].id}`);
    assert.equal(body.blocked_by, first.id);
  });
  await t.step("another endpoint waits for none", async () => {
    const [own_first] = await deliveriesOf(service, `&endpoint_id=${late.id}`);
    assert.deepEqual([own_first.status, own_first.blocked_by], ["pending", undefined]);
  });
  await t.step("each delivery waits for one of its own payment and endpoint", async () => {
    const all = await deliveriesOf(service);
    const blocked = all.filter(({ blocked_by }) => blocked_by !== undefined);
    assert.equal(blocked.length, 2 * behind.length);
    for (const { blocked_by, payment_id, endpoint_id } of blocked) {
      const blocker = all.find(({ id }) => id === blocked_by);
      assert.deepEqual([blocker.payment_id, blocker.endpoint_id], [payment_id, endpoint_id]);
    }
  });
  await t.step("a triggered event waits for none", async () => {
    const body = { endpoint_id, event: "payment.completed", payment_id };
    assert.equal((await service.call("POST", TRIGGER, { body })).body.blocked_by, undefined);
  });
  await t.step("nothing is blocked when the first has arrived", async () => {
    hooks.judge = () => 200;
    await service.setClock(AT + 60_000);
    await settle(service);
    for (const { status, blocked_by } of await deliveriesOf(service, failing)) {
      if (status !== "failed") assert.deepEqual([status, blocked_by], ["delivered", undefined]);
    }
  });
});

/** More endpoints than a live environment has, and than one character of an id tells apart. */
const ENDPOINTS = 33;
/** By chance, random ids of two events would be in order in half of all changes. */
const CHANGES = 10;

/** Deliveries of a payment as `type endpoint`, in the order of the list. */
async function listed(service: TestService, payment_id: string): Promise<string[]> {
  const path = `${DELIVERIES}?limit=100&payment_id=${payment_id}`;
  const { body } = await service.call("GET", path);
  return body.data.map(({ event_type, endpoint_id }: Record<string, string>) =>
    `${event_type} ${endpoint_id}`
  );
}

serviceCase(
  "GET /v1/webhook_deliveries lists one change by event and endpoint",
  async (t, service) => {
    const endpoints: string[] = [];
    for (let i = 0; i < ENDPOINTS; i++) {
      const url = `https://hooks.example.com/${i}`;
      endpoints.push((await addEndpoint(service, url)).id);
    }
    for (const clock of ["real", "moved"]) {
      await t.step(`with a ${clock} clock`, async () => {
        if (clock === "moved") {
          const body = { advance: 60, mode: "frozen" };
          assert.equal((await service.call("POST", `${SANDBOX}/clock`, { body })).status, 200);
        }
        for (let i = 0; i < CHANGES; i++) {
          const { body } = await service.make({ outcome: "success" });
          const rows = await listed(service, body.id);
          const types = rows.map((row) => row.split(" ")[0]!);
          const events = [...new Set(types)];
          assert.deepEqual(events, ["payment.completed", "payment.created"]);
          // Each event has all of its deliveries together, the newest event first.
          assert.deepEqual(types, events.flatMap((type) => Array(ENDPOINTS).fill(type)));
          const orders = events.map((type) =>
            rows.filter((row) => row.startsWith(`${type} `)).map((row) => row.split(" ")[1])
          );
          for (const order of orders) {
            assert.deepEqual(order, orders[0]);
            assert.deepEqual(order.toSorted(), endpoints.toSorted());
            // The endpoints of the first 32 slots are in the order of their slots.
            assert.deepEqual(
              order.filter((id) => id !== endpoints[32]),
              endpoints.slice(0, 32).reverse(),
            );
          }
        }
      });
    }
  },
);

webhookCase("GET /v1/webhook_deliveries filters", async (t, service, hooks) => {
  const good = await addEndpoint(service, hooks.url("/good"));
  const bad = await addEndpoint(service, hooks.url("/bad"), { events: ["payment.created"] });
  await addEndpoint(service, hooks.url("/x"), {}, { key: service.other.text });
  await service.make({ outcome: "success" }, { key: service.other.text });
  hooks.judge = ({ path }) => path === "/bad" ? 500 : 200;
  const { body: first } = await service.make({ outcome: "success" });
  const { body: second } = await service.make({ outcome: "pending" });
  await settle(service);
  const all = await deliveriesOf(service);
  const created = hooks.at("/good").find(({ event }) => event.data.object.id === second.id)!.event;
  const cases: [query: string, expected: number, (row: Record<string, unknown>) => boolean][] = [
    ["", 5, () => true],
    [`&endpoint_id=${good.id}`, 3, ({ endpoint_id }) => endpoint_id === good.id],
    [`&endpoint_id=${bad.id}`, 2, ({ endpoint_id }) => endpoint_id === bad.id],
    [`&payment_id=${first.id}`, 3, ({ payment_id }) => payment_id === first.id],
    [`&event_id=${created.id}`, 2, ({ event_id }) => event_id === created.id],
    ["&status=pending", 2, ({ status }) => status === "pending"],
    ["&status=delivered", 3, ({ status }) => status === "delivered"],
    ["&status=failed", 0, () => false],
    [
      `&status=pending&payment_id=${second.id}`,
      1,
      ({ payment_id, status }) => payment_id === second.id && status === "pending",
    ],
    [`&endpoint_id=${bad.id}&status=delivered`, 0, () => false],
  ];
  for (const [query, expected, wants] of cases) {
    await t.step(query.replace(/_[0-9a-z]{26}/g, "_…") || "none", async () => {
      const rows = await deliveriesOf(service, query);
      assert.equal(rows.length, expected);
      assert.deepEqual(rows, all.filter(wants));
    });
  }
  await t.step("a single delivery looks as in the list, beside its `exchanges`", async () => {
    const read = await service.call("GET", `${DELIVERIES}/${all[0].id}`);
    const { exchanges: _, ...shown } = read.body;
    assert.deepEqual(shown, all[0]);
  });
});
