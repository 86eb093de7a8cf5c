/** Endpoints with an inbox: reads, cursors and acknowledgement (contract §4). */

import assert from "node:assert/strict";
import { verifyWebhook } from "../../packages/client/mod.ts";
import { assertRefused, serviceCase } from "../support/service/service_case.ts";
import { addInbox, readInbox, typesIn } from "../support/webhook/inbox_reader.ts";
import {
  DELIVERIES,
  deliveriesOf,
  ENDPOINTS,
  TRIGGER,
} from "../support/webhook/recording_receiver.ts";

serviceCase("GET /inbox gives the deliveries in order, signed for verifyWebhook", async (
  t,
  service,
) => {
  const { id, secret } = await addInbox(service);
  const paid = await service.make({ outcome: "success" });
  const { status, body } = await readInbox(service, id);
  assert.equal(status, 200);
  await t.step("each delivery has the headers and the body of a webhook", async () => {
    assert.deepEqual(typesIn(body), ["payment.created", "payment.completed"]);
    for (const delivery of body.data) {
      const event = await verifyWebhook(
        delivery.body,
        delivery.headers["Payment-Signature"],
        secret,
      );
      assert.equal(event.id, delivery.event_id);
      assert.equal(event.data.object.id, paid.body.id);
      const { text } = await service.call(
        "GET",
        `/api-v1-payments/v1/events/${delivery.event_id}`,
      );
      assert.equal(delivery.body, text);
      assert.deepEqual(Object.keys(delivery.headers), [
        "Content-Type",
        "User-Agent",
        "Payment-Signature",
        "Webhook-Id",
        "Webhook-Timestamp",
        "Webhook-Signature",
        "Webhook-Attempt",
      ]);
      assert.equal(delivery.headers["Webhook-Attempt"], "1");
    }
  });
  await t.step("the deliveries are available, without attempts", async () => {
    for (const delivery of await deliveriesOf(service)) {
      const { status, attempts, next_attempt_at } = delivery;
      assert.deepEqual([status, attempts, next_attempt_at], ["available", [], null]);
    }
  });
  await t.step("without a cursor a read gives the same again", async () => {
    const again = await readInbox(service, id);
    assert.deepEqual(typesIn(again.body), typesIn(body));
    assert.equal(again.body.next_cursor, body.next_cursor);
  });
  await t.step("the cursor acknowledges", async () => {
    const after = await readInbox(service, id, `after=${body.next_cursor}`);
    assert.deepEqual([after.body.data, after.body.has_more], [[], false]);
    assert.equal(after.body.next_cursor, body.next_cursor);
    const statuses = (await deliveriesOf(service)).map(({ status }) => status);
    assert.deepEqual(statuses, ["delivered", "delivered"]);
    assert.deepEqual((await readInbox(service, id)).body.data, []);
  });
  await t.step("an older cursor shows the deliveries again and takes nothing back", async () => {
    const zero = body.next_cursor.replace(/_\d+$/, "_0");
    assert.deepEqual(typesIn((await readInbox(service, id, `after=${zero}`)).body), typesIn(body));
    assert.deepEqual((await readInbox(service, id)).body.data, []);
  });
});

serviceCase("GET /inbox pages", async (t, service) => {
  const { id } = await addInbox(service);
  for (let i = 0; i < 4; i++) await service.make({ outcome: "success" });
  const whole = await readInbox(service, id, "limit=100");
  const seen: string[] = [];
  let page = await readInbox(service, id, "limit=3");
  for (;;) {
    seen.push(...page.body.data.map(({ id }: { id: string }) => id));
    if (!page.body.has_more) break;
    page = await readInbox(service, id, `limit=3&after=${page.body.next_cursor}`);
  }
  await t.step("pages of 3 give every delivery once, in the order of one page", () => {
    assert.equal(seen.length, 8);
    assert.deepEqual(seen, whole.body.data.map(({ id }: { id: string }) => id));
  });
  await t.step("only the pages before the last read are acknowledged", async () => {
    const left = (await deliveriesOf(service, "&status=available")).length;
    assert.equal(left, 2);
  });
});

serviceCase("the inbox of a live key", async (t, service) => {
  const { id } = await addInbox(service, {}, { key: service.live.text });
  await t.step("is read with a live key", async () => {
    const { status, body } = await readInbox(service, id, "", { key: service.live.text });
    assert.deepEqual([status, body.data, body.has_more], [200, [], false]);
  });
  await t.step("is 404 for the test key of the account", async () => {
    assertRefused(await readInbox(service, id), 404, "not_found");
  });
});

serviceCase("events= of an inbox", async (_, service) => {
  const { id } = await addInbox(service, { events: ["payment.completed"] });
  await service.make({ outcome: "success" });
  assert.deepEqual(typesIn((await readInbox(service, id)).body), ["payment.completed"]);
});

serviceCase("POST /redeliver to an inbox", async (t, service) => {
  const { id } = await addInbox(service);
  await service.make({ outcome: "success" });
  const first = (await readInbox(service, id)).body;
  const again = (delivery: string) => service.call("POST", `${DELIVERIES}/${delivery}/redeliver`);
  await t.step("an available delivery stays where it is", async () => {
    const { status, body } = await again(first.data[0].id);
    assert.deepEqual([status, body.status], [200, "available"]);
    assert.deepEqual(typesIn((await readInbox(service, id)).body), typesIn(first));
  });
  await t.step("a delivered one comes again behind the cursor, as attempt 2", async () => {
    await readInbox(service, id, `after=${first.next_cursor}`);
    const { status, body } = await again(first.data[0].id);
    assert.deepEqual([status, body.status], [200, "pending"]);
    const { data } = (await readInbox(service, id, `after=${first.next_cursor}`)).body;
    assert.deepEqual(data.map(({ id }: { id: string }) => id), [first.data[0].id]);
    assert.equal(data[0].headers["Webhook-Attempt"], "2");
    assert.equal(data[0].body, first.data[0].body);
  });
});

serviceCase("POST /webhooks/trigger to an inbox", async (t, service) => {
  const { id, secret } = await addInbox(service, { events: ["refund.*"] });
  const { body: payment } = await service.make({ outcome: "success" });
  const trigger = () =>
    service.call("POST", TRIGGER, {
      body: { endpoint_id: id, event: "payment.completed", payment_id: payment.id },
      idempotency_key: "trigger",
    });
  const response = await trigger();
  await t.step("returns the delivery, which is in the inbox", () => {
    assert.equal(response.status, 200);
    assert.deepEqual([response.body.status, response.body.attempts], ["available", []]);
  });
  await t.step("the event has triggered: true and a genuine signature", async () => {
    const { data } = (await readInbox(service, id)).body;
    assert.equal(data.length, 1);
    const event = await verifyWebhook(data[0].body, data[0].headers["Payment-Signature"], secret);
    assert.deepEqual([event.type, event.triggered], ["payment.completed", true]);
  });
});

serviceCase("rotation of the secret of an inbox", async (_, service) => {
  const { id, secret } = await addInbox(service);
  await service.make({ outcome: "pending" });
  const rotated = await service.call("POST", `${ENDPOINTS}/${id}/rotate_secret`, {
    body: { expires_in: 3600 },
  });
  const [{ body, headers }] = (await readInbox(service, id)).body.data;
  // A delivery from before the rotation is signed with all secrets that are valid at the read.
  for (const valid of [secret, rotated.body.secret]) {
    await verifyWebhook(body, headers["Payment-Signature"], valid);
  }
});

serviceCase("reset of a sandbox with an inbox", async (t, service) => {
  const { id } = await addInbox(service);
  await service.make({ outcome: "success" });
  const before = (await readInbox(service, id)).body;
  await service.make({ outcome: "success" });
  await service.call("POST", "/api-v1-sandbox/reset");
  await t.step("empties the inbox", async () => {
    const { body } = await readInbox(service, id);
    assert.deepEqual([body.data, body.has_more], [[], false]);
  });
  await t.step("a cursor from before stays valid, and new deliveries come", async () => {
    await service.make({ outcome: "pending" });
    const { body } = await readInbox(service, id, `after=${before.next_cursor}`);
    assert.deepEqual(typesIn(body), ["payment.created"]);
  });
  await t.step("the old data can be purged", async () => {
    while (await service.deps.webhook_store.purge(Date.now()) > 0);
    const [row] = await service.sql`
      select count(*)::int as entries from pay.inbox_entries`;
    assert.equal(row!.entries, 1);
  });
});
