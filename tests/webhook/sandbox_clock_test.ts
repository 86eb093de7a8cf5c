/**
 * Webhooks and the clock of a sandbox: retries wait for it, an advance makes them in order, and
 * signatures carry the real time. An advance that is not complete when the next command comes
 * happens all the same: the command goes on from its target, and its response is complete at its
 * own target.
 */

import assert from "node:assert/strict";
import { verifyWebhook } from "../../packages/client/webhook_signature.ts";
import { untilWaiting } from "../support/database/lock_waits.ts";
import { SANDBOX, serviceCase } from "../support/service/service_case.ts";
import { APPROVED_CARD, type TestService } from "../support/service/service.ts";
import { addInbox, readInbox, typesIn } from "../support/webhook/inbox_reader.ts";
import {
  addEndpoint,
  deliveriesOf,
  EVENTS,
  type RecordingReceiver,
  settle,
  shown,
  TRIGGER,
} from "../support/webhook/recording_receiver.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";

const CLOCK = `${SANDBOX}/clock`;
const DAY_S = 86_400;
const WAITING_CARD = { card: { token: "pm_card_authenticationRequired" } };

const set = (service: TestService, body: unknown, idempotency_key?: string) =>
  service.call("POST", CLOCK, { body, ...(idempotency_key && { idempotency_key }) });

/** Freezes the clock. Returns a function that formats a time after it, in seconds. */
async function freeze(service: TestService): Promise<(seconds: number) => string> {
  const { body } = await set(service, { mode: "frozen" });
  const base = Date.parse(body.now);
  return (seconds) => new Date(base + seconds * 1000).toISOString();
}

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

/** Begins an advance of ten days with a key, which a receiver without a response holds up. */
async function beginHeldUp(service: TestService, receiver: RecordingReceiver, key: string) {
  const after = await freeze(service);
  const slow = Promise.withResolvers<number>();
  receiver.judge = () => slow.promise;
  await service.pay({ card: APPROVED_CARD });
  const { body } = await set(service, { advance: 10 * DAY_S }, key);
  assert.deepEqual([body.has_more, body.target, body.now], [true, after(10 * DAY_S), after(0)]);
  const release = async () => {
    slow.resolve(200);
    await settle(service);
  };
  return { after, begun: body, release };
}

/**
 * Each row: a command after an advance of ten days that is not complete, the time at which the
 * clock arrives in the end, in days and seconds, and its mode there.
 */
const COMMANDS: [
  command: { advance?: number; to_s?: number; mode?: string },
  end: [days: number, seconds: number],
  mode: string,
][] = [
  [{ advance: 60 }, [10, 60], "frozen"],
  [{ advance: 60, mode: "real" }, [10, 60], "real"],
  [{ to_s: 0 }, [10, 0], "frozen"],
  [{ to_s: 3_600 }, [10, 0], "frozen"],
  [{ to_s: 10 * DAY_S }, [10, 0], "frozen"],
  [{ to_s: 10 * DAY_S + 60 }, [10, 60], "frozen"],
  [{ mode: "frozen" }, [10, 0], "frozen"],
  [{ mode: "real" }, [10, 0], "real"],
];

/** Each row: a command that is refused while an advance of ten days is not complete. */
const REFUSED: [command: { advance?: number; to_s?: number }, param: string, message: RegExp][] = [
  [{ advance: 390 * DAY_S + 1 }, "advance", /"advance" ends more than 400 days after the clock/],
  [{ to_s: 400 * DAY_S + 1 }, "to", /"to" is more than 400 days after the clock/],
  [{ to_s: -1 }, "to", /"to" is before the clock/],
];

webhookCase("a command goes on from the target of an advance that is not complete", async (
  t,
  service,
  receiver,
) => {
  await addEndpoint(service, receiver.url("/hook"), { events: ["payment.completed"] });
  for (const [{ to_s, ...command }, [days, seconds], mode] of COMMANDS) {
    const name = JSON.stringify({ to_s, ...command });
    await t.step(name, async () => {
      const { after, release } = await beginHeldUp(service, receiver, name);
      await release();
      const body = { ...command, ...(to_s !== undefined && { to: after(to_s) }) };
      const ended = await set(service, body);
      assert.equal(ended.status, 200, ended.text);
      const { has_more, target, now } = ended.body;
      assert.deepEqual([has_more, target, ended.body.mode], [false, null, mode]);
      const late_ms = Date.parse(now) - Date.parse(after(days * DAY_S + seconds));
      assert.ok(mode === "frozen" ? late_ms === 0 : late_ms >= 0 && late_ms < 60_000, now);
      const again = await set(service, { advance: 10 * DAY_S }, name);
      assert.equal(again.headers.get("Idempotent-Replayed"), "true");
      assert.deepEqual([again.body.has_more, again.body.target], [false, null]);
      assert.ok(again.body.now >= after(10 * DAY_S), again.body.now);
      if (to_s === 10 * DAY_S) assert.equal(again.text, ended.text);
    });
  }
  await t.step("400 days count from the clock to the new target", async (t) => {
    const { after, release } = await beginHeldUp(service, receiver, "refused");
    const rows = () => service.sql`select * from pay.sandbox_settings`;
    const before = await rows();
    for (const [{ to_s, ...command }, param, message] of REFUSED) {
      await t.step(JSON.stringify({ to_s, ...command }), async () => {
        const refused = await set(service, to_s === undefined ? command : { to: after(to_s) });
        assert.deepEqual([refused.status, refused.body.error.param], [400, param]);
        assert.match(refused.body.error.message, message);
        assert.deepEqual(await rows(), before);
      });
    }
    await release();
    const { body } = await set(service, { advance: 390 * DAY_S });
    assert.deepEqual([body.has_more, body.now], [false, after(400 * DAY_S)]);
  });
});

serviceCase("an advance of many payments goes on when another one is added", async (
  t,
  service,
) => {
  const payments = 40;
  const [long_s, short_s] = [20 * DAY_S, 60];
  await addInbox(service);
  const after = await freeze(service);
  for (let i = 0; i < payments; i++) {
    await service.pay(WAITING_CARD);
    await set(service, { advance: 60 });
  }
  const begin_s = payments * 60;
  const first = set(service, { advance: long_s }, "long");
  await new Promise((resolve) => setTimeout(resolve, 100));
  const second = set(service, { advance: short_s }, "short");
  const [long, short] = await Promise.all([first, second]);
  const ENDS = [
    [long, "long", long_s, begin_s + long_s],
    [short, "short", short_s, begin_s + long_s + short_s],
  ] as const;

  await t.step("a response is complete at its own target, and not before", () => {
    for (const [{ body }, name, , end_s] of ENDS) {
      assert.equal(body.target, body.has_more ? after(end_s) : null, name);
      assert.equal(body.now >= after(end_s), !body.has_more, `${name}: ${body.now}`);
    }
  });
  await t.step("both advances happen", async () => {
    for (let more = true; more;) more = (await set(service, { mode: "frozen" })).body.has_more;
    const { body } = await service.call("GET", CLOCK);
    assert.deepEqual([body.now, body.target], [after(begin_s + long_s + short_s), null]);
    const [expired] = await service.sql`
      select count(*)::int as n from pay.payments
      where status = 'failed' and updated_at = created_at + interval '1 day'`;
    assert.equal(expired!.n, payments);
  });
  await t.step("their stored responses are complete", async () => {
    for (const [, name, advance, end_s] of ENDS) {
      const again = await set(service, { advance }, name);
      assert.equal(again.headers.get("Idempotent-Replayed"), "true");
      assert.deepEqual([again.body.has_more, again.body.target], [false, null]);
      assert.ok(again.body.now >= after(end_s), `${name}: ${again.body.now}`);
    }
  });
});

serviceCase("did.deliveries counts the deliveries that an inbox gets", async (t, service) => {
  const inbox = await addInbox(service);
  await freeze(service);
  await service.pay(WAITING_CARD);
  await settle(service);
  const didDeliver = async (body: unknown) => (await set(service, body)).body.did.deliveries;
  const available = async () => (await deliveriesOf(service)).length;

  await t.step("nothing before something is due", async () => {
    assert.equal(await available(), 2);
    assert.equal(await didDeliver({ advance: DAY_S - 1 }), 0);
  });
  await t.step("the events of the advance", async () => {
    assert.equal(await didDeliver({ advance: DAY_S }), 1);
    assert.equal(await available(), 3);
    const { body } = await readInbox(service, inbox.id);
    assert.equal(typesIn(body).at(-1), "payment.failed");
  });
  await t.step("each advance begins with zero, also with a second inbox", async () => {
    assert.equal(await didDeliver({ advance: 1 }), 0);
    await addInbox(service);
    await service.pay(WAITING_CARD);
    await settle(service);
    assert.equal(await didDeliver({ advance: 2 * DAY_S }), 2);
    const [row] = await service.sql`select counts from pay.sandbox_settings`;
    assert.deepEqual(row!.counts, { deliveries: 2, expired_payments: 1 });
  });
});

serviceCase("a clock that runs again does not go back", async (_t, service) => {
  const time = async (body: unknown) => {
    const response = await set(service, body);
    assert.equal(response.status, 200, response.text);
    return response.body.now;
  };
  let before = await time({ advance: 60, mode: "frozen" });
  for (let i = 0; i < 20; i++) {
    for (const mode of ["real", "frozen"]) {
      const now = await time({ mode });
      assert.ok(now >= before, `${mode} after ${before}: ${now}`);
      before = now;
    }
  }
});

webhookCase("an advance that goes on keeps what is counted meanwhile", async (
  _t,
  service,
  receiver,
) => {
  await addEndpoint(service, receiver.url("/hook"), { events: ["payment.completed"] });
  const { begun, release } = await beginHeldUp(service, receiver, "begun");
  assert.equal(begun.did.deliveries, 0);
  let next: ReturnType<typeof set>;
  await service.sql.begin(async (sql) => {
    // As the dispatcher counts, which does not hold the lock of the sandbox.
    await sql`select pay_internal.count_advance(${service.key.environment_id}, 'deliveries', 5)`;
    next = set(service, { to: begun.target });
    await untilWaiting(service.sql, { calls: "pay.set_clock" });
  });
  await release();
  const { body } = await next!;
  assert.deepEqual([body.has_more, body.did.deliveries], [false, 6]);
});
