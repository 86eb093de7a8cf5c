/** Redelivery of one delivery, and recovery of all that an endpoint has missed (contract §4). */

import assert from "node:assert/strict";
import type { InboxDelivery } from "../../shared/schema/inbox.ts";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import { assertRefused } from "../support/service/service_case.ts";
import type { TestService } from "../support/service/service.ts";
import { addInbox, readInbox, typesIn } from "../support/webhook/inbox_reader.ts";
import {
  addEndpoint,
  DELIVERIES,
  deliveriesOf,
  ENDPOINTS,
  holdResponses,
  settle,
  shown,
} from "../support/webhook/recording_receiver.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";
import { until } from "../support/common/until.ts";

const AT = Date.parse("2026-08-09T10:11:12.013Z");
const HOUR_MS = 3_600_000;
const time = (at_ms: number) => new Date(at_ms).toISOString();

function redeliver(service: TestService, id: string) {
  return service.call("POST", `${DELIVERIES}/${id}/redeliver`);
}

function recover(service: TestService, id: string, body: Record<string, unknown>) {
  return service.call("POST", `${ENDPOINTS}/${id}/recover`, { body });
}

/** Lets every attempt of the retry schedule of a sandbox fail, for two events of a payment. */
async function failAll(service: TestService, at_ms: number): Promise<void> {
  for (const after_ms of [0, 5_000, 65_000, 665_000, 700_000, 765_000, 1_400_000]) {
    await service.setClock(at_ms + after_ms);
    await settle(service);
  }
}

webhookCase("POST /redeliver sends a delivered event again", async (t, service, hooks) => {
  await service.setClock(AT);
  await addEndpoint(service, hooks.url("/"));
  await service.make({ outcome: "pending" });
  await settle(service);
  const [before] = await deliveriesOf(service);
  await service.setClock(AT + 1000);
  const response = await redeliver(service, before.id);
  await settle(service);
  await t.step("returns the delivery, which is due now", () => {
    const next_attempt_at = time(AT + 1000);
    const expected = { ...before, status: "pending", next_attempt_at };
    assert.deepEqual([response.status, response.body], [200, expected]);
  });
  await t.step("sends the same bytes as attempt 2", () => {
    assert.deepEqual(shown(hooks.arrivals), ["payment.created 1", "payment.created 2"]);
    assert.equal(hooks.arrivals[0]!.text, hooks.arrivals[1]!.text);
  });
  await t.step("both attempts are recorded", async () => {
    const [after] = await deliveriesOf(service);
    assert.equal(after.status, "delivered");
    assert.deepEqual(after.attempts.map(({ number }: { number: number }) => number), [1, 2]);
    assert.deepEqual(after.attempts[0], before.attempts[0]);
  });
});

webhookCase("POST /redeliver of a failed delivery makes one attempt", async (_, service, hooks) => {
  await addEndpoint(service, hooks.url("/"));
  await service.setClock(AT);
  await service.make({ outcome: "pending" });
  hooks.judge = () => 500;
  await failAll(service, AT);
  for (const [status, expected, count] of [[500, "failed", 5], [200, "delivered", 6]] as const) {
    const [before] = await deliveriesOf(service);
    assert.deepEqual([before.status, before.attempts.length], ["failed", count - 1]);
    hooks.judge = () => status;
    await redeliver(service, before.id);
    await settle(service);
    const [after] = await deliveriesOf(service);
    assert.deepEqual([after.status, after.attempts.length], [expected, count]);
  }
});

webhookCase("a delivery keeps 50 attempts of at most 8 kB", async (_, service, hooks) => {
  await addEndpoint(service, hooks.url("/"));
  await service.make({ outcome: "pending" });
  await settle(service);
  const [{ id, attempts: [first] }] = await deliveriesOf(service);
  // The state after 100 000 attempts.
  const long = { ...first, duration_ms: 15_000, error: "connection_failed" };
  const kept = [first];
  for (let number = 99_952; number <= 100_000; number++) kept.push({ ...long, number });
  await service.sql`update pay.webhook_deliveries set attempt_count = 100000,
    attempts = array(select json_array_elements(${JSON.stringify(kept)}::text::json))
    where id = ${id}`;
  for (let i = 0; i < 30; i++) {
    await redeliver(service, id);
    await settle(service);
  }
  const { attempts } = await service.get(`${DELIVERIES}/${id}`);
  assert.deepEqual(
    attempts.map(({ number }: { number: number }) => number),
    [1, ...Array.from({ length: 49 }, (_, i) => 99_982 + i)],
  );
  assert.ok(JSON.stringify(attempts).length < 8_300);
});

webhookCase("POST /redeliver does not wait until it is due", async (_, service, hooks) => {
  await service.setClock(AT);
  await addEndpoint(service, hooks.url("/"));
  hooks.judge = () => 500;
  await service.make({ outcome: "success" });
  await settle(service);
  const [first, second] = await deliveriesOf(service);
  hooks.judge = () => 200;
  // The second delivery still waits for the first.
  await redeliver(service, second.id);
  await settle(service);
  assert.deepEqual(shown(hooks.arrivals), ["payment.created 1"]);
  await redeliver(service, first.id);
  await settle(service);
  assert.deepEqual(shown(hooks.arrivals), [
    "payment.created 1",
    "payment.created 2",
    "payment.completed 1",
  ]);
});

webhookCase("POST /redeliver during an attempt adds no other", async (_, service, hooks) => {
  await addEndpoint(service, hooks.url("/"));
  const response = Promise.withResolvers<number>();
  hooks.judge = () => response.promise;
  await service.make({ outcome: "pending" });
  await until("an attempt is under way", () => hooks.arrivals.length > 0);
  const [pending] = await deliveriesOf(service);
  assert.equal((await redeliver(service, pending.id)).status, 200);
  response.resolve(200);
  await settle(service);
  assert.equal(hooks.arrivals.length, 1);
  assert.equal((await deliveriesOf(service))[0].status, "delivered");
});

webhookCase("POST /redeliver and /recover without a usable endpoint", async (t, service, hooks) => {
  const { id } = await addEndpoint(service, hooks.url("/"));
  const since = time(Date.now() - HOUR_MS);
  hooks.judge = () => 500;
  await service.make({ outcome: "success" });
  await settle(service);
  const put = (status: string) => service.call("PUT", `${ENDPOINTS}/${id}`, { body: { status } });
  await put("disabled");
  const [cancelled] = await deliveriesOf(service);
  await t.step("a disabled endpoint: 409", async () => {
    assert.deepEqual([cancelled.status, cancelled.next_attempt_at], ["cancelled", null]);
    for (
      const response of [
        await redeliver(service, cancelled.id),
        await recover(service, id, { since }),
      ]
    ) {
      assertRefused(response, "invalid_state");
      const { current_status, allowed } = response.body.error;
      assert.deepEqual([current_status, allowed], ["disabled", ["enabled"]]);
    }
  });
  await t.step("the endpoint is enabled again: cancelled deliveries are sent", async () => {
    await put("enabled");
    hooks.judge = () => 200;
    assert.equal((await redeliver(service, cancelled.id)).status, 200);
    await settle(service);
    assert.deepEqual(shown(hooks.arrivals).slice(1), ["payment.created 2"]);
    assert.equal((await recover(service, id, { since })).body.count, 1);
    await settle(service);
    assert.deepEqual(shown(hooks.arrivals).slice(2), ["payment.completed 1"]);
  });
  await t.step("a deleted endpoint: 409", async () => {
    await service.call("DELETE", `${ENDPOINTS}/${id}`);
    assertRefused(await redeliver(service, cancelled.id), "invalid_state");
  });
});

webhookCase("POST /redeliver to an inbox", async (t, service) => {
  const { id } = await addInbox(service);
  await service.make({ outcome: "success" });
  const first = (await readInbox(service, id)).body;
  await t.step("an available delivery stays where it is", async () => {
    const { status, body } = await redeliver(service, first.data[0].id);
    assert.deepEqual([status, body.status], [200, "available"]);
    assert.deepEqual(typesIn((await readInbox(service, id)).body), typesIn(first));
  });
  await t.step("a delivered one comes again behind the cursor, as attempt 2", async () => {
    await readInbox(service, id, `after=${first.next_cursor}`);
    const { status, body } = await redeliver(service, first.data[0].id);
    assert.deepEqual([status, body.status], [200, "pending"]);
    const { data } = (await readInbox(service, id, `after=${first.next_cursor}`)).body;
    assert.deepEqual(data.map(({ id }: { id: string }) => id), [first.data[0].id]);
    assert.equal(data[0].headers["Webhook-Attempt"], "2");
    assert.equal(data[0].body, first.data[0].body);
  });
});

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
  hooks.arrivals.length = 0;
  const { release } = holdResponses(hooks);
  await service.setClock(AT + 3 * HOUR_MS);
  const body = { since: time(AT) };
  const { status, body: told } = await recover(service, id, body);
  await t.step("returns 202 with the count, and another does not double it", async () => {
    const expected = { object: "recovery", endpoint_id: id, count: 2 };
    assert.deepEqual([status, told], [202, { ...expected, has_more: false, next_cursor: null }]);
    assert.equal((await recover(service, id, body)).body.count, 0);
    assert.equal((await recover(service, id, { ...body, status: "all" })).body.count, 1);
  });
  await t.step("the endpoint gets them in the order of the payment", async () => {
    hooks.judge = () => 200;
    release();
    await settle(service);
    const got = hooks.arrivals.filter(({ event }) => event.data.object.id === missed.body.id);
    assert.deepEqual(got.map(({ event }) => event.type), ["payment.created", "payment.completed"]);
    assert.deepEqual(await statuses(), Array(3).fill("delivered"));
  });
  await t.step("the invariants hold", async () => {
    await service.setClock(null);
    await assertSilent(service.sql);
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
  await t.step("since is within 30 days to the millisecond", async () => {
    const oldest = AT + 3 * HOUR_MS - 30 * 24 * HOUR_MS;
    assert.equal(await count({ since: time(oldest) }), 3);
    for (const wrong of [oldest - 1, AT + 4 * HOUR_MS]) {
      const refused = await recover(service, id, { since: time(wrong) });
      assertRefused(refused, "invalid_parameter", "since");
    }
  });
  await t.step("until before since is refused", async () => {
    const bounds = { since: time(AT + HOUR_MS), until: time(AT) };
    assertRefused(await recover(service, id, bounds), "invalid_parameter", "until");
  });
  await t.step("the deliveries of other endpoints stay as they are", async () => {
    const other = await addEndpoint(service, hooks.url("/other"));
    const { body } = await recover(service, other.id, { since: time(AT), status: "all" });
    assert.equal(body.count, 0);
  });
});

webhookCase("POST /recover sends 5 000 at once, and gives a cursor", async (_, service, hooks) => {
  const { id } = await addEndpoint(service, hooks.url("/"), { events: ["payment.completed"] });
  await service.make({ outcome: "success" });
  await settle(service);
  const since = (await deliveriesOf(service))[0].created_at;
  await service.sql`
    insert into pay.webhook_deliveries (environment_id, id, event_id, event_type, endpoint_id,
      subject_id, sequence, status, created_at)
    select environment_id, left(id, 13) || lpad(n::text, 17, '0'), event_id, event_type, endpoint_id,
      subject_id, sequence, 'failed', created_at
    from pay.webhook_deliveries, generate_series(1, 5001) as n`;
  const began = performance.now();
  const { body: first } = await recover(service, id, { since });
  assert.deepEqual([first.count, first.has_more], [5000, true]);
  assert.ok(performance.now() - began < 2_000);
  const { body } = await recover(service, id, { since, starting_after: first.next_cursor });
  assert.deepEqual([body.count, body.has_more, body.next_cursor], [1, false, null]);
});

webhookCase("POST /recover for an inbox", async (t, service) => {
  await service.setClock(AT);
  const { id } = await addInbox(service);
  await service.make({ outcome: "success" });
  const { data, next_cursor } = (await readInbox(service, id)).body;
  const count = async () =>
    (await recover(service, id, { since: time(AT), status: "all" })).body.count;
  await t.step("what is in the inbox stays as it is", async () => {
    assert.equal(await count(), 0);
    assert.equal((await readInbox(service, id)).body.data.length, 2);
  });
  await readInbox(service, id, `after=${next_cursor}`);
  await t.step("acknowledged deliveries come again as attempt 2, and end a wait", async () => {
    const reading = readInbox(service, id, `wait=20&after=${next_cursor}`);
    const { readers } = service.deps.webhooks!.inboxes;
    await until("the read waits", () => readers.size > 0);
    assert.deepEqual([await count(), await count()], [2, 0]);
    const again = (await reading).body.data.map(({ id, headers }: InboxDelivery) => [
      id,
      headers["Webhook-Attempt"],
    ]);
    assert.deepEqual(again, data.map(({ id }: InboxDelivery) => [id, "2"]));
  });
});
