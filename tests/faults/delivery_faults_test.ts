/**
 * Faults of webhook deliveries: the dispatcher gives each fault to the next attempts that match,
 * exactly as often as it was declared, and the other deliveries arrive as usual.
 */

import assert from "node:assert/strict";
import { verifyWebhook } from "../../packages/client/webhook_signature.ts";
import { declare, FAULTS, left } from "../support/service/declared_faults.ts";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import { advance, SANDBOX } from "../support/service/service_case.ts";
import type { TestService } from "../support/service/service.ts";
import {
  addEndpoint,
  type Arrival,
  DELIVERIES,
  deliveriesOf,
  settle,
  shown,
} from "../support/webhook/recording_receiver.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";

const AT = Date.parse("2026-08-09T10:11:12.013Z");

/** Declares a fault on deliveries. */
function faulty(service: TestService, fault: string, more: Record<string, unknown> = {}) {
  return declare(service, { on: "delivery", fault, ...more });
}

/** Returns the value of the header `Sandbox-Fault` of each arrival. */
function faultsOf(arrivals: readonly Arrival[]): (string | null)[] {
  return arrivals.map(({ headers }) => headers.get("Sandbox-Fault"));
}

webhookCase("a delivery with a fault", async (t, service, hooks) => {
  const { secret } = await addEndpoint(service, hooks.url("/"));
  let now = AT;
  const at = async (at_ms: number) => {
    await service.setClock(now = at_ms);
    await settle(service);
  };
  const pay = async () => {
    hooks.arrivals.length = 0;
    await service.setClock(now);
    const { body } = await service.make({ outcome: "success" });
    await settle(service);
    return body.id as string;
  };
  const isSigned = ({ text, headers }: Arrival) =>
    verifyWebhook(text, headers.get("Payment-Signature"), secret, { now_ms: now })
      .then(() => true, () => false);

  await t.step("without a fault it arrives once, without the header", async () => {
    await pay();
    assert.deepEqual(shown(hooks.arrivals), ["payment.created 1", "payment.completed 1"]);
    assert.deepEqual(faultsOf(hooks.arrivals), [null, null]);
  });

  await t.step("duplicate arrives twice, with the same id and one attempt", async () => {
    const fault = await faulty(service, "duplicate");
    const id = await pay();
    assert.deepEqual(shown(hooks.arrivals), [
      "payment.created 1",
      "payment.created 1",
      "payment.completed 1",
    ]);
    assert.deepEqual(faultsOf(hooks.arrivals), ["duplicate", "duplicate", null]);
    const [first, second] = hooks.arrivals;
    assert.equal(first!.headers.get("Webhook-Id"), second!.headers.get("Webhook-Id"));
    const [delivery] = await deliveriesOf(service, `&payment_id=${id}`);
    assert.deepEqual([delivery.status, delivery.attempts.length], ["delivered", 1]);
    assert.equal(await left(service, fault), 0);
  });

  await t.step("wrong_signature is refused, and the retry is signed", async () => {
    await faulty(service, "wrong_signature");
    hooks.judge = async (arrival) => await isSigned(arrival) ? 200 : 400;
    await pay();
    assert.deepEqual(shown(hooks.arrivals), ["payment.created 1"]);
    assert.deepEqual(faultsOf(hooks.arrivals), ["wrong_signature"]);
    await at(now + 5_000);
    assert.deepEqual(shown(hooks.arrivals), [
      "payment.created 1",
      "payment.created 2",
      "payment.completed 1",
    ]);
    assert.deepEqual(faultsOf(hooks.arrivals), ["wrong_signature", null, null]);
    hooks.judge = () => 200;
  });

  await t.step("delay arrives later, and the events behind it wait", async () => {
    await faulty(service, "delay", { delay_ms: 7_000 });
    await pay();
    assert.deepEqual(shown(hooks.arrivals), []);
    await at(now + 6_999);
    assert.deepEqual(shown(hooks.arrivals), []);
    await at(now + 1);
    await at(now + 1_000);
    assert.deepEqual(shown(hooks.arrivals), ["payment.created 1", "payment.completed 1"]);
    assert.deepEqual(faultsOf(hooks.arrivals), ["delay", null]);
  });

  await t.step("a delayed event keeps its delay when the one before it is delivered", async () => {
    await faulty(service, "delay", { delay_ms: 7_000, where: { event_type: "payment.completed" } });
    await pay();
    assert.deepEqual(shown(hooks.arrivals), ["payment.created 1"]);
    await at(now + 6_999);
    assert.deepEqual(shown(hooks.arrivals), ["payment.created 1"]);
    await at(now + 1);
    assert.deepEqual(shown(hooks.arrivals), ["payment.created 1", "payment.completed 1"]);
    assert.deepEqual(faultsOf(hooks.arrivals), [null, "delay"]);
  });

  await t.step("a delay with times 2 delays two deliveries, and none twice", async () => {
    const fault = await faulty(service, "delay", { delay_ms: 1_000, times: 2 });
    await pay();
    await at(now + 1_000);
    await at(now + 1_000);
    await at(now + 1_000);
    assert.deepEqual(shown(hooks.arrivals), ["payment.created 1", "payment.completed 1"]);
    assert.deepEqual(faultsOf(hooks.arrivals), ["delay", "delay"]);
    assert.equal(await left(service, fault), 0);
  });

  await t.step("reorder arrives after its successor", async () => {
    await faulty(service, "reorder");
    await pay();
    assert.deepEqual(shown(hooks.arrivals), ["payment.completed 1", "payment.created 1"]);
    assert.deepEqual(faultsOf(hooks.arrivals), [null, "reorder"]);
  });

  await t.step("reorder with times 2 does not undo itself", async () => {
    const fault = await faulty(service, "reorder", { times: 2 });
    await pay();
    assert.deepEqual(shown(hooks.arrivals), ["payment.completed 1", "payment.created 1"]);
    assert.equal(await left(service, fault), 1);
    await pay();
    assert.deepEqual(shown(hooks.arrivals), ["payment.completed 1", "payment.created 1"]);
    assert.equal(await left(service, fault), 0);
  });

  await t.step("the successor of a reordered delivery has a fault of its own", async () => {
    await faulty(service, "reorder", { where: { event_type: "payment.created" } });
    await faulty(service, "duplicate", { where: { event_type: "payment.completed" } });
    await pay();
    assert.deepEqual(shown(hooks.arrivals), [
      "payment.completed 1",
      "payment.completed 1",
      "payment.created 1",
    ]);
    assert.deepEqual(faultsOf(hooks.arrivals), ["duplicate", "duplicate", "reorder"]);
  });

  await t.step("reorder waits for a successor that does not exist yet", async () => {
    await faulty(service, "reorder", { where: { event_type: "payment.completed" } });
    const id = await pay();
    assert.deepEqual(shown(hooks.arrivals), ["payment.created 1"]);
    await at(now + 2_000);
    assert.deepEqual(shown(hooks.arrivals), ["payment.created 1"]);
    await advance(service, id, "chargeback");
    await settle(service);
    assert.deepEqual(shown(hooks.arrivals), [
      "payment.created 1",
      "dispute.created 1",
      "payment.chargeback 1",
      "payment.completed 1",
    ]);
    assert.deepEqual(faultsOf(hooks.arrivals), [null, null, null, "reorder"]);
  });

  await t.step("reorder without a successor arrives after a minute", async () => {
    await faulty(service, "reorder", { where: { event_type: "payment.completed" } });
    await pay();
    await at(now + 59_999);
    assert.deepEqual(shown(hooks.arrivals), ["payment.created 1"]);
    await at(now + 1);
    assert.deepEqual(shown(hooks.arrivals), ["payment.created 1", "payment.completed 1"]);
  });

  await t.step("drop_until_recovered arrives only when it is sent again", async () => {
    const fault = await faulty(service, "drop_until_recovered");
    const id = await pay();
    assert.deepEqual(shown(hooks.arrivals), ["payment.completed 1"]);
    assert.equal(await left(service, fault), 0);
    await at(now + 86_400_000);
    assert.equal(hooks.arrivals.length, 1);
    const [dropped] = await deliveriesOf(service, `&payment_id=${id}&status=failed`);
    assert.deepEqual([dropped.event_type, dropped.attempts, dropped.next_attempt_at], [
      "payment.created",
      [],
      null,
    ]);
    // A fault that is still open does not drop it again.
    const open = await faulty(service, "drop_until_recovered", { times: 5 });
    const again = await service.call("POST", `${DELIVERIES}/${dropped.id}/redeliver`);
    assert.equal(again.status, 200);
    await settle(service);
    assert.deepEqual(shown(hooks.arrivals), ["payment.completed 1", "payment.created 1"]);
    assert.deepEqual(faultsOf(hooks.arrivals), [null, "drop_until_recovered"]);
    await service.call("DELETE", `${FAULTS}/${open.id}`);
  });

  await t.step("a dropped successor makes the reordered delivery due", async () => {
    await faulty(service, "reorder", { where: { event_type: "payment.completed" } });
    const id = await pay();
    await faulty(service, "drop_until_recovered", { where: { event_type: "dispute.created" } });
    await advance(service, id, "chargeback");
    await settle(service);
    assert.deepEqual(shown(hooks.arrivals), [
      "payment.created 1",
      "payment.chargeback 1",
      "payment.completed 1",
    ]);
  });

  await t.step("the invariants hold", async () => {
    await assertSilent(service.sql);
  });
});

webhookCase(
  "a reordered delivery follows a retry by a frozen clock",
  async (_t, service, hooks) => {
    const clock = (body: unknown) => service.call("POST", `${SANDBOX}/clock`, { body });
    await addEndpoint(service, hooks.url("/"));
    await clock({ mode: "frozen" });
    await faulty(service, "reorder");
    hooks.judge = ({ headers }) => headers.get("Webhook-Attempt") === "1" ? 500 : 200;
    await service.make({ outcome: "success" });
    await settle(service);
    assert.deepEqual(shown(hooks.arrivals), ["payment.completed 1"]);
    await clock({ advance: 5 });
    assert.deepEqual(shown(hooks.arrivals).slice(0, 3), [
      "payment.completed 1",
      "payment.completed 2",
      "payment.created 1",
    ]);
  },
);

webhookCase("the conditions of a fault on deliveries", async (t, service, hooks) => {
  const one = await addEndpoint(service, hooks.url("/one"));
  await addEndpoint(service, hooks.url("/two"));
  const other = service.other.text;
  await addEndpoint(service, hooks.url("/other"), {}, { key: other });
  const arrivals = async (fault: string, where: Record<string, string>) => {
    const declared = await faulty(service, fault, { where });
    hooks.arrivals.length = 0;
    await service.make({ outcome: "success" });
    await settle(service);
    assert.equal(await left(service, declared), 0);
    return (path: string) => shown(hooks.at(path));
  };

  await t.step("endpoint_id", async () => {
    const at = await arrivals("duplicate", { endpoint_id: one.id });
    assert.equal(at("/one").length, 3);
    assert.equal(at("/two").length, 2);
  });
  await t.step("event_type", async () => {
    const at = await arrivals("drop_until_recovered", { event_type: "payment.completed" });
    assert.equal(at("/one").length + at("/two").length, 3);
    assert.equal([...at("/one"), ...at("/two")].filter((e) => e === "payment.created 1").length, 2);
  });
  await t.step("both", async () => {
    const where = { endpoint_id: one.id, event_type: "payment.completed" };
    const at = await arrivals("drop_until_recovered", where);
    assert.deepEqual(at("/one"), ["payment.created 1"]);
    assert.equal(at("/two").length, 2);
  });
  await t.step("another sandbox notices nothing", async () => {
    const fault = await faulty(service, "drop_until_recovered");
    hooks.arrivals.length = 0;
    await service.make({ outcome: "success" }, { key: other });
    await settle(service);
    assert.equal(hooks.at("/other").length, 2);
    assert.equal(await left(service, fault), 1);
  });
  await t.step("a triggered event has no fault", async () => {
    const { body: payment } = await service.make({ outcome: "pending" });
    await settle(service);
    hooks.arrivals.length = 0;
    const fault = await faulty(service, "drop_until_recovered");
    await service.call("POST", `${SANDBOX}/webhooks/trigger`, {
      body: { endpoint_id: one.id, event: "payment.completed", payment_id: payment.id },
    });
    assert.equal(hooks.at("/one").length, 1);
    assert.equal(await left(service, fault), 1);
  });
});

webhookCase("a fault with times 7 drops 7 of 64 deliveries", async (_t, service, hooks) => {
  await addEndpoint(service, hooks.url("/"), { events: ["payment.created"] });
  const fault = await faulty(service, "drop_until_recovered", { times: 7 });
  await Promise.all(Array.from({ length: 64 }, () => service.make({ outcome: "pending" })));
  await settle(service);
  assert.equal(hooks.arrivals.length, 57);
  assert.equal(await left(service, fault), 0);
  assert.equal((await deliveriesOf(service, "&status=failed")).length, 7);
});
