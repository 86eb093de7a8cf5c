/**
 * The sandbox function (contract §1, §2, §5): it creates payments in any status, refuses live keys
 * without a database statement, and resets one environment and no other.
 */

import assert from "node:assert/strict";
import { PAYMENTS_FUNCTION_ROUTES } from "../../shared/functions/payments_function.ts";
import { SANDBOX_FUNCTION } from "../../shared/http/route.ts";
import { SANDBOX_ROUTES } from "../../shared/sandbox/sandbox_routes.ts";
import { RELAY_TOKEN, type TestService } from "../support/service/service.ts";
import { contentOf } from "../support/database/environment_content.ts";
import { rowCounts } from "../support/database/payment_records.ts";
import { bodyOf, pathOf, ROUTES } from "../support/http/routes.ts";
import { until } from "../support/common/until.ts";
import { ENDPOINTS, WAKE } from "../support/webhook/recording_receiver.ts";
import {
  assertRefused,
  paymentIn,
  PAYMENTS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";

const OUTCOMES = ["success", "declined", "pending", "refunded", "chargeback"];

Deno.test("the routes of sandboxes take only test keys", () => {
  const served = [...PAYMENTS_FUNCTION_ROUTES, ...SANDBOX_ROUTES];
  for (const { id, home, scope, test_only } of served) {
    assert.equal(test_only, home === SANDBOX_FUNCTION, id);
    if (!test_only) assert.notEqual(scope, "sandbox:write", id);
  }
});

serviceCase("sandbox routes refuse live keys", async (t, service) => {
  const payment = await paymentIn(service, "pending");
  const before = await rowCounts(service);
  // The key is checked once.
  await service.call("GET", PAYMENTS, { key: service.live.text });
  for (const route of ROUTES.filter(([, path]) => path.includes("sandbox"))) {
    const [method, path] = route;
    const body = method === "GET" ? undefined : bodyOf(method, path);
    const cases: [id: string, body: unknown, headers?: Record<string, string>][] = [
      [payment.id, body],
      [`pay_${"0".repeat(26)}`, body],
      [payment.id, "{"],
      [payment.id, "x", { "Content-Type": "text/plain" }],
      [payment.id, JSON.stringify({ x: "x".repeat(70_000) })],
      [payment.id, body, { "Idempotency-Key": "" }],
    ];
    await t.step(`${method} ${path} → 403 before any other fault`, async () => {
      for (const [id, sent, headers = {}] of cases) {
        // A GET has no body.
        if (method === "GET" && sent !== undefined) continue;
        service.forgetStatements();
        const options = { key: service.live.text, body: sent, headers };
        const response = await service.call(method, pathOf(route, id), options);
        assertRefused(response, 403, "test_key_required");
        assert.equal(response.body.error.type, "permission");
        service.assertStatements(0);
      }
    });
  }
  assert.deepEqual(await rowCounts(service), before);
});

/**
 * Fills an environment with two payments of every outcome, the first of each with an idempotency
 * key.
 */
async function fill(service: TestService, key: string): Promise<void> {
  for (const outcome of OUTCOMES) {
    await service.make({ outcome }, { key, idempotency_key: `fill_${outcome}` });
    await service.make({ outcome }, { key });
  }
}

const NOTHING = {
  payments: 0,
  refunds: 0,
  transfers: 0,
  ledger_entries: 0,
  events: 0,
  webhook_deliveries: 0,
  idempotency_keys: 0,
  webhook_endpoints: 0,
  instruments: 0,
  checkouts: 0,
};
/** The resulting rows by the lifecycle table: success, declined, pending, refunded, chargeback. */
const FILLED = {
  ...NOTHING,
  payments: 10,
  refunds: 2,
  ledger_entries: 2 * (2 + 0 + 0 + 4 + 4),
  events: 2 * (2 + 2 + 1 + 5 + 4),
  idempotency_keys: 5,
};

serviceCase("POST /reset empties the key's environment and no other", async (t, service) => {
  const theirs = service.other.environment_id;
  const reset = (options = {}) => service.call("POST", `${SANDBOX}/reset`, options);
  await t.step("and counts the deleted rows", async () => {
    await fill(service, service.key.text);
    await fill(service, service.other.text);
    const before = await contentOf(service, theirs);
    const response = await reset();
    assert.equal(response.status, 200);
    assert.deepEqual(response.body, { object: "sandbox_reset", deleted: FILLED });
    assert.deepEqual(Object.keys(response.body.deleted), Object.keys(FILLED));
    const left = await contentOf(service, await service.environmentOf(service.key));
    for (const table of ["payments", "refunds", "events", "ledger_movements", "idempotency_keys"]) {
      assert.deepEqual(left[table], [], table);
    }
    assert.deepEqual(await contentOf(service, theirs), before);
  });
  await t.step("webhook_endpoints: true also deletes endpoints and their deliveries", async () => {
    const endpoint = { body: { url: "https://hooks.example.com/payments" } };
    const made = await service.call("POST", ENDPOINTS, endpoint);
    assert.equal(made.status, 201, made.text);
    const list = async () => (await service.call("GET", ENDPOINTS)).body.data.length;
    await service.pay({ amount: 1000 });
    const stays = await reset({ body: { webhook_endpoints: false } });
    assert.deepEqual([stays.body.deleted.webhook_endpoints, await list()], [0, 1]);
    await service.pay({ amount: 1000 });
    const gone = await reset({ body: { webhook_endpoints: true } });
    assert.deepEqual([gone.body.deleted.webhook_endpoints, await list()], [1, 0]);
    // A reset skips a delivery that the dispatcher has locked. The next poll cancels it.
    await until("no delivery is due", async () => {
      await service.call("POST", WAKE, { key: RELAY_TOKEN });
      const due = await service.sql`
        select from pay.webhook_deliveries where status = 'pending'`;
      return due.length === 0;
    });
  });
  await t.step("the key stays valid, and its old idempotency keys can be used again", async () => {
    const response = await service.make({}, { idempotency_key: "fill_success" });
    assert.deepEqual([response.status, response.headers.get("Idempotent-Replayed")], [201, null]);
  });
});
