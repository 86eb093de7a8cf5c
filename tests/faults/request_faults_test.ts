/**
 * Faults of API requests in a sandbox: each fault does what the contract (§7) says, for declared
 * faults and for the header `Sandbox-Fault`, and other sandboxes notice nothing.
 */

import assert from "node:assert/strict";
import { PLACE_BOUNDS } from "../../shared/jobs/places.ts";
import { until } from "../support/common/until.ts";
import { rawConnection } from "../support/proxy/raw_connection.ts";
import { declare, FAULTS, left } from "../support/service/declared_faults.ts";
import type { CallOptions, TestResponse, TestService } from "../support/service/service.ts";
import { untilWaiting } from "../support/database/lock_waits.ts";
import { withServedService } from "../support/service/served_service.ts";
import { startSecondService } from "../support/service/second_service.ts";
import { assertRefused, PAYMENTS, SANDBOX, serviceCase } from "../support/service/service_case.ts";

const PAID = { outcome: "success" };
const LONG_WAITS = PLACE_BOUNDS.long_waits;

/** The number of payments of the first sandbox. */
const count = ({ count, key }: TestService) =>
  count(`payments where environment_id = '${key.environment_id}'`);

/** The ways to get a fault: declared before, or by the header of the request. */
const WAYS: [name: string, (service: TestService, fault: string) => Promise<CallOptions>][] = [
  ["declared", async (service, fault) => {
    const delay = fault === "delay" && { delay_ms: 60 };
    await declare(service, { on: "request", fault, ...delay });
    return {};
  }],
  ["by the header", (_service, fault) => {
    const value = fault === "delay" ? "delay; delay_ms=60" : fault;
    return Promise.resolve({ headers: { "Sandbox-Fault": value } });
  }],
];

/**
 * Faults, the error of the request, and whether the payment is made. The connection has no error.
 */
const ERRORS: [fault: string, status: number, code: string, done: boolean][] = [
  ["rate_limited", 429, "rate_limited", false],
  ["service_unavailable", 503, "service_unavailable", false],
  ["server_error_before", 500, "internal_error", false],
  ["server_error_after", 500, "internal_error", true],
  ["connection_lost_after", 0, "", true],
];

serviceCase("POST /v1/payments with a fault", async (t, service) => {
  for (const [way, faulty] of WAYS) {
    for (const [fault, status, code, done] of ERRORS) {
      await t.step(`${way}: ${fault} → ${status || "no response"}, done: ${done}`, async () => {
        const made = await count(service);
        const idempotency_key = `${way} ${fault}`.replaceAll(" ", "-");
        const failed = service.pay(PAID, { idempotency_key, ...await faulty(service, fault) });
        if (status === 0) await assert.rejects(failed, /connection is lost/);
        else {
          assertRefused(await failed, code);
          const { headers } = await failed;
          assert.equal(headers.get("Retry-After"), status === 500 ? null : "1");
          assert.equal(headers.get("Sandbox-Fault"), fault);
        }
        assert.equal(await count(service), made + Number(done));
        const retry = await service.pay(PAID, { idempotency_key });
        assert.deepEqual(
          ["Idempotent-Replayed", "Sandbox-Fault"].map((name) => retry.headers.get(name)),
          [done ? "true" : null, null],
        );
        assert.equal(retry.status, 201);
        assert.equal(await count(service), made + 1);
      });
    }
    await t.step(`${way}: delay → the response comes later`, async () => {
      const made = await count(service);
      const began = performance.now();
      const response = await service.pay(PAID, await faulty(service, "delay"));
      assert.ok(performance.now() - began >= 60);
      assert.deepEqual([response.status, response.headers.get("Sandbox-Fault")], [201, "delay"]);
      assert.equal(await count(service), made + 1);
    });
  }

  await t.step("a fault happens to a replay too", async () => {
    const first = await service.pay(PAID, { idempotency_key: "replayed" });
    await declare(service, { on: "request", fault: "server_error_after" });
    assertRefused(await service.pay(PAID, { idempotency_key: "replayed" }), "internal_error");
    const replay = await service.pay(PAID, { idempotency_key: "replayed" });
    assert.equal(replay.text, first.text);
  });

  await t.step("server_error_after hides a refusal for the content of a request", async () => {
    const fault = await declare(service, { on: "request", fault: "server_error_after" });
    const unknown = `${PAYMENTS}/pay_${"0".repeat(26)}`;
    assertRefused(await service.call("GET", unknown), "internal_error");
    assert.equal(await left(service, fault), 0);
    assertRefused(await service.call("GET", unknown), "not_found");
  });

  await t.step("a request that is refused for its form uses no fault up", async () => {
    const fault = await declare(service, { on: "request", fault: "server_error_before" });
    assertRefused(await service.pay({ amount: 0 }), "invalid_parameter", "amount");
    assertRefused(await service.call("GET", `${SANDBOX}/nothing`), "not_found");
    assertRefused(await service.pay({}, { key: null }), "unauthorized");
    assert.equal(await left(service, fault), 1);
    assertRefused(await service.pay(), "internal_error");
    assert.equal(await left(service, fault), 0);
  });

  await t.step("a key without the scope uses no fault up", async () => {
    const fault = await declare(service, { on: "request", fault: "server_error_after" });
    const weak = await service.issueKey(service.key.environment_id, { scopes: ["events:read"] });
    const response = await service.pay({}, { key: weak.text });
    assertRefused(response, "permission_denied");
    assert.equal(response.headers.get("Sandbox-Fault"), null);
    assert.equal(await left(service, fault), 1);
    await service.call("DELETE", `${FAULTS}/${fault.id}`);
  });
});

/** A request as method, path, and idempotency key if any. */
type Sent = [method: "GET" | "POST", path: string, idempotency_key?: string];
const ONE = `${PAYMENTS}/pay_${"1".repeat(26)}`;

/** Conditions, a request that matches them, and one that does not. */
const CONDITIONS: [where: Record<string, string>, hit: Sent, miss: Sent][] = [
  [{ method: "POST" }, ["POST", PAYMENTS], ["GET", PAYMENTS]],
  [{ method: "GET" }, ["GET", PAYMENTS], ["POST", PAYMENTS]],
  [{ path: "/v1/payments" }, ["POST", PAYMENTS], ["GET", "/api-v1-payments/v1/events"]],
  [{ path: PAYMENTS }, ["POST", PAYMENTS], ["POST", `${SANDBOX}/payments`]],
  [{ path: `${SANDBOX}/payments` }, ["POST", `${SANDBOX}/payments`], ["POST", PAYMENTS]],
  [{ path: "/v1/payments/{id}" }, ["GET", ONE], ["POST", PAYMENTS]],
  [{ path: ONE.replace("/api-v1-payments", "") }, ["GET", ONE], [
    "GET",
    ONE.replace("pay_1", "pay_2"),
  ]],
  [{ idempotency_key: "this" }, ["POST", PAYMENTS, "this"], ["POST", PAYMENTS, "that"]],
  [
    { method: "POST", path: "/v1/payments/{id}/cancel" },
    ["POST", `${ONE}/cancel`],
    ["POST", `${ONE}/refund`],
  ],
];

serviceCase("the conditions of a fault on a request", async (t, service) => {
  const send = async ([method, path, idempotency_key]: Sent) => {
    const body = path.endsWith("/payments") ? { amount: 1000, currency: "EUR" } : {};
    const { headers } = await service.call(method, path, {
      ...(method === "POST" && { body }),
      ...(idempotency_key && { idempotency_key }),
    });
    return headers.get("Sandbox-Fault");
  };
  for (const [where, hit, miss] of CONDITIONS) {
    await t.step(JSON.stringify(where), async () => {
      const fault = await declare(service, { on: "request", fault: "server_error_before", where });
      assert.deepEqual([await send(miss), await left(service, fault)], [null, 1]);
      assert.deepEqual([await send(hit), await left(service, fault)], ["server_error_before", 0]);
    });
  }
  await t.step("no fault concerns the operations on faults", async () => {
    const fault = await declare(service, { on: "request", fault: "server_error_before" });
    await service.get(FAULTS);
    assert.equal((await service.call("DELETE", `${FAULTS}/${fault.id}`)).status, 200);
  });
  await t.step("another sandbox and a live environment notice nothing", async () => {
    const fault = await declare(service, { on: "request", fault: "server_error_before" });
    assert.equal((await service.pay({}, { key: service.other.text })).status, 201);
    await service.get(PAYMENTS, { key: service.live.text });
    assert.equal(await left(service, fault), 1);
  });
});

serviceCase("faults happen exactly as declared to 64 racing requests", async (t, service) => {
  // Two services, because the requests of one wait for each other before they reach the database.
  await using second = startSecondService(service);
  await t.step("one with times 5 beside four with times 1", async () => {
    const faults = [];
    for (const times of [5, 1, 1, 1, 1]) {
      faults.push(await declare(service, { on: "request", fault: "server_error_after", times }));
    }
    const race = () =>
      Promise.all(
        Array.from({ length: 64 }, (_, i) =>
          [service, second][i % 2]!.call("POST", PAYMENTS, {
            body: { amount: 1000, currency: "EUR", ...PAID },
            idempotency_key: `race-${i}`,
          })),
      );
    const statuses = (await race()).map(({ status }) => status).sort();
    assert.deepEqual(statuses, [...Array(55).fill(201), ...Array(9).fill(500)]);
    for (const fault of faults) assert.equal(await left(service, fault), 0);
    assert.ok((await race()).every(({ status }) => status === 201));
    assert.equal(await count(service), 64);
  });
  await t.step("two that meet at its last time", async () => {
    const fault = await declare(service, { on: "request", fault: "server_error_before" });
    let responses: Promise<TestResponse[]>;
    await service.sql.begin(async (sql) => {
      await sql`select from pay.faults where id = ${fault.id} for update`;
      const body = { amount: 1000, currency: "EUR", ...PAID };
      responses = Promise.all(
        [service, second].map((each) => each.call("POST", PAYMENTS, { body })),
      );
      await untilWaiting(service.sql, { sessions: 2, calls: "pay.match_fault" });
    });
    const faults = (await responses!).map(({ status, headers }) => [
      status,
      headers.get("Sandbox-Fault"),
    ]);
    assert.deepEqual(faults.sort(), [[201, null], [500, "server_error_before"]]);
  });
});

const BAD_HEADERS = [
  "unknown",
  "",
  "delay",
  "delay; delay_ms=0",
  "delay; delay_ms=10001",
  "server_error_after; delay_ms=5",
  "rate_limited, delay",
  "timeout",
];

serviceCase("the header Sandbox-Fault", async (t, service) => {
  for (const value of BAD_HEADERS) {
    await t.step(`"${value}" → 400`, async () => {
      const made = await count(service);
      const response = await service.pay({}, { headers: { "Sandbox-Fault": value } });
      assertRefused(response, "invalid_parameter", "Sandbox-Fault");
      assert.match(response.body.error.message, /Sandbox-Fault/);
      assert.equal(await count(service), made);
    });
  }
  await t.step("with a live key → 403 test_key_required, nothing done", async () => {
    const response = await service.pay({}, {
      key: service.live.text,
      idempotency_key: "live",
      headers: { "Sandbox-Fault": "server_error_after" },
    });
    assertRefused(response, "test_key_required");
    const stored = await service.sql`select id from pay.payments
      union all select key from pay.idempotency_keys`;
    assert.deepEqual([...stored], []);
  });
  await t.step("works on every operation, also on reads", async () => {
    const headers = { "Sandbox-Fault": "server_error_before" };
    assert.equal((await service.call("GET", PAYMENTS, { headers })).status, 500);
    assert.equal((await service.call("GET", FAULTS, { headers })).status, 500);
  });
});

const READ = { headers: { "Sandbox-Fault": "none" } };

serviceCase("the header Sandbox-Fault: none", async (t, service) => {
  await t.step("spares a read of a fault, and uses none up", async () => {
    const declared = await declare(service, { on: "request", fault: "server_error_after" });
    const { status, headers } = await service.call("GET", PAYMENTS, READ);
    assert.deepEqual([status, headers.get("Sandbox-Fault")], [200, null]);
    assert.equal(await left(service, declared), 1);
    await service.call("DELETE", `${FAULTS}/${declared.id}`);
  });
  await t.step("with a change → 400, nothing done, and no fault is used up", async () => {
    const fault = await declare(service, { on: "request", fault: "server_error_before" });
    const response = await service.pay(PAID, READ);
    assertRefused(response, "invalid_parameter", "Sandbox-Fault");
    assert.match(response.body.error.message, /is for GET requests only/);
    assert.deepEqual([await count(service), await left(service, fault)], [0, 1]);
  });
  await t.step("with a live key → 403 test_key_required", async () => {
    const response = await service.call("GET", PAYMENTS, { ...READ, key: service.live.text });
    assertRefused(response, "test_key_required");
  });
});

serviceCase("Sandbox-Fault: none counts against the rate limit", async (_t, service) => {
  const remaining = async (options = {}) => {
    const response = await service.call("GET", PAYMENTS, options);
    return Number(/;r=(\d+);/.exec(response.headers.get("RateLimit")!)![1]);
  };
  await declare(service, { on: "request", fault: "server_error_before" });
  const before = await remaining(READ);
  assert.equal(await remaining(READ), before - 1);
  let response: TestResponse;
  do response = await service.call("GET", PAYMENTS, READ); while (response.status === 200);
  assertRefused(response, "rate_limited");
  assert.equal(response.headers.get("Sandbox-Fault"), null);
}, { rate_limit: 5 });

serviceCase("Sandbox-Fault: delay", async (t, service) => {
  const LONG = { headers: { "Sandbox-Fault": "delay; delay_ms=9000" } };
  const list = (key: string, delay_ms: number) =>
    service.call("GET", PAYMENTS, {
      key,
      headers: { "Sandbox-Fault": `delay; delay_ms=${delay_ms}` },
    });
  await t.step("a made-up, a revoked and a narrow key are refused without a delay", async () => {
    const { text: revoked, id } = await service.issueKey(service.key.environment_id);
    await service.sql`select pay.revoke_api_key(${id})`;
    const { text: narrow } = await service.issueKey(service.key.environment_id, {
      scopes: ["ledger:read"],
    });
    const began = performance.now();
    const responses = await Promise.all(
      [`${service.key.text.slice(0, -8)}00000000`, revoked, narrow].map((key) =>
        service.call("GET", PAYMENTS, { key, ...LONG })
      ),
    );
    assert.deepEqual(responses.map(({ status }) => status), [401, 401, 403]);
    assert.ok(performance.now() - began < 2_000);
  });
  await t.step("of an account 128 requests wait at once, and one more is 429", async () => {
    const keys = [service.key.text];
    const body = await service.post(`${SANDBOX}/sandboxes`, {});
    keys.push(body.test_key);
    const waiting: Promise<TestResponse>[] = [];
    let refused: TestResponse | undefined;
    await until("no slot is left", async () => {
      // A busy machine can end the first ones before the last ones begin.
      for (let i = 0; i < LONG_WAITS.of_owner / 2; i++) {
        waiting.push(list(keys[i % 2]!, 8_000));
      }
      const response = await list(keys[0]!, 1);
      if (response.status === 429) refused = response;
      return refused !== undefined;
    });
    assertRefused(refused!, "rate_limited");
    assert.equal(refused!.headers.get("Retry-After"), "1");
    assert.equal((await list(service.other.text, 1)).status, 200);
    // Requests without a delay need no slot.
    await service.get(PAYMENTS);
    const responses = await Promise.all(waiting);
    assert.ok(responses.every(({ status }) => status === 200 || status === 429));
    assert.ok(responses.filter(({ status }) => status === 200).length >= LONG_WAITS.of_owner);
    assert.equal((await list(keys[0]!, 1)).status, 200);
  });
});

serviceCase("Sandbox-Fault: delay counts against the rate limit once", async (_, service) => {
  const headers = { "Sandbox-Fault": "delay; delay_ms=1" };
  const statuses = [];
  for (let i = 0; i < 5; i++) {
    statuses.push((await service.call("GET", PAYMENTS, { headers })).status);
  }
  assert.deepEqual(statuses, [200, 200, 200, 200, 429]);
}, { rate_limit: 2, clock: () => Date.parse("2030-01-01T00:00:00Z") });

Deno.test("the local server ends the connection without a response", () =>
  withServedService(async ({ service, base_url }) => {
    const { port, pathname } = new URL(base_url);
    const connection = rawConnection(
      await Deno.connect({ hostname: "127.0.0.1", port: Number(port) }),
    );
    const response = await connection.send({
      line: `POST ${pathname}${PAYMENTS}`,
      headers: {
        Authorization: `Bearer ${service.key.text}`,
        "Content-Type": "application/json",
        "Sandbox-Fault": "connection_lost_after",
      },
      body: '{"amount":1000,"currency":"EUR"}',
    });
    connection.close();
    assert.equal(response, "");
    assert.equal(await count(service), 1);
  }));
