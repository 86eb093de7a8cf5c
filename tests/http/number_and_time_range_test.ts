/**
 * Times and numbers at the limits of RFC 3339, `timestamptz`, `Date` and PostgreSQL's integers, in
 * every such field of every operation. No response is a 5xx.
 */

import assert from "node:assert/strict";
import { namesOf } from "../../shared/schema/requirement.ts";
import { ADDRESSES } from "../../tools/generate/openapi/operations.ts";
import type { TestService } from "../support/service/service.ts";
import { rangedFields } from "../support/http/wrong_values.ts";
import { APPROVED, serviceCase } from "../support/service/service_case.ts";

/** Times near the limits of each type. An offset moves some of them out of the years 1 to 9999. */
const TIMES = [
  "9999-12-31T23:59:59-14:00",
  "9999-12-31T23:59:59-23:59",
  "9999-12-31T23:59:59.999Z",
  "9999-12-31T23:59:59.9999999999999999Z",
  "9999-12-31T24:00:00Z",
  "9999-12-31T23:59:60Z",
  "10000-01-01T00:00:00Z",
  "+010000-01-01T00:00:00Z",
  "+275760-09-13T00:00:00Z",
  "0000-01-01T00:00:00Z",
  "0000-01-01T00:00:00+14:00",
  "0001-01-01T00:00:00+23:59",
  "0001-01-01T00:00:00Z",
  "-000001-01-01T00:00:00Z",
  "-271821-04-20T00:00:00Z",
  "1969-12-31T23:59:59.999Z",
  "3084-12-31T00:00:00Z",
  "2030-02-29T00:00:00Z",
  "2030-01-01T00:00Z",
  "infinity",
  "",
];
/** JSON literals, written into the body unchanged. */
const NUMBERS = [
  "-1",
  "0",
  "-0",
  "1e0",
  "1.5",
  "2147483647",
  "2147483648",
  "-2147483649",
  "9007199254740991",
  "9007199254740993",
  "9223372036854775807",
  "9223372036854775808",
  "1e22",
  "1e308",
  "1e400",
  "-1e400",
  "1e-400",
  "null",
];

const DELAY = { on: "request", fault: "delay", delay_ms: 1 };
/** The members that a field of this name needs. */
const BASES = {
  amount_received: { to: "processing" },
  delay_ms: DELAY,
  times: DELAY,
  "mandate.signed_at": {
    iban: "DE89 3704 0044 0532 0130 00",
    mandate: { id: "M-1", sequence: "recurring" },
  },
  until: { since: new Date(Date.now() - 60_000).toISOString() },
};

/** The id of an existing resource for a path. */
async function resourceIn(service: TestService, path: string): Promise<string> {
  if (path.includes("/api_keys/")) return (await service.issueKey(service.key.environment_id)).id;
  if (path.includes("/webhook_endpoints/")) {
    const made = await service.call("POST", "/api-v1-payments/v1/webhook_endpoints", {
      body: { url: "http://127.0.0.1:47999/hook" },
    });
    return made.body.id;
  }
  // Only a payment with an address takes amount_received.
  if (/(payments|sandbox)\/\{id\}\/advance$/.test(path)) {
    return (await service.pay({ currency: "USDC", method_kind: "stablecoin" })).body.id;
  }
  return (await service.pay(APPROVED.card)).body.id;
}

serviceCase("times and numbers at the limits of their types", async (t, service) => {
  const found = new Set<string>();
  for (const { operation: { method, body, query }, path, alias_of } of ADDRESSES) {
    if (alias_of !== null) continue;
    const url = async () =>
      path.replace("{id}", path.includes("{id}") ? await resourceIn(service, path) : "");
    for (const { path: name, is_time, withLiteral } of rangedFields(body, BASES)) {
      found.add(name);
      await t.step(`${method} ${path}, ${name}: no 5xx`, async () => {
        const sent_to = await url();
        for (const value of is_time ? TIMES.map((time) => JSON.stringify(time)) : NUMBERS) {
          const sent = withLiteral(value);
          const response = await service.call(method, sent_to, { body: sent });
          assert.ok(response.status < 500, `${value}: ${response.status} ${response.text}`);
          // The body is otherwise sound, so an error names this field, or the mandate of the time.
          const { code, param } = response.body.error ?? {};
          const named = [name, name.replace("signed_at", "id")];
          assert.ok(code !== "invalid_parameter" || named.includes(param), response.text);
          const is_received = name === "amount_received" && value === "2147483647";
          if (is_received) assert.equal(response.body.amount_received, 2147483647, response.text);
        }
      });
    }
    for (const name of namesOf(query)) {
      if (name !== "limit" && !name.startsWith("created_")) continue;
      found.add(name);
      await t.step(`${method} ${path}?${name}=: no 5xx`, async () => {
        const sent_to = await url();
        for (const value of name === "limit" ? NUMBERS : TIMES) {
          const response = await service.call(
            method,
            `${sent_to}?${name}=${encodeURIComponent(value)}`,
          );
          assert.ok(response.status < 500, `${value}: ${response.status} ${response.text}`);
        }
      });
    }
  }
  await t.step("finds the times and numbers of all requests", () => {
    assert.deepEqual([...found].sort(), [
      ...["advance", "amount", "amount_minor", "amount_received", "card.exp_month"],
      ...["card.exp_year", "created_after", "created_before", "delay_ms", "expires_at"],
      ...["expires_in", "limit", "mandate.signed_at", "since", "times", "to", "until"],
    ]);
  });
});
