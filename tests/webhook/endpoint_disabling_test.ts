/**
 * Endpoints that the responses of their receivers disable (contract §4): after a 410, or after five
 * days of failures. Also the schedule of live deliveries until then.
 */

import assert from "node:assert/strict";
import { verifyWebhook } from "../../packages/client/webhook_signature.ts";
import { startService, type TestService } from "../support/service/service.ts";
import {
  addLiveDelivery,
  attemptsAt,
  leadingTo,
  openPublicReceiver,
} from "../support/webhook/live_endpoint.ts";
import {
  addEndpoint,
  DELIVERIES,
  deliveriesOf,
  ENDPOINTS,
  type RecordingReceiver,
  settle,
  shown,
} from "../support/webhook/recording_receiver.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";

const AT = Date.parse("2026-08-09T10:11:12.013Z");
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** Waits between live attempts (contract §4). */
const LIVE_WAITS = [
  5 * SECOND,
  5 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
  5 * HOUR,
  10 * HOUR,
  14 * HOUR,
  20 * HOUR,
  24 * HOUR,
];

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
  const { body: endpoint } = await service.call("GET", `${ENDPOINTS}/${gone.id}`);

  await t.step("it is disabled as gone and keeps its other fields", () => {
    const { status, disabled_reason, description, updated_at } = endpoint;
    assert.deepEqual([status, disabled_reason, description, updated_at], [
      "disabled",
      "gone",
      "kept",
      new Date(AT).toISOString(),
    ]);
  });
  await t.step("its attempt is failed, and its waiting deliveries are cancelled", async () => {
    const rows = await deliveriesOf(service, `&endpoint_id=${gone.id}`);
    assert.deepEqual(rows.map(({ status, attempts }) => [status, attempts.length]), [
      ["failed", 1],
      ["cancelled", 0],
    ]);
    assert.equal(rows[0].attempts[0].response_status, 410);
    assert.equal(hooks.at("/gone").length, 1);
  });
  await t.step("webhook_endpoint.disabled arrives at its subscribers", async () => {
    assert.deepEqual(shown(hooks.at("/told")), ["webhook_endpoint.disabled 1"]);
    assert.deepEqual(shown(hooks.at("/payments")), ["payment.created 1", "payment.completed 1"]);
    const { bytes, headers, event } = hooks.at("/told")[0]!;
    const header = headers.get("Payment-Signature");
    await verifyWebhook(bytes, header, told.secret, { now_ms: AT });
    assert.deepEqual(event.data.object, endpoint);
    assert.deepEqual(event.request, { id: null, idempotency_key: null });
    const [delivery] = await deliveriesOf(service, `&endpoint_id=${told.id}`);
    assert.deepEqual([delivery.payment_id, delivery.event_id], [null, event.id]);
  });
  await t.step("it gets no further deliveries", async () => {
    await service.make();
    await settle(service);
    assert.equal(hooks.at("/gone").length, 1);
    assert.equal((await deliveriesOf(service, `&endpoint_id=${gone.id}`)).length, 2);
  });
  await t.step("it gets deliveries after it is enabled again", async () => {
    hooks.judge = () => 200;
    const { body } = await service.call("PUT", `${ENDPOINTS}/${gone.id}`, {
      body: { status: "enabled" },
    });
    assert.deepEqual([body.status, body.disabled_reason], ["enabled", null]);
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
  const { body } = await service.call("GET", `${ENDPOINTS}/${id}`);
  assert.deepEqual([body.status, body.url], ["enabled", hooks.url("/new")]);
  await service.setClock(Date.now() + 60_000);
  await settle(service);
  const sent = (path: string) => hooks.at(path).map(({ text }) => JSON.parse(text).sequence);
  assert.deepEqual([sent("/old"), sent("/new")], [[1], [1]], "the new URL gets the event");
});

/** Registers a test with live endpoints at https://hooks.example.com. */
function liveCase(
  name: string,
  run: (t: Deno.TestContext, service: TestService, receiver: RecordingReceiver) => Promise<void>,
): void {
  Deno.test(name, async (t) => {
    const receiver = openPublicReceiver();
    const service = await startService(leadingTo(receiver.port));
    try {
      await run(t, service, receiver);
    } finally {
      await Promise.all([service.close(), receiver.close()]);
    }
  });
}

/** Adds a live endpoint at a path. */
function addLive(service: TestService, path: string, events = ["*"]) {
  const options = { key: service.live.text };
  return addEndpoint(service, `https://hooks.example.com${path}`, { events }, options);
}

async function readLive(service: TestService, id: string) {
  const { body } = await service.call("GET", `${ENDPOINTS}/${id}`, { key: service.live.text });
  return [body.status, body.disabled_reason];
}

liveCase("a live delivery is tried ten times", async (t, service, receiver) => {
  receiver.judge = () => 500;
  const { id } = await addLive(service, "/live");
  let now = AT;
  await service.setClock(now);
  const delivery_id = await addLiveDelivery(service, id, AT);
  const read = async () => {
    const path = `${DELIVERIES}/${delivery_id}`;
    return (await service.call("GET", path, { key: service.live.text })).body;
  };
  for (const [i, wait] of [...LIVE_WAITS, null].entries()) {
    await t.step(
      `attempt ${i + 1}, then ${wait === null ? "none" : `${wait} ms ± 20 %`}`,
      async () => {
        await service.setClock(now - 1);
        await settle(service);
        await service.setClock(now);
        await settle(service);
        assert.equal(attemptsAt(receiver, "/live").length, i + 1);
        const { status, attempts, next_attempt_at } = await read();
        assert.equal(attempts.at(-1).at, new Date(now).toISOString());
        if (wait === null) {
          assert.deepEqual([status, next_attempt_at], ["failed", null]);
          return;
        }
        const waited = Date.parse(next_attempt_at) - now;
        assert.ok(waited >= wait * 0.8 && waited <= wait * 1.2, `${waited}`);
        now += waited;
      },
    );
  }
  await t.step("attempts are numbered from 1 to 10", () => {
    assert.deepEqual(attemptsAt(receiver, "/live"), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  });
});

liveCase("five days of failures disable a live endpoint", async (t, service, receiver) => {
  receiver.judge = ({ path }) => path === "/told" ? 200 : 500;
  const { id } = await addLive(service, "/live", ["payment.*"]);
  await addLive(service, "/told", ["webhook_endpoint.*"]);
  const failAt = async (at_ms: number) => {
    await service.setClock(at_ms);
    await addLiveDelivery(service, id, at_ms);
    await settle(service);
  };
  await failAt(AT);
  await t.step("it is still enabled a millisecond before", async () => {
    await failAt(AT + 5 * DAY - 1);
    assert.deepEqual(await readLive(service, id), ["enabled", null]);
  });
  await t.step("a success starts the five days again", async () => {
    receiver.judge = () => 200;
    await failAt(AT + 5 * DAY - 1);
    receiver.judge = ({ path }) => path === "/told" ? 200 : 500;
    await failAt(AT + 5 * DAY);
    await failAt(AT + 10 * DAY - 1);
    assert.deepEqual(await readLive(service, id), ["enabled", null]);
  });
  await t.step("after five days it is disabled, with an event", async () => {
    await failAt(AT + 10 * DAY);
    assert.deepEqual(await readLive(service, id), ["disabled", "failing"]);
    assert.deepEqual(attemptsAt(receiver, "/told"), [1]);
    const pending = await service.call("GET", `${DELIVERIES}?status=pending`, {
      key: service.live.text,
    });
    assert.deepEqual(pending.body.data, []);
  });
  await t.step("after it is enabled again it has five days again", async () => {
    const body = { status: "enabled" };
    await service.call("PUT", `${ENDPOINTS}/${id}`, { body, key: service.live.text });
    await failAt(AT + 11 * DAY);
    assert.deepEqual(await readLive(service, id), ["enabled", null]);
  });
});

webhookCase("five days of failures do not disable a test endpoint", async (_, service, hooks) => {
  const { id } = await addEndpoint(service, hooks.url("/"));
  hooks.judge = () => 500;
  for (const days of [0, 4, 6, 29]) {
    await service.setClock(AT + days * DAY);
    await service.make();
    await settle(service);
  }
  const { body } = await service.call("GET", `${ENDPOINTS}/${id}`);
  assert.deepEqual([body.status, body.disabled_reason], ["enabled", null]);
});
