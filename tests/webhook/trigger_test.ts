/**
 * `POST /webhooks/trigger` (contract §4): one synchronous attempt of an event, signed with the
 * endpoint's real secret. It changes no payment.
 */

import assert from "node:assert/strict";
import { verifyWebhook } from "../../packages/client/webhook_signature.ts";
import { TRIGGER_LIMITS } from "../../shared/domain/webhooks/trigger.ts";
import { EVENT_TYPES } from "../../shared/core/vocabulary.ts";
import { assertRefused, paymentIn, PAYMENTS } from "../support/service/service_case.ts";
import { recordOf } from "../support/database/payment_records.ts";
import {
  addEndpoint,
  type Arrival,
  DELIVERIES,
  ENDPOINTS,
  EVENTS,
  holdResponses,
  settle,
  TRIGGER,
} from "../support/webhook/recording_receiver.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";
import { until } from "../support/common/until.ts";

const AT = Date.parse("2026-08-09T10:11:12.013Z");
const ALIAS = "/api-v1-sandbox/v1/webhooks/trigger";

webhookCase("POST /webhooks/trigger delivers every event type", async (t, service, hooks) => {
  // The endpoint subscribes to none of these events. A trigger ignores the subscription.
  const { id: endpoint_id, secret } = await addEndpoint(service, hooks.url("/"), {
    events: ["transfer.created"],
  });
  await addEndpoint(service, hooks.url("/other"));
  const payment = await paymentIn(service, "completed");
  await settle(service);
  const before = await recordOf(service, payment.id);
  hooks.arrivals.length = 0;

  for (const event of EVENT_TYPES) {
    const is_other = /^(transfer|instrument)\./.test(event);
    await t.step(is_other ? `${event} is no event of a payment` : event, async () => {
      hooks.arrivals.length = 0;
      const body = { endpoint_id, event, payment_id: payment.id };
      const response = await service.call("POST", TRIGGER, { body });
      if (is_other) {
        assertRefused(response, "invalid_parameter", "event");
        assert.equal(hooks.arrivals.length, 0);
        return;
      }
      assert.equal(response.status, 200, response.text);
      const [{ path, text, bytes, headers }, ...more] = hooks.arrivals as [Arrival];
      assert.deepEqual([path, headers.get("Webhook-Attempt"), more.length], ["/", "1", 0]);
      const payload = await verifyWebhook(bytes, headers.get("Payment-Signature"), secret);
      assert.deepEqual([payload.type, payload.triggered], [event, true]);
      // deno-lint-ignore no-explicit-any
      const { object } = payload.data as any;
      if (event.startsWith("payment.")) assert.deepEqual(object, payment);
      if (event.startsWith("refund.")) {
        const status = event.replace("refund.", "").replace(/^(created|updated)$/, "pending");
        const failure_code = status === "failed" ? "processing_failed" : null;
        const refund = { object: "refund", payment_id: payment.id, amount: 1000 };
        assert.deepEqual(object, { ...object, ...refund, status, failure_code });
      }
      if (["ping", "webhook_endpoint.disabled"].includes(event)) {
        assert.deepEqual([object.id, object.secret], [endpoint_id, undefined]);
      }
      const { id, attempts, event_id, ...delivery } = response.body;
      const expected = { status: "delivered", next_attempt_at: null, event_type: event };
      assert.deepEqual(delivery, { ...delivery, ...expected, payment_id: payment.id });
      assert.deepEqual([event_id, attempts[0].response_status], [payload.id, 200]);
      const { exchanges, ...shown } = await service.get(`${DELIVERIES}/${id}`);
      assert.deepEqual([shown, exchanges[0].request.body], [response.body, text]);
      assert.equal((await service.call("GET", `${EVENTS}/${event_id}`)).text, text);
    });
  }
  await t.step("the payment does not change, and the dispatcher delivers nothing", async () => {
    const after = await recordOf(service, payment.id);
    const real = after.events.filter(({ sequence }) => sequence !== null);
    assert.deepEqual([real, after.body, after.ledger], [before.events, before.body, before.ledger]);
    const path = `${PAYMENTS}/${payment.id}/refunds`;
    assert.deepEqual((await service.get(path)).data, []);
    hooks.arrivals.length = 0;
    await service.setClock(Date.now() + 86_400_000);
    await settle(service);
    assert.equal(hooks.arrivals.length, 0);
  });
});

webhookCase("POST /webhooks/trigger is 200 if the receiver fails", async (t, service, hooks) => {
  const events = ["ping"];
  const { id } = await addEndpoint(service, hooks.url("/"), { events });
  const nobody = await addEndpoint(service, "http://127.0.0.1:2/", { events });
  const payment_id = (await service.make()).body.id;
  const cases: [endpoint_id: string, status: number | null, error: string | null][] = [
    [id, 500, null],
    [id, 302, null],
    [id, 410, null],
    [nobody.id, null, "connection_failed"],
  ];
  for (const [endpoint_id, response_status, error] of cases) {
    await t.step(`${response_status ?? error}`, async () => {
      hooks.judge = () => response_status!;
      const body = { endpoint_id, event: "payment.completed", payment_id };
      const response = await service.post(ALIAS, body);
      const { status, attempts: [attempt, ...more], next_attempt_at } = response;
      assert.deepEqual([status, next_attempt_at, more.length], ["failed", null, 0]);
      assert.deepEqual([attempt.response_status, attempt.error], [response_status, error]);
    });
  }
  await t.step("a failure is not retried, and disables no endpoint", async () => {
    const before = hooks.arrivals.length;
    await service.setClock(Date.now() + 86_400_000);
    await settle(service);
    assert.equal(hooks.arrivals.length, before);
    const endpoint = await service.get(`${ENDPOINTS}/${id}`);
    assert.equal(endpoint.status, "enabled");
  });
});

webhookCase("POST /webhooks/trigger refuses invalid requests", async (t, service, hooks) => {
  const { id: endpoint_id } = await addEndpoint(service, hooks.url("/"), { events: ["ping"] });
  const payment_id = (await service.make()).body.id;
  const body = { endpoint_id, payment_id, event: "payment.completed" };
  const key = service.live.text;
  const cases: [change: Record<string, unknown>, code: string, options?: object][] = [
    [{ event: "payment.*" }, "invalid_parameter"],
    [{ endpoint_id: `whe_${"0".repeat(26)}` }, "not_found"],
    [{ payment_id: `pay_${"0".repeat(26)}` }, "not_found"],
    [{ endpoint_id: "x" }, "not_found"],
    [{}, "test_key_required", { key }],
  ];
  hooks.arrivals.length = 0;
  for (const [change, code, options] of cases) {
    await t.step(`${JSON.stringify(change)}: ${code}`, async () => {
      const sent = { body: { ...body, ...change }, idempotency_key: "refused", ...options };
      const param = code === "invalid_parameter" ? "event" : undefined;
      assertRefused(await service.call("POST", TRIGGER, sent), code, param);
    });
  }
  const written = await service.sql`select id from pay.events where sequence is null
    union all select key from pay.idempotency_keys`;
  assert.deepEqual([hooks.arrivals.length, [...written]], [0, []]);
});

webhookCase("POST /trigger attempts duplicates at one time once", async (t, service, hooks) => {
  await service.setClock(AT);
  const { id: endpoint_id } = await addEndpoint(service, hooks.url("/"), { events: ["ping"] });
  const payment = await paymentIn(service, "completed");
  const gate = Promise.withResolvers<number>();
  hooks.judge = () => gate.promise;
  const body = { endpoint_id, event: "ping", payment_id: payment.id };
  const options = { body, idempotency_key: "duplicates" };
  const first = service.call("POST", TRIGGER, options);
  await until("the attempt is in progress", () => hooks.arrivals.length === 1);

  await t.step("a duplicate gets a response that tells it to retry", async () => {
    const duplicate = await service.call("POST", TRIGGER, options);
    assertRefused(duplicate, "idempotency_in_progress");
    assert.equal(duplicate.headers.get("Retry-After"), "1");
  });
  await t.step("the claim of a dead request ends after a minute", async () => {
    await service.setClock(AT + 60_000);
    const later = service.call("POST", TRIGGER, options);
    await until("another attempt is in progress", () => hooks.arrivals.length === 2);
    gate.resolve(200);
    const [one, other] = [await first, await later];
    assert.deepEqual([one.status, other.status], [200, 200]);
    assert.equal((await service.call("POST", TRIGGER, options)).text, other.text);
  });
  assert.equal(hooks.arrivals.length, 2);
});

webhookCase("POST /trigger limits the attempts in progress", async (t, service, hooks) => {
  const { held, release } = holdResponses(hooks);
  /** Makes an endpoint and a payment in a sandbox. Returns a trigger of them. */
  const prepare = async (key: string) => {
    const { id: endpoint_id } = await addEndpoint(service, hooks.url("/"), { events: ["ping"] }, {
      key,
    });
    return async (options = {}) => {
      const payment_id = (await service.make({ outcome: "pending" }, { key })).body.id;
      const body = { endpoint_id, event: "ping", payment_id };
      return await service.call("POST", TRIGGER, { body, key, ...options });
    };
  };
  const addSandbox = async () => (await service.post("/api-v1-sandbox/sandboxes", {})).test_key;
  const responses: Promise<{ status: number }>[] = [];
  /** Sends triggers until `count` attempts are in progress. */
  const fill = async (count: number, trigger: () => Promise<{ status: number }>) => {
    while (held.length < count) {
      const before = held.length;
      responses.push(trigger());
      await until("another attempt is in progress", () => held.length > before);
    }
  };
  const first = await prepare(service.key.text);
  const [second, third] = [await prepare(await addSandbox()), await prepare(await addSandbox())];
  const other = await prepare(service.other.text);
  await fill(TRIGGER_LIMITS.of_environment, first);

  await t.step("of an environment: 429, nothing written and nothing stored", async () => {
    const refused = await first({ idempotency_key: "bound" });
    assertRefused(refused, "rate_limited");
    assert.equal(refused.headers.get("Retry-After"), "1");
    const written = await service.count("events where sequence is null");
    assert.equal(written, TRIGGER_LIMITS.of_environment);
    assert.equal(await service.count("idempotency_keys"), 0);
  });
  await t.step("a reset does not renew the limit", async () => {
    await service.call("POST", "/api-v1-sandbox/reset");
    assertRefused(await first(), "rate_limited");
  });
  await t.step("of an account with further sandboxes", async () => {
    await fill(TRIGGER_LIMITS.of_account, second);
    assertRefused(await third(), "rate_limited");
  });
  await t.step("another account has a limit of its own", async () => {
    await fill(TRIGGER_LIMITS.of_account + 1, other);
  });
  await t.step("an ended attempt frees its slot", async () => {
    hooks.judge = () => 200;
    release();
    // The reset has deleted the deliveries of earlier triggers, so these get 404.
    const statuses = (await Promise.all(responses)).map(({ status }) => status);
    assert.deepEqual(new Set(statuses), new Set([200, 404]));
    assert.equal((await second()).status, 200);
  });
});
