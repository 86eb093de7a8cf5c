/**
 * The judge of the run with live cards. It compares the books of the provider with the rows, the
 * ledger and the responses. It shares no rule with the product.
 */

import type postgres from "postgres";
import type { StripeBooks } from "../../../support/stripe/double.ts";
import type { StripeObject } from "../../../support/stripe/journal.ts";
import { brokenInvariants, sumOf } from "../../harness/audit.ts";
import { createdIn } from "../../harness/client.ts";
import { type CardFinished, type CardResponse, isStored } from "./clients.ts";
import { RESULTS } from "./plan.ts";

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

/** A saved card as it is stored. */
interface StoredInstrument {
  id: string;
  status: string;
  customer_id: string;
  /** The references at the provider; null without a result. */
  customer: string | null;
  token: string | null;
  /** The status of the payment that has saved it. */
  payment_status: string;
}

/** The evidence of a run. */
interface CardEvidence {
  operations: readonly CardFinished[];
  payments: readonly StoredPayment[];
  refunds: readonly StoredRefund[];
  instruments: readonly StoredInstrument[];
  /** The balance at the provider by our ledger, for each payment. */
  balances: ReadonlyMap<string, number>;
  books: StripeBooks;
}

/** Reads the rows of card payments of an environment, and the breaches of the invariants. */
export async function readCardRows(sql: postgres.Sql, environment_id: string) {
  const payments = await sql<StoredPayment[]>`
    select id, status, (body::json ->> 'amount_captured')::int as amount_captured,
      amount_refunded::int from pay.payments
    where environment_id = ${environment_id} and method_kind = 'card'`;
  // An account that moves has stablecoins, too. Everything else must be a card payment.
  const others = sql`
    select id from pay.payments where environment_id = ${environment_id} and method_kind <> 'card'
    union all select id from pay.transfers where environment_id = ${environment_id}`;
  const refunds = await sql<StoredRefund[]>`
    select id, payment_id, status, amount_minor::int from pay.refunds
    where environment_id = ${environment_id} and payment_id not in (${others})`;
  const rows = await sql<{ id: string; balance: number }[]>`
    select subject_id as id, sum(case direction when 'debit' then amount_minor
      else -amount_minor end)::int as balance
    from pay.ledger_entries
    where environment_id = ${environment_id} and account in ('processor', 'chargebacks')
      and subject_id not in (${others})
    group by subject_id`;
  const instruments = await sql<StoredInstrument[]>`
    select t.id, t.status, t.customer_id, t.provider ->> 'customer' as customer,
      t.provider ->> 'token' as token, p.status as payment_status
    from pay.instruments t
    join pay.payments p on p.environment_id = t.environment_id and p.id = t.payment_id
    where t.environment_id = ${environment_id} and t.method_kind = 'card'`;
  const balances = new Map(rows.map(({ id, balance }) => [id, balance]));
  return { payments, refunds, instruments, balances, broken: await brokenInvariants(sql) };
}

/** Returns the breaches about a run that has come to rest. */
export function auditCards(evidence: CardEvidence): string[] {
  return [
    ...auditPayments(evidence),
    ...auditRefunds(evidence),
    ...auditCustomers(evidence),
    ...auditSaved(evidence),
    ...auditLedger(evidence),
    ...evidence.operations.flatMap((operation) => auditResponses(evidence, operation)),
  ];
}

/** One object for each payment, one charge at most, and the same status and amount. */
function auditPayments({ operations, payments, books }: CardEvidence): string[] {
  const objects = Map.groupBy(intentsOf(books), ({ metadata }) => metadata.payment as string);
  const charges = Map.groupBy(
    books.charge.filter(({ status }) => status === "succeeded"),
    ({ payment_intent }) => payment_intent,
  );
  const shown = new Set(operations.map(({ payment_id }) => payment_id));
  const known = new Set(payments.map(({ id }) => id));
  const breaches: string[] = [];
  for (const { id, status, amount_captured } of payments) {
    const made = objects.get(id) ?? [];
    if (!shown.has(id)) breaches.push(`${id} is in no response`);
    if (made.length !== 1) breaches.push(`${id} has ${made.length} objects at the provider`);
    const paid = made.flatMap((intent) => charges.get(intent.id) ?? []);
    if (paid.length > 1) breaches.push(`${id} was charged ${paid.length} times`);
    const captured = sumOf(paid, ({ amount_captured }) => amount_captured);
    if (captured !== amount_captured) {
      breaches.push(`${id} has captured ${amount_captured}, the provider ${captured}`);
    }
    if (made.some((intent) => intent.status !== RESULTS[status])) {
      breaches.push(`${id} is ${status}, at the provider ${made[0]!.status}`);
    }
  }
  return [
    ...breaches,
    ...[...objects.keys()].filter((id) => !known.has(id))
      .map((id) => `the provider has an object of ${id}, which is not here`),
    ...[...shown].filter((id) => id !== null && !known.has(id))
      .map((id) => `${id} was acknowledged, but is not here`),
  ];
}

/** The payments at the provider, with those of 0 that only save a card. */
function intentsOf({ payment_intent, setup_intent }: StripeBooks): StripeObject[] {
  return [...payment_intent, ...setup_intent];
}

/** One customer at the provider for each of ours that has saved a card. */
function auditCustomers({ instruments, books }: CardEvidence): string[] {
  const made = Map.groupBy(books.customer, ({ metadata }) => metadata.customer as string);
  const breaches = [...made].flatMap(([id, { length }]) =>
    length === 1 ? [] : [`${id} has ${length} customers at the provider`]
  );
  for (const { id, customer_id, customer } of instruments) {
    if (customer !== null && made.get(customer_id)?.[0]?.id !== customer) {
      breaches.push(`${id} is of ${customer}, which is not the customer of ${customer_id}`);
    }
  }
  return breaches;
}

/** The provider keeps the cards that are active here and no others, and each was detached once. */
function auditSaved({ instruments, operations, books }: CardEvidence): string[] {
  const breaches: string[] = [];
  const kept = new Map(books.payment_method.map(({ id, customer }) => [id, customer]));
  const detached = Map.groupBy(
    books.event.filter(({ type }) => type === "payment_method.detached"),
    ({ data }): string => data.object.id,
  );
  const ends = new Set(
    operations.filter(({ action }) => action.do === "end").map(({ target_id }) => target_id),
  );
  for (const { id, status, customer, token, payment_status } of instruments) {
    const is_paid = payment_status === "completed";
    const expected = !is_paid ? "failed" : ends.has(id) ? "ended" : "active";
    if (status !== expected) breaches.push(`${id} is ${status}, not ${expected}`);
    if (is_paid && token === null) breaches.push(`${id} has no card at the provider`);
    const { length } = detached.get(token ?? "") ?? [];
    if (length !== (status === "ended" ? 1 : 0)) {
      breaches.push(`${id} was detached ${length} times`);
    }
    if (status === "active" && kept.get(token!) !== customer) {
      breaches.push(`${id} is active, but the provider does not keep it`);
    }
    kept.delete(token ?? "");
  }
  for (const [id, customer] of kept) {
    if (customer !== null) breaches.push(`the provider keeps ${id}, which is no instrument`);
  }
  return breaches;
}

/** One refund at the provider for each completed refund here, of its amount, and no others. */
function auditRefunds({ operations, payments, refunds, books }: CardEvidence): string[] {
  const breaches: string[] = [];
  const made = Map.groupBy(books.refund, ({ metadata }) => metadata.refund as string);
  const shown = new Set(
    operations.filter(({ action }) => action.do === "refund")
      .flatMap(({ responses }) => responses.map(({ text }) => createdIn(text))),
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
  const completed = refunds.filter(({ status }) => status === "completed");
  const sums = Map.groupBy(completed, ({ payment_id }) => payment_id);
  for (const { id, amount_refunded } of payments) {
    const sum = sumOf(sums.get(id) ?? [], ({ amount_minor }) => amount_minor);
    if (sum !== amount_refunded) breaches.push(`${id} has ${amount_refunded} refunded, not ${sum}`);
  }
  return breaches;
}

/** The ledger has at the provider as much as the provider says, for each payment. */
function auditLedger({ payments, balances, books }: CardEvidence): string[] {
  const payment_of = new Map<string, string>(
    [...books.charge, ...books.refund].map(({ id, metadata }) => [id, metadata.payment]),
  );
  const moved = Map.groupBy(
    books.balance_transaction,
    ({ source }): string => payment_of.get(source) ?? source,
  );
  const ids = new Set([...payments.map(({ id }) => id), ...balances.keys(), ...moved.keys()]);
  return [...ids].flatMap((id) => {
    const theirs = sumOf<StripeObject>(moved.get(id) ?? [], ({ net }) => net);
    const ours = balances.get(id) ?? 0;
    return ours === theirs ? [] : [`${id}: the ledger has ${ours}, the provider ${theirs}`];
  });
}

/** Duplicates got one response, and it is true. */
function auditResponses(evidence: CardEvidence, operation: CardFinished): string[] {
  const { key, action, responses } = operation;
  const breaches: string[] = [];
  const texts = new Set(responses.map(({ status, text }) => `${status} ${text}`));
  if (texts.size > 1) breaches.push(`${key}: duplicates got ${[...texts].join(" and ")}`);
  if (responses.filter((response) => isStored(response) && !response.is_replay).length > 1) {
    breaches.push(`${key}: duplicates got several first responses`);
  }
  const [response] = responses;
  if ("is_late" in action) {
    const is_refused = response?.status === 409 && response.text.includes('"invalid_state"');
    return is_refused ? [] : [`${key}: ended, then ${response?.status} ${response?.text}`];
  }
  const is_expected = response !== undefined && isStored(response) &&
    (response.status !== 402 || action.do === "create");
  if (!is_expected) breaches.push(`${key}: ${response?.status} ${response?.text}`);
  else if (!isTrue(evidence, operation, response)) {
    breaches.push(`${key}: the provider contradicts ${response.status} ${response.text}`);
  }
  return breaches;
}

/** Whether the provider's books agree with a response. An open result is always true. */
function isTrue(
  { books }: CardEvidence,
  { action }: CardFinished,
  response: CardResponse,
): boolean {
  const shown = JSON.parse(response.text);
  if (action.do === "end") return shown.ended_reason === "deleted";
  if (action.do === "refund") {
    const made = books.refund.filter(({ metadata }) => metadata.refund === shown.id);
    if (shown.status === "pending") return true;
    return made.some(({ amount }) => amount === action.amount_minor) ===
      (shown.status === "completed");
  }
  const id = createdIn(response.text);
  const intent = intentsOf(books).find(({ metadata }) => metadata.payment === id);
  if (intent === undefined) return false;
  const { amount_received = 0 } = intent;
  if (response.status === 402 || shown.status === "declined") return amount_received === 0;
  if (shown.status === "completed") {
    return "amount_minor" in action && amount_received === action.amount_minor;
  }
  return shown.status !== "cancelled" || intent.status === "canceled";
}

/** Describes the state of a payment, its operations and its provider events. */
export async function explainPayment(sql: postgres.Sql, payment_id: string): Promise<string> {
  const rows = await sql<{ row: unknown }[]>`
    select to_jsonb(c) || jsonb_build_object('now', now()) as row
    from pay.provider_operations c where c.subject_id = ${payment_id}
    union all select to_jsonb(f) - 'body' from pay.provider_events f
    where f.subject_id = ${payment_id}
    union all select to_jsonb(p) from pay.payments p where p.id = ${payment_id}`
    .catch((error) => [{ row: String(error) }]);
  return JSON.stringify(rows.map(({ row }) => row));
}
