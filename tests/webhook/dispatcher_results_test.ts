/** The results of attempts that one poll of the dispatcher records together. */

import assert from "node:assert/strict";
import {
  AT,
  insertEndpoint,
  NO_DISPATCHER,
  poll,
  resultOf,
} from "../support/webhook/dispatcher_polls.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";

const RETRY_MS = 60_000;

webhookCase("poll_deliveries() records a failure and its retry beside a success", async (
  _,
  service,
) => {
  await service.setClock(AT);
  await insertEndpoint(service);
  await service.make({ outcome: "success" });
  const [first, second] = await poll(service, AT);
  const results = [resultOf(first!, true, AT), resultOf(second!, false, AT)];
  assert.equal((await poll(service, AT, { results })).length, 0);
  assert.equal((await poll(service, AT + RETRY_MS - 1)).length, 0);
  const retried = await poll(service, AT + RETRY_MS);
  assert.deepEqual(retried.map(({ id, attempt }) => [id, attempt]), [[second!.id, 2]]);
}, NO_DISPATCHER);
