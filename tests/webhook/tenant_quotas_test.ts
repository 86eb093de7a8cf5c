/**
 * A tenant with slow receivers delays no other tenant's deliveries (promise R13), with the real
 * timeouts. Resets and new endpoints give the tenant no more slots.
 */

import assert from "node:assert/strict";
import { startService, type TestService } from "../support/service/service.ts";
import { addEndpoint, ENDPOINTS, openRecorder } from "../support/webhook/recording_receiver.ts";
import { until } from "../support/common/until.ts";

const ENDPOINTS_EACH = 4;
const PAYMENTS_EACH = 20;
const RESETS = 8;
/** The attempts that a new and a fast environment may have in progress (delivery_queue.ts). */
const QUOTA = { new: 16, quick: 64 };
/** A dispatcher without a free slot delivers only after a timeout of 15 s. */
const AT_ONCE_MS = 12_000;

/** A receiver that holds its responses until the test releases them. */
function openHolder() {
  let is_quick = false;
  const held: (() => void)[] = [];
  const receiver = openRecorder(() =>
    is_quick ? 200 : new Promise<number>((resolve) => held.push(() => resolve(200)))
  );
  return {
    receiver,
    held,
    setQuick: (quick: boolean) => is_quick = quick,
  };
}

/** Creates endpoints and payments, resets the sandbox and deletes the endpoints, in a loop. */
async function attack(service: TestService, port: number): Promise<void> {
  const options = { key: service.other.text };
  const before = await service.environmentOf(service.other);
  for (let round = 0; round < RESETS; round++) {
    const ids: string[] = [];
    for (let i = 0; i < ENDPOINTS_EACH; i++) {
      ids.push((await addEndpoint(service, `http://127.0.0.1:${port}/slow`, {}, options)).id);
    }
    for (let i = 0; i < PAYMENTS_EACH; i++) await service.make({ outcome: "success" }, options);
    // On a busy machine a reset can be refused; the attack continues.
    await service.call("POST", "/api-v1-sandbox/reset", options);
    for (const id of ids) await service.call("DELETE", `${ENDPOINTS}/${id}`, options);
  }
  assert.notEqual(await service.environmentOf(service.other), before);
}

for (
  const [name, is_known, quota] of [
    ["a new tenant", false, QUOTA.new],
    ["a tenant that was fast before", true, QUOTA.quick],
  ] as const
) {
  Deno.test(`${name} keeps within its quota after resets and deletions`, async (t) => {
    const service = await startService();
    const holder = openHolder();
    const healthy = openRecorder();
    try {
      await addEndpoint(service, healthy.url("/"));
      if (is_known) {
        holder.setQuick(true);
        const options = { key: service.other.text };
        const { id } = await addEndpoint(service, holder.receiver.url("/quick"), {}, options);
        for (let i = 0; i < 2 * QUOTA.quick; i++) {
          await service.make({ outcome: "pending" }, options);
        }
        const all = () => holder.receiver.arrivals.length === 2 * QUOTA.quick;
        await until("all have arrived", all);
        await service.call("DELETE", `${ENDPOINTS}/${id}`, options);
        holder.setQuick(false);
      }
      await attack(service, holder.receiver.port);
      const started = performance.now();
      for (let i = 0; i < PAYMENTS_EACH; i++) await service.make({ outcome: "success" });
      await until("the other's have arrived", () => healthy.arrivals.length === 2 * PAYMENTS_EACH);
      const took_ms = performance.now() - started;
      await t.step("another tenant's deliveries arrive at once", () => {
        assert.ok(took_ms < AT_ONCE_MS, `${took_ms} ms`);
      });
      await t.step(`it has at most ${quota} attempts in progress`, () => {
        assert.ok(holder.held.length > 0);
        assert.ok(holder.held.length <= quota, `${holder.held.length} attempts are held`);
      });
    } finally {
      // These run together: the service waits for attempts in progress, and the receiver ends those
      // that it holds.
      await Promise.all([service.close(), holder.receiver.close(), healthy.close()]);
    }
  });
}

Deno.test("silent receivers of one tenant do not delay another tenant's deliveries", async () => {
  const service = await startService();
  const silent = Array.from({ length: 16 }, () => openHolder());
  const healthy = openRecorder();
  const options = { key: service.other.text };
  try {
    for (const { receiver } of silent) {
      await addEndpoint(service, receiver.url("/"), {}, options);
    }
    await addEndpoint(service, healthy.url("/"));
    for (let i = 0; i < PAYMENTS_EACH; i++) await service.make({ outcome: "success" }, options);
    const started = performance.now();
    for (let i = 0; i < PAYMENTS_EACH; i++) await service.make({ outcome: "success" });
    await until("all have arrived", () => healthy.arrivals.length === 2 * PAYMENTS_EACH);
    const took_ms = performance.now() - started;
    assert.ok(took_ms < AT_ONCE_MS, `${took_ms} ms`);
    const held = silent.reduce((sum, { held }) => sum + held.length, 0);
    assert.equal(held, QUOTA.new);
  } finally {
    const receivers = [healthy, ...silent.map(({ receiver }) => receiver)];
    await Promise.all([service.close(), ...receivers.map((receiver) => receiver.close())]);
  }
});
