/** Numbers that stand in the database and in the service, which tells them to callers, are equal. */

import assert from "node:assert/strict";
import { ENDPOINT_URL_LENGTH_MAX } from "../../shared/core/endpoint_url.ts";
import { MAX_ACTIVE_SECRETS } from "../../shared/domain/webhooks/endpoint_secret.ts";
import { MAX_SANDBOX_ENDPOINTS } from "../../shared/domain/webhooks/webhook_endpoints.ts";
import { MAX_BYTES } from "../../shared/sandbox/masked_body.ts";
import { MAX_KEPT_SANDBOXES, MAX_SANDBOXES } from "../../shared/sandbox/sandbox_store.ts";
import { CLOCK_CEILING_MS, MAX_ADVANCE_DAYS } from "../../shared/schema/clock.ts";
import { MAX_AMOUNT_MINOR } from "../../shared/schema/limits.ts";
import { MAX_ACTIVE_KEYS } from "../../shared/store/api_key_store.ts";
import { MAX_PENDING_DELIVERIES } from "../../shared/store/outcome.ts";
import { serviceCase } from "../support/service/service_case.ts";

const seconds = (call: string) => `extract(epoch from ${call})::bigint`;
/** The last number of a constraint. */
const bound = (name: string) =>
  `(select (regexp_match(pg_get_constraintdef(oid), '(\\d+)\\D*$'))[1] from pg_constraint
    where conname = '${name}')`;

/** A number of the service, and the expression of the database that has it. */
const NUMBERS: readonly (readonly [service: number, database: string])[] = [
  [MAX_ACTIVE_KEYS, "pay_internal.max_active_keys()"],
  [MAX_ACTIVE_SECRETS, "pay_internal.max_live_secrets()"],
  [MAX_SANDBOXES, "pay_internal.max_sandboxes()"],
  [MAX_KEPT_SANDBOXES, "pay_internal.max_stored_sandboxes()"],
  [MAX_SANDBOX_ENDPOINTS, "pay_internal.max_sandbox_endpoints()"],
  [MAX_PENDING_DELIVERIES, "pay_internal.max_pending_deliveries()"],
  [MAX_ADVANCE_DAYS * 86_400, seconds("pay_internal.longest_advance()")],
  [CLOCK_CEILING_MS / 1000, seconds("pay_internal.clock_ceiling()")],
  [MAX_AMOUNT_MINOR, bound("payments_amount_minor_in_range")],
  [MAX_AMOUNT_MINOR, bound("transfers_amount_minor_in_range")],
  [ENDPOINT_URL_LENGTH_MAX, bound("webhook_endpoints_url_length")],
  [MAX_BYTES, bound("requests_bodies_bounded")],
];

serviceCase("the service and the database have the same numbers", async (t, { sql }) => {
  for (const [expected, expression] of NUMBERS) {
    await t.step(expression, async () => {
      const [row] = await sql.unsafe(`select (${expression})::text as number`);
      assert.equal(row!.number, String(expected));
    });
  }
});
