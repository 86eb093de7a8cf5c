/** The delivery log, and redelivery on demand (contract §4). */

import assert from "node:assert/strict";
import { assertRefused } from "../support/service/service_case.ts";
import {
  addEndpoint,
  DELIVERIES,
  deliveriesOf,
  ENDPOINTS,
  settle,
  shown,
} from "../support/webhook/recording_receiver.ts";
import type { TestService } from "../support/service/service.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";
import { until } from "../support/common/until.ts";

const AT = Date.parse("2026-08-09T10:11:12.013Z");

function redeliver(service: TestService, id: string, idempotency_key?: string) {
  return service.call("POST", `${DELIVERIES}/${id}/redeliver`, {
    ...(idempotency_key && { idempotency_key }),
  });
}

webhookCase("POST /redeliver sends a delivered event again", async (t, service, hooks) => {
  await service.setClock(AT);
  await addEndpoint(service, hooks.url("/"));
  await service.make({ outcome: "pending" });
  await settle(service);
  const [before] = await deliveriesOf(service);
  await service.setClock(AT + 1000);
  const response = await redeliver(service, before.id, "again");
  await settle(service);
  await t.step("returns the delivery, which is due now", () => {
    const next_attempt_at = new Date(AT + 1000).toISOString();
    assert.deepEqual([response.status, response.body], [200, {
      ...before,
      status: "pending",
      next_attempt_at,
    }]);
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
  await t.step("a replay sends nothing", async () => {
    const again = await redeliver(service, before.id, "again");
    await settle(service);
    assert.equal(again.text, response.text);
    assert.equal(hooks.arrivals.length, 2);
  });
});

webhookCase("POST /redeliver of a failed delivery", async (t, service, hooks) => {
  await service.setClock(AT);
  await addEndpoint(service, hooks.url("/"));
  await service.make({ outcome: "pending" });
  hooks.judge = () => 500;
  for (const after_ms of [0, 5_000, 65_000, 665_000]) {
    await service.setClock(AT + after_ms);
    await settle(service);
  }
  const [failed] = await deliveriesOf(service);
  assert.equal(failed.status, "failed");
  await t.step("a failed redelivery is failed again, without another attempt", async () => {
    await redeliver(service, failed.id);
    await settle(service);
    const [after] = await deliveriesOf(service);
    assert.deepEqual([after.status, after.attempts.length], ["failed", 5]);
  });
  await t.step("a successful redelivery is delivered", async () => {
    hooks.judge = () => 200;
    await redeliver(service, failed.id);
    await settle(service);
    const [after] = await deliveriesOf(service);
    assert.deepEqual([after.status, after.attempts.length], ["delivered", 6]);
  });
});

webhookCase("POST /redeliver 30 times keeps the attempts small", async (t, service, hooks) => {
  await service.setClock(AT);
  await addEndpoint(service, hooks.url("/"));
  await service.make({ outcome: "pending" });
  await settle(service);
  const [{ id }] = await deliveriesOf(service);
  const read = async () => (await service.call("GET", `${DELIVERIES}/${id}`)).body.attempts;
  const [first] = await read();
  // The state after 100 000 attempts.
  const attempt = 100_000;
  const long = { ...first, duration_ms: 15_000, error: "connection_failed" };
  const numbers = Array.from({ length: 49 }, (_, i) => attempt - 48 + i);
  const kept = [first, ...numbers.map((number) => ({ ...long, number }))];
  await service.sql`update pay.webhook_deliveries set attempt_count = ${attempt},
    attempts = array(select json_array_elements(${JSON.stringify(kept)}::text::json))
    where id = ${id}`;
  let shown: { number: number }[] = kept;
  for (let i = 0; i < 30; i++) {
    await redeliver(service, id);
    await settle(service);
    shown = await read();
  }
  await t.step("50 attempts stay recorded, of at most 8 kB", () => {
    assert.equal(shown.length, 50);
    const { length } = JSON.stringify(shown);
    assert.ok(length < 8_300, `${length} bytes`);
  });
  await t.step("they are the first attempt and the newest ones", () => {
    const newest = shown.slice(1).map((_, i) => attempt + 30 + 2 - shown.length + i);
    assert.deepEqual(shown.map(({ number }) => number), [1, ...newest]);
  });
});

webhookCase("POST /redeliver of a pending delivery does not wait until it is due", async (
  _,
  service,
  hooks,
) => {
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

webhookCase(
  "POST /redeliver during an attempt adds no other attempt",
  async (_, service, hooks) => {
    await addEndpoint(service, hooks.url("/"));
    const responses: (() => void)[] = [];
    hooks.judge = async () => {
      const [pending] = await deliveriesOf(service);
      assert.equal((await redeliver(service, pending.id)).status, 200);
      return await new Promise((resolve) => responses.push(() => resolve(200)));
    };
    await service.make({ outcome: "pending" });
    await until("an attempt is under way", () => responses.length > 0);
    responses[0]!();
    await settle(service);
    assert.equal(hooks.arrivals.length, 1);
    assert.equal((await deliveriesOf(service))[0].status, "delivered");
  },
);

webhookCase("POST /redeliver without a usable endpoint", async (t, service, hooks) => {
  await service.setClock(AT);
  const { id } = await addEndpoint(service, hooks.url("/"));
  hooks.judge = () => 500;
  await service.make({ outcome: "pending" });
  await settle(service);
  await service.call("PUT", `${ENDPOINTS}/${id}`, { body: { status: "disabled" } });
  const [cancelled] = await deliveriesOf(service);
  assert.deepEqual([cancelled.status, cancelled.next_attempt_at], ["cancelled", null]);
  const refused = await redeliver(service, cancelled.id, "off");
  await t.step("a disabled endpoint: 409", () => {
    assertRefused(refused, 409, "invalid_state");
    const { current_status, allowed } = refused.body.error;
    assert.deepEqual([current_status, allowed], ["disabled", ["enabled"]]);
  });
  await t.step("the endpoint is enabled again: a cancelled delivery is sent", async () => {
    await service.call("PUT", `${ENDPOINTS}/${id}`, { body: { status: "enabled" } });
    hooks.judge = () => 200;
    assert.equal((await redeliver(service, cancelled.id)).status, 200);
    await settle(service);
    assert.equal((await deliveriesOf(service))[0].status, "delivered");
  });
  await t.step("a replay of the refused request is still refused", async () => {
    const again = await redeliver(service, cancelled.id, "off");
    assert.deepEqual([again.status, again.text], [409, refused.text]);
    assert.equal(again.headers.get("Idempotent-Replayed"), "true");
  });
  await t.step("a deleted endpoint: 409", async () => {
    await service.call("DELETE", `${ENDPOINTS}/${id}`);
    assertRefused(await redeliver(service, cancelled.id), 409, "invalid_state");
  });
  await t.step(
    "an unknown and a foreign delivery: 404, which is not stored",
    async () => {
      for (const key of [service.key.text, service.other.text]) {
        const unknown = key === service.key.text ? `whd_${"0".repeat(26)}` : cancelled.id;
        const path = `${DELIVERIES}/${unknown}/redeliver`;
        const response = await service.call("POST", path, { key, idempotency_key: "none" });
        assertRefused(response, 404, "not_found");
      }
      const kept = await service.sql`select from pay.idempotency_keys where key = 'none'`;
      assert.equal(kept.length, 0);
    },
  );
});
