/**
 * The latest time of a sandbox's clock. Nothing brings a clock beyond it, everything works at it,
 * and a reset leads away from it. Other sandboxes do not notice.
 */

import assert from "node:assert/strict";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import { APPROVED_CARD, type TestService } from "../support/service/service.ts";
import {
  APPROVED,
  assertRefused,
  KINDS,
  PAYMENTS,
  SANDBOX,
} from "../support/service/service_case.ts";
import { addInbox } from "../support/webhook/inbox_reader.ts";
import { addEndpoint, ENDPOINTS, settle, shown } from "../support/webhook/recording_receiver.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";

const CEILING = "2200-01-01T00:00:00.000Z";
const KEYS = "/api-v1-payments/v1/api_keys";
const DAY_S = 86_400;
/** A card that has no year of expiry. */
const CARD = { card: { token: "pm_card_visa" } };

const call = (service: TestService, body: unknown) =>
  service.call("POST", `${SANDBOX}/clock`, { body });

async function set(service: TestService, body: unknown) {
  const response = await call(service, body);
  assert.deepEqual([response.status, response.body.has_more], [200, false], response.text);
  return response.body;
}

/** Brings the clock to a time near its end, which takes 160 advances otherwise. */
async function standAt(service: TestService, at: string) {
  await set(service, { mode: "frozen" });
  await service.sql`
    update pay.sandbox_settings set frozen_at = ${at}, version = pg_current_xact_id()::text::bigint
    where environment_id = ${await service.environmentOf(service.key)}`;
  assert.equal((await service.call("GET", `${SANDBOX}/clock`)).body.now, at);
}

/** Each row: a command at 2199-12-31, and the field that its refusal names; null: it is done. */
const COMMANDS: [body: unknown, param: string | null][] = [
  [{ to: "2200-01-01T00:00:00.001Z" }, "to"],
  [{ to: "2200-06-01T00:00:00Z", mode: "real" }, "to"],
  [{ to: "9999-12-31T23:59:59Z" }, "to"],
  [{ advance: DAY_S + 1 }, "advance"],
  [{ advance: 400 * DAY_S }, "advance"],
  [{ advance: DAY_S - 1 }, null],
  [{ to: CEILING }, null],
  [{ advance: 1 }, "advance"],
  [{ to: "2199-12-31T00:00:00.000Z" }, "to"],
  [{ mode: "frozen" }, null],
  [{ to: CEILING, mode: "real" }, null],
];

webhookCase("POST /clock refuses a target after 2200-01-01", async (t, service) => {
  await standAt(service, "2199-12-31T00:00:00.000Z");
  for (const [body, param] of COMMANDS) {
    await t.step(JSON.stringify(body), async () => {
      if (param === null) return void await set(service, body);
      const before = await service.sql`select * from pay.sandbox_settings`;
      const refused = await call(service, body);
      assertRefused(refused, 400, "invalid_parameter", param);
      assert.match(
        refused.body.error.message,
        /(after 2200-01-01T00:00:00.000Z, the latest time .* reset the sandbox)|a clock never goes/,
      );
      assert.deepEqual(await service.sql`select * from pay.sandbox_settings`, before);
    });
  }
  await t.step("the table takes no later time either", async () => {
    for (const column of ["frozen_at", "target_at"]) {
      await assert.rejects(
        service.sql.unsafe(
          `update pay.sandbox_settings set ${column} = '2200-01-01T00:00:00.001Z'`,
        ),
        /sandbox_settings_below_ceiling/,
      );
    }
  });
});

webhookCase("everything works at the end of the clock", async (t, service, receiver) => {
  receiver.judge = ({ path }) => path === "/good" ? 200 : 500;
  for (let i = 0; i < 5; i++) await addEndpoint(service, receiver.url(`/bad/${i}`));
  await addEndpoint(service, receiver.url("/good"), {}, { key: service.other.text });
  await addInbox(service);
  await standAt(service, CEILING);

  await t.step("requests with deadlines, retries and ends", async () => {
    for (const kind of KINDS) {
      const paid = await service.pay(kind === "card" ? CARD : APPROVED[kind]);
      assert.equal(paid.status, 201, paid.text);
    }
    const { body: held } = await service.pay({ ...CARD, capture: "manual" });
    assert.equal(held.status, "authorized");
    const { body: waiting } = await service.pay({
      card: { token: "pm_card_authenticationRequired" },
    });
    assert.equal(waiting.status, "requires_action");
    const { body: key } = await service.call("POST", KEYS, { body: { name: "rotated" } });
    const rotated = await service.call("POST", `${KEYS}/${key.id}/rotate`, {
      body: { expires_in: 604_800 },
    });
    assert.equal(rotated.status, 200, rotated.text);
    const { body: { data } } = await service.call("GET", ENDPOINTS);
    for (const { id } of data) {
      const response = await service.call("POST", `${ENDPOINTS}/${id}/rotate_secret`, {
        body: { expires_in: 604_800 },
      });
      assert.equal(response.status, 200, response.text);
    }
    assert.equal((await service.call("GET", `${PAYMENTS}/${held.id}`)).status, 200);
  });
  await t.step("a failed delivery waits, and the sandbox beside it gets its own", async () => {
    await settle(service);
    assert.ok(receiver.arrivals.length > 0);
    receiver.arrivals.length = 0;
    await service.pay({ card: APPROVED_CARD }, { key: service.other.text });
    await settle(service);
    assert.deepEqual(shown(receiver.arrivals), ["payment.created 1", "payment.completed 1"]);
    const [row] = await service.sql`
      select count(*)::int as waiting, max(due_at) as last from pay.webhook_deliveries
      where status = 'pending' and next_attempt_at = 'infinity'`;
    assert.ok(row!.waiting > 0);
    assert.ok(row!.last.getUTCFullYear() === 2200);
  });
  await t.step("a clock that runs stands there", async () => {
    const running = await set(service, { mode: "real" });
    assert.deepEqual([running.now, running.mode], [CEILING, "real"]);
    const { body } = await service.call("GET", `${SANDBOX}/clock`);
    assert.equal(body.now, CEILING);
    assert.equal((await service.pay()).body.created_at, CEILING);
    await settle(service);
    await assertSilent(service.sql);
  });
  await t.step("retention and the dispatcher go on", async () => {
    await service.sql`select pay.purge()`;
    await settle(service);
    assert.deepEqual(service.logs.filter(({ code }) => code === "internal_error"), []);
  });
  await t.step("a reset begins with the real time again", async () => {
    const reset = await service.call("POST", `${SANDBOX}/reset`);
    assert.equal(reset.status, 200, reset.text);
    const { body } = await service.call("GET", `${SANDBOX}/clock`);
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
    assert.equal((await service.call("GET", `${SANDBOX}/clock`)).body.now, CEILING);
    await settle(service);
  }
  assert.equal(receiver.arrivals.length, 1, "the retry is due after the end");
  assert.equal((await service.call("POST", `${SANDBOX}/reset`)).status, 200);
});
