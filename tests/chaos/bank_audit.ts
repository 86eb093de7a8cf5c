/**
 * The judge of the run with a bank. It compares the books of the bank with the payments, refunds and
 * transfers, with the entries and with the provider events. It shares no rule with the product.
 */

import type postgres from "postgres";
import { checkBooks } from "../../apps/operator/check_books.ts";
import type { BankBooks } from "../support/bank/double.ts";
import type { BankOrder, PushPayment } from "./bank_clients.ts";

/** A payment, refund or transfer as it is stored. */
interface StoredSubject {
  id: string;
  status: string;
  amount_received: number | null;
}

/** The evidence of a run that has come to rest. */
interface BankEvidence {
  payments: readonly PushPayment[];
  orders: readonly BankOrder[];
  books: BankBooks;
  subjects: readonly StoredSubject[];
  /** The amounts of the stored entries. */
  entries: readonly number[];
  /** The money that provider events have booked, by the reference of their subject. */
  booked: ReadonlyMap<string | null, number>;
  /** Breaches of the invariants. */
  broken: readonly string[];
}

/** Statuses here, by the state of an order at the bank that has decided about it. */
const STATUSES: Readonly<Record<string, readonly string[]>> = {
  booked: ["completed", "partially_refunded", "refunded"],
  rejected: ["failed"],
  returned: ["failed"],
};
const DECIDED = new Set(Object.values(STATUSES).flat());

/** Exceptions that are no fault: money without a purpose, which the operator handles. */
const TOLD = /too much|was sent to a payment that is|outside of payments/;

/** Reads everything about the account that is stored. */
export async function readBankRows(
  sql: postgres.Sql,
  account_id: string,
): Promise<Pick<BankEvidence, "subjects" | "entries" | "booked" | "broken">> {
  const subjects = await sql<StoredSubject[]>`
    select id, status, (body::json ->> 'amount_received')::int as amount_received
    from pay.payments
    union all select id, status, null from pay.refunds
    union all select id, status, null from pay.transfers`;
  const entries = await sql<{ amount: number }[]>`
    select amount_minor::int as amount from pay.bank_entries where account_id = ${account_id}`;
  const booked = await sql<{ reference: string | null; sum: number }[]>`
    select provider_reference as reference, sum(booked_minor)::int as sum
    from pay.provider_events where account_id = ${account_id} group by provider_reference`;
  return {
    subjects,
    entries: entries.map(({ amount }) => amount),
    booked: new Map(booked.map(({ reference, sum }) => [reference, sum])),
    broken: await readInvariants(sql),
  };
}

/** Returns the breaches of a run. */
export function auditBank(evidence: BankEvidence): string[] {
  const { books, entries, booked } = evidence;
  const at_bank = books.entries.map(({ amount }) => amount);
  const breaches: string[] = [];
  if (entries.length !== at_bank.length) {
    breaches.push(`${entries.length} entries are stored, and the bank has ${at_bank.length}`);
  }
  const [balance, stored, ledger] = [at_bank, entries, [...booked.values()]].map(sumOf);
  if (stored !== balance) breaches.push(`the entries are ${stored}, at the bank ${balance}`);
  if (ledger !== balance) breaches.push(`the ledger has ${ledger}, the statement ${balance}`);
  return [...breaches, ...auditOrders(evidence), ...auditMoney(evidence), ...evidence.broken];
}

/** Each order is at the bank, and has the status that the bank has given it. */
function auditOrders({ orders, books, subjects }: BankEvidence): string[] {
  const statuses = new Map(subjects.map(({ id, status }) => [id, status]));
  const known = new Set(orders.map(({ id }) => written(id)));
  return [
    ...orders.flatMap(({ id }) => {
      const [state, status] = [books.orders[written(id)], statuses.get(id)];
      if (state === undefined) return [`${id} is ${status}, and the bank never got it`];
      const is_right = status !== undefined &&
        (state === "taken" ? !DECIDED.has(status) : STATUSES[state]?.includes(status));
      return is_right ? [] : [`${id} is ${status}, at the bank ${state}`];
    }),
    ...Object.keys(books.orders).filter((id) => !known.has(id))
      .map((id) => `the bank has got ${id}, which nobody has ordered`),
  ];
}

/** The money of each order and payment is that of its entries, to the cent. */
function auditMoney({ payments, orders, books, subjects, booked }: BankEvidence): string[] {
  const moved = new Map<string | null, number>();
  for (const { amount, parts } of books.entries) {
    for (const part of parts.length === 0 ? [{ amount, of: null }] : parts) {
      moved.set(part.of, (moved.get(part.of) ?? 0) + part.amount);
    }
  }
  const stored = new Map(subjects.map((subject) => [subject.id, subject]));
  const breaches = payments.flatMap(({ id, reference, amount }) => {
    const received = moved.get(reference) ?? 0;
    const payment = stored.get(id);
    const is_paid = payment !== undefined && !["pending", "failed"].includes(payment.status);
    return [
      ...payment?.amount_received === received
        ? []
        : [`${id} has received ${payment?.amount_received}, at the bank ${received}`],
      ...is_paid === received >= amount
        ? []
        : [`${id} of ${amount} is ${payment?.status} with ${received}`],
    ];
  });
  const references = [
    ...payments.map(({ reference }) => reference),
    ...orders.map(({ id }) => written(id)),
    null,
  ];
  for (const reference of references) {
    const [ours, theirs] = [booked, moved].map((sums) => sums.get(reference) ?? 0);
    if (ours !== theirs) {
      breaches.push(`${reference ?? "other money"}: booked ${ours}, at the bank ${theirs}`);
    }
  }
  return breaches;
}

/** Returns the breaches of the invariants, without those that the operator handles. */
async function readInvariants(sql: postgres.Sql): Promise<string[]> {
  const broken = (await checkBooks(sql))
    .filter(({ invariant, breaches }) => breaches > 0 && invariant !== "invariant_reported_events")
    .flatMap(({ invariant, examples }) => examples.map((example) => `${invariant}: ${example}`));
  const events = await sql<{ detail: string }[]>`
    select coalesce(subject_id, 'the account') || ': ' || detail as detail
    from pay.invariant_reported_events`;
  return [...broken, ...events.map(({ detail }) => detail).filter((text) => !TOLD.test(text))];
}

/** Our id as bank files have it. */
function written(id: string): string {
  return id.replace("_", "-");
}

function sumOf(amounts: readonly number[]): number {
  return amounts.reduce((sum, amount) => sum + amount, 0);
}
