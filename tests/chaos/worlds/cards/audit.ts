/**
 * The judge of the run with live cards. It compares the books of the provider with the rows, the
 * ledger and the responses. It shares no rule with the product.
 */

import type postgres from "postgres";
import type { StripeBooks } from "../../../support/stripe/double.ts";
import type { StripeObject } from "../../../support/stripe/journal.ts";
import { brokenInvariants, failing, sumOf } from "../../harness/audit.ts";
import { createdIn } from "../../harness/client.ts";
import { type CardFinished, type CardResponse, isStored } from "./clients.ts";
import { RESULTS } from "./plan.ts";

/** The stored rows. Amounts are in minor units. */
interface CardRows {
  payments: { id: string; status: string; amount_captured: number; amount_refunded: number }[];
  refunds: { id: string; payment_id: string; status: string; amount_minor: number }[];
  instruments: {
    id: string;
    status: string;
    customer_id: string;
    /** The references at the provider; null without a result. */
    customer: string | null;
    token: string | null;
    /** Of the payment that has saved it. */
    payment_status: string;
  }[];
  /** The balance at the provider by our ledger, for each payment. */
  balances: ReadonlyMap<string, number>;
}

interface CardEvidence extends CardRows {
  operations: readonly CardFinished[];
  books: StripeBooks;
}

/** Reads the rows of card payments of an environment, and the breaches of the invariants. */
export async function readCardRows(
  sql: postgres.Sql,
  environment_id: string,
): Promise<CardRows & { broken: string[] }> {
  const payments = await sql<CardRows["payments"]>`
    select id, status, (body::json ->> 'amount_captured')::int as amount_captured,
      amount_refunded::int from pay.payments
    where environment_id = ${environment_id} and method_kind = 'card'`;
  // An account that moves has stablecoins, too. Everything else must be a card payment.
  const others = sql`
    select id from pay.payments where environment_id = ${environment_id} and method_kind <> 'card'
    union all select id from pay.transfers where environment_id = ${environment_id}`;
  const refunds = await sql<CardRows["refunds"]>`
    select id, payment_id, status, amount_minor::int from pay.refunds
    where environment_id = ${environment_id} and payment_id not in (${others})`;
  const balances = await sql<{ row: [id: string, balance: number] }[]>`
    select json_build_array(subject_id, sum(case direction when 'debit' then amount_minor
      else -amount_minor end)) as row
    from pay.ledger_entries
    where environment_id = ${environment_id} and account in ('processor', 'chargebacks')
      and subject_id not in (${others})
    group by subject_id`;
  const instruments = await sql<CardRows["instruments"]>`
    select t.id, t.status, t.customer_id, t.provider ->> 'customer' as customer,
      t.provider ->> 'token' as token, p.status as payment_status
    from pay.instruments t
    join pay.payments p on p.environment_id = t.environment_id and p.id = t.payment_id
    where t.environment_id = ${environment_id} and t.method_kind = 'card'`;
  return {
    ...{ payments, refunds, instruments, balances: new Map(balances.map(({ row }) => row)) },
    broken: await brokenInvariants(sql),
  };
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
  return [
    ...payments.flatMap(({ id, status, amount_captured: ours }) => {
      const made = objects.get(id) ?? [];
      const paid = made.flatMap((intent) => charges.get(intent.id) ?? []);
      const theirs = sumOf(paid, ({ amount_captured }) => amount_captured);
      const other = made.find((intent) => intent.status !== RESULTS[status]);
      return failing([
        [shown.has(id), `${id} is in no response`],
        [made.length === 1, `${id} has ${made.length} objects at the provider`],
        [paid.length <= 1, `${id} was charged ${paid.length} times`],
        [theirs === ours, `${id} has captured ${ours}, the provider ${theirs}`],
        [other === undefined, `${id} is ${status}, at the provider ${other?.status}`],
      ]);
    }),
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
  return failing([
    ...[...made].map(([id, { length }]) =>
      [length === 1, `${id} has ${length} customers at the provider`] as const
    ),
    ...instruments.map(({ id, customer_id, customer }) => {
      const is_theirs = customer === null || made.get(customer_id)?.[0]?.id === customer;
      return [is_theirs, `${id} is of ${customer}, which is not ${customer_id}`] as const;
    }),
  ]);
}

/** The provider keeps the cards that are active here and no others, and each was detached once. */
function auditSaved({ instruments, operations, books }: CardEvidence): string[] {
  const kept = new Map(books.payment_method.map(({ id, customer }) => [id, customer]));
  const detached = Map.groupBy(
    books.event.filter(({ type }) => type === "payment_method.detached"),
    ({ data }): string => data.object.id,
  );
  const ends = new Set(
    operations.filter(({ action }) => action.do === "end").map(({ target_id }) => target_id),
  );
  const breaches = instruments.flatMap(({ id, status, customer, token, payment_status }) => {
    const is_paid = payment_status === "completed";
    const expected = !is_paid ? "failed" : ends.has(id) ? "ended" : "active";
    const { length } = detached.get(token ?? "") ?? [];
    const is_kept = status !== "active" || kept.get(token!) === customer;
    kept.delete(token ?? "");
    return failing([
      [status === expected, `${id} is ${status}, not ${expected}`],
      [!is_paid || token !== null, `${id} has no card at the provider`],
      [length === (status === "ended" ? 1 : 0), `${id} was detached ${length} times`],
      [is_kept, `${id} is active, but the provider does not keep it`],
    ]);
  });
  const strange = [...kept].filter(([, customer]) => customer !== null)
    .map(([id]) => `the provider keeps ${id}, which is no instrument`);
  return [...breaches, ...strange];
}

/** One refund at the provider for each completed refund here, of its amount, and no others. */
function auditRefunds({ operations, payments, refunds, books }: CardEvidence): string[] {
  const made = Map.groupBy(books.refund, ({ metadata }) => metadata.refund as string);
  const shown = new Set(
    operations.filter(({ action }) => action.do === "refund")
      .flatMap(({ responses }) => responses.map(({ text }) => createdIn(text))),
  );
  const known = new Set(refunds.map(({ id }) => id));
  const completed = refunds.filter(({ status }) => status === "completed");
  const sums = Map.groupBy(completed, ({ payment_id }) => payment_id);
  return [
    ...refunds.flatMap(({ id, status, amount_minor }) => {
      const done = (made.get(id) ?? []).filter((refund) => refund.status === "succeeded");
      const times = done.length;
      const other = done.find(({ amount }) => amount !== amount_minor);
      return failing([
        [shown.has(id), `${id} is in no response`],
        [
          times === (status === "completed" ? 1 : 0),
          `${id} is ${status}, but was refunded ${times} times`,
        ],
        [!other, `${id} is of ${amount_minor}, at the provider of ${other?.amount}`],
        [status !== "pending", `${id} is still pending`],
      ]);
    }),
    ...[...made.keys()].filter((id) => !known.has(id))
      .map((id) => `the provider has a refund ${id}, which is not here`),
    ...payments.flatMap(({ id, amount_refunded: ours }) => {
      const sum = sumOf(sums.get(id) ?? [], ({ amount_minor }) => amount_minor);
      return failing([[sum === ours, `${id} has ${ours} refunded, not ${sum}`]]);
    }),
  ];
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
  const texts = new Set(responses.map(({ status, text }) => `${status} ${text}`));
  const firsts = responses.filter((response) => isStored(response) && !response.is_replay);
  const breaches = failing([
    [texts.size === 1, `${key}: duplicates got ${[...texts].join(" and ")}`],
    [firsts.length <= 1, `${key}: duplicates got several first responses`],
  ]);
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
