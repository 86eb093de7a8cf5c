/**
 * The clock of a sandbox (contract §7): it is read, frozen and advanced, everything of the sandbox
 * obeys it, and bad input changes nothing. A function learns the settings of a sandbox from the
 * first request that needs them, and decides that request again.
 */

import assert from "node:assert/strict";
import type { Payment } from "../../shared/schema/payment.ts";
import type { CallOptions, TestKey, TestService } from "../support/service/service.ts";
import {
  advance,
  APPROVED,
  assertRefused,
  PAYMENTS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";

const CLOCK = `${SANDBOX}/clock`;
const NOW = Date.parse("2026-03-01T12:00:00.000Z");
const DAY_S = 86_400;
const NOTHING = { deliveries: 0, expired_payments: 0, disputes_closed: 0, purged: 0 };

const set = (service: TestService, body: unknown, options: CallOptions = {}) =>
  service.call("POST", CLOCK, { body, ...options });
const read = async (service: TestService) => await service.get(CLOCK);
const at = (seconds: number) => new Date(NOW + seconds * 1000).toISOString();

serviceCase("GET /clock and POST /clock", async (t, service) => {
  await service.setClock(NOW);

  await t.step("is the real clock until it is set", async () => {
    const real = { object: "clock", now: at(0), mode: "real", offset_seconds: 0, target: null };
    assert.deepEqual(await read(service), real);
    assert.deepEqual(await service.get(`${SANDBOX}/v1/clock`), real);
  });

  await t.step("an advance moves a clock that goes on", async () => {
    const moved = await set(service, { advance: 60 });
    assert.deepEqual([moved.status, moved.body], [200, {
      object: "clock",
      now: at(60),
      mode: "real",
      offset_seconds: 60,
      target: null,
      did: NOTHING,
      has_more: false,
    }]);
    await service.setClock(NOW + 1_000);
    assert.equal((await read(service)).now, at(61));
    assert.equal((await service.pay()).body.created_at, at(61));
  });

  await t.step("a frozen clock stands, and can be advanced", async () => {
    assert.equal((await set(service, { mode: "frozen" })).body.now, at(61));
    await service.setClock(NOW + 5_000);
    const frozen = await read(service);
    assert.deepEqual([frozen.now, frozen.mode, frozen.offset_seconds], [at(61), "frozen", null]);
    const to = at(3_600);
    assert.equal((await set(service, { to })).body.now, to);
    assert.equal((await read(service)).mode, "frozen");
    assert.equal((await service.pay()).body.created_at, to);
  });

  await t.step("mode real lets it go on from where it stands", async () => {
    assert.equal((await set(service, { mode: "real" })).body.mode, "real");
    await service.setClock(NOW + 6_000);
    assert.equal((await read(service)).now, at(3_601));
  });

  await t.step("an advance can freeze it", async () => {
    const { body } = await set(service, { advance: 1, mode: "frozen" });
    assert.deepEqual([body.now, body.mode], [at(3_602), "frozen"]);
  });

  await t.step("a frozen clock that is behind catches up with the real time", async () => {
    await service.setClock(NOW + 7_200_000);
    assert.equal((await read(service)).now, at(3_602));
    assert.deepEqual((await set(service, { mode: "real" })).body.now, at(7_200));
    assert.equal((await read(service)).offset_seconds, 0);
  });

  await t.step("a reset makes it the real clock", async () => {
    await set(service, { advance: DAY_S, mode: "frozen" });
    await service.call("POST", `${SANDBOX}/reset`);
    const { now, mode } = await read(service);
    assert.deepEqual([now, mode], [at(7_200), "real"]);
    assert.equal((await service.pay()).body.created_at, at(7_200));
  });

  await t.step("the response to a reset is stored for 24 hours by the new clock", async () => {
    const reset = () => service.call("POST", `${SANDBOX}/reset`, { idempotency_key: "reset" });
    await set(service, { advance: 300 * DAY_S });
    assert.equal((await reset()).status, 200);
    const kept = await service.get("/api-v1-payments/v1/idempotency_keys/reset");
    assert.deepEqual([kept.created_at, kept.expires_at], [at(7_200), at(7_200 + DAY_S)]);
    await service.pay();
    assert.equal((await reset()).body.deleted.payments, 0);
    await service.setClock(NOW + (7_200 + DAY_S) * 1000);
    assert.equal((await reset()).body.deleted.payments, 1);
  });
});

/** Each row: a body that is refused, and the field that the error names. */
const REFUSED: [body: unknown, param: string, message: RegExp][] = [
  [{}, "to", /"to", "advance" or "mode"/],
  [{ to: at(60), advance: 60 }, "to", /not both/],
  [{ advance: -1 }, "advance", /from 1 to 34560000/],
  [{ advance: 400 * DAY_S + 1 }, "advance", /400 days/],
  [{ to: at(-1) }, "to", /before the clock of the sandbox, which shows 2026-03-01T12:00:00.000Z/],
  [{ to: at(400 * DAY_S + 1) }, "to", /more than 400 days/],
];

serviceCase("POST /clock refuses bad input and changes nothing", async (t, service) => {
  await service.setClock(NOW);
  await set(service, { mode: "frozen" });
  const rows = () => service.sql`select * from pay.sandbox_settings`;
  const before = await rows();
  for (const [body, param, message] of REFUSED) {
    await t.step(JSON.stringify(body), async () => {
      const refused = await set(service, body);
      assertRefused(refused, "invalid_parameter", param);
      assert.match(refused.body.error.message, message);
      assert.deepEqual(await rows(), before);
    });
  }
});

serviceCase("retention by the clock of a sandbox", async (t, service) => {
  await service.setClock(NOW);
  await set(service, { mode: "frozen" });
  const status = async (id: string) => (await service.call("GET", `${PAYMENTS}/${id}`)).body;
  await t.step("retention deletes what is older than 30 days of the sandbox", async () => {
    const { body: { id } } = await service.pay();
    const others = await service.pay({}, { key: service.other.text });
    await set(service, { advance: 29 * DAY_S });
    assert.equal((await status(id)).id, id);
    const later = await set(service, { advance: 2 * DAY_S });
    assert.ok(later.body.did.purged > 0);
    assert.equal((await status(id)).error.code, "not_found");
    const url = `${PAYMENTS}/${others.body.id}`;
    await service.get(url, { key: service.other.text });
  });

  await t.step("the job of retention uses the clock of the sandbox too", async () => {
    const { body: { id } } = await service.pay();
    await service.sql`select pay.purge(now() + interval '1 year')`;
    assert.equal((await status(id)).id, id);
  });
});

serviceCase("POST /clock with an Idempotency-Key advances once", async (t, service) => {
  await service.setClock(NOW);
  await set(service, { mode: "frozen" });
  const send = (body: unknown) => set(service, body, { idempotency_key: "once" });
  const first = await send({ advance: 400 * DAY_S });
  const again = await send({ advance: 400 * DAY_S });
  assert.deepEqual([again.text, again.headers.get("Idempotent-Replayed")], [first.text, "true"]);
  assert.equal((await read(service)).now, at(400 * DAY_S));
  await t.step("and another body is a conflict", async () => {
    assert.equal((await send({ advance: 1 })).body.error.code, "idempotency_conflict");
  });
});

const APPROVED_LATER = { card: { token: "pm_card_visa" }, capture: "manual" };
const SECURE_LATER = { ...APPROVED_LATER, card: { token: "pm_card_authenticationRequired" } };
const MANDATE = { id: "M-1", signed_at: new Date().toISOString(), sequence: "recurring" };
/** Times that a payment shows: [name; body; where it is; the status then] */
const SHOWN: [string, Record<string, unknown>, (payment: Payment) => string, string][] = [
  ["authorization", APPROVED_LATER, ({ capture_before }) => capture_before!, "cancelled"],
  ["advance", SECURE_LATER, ({ capture_before }) => capture_before!, "cancelled"],
  [
    "bank transfer",
    { method_kind: "sepa" },
    ({ next_action }) => (next_action as { expires_at: string }).expires_at,
    "failed",
  ],
  [
    "collection",
    { ...APPROVED.sepa, mandate: MANDATE },
    ({ method }) => `${(method as { due_on: string }).due_on}T00:00:00.000Z`,
    "completed",
  ],
];

serviceCase("a clock that runs and is set to the time that a payment shows", async (t, service) => {
  for (const [name, body, timeOf, status] of SHOWN) {
    await t.step(`${name}: ${status}`, async () => {
      const { body: { id } } = await service.pay(body);
      if (name === "advance") await advance(service, id, "authorized");
      const shown = async () => await service.get(`${PAYMENTS}/${id}`);
      const time = timeOf(await shown());
      await set(service, { to: time });
      const ended = await shown();
      assert.deepEqual([ended.status, ended.updated_at], [status, time]);
      // The calls belong to the request that has made the payment.
      const keys = await service.sql`
        select distinct api_key_id from pay.provider_operations where subject_id = ${id}`;
      assert.ok(keys.every(({ api_key_id }) => api_key_id === service.key.id));
      await service.call("POST", `${SANDBOX}/reset`);
    });
  }
});

const YEAR_AHEAD = "2027-03-01T12:00:00.000Z";

/**
 * Freezes the clock of a key's sandbox, as an advance writes its settings; null removes them, as a
 * reset does.
 */
async function setSettings(service: TestService, key: TestKey, frozen_at: string | null) {
  const environment_id = await service.environmentOf(key);
  await service.sql`delete from pay.sandbox_settings where environment_id = ${environment_id}`;
  if (frozen_at === null) return;
  await service.sql`insert into pay.sandbox_settings (environment_id, version, frozen_at)
    values (${environment_id}, pay_internal.new_settings_version(), ${frozen_at})`;
}

serviceCase("a request is decided with the present settings of its sandbox", async (t, service) => {
  await service.setClock(NOW);
  const list = (key: TestKey) =>
    service.call("GET", "/api-v1-payments/v1/payments?limit=1", { key: key.text });

  await t.step("the first request learns the settings, the second knows them", async () => {
    await service.pay();
    await setSettings(service, service.key, YEAR_AHEAD);
    service.forgetStatements();
    const first = await service.pay({}, { idempotency_key: "first" });
    assert.deepEqual([first.status, first.body.created_at], [201, YEAR_AHEAD], first.text);
    service.assertStatements(2);
    const second = await service.pay();
    assert.equal(second.body.created_at, YEAR_AHEAD);
    service.assertStatements(1);
    const replay = await service.pay({}, { idempotency_key: "first" });
    assert.equal(replay.text, first.text);
  });

  await t.step("loads, changes, lists and keys use the time of the sandbox", async () => {
    const at = "2027-03-02T00:00:00.000Z";
    await setSettings(service, service.key, at);
    const paid = await service.make({ outcome: "success" });
    const url = `/api-v1-payments/v1/payments/${paid.body.id}/refund`;
    await setSettings(service, service.key, "2027-03-02T00:00:01.000Z");
    const refund = await service.call("POST", url, { body: {} });
    assert.equal(refund.body.created_at, "2027-03-02T00:00:01.000Z", refund.text);
    const made = await service.post("/api-v1-payments/v1/api_keys", {
      name: "short",
      expires_at: "2027-03-03T00:00:00.000Z",
    });
    await setSettings(service, service.key, "2027-03-03T00:00:00.000Z");
    assert.equal((await service.pay({}, { key: made.secret })).status, 401);
    assert.equal((await list(service.key)).status, 200);
  });

  await t.step("a key of the operator works by any clock until it ends in real time", async () => {
    const key = await service.issueKey(service.key.environment_id, {
      expires_at: new Date(NOW + DAY_S * 1000).toISOString(),
    });
    assert.equal((await list(key)).status, 200);
    await setSettings(service, service.key, new Date(NOW).toISOString());
    assert.equal((await list(key)).status, 200);
    assert.equal(
      (await service.pay({}, { key: key.text })).body.created_at.slice(0, 10),
      "2026-03-01",
    );
    await service.setClock(NOW + 2 * DAY_S * 1000);
    assert.equal((await list(key)).status, 401);
  });

  await t.step("no other sandbox and no live environment notices", async () => {
    const now = new Date(NOW + 2 * DAY_S * 1000).toISOString();
    await setSettings(service, service.key, YEAR_AHEAD);
    for (const { text } of [service.other, service.live]) {
      await service.get("/api-v1-payments/v1/payments?limit=1", { key: text });
    }
    assert.equal((await service.pay({}, { key: service.other.text })).body.created_at, now);
  });

  await t.step("without settings the real time is back", async () => {
    assert.equal((await service.pay()).body.created_at, YEAR_AHEAD);
    await setSettings(service, service.key, null);
    const now = new Date(NOW + 2 * DAY_S * 1000).toISOString();
    assert.equal((await service.pay()).body.created_at, now);
  });
});

serviceCase("a response is stored for 24 hours of the sandbox", async (_t, service) => {
  await service.setClock(NOW);
  const send = () => service.pay({}, { idempotency_key: "kept" });
  await setSettings(service, service.key, "2027-01-01T00:00:00.000Z");
  const first = await send();
  await setSettings(service, service.key, "2027-01-01T23:59:59.999Z");
  assert.equal((await send()).text, first.text);
  await setSettings(service, service.key, "2027-01-02T00:00:00.000Z");
  const second = await send();
  assert.notEqual(second.body.id, first.body.id);
  await service.setClock(NOW + 3 * DAY_S * 1000);
  assert.equal((await send()).text, second.text);
});

serviceCase("an outdated request is not counted", async (_t, service) => {
  await service.setClock(NOW);
  const remaining = async () => {
    const { headers } = await service.pay();
    return Number(/r=(\d+)/.exec(headers.get("RateLimit")!)![1]);
  };
  const before = await remaining();
  await setSettings(service, service.key, YEAR_AHEAD);
  assert.equal(await remaining(), before - 1);
  // Limits are in real time, also while the clock of the sandbox stands.
  await service.setClock(NOW + 60_000);
  assert.equal(await remaining(), before);
}, { rate_limit: 10 });
