/** `sandbox.setClock` while other requests move the clock. */

import assert from "node:assert/strict";
import { addEndpoint, openRecorder } from "../support/webhook/recording_receiver.ts";
import { withServedService } from "../support/service/served_service.ts";

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
