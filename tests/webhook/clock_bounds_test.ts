/**
 * Bounds of a sandbox's clock. With more waiting deliveries and payments than a step changes it
 * stops, advances and runs again, each response comes within its bound and leads to the target, and
 * everything happens once and in the order of time. Nothing brings a clock beyond its latest time,
 * everything works at it, and a reset leads away from it. `WAITING=70000` makes the run with as
 * many deliveries as no single statement could change, `DELIVERIES=10000` the long advance with as
 * many; it takes some minutes.
 */

import assert from "node:assert/strict";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import { APPROVED_CARD, type TestService } from "../support/service/service.ts";
import { APPROVED, assertRefused, KINDS, SANDBOX } from "../support/service/service_case.ts";
import { addInbox } from "../support/webhook/inbox_reader.ts";
import {
  addEndpoint,
  type Arrival,
  deliveriesOf,
  ENDPOINTS,
  settle,
  shown,
} from "../support/webhook/recording_receiver.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";

/** More than two batches. */
const WAITING = Number(Deno.env.get("WAITING") ?? 2_500);
const DELIVERIES = Number(Deno.env.get("DELIVERIES") ?? 300);
/** The seconds of the sandbox in which the payments are made: fewer than the first retry waits. */
const TIMES = 4;
const PAYERS = 32;
const DAYS = 400;
/** A request works for 2 seconds, and ends the step that it has begun, here with attempts. */
const LONGEST_MS = { step: 4_000, attempts: 10_000 };
const HOUR_S = 3_600;
const CLOCK = `${SANDBOX}/clock`;

/**
 * Sends a command, and goes on until the clock is there. Asserts that each response comes within a
 * bound and names the same target. Returns the last response.
 */
async function set(service: TestService, command: unknown, longest_ms = LONGEST_MS.step) {
  const targets = new Set<string>();
  for (let body = command, requests = 1;; requests++) {
    const began = performance.now();
    const response = await service.call("POST", CLOCK, { body });
    const ms = Math.round(performance.now() - began);
    assert.equal(response.status, 200, response.text);
    assert.ok(ms < longest_ms, `${ms} ms`);
    if (!response.body.has_more) {
      console.log(`${JSON.stringify(command)}: ${requests} requests, the last took ${ms} ms`);
      return response.body;
    }
    assert.equal(targets.add(response.body.target).size, 1, [...targets].join());
    body = { to: response.body.target };
  }
}

/** Makes deliveries that wait for an hour of the real time: their first attempt has failed. */
async function addWaiting(service: TestService, endpoint_id: string): Promise<void> {
  const { environment_id } = service.key;
  const columns = ["environment_id", "id", "subject_id", "sequence", "created_at"];
  await service.sql.unsafe(
    `with event as (
       insert into pay.events (${columns}, type, body)
       select '${environment_id}', left(pay_internal.id_floor('evt_', now()), 13) || lpad(n::text, 17, '0'), 'pay_' || lpad(n::text, 26, '0'),
         1, now(), 'payment.created', '{"id":"evt_' || n || '"}'
       from generate_series(1, ${WAITING}) n
       returning *
     )
     insert into pay.webhook_deliveries (${columns}, event_id, event_type, endpoint_id, status,
       attempt_count, attempts, next_attempt_at)
     select e.environment_id, 'whd_' || right(e.id, 26), e.subject_id, 1, e.created_at, e.id, e.type,
       '${endpoint_id}', 'pending', 1, array[json '{"number":1}'], now() + interval '1 hour'
     from event e`,
  );
}

const countWaiting = ({ count }: TestService, condition: string) =>
  count(`webhook_deliveries where status = 'pending' and ${condition}`);

webhookCase(`a clock ahead of ${WAITING} deliveries`, async (t, service, receiver) => {
  const { id } = await addEndpoint(service, receiver.url("/hook"));
  await addWaiting(service, id);

  await t.step("stops, and none of them waits by the real time any more", async () => {
    const { mode, target } = await set(service, { mode: "frozen" });
    assert.deepEqual([mode, target], ["frozen", null]);
    assert.equal(await countWaiting(service, "next_attempt_at = 'infinity'"), WAITING);
    assert.equal(await countWaiting(service, "due_at is null"), 0);
  });
  await t.step("advances by a second", async () => {
    const { now } = await service.get(CLOCK);
    const moved = await set(service, { advance: 1 });
    assert.equal(Date.parse(moved.now) - Date.parse(now), 1_000);
    assert.equal(moved.did.deliveries, 0);
  });
  await t.step("runs again, and all of them wait by the real time", async () => {
    const { now } = await set(service, { mode: "real" });
    const [row] = await service.sql`
      select count(*)::int as waiting, min(next_attempt_at + w.offset_ms * interval '1 ms' - due_at)
        as least, max(next_attempt_at + w.offset_ms * interval '1 ms' - due_at) as most
      from pay.webhook_deliveries d join pay.sandbox_settings w using (environment_id)
      where isfinite(next_attempt_at)`;
    assert.deepEqual(row, { waiting: WAITING, least: "00:00:00", most: "00:00:00" });
    assert.ok((await service.get(CLOCK)).now >= now);
    assert.equal(receiver.arrivals.length, 0);
  });
  await t.step("an advance of a clock that runs leaves no delivery behind", async () => {
    await set(service, { advance: 60 });
    assert.equal(await countWaiting(service, "next_attempt_at = 'infinity'"), 0);
  });
  if (WAITING > 10_000) return;
  await t.step("all that are due at one time are sent once before it arrives", async () => {
    const { did, now } = await set(service, { advance: 2 * HOUR_S, mode: "frozen" });
    assert.equal(did.deliveries, WAITING);
    await settle(service);
    assert.equal(new Set(receiver.arrivals.map(({ event }) => event.id)).size, WAITING);
    assert.equal(receiver.arrivals.length, WAITING);
    const late = await service.count(`webhook_deliveries
      where (attempts[2] ->> 'number')::int is distinct from 2 or attempts[2] ->> 'at' >= '${now}'`);
    assert.equal(late, 0);
  });
});

/** About every third delivery is accepted at its third attempt, the others at their second. */
function accepts({ event, headers }: Arrival): boolean {
  const needs = event.id.charCodeAt(29) % 3 === 0 ? 3 : 2;
  return Number(headers.get("Webhook-Attempt")) >= needs;
}

webhookCase(`${DAYS} days with ${DELIVERIES} deliveries`, async (t, service, hooks) => {
  await set(service, { mode: "frozen" });
  await addEndpoint(service, hooks.url("/hook"), { events: ["payment.created"] });
  hooks.judge = (arrival) => accepts(arrival) ? 200 : 500;
  for (let time = 0; time < TIMES; time++) {
    if (time > 0) await set(service, { advance: 1 });
    for (let made = 0; made < DELIVERIES / TIMES; made += PAYERS) {
      await Promise.all(Array.from({ length: PAYERS }, () => service.make({ outcome: "pending" })));
    }
    await settle(service);
  }
  const first = hooks.arrivals.splice(0).length;
  const { did } = await set(service, { advance: DAYS * 86_400 }, LONGEST_MS.attempts);
  await t.step("did counts the attempts, and every delivery has arrived once", () => {
    assert.equal(did.deliveries, hooks.arrivals.length);
    const accepted = hooks.arrivals.filter(accepts).map(({ event }) => event.id);
    assert.deepEqual([accepted.length, new Set(accepted).size], [first, first]);
  });
  await t.step("each attempt has its own time, and they come in its order", () => {
    const DELAYS_MS = [0, 5_000, 65_000];
    // A step of the clock does what is due within a second, in any order.
    let latest = 0;
    for (const { event, headers } of hooks.arrivals) {
      const attempt = Number(headers.get("Webhook-Attempt"));
      const at = Date.parse(event.created_at) + DELAYS_MS[attempt - 1]!;
      assert.ok(at >= latest - 1_000, `${new Date(at).toISOString()} after ${latest}`);
      latest = Math.max(latest, at);
    }
  });
  await t.step("the deliveries are gone after 30 days of the sandbox", async () => {
    assert.deepEqual(await deliveriesOf(service), []);
  });
});

const CEILING = "2200-01-01T00:00:00.000Z";
const KEYS = "/api-v1-payments/v1/api_keys";
const DAY_S = 86_400;
/** A card that has no year of expiry. */
const CARD = { card: { token: "pm_card_visa" } };

/** Brings the clock to a time near its end, which takes 160 advances otherwise. */
async function standAt(service: TestService, at: string) {
  await set(service, { mode: "frozen" });
  await service.sql`
    update pay.sandbox_settings set frozen_at = ${at}, version = pg_current_xact_id()::text::bigint
    where environment_id = ${await service.environmentOf(service.key)}`;
  assert.equal((await service.get(CLOCK)).now, at);
}

/** Each row: a command at 2199-12-31, and the field that its refusal names; null: it is done. */
const COMMANDS: [body: unknown, param: string | null][] = [
  [{ to: "2200-01-01T00:00:00.001Z" }, "to"],
  [{ advance: DAY_S + 1 }, "advance"],
  [{ advance: DAY_S - 1 }, null],
  [{ to: CEILING }, null],
  [{ advance: 1 }, "advance"],
  [{ to: CEILING, mode: "real" }, null],
];

webhookCase("everything works at the end of the clock", async (t, service, receiver) => {
  receiver.judge = ({ path }) => path === "/good" ? 200 : 500;
  const { id: endpoint_id } = await addEndpoint(service, receiver.url("/bad"));
  await addEndpoint(service, receiver.url("/good"), {}, { key: service.other.text });
  await addInbox(service);
  await standAt(service, "2199-12-31T00:00:00.000Z");
  for (const [body, param] of COMMANDS) {
    await t.step(`${JSON.stringify(body)}: ${param ?? "done"}`, async () => {
      if (param === null) return void await set(service, body);
      const before = await service.sql`select * from pay.sandbox_settings`;
      const refused = await service.call("POST", CLOCK, { body });
      assertRefused(refused, "invalid_parameter", param);
      assert.match(refused.body.error.message, /after 2200-01-01T00:00:00.000Z, the latest time/);
      assert.deepEqual(await service.sql`select * from pay.sandbox_settings`, before);
    });
  }
  await t.step("the table takes no later time either", async () => {
    for (const column of ["frozen_at", "target_at"]) {
      const later = `update pay.sandbox_settings set ${column} = '2200-01-01T00:00:00.001Z'`;
      await assert.rejects(service.sql.unsafe(later), /sandbox_settings_below_ceiling/);
    }
  });
  await t.step("requests with deadlines and ends, by a clock that stands there", async () => {
    for (const kind of KINDS) {
      const paid = await service.pay(kind === "card" ? CARD : APPROVED[kind]);
      assert.deepEqual([paid.status, paid.body.created_at], [201, CEILING], paid.text);
    }
    const { body: held } = await service.pay({ ...CARD, capture: "manual" });
    const waiting = await service.pay({ card: { token: "pm_card_authenticationRequired" } });
    assert.deepEqual([held.status, waiting.body.status], ["authorized", "requires_action"]);
    const key = await service.post(KEYS, { name: "rotated" });
    for (const path of [`${KEYS}/${key.id}/rotate`, `${ENDPOINTS}/${endpoint_id}/rotate_secret`]) {
      await service.post(path, { expires_in: 604_800 });
    }
  });
  await t.step("a failed delivery waits, and the sandbox beside it gets its own", async () => {
    await settle(service);
    assert.ok(receiver.at("/bad").length > 0);
    await service.pay({ card: APPROVED_CARD }, { key: service.other.text });
    await settle(service);
    assert.deepEqual(shown(receiver.at("/good")), ["payment.created 1", "payment.completed 1"]);
    const [row] = await service.sql`
      select count(*)::int as waiting, max(due_at) as last from pay.webhook_deliveries
      where status = 'pending' and next_attempt_at = 'infinity'`;
    assert.deepEqual([row!.waiting > 0, row!.last.getUTCFullYear()], [true, 2200]);
    await assertSilent(service.sql);
  });
  await t.step("retention and the dispatcher go on, and a reset leads away", async () => {
    await service.sql`select pay.purge()`;
    await settle(service);
    assert.deepEqual(service.logs.filter(({ code }) => code === "internal_error"), []);
    await service.post(`${SANDBOX}/reset`);
    const body = await service.get(CLOCK);
    assert.ok(Math.abs(Date.parse(body.now) - Date.now()) < 60_000, body.now);
    assert.equal((await service.pay()).status, 201);
  });
});

webhookCase("a clock that runs reaches its end in real time", async (_t, service, receiver) => {
  const now = Date.now();
  await service.setClock(now);
  receiver.judge = () => 500;
  await addEndpoint(service, receiver.url("/bad"), { events: ["payment.created"] });
  await standAt(service, "2199-12-31T23:59:58.000Z");
  await set(service, { mode: "real" });
  await service.pay();
  await settle(service);
  for (const days of [0, 1, 10_000]) {
    await service.setClock(now + 60_000 + days * DAY_S * 1000);
    assert.equal((await service.get(CLOCK)).now, CEILING);
    await settle(service);
  }
  assert.equal(receiver.arrivals.length, 1, "the retry is due after the end");
  await service.post(`${SANDBOX}/reset`);
});
