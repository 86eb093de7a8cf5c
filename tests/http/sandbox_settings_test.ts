/**
 * Requests and the settings of their sandbox: a function learns the settings from the first request
 * that needs them, and decides that request again. The row is written here as an advance of the
 * clock writes it.
 */

import assert from "node:assert/strict";
import { serviceCase } from "../support/service/service_case.ts";
import type { TestKey, TestService } from "../support/service/service.ts";

const NOW = Date.parse("2026-03-01T12:00:00.000Z");
const YEAR_AHEAD = "2027-03-01T12:00:00.000Z";
const DAY_MS = 86_400_000;

/** Freezes the clock of a key's sandbox; null removes its settings, as a reset does. */
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

  await t.step("a sandbox without settings pays one statement for a create", async () => {
    await service.pay();
    service.forgetStatements();
    await service.pay();
    service.assertStatements(1);
  });

  await t.step("the first request learns the settings, the second knows them", async () => {
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
    const made = await service.call("POST", "/api-v1-payments/v1/api_keys", {
      body: { name: "short", expires_at: "2027-03-03T00:00:00.000Z" },
    });
    assert.equal(made.status, 201, made.text);
    await setSettings(service, service.key, "2027-03-03T00:00:00.000Z");
    assert.equal((await service.pay({}, { key: made.body.secret })).status, 401);
    assert.equal((await list(service.key)).status, 200);
  });

  await t.step("a key of the operator works by any clock until it ends in real time", async () => {
    const key = await service.issueKey(service.key.environment_id, {
      expires_at: new Date(NOW + DAY_MS).toISOString(),
    });
    assert.equal((await list(key)).status, 200);
    await setSettings(service, service.key, new Date(NOW).toISOString());
    assert.equal((await list(key)).status, 200);
    assert.equal(
      (await service.pay({}, { key: key.text })).body.created_at.slice(0, 10),
      "2026-03-01",
    );
    await service.setClock(NOW + 2 * DAY_MS);
    assert.equal((await list(key)).status, 401);
  });

  await t.step("no other sandbox and no live environment notices", async () => {
    const now = new Date(NOW + 2 * DAY_MS).toISOString();
    await setSettings(service, service.key, YEAR_AHEAD);
    for (const { text } of [service.other, service.live]) {
      const key = await service.call("GET", "/api-v1-payments/v1/payments?limit=1", { key: text });
      assert.equal(key.status, 200);
    }
    assert.equal((await service.pay({}, { key: service.other.text })).body.created_at, now);
  });

  await t.step("without settings the real time is back", async () => {
    assert.equal((await service.pay()).body.created_at, YEAR_AHEAD);
    await setSettings(service, service.key, null);
    const now = new Date(NOW + 2 * DAY_MS).toISOString();
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
  await service.setClock(NOW + 3 * DAY_MS);
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
