/** A provider that does not respond to a poll does not hold up other work. */

import assert from "node:assert/strict";
import { until } from "../support/common/until.ts";
import { liveCase } from "../support/live/live_case.ts";

liveCase("an unknown create is settled while a poll hangs", async (given) => {
  const { double, service, pay, call, work } = given;
  await double.plant({ method: "GET", path: "^/v1/events$", at: "before", act: "hang" });
  const polling = work();
  await until("the poll is under way", async () => (await double.waitingFaults()).length === 0);

  await double.plant({ method: "POST", path: "^/v1/payment_intents$", at: "after", act: "error" });
  const { body: created } = await pay();
  assert.equal(created.status, "processing");
  await service.sql`update pay.provider_operations set next_attempt_at = now()`;
  work();
  await until("the create is settled", async () => {
    const { body: { status } } = await call("GET", `/payments/${created.id}`);
    return status === "completed";
  }, 10_000);
  // This ends the connection of the poll.
  await double.restart();
  await polling;
});
