/**
 * The end of an endpoint (contract §4): by a request, by a 410 of its receiver, or by five days of
 * failures. Its waiting deliveries are cancelled, also if they are more than one statement can
 * cancel. Until then reads show it as failing.
 */

import assert from "node:assert/strict";
import { assertRefused } from "../support/service/service_case.ts";
import type { TestService } from "../support/service/service.ts";
import {
  addLive,
  addLiveDelivery,
  attemptsAt,
  liveCase,
} from "../support/webhook/live_endpoint.ts";
import {
  addEndpoint,
  DELIVERIES,
  deliveriesOf,
  ENDPOINTS,
  settle,
  shown,
  TRIGGER,
} from "../support/webhook/recording_receiver.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";

const AT = Date.parse("2026-08-09T10:11:12.013Z");
const DAY = 86_400_000;
/** More than twice the deliveries that one change of an endpoint cancels. */
const BACKLOG = 12_000;
/** The maximum number of deliveries that one statement cancels. */
const AT_ONCE = 5_000;

webhookCase("410 disables an endpoint and tells the others", async (t, service, hooks) => {
  await service.setClock(AT);
  const gone = await addEndpoint(service, hooks.url("/gone"), { description: "kept" });
  const told = await addEndpoint(service, hooks.url("/told"), {
    events: ["webhook_endpoint.disabled"],
  });
  await addEndpoint(service, hooks.url("/payments"), { events: ["payment.*"] });
  hooks.judge = ({ path }) => path === "/gone" ? 410 : 200;
  await service.make({ outcome: "success" });
  await settle(service);
  const endpoint = await service.get(`${ENDPOINTS}/${gone.id}`);

  await t.step("it is disabled as gone and keeps its other fields", () => {
    const { status, disabled_reason, description, updated_at, failing } = endpoint;
    assert.deepEqual([status, disabled_reason, description], ["disabled", "gone", "kept"]);
    assert.deepEqual([updated_at, failing], [new Date(AT).toISOString(), undefined]);
  });
  await t.step("its attempt is failed, and its waiting deliveries are cancelled", async () => {
    const rows = await deliveriesOf(service, `&endpoint_id=${gone.id}`);
    assert.deepEqual(rows.map(({ status, attempts }) => [status, attempts.length]), [
      ["failed", 1],
      ["cancelled", 0],
    ]);
  });
  await t.step("webhook_endpoint.disabled arrives at its subscribers", async () => {
    assert.deepEqual(shown(hooks.at("/told")), ["webhook_endpoint.disabled 1"]);
    assert.deepEqual(shown(hooks.at("/payments")), ["payment.created 1", "payment.completed 1"]);
    const { event } = hooks.at("/told")[0]!;
    assert.deepEqual(event.data.object, endpoint);
    assert.deepEqual(event.request, { id: null, idempotency_key: null });
    const [delivery] = await deliveriesOf(service, `&endpoint_id=${told.id}`);
    assert.deepEqual([delivery.payment_id, delivery.event_id], [null, event.id]);
  });
  await t.step("it gets deliveries after it is enabled again, and none before", async () => {
    await service.make();
    await settle(service);
    assert.equal(hooks.at("/gone").length, 1);
    hooks.judge = () => 200;
    const body = { status: "enabled" };
    const enabled = (await service.call("PUT", `${ENDPOINTS}/${gone.id}`, { body })).body;
    assert.deepEqual([enabled.status, enabled.disabled_reason], ["enabled", null]);
    await service.make();
    await settle(service);
    assert.equal(hooks.at("/gone").length, 2);
  });
});

webhookCase("410 does not undo a change made meanwhile", async (_, service, hooks) => {
  const { id } = await addEndpoint(service, hooks.url("/old"));
  hooks.judge = async ({ path }) => {
    if (path !== "/old") return 200;
    const url = hooks.url("/new");
    const moved = await service.call("PUT", `${ENDPOINTS}/${id}`, { body: { url } });
    assert.equal(moved.status, 200);
    return 410;
  };
  await service.make();
  await settle(service);
  const body = await service.get(`${ENDPOINTS}/${id}`);
  assert.deepEqual([body.status, body.url], ["enabled", hooks.url("/new")]);
  await service.setClock(Date.now() + 60_000);
  await settle(service);
  const sent = (path: string) => hooks.at(path).map(({ event }) => event.sequence);
  assert.deepEqual([sent("/old"), sent("/new")], [[1], [1]], "the new URL gets the event");
});

liveCase("five days of failures disable a live endpoint", async (t, service, receiver) => {
  const fail = ({ path }: { path: string }) => path === "/told" ? 200 : 500;
  const { id } = await addLive(service, "/live", ["payment.*"]);
  await addLive(service, "/told", ["webhook_endpoint.*"]);
  const key = service.live.text;
  const deliverAt = async (at_ms: number, judge: typeof fail = fail) => {
    receiver.judge = judge;
    await service.setClock(at_ms);
    const delivery_id = await addLiveDelivery(service, id, at_ms);
    await settle(service);
    const body = await service.get(`${ENDPOINTS}/${id}`, { key });
    return { delivery_id, state: [body.status, body.disabled_reason] };
  };
  const { delivery_id } = await deliverAt(AT);
  await t.step("a delivery follows the live schedule until its tenth attempt", async () => {
    const read = async () => await service.get(`${DELIVERIES}/${delivery_id}`, { key });
    await service.sql`update pay.webhook_deliveries set attempt_count = 8`;
    for (const number of [9, 10]) {
      await service.setClock(Date.parse((await read()).next_attempt_at));
      await settle(service);
      assert.equal(attemptsAt(receiver, "/live").at(-1), number);
    }
    const { status, next_attempt_at } = await read();
    assert.deepEqual([status, next_attempt_at], ["failed", null]);
  });
  await t.step("a success starts the five days again", async () => {
    await deliverAt(AT + 5 * DAY - 1, () => 200);
    await deliverAt(AT + 5 * DAY);
    assert.deepEqual((await deliverAt(AT + 10 * DAY - 1)).state, ["enabled", null]);
  });
  await t.step("after five days it is disabled, with an event", async () => {
    assert.deepEqual((await deliverAt(AT + 10 * DAY)).state, ["disabled", "failing"]);
    assert.deepEqual(attemptsAt(receiver, "/told"), [1]);
    const pending = await service.get(`${DELIVERIES}?status=pending`, { key });
    assert.deepEqual(pending.data, []);
  });
  await t.step("after it is enabled again it has five days again", async () => {
    await service.call("PUT", `${ENDPOINTS}/${id}`, { body: { status: "enabled" }, key });
    assert.deepEqual((await deliverAt(AT + 11 * DAY)).state, ["enabled", null]);
  });
});

webhookCase("failing is shown by reads while attempts fail", async (t, service, hooks) => {
  await service.setClock(AT);
  const { id } = await addEndpoint(service, hooks.url("/"));
  const place = `${ENDPOINTS}/${id}`;
  const put = async (body: unknown) => (await service.call("PUT", place, { body })).body;
  /** Asserts `failing` in both reads. */
  const assertFailing = async (failing: true | undefined) => {
    const body = await service.get(place);
    assert.equal(body.failing, failing);
    assert.deepEqual((await service.get(ENDPOINTS)).data, [body]);
  };
  const pay = async () => {
    const { body } = await service.make({ outcome: "pending" });
    await settle(service);
    return body.id as string;
  };
  await assertFailing(undefined);
  hooks.judge = () => 500;
  const payment_id = await pay();
  await assertFailing(true);
  await t.step("a change and an event of the endpoint do not show it", async () => {
    assert.equal((await put({ description: "new" })).failing, undefined);
    const [row] = await service.sql`select body from pay.webhook_endpoints`;
    assert.ok(!row!.body.includes("failing"));
    await service.call("POST", TRIGGER, { body: { endpoint_id: id, event: "ping", payment_id } });
    const { event } = hooks.arrivals.at(-1)!;
    assert.deepEqual([event.type, event.data.object.failing], ["ping", undefined]);
  });
  await t.step("not while the endpoint is disabled", async () => {
    await put({ status: "disabled" });
    await assertFailing(undefined);
    await put({ status: "enabled" });
    await pay();
    await assertFailing(true);
  });
  await t.step("not after a success", async () => {
    hooks.judge = () => 200;
    await service.setClock(AT + 3_600_000);
    await settle(service);
    await assertFailing(undefined);
  });
});

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

const countOf = ({ count }: TestService, status: string) =>
  count(`webhook_deliveries where status = '${status}'`);

/** Runs polls of the dispatcher until no delivery is pending. */
async function callOff(service: TestService): Promise<void> {
  for (let left = BACKLOG; left > 0;) {
    await settle(service);
    const now = await countOf(service, "pending");
    assert.ok(now < left, `${now} of ${left} deliveries stay pending`);
    left = now;
  }
}

/** The ways to end an endpoint. A 410 responds to one of the waiting deliveries. */
const ENDS: Record<string, (service: TestService, id: string) => Promise<unknown>> = {
  disabled: (service, id) =>
    service.call("PUT", `${ENDPOINTS}/${id}`, { body: { status: "disabled" } }),
  deleted: (service, id) => service.call("DELETE", `${ENDPOINTS}/${id}`),
  gone: async (service) => {
    await service.sql`
      update pay.webhook_deliveries set next_attempt_at = created_at where subject_id = 'pay_2'`;
    await settle(service);
    const [endpoint] = await service.sql`select status from pay.webhook_endpoints`;
    assert.equal(endpoint!.status, "disabled");
  },
};

for (const [name, end] of Object.entries(ENDS)) {
  webhookCase(`an endpoint with a large backlog is ${name}`, async (t, service, hooks) => {
    hooks.judge = () => 503;
    const id = await addBacklog(service, hooks.url("/"));
    hooks.judge = () => name === "gone" ? 410 : 200;
    hooks.arrivals.length = 0;
    const enable = () => service.call("PUT", `${ENDPOINTS}/${id}`, { body: { status: "enabled" } });
    await t.step("one statement cancels a part of it", async () => {
      await end(service, id);
      const cancelled = await countOf(service, "cancelled");
      // The poll that records the 410 cancels another part.
      if (name === "gone") assert.ok(cancelled > 0 && cancelled <= 2 * AT_ONCE, `${cancelled}`);
      else assert.equal(cancelled, AT_ONCE);
    });
    if (name === "disabled") {
      await t.step("a PUT enabled is 503 until all of it is cancelled", async () => {
        assertRefused(await enable(), "service_unavailable");
        assert.equal(await countOf(service, "cancelled"), 2 * AT_ONCE);
      });
    }
    await t.step("polls cancel the rest before it is due", () => callOff(service));
    if (name !== "disabled") return;
    await t.step("then the endpoint is enabled and gets only new events", async () => {
      assert.equal((await enable()).status, 200);
      await service.setClock(AT + 120_000);
      await service.make({ outcome: "pending" });
      await settle(service);
      assert.deepEqual(shown(hooks.arrivals), ["payment.created 1"]);
      assert.equal(await countOf(service, "cancelled"), BACKLOG);
    });
  });
}
