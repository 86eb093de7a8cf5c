/**
 * Lists of changes for pay.commit(). The domain decides the changes, one statement commits a list,
 * and `stored` counts the rows that each change has stored.
 */

import assert from "node:assert/strict";
import type postgres from "postgres";
import { accessWith } from "./store_access.ts";
import { parseApiKey } from "../../../shared/core/api_key.ts";
import { idGenerator, systemRandom } from "../../../shared/core/ids.ts";
import { ChangeBuilder } from "../../../shared/domain/changes/change_builder.ts";
import { complete } from "../../../shared/domain/payments/payment_steps.ts";
import { decided } from "../domain/decided_change.ts";
import type { Payment } from "../../../shared/schema/payment.ts";
import type { Scope } from "../../../shared/schema/api_key.ts";
import type { Change } from "../../../shared/store/commit_rows.ts";
import type { RateLimits } from "../../../shared/store/outcome.ts";
import { COMMIT, commitParameters } from "../../../shared/store/commit_statement.ts";
import { paymentOf } from "../../../shared/domain/payments/create_payment.ts";
import { refundOf } from "../../../shared/domain/payments/refund_payment.ts";

/** One change of a list, with the key and the options of its request. */
export interface Requested {
  change: Change;
  key: string;
  scope?: Scope;
  idempotency_key?: string;
  fingerprint?: string;
  at_ms?: number;
  rate_limits?: RateLimits;
}

/** The time of every request. */
export const NOW = Date.UTC(2026, 10, 20);
/** One day in milliseconds. */
export const DAY = 86_400_000;

/** The context of a request at that time. */
export function newContext() {
  const newId = idGenerator(NOW);
  const context = {
    idempotency_key: null,
    livemode: false,
    at_ms: NOW,
    newId,
    random: systemRandom,
    docs_url: null,
    run_number: null,
  };
  return { ...context, request_id: newId("req_") };
}

/** Decides a new payment of 1000, which is completed by default. */
export function created(
  outcome: "success" | "pending" = "success",
  body: Record<string, unknown> = {},
): Change {
  const sent = { amount: 1000, currency: "EUR", outcome, ...body };
  return decided(paymentOf(sent, true, newContext()));
}

/** Decides a refund of a payment. */
export function refunded(payment: Payment, amount_minor = 10): Change {
  return decided(refundOf(payment, { amount: amount_minor }, newContext()));
}

/** Decides the completion of a pending payment. */
export function completed(payment: Payment): Change {
  const change = new ChangeBuilder(payment, newContext());
  complete(change);
  return change.finish({ status: 201, body: change.body });
}

/** The parameters of the statement that commits a list. */
export function parametersOf(list: readonly Requested[]) {
  return commitParameters(
    list.map((
      { change, key, scope, idempotency_key, fingerprint = "a", at_ms = NOW, rate_limits },
    ) => ({
      access: accessWith({
        key_hash: parseApiKey(key)!.hash,
        scope: scope ?? "payments:write",
        at_ms,
        request_id: idGenerator(at_ms)("req_"),
        rate_limits: rate_limits ?? null,
      }),
      change,
      idempotency: idempotency_key
        ? {
          key: idempotency_key,
          fingerprint: fingerprint.repeat(64),
          request_line: "POST /api-v1-payments/v1/payments",
        }
        : null,
      has_quota: false,
    })),
    null,
  );
}

/** Commits a list in one statement. Returns the outcomes in the order of the list. */
export async function commit(sql: postgres.Sql, list: readonly Requested[]) {
  const rows = await sql.unsafe(COMMIT, parametersOf(list));
  const byNumber = [...rows].sort((a, b) => a.n - b.n);
  assert.deepEqual(byNumber.map(({ n }) => n), list.map((_, i) => i + 1));
  return byNumber as unknown as {
    outcome: string;
    remaining: number | null;
    status: number | null;
    body: string | null;
    detail: string | null;
  }[];
}

/** Counts the stored payment, refunds, movements and events of each change of a list. */
export async function stored(sql: postgres.Sql, list: readonly Requested[]) {
  const counts = [];
  for (const { change } of list) {
    const rows = await Promise.all([
      sql`select from pay.payments where body = ${change.payment!.body}`,
      sql`select from pay.refunds where id = any (${change.refunds.map(({ id }) => id)})`,
      sql`select from pay.ledger_movements
        where transaction_id = any (${change.ledger.map(({ transaction_id }) => transaction_id)})`,
      sql`select from pay.events where id = any (${change.events.map(({ id }) => id)})`,
    ]);
    counts.push(rows.map(({ count }) => count).join(" "));
  }
  return counts;
}
