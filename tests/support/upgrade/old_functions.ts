/**
 * Commits changes as the functions of release 1.0.0 do: with its statement, its columns, bodies
 * without later members, and no `refund.created`. Migrations are applied before the new functions
 * are deployed, so the old functions work on the new schema for a while.
 */

import type postgres from "postgres";
import { parseApiKey } from "../../../shared/core/api_key.ts";
import { formatTime } from "../../../shared/core/clock.ts";
import { idMint, systemRandom } from "../../../shared/core/ids.ts";
import { eventRow } from "../../../shared/domain/changes/event.ts";
import type { EventType } from "../../../shared/schema/event_type.ts";

/** The statement of release 1.0.0. */
const COMMIT = `select * from pay.commit(
  p_changes => $1::text, p_payments => $2::text, p_transfers => $3::text,
  p_refunds => $4::text, p_ledger => $5::text, p_events => $6::text, p_patience_ms => $7::int)`;

/** Members of payments and refunds that release 1.0.0 does not know. */
const LATER_MEMBERS = [
  "amount_refunding",
  "amount_captured",
  "amount_disputed",
  "amount_received",
  "return_url",
  "capture",
  "capture_before",
  "settlement",
];

type Body = Record<string, unknown> & { id: string; sequence: number; amount_minor: number };

/** A change of a payment. */
export interface OldChange {
  /** The payment before the change, as an answer shows it. */
  payment: Body;
  /** The members that the change sets. */
  members: { status: string; amount_refunded?: number };
  /** Types of the new events. `refund.completed` stands for a new refund of `refunded`. */
  events: EventType[];
  refunded?: number;
  /** Movements as [kind, debit account, credit account, amount]. */
  ledger: [kind: string, debit: string, credit: string, amount: number][];
}

/** Commits a change, and returns its outcome with the payment after it. */
export async function commitAsOld(
  sql: postgres.Sql,
  { key, at_ms, is_new = false }: { key: string; at_ms: number; is_new?: boolean },
  { payment, members, events, refunded = 0, ledger }: OldChange,
): Promise<{ outcome: string; payment: Body }> {
  const mint = idMint(at_ms);
  const created_at = formatTime(at_ms);
  const refund = {
    id: mint("re_"),
    object: "refund",
    payment_id: payment.id,
    payment_status: members.status,
    amount: refunded,
    amount_minor: refunded,
    currency: payment["currency"],
    status: "completed",
    reason: null,
    metadata: {},
    livemode: false,
    created_at,
  };
  const known = Object.entries(payment).filter(([name]) => !LATER_MEMBERS.includes(name));
  const after: Body = Object.fromEntries(known) as Body;
  const rows = { payments: [] as unknown[], events: [] as unknown[] };
  const context = {
    request_id: mint("req_"),
    idempotency_key: null,
    livemode: false,
    at_ms,
    mint,
    random: systemRandom,
  };
  const first = is_new ? 1 : payment.sequence + 1;
  for (const [i, type] of events.entries()) {
    const sequence = first + i;
    const status = type === "payment.created" ? "pending" : type.replace("payment.", "");
    const is_last = i === events.length - 1;
    Object.assign(after, { status, sequence, updated_at: created_at }, is_last && members);
    const object = JSON.stringify(type === "refund.completed" ? refund : after);
    rows.events.push({
      n: 1,
      ...eventRow({ type, subject_id: after.id, sequence, object }, context),
    });
  }
  const { body, ...columns } = columnsOf(after);
  rows.payments.push({ n: 1, ...columns, body });
  const changes = [{
    n: 1,
    key_hash: parseApiKey(key)!.hash,
    scope: "payments:write",
    at: created_at,
    request_id: context.request_id,
    ...(!is_new && { expects_id: payment.id, expects_sequence: payment.sequence }),
  }];
  const { payment_id, amount_minor, currency } = refund;
  const refunds = refunded === 0 ? [] : [{
    n: 1,
    id: refund.id,
    payment_id,
    amount_minor,
    currency,
    created_at,
    body: JSON.stringify(refund),
  }];
  const movements = ledger.map(([kind, debit_account, credit_account, amount_minor]) => ({
    n: 1,
    transaction_id: mint("txn_", 3),
    leg: 0,
    kind,
    subject_id: after.id,
    refund_id: kind === "refund" ? refund.id : null,
    debit_account,
    credit_account,
    amount_minor,
    currency,
    created_at,
  }));
  const lists = [changes, rows.payments, [], refunds, movements, rows.events];
  const [row] = await sql.unsafe(COMMIT, [...lists.map((list) => JSON.stringify(list)), null]);
  return { outcome: row!["outcome"], payment: after };
}

/** The columns of release 1.0.0. */
function columnsOf(payment: Body) {
  const { id, sequence, amount_minor } = payment;
  return {
    id,
    status: payment["status"],
    amount_minor,
    amount_refunded: payment["amount_refunded"],
    currency: payment["currency"],
    method_kind: payment["method_kind"],
    reference: payment["reference"],
    sequence,
    created_at: payment["created_at"],
    updated_at: payment["updated_at"],
    body: JSON.stringify(payment),
  };
}
