/**
 * Webhooks and the clock of a sandbox: retries wait for it, an advance makes them in order, and
 * signatures carry the real time.
 */

import assert from "node:assert/strict";
import { verifyWebhook } from "../../packages/client/webhook_signature.ts";
import { untilWaiting } from "../support/database/lock_waits.ts";
import { APPROVED_CARD, type TestService } from "../support/service/service.ts";
import {
  addEndpoint,
  type Arrival,
  deliveriesOf,
  EVENTS,
  type RecordingReceiver,
  settle,
  shown,
  TRIGGER,
} from "../support/webhook/recording_receiver.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";

const DAY_S = 86_400;

/** Freezes the clock. Returns a function that formats a time after it, in seconds. */
async function freeze(service: TestService): Promise<(seconds: number) => string> {
  const { body } = await set(service, { mode: "frozen" });
  const base = Date.parse(body.now);
  return (seconds) => new Date(base + seconds * 1000).toISOString();
}

const set = (service: TestService, body: unknown) =>
  service.call("POST", "/api-v1-sandbox/clock", { body });

/** Advances the clock, in as many requests as it takes. Returns the number of attempts. */
async function advance(service: TestService, seconds: number): Promise<number> {
  for (let command: unknown = { advance: seconds };;) {
    const { status, body, text } = await set(service, command);
    assert.equal(status, 200, text);
    if (!body.has_more) return body.did.deliveries;
    command = { to: body.target };
  }
}

/** The times of a delivery's attempts. */
const timesOf = (delivery: { attempts: { at: string }[] }) => delivery.attempts.map(({ at }) => at);

webhookCase("retries wait for the clock of the sandbox", async (t, service, receiver) => {
  const after = await freeze(service);
  const { secret } = await addEndpoint(service, receiver.url("/hook"));
  receiver.judge = () => 500;
  await service.pay({ card: APPROVED_CARD });
  await settle(service);

  await t.step(
    "the first attempt comes at once, and the next one is due by the clock",
    async () => {
      assert.deepEqual(shown(receiver.arrivals), ["payment.created 1"]);
      const [created, completed] = await deliveriesOf(service);
      assert.deepEqual(timesOf(created), [after(0)]);
      assert.equal(created.next_attempt_at, after(5));
      assert.equal(completed.next_attempt_at, after(5), "it waits for the one before");
    },
  );

  await t.step("the real time makes nothing due", async () => {
    const [row] = await service.sql`
      select count(*)::int as waiting from pay.webhook_deliveries
      where status = 'pending' and next_attempt_at = 'infinity'`;
    assert.equal(row!.waiting, 2);
  });

  await t.step("an advance makes each attempt at its time", async () => {
    assert.equal(await advance(service, 4), 0);
    assert.equal(await advance(service, 1), 1);
    assert.equal(receiver.arrivals.length, 2);
    assert.equal(await advance(service, DAY_S), 6);
    const [created, completed] = await deliveriesOf(service);
    assert.deepEqual(timesOf(created), [0, 5, 65, 665].map(after));
    assert.deepEqual(timesOf(completed), [665, 670, 730, 1330].map(after));
    assert.deepEqual([created.status, completed.status], ["failed", "failed"]);
  });

  await t.step("signatures carry the real time", async () => {
    for (const { bytes, headers } of receiver.arrivals) {
      await verifyWebhook(bytes, headers.get("Payment-Signature")!, secret);
    }
  });

  await t.step("a redelivery and a trigger have the time of the clock", async () => {
    receiver.judge = () => 200;
    const now = after(5 + DAY_S);
    assert.equal((await set(service, { mode: "frozen" })).body.now, now);
    const [created] = await deliveriesOf(service);
    const url = `/api-v1-payments/v1/webhook_deliveries/${created.id}/redeliver`;
    assert.equal((await service.call("POST", url)).body.next_attempt_at, now);
    await settle(service);
    assert.equal(timesOf((await deliveriesOf(service))[0]).at(-1), now);
    const { body: event } = await service.call("GET", `${EVENTS}/${created.event_id}`);
    const triggered = await service.call("POST", TRIGGER, {
      body: {
        endpoint_id: created.endpoint_id,
        event: "payment.completed",
        payment_id: event.data.object.id,
      },
    });
    assert.deepEqual(timesOf(triggered.body), [now]);
  });
});

webhookCase("an advance delivers in the order of time", async (_t, service, receiver) => {
  await freeze(service);
  receiver.judge = ({ headers }) => headers.get("Webhook-Attempt") === "3" ? 200 : 500;
  await addEndpoint(service, receiver.url("/hook"), { events: ["payment.created"] });
  for (let i = 0; i < 6; i++) {
    await service.pay();
    await settle(service);
    await advance(service, 3);
  }
  receiver.arrivals.splice(0);
  await advance(service, DAY_S);
  const deliveries = await deliveriesOf(service);
  assert.deepEqual(deliveries.map(({ status }) => status), Array(6).fill("delivered"));
  const timeOf = ({ event, headers }: Arrival) => {
    const { attempts } = deliveries.find(({ event_id }) => event_id === event.id)!;
    return attempts[Number(headers.get("Webhook-Attempt")) - 1].at;
  };
  const times = receiver.arrivals.map(timeOf);
  assert.deepEqual(times, times.toSorted());
});

webhookCase("a clock that is ahead and runs makes retries due in real time", async (
  t,
  service,
  receiver,
) => {
  receiver.judge = () => 500;
  await addEndpoint(service, receiver.url("/hook"), { events: ["payment.created"] });
  await advance(service, 300 * DAY_S);
  const { body: paid } = await service.pay();
  await settle(service);
  const row = async () => {
    const [found] = await service.sql`
      select (extract(epoch from next_attempt_at) - extract(epoch from now()))::float8 as wait,
        extract(epoch from due_at - ${paid.created_at}::timestamptz)::float8 as due
      from pay.webhook_deliveries`;
    return found!;
  };
  const { wait, due } = await row();
  assert.ok(wait > 0 && wait <= 5, `${wait} s`);
  assert.ok(due >= 5 && due < 10, `${due} s`);
  await t.step("and a frozen one lets none be due", async () => {
    await set(service, { mode: "frozen" });
    assert.equal((await row()).wait, Infinity);
    await set(service, { mode: "real" });
    const { wait } = await row();
    assert.ok(wait > -5 && wait <= 5, `${wait} s`);
  });
});

/**
 * Makes a payment whose delivery gets no response, so an advance stops waiting for it and returns.
 */
async function payWithSlowReceiver(service: TestService, receiver: RecordingReceiver) {
  const slow = Promise.withResolvers<number>();
  receiver.judge = () => slow.promise;
  await service.pay({ card: APPROVED_CARD });
  return slow;
}

webhookCase("an advance that another request ends", async (_t, service, receiver) => {
  const after = await freeze(service);
  await addEndpoint(service, receiver.url("/hook"), { events: ["payment.completed"] });
  const slow = await payWithSlowReceiver(service, receiver);
  const begin = (key: string) =>
    service.call("POST", "/api-v1-sandbox/clock", {
      body: { advance: 60 },
      idempotency_key: key,
    });
  const begun = await begin("begun");
  assert.deepEqual([begun.body.has_more, begun.body.target], [true, after(60)]);
  slow.resolve(200);
  await settle(service);
  const ended = await set(service, { to: begun.body.target });
  assert.deepEqual([ended.body.has_more, ended.body.now], [false, after(60)]);
  await set(service, { advance: 1 });
  const again = await begin("begun");
  assert.equal(again.headers.get("Idempotent-Replayed"), "true");
  assert.equal(again.text, ended.text);
});

webhookCase("an advance that goes on keeps what is counted meanwhile", async (
  _t,
  service,
  receiver,
) => {
  await freeze(service);
  await addEndpoint(service, receiver.url("/hook"), { events: ["payment.completed"] });
  const slow = await payWithSlowReceiver(service, receiver);
  const begun = await set(service, { advance: 60 });
  assert.deepEqual([begun.body.has_more, begun.body.did.deliveries], [true, 0]);
  let next: ReturnType<typeof set>;
  await service.sql.begin(async (sql) => {
    // As the dispatcher counts, which does not hold the lock of the sandbox.
    await sql`select pay_internal.count_advance(${service.key.environment_id}, 'deliveries', 5)`;
    next = set(service, { to: begun.body.target });
    await untilWaiting(service.sql, { calls: "pay.set_clock" });
  });
  slow.resolve(200);
  const { body } = await next!;
  assert.deepEqual([body.has_more, body.did.deliveries], [false, 6]);
});
