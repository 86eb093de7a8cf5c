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
  DELIVERIES,
  ENDPOINTS,
  EVENTS,
  settle,
  TRIGGER,
} from "../support/webhook/recording_receiver.ts";
import { idGenerator } from "../../shared/core/ids.ts";
import type { TestService } from "../support/service/service.ts";
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
    const name = event.startsWith("transfer.") ? `${event} is no event of a payment` : event;
    await t.step(name, async () => {
      hooks.arrivals.length = 0;
      const body = { endpoint_id, event, payment_id: payment.id };
      const response = await service.call("POST", TRIGGER, { body });
      if (event.startsWith("transfer.")) {
        assertRefused(response, 400, "invalid_parameter", "event");
        assert.equal(hooks.arrivals.length, 0);
        return;
      }
      assert.equal(response.status, 200, response.text);
      const [arrival, ...more] = hooks.arrivals;
      assert.equal(more.length, 0);
      assert.equal(arrival!.path, "/");
      assert.equal(arrival!.headers.get("Webhook-Attempt"), "1");
      const header = arrival!.headers.get("Payment-Signature");
      const payload = await verifyWebhook(arrival!.bytes, header, secret);
      assert.deepEqual([payload.type, payload.triggered], [event, true]);
      // deno-lint-ignore no-explicit-any
      const { object } = payload.data as any;
      if (event.startsWith("payment.")) assert.deepEqual(object, payment);
      if (event.startsWith("refund.")) {
        assert.deepEqual([object.object, object.payment_id, object.amount], [
          "refund",
          payment.id,
          1000,
        ]);
        const status = event.replace("refund.", "").replace(/^(created|updated)$/, "pending");
        const code = status === "failed" ? "processing_failed" : null;
        assert.deepEqual([object.status, object.failure_code], [status, code]);
      }
      if (["ping", "webhook_endpoint.disabled"].includes(event)) {
        assert.equal(object.id, endpoint_id);
        assert.equal(object.secret, undefined);
      }
      const { id, attempts, status, next_attempt_at, event_id, event_type, payment_id } =
        response.body;
      assert.deepEqual([status, next_attempt_at, event_id, event_type, payment_id], [
        "delivered",
        null,
        payload.id,
        event,
        payment.id,
      ]);
      assert.deepEqual([attempts.length, attempts[0].response_status], [1, 200]);
      const { exchanges, ...shown } = (await service.call("GET", `${DELIVERIES}/${id}`)).body;
      assert.deepEqual(shown, response.body);
      assert.equal(exchanges[0].request.body, arrival!.text);
      assert.equal((await service.call("GET", `${EVENTS}/${event_id}`)).text, arrival!.text);
    });
  }
  await t.step("the payment does not change", async () => {
    const after = await recordOf(service, payment.id);
    const real = after.events.filter(({ sequence }) => sequence !== null);
    assert.deepEqual(real, before.events);
    assert.equal(after.body, before.body);
    assert.deepEqual(after.ledger, before.ledger);
    assert.equal(
      (await service.call("GET", `${PAYMENTS}/${payment.id}/refunds`)).body.data.length,
      0,
    );
  });
  await t.step("the dispatcher has nothing to deliver", async () => {
    hooks.arrivals.length = 0;
    await service.setClock(Date.now() + 86_400_000);
    await settle(service);
    await service.setClock(null);
    assert.equal(hooks.arrivals.length, 0);
  });
});

const FAILURES: [name: string, judge: () => number, response_status: number][] = [
  ["500", () => 500, 500],
  ["302", () => 302, 302],
  ["410, which does not disable the endpoint", () => 410, 410],
];
webhookCase("POST /webhooks/trigger is 200 if the receiver fails", async (t, service, hooks) => {
  const { id: endpoint_id } = await addEndpoint(service, hooks.url("/"), { events: ["ping"] });
  const payment_id = (await service.make()).body.id;
  const body = { endpoint_id, event: "payment.completed", payment_id };
  for (const [name, judge, response_status] of FAILURES) {
    await t.step(name, async () => {
      hooks.judge = judge;
      const response = await service.call("POST", ALIAS, { body });
      assert.equal(response.status, 200);
      const { status, attempts, next_attempt_at } = response.body;
      assert.deepEqual([status, next_attempt_at, attempts.length], ["failed", null, 1]);
      assert.deepEqual([attempts[0].response_status, attempts[0].error], [response_status, null]);
    });
  }
  await t.step("no receiver at the address", async () => {
    const nobody = await addEndpoint(service, "http://127.0.0.1:2/");
    const response = await service.call("POST", TRIGGER, {
      body: { ...body, endpoint_id: nobody.id },
    });
    assert.equal(response.status, 200);
    assert.deepEqual([response.body.status, response.body.attempts[0].error], [
      "failed",
      "connection_failed",
    ]);
  });
  await t.step("a failure is not retried", async () => {
    const before = hooks.arrivals.length;
    await service.setClock(Date.now() + 86_400_000);
    await settle(service);
    assert.equal(hooks.arrivals.length, before);
    const endpoint = await service.call("GET", `${ENDPOINTS}/${endpoint_id}`);
    assert.equal(endpoint.body.status, "enabled");
  });
});

webhookCase("POST /webhooks/trigger refuses invalid requests", async (t, service, hooks) => {
  const { id: endpoint_id } = await addEndpoint(service, hooks.url("/"), { events: ["ping"] });
  const foreign = await addEndpoint(service, hooks.url("/"), { events: ["ping"] }, {
    key: service.other.text,
  });
  const payment_id = (await service.make()).body.id;
  const strange = (await service.make({}, { key: service.other.text })).body.id;
  const event = "payment.completed";
  const cases: [string, Record<string, unknown>, number, string, string?][] = [
    ["an unknown kind", { endpoint_id, payment_id, event: "payment.paid" }, 400, "event"],
    ["a pattern", { endpoint_id, payment_id, event: "payment.*" }, 400, "event"],
    ["no kind", { endpoint_id, payment_id }, 400, "event"],
    ["no endpoint", { event, payment_id }, 400, "endpoint_id"],
    ["no payment", { event, endpoint_id }, 400, "payment_id"],
    ["an unknown endpoint", { event, payment_id, endpoint_id: `whe_${"0".repeat(26)}` }, 404, ""],
    ["an unknown payment", { event, endpoint_id, payment_id: `pay_${"0".repeat(26)}` }, 404, ""],
    ["an endpoint that is no id", { event, payment_id, endpoint_id: "x" }, 404, ""],
    ["another environment's endpoint", { event, payment_id, endpoint_id: foreign.id }, 404, ""],
    ["another environment's payment", { event, endpoint_id, payment_id: strange }, 404, ""],
  ];
  hooks.arrivals.length = 0;
  for (const [name, body, status, param] of cases) {
    await t.step(`${name}: ${status}`, async () => {
      const response = await service.call("POST", TRIGGER, { body, idempotency_key: "refused" });
      if (status === 404) assertRefused(response, 404, "not_found");
      else assertRefused(response, 400, "invalid_parameter", param);
    });
  }
  await t.step("a live key: 403", async () => {
    const body = { endpoint_id, event, payment_id };
    const response = await service.call("POST", TRIGGER, { body, key: service.live.text });
    assertRefused(response, 403, "test_key_required");
  });
  await t.step("nothing was sent, written or stored", async () => {
    assert.equal(hooks.arrivals.length, 0);
    const written = await service.sql`select from pay.events where sequence is null`;
    const kept = await service.sql`select from pay.idempotency_keys`;
    assert.deepEqual([written.length, kept.length], [0, 0]);
  });
});

webhookCase("POST /webhooks/trigger makes one attempt for duplicates at the same time", async (
  t,
  service,
  hooks,
) => {
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
    assertRefused(duplicate, 409, "idempotency_in_progress");
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

webhookCase("POST /webhooks/trigger limits the attempts in progress", async (
  t,
  service,
  hooks,
) => {
  const held: (() => void)[] = [];
  hooks.judge = () => new Promise((resolve) => held.push(() => resolve(200)));
  const { id: endpoint_id } = await addEndpoint(service, hooks.url("/"), { events: ["ping"] });
  const sibling = await service.issueKey(await addSandbox(service, "one"));
  /** A body for a trigger of a new payment. */
  const bodyOf = async (key: string, id: string) => {
    const payment_id = (await service.make({ outcome: "pending" }, { key })).body.id;
    return { endpoint_id: id, event: "ping", payment_id };
  };
  const body = await bodyOf(service.key.text, endpoint_id);
  const responses: Promise<{ status: number }>[] = [];
  /** Sends triggers until `count` attempts are in progress. */
  const fill = async (count: number, key: string, body: unknown) => {
    while (held.length < count) {
      const before = held.length;
      responses.push(service.call("POST", TRIGGER, { body, key }));
      await until("another attempt is in progress", () => held.length > before);
    }
  };
  await fill(TRIGGER_LIMITS.of_environment, service.key.text, body);
  const written = () => service.sql`select from pay.events where sequence is null`;

  await t.step("of an environment: 429, nothing written and nothing stored", async () => {
    const options = { body, idempotency_key: "bound" };
    const refused = await service.call("POST", TRIGGER, options);
    assertRefused(refused, 429, "rate_limited");
    assert.equal(refused.headers.get("Retry-After"), "1");
    assert.equal(held.length, TRIGGER_LIMITS.of_environment);
    assert.equal((await written()).length, TRIGGER_LIMITS.of_environment);
    assert.equal((await service.sql`select from pay.idempotency_keys`).length, 0);
  });
  await t.step("a reset does not renew the limit", async () => {
    await service.call("POST", "/api-v1-sandbox/reset");
    const again = await bodyOf(service.key.text, endpoint_id);
    const refused = await service.call("POST", TRIGGER, { body: again });
    assertRefused(refused, 429, "rate_limited");
  });
  const more = await addEndpoint(service, hooks.url("/"), { events: ["ping"] }, {
    key: sibling.text,
  });
  const siblings = await bodyOf(sibling.text, more.id);
  await t.step("of an account with a second sandbox", async () => {
    await fill(TRIGGER_LIMITS.of_account, sibling.text, siblings);
    const third = await service.issueKey(await addSandbox(service, "one"));
    const last = await addEndpoint(service, hooks.url("/"), { events: ["ping"] }, {
      key: third.text,
    });
    const refused = await service.call("POST", TRIGGER, {
      body: await bodyOf(third.text, last.id),
      key: third.text,
    });
    assertRefused(refused, 429, "rate_limited");
  });
  await t.step("another account has a limit of its own", async () => {
    const { text } = service.other;
    const other = await addEndpoint(service, hooks.url("/"), { events: ["ping"] }, { key: text });
    await fill(TRIGGER_LIMITS.of_account + 1, text, await bodyOf(text, other.id));
  });
  await t.step("an ended attempt frees its slot", async () => {
    hooks.judge = () => 200;
    for (const respond of held) respond();
    // The reset has deleted the deliveries of earlier triggers, so these get 404.
    const statuses = (await Promise.all(responses)).map(({ status }) => status);
    assert.deepEqual(new Set(statuses), new Set([200, 404]));
    const fresh = await service.call("POST", TRIGGER, { body: siblings, key: sibling.text });
    assert.equal(fresh.status, 200);
  });
});

/** Adds another sandbox to an account. */
async function addSandbox(service: TestService, account: string): Promise<string> {
  const id = idGenerator(Date.now())("env_");
  await service.sql`select pay.create_environment(${id}, ${account}, false, 'test')`;
  return id;
}
