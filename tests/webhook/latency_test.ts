/** How soon after its commit an event arrives (promise of the nudge: no clock is waited for). */

import assert from "node:assert/strict";
import { measureLatencies, percentile, summary } from "./latencies.ts";
import { addEndpoint, settle } from "./recording_receiver.ts";
import { webhookCase } from "./webhook_case.ts";

const PAYMENTS = 300;
/** Loose, because other tests share the machine; idle it is far below. */
const P50_LIMIT_MS = 100;

webhookCase("an event arrives right after its commit", async (_, service, hooks) => {
  await addEndpoint(service, hooks.url("/"));
  await measureLatencies(service, hooks, 30, 1);
  const samples = await measureLatencies(service, hooks, PAYMENTS, 1);
  await settle(service);
  console.log(`commit to arrival: ${summary(samples)}`);
  assert.equal(samples.length, PAYMENTS);
  assert.ok(percentile(samples, 0.5) < P50_LIMIT_MS);
});
