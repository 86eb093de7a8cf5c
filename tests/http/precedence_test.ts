/**
 * The order of precedence (contract §6): a request with two faults gets the error of the earlier
 * one. FAULTS has that order; every pair that one request can have is a case.
 */

import assert from "node:assert/strict";
import { generateApiKey } from "../../shared/core/api_key.ts";
import type { TestService } from "../support/service/service.ts";
import {
  assertRefused,
  paymentIn,
  PAYMENTS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";

/** The faults in the order of the checks, and the error code of each. */
const FAULTS = [
  ["origin", "origin_not_allowed"],
  ["key", "unauthorized"],
  ["route", "not_found"],
  ["method", "method_not_allowed"],
  ["mode", "test_key_required"],
  ["scope", "permission_denied"],
  ["size", "payload_too_large"],
  ["media type", "unsupported_media_type"],
  ["JSON", "invalid_json"],
  ["idempotency header", "invalid_parameter"],
  ["query", "invalid_parameter"],
  ["unknown field", "invalid_parameter"],
  ["schema", "invalid_parameter"],
  ["conflict", "idempotency_conflict"],
  ["existence", "not_found"],
  ["state", "invalid_state"],
] as const;
type Fault = typeof FAULTS[number][0];

/** The field that the error names, where several faults have the same code. */
const PARAMS: Partial<Record<Fault, string>> = {
  "idempotency header": "Idempotency-Key",
  query: "cursor",
  "unknown field": "colour",
  schema: "to",
};

/** Pairs that one request cannot have. */
const IMPOSSIBLE: readonly [Fault, Fault][] = [
  ["route", "method"], // only an existing route has methods
  ["JSON", "unknown field"], // a body that cannot be parsed has no fields
  ["JSON", "schema"],
  ["idempotency header", "conflict"], // a malformed idempotency key was never stored
  ["existence", "state"], // a payment that does not exist has no state
];

/** Sends an advance with these faults and no others. */
async function send(service: TestService, payment_id: string, faults: ReadonlySet<Fault>) {
  const { call, key, live, issueKey } = service;
  const has = (fault: Fault) => faults.has(fault);
  const scopes = has("scope") ? { scopes: ["payments:read"] } : {};
  const { environment_id } = has("mode") ? live : key;
  // Only the API key that used the idempotency key before can get a conflict.
  const limited = has("scope") || has("mode");
  const admitted = limited ? (await issueKey(environment_id, scopes)).text : key.text;
  const id = has("existence") ? `pay_${"0".repeat(26)}` : payment_id;
  const action = has("route") ? "nothing" : "advance";
  let body = JSON.stringify({
    to: has("schema") ? "nowhere" : "completed",
    ...(has("unknown field") && { colour: 1 }),
  });
  if (has("JSON")) body = body.replace("}", ",}");
  if (has("size")) body += " ".repeat(65_536);
  return await call(
    has("method") ? "PUT" : "POST",
    `${SANDBOX}/payments/${id}/${action}${has("query") ? "?cursor=1" : ""}`,
    {
      body,
      key: has("key") ? refusedKey(has("mode")) : admitted,
      headers: {
        ...(has("origin") && { Origin: "https://elsewhere.example" }),
        ...(has("media type") && { "Content-Type": "text/plain" }),
        ...(has("idempotency header") && { "Idempotency-Key": "not visible" }),
        ...(has("conflict") && { "Idempotency-Key": "taken" }),
      },
    },
  );
}

/**
 * A key that is refused. The live one is malformed, because a well-formed one is refused by its
 * mode.
 */
function refusedKey(is_live: boolean): string {
  return is_live ? generateApiKey("live").slice(0, -1) + "_" : generateApiKey("test");
}

serviceCase("a request with two faults gets the error of the earlier one", async (t, service) => {
  const pending = await paymentIn(service, "pending");
  const final = await paymentIn(service, "declined");
  await service.pay({}, { idempotency_key: "taken" });
  for (const [i, [first, code]] of FAULTS.entries()) {
    await t.step(`${first} alone`, async () => {
      const { id } = first === "state" ? final : pending;
      assertRefused(await send(service, id, new Set([first])), code, PARAMS[first]);
    });
    for (const [second] of FAULTS.slice(i + 1)) {
      if (IMPOSSIBLE.some(([a, b]) => a === first && b === second)) continue;
      await t.step(`${first} before ${second}`, async () => {
        const { id } = second === "state" ? final : pending;
        assertRefused(await send(service, id, new Set([first, second])), code, PARAMS[first]);
      });
    }
  }
  await t.step("none of them changes the payment", async () => {
    const body = await service.get(`${PAYMENTS}/${pending.id}`);
    assert.deepEqual(body, pending);
  });
});

/** Live requests with a fault. The missing provider is the last check. */
const LIVE: [
  fault: string,
  method: string,
  path: string,
  body: unknown,
  code: string,
  param?: string,
][] = [
  ["JSON", "POST", PAYMENTS, "{", "invalid_json"],
  ["schema", "POST", PAYMENTS, { amount: 0, currency: "EUR" }, "invalid_parameter", "amount"],
  [
    "a test outcome",
    "POST",
    PAYMENTS,
    { amount: 1, currency: "EUR", outcome: "success" },
    "invalid_parameter",
    "outcome",
  ],
  ["existence", "POST", `${PAYMENTS}/:unknown/cancel`, {}, "not_found"],
  ["state", "POST", `${PAYMENTS}/:declined/refund`, {}, "invalid_state"],
  ["nothing", "POST", `${PAYMENTS}/:pending/cancel`, {}, "provider_not_configured"],
  ["nothing", "POST", PAYMENTS, { amount: 1, currency: "EUR" }, "provider_not_configured"],
  ["nothing", "POST", "/api-v1-payments/v1/transfers", {
    ...{ amount: 1, currency: "EUR" },
    destination: { iban: "DE89 3704 0044 0532 0130 00", holder_name: "Ada" },
  }, "provider_not_configured"],
];

serviceCase("a live request with a fault gets the error of the fault", async (t, service) => {
  const ids: Record<string, string> = { unknown: `pay_${"0".repeat(26)}` };
  for (const status of ["declined", "pending"]) {
    ids[status] = (await paymentIn(service, status)).id;
    await service.sql`
      update pay.payments set environment_id = ${service.live.environment_id}
      where id = ${ids[status]!}`;
  }
  for (const [fault, method, path, body, code, param] of LIVE) {
    await t.step(`${fault} before the provider: ${method} ${path}`, async () => {
      const url = path.replace(/:(\w+)/, (_, name) => ids[name]!);
      const refused = await service.call(method, url, { body, key: service.live.text });
      assertRefused(refused, code, param);
    });
  }
});
