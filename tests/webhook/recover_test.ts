/** POST /recover: an endpoint gets again what it has missed (contract §4). */

import assert from "node:assert/strict";
import { assertRefused } from "../support/service/service_case.ts";
import type { TestService } from "../support/service/service.ts";
import { addInbox, readInbox, typesIn } from "../support/webhook/inbox_reader.ts";
import {
  addEndpoint,
  deliveriesOf,
  ENDPOINTS,
  settle,
  shown,
} from "../support/webhook/recording_receiver.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";

const AT = Date.parse("2026-08-09T10:11:12.013Z");
const HOUR_MS = 3_600_000;
const time = (at_ms: number) => new Date(at_ms).toISOString();

function recover(
  service: TestService,
  id: string,
  body: Record<string, unknown>,
  idempotency_key?: string,
) {
  return service.call("POST", `${ENDPOINTS}/${id}/recover`, {
    body,
    ...(idempotency_key && { idempotency_key }),
  });
}

/** Lets every attempt of the retry schedule of a sandbox fail. */
async function failAll(service: TestService, at_ms: number): Promise<void> {
  for (const after_ms of [0, 5_000, 65_000, 665_000, 700_000, 765_000, 1_400_000]) {
    await service.setClock(at_ms + after_ms);
    await settle(service);
  }
}

webhookCase("POST /recover sends failed deliveries again", async (t, service, hooks) => {
  await service.setClock(AT);
  const { id } = await addEndpoint(service, hooks.url("/"));
  await service.make({ outcome: "pending" });
  await settle(service);
  hooks.judge = () => 500;
  await service.setClock(AT + HOUR_MS);
  const missed = await service.make({ outcome: "success" });
  await failAll(service, AT + HOUR_MS);
  const statuses = async () => (await deliveriesOf(service)).map(({ status }) => status);
  assert.deepEqual(await statuses(), ["delivered", "failed", "failed"]);
  const before = hooks.arrivals.length;
  const held = Promise.withResolvers<number>();
  hooks.judge = () => held.promise;
  await service.setClock(AT + 3 * HOUR_MS);
  const body = { since: time(AT) };
  const response = await recover(service, id, body, "recover");
  await t.step("returns 202 with the count", () => {
    assert.equal(response.status, 202);
    assert.deepEqual(response.body, {
      object: "recovery",
      endpoint_id: id,
      count: 2,
      has_more: false,
      next_cursor: null,
    });
  });
  await t.step("a second recovery does not double what is pending", async () => {
    assert.equal((await recover(service, id, body)).body.count, 0);
    assert.equal((await recover(service, id, { ...body, status: "all" })).body.count, 1);
  });
  await t.step("the endpoint gets them in the order of the payment", async () => {
    held.resolve(200);
    await settle(service);
    const got = hooks.arrivals.slice(before)
      .filter(({ event }) => event.data.object.id === missed.body.id);
    assert.deepEqual(got.map(({ event }) => event.type), ["payment.created", "payment.completed"]);
    assert.deepEqual(await statuses(), ["delivered", "delivered", "delivered"]);
  });
});

webhookCase("POST /recover bounds", async (t, service, hooks) => {
  const { id } = await addEndpoint(service, hooks.url("/"));
  for (const hours of [0, 1, 2]) {
    await service.setClock(AT + hours * HOUR_MS);
    await service.make({ outcome: "pending" });
    await settle(service);
  }
  await service.setClock(AT + 3 * HOUR_MS);
  const count = async (body: Record<string, unknown>) => {
    const { body: { count } } = await recover(service, id, { status: "all", ...body });
    await settle(service);
    return count;
  };
  const cases: [name: string, since_h: number, until_h: number | undefined, count: number][] = [
    ["both ends are inclusive", 1, 2, 2],
    ["until one moment", 1, 1, 1],
    ["without until", 1, undefined, 2],
    ["nothing in the period", 2.5, undefined, 0],
  ];
  for (const [name, since_h, until_h, expected] of cases) {
    await t.step(`${name}: ${expected}`, async () => {
      const since = time(AT + since_h * HOUR_MS);
      const until = until_h === undefined ? undefined : time(AT + until_h * HOUR_MS);
      assert.equal(await count({ since, ...(until && { until }) }), expected);
    });
  }
  await t.step("starting_after continues", async () => {
    const [first] = await deliveriesOf(service);
    assert.equal(await count({ since: time(AT), starting_after: first.id }), 2);
  });
  await t.step("the deliveries of other endpoints stay as they are", async () => {
    const other = await addEndpoint(service, hooks.url("/other"));
    const { body } = await recover(service, other.id, { since: time(AT), status: "all" });
    assert.equal(body.count, 0);
  });
});

webhookCase("POST /recover more than one request can", async (t, service, hooks) => {
  const { id } = await addEndpoint(service, hooks.url("/"), { events: ["payment.completed"] });
  await service.make({ outcome: "success" });
  await settle(service);
  const made_at = (await deliveriesOf(service))[0].created_at;
  await service.sql`
    insert into pay.webhook_deliveries (environment_id, id, event_id, event_type, endpoint_id,
      subject_id, sequence, status, created_at)
    select environment_id, left(id, 13) || lpad(n::text, 17, '0'), event_id, event_type, endpoint_id,
      subject_id, sequence, 'failed', created_at
    from pay.webhook_deliveries, generate_series(1, 5001) as n`;
  const began = performance.now();
  const first = await recover(service, id, { since: made_at });
  const took_ms = performance.now() - began;
  await t.step("the first recovers 5 000 and gives a cursor", () => {
    const { count, has_more, next_cursor } = first.body;
    assert.deepEqual([count, has_more, typeof next_cursor], [5000, true, "string"]);
    assert.ok(took_ms < 2_000, `${took_ms} ms`);
    console.log(`5 000 deliveries: ${Math.round(took_ms)} ms`);
  });
  await t.step("the second recovers the rest", async () => {
    const { body } = await recover(service, id, {
      since: made_at,
      starting_after: first.body.next_cursor,
    });
    assert.deepEqual([body.count, body.has_more, body.next_cursor], [1, false, null]);
  });
});

webhookCase("POST /recover for an inbox", async (t, service) => {
  await service.setClock(AT);
  const { id } = await addInbox(service);
  await service.make({ outcome: "success" });
  const { data, next_cursor } = (await readInbox(service, id)).body;
  const all = () => recover(service, id, { since: time(AT), status: "all" });
  await t.step("what is in the inbox stays as it is", async () => {
    assert.equal((await all()).body.count, 0);
    assert.equal((await readInbox(service, id)).body.data.length, 2);
  });
  await readInbox(service, id, `after=${next_cursor}`);
  await t.step("acknowledged deliveries come again behind the cursor, once", async () => {
    assert.equal((await all()).body.count, 2);
    assert.equal((await all()).body.count, 0);
    const again = (await readInbox(service, id, `after=${next_cursor}`)).body;
    assert.deepEqual(typesIn(again), typesIn({ data }));
    assert.deepEqual(
      again.data.map(({ id }: { id: string }) => id),
      data.map(({ id }: { id: string }) => id),
    );
    assert.deepEqual(
      again.data.map(({ headers }: { headers: Record<string, string> }) =>
        headers["Webhook-Attempt"]
      ),
      ["2", "2"],
    );
  });
  await t.step("a recovery ends a wait", async () => {
    const { next_cursor } = (await readInbox(service, id)).body;
    await readInbox(service, id, `after=${next_cursor}`);
    const reading = readInbox(service, id, `wait=20&after=${next_cursor}`);
    while (service.deps.webhooks!.inboxes.readers.size === 0) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await all();
    assert.equal((await reading).body.data.length, 2);
  });
});

webhookCase("POST /recover of what a disabled endpoint has missed", async (t, service, hooks) => {
  hooks.judge = () => 500;
  const { id } = await addEndpoint(service, hooks.url("/"));
  await service.make({ outcome: "success" });
  await settle(service);
  await service.call("PUT", `${ENDPOINTS}/${id}`, { body: { status: "disabled" } });
  const since = time(Date.now() - HOUR_MS);
  await t.step("409 while it is disabled", async () => {
    const refused = await recover(service, id, { since });
    assertRefused(refused, 409, "invalid_state");
    const { current_status, allowed } = refused.body.error;
    assert.deepEqual([current_status, allowed], ["disabled", ["enabled"]]);
  });
  await t.step("then the cancelled deliveries are sent", async () => {
    hooks.judge = () => 200;
    const before = hooks.arrivals.length;
    await service.call("PUT", `${ENDPOINTS}/${id}`, { body: { status: "enabled" } });
    assert.equal((await recover(service, id, { since })).body.count, 2);
    await settle(service);
    assert.deepEqual(shown(hooks.arrivals.slice(before)), [
      "payment.created 2",
      "payment.completed 1",
    ]);
  });
});

webhookCase(
  "POST /recover with a key is replayed, and breaks no invariant",
  async (_, service, hooks) => {
    const { id } = await addEndpoint(service, hooks.url("/"), { events: ["payment.completed"] });
    await service.make({ outcome: "success" });
    await settle(service);
    const since = (await deliveriesOf(service))[0].created_at;
    const first = await recover(service, id, { since, status: "all" }, "k");
    assert.equal(first.status, 202);
    assert.equal((await recover(service, id, { since, status: "all" }, "k")).text, first.text);
    const found = await service.sql`select invariant from pay.check_books() where breaches > 0`;
    assert.deepEqual([...found], []);
  },
);
