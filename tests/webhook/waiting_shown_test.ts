/**
 * Responses show the state of a queue (contract §4): `blocked_by` of a delivery that waits for an
 * earlier one, and `failing` of an endpoint.
 */

import assert from "node:assert/strict";
import {
  addEndpoint,
  DELIVERIES,
  deliveriesOf,
  ENDPOINTS,
  settle,
  TRIGGER,
} from "../support/webhook/recording_receiver.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";

const AT = Date.parse("2026-08-09T10:11:12.013Z");

webhookCase("blocked_by names the delivery that another one waits for", async (
  t,
  service,
  hooks,
) => {
  await service.setClock(AT);
  const { id: endpoint_id } = await addEndpoint(service, hooks.url("/failing"));
  await addEndpoint(service, hooks.url("/good"));
  // Its first event of the payment is a later one, and nothing of its own is before it.
  const late = await addEndpoint(service, hooks.url("/late"), { events: ["payment.refunded"] });
  hooks.judge = ({ path }) => path === "/good" ? 200 : 500;
  const { id: payment_id } = (await service.make({ outcome: "refunded" })).body;
  await service.make({ outcome: "refunded" });
  await settle(service);
  const failing = `&endpoint_id=${endpoint_id}&payment_id=${payment_id}`;
  const [first, ...behind] = await deliveriesOf(service, failing);

  await t.step("each later delivery names the first that is pending", () => {
    assert.equal(first.blocked_by, undefined);
    assert.ok(behind.length >= 2);
    for (const delivery of behind) assert.equal(delivery.blocked_by, first.id);
  });
  await t.step("a read of one delivery shows the same", async () => {
    const { body } = await service.call("GET", `${DELIVERIES}/${behind[0].id}`);
    assert.equal(body.blocked_by, first.id);
  });
  await t.step("another endpoint waits for none", async () => {
    const [own_first] = await deliveriesOf(service, `&endpoint_id=${late.id}`);
    assert.deepEqual([own_first.status, own_first.blocked_by], ["pending", undefined]);
  });
  await t.step("each delivery waits for one of its own payment and endpoint", async () => {
    const all = await deliveriesOf(service);
    const blocked = all.filter(({ blocked_by }) => blocked_by !== undefined);
    assert.equal(blocked.length, 2 * behind.length);
    for (const { blocked_by, payment_id, endpoint_id } of blocked) {
      const blocker = all.find(({ id }) => id === blocked_by);
      assert.deepEqual([blocker.payment_id, blocker.endpoint_id], [payment_id, endpoint_id]);
    }
  });
  await t.step("a triggered event waits for none", async () => {
    const body = { endpoint_id, event: "payment.completed", payment_id };
    assert.equal((await service.call("POST", TRIGGER, { body })).body.blocked_by, undefined);
  });
  await t.step("nothing is blocked when the first has arrived", async () => {
    hooks.judge = () => 200;
    await service.setClock(AT + 60_000);
    await settle(service);
    for (const { status, blocked_by } of await deliveriesOf(service, failing)) {
      if (status !== "failed") assert.deepEqual([status, blocked_by], ["delivered", undefined]);
    }
  });
});

webhookCase("failing is shown by reads while attempts fail", async (t, service, hooks) => {
  await service.setClock(AT);
  const { id } = await addEndpoint(service, hooks.url("/"), { description: "Mine" });
  const place = `${ENDPOINTS}/${id}`;
  const read = async () => (await service.call("GET", place)).body;
  const listed = async () => (await service.call("GET", ENDPOINTS)).body.data[0];
  const stored = async () => {
    const [row] = await service.sql`select body from pay.webhook_endpoints`;
    return row!.body as string;
  };
  assert.equal((await read()).failing, undefined);
  hooks.judge = () => 500;
  const { id: payment_id } = (await service.make({ outcome: "pending" })).body;
  await settle(service);

  await t.step("after a failure", async () => {
    assert.equal((await read()).failing, true);
    assert.deepEqual(await listed(), await read());
  });
  await t.step("a change does not store it, and its response does not show it", async () => {
    const changed = await service.call("PUT", place, { body: { description: "Still mine" } });
    assert.equal(changed.body.failing, undefined);
    assert.ok(!(await stored()).includes("failing"));
    assert.deepEqual(await read(), { ...changed.body, failing: true });
  });
  await t.step("an event of the endpoint does not show it", async () => {
    const before = hooks.arrivals.length;
    const body = { endpoint_id: id, event: "ping", payment_id };
    await service.call("POST", TRIGGER, { body });
    assert.equal(hooks.arrivals[before]!.event.data.object.failing, undefined);
  });
  await t.step("not while the endpoint is disabled", async () => {
    await service.call("PUT", place, { body: { status: "disabled" } });
    assert.equal((await read()).failing, undefined);
    await service.call("PUT", place, { body: { status: "enabled" } });
    await service.make({ outcome: "pending" });
    await settle(service);
    assert.equal((await read()).failing, true);
  });
  await t.step("not after the response 410, which disables it", async () => {
    hooks.judge = () => 410;
    await service.make({ outcome: "pending" });
    await settle(service);
    const { status, disabled_reason, failing } = await read();
    assert.deepEqual([status, disabled_reason, failing], ["disabled", "gone", undefined]);
    await service.call("PUT", place, { body: { status: "enabled" } });
  });
  await t.step("not after a success", async () => {
    hooks.judge = () => 200;
    await service.setClock(AT + 3_600_000);
    await settle(service);
    assert.equal((await read()).failing, undefined);
    assert.equal((await listed()).failing, undefined);
  });
});
