/**
 * Webhooks and the clock of a sandbox: retries wait for it, an advance makes them in order, and
 * signatures carry the real time. An advance that is not complete when the next command comes
 * happens all the same: the command goes on from its target, and its response is complete at its
 * own target.
 */

import assert from "node:assert/strict";
import { verifyWebhook } from "../../packages/client/webhook_signature.ts";
import { untilWaiting } from "../support/database/lock_waits.ts";
import { commandClock, SANDBOX, serviceCase } from "../support/service/service_case.ts";
import { APPROVED_CARD, type TestService } from "../support/service/service.ts";
import { addInbox, readInbox, typesIn } from "../support/webhook/inbox_reader.ts";
import {
  addEndpoint,
  deliveriesOf,
  type RecordingReceiver,
  settle,
  shown,
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

/** Advances the clock. Returns the number of attempts. */
const advance = async (service: TestService, seconds: number): Promise<number> =>
  (await commandClock(service, { advance: seconds })).did.deliveries;

/** The times of a delivery's attempts. */
const timesOf = (delivery: { attempts: { at: string }[] }) => delivery.attempts.map(({ at }) => at);

webhookCase("retries wait for the clock of the sandbox", async (t, service, receiver) => {
  const after = await freeze(service);
  const { secret } = await addEndpoint(service, receiver.url("/hook"));
  receiver.judge = () => 500;
  await service.pay({ card: APPROVED_CARD });
  await settle(service);

  await t.step("the first attempt comes at once, the next one by the clock", async () => {
    assert.deepEqual(shown(receiver.arrivals), ["payment.created 1"]);
    const [created, completed] = await deliveriesOf(service);
    assert.deepEqual(timesOf(created), [after(0)]);
    assert.equal(created.next_attempt_at, after(5));
    assert.equal(completed.next_attempt_at, after(5), "it waits for the one before");
  });

  await t.step("the real time makes nothing due", async () => {
    const waiting = "webhook_deliveries where status = 'pending' and next_attempt_at = 'infinity'";
    assert.equal(await service.count(waiting), 2);
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

  await t.step("a redelivery has the time of the clock", async () => {
    receiver.judge = () => 200;
    const now = after(5 + DAY_S);
    const [{ id }] = await deliveriesOf(service);
    const url = `/api-v1-payments/v1/webhook_deliveries/${id}/redeliver`;
    assert.equal((await service.post(url)).next_attempt_at, now);
    await settle(service);
    assert.equal(timesOf((await deliveriesOf(service))[0]).at(-1), now);
  });
});

webhookCase("retries are due in real time on a clock ahead", async (_, service, receiver) => {
  receiver.judge = () => 500;
  await addEndpoint(service, receiver.url("/hook"), { events: ["payment.created"] });
  await advance(service, 300 * DAY_S);
  const { body: paid } = await service.pay();
  await settle(service);
  const [row] = await service.sql`
    select (extract(epoch from next_attempt_at) - extract(epoch from now()))::float8 as wait,
      extract(epoch from due_at - ${paid.created_at}::timestamptz)::float8 as due
    from pay.webhook_deliveries`;
  const { wait, due } = row!;
  assert.ok(wait > 0 && wait <= 5, `${wait} s`);
  assert.ok(due >= 5 && due < 10, `${due} s`);
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

webhookCase("a command goes on from an incomplete advance", async (t, service, receiver) => {
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
  await t.step("400 days count from the clock to the new target", async () => {
    const { after, release } = await beginHeldUp(service, receiver, "refused");
    const rows = () => service.sql`select * from pay.sandbox_settings`;
    const before = await rows();
    const beyond = await set(service, { advance: 390 * DAY_S + 1 });
    assert.deepEqual([beyond.status, beyond.body.error.param], [400, "advance"]);
    assert.deepEqual(await rows(), before);
    await release();
    const { body } = await set(service, { advance: 390 * DAY_S });
    assert.deepEqual([body.has_more, body.now], [false, after(400 * DAY_S)]);
  });
});

serviceCase("did.deliveries counts what each inbox gets, from zero", async (_, service) => {
  const inbox = await addInbox(service);
  await freeze(service);
  await service.pay(WAITING_CARD);
  await settle(service);
  const didDeliver = async (seconds: number) =>
    (await set(service, { advance: seconds })).body.did.deliveries;
  assert.deepEqual([await didDeliver(DAY_S - 1), await didDeliver(DAY_S)], [0, 1]);
  assert.equal(typesIn((await readInbox(service, inbox.id)).body).at(-1), "payment.failed");
  await addInbox(service);
  await service.pay(WAITING_CARD);
  await settle(service);
  assert.equal(await didDeliver(2 * DAY_S), 2);
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

webhookCase("an advance keeps what is counted meanwhile", async (_t, service, receiver) => {
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
