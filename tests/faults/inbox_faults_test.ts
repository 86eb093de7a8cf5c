/**
 * Faults of deliveries to an inbox: each happens exactly as often as it was declared, as with an
 * endpoint that has a URL, and the other deliveries are read as usual.
 */

import assert from "node:assert/strict";
import { verifyWebhook } from "../../packages/client/webhook_signature.ts";
import type { InboxDelivery } from "../../shared/schema/inbox.ts";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import { declare, FAULTS, left } from "../support/service/declared_faults.ts";
import { advance, serviceCase } from "../support/service/service_case.ts";
import type { TestService } from "../support/service/service.ts";
import { addInbox, readInbox } from "../support/webhook/inbox_reader.ts";
import {
  addEndpoint,
  DELIVERIES,
  deliveriesOf,
  ENDPOINTS,
  settle,
  TRIGGER,
} from "../support/webhook/recording_receiver.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";

const AT = Date.parse("2026-08-09T10:11:12.013Z");

/** Declares a fault on deliveries. */
function faulty(service: TestService, fault: string, more: Record<string, unknown> = {}) {
  return declare(service, { on: "delivery", fault, ...more });
}

/** Shows deliveries as type, attempt and declared fault. */
function shown(data: readonly InboxDelivery[]): string[] {
  return data.map(({ body, headers }) =>
    [JSON.parse(body).type, headers["Webhook-Attempt"], headers["Sandbox-Fault"]]
      .filter((part) => part !== undefined).join(" ")
  );
}

/** Returns a function that reads what is new in an inbox and acknowledges it. */
function reader(service: TestService, id: string): () => Promise<InboxDelivery[]> {
  return async () => {
    const { status, text, body } = await readInbox(service, id, "limit=100");
    assert.equal(status, 200, text);
    await readInbox(service, id, `after=${body.next_cursor}`);
    return body.data;
  };
}

serviceCase("a delivery to an inbox with a fault", async (t, service) => {
  const { id: endpoint_id, secret } = await addInbox(service);
  const read = reader(service, endpoint_id);
  let now = AT;
  const at = async (at_ms: number) => {
    await service.setClock(now = at_ms);
    return shown(await read());
  };
  const pay = async () => {
    await service.setClock(now);
    return (await service.make({ outcome: "success" })).body.id as string;
  };

  await t.step("without a fault it is read once, without the header", async () => {
    await pay();
    assert.deepEqual(shown(await read()), ["payment.created 1", "payment.completed 1"]);
  });

  await t.step("duplicate is twice in the page, with the same id and signature", async () => {
    const fault = await faulty(service, "duplicate");
    const id = await pay();
    const data = await read();
    assert.deepEqual(shown(data), [
      "payment.created 1 duplicate",
      "payment.created 1 duplicate",
      "payment.completed 1",
    ]);
    assert.deepEqual(data[0], data[1]);
    const [delivery] = await deliveriesOf(service, `&payment_id=${id}`);
    assert.deepEqual([delivery.status, delivery.attempts], ["delivered", []]);
    assert.equal(await left(service, fault), 0);
  });

  await t.step("wrong_signature is refused, also when it is read again", async () => {
    const fault = await faulty(service, "wrong_signature");
    await pay();
    const { body } = await readInbox(service, endpoint_id);
    const again = await read();
    assert.deepEqual(shown(again), ["payment.created 1 wrong_signature", "payment.completed 1"]);
    for (const data of [body.data, again]) {
      const [created, completed] = data;
      const verified = ({ body, headers }: InboxDelivery) =>
        verifyWebhook(body, headers["Payment-Signature"]!, secret, { now_ms: now });
      await assert.rejects(verified(created), { reason: "no_matching_signature" });
      await verified(completed);
    }
    assert.equal(await left(service, fault), 0);
  });

  await t.step("and is signed when it is sent again", async () => {
    const [wrong] = (await deliveriesOf(service)).filter(({ event_type }) =>
      event_type === "payment.created"
    ).slice(-1);
    await service.call("POST", `${DELIVERIES}/${wrong.id}/redeliver`);
    const [delivery] = await read();
    assert.deepEqual(shown([delivery!]), ["payment.created 2"]);
    const { body, headers } = delivery!;
    await verifyWebhook(body, headers["Payment-Signature"]!, secret, { now_ms: now });
  });

  await t.step("delay is available later, and the events behind it wait", async () => {
    await faulty(service, "delay", { delay_ms: 7_000 });
    const id = await pay();
    assert.deepEqual(await at(now), []);
    assert.deepEqual(await at(now + 6_999), []);
    const [created] = await deliveriesOf(service, `&payment_id=${id}`);
    assert.deepEqual([created.status, created.next_attempt_at], [
      "pending",
      new Date(now + 1).toISOString(),
    ]);
    assert.deepEqual(await at(now + 1), ["payment.created 1 delay", "payment.completed 1"]);
  });

  await t.step("a delayed event does not delay the one before it", async () => {
    await faulty(service, "delay", { delay_ms: 7_000, where: { event_type: "payment.completed" } });
    await pay();
    assert.deepEqual(await at(now), ["payment.created 1"]);
    assert.deepEqual(await at(now + 6_999), []);
    assert.deepEqual(await at(now + 1), ["payment.completed 1 delay"]);
  });

  await t.step("a delay with times 2 delays two deliveries, and none twice", async () => {
    const fault = await faulty(service, "delay", { delay_ms: 1_000, times: 2 });
    await pay();
    assert.deepEqual(await at(now), []);
    assert.deepEqual(await at(now + 1_000), [
      "payment.created 1 delay",
      "payment.completed 1 delay",
    ]);
    assert.equal(await left(service, fault), 0);
  });

  await t.step("reorder is read after its successor", async () => {
    await faulty(service, "reorder");
    await pay();
    assert.deepEqual(shown(await read()), ["payment.completed 1", "payment.created 1 reorder"]);
  });

  await t.step("reorder with times 2 does not undo itself", async () => {
    const fault = await faulty(service, "reorder", { times: 2 });
    for (const rest of [1, 0]) {
      await pay();
      assert.deepEqual(shown(await read()), ["payment.completed 1", "payment.created 1 reorder"]);
      assert.equal(await left(service, fault), rest);
    }
  });

  await t.step("the successor of a reordered delivery has a fault of its own", async () => {
    await faulty(service, "reorder", { where: { event_type: "payment.created" } });
    await faulty(service, "duplicate", { where: { event_type: "payment.completed" } });
    await pay();
    assert.deepEqual(shown(await read()), [
      "payment.completed 1 duplicate",
      "payment.completed 1 duplicate",
      "payment.created 1 reorder",
    ]);
  });

  await t.step("reorder waits for a successor that does not exist yet", async () => {
    await faulty(service, "reorder", { where: { event_type: "payment.completed" } });
    const id = await pay();
    assert.deepEqual(await at(now), ["payment.created 1"]);
    assert.deepEqual(await at(now + 2_000), []);
    await advance(service, id, "chargeback");
    assert.deepEqual(await at(now), [
      "dispute.created 1",
      "payment.chargeback 1",
      "payment.completed 1 reorder",
    ]);
  });

  await t.step("reorder without a successor is available after a minute", async () => {
    await faulty(service, "reorder", { where: { event_type: "payment.completed" } });
    await pay();
    assert.deepEqual(await at(now), ["payment.created 1"]);
    assert.deepEqual(await at(now + 59_999), []);
    assert.deepEqual(await at(now + 1), ["payment.completed 1 reorder"]);
  });

  await t.step("drop_until_recovered is read only when it is sent again", async () => {
    const fault = await faulty(service, "drop_until_recovered");
    const id = await pay();
    assert.deepEqual(await at(now), ["payment.completed 1"]);
    assert.equal(await left(service, fault), 0);
    assert.deepEqual(await at(now + 86_400_000), []);
    const [dropped] = await deliveriesOf(service, `&payment_id=${id}&status=failed`);
    assert.deepEqual([dropped.event_type, dropped.next_attempt_at], ["payment.created", null]);
    // A fault that is still open does not drop it again.
    const open = await faulty(service, "drop_until_recovered", { times: 5 });
    const again = await service.call("POST", `${DELIVERIES}/${dropped.id}/redeliver`);
    assert.equal(again.status, 200);
    assert.deepEqual(await at(now), ["payment.created 1 drop_until_recovered"]);
    await service.call("DELETE", `${FAULTS}/${open.id}`);
  });

  await t.step("recover sends what was dropped", async () => {
    await faulty(service, "drop_until_recovered", { times: 2 });
    await pay();
    assert.deepEqual(await at(now), []);
    const { body } = await service.call("POST", `${ENDPOINTS}/${endpoint_id}/recover`, {
      body: { since: new Date(now - 1000).toISOString() },
    });
    assert.equal(body.count, 2);
    assert.deepEqual(await at(now), [
      "payment.created 1 drop_until_recovered",
      "payment.completed 1 drop_until_recovered",
    ]);
  });

  await t.step("a dropped successor makes the reordered delivery available", async () => {
    await faulty(service, "reorder", { where: { event_type: "payment.completed" } });
    const id = await pay();
    assert.deepEqual(await at(now), ["payment.created 1"]);
    await faulty(service, "drop_until_recovered", { where: { event_type: "dispute.created" } });
    await advance(service, id, "chargeback");
    assert.deepEqual((await at(now)).toSorted(), [
      "payment.chargeback 1",
      "payment.completed 1 reorder",
    ]);
  });

  await t.step("a triggered event has no fault", async () => {
    const payment_id = await pay();
    await read();
    const fault = await faulty(service, "duplicate");
    await service.call("POST", TRIGGER, {
      body: { endpoint_id, event: "payment.completed", payment_id },
    });
    assert.deepEqual(shown(await read()), ["payment.completed 1"]);
    assert.equal(await left(service, fault), 1);
    await service.call("DELETE", `${FAULTS}/${fault.id}`);
  });

  await t.step("the invariants hold", async () => {
    await assertSilent(service.sql);
  });
});

serviceCase(
  "a waiting read of an inbox gets a delayed delivery at its time",
  async (_t, service) => {
    const { id } = await addInbox(service);
    await faulty(service, "delay", { delay_ms: 1_000 });
    await service.make({ outcome: "success" });
    const began = performance.now();
    const { body } = await readInbox(service, id, "wait=20");
    const waited = performance.now() - began;
    assert.deepEqual(shown(body.data), ["payment.created 1 delay", "payment.completed 1"]);
    assert.ok(waited > 500 && waited < 10_000, `${waited} ms`);
  },
);

webhookCase("the dispatcher fills an inbox whose deliveries have faults", async (t, service) => {
  const { id } = await addInbox(service);
  const clock = (body: unknown) => service.call("POST", "/api-v1-sandbox/clock", { body });
  const read = reader(service, id);
  await clock({ mode: "frozen" });
  await faulty(service, "delay", { delay_ms: 7_000 });
  await service.make({ outcome: "success" });
  await settle(service);
  await t.step("a delayed delivery and those behind it are not due", async () => {
    const [row] = await service.sql`
      select count(*)::int as waiting from pay.webhook_deliveries
      where status = 'pending' and next_attempt_at = 'infinity'`;
    assert.equal(row!.waiting, 2);
  });
  await t.step("it is due by the clock of the sandbox", async () => {
    assert.equal((await clock({ advance: 6 })).body.has_more, false);
    assert.deepEqual(await read(), []);
    assert.equal((await clock({ advance: 1 })).body.has_more, false);
    assert.equal((await deliveriesOf(service, "&status=available")).length, 2);
    assert.deepEqual(shown(await read()), ["payment.created 1 delay", "payment.completed 1"]);
  });
  await t.step("a reordered delivery follows its successor without a read", async () => {
    await faulty(service, "reorder", { where: { event_type: "payment.completed" } });
    const { body: payment } = await service.make({ outcome: "success" });
    await settle(service);
    assert.deepEqual(shown(await read()), ["payment.created 1"]);
    await advance(service, payment.id, "chargeback");
    await settle(service);
    assert.equal((await deliveriesOf(service, "&status=pending")).length, 0);
    assert.deepEqual(shown(await read()).slice(2), ["payment.completed 1 reorder"]);
  });
  await t.step("a reordered delivery follows its delayed successor", async () => {
    await faulty(service, "reorder", { where: { event_type: "payment.created" } });
    await faulty(service, "delay", { delay_ms: 5_000, where: { event_type: "payment.completed" } });
    await service.make({ outcome: "success" });
    await settle(service);
    assert.deepEqual(await read(), []);
    await clock({ advance: 5 });
    assert.deepEqual(shown(await read()), [
      "payment.completed 1 delay",
      "payment.created 1 reorder",
    ]);
  });
  await t.step("a reordered delivery without a successor is due after a minute", async () => {
    await faulty(service, "reorder", { where: { event_type: "payment.completed" } });
    await service.make({ outcome: "success" });
    await settle(service);
    assert.deepEqual(shown(await read()), ["payment.created 1"]);
    await clock({ advance: 60 });
    assert.deepEqual(shown(await read()), ["payment.completed 1 reorder"]);
  });
  await t.step("the invariants hold", async () => {
    await assertSilent(service.sql);
  });
});

webhookCase("the conditions of a fault choose between inboxes and URLs", async (
  t,
  service,
  hooks,
) => {
  const { id } = await addInbox(service);
  const { id: other_id } = await addInbox(service);
  await addEndpoint(service, hooks.url("/"));
  const read = reader(service, id);
  const readOther = reader(service, other_id);
  const types = async (where: Record<string, string>) => {
    const fault = await faulty(service, "drop_until_recovered", { where });
    hooks.arrivals.length = 0;
    await service.make({ outcome: "success" });
    await settle(service);
    assert.equal(await left(service, fault), 0);
    return [shown(await read()).length, shown(await readOther()).length, hooks.arrivals.length];
  };
  await t.step("endpoint_id", async () => {
    assert.deepEqual(await types({ endpoint_id: id }), [1, 2, 2]);
  });
  await t.step("both", async () => {
    const where = { endpoint_id: other_id, event_type: "payment.completed" };
    assert.deepEqual(await types(where), [2, 1, 2]);
  });
  await t.step("an inbox of another account notices nothing", async () => {
    const fault = await faulty(service, "drop_until_recovered");
    const options = { key: service.other.text };
    const { id } = await addInbox(service, {}, options);
    await service.make({ outcome: "success" }, options);
    const { body } = await readInbox(service, id, "", options);
    assert.deepEqual(shown(body.data), ["payment.created 1", "payment.completed 1"]);
    assert.equal(await left(service, fault), 1);
  });
});

for (const fault of ["duplicate", "wrong_signature", "drop_until_recovered"]) {
  webhookCase(`${fault} with times 7 happens to 7 of 64 deliveries of racing readers`, async (
    _t,
    service,
  ) => {
    const inboxes = [await addInbox(service), await addInbox(service)];
    const declared = await faulty(service, fault, {
      times: 7,
      where: { event_type: "payment.created" },
    });
    await Promise.all(Array.from({ length: 32 }, async (_, i) => {
      await service.make({ outcome: "pending" });
      const { id } = inboxes[i % 2]!;
      await Promise.all([readInbox(service, id), settle(service)]);
    }));
    assert.equal(await left(service, declared), 0);
    const [row] = await service.sql`
      select count(*)::int as faulty from pay.webhook_deliveries where fault = ${fault}`;
    assert.equal(row!.faulty, 7);
    const pages = await Promise.all(
      inboxes.map(({ id }) => readInbox(service, id, "limit=100")),
    );
    const data: InboxDelivery[] = pages.flatMap(({ body }) => body.data);
    const expected = { duplicate: 71, wrong_signature: 64, drop_until_recovered: 57 }[fault];
    assert.equal(data.length, expected);
    const marked = data.filter(({ headers }) => headers["Sandbox-Fault"] === fault).length;
    assert.equal(marked, { duplicate: 14, wrong_signature: 7 }[fault] ?? 0);
  });
}
