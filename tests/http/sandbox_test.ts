/**
 * The sandbox function (contract §1, §5): its routes take only test keys, which precedence_test.ts
 * shows of one, and a reset deletes webhook endpoints only on request.
 */

import assert from "node:assert/strict";
import { PAYMENTS_FUNCTION_ROUTES } from "../../shared/functions/payments_function.ts";
import { SANDBOX_FUNCTION } from "../../shared/http/route.ts";
import { SANDBOX_ROUTES } from "../../shared/sandbox/sandbox_routes.ts";
import { RELAY_TOKEN } from "../support/service/service.ts";
import { until } from "../support/common/until.ts";
import { ENDPOINTS, WAKE } from "../support/webhook/recording_receiver.ts";
import { SANDBOX, serviceCase } from "../support/service/service_case.ts";

Deno.test("the routes of sandboxes take only test keys", () => {
  const served = [...PAYMENTS_FUNCTION_ROUTES, ...SANDBOX_ROUTES];
  for (const { id, home, scope, test_only } of served) {
    assert.equal(test_only, home === SANDBOX_FUNCTION, id);
    if (!test_only) assert.notEqual(scope, "sandbox:write", id);
  }
});

serviceCase("POST /reset deletes webhook endpoints on request", async (_t, service) => {
  const reset = (body: unknown) => service.call("POST", `${SANDBOX}/reset`, { body });
  await service.post(ENDPOINTS, { url: "https://hooks.example.com/payments" });
  const list = async () => (await service.get(ENDPOINTS)).data.length;
  await service.pay({ amount: 1000 });
  const stays = await reset({ webhook_endpoints: false });
  assert.deepEqual([stays.body.deleted.webhook_endpoints, await list()], [0, 1]);
  await service.pay({ amount: 1000 });
  const gone = await reset({ webhook_endpoints: true });
  assert.deepEqual([gone.body.deleted.webhook_endpoints, await list()], [1, 0]);
  // A reset skips a delivery that the dispatcher has locked. The next poll cancels it.
  await until("no delivery is due", async () => {
    await service.call("POST", WAKE, { key: RELAY_TOKEN });
    return await service.count("webhook_deliveries where status = 'pending'") === 0;
  });
});
