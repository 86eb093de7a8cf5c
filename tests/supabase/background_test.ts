/**
 * The edge runtime ends an isolate after its response unless the function passes its background
 * work to EdgeRuntime.waitUntil: the dispatcher's work after a payment and after a wake.
 */

import assert from "node:assert/strict";
import { cloneDatabase } from "../support/database/database.ts";
import { startFunctions } from "../support/supabase/function_process.ts";
import { keyedCall } from "../support/service/keyed_call.ts";
import { MASTER_SECRET, RELAY_TOKEN } from "../support/service/service.ts";
import { makeSandboxKey } from "../support/database/api_keys.ts";

const NAME = "api-v1-payments";
/** The process reports each promise through a pipe. Only a failure takes this long. */
const HEARD_WITHIN_MS = 20_000;

Deno.test("EdgeRuntime.waitUntil gets the dispatcher's background work", async (t) => {
  const database = await cloneDatabase();
  const key = await makeSandboxKey(database.url);
  const process = await startFunctions([NAME], {
    PAYMENTS_DB_URL: database.functions_url,
    PUBLIC_BASE_URL: "https://api.example.com/functions/v1",
    WEBHOOK_MASTER_SECRET: MASTER_SECRET,
    ALLOW_PRIVATE_WEBHOOKS: "true",
    RELAY_TOKEN,
  });
  const post = (path: string, key: string, body?: unknown) =>
    keyedCall(process.origin, "POST", `/${NAME}${path}`, { key, body });
  /**
   * The number of promises that `work` passes on. Waits for the first one, or until the deadline.
   */
  const handedOver = async (work: () => Promise<void>) => {
    const before = process.handedOver();
    await work();
    const until = performance.now() + HEARD_WITHIN_MS;
    while (process.handedOver() === before && performance.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    return process.handedOver() - before;
  };
  try {
    const endpoint = { url: "http://127.0.0.1:40999/hook", events: ["*"] };
    const { status, text } = await post("/v1/webhook_endpoints", key, endpoint);
    assert.equal(status, 201, text);
    await t.step("after a payment with an endpoint", async () => {
      const count = await handedOver(async () => {
        const body = { amount: 100, currency: "EUR", outcome: "success" };
        assert.equal((await post("/v1/payments", key, body)).status, 201);
      });
      assert.ok(count > 0);
    });
    await t.step("after POST /internal/relay", async () => {
      const count = await handedOver(async () => {
        assert.equal((await post("/internal/relay", RELAY_TOKEN)).status, 202);
      });
      assert.ok(count > 0);
    });
    assert.deepEqual(process.complaints, []);
  } finally {
    await process.close();
    await database.drop();
  }
});
