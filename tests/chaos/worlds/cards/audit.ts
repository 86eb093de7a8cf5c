/**
 * The judge of the run with live cards. It compares the books of the provider with the rows, the
 * ledger and the responses. It shares no rule with the product.
 */

import type postgres from "postgres";
import type { StripeBooks } from "../../../support/stripe/double.ts";
import type { StripeObject } from "../../../support/stripe/journal.ts";
import {
  brokenInvariants,
  differences,
  duplicateFaults,
  failing,
  sumOf,
} from "../../harness/audit.ts";
import { type ApiResponse, createdIn } from "../../harness/client.ts";
import { type CardFinished, isStored } from "./clients.ts";
import { RESULTS } from "./plan.ts";

type CardRows = Omit<Awaited<ReturnType<typeof readCardRows>>, "broken">;

interface CardEvidence extends CardRows {
  operations: readonly CardFinished[];
  books: StripeBooks;
}

/** Reads the rows of card payments of an environment, and the breaches of the invariants. */
export async function readCardRows(sql: postgres.Sql, environment_id: string) {
  const payments = await sql<{ id: string; status: string; amount_captured: number }[]>`
    select id, status, (body::json ->> 'amount_captured')::int as amount_captured
    from pay.payments
    where environment_id = ${environment_id} and method_kind = 'card'`;
  // An account that moves has stablecoins, too. Everything else must be a card payment.
  const others = sql`
    select id from pay.payments where environment_id = ${environment_id} and method_kind <> 'card'
    union all select id from pay.transfers where environment_id = ${environment_id}`;
  const refunds = await sql<{ id: string; status: string; amount_minor: number }[]>`
    select id, status, amount_minor::int from pay.refunds
    where environment_id = ${environment_id} and payment_id not in (${others})`;
  const balances = await sql<{ row: [id: string, balance: number] }[]>`
    select json_build_array(subject_id, sum(case direction when 'debit' then amount_minor
      else -amount_minor end)) as row
    from pay.ledger_entries
    where environment_id = ${environment_id} and account in ('processor', 'chargebacks')
      and subject_id not in (${others})
    group by subject_id`;
  const instruments = await sql<
    {
      id: string;
      status: string;
      customer_id: string;
      /** The references at the provider; null without a result. */
      customer: string | null;
      token: string | null;
      /** Of the payment that has saved it. */
      payment_status: string;
    }[]
  >`
    select t.id, t.status, t.customer_id, t.provider ->> 'customer' as customer,
      t.provider ->> 'token' as token, p.status as payment_status
    from pay.instruments t
    join pay.payments p on p.environment_id = t.environment_id and p.id = t.payment_id
    where t.environment_id = ${environment_id} and t.method_kind = 'card'`;
  return {
    ...{ payments: [...payments], refunds: [...refunds], instruments: [...instruments] },
    /** The balance at the provider by our ledger, for each payment. */
    balances: new Map(balances.map(({ row }) => row)),
    broken: await brokenInvariants(sql),
  };
}

/** Returns the breaches about a run that has come to rest. */
export function auditCards(evidence: CardEvidence): string[] {
  return [
    ...auditMoney(evidence),
    ...auditSaved(evidence),
    ...evidence.operations.flatMap((operation) => auditResponses(evidence, operation)),
  ];
}

/**
 * Each payment has one object at the provider, of its status, and at most one charge. Each refund
 * has one refund. The ledger has as much at the provider as the provider says.
 */
function auditMoney(evidence: CardEvidence): string[] {
  const { operations, payments, refunds, balances, books } = evidence;
  const payment_of = new Map<string, string>(
    [...books.charge, ...books.refund].map(({ id, metadata }) => [id, metadata.payment]),
  );
  const moved = Map.groupBy(
    books.balance_transaction,
    ({ source }): string => payment_of.get(source) ?? source,
  );
  const refunded = operations.filter(({ action }) => action.do === "refund")
    .flatMap(({ responses }) => createdIn(responses[0]?.text ?? "") ?? []);
  return [
    ...differences(
      "response",
      payments.map(({ id }) => [id]),
      [...new Set(operations.flatMap(({ payment_id }) => payment_id ?? []))].map((id) => [id]),
    ),
    ...differences(
      "object",
      payments.map(({ id, status }) => [id, RESULTS[status]]),
      intentsOf(books).map(({ metadata, status }) => [metadata.payment, status]),
    ),
    ...differences(
      "charge",
      payments.map(({ id, amount_captured }) => [id, amount_captured]),
      books.charge.filter(({ status }) => status === "succeeded")
        .map(({ metadata, amount_captured }) => [metadata.payment, amount_captured]),
    ),
    ...differences("response", refunds.map(({ id }) => [id]), refunded.map((id) => [id])),
    ...differences(
      "refund",
      refunds.filter(({ status }) => status !== "failed")
        .map(({ id, status, amount_minor }) => [id, `${status} ${amount_minor}`]),
      books.refund.filter(({ status }) => status === "succeeded")
        .map(({ metadata, amount }) => [metadata.refund, `completed ${amount}`]),
    ),
    ...differences(
      "balance",
      balances,
      [...moved].map(([id, all]) => [id, sumOf<StripeObject>(all, ({ net }) => net)] as const),
    ),
  ];
}

/** The payments at the provider, with those of 0 that only save a card. */
function intentsOf({ payment_intent, setup_intent }: StripeBooks): StripeObject[] {
  return [...payment_intent, ...setup_intent];
}

/**
 * Each of our customers is one customer at the provider, which keeps the cards that are active here
 * and no others. Each card that has ended was detached once.
 */
function auditSaved({ instruments, operations, books }: CardEvidence): string[] {
  const made = Map.groupBy(books.customer, ({ metadata }) => metadata.customer as string);
  const ends = new Set(
    operations.filter(({ action }) => action.do === "end").map(({ target_id }) => target_id),
  );
  return [
    ...failing(
      [...made].map(([id, { length }]) =>
        [length === 1, `${id} has ${length} customers at the provider`] as const
      ),
    ),
    ...instruments.flatMap(({ id, status, customer_id, customer, token, payment_status }) => {
      const is_paid = payment_status === "completed";
      const expected = !is_paid ? "failed" : ends.has(id) ? "ended" : "active";
      const is_theirs = customer === null || made.get(customer_id)?.[0]?.id === customer;
      return failing([
        [status === expected, `${id} is ${status}, not ${expected}`],
        [!is_paid || token !== null, `${id} has no card at the provider`],
        [is_theirs, `${id} is of ${customer}, which is not ${customer_id}`],
      ]);
    }),
    ...differences(
      "card of",
      instruments.filter(({ status }) => status === "active")
        .map(({ token, customer }) => [token, customer]),
      books.payment_method.filter(({ customer }) => customer !== null)
        .map(({ id, customer }) => [id, customer]),
    ),
    ...differences(
      "end",
      instruments.filter(({ status }) => status === "ended").map(({ token }) => [token]),
      books.event.filter(({ type }) => type === "payment_method.detached")
        .map(({ data }) => [data.object.id]),
    ),
  ];
}

/** Duplicates got one response, and it is true. */
function auditResponses(evidence: CardEvidence, operation: CardFinished): string[] {
  const { key, action, responses } = operation;
  const breaches = duplicateFaults(key, responses);
  const [response] = responses;
  if (action.is_late) {
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
  response: ApiResponse,
): boolean {
  const shown = JSON.parse(response.text);
  if (action.do === "end") return shown.ended_reason === "deleted";
  if (action.do === "refund") {
    const made = books.refund.filter(({ metadata }) => metadata.refund === shown.id);
    if (shown.status === "pending") return true;
    return made.some(({ amount }) => amount === action.body?.amount_minor) ===
      (shown.status === "completed");
  }
  const id = createdIn(response.text);
  const intent = intentsOf(books).find(({ metadata }) => metadata.payment === id);
  if (intent === undefined) return false;
  const { amount_received = 0 } = intent;
  if (response.status === 402 || shown.status === "declined") return amount_received === 0;
  if (shown.status === "completed") return amount_received === action.body?.amount_minor;
  return shown.status !== "cancelled" || intent.status === "canceled";
}
