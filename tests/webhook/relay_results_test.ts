/** The results of attempts that one turn of the relay records together. */

import assert from "node:assert/strict";
import { AT, insertEndpoint, NO_RELAY, resultOf, turn } from "../support/webhook/relay_turns.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";

const RETRY_MS = 60_000;

webhookCase("relay_turn() records a failure and its retry beside a success", async (
  _,
  service,
) => {
  await service.setClock(AT);
  await insertEndpoint(service);
  await service.make({ outcome: "success" });
  const [first, second] = await turn(service, AT);
  const results = [resultOf(first!, true, AT), resultOf(second!, false, AT)];
  assert.equal((await turn(service, AT, { results })).length, 0);
  assert.equal((await turn(service, AT + RETRY_MS - 1)).length, 0);
  const retried = await turn(service, AT + RETRY_MS);
  assert.deepEqual(retried.map(({ id, attempt }) => [id, attempt]), [[second!.id, 2]]);
}, NO_RELAY);
