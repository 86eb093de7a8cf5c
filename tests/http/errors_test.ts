/**
 * Errors: every code that a request can get, in one envelope, without any detail of an internal
 * failure.
 */

import assert from "node:assert/strict";
import { faultOf } from "../../shared/http/log_line.ts";
import { serviceUnavailable } from "../../shared/core/errors.ts";
import { toApiError } from "../../shared/store/database.ts";
import {
  type CallOptions,
  type TestResponse,
  type TestService,
} from "../support/service/service.ts";
import { assertError } from "../support/http/error_envelope.ts";
import {
  card,
  paymentIn,
  PAYMENTS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";

type Provoke = (service: TestService) => Promise<TestResponse>;

function post(path: string, options: CallOptions): Provoke {
  return (service) => service.call("POST", path, options);
}

/** A request for each code, the field that the error names, and further members of the error. */
const REACHED: [code: string, param: string | null, more: string[], provoke: Provoke][] = [
  ["invalid_parameter", "amount", [], post(PAYMENTS, { body: { currency: "EUR" } })],
  ["invalid_parameter", "amount", ["amount_refundable"], async (service) => {
    const { id } = await paymentIn(service, "completed");
    return service.call("POST", `${PAYMENTS}/${id}/refund`, { body: { amount: 1001 } });
  }],
  ["invalid_json", null, [], post(PAYMENTS, { body: "{" })],
  ["invalid_json", "metadata.a", [], post(PAYMENTS, { body: `{"metadata":{"a":x}}` })],
  ["unauthorized", null, [], post(PAYMENTS, { key: null })],
  ["payment_declined", null, ["advice", "payment"], ({ pay }) => pay(card("4000000000000002"))],
  ["insufficient_funds", null, ["advice", "payment"], ({ pay }) => pay(card("4000000000009995"))],
  ["aml_blocked", null, ["advice", "payment"], ({ pay }) => pay(card("4100000000000019"))],
  ["authentication_failed", null, ["advice", "payment"], async (service) => {
    const { id } = await paymentIn(service, "requires_action");
    const body = { result: "failure" };
    return service.call("POST", `${SANDBOX}/payments/${id}/authenticate`, { body });
  }],
  ["test_key_required", null, [], ({ make, live }) => make({}, { key: live.text })],
  ["permission_denied", null, ["required_scope"], async ({ issueKey, key, pay }) => {
    const { text } = await issueKey(key.environment_id, { scopes: ["payments:read"] });
    return pay({}, { key: text });
  }],
  ["origin_not_allowed", null, [], ({ pay }) => pay({}, { headers: { Origin: "https://x.test" } })],
  ["not_found", null, [], ({ call }) => call("GET", `${PAYMENTS}/pay_${"0".repeat(26)}`)],
  ["not_found", null, [], ({ call }) => call("GET", "/api-v1-payments/v1/nothing")],
  ["method_not_allowed", null, [], ({ call }) => call("DELETE", PAYMENTS)],
  ["payload_too_large", null, [], post(PAYMENTS, { body: " ".repeat(65_537) })],
  [
    "unsupported_media_type",
    null,
    [],
    post(PAYMENTS, {
      body: "{}",
      headers: { "Content-Type": "text/plain" },
    }),
  ],
  ["idempotency_conflict", null, [], async ({ pay }) => {
    await pay({}, { idempotency_key: "taken" });
    return pay({ amount: 2 }, { idempotency_key: "taken" });
  }],
  ["invalid_state", null, ["current_status", "allowed"], async (service) => {
    const { id } = await paymentIn(service, "declined");
    return service.call("POST", `${PAYMENTS}/${id}/cancel`);
  }],
  ["provider_not_configured", null, [], ({ pay, live }) => pay({}, { key: live.text })],
];

serviceCase("an error response", async (t, service) => {
  for (const [code, param, more, provoke] of REACHED) {
    await t.step(`${code}${param ? ` of ${param}` : ""} has its envelope`, async () => {
      const response = await provoke(service);
      assertError(response, code, param);
      const known = ["type", "code", "message", "param", "request_id", "doc_url"];
      const { error } = response.body;
      assert.deepEqual(Object.keys(error).filter((name) => !known.includes(name)), more);
      if ("payment" in error) assert.equal(error.payment.failure_code, code);
    });
  }
});

/** SQLSTATEs and driver codes, and the error code for each. */
const DATABASE_ERRORS: [code: string, api_code: string][] = [
  ["40001", "service_unavailable"],
  ["40P01", "service_unavailable"],
  ["53300", "service_unavailable"],
  ["55P03", "service_unavailable"],
  ["57P01", "service_unavailable"],
  ["57014", "service_unavailable"],
  ["08006", "service_unavailable"],
  ["08P01", "service_unavailable"],
  ["25006", "service_unavailable"],
  ["3D000", "service_unavailable"],
  ["CONNECT_TIMEOUT", "service_unavailable"],
  ["CONNECTION_CLOSED", "service_unavailable"],
  ["CONNECTION_DESTROYED", "service_unavailable"],
  ["ECONNREFUSED", "service_unavailable"],
  ["ECONNRESET", "service_unavailable"],
  ["EPIPE", "service_unavailable"],
  ["23505", "internal_error"],
  ["23514", "internal_error"],
  ["42501", "internal_error"],
  ["22P02", "internal_error"],
  ["PAY01", "internal_error"],
  ["58000", "internal_error"],
  ["58030", "internal_error"],
  ["XX000", "internal_error"],
  ["XX001", "internal_error"],
];

for (const [code, api_code] of DATABASE_ERRORS) {
  Deno.test(`toApiError() of ${code} is ${api_code}`, () => {
    const error = Object.assign(new Error("secret"), { code, routine: "ExecInsert" });
    const shown = toApiError(error);
    if (api_code === "internal_error") assert.equal(shown, error);
    else assert.deepEqual(shown, Object.assign(serviceUnavailable(), { cause: error }));
  });
}

Deno.test("faultOf() names the class and the place of an error, never its message", () => {
  const frame = "    at canary (file:///x/shared/canary.ts:1:2)";
  const error = new Error(`canary\n${frame}`);
  error.stack = `Error: ${error.message}\n    at call (file:///srv/shared/store/store.ts:12:34)`;
  assert.equal(faultOf(error), "Error at store/store.ts:12");
  assert.equal(faultOf(Object.assign(new Error("canary"), { stack: "" })), "Error");
});

serviceCase("an unexpected database error reveals nothing to the caller", async (t, service) => {
  const canary = "canary-of-the-database";
  await service.sql.unsafe(`
    create function pay.betray() returns trigger language plpgsql as $$
    begin
      raise exception '${canary}' using detail = '${canary}', hint = '${canary}',
        table = '${canary}', errcode = coalesce(nullif(new.reference, ''), 'P0001');
    end $$;
    create trigger betray before insert on pay.payments
      for each row execute function pay.betray()`);
  const message = "Something went wrong on our side: try again";
  for (const [code] of DATABASE_ERRORS.filter(([code]) => /^[0-9A-Z]{5}$/.test(code))) {
    if (code === "EPIPE") continue;
    await t.step(`SQLSTATE ${code}`, async () => {
      service.logs.length = 0;
      const response = await service.pay({ reference: code }, {
        idempotency_key: `of-${code}`,
      });
      const api_code = DATABASE_ERRORS.find(([name]) => name === code)![1];
      assertError(response, api_code, null);
      if (api_code === "internal_error") assert.equal(response.body.error.message, message);
      const [fault, place] = service.logs[0]!.fault!.split(" at ");
      assert.equal(fault, `PostgresError ${code}`);
      assert.match(place ?? "store/x.ts:1", /^store\/\w+\.ts:\d+$/);
      assert.ok(
        !JSON.stringify([response.text, [...response.headers], service.logs]).includes(canary),
      );
      const [{ n }] = await service
        .sql`select count(*)::int as n from pay.idempotency_keys` as unknown as [{ n: number }];
      assert.equal(n, 0, "a failure is not stored");
    });
  }
});
