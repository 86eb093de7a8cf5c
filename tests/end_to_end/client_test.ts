/**
 * The client over HTTP, as a program uses it: an inbox, a rate limit and the clock.
 * tests/openapi/code_samples_test.ts calls every operation with the client.
 */

import assert from "node:assert/strict";
import { type Event, verifyWebhook } from "../../packages/client/mod.ts";
import { withServedService } from "../support/service/served_service.ts";
import { addEndpoint, openRecorder } from "../support/webhook/recording_receiver.ts";

const EUR = { currency: "EUR" } as const;

Deno.test("the client reads an inbox, recovers its deliveries, and stops by a signal", () =>
  withServedService(async ({ client, clientWith }) => {
    const { id, secret } = await client.webhookEndpoints.create({ delivery: "inbox" });
    const paid = await client.payments.create({ amount: 8, ...EUR, outcome: "success" });
    const types: string[] = [];
    for await (const { body, headers } of client.webhookEndpoints.inbox(id, { limit: 1 })) {
      const event = await verifyWebhook<Event>(body, headers["Payment-Signature"], secret);
      types.push(event.type);
      if (event.type === "payment.completed") {
        assert.deepEqual(event.data.object, paid);
        break;
      }
    }
    assert.deepEqual(types, ["payment.created", "payment.completed"]);
    // The end of the loop has not acknowledged the last delivery.
    const page = await client.webhookEndpoints.inbox(id);
    assert.equal(page.data.length, 1);
    await client.webhookEndpoints.inbox(id, { after: page.next_cursor });
    const since = new Date(Date.now() - 60_000).toISOString();
    const recovery = await client.webhookEndpoints.recover(id, { since, status: "all" });
    assert.equal(recovery.count, 2);
    const abort = new AbortController();
    setTimeout(() => abort.abort("enough"), 200);
    const { next_cursor: after } = await client.webhookEndpoints.inbox(id);
    const left: string[] = [];
    const reads = async () => {
      // Another client, because an aborted exchange has no response.
      const waiting = clientWith({}).webhookEndpoints.inbox(id, { after }, {
        signal: abort.signal,
      });
      for await (const delivery of waiting) left.push(delivery.id);
    };
    assert.equal(await reads().catch((reason) => reason), "enough");
    assert.deepEqual(left, []);
  }));

Deno.test("the client waits at a rate limit as told, and succeeds", () =>
  withServedService(async ({ service, clientWith }) => {
    const waits: number[] = [];
    const client = clientWith({
      maxRetries: 20,
      runtime: {
        // The service's clock advances while the client waits.
        sleep(delay_ms) {
          waits.push(delay_ms);
          now += delay_ms;
          return service.setClock(now);
        },
      },
    });
    let now = Date.now();
    await service.setClock(now);
    for (let i = 0; i < 10; i++) await client.payments.create({ amount: 1, ...EUR });
    assert.equal(await service.count("payments"), 10);
    assert.ok(waits.length > 0);
    for (const wait of waits) assert.ok(wait >= 1_000, `${waits}`);
  }, { rate_limit: 1 }));

Deno.test("setClock is complete when others have moved the clock past its target", () =>
  withServedService(async ({ service, client, clientWith }) => {
    const slow = Promise.withResolvers<number>();
    const receiver = openRecorder(() => slow.promise);
    try {
      await addEndpoint(service, receiver.url("/hook"), { events: ["payment.created"] });
      const { now } = await client.sandbox.setClock({ mode: "frozen" });
      await service.pay();
      let requests = 0;
      const late = clientWith({
        async fetch(url, init) {
          // After the first response, which is not complete, others end the advance and go on.
          if (++requests === 2) {
            slow.resolve(200);
            await client.sandbox.setClock({ advance: 60 });
          }
          return await fetch(url, init);
        },
      });
      const clock = await late.sandbox.setClock({ advance: 10 });
      assert.deepEqual([clock.has_more, clock.target], [false, null]);
      assert.equal(Date.parse(clock.now), Date.parse(now) + 70_000);
      assert.equal(requests, 3);
      await assert.rejects(late.sandbox.setClock({ to: now }), { param: "to" });
    } finally {
      await receiver.close();
    }
  }));
