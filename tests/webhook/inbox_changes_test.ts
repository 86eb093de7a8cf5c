/** Changes of an endpoint between a URL and an inbox, its end, and its order (contract §4). */

import assert from "node:assert/strict";
import { assertRefused } from "../support/service/service_case.ts";
import { addInbox, readInbox, typesIn } from "../support/webhook/inbox_reader.ts";
import {
  addEndpoint,
  deliveriesOf,
  ENDPOINTS,
  settle,
  shown,
} from "../support/webhook/recording_receiver.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";

const TYPES = ["payment.created", "payment.completed"];

webhookCase("PUT delivery: url sends what is not acknowledged", async (t, service, hooks) => {
  const { id } = await addInbox(service);
  await service.make({ outcome: "success" });
  const { next_cursor } = (await readInbox(service, id)).body;
  await readInbox(service, id, `after=${next_cursor}`);
  await service.make({ outcome: "success" });
  await readInbox(service, id);
  await service.make({ outcome: "success" });
  const changed = await service.call("PUT", `${ENDPOINTS}/${id}`, {
    body: { delivery: "url", url: hooks.url("/") },
  });
  assert.deepEqual([changed.body.delivery, changed.body.url], ["url", hooks.url("/")]);
  await settle(service);
  await t.step("in the order of each payment", () => {
    const by_payment = Map.groupBy(hooks.arrivals, ({ event }) => event.data.object.id);
    assert.equal(by_payment.size, 2);
    for (const arrivals of by_payment.values()) {
      assert.deepEqual(arrivals.map(({ event }) => event.type), TYPES);
    }
  });
  await t.step("every delivery is delivered", async () => {
    const statuses = (await deliveriesOf(service)).map(({ status }) => status);
    assert.deepEqual(statuses, Array(6).fill("delivered"));
  });
  await t.step("reads are 409 from now on", async () => {
    const refused = await readInbox(service, id, `after=${next_cursor}`);
    assertRefused(refused, 409, "invalid_state");
    assert.deepEqual(refused.body.error.current_status, "url");
  });
  await t.step("a change back to an inbox keeps the cursor", async () => {
    await service.call("PUT", `${ENDPOINTS}/${id}`, { body: { delivery: "inbox" } });
    await service.make({ outcome: "pending" });
    assert.deepEqual(typesIn((await readInbox(service, id)).body), ["payment.created"]);
  });
});

webhookCase("PUT delivery: inbox takes over what is pending", async (t, service, hooks) => {
  hooks.judge = () => 500;
  const { id } = await addEndpoint(service, hooks.url("/"));
  await service.make({ outcome: "success" });
  await settle(service);
  assert.deepEqual(shown(hooks.arrivals), ["payment.created 1"]);
  const changed = await service.call("PUT", `${ENDPOINTS}/${id}`, { body: { delivery: "inbox" } });
  assert.deepEqual([changed.body.delivery, changed.body.url], ["inbox", null]);
  await settle(service);
  await t.step("nothing more is sent", () => assert.equal(hooks.arrivals.length, 1));
  await t.step("the inbox has the deliveries in their order", async () => {
    const { data } = (await readInbox(service, id)).body;
    assert.deepEqual(typesIn({ data }), TYPES);
    const attempts = data.map(({ headers }: { headers: Record<string, string> }) =>
      headers["Webhook-Attempt"]
    );
    assert.deepEqual(attempts, ["2", "1"]);
  });
});

webhookCase("PUT delivery: inbox during an attempt", async (_, service, hooks) => {
  const held = Promise.withResolvers<number>();
  hooks.judge = () => held.promise;
  const { id } = await addEndpoint(service, hooks.url("/"));
  await service.make({ outcome: "success" });
  const settled = settle(service);
  while (hooks.arrivals.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  await service.call("PUT", `${ENDPOINTS}/${id}`, { body: { delivery: "inbox" } });
  // The second event must not come before the first, whose attempt is under way.
  await service.sql`
    update pay.webhook_deliveries set leased_until = null where event_type = 'payment.completed'`;
  assert.deepEqual((await readInbox(service, id)).body.data, []);
  held.resolve(500);
  await settled;
  assert.deepEqual(typesIn((await readInbox(service, id)).body), TYPES);
  assert.equal(hooks.arrivals.length, 1);
});

webhookCase("PUT delivery: url with too much in the inbox", async (_, service, hooks) => {
  const { id } = await addInbox(service);
  await service.make({ outcome: "pending" });
  await readInbox(service, id);
  await service.sql`
    insert into pay.webhook_deliveries (environment_id, id, event_id, event_type, endpoint_id,
      subject_id, sequence, status, created_at)
    select environment_id, 'whd_' || lpad(n::text, 26, '0'), event_id, event_type, endpoint_id,
      subject_id, sequence, 'available', created_at
    from pay.webhook_deliveries, generate_series(1, 5000) as n`;
  await service.sql`
    insert into pay.inbox_entries (environment_id, endpoint_id, delivery_id, position)
    select ${service.key.environment_id}, ${id}, 'whd_' || lpad(n::text, 26, '0'), n + 1
    from generate_series(1, 5000) as n`;
  await service.sql`update pay.webhook_endpoints set inbox_position = 5001 where id = ${id}`;
  const change = () =>
    service.call("PUT", `${ENDPOINTS}/${id}`, {
      body: { delivery: "url", url: hooks.url("/") },
    });
  assertRefused(await change(), 409, "invalid_state");
  const endpoint = await service.call("GET", `${ENDPOINTS}/${id}`);
  assert.equal(endpoint.body.delivery, "inbox");
  const { next_cursor } = (await readInbox(service, id, "limit=2")).body;
  await readInbox(service, id, `after=${next_cursor}`);
  assert.equal((await change()).status, 200);
});

webhookCase("a disabled inbox", async (t, service) => {
  const { id } = await addInbox(service);
  await service.make({ outcome: "success" });
  await service.call("PUT", `${ENDPOINTS}/${id}`, { body: { status: "disabled" } });
  await service.make({ outcome: "success" });
  await settle(service);
  await t.step("keeps its deliveries and gets no new ones", async () => {
    assert.deepEqual(typesIn((await readInbox(service, id)).body), TYPES);
  });
});

webhookCase("a deleted inbox", async (t, service) => {
  const { id } = await addInbox(service);
  await service.make({ outcome: "success" });
  await readInbox(service, id);
  await service.make({ outcome: "success" });
  assert.equal((await service.call("DELETE", `${ENDPOINTS}/${id}`)).status, 200);
  await t.step("is 404", async () => {
    assertRefused(await readInbox(service, id), 404, "not_found");
  });
  await t.step("its deliveries are cancelled", async () => {
    await settle(service);
    const statuses = (await deliveriesOf(service)).map(({ status }) => status);
    assert.deepEqual(statuses, Array(4).fill("cancelled"));
  });
});

webhookCase("an inbox beside a URL", async (t, service, hooks) => {
  const { id } = await addInbox(service);
  await addEndpoint(service, hooks.url("/"));
  await service.make({ outcome: "success" });
  await settle(service);
  await t.step("both get the same bytes", async () => {
    const { data } = (await readInbox(service, id)).body;
    assert.deepEqual(
      data.map(({ body }: { body: string }) => body),
      hooks.arrivals.map(({ text }) => text),
    );
  });
  await t.step("polls of the dispatcher fill the inbox, and leave nothing pending", async () => {
    await service.make({ outcome: "success" });
    await settle(service);
    assert.equal((await deliveriesOf(service, "&status=pending")).length, 0);
    const health = await service.sql`select pending_deliveries, due_deliveries from pay.health`;
    assert.deepEqual({ ...health[0] }, { pending_deliveries: "0", due_deliveries: "0" });
  });
});
