/**
 * The judge of the live run. It compares the books of the provider with the rows, the ledger and
 * the responses. It shares no rule with the product.
 */

import type postgres from "postgres";
import { checkBooks } from "../../apps/operator/check_books.ts";
import type { StripeBooks } from "../support/stripe/double.ts";
import type { StripeObject } from "../support/stripe/journal.ts";
import { isStored, type LiveFinished, type LiveResponse, paymentOf } from "./live_clients.ts";
import { RESULTS } from "./live_plan.ts";

/** A payment as it is stored. Amounts are in minor units. */
interface StoredPayment {
  id: string;
  status: string;
  amount_captured: number;
  amount_refunded: number;
}

/** A refund as it is stored. */
interface StoredRefund {
  id: string;
  payment_id: string;
  status: string;
  amount_minor: number;
}

/** The evidence of a live run. */
export interface LiveEvidence {
  operations: readonly LiveFinished[];
  payments: readonly StoredPayment[];
  refunds: readonly StoredRefund[];
  /** The balance at the provider by our ledger, for each payment. */
  balances: ReadonlyMap<string, number>;
  books: StripeBooks;
}

/** Reads the rows and the invariants of a live environment. */
export async function readOurBooks(
  sql: postgres.Sql,
  environment_id: string,
): Promise<Pick<LiveEvidence, "payments" | "refunds" | "balances"> & { broken: string[] }> {
  const payments = await sql<StoredPayment[]>`
    select id, status, (body::json ->> 'amount_captured')::int as amount_captured,
      amount_refunded::int from pay.payments where environment_id = ${environment_id}`;
  const refunds = await sql<StoredRefund[]>`
    select id, payment_id, status, amount_minor::int from pay.refunds
    where environment_id = ${environment_id}`;
  const rows = await sql<{ id: string; balance: number }[]>`
    select subject_id as id, sum(case direction when 'debit' then amount_minor
      else -amount_minor end)::int as balance
    from pay.ledger_entries
    where environment_id = ${environment_id} and account in ('processor', 'chargebacks')
    group by subject_id`;
  const broken = (await checkBooks(sql)).filter(({ breaches }) => breaches > 0)
    .flatMap(({ invariant, examples }) => examples.map((example) => `${invariant}: ${example}`));
  const balances = new Map(rows.map(({ id, balance }) => [id, balance]));
  return { payments, refunds, balances, broken };
}

/** Returns the breaches about a run that has come to rest. */
export function auditLive(evidence: LiveEvidence): string[] {
  return [
    ...auditPayments(evidence),
    ...auditRefunds(evidence),
    ...auditLedger(evidence),
    ...evidence.operations.flatMap((operation) => auditResponses(evidence, operation)),
  ];
}

/** One object for each payment, one charge at most, and the same status and amount. */
function auditPayments({ operations, payments, books }: LiveEvidence): string[] {
  const breaches: string[] = [];
  const objects = groupBy(books.payment_intent, ({ metadata }) => metadata.payment);
  const charges = groupBy(
    books.charge.filter(({ status }) => status === "succeeded"),
    ({ payment_intent }) => payment_intent,
  );
  const shown = new Set(operations.map(({ payment_id }) => payment_id));
  for (const { id, status, amount_captured } of payments) {
    const made = objects.get(id) ?? [];
    if (!shown.has(id)) breaches.push(`${id} is in no response`);
    if (made.length !== 1) breaches.push(`${id} has ${made.length} objects at the provider`);
    const paid = made.flatMap((intent) => charges.get(intent.id) ?? []);
    if (paid.length > 1) breaches.push(`${id} was charged ${paid.length} times`);
    const captured = sumOf(paid, "amount_captured");
    if (captured !== amount_captured) {
      breaches.push(`${id} has captured ${amount_captured}, the provider ${captured}`);
    }
    if (made.some((intent) => intent.status !== RESULTS[status])) {
      breaches.push(`${id} is ${status}, at the provider ${made[0]!.status}`);
    }
  }
  const known = new Set(payments.map(({ id }) => id));
  for (const id of objects.keys()) {
    if (!known.has(id)) breaches.push(`the provider has an object of ${id}, which is not here`);
  }
  for (const id of shown) {
    if (id !== null && !known.has(id)) breaches.push(`${id} was acknowledged, but is not here`);
  }
  return breaches;
}

/** One refund at the provider for each completed refund here, of its amount, and no others. */
function auditRefunds({ operations, payments, refunds, books }: LiveEvidence): string[] {
  const breaches: string[] = [];
  const made = groupBy(books.refund, ({ metadata }) => metadata.refund);
  const shown = new Set(
    operations.filter(({ action }) => action.do === "refund")
      .flatMap(({ responses }) => responses.map(({ body }) => idOf(body))),
  );
  for (const { id, status, amount_minor } of refunds) {
    const done = (made.get(id) ?? []).filter((refund) => refund.status === "succeeded");
    const expected = status === "completed" ? 1 : 0;
    if (!shown.has(id)) breaches.push(`${id} is in no response`);
    if (done.length !== expected) {
      breaches.push(`${id} is ${status}, but was refunded ${done.length} times`);
    }
    if (done.some(({ amount }) => amount !== amount_minor)) {
      breaches.push(`${id} is of ${amount_minor}, at the provider of ${done[0]!.amount}`);
    }
    if (status === "pending") breaches.push(`${id} is still pending`);
  }
  const known = new Set(refunds.map(({ id }) => id));
  for (const id of made.keys()) {
    if (!known.has(id)) breaches.push(`the provider has a refund ${id}, which is not here`);
  }
  const sums = groupBy(
    refunds.filter(({ status }) => status === "completed"),
    ({ payment_id }) => payment_id,
  );
  for (const { id, amount_refunded } of payments) {
    const sum = (sums.get(id) ?? []).reduce((all, { amount_minor }) => all + amount_minor, 0);
    if (sum !== amount_refunded) breaches.push(`${id} has ${amount_refunded} refunded, not ${sum}`);
  }
  return breaches;
}

/** The ledger has at the provider as much as the provider says, for each payment. */
function auditLedger({ payments, balances, books }: LiveEvidence): string[] {
  const payment_of = new Map<string, string>();
  for (const { id, metadata } of [...books.charge, ...books.refund]) {
    payment_of.set(id, metadata.payment);
  }
  const moved = groupBy(
    books.balance_transaction,
    ({ source }) => payment_of.get(source) ?? source,
  );
  const ids = new Set([...payments.map(({ id }) => id), ...balances.keys(), ...moved.keys()]);
  return [...ids].flatMap((id) => {
    const [ours, theirs] = [balances.get(id) ?? 0, sumOf(moved.get(id) ?? [], "net")];
    return ours === theirs ? [] : [`${id}: the ledger has ${ours}, the provider ${theirs}`];
  });
}

/** Duplicates got one response, and it is true. */
function auditResponses(evidence: LiveEvidence, operation: LiveFinished): string[] {
  const { key, action, responses } = operation;
  const breaches: string[] = [];
  const texts = new Set(responses.map(({ status, body }) => `${status} ${body}`));
  if (texts.size > 1) breaches.push(`${key}: duplicates got ${[...texts].join(" and ")}`);
  if (responses.filter((response) => isStored(response) && !response.is_replay).length > 1) {
    breaches.push(`${key}: duplicates got several first responses`);
  }
  const [response] = responses;
  const is_expected = response !== undefined && isStored(response) &&
    (response.status !== 402 || action.do === "create");
  if (!is_expected) breaches.push(`${key}: ${response?.status} ${response?.body}`);
  else if (!isTrue(evidence, operation, response)) {
    breaches.push(`${key}: the provider contradicts ${response.status} ${response.body}`);
  }
  return breaches;
}

/** Whether the provider's books agree with a response. An open result is always true. */
function isTrue(
  { books }: LiveEvidence,
  { action }: LiveFinished,
  response: LiveResponse,
): boolean {
  const shown = JSON.parse(response.body);
  if (action.do === "refund") {
    const made = books.refund.filter(({ metadata }) => metadata.refund === shown.id);
    if (shown.status === "pending") return true;
    return made.some(({ amount }) => amount === action.amount_minor) ===
      (shown.status === "completed");
  }
  const id = paymentOf(response);
  const intent = books.payment_intent.find(({ metadata }) => metadata.payment === id);
  if (intent === undefined) return false;
  if (response.status === 402 || shown.status === "declined") return intent.amount_received === 0;
  if (shown.status === "completed") {
    return "amount_minor" in action && intent.amount_received === action.amount_minor;
  }
  if (shown.status === "cancelled") return intent.status === "canceled";
  return true;
}

function idOf(body: string): string | null {
  try {
    return JSON.parse(body).id ?? null;
  } catch {
    return null;
  }
}

function groupBy<T>(items: readonly T[], nameOf: (item: T) => string): Map<string, T[]> {
  return Map.groupBy(items, nameOf);
}

function sumOf(objects: readonly StripeObject[], field: string): number {
  return objects.reduce((sum, object) => sum + object[field], 0);
}

/** Describes the state of a payment, its operations and its provider events. */
export async function explainPayment(sql: postgres.Sql, payment_id: string): Promise<string> {
  const rows = await sql<{ row: string }[]>`
    select to_jsonb(c) || jsonb_build_object('now', now()) as row
    from pay.provider_operations c where c.subject_id = ${payment_id}
    union all select to_jsonb(f) - 'body' from pay.provider_events f
    where f.subject_id = ${payment_id}
    union all select to_jsonb(p) from pay.payments p where p.id = ${payment_id}`
    .catch((error) => [{ row: String(error) }]);
  return JSON.stringify(rows.map(({ row }) => row));
}
