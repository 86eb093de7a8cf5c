/**
 * The sandbox function (contract §1, §2, §5): it creates payments in any status, refuses live keys
 * without a database statement, and resets one environment and no other.
 */

import assert from "node:assert/strict";
import { PAYMENTS_FUNCTION_ROUTES } from "../../shared/functions/payments_function.ts";
import { SANDBOX_ROUTES } from "../../shared/sandbox/sandbox_routes.ts";
import { BASE_URL, RELAY_TOKEN, type TestService } from "../support/service/service.ts";
import { rowCounts } from "../support/database/payment_records.ts";
import { bodyOf, pathOf, ROUTES } from "../support/http/routes.ts";
import { until } from "../support/common/until.ts";
import { ENDPOINTS, WAKE } from "../support/webhook/recording_receiver.ts";
import {
  APPROVED,
  assertRefused,
  KINDS,
  paymentIn,
  PAYMENTS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";

const OUTCOMES: [outcome: string, status: string][] = [
  ["success", "completed"],
  ["declined", "declined"],
  ["pending", "pending"],
  ["refunded", "refunded"],
  ["chargeback", "chargeback"],
];

serviceCase("POST /payments creates a payment in the status of an outcome", async (t, service) => {
  for (const path of [`${SANDBOX}/payments`, `${SANDBOX}/v1/payments`]) {
    for (const [outcome, status] of OUTCOMES) {
      for (const kind of KINDS) {
        await t.step(`${path} ${outcome} by ${kind} → 201 ${status}`, async () => {
          const body = { amount_minor: 250, currency: "EUR", outcome, ...APPROVED[kind] };
          const response = await service.call("POST", path, { body });
          assert.equal(response.status, 201, response.text);
          const { id, ...payment } = response.body;
          assert.deepEqual([payment.status, payment.amount, payment.method_kind], [
            status,
            250,
            kind,
          ]);
          assert.equal(
            response.headers.get("Location"),
            `${BASE_URL}/api-v1-payments/v1/payments/${id}`,
          );
          assert.equal((await service.call("GET", `${PAYMENTS}/${id}`)).text, response.text);
        });
      }
    }
  }
  await t.step("accepts the interface's body: amount_minor, currency and outcome", async () => {
    const body = { amount_minor: 1, currency: "USD", outcome: "success" };
    const response = await service.call("POST", `${SANDBOX}/payments`, { body });
    assert.deepEqual([response.status, response.body.status], [201, "completed"]);
  });
});

const UNKNOWN = `pay_${"0".repeat(26)}`;

Deno.test("the routes with the scope sandbox:write take only test keys", () => {
  const served = [...PAYMENTS_FUNCTION_ROUTES, ...SANDBOX_ROUTES];
  for (const { id, scope, test_only } of served) {
    assert.equal(test_only, scope === "sandbox:write", id);
  }
});

serviceCase("sandbox routes refuse live keys", async (t, service) => {
  const payment = await paymentIn(service, "pending");
  const before = await rowCounts(service);
  // The key is checked once.
  await service.call("GET", PAYMENTS, { key: service.live.text });
  for (const route of ROUTES.filter(([, , scope]) => scope === "sandbox:write")) {
    const [method, path] = route;
    const body = method === "GET" ? undefined : bodyOf(method, path);
    const cases: [string, id: string, body: unknown, headers?: Record<string, string>][] = [
      ["a valid body", payment.id, body],
      ["an unknown payment", UNKNOWN, body],
      ["no JSON", payment.id, "{"],
      ["a wrong media type", payment.id, "x", { "Content-Type": "text/plain" }],
      ["a body that is too large", payment.id, JSON.stringify({ x: "x".repeat(70_000) })],
      ["a bad idempotency key", payment.id, body, { "Idempotency-Key": "" }],
    ];
    for (const [name, id, sent, headers = {}] of cases) {
      // A GET has no body.
      if (method === "GET" && sent !== undefined) continue;
      await t.step(`${method} ${path} with ${name} → 403`, async () => {
        service.forgetStatements();
        const options = { key: service.live.text, body: sent, headers };
        const response = await service.call(method, pathOf(route, id), options);
        assertRefused(response, 403, "test_key_required");
        assert.equal(response.body.error.type, "permission");
        service.assertStatements(0);
      });
    }
  }
  assert.deepEqual(await rowCounts(service), before);
});

/**
 * Fills an environment with two payments of every outcome, the first of each with an idempotency
 * key.
 */
async function fill(service: TestService, key: string): Promise<void> {
  for (const [outcome] of OUTCOMES) {
    await service.make({ outcome }, { key, idempotency_key: `fill_${outcome}` });
    await service.make({ outcome }, { key });
  }
}

/** The resulting rows by the lifecycle table: success, declined, pending, refunded, chargeback. */
const FILLED = {
  payments: 10,
  refunds: 2,
  ledger_entries: 2 * (2 + 0 + 0 + 4 + 4),
  events: 2 * (2 + 2 + 1 + 5 + 4),
  idempotency_keys: 5,
};

/** The row counts of the key's environment, named as in the response to a reset. */
async function heldBy({ sql, key, environmentOf }: TestService) {
  const environment_id = await environmentOf(key);
  const [row] = await sql`select
    (select count(*)::int from pay.payments where environment_id = ${environment_id}) as payments,
    (select count(*)::int from pay.refunds where environment_id = ${environment_id}) as refunds,
    (select count(*)::int from pay.ledger_entries where environment_id = ${environment_id})
      as ledger_entries,
    (select count(*)::int from pay.events where environment_id = ${environment_id}) as events,
    (select count(*)::int from pay.idempotency_keys where environment_id = ${environment_id})
      as idempotency_keys`;
  return { ...row } as Record<string, number>;
}

async function everyRowOf({ sql }: TestService, environment_id: string): Promise<string> {
  const tables = ["payments", "refunds", "events", "ledger_movements"];
  const rows = [];
  for (const table of [...tables, "idempotency_keys", "api_keys", "api_key_secrets"]) {
    rows.push(
      await sql`select t::text from ${sql(`pay.${table}`)} t
      where environment_id = ${environment_id} order by 1`,
    );
  }
  return JSON.stringify(rows);
}

const NOTHING = { payments: 0, refunds: 0, ledger_entries: 0, events: 0, idempotency_keys: 0 };

serviceCase("POST /reset empties the key's environment and no other", async (t, service) => {
  const mine = service.key.environment_id;
  const theirs = service.other.environment_id;
  for (const [i, path] of [`${SANDBOX}/reset`, `${SANDBOX}/v1/reset`].entries()) {
    await t.step(`${path} counts the deleted rows`, async () => {
      await fill(service, service.key.text);
      if (i === 0) await fill(service, service.other.text);
      const held = await heldBy(service);
      const before = await everyRowOf(service, theirs);
      const response = await service.call("POST", path);
      assert.equal(response.status, 200);
      assert.deepEqual(response.body, {
        object: "sandbox_reset",
        deleted: { ...held, transfers: 0, webhook_deliveries: 0, webhook_endpoints: 0 },
      });
      assert.equal(
        Object.keys(response.body.deleted).join(" "),
        "payments refunds transfers ledger_entries events webhook_deliveries idempotency_keys " +
          "webhook_endpoints",
      );
      assert.deepEqual(held, FILLED);
      assert.deepEqual(await heldBy(service), NOTHING);
      assert.equal(await everyRowOf(service, theirs), before);
    });
  }
  await t.step("the counts of an empty environment are 0", async () => {
    const { body } = await service.call("POST", `${SANDBOX}/reset`);
    const zero = { ...NOTHING, transfers: 0, webhook_deliveries: 0, webhook_endpoints: 0 };
    assert.deepEqual(body, { object: "sandbox_reset", deleted: zero });
  });
  await t.step(
    "webhook_endpoints: true deletes the endpoints and what is due to them",
    async () => {
      const endpoint = { body: { url: "https://hooks.example.com/payments" } };
      const made = await service.call("POST", ENDPOINTS, endpoint);
      assert.equal(made.status, 201, made.text);
      await service.pay({ amount: 1000 });
      const list = async () => (await service.call("GET", ENDPOINTS)).body.data.length;
      const stays = await service.call("POST", `${SANDBOX}/reset`, {
        body: { webhook_endpoints: false },
      });
      assert.deepEqual([stays.body.deleted.webhook_endpoints, await list()], [0, 1]);
      await service.pay({ amount: 1000 });
      const refused = await service.call("POST", `${SANDBOX}/reset`, {
        body: { webhook_endpoints: "yes" },
      });
      assertRefused(refused, 400, "invalid_parameter", "webhook_endpoints");
      const gone = await service.call("POST", `${SANDBOX}/reset`, {
        body: { webhook_endpoints: true },
      });
      assert.deepEqual([gone.body.deleted.webhook_endpoints, await list()], [1, 0]);
      // A reset skips a delivery that the dispatcher has locked. The next poll cancels it.
      await until("no delivery is due", async () => {
        await service.call("POST", WAKE, { key: RELAY_TOKEN });
        const [due] = await service.sql`
          select count(*)::int as n from pay.webhook_deliveries where status = 'pending'`;
        return due!.n === 0;
      });
    },
  );
  await t.step("the key stays valid, and its old idempotency keys can be used again", async () => {
    const response = await service.make({}, { idempotency_key: "fill_success" });
    assert.deepEqual([response.status, response.headers.get("Idempotent-Replayed")], [201, null]);
  });
  await t.step("another key of the environment resets it too", async () => {
    const { text: key } = await service.issueKey(mine);
    assert.equal(
      (await service.call("POST", `${SANDBOX}/reset`, { key })).body.deleted.payments,
      1,
    );
  });
});

serviceCase("POST /reset stores its own response", async (t, service) => {
  const reset = () => service.call("POST", `${SANDBOX}/reset`, { idempotency_key: "reset" });
  await fill(service, service.key.text);
  const first = await reset();
  assert.deepEqual([first.body.deleted.payments, first.body.deleted.idempotency_keys], [10, 5]);
  await t.step("its idempotency key is the only one left", async () => {
    assert.equal((await heldBy(service)).idempotency_keys, 1);
  });
  await t.step("a reset without an idempotency key deletes that response", async () => {
    const { body } = await service.call("POST", `${SANDBOX}/reset`);
    assert.equal(body.deleted.idempotency_keys, 1);
  });
});
