/**
 * An endpoint with more pending deliveries than one statement can cancel can be disabled, deleted
 * and enabled again. None of these deliveries is sent afterwards.
 */

import assert from "node:assert/strict";
import { assertRefused } from "../support/service/service_case.ts";
import type { TestService } from "../support/service/service.ts";
import { addEndpoint, ENDPOINTS, settle, shown } from "../support/webhook/recording_receiver.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";

/** More than twice the deliveries that one change of an endpoint cancels. */
const BACKLOG = 12_000;
/** The maximum number of deliveries that one statement cancels. */
const AT_ONCE = 5_000;

const AT = Date.parse("2026-08-09T10:11:12.013Z");

/** Adds an endpoint whose deliveries have failed and wait for another attempt. */
async function addBacklog(service: TestService, url: string): Promise<string> {
  await service.setClock(AT);
  const { id } = await addEndpoint(service, url, { events: ["payment.created"] });
  await service.make({ outcome: "pending" });
  await settle(service);
  const later = new Date(AT + 60_000).toISOString();
  await service.sql`
    insert into pay.webhook_deliveries (environment_id, id, event_id, event_type, endpoint_id,
      subject_id, sequence, status, attempt_count, next_attempt_at, created_at)
    select e.environment_id, left(t.id, 20) || 'd' || n, e.id, e.type, t.id, 'pay_' || n, 1,
      'pending', 1, ${later}, ${new Date(AT).toISOString()}
    from pay.events e, pay.webhook_endpoints t, generate_series(2, ${BACKLOG}) n`;
  return id;
}

async function countOf(service: TestService, status: string): Promise<number> {
  const [row] = await service.sql`
    select count(*)::int as deliveries from pay.webhook_deliveries where status = ${status}`;
  return row!.deliveries;
}

/** Runs polls of the dispatcher until no delivery is pending. */
async function callOff(service: TestService): Promise<void> {
  for (let left = BACKLOG; left > 0;) {
    await settle(service);
    const now = await countOf(service, "pending");
    assert.ok(now < left, `${now} of ${left} deliveries stay pending`);
    left = now;
  }
}

webhookCase("PUT disabled of an endpoint with a large backlog", async (t, service, hooks) => {
  hooks.judge = () => 503;
  const id = await addBacklog(service, hooks.url("/"));
  hooks.judge = () => 200;
  hooks.arrivals.length = 0;
  const put = (status: string) => service.call("PUT", `${ENDPOINTS}/${id}`, { body: { status } });
  await t.step("one statement cancels a part of it", async () => {
    assert.equal((await put("disabled")).status, 200);
    assert.equal(await countOf(service, "cancelled"), AT_ONCE);
  });
  await t.step("a PUT enabled is 503 until all of it is cancelled", async () => {
    assertRefused(await put("enabled"), 503, "service_unavailable");
    assert.equal(await countOf(service, "cancelled"), 2 * AT_ONCE);
  });
  await t.step("polls of the dispatcher cancel the rest before it is due", () => callOff(service));
  await t.step("then the endpoint is enabled and gets only new events", async () => {
    assert.equal((await put("enabled")).status, 200);
    await service.setClock(AT + 120_000);
    await service.make({ outcome: "pending" });
    await settle(service);
    assert.deepEqual(shown(hooks.arrivals), ["payment.created 1"]);
    assert.equal(await countOf(service, "cancelled"), BACKLOG);
  });
});

webhookCase("DELETE of an endpoint with a large backlog", async (t, service, hooks) => {
  hooks.judge = () => 503;
  const id = await addBacklog(service, hooks.url("/"));
  await t.step("one statement cancels a part of it", async () => {
    assert.equal((await service.call("DELETE", `${ENDPOINTS}/${id}`)).status, 200);
    assert.equal(await countOf(service, "cancelled"), AT_ONCE);
  });
  await t.step("polls of the dispatcher cancel the rest", () => callOff(service));
});

webhookCase("410 from an endpoint with a large backlog", async (t, service, hooks) => {
  hooks.judge = () => 503;
  await addBacklog(service, hooks.url("/"));
  hooks.judge = () => 410;
  await service.sql`
    update pay.webhook_deliveries set next_attempt_at = created_at where subject_id = 'pay_2'`;
  await settle(service);
  await t.step("disables the endpoint and cancels a part of it", async () => {
    const [endpoint] = await service.sql`select status from pay.webhook_endpoints`;
    assert.equal(endpoint!.status, "disabled");
    assert.ok(await countOf(service, "pending") >= BACKLOG - 2 * AT_ONCE);
  });
  await t.step("polls of the dispatcher cancel the rest", () => callOff(service));
});
