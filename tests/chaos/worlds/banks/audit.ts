/**
 * The judge of the run with a bank. It compares the books of the bank with the payments, refunds
 * and transfers, with the entries and with the provider events. It shares no rule with the product.
 */

import type postgres from "postgres";
import { written } from "../../../support/bank/bank.ts";
import type { BankBooks } from "../../../support/bank/double.ts";
import { brokenInvariants, failing, sumOf } from "../../harness/audit.ts";
import type { BankOrder, PushPayment } from "./clients.ts";

interface BankEvidence extends BankRows {
  payments: readonly PushPayment[];
  orders: readonly BankOrder[];
  saved_alone: readonly string[];
  books: BankBooks;
}

interface BankRows {
  /** Payments, refunds and transfers. */
  subjects: readonly { id: string; status: string; amount_received: number | null }[];
  /** Why each mandate has ended; null: it is active. */
  mandates: ReadonlyMap<string, string | null>;
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
/** Why a mandate ends, by the code of the bank. */
const ENDS: Readonly<Record<string, string>> = {
  AC04: "account_closed",
  AC06: "account_closed",
  MD01: "revoked",
};

export async function readBankRows(sql: postgres.Sql, account_id: string): Promise<BankRows> {
  const subjects = await sql<BankRows["subjects"][number][]>`
    select id, status, (body::json ->> 'amount_received')::int as amount_received
    from pay.payments
    union all select id, status, null from pay.refunds
    union all select id, status, null from pay.transfers`;
  const mandates = await sql<{ row: [string, string | null] }[]>`
    select json_build_array(mandate_id, case when status <> 'active'
      then coalesce(ended_reason, status) end) as row
    from pay.instruments`;
  const entries = await sql<{ amount: number }[]>`
    select amount_minor::int as amount from pay.bank_entries where account_id = ${account_id}`;
  const booked = await sql<{ row: [string | null, number] }[]>`
    select json_build_array(provider_reference, sum(booked_minor)) as row
    from pay.provider_events where account_id = ${account_id} group by provider_reference`;
  return {
    subjects,
    mandates: new Map(mandates.map(({ row }) => row)),
    entries: entries.map(({ amount }) => amount),
    booked: new Map(booked.map(({ row }) => row)),
    broken: await brokenInvariants(sql, true),
  };
}

export function auditBank(evidence: BankEvidence): string[] {
  const { books, entries, booked } = evidence;
  const count = books.entries.length;
  const balance = sumOf(books.entries, ({ amount }) => amount);
  const [stored, ledger] = [entries, [...booked.values()]]
    .map((amounts) => sumOf(amounts, (amount) => amount));
  return [
    ...failing([
      [entries.length === count, `${entries.length} entries are stored, and the bank has ${count}`],
      [stored === balance, `the entries are ${stored}, at the bank ${balance}`],
      [ledger === balance, `the ledger has ${ledger}, the statement ${balance}`],
    ]),
    ...auditOrders(evidence),
    ...auditMandates(evidence),
    ...auditMoney(evidence),
    ...evidence.broken,
  ];
}

/** Each order is at the bank, and has the status that the bank has given it. */
function auditOrders({ orders, books, subjects }: BankEvidence): string[] {
  const statuses = new Map(subjects.map(({ id, status }) => [id, status]));
  const known = new Set(orders.map(({ id }) => written(id)));
  return [
    ...orders.flatMap(({ id }) => {
      const [state, status = "undefined"] = [books.orders[written(id)], statuses.get(id)];
      const is_right = state === "taken"
        ? statuses.has(id) && !DECIDED.has(status)
        : STATUSES[state ?? ""]?.includes(status);
      const theirs = state === undefined ? "and the bank never got it" : `at the bank ${state}`;
      return is_right ? [] : [`${id} is ${status}, ${theirs}`];
    }),
    ...Object.keys(books.orders).filter((id) => !known.has(id))
      .map((id) => `the bank has got ${id}, which nobody has ordered`),
  ];
}

/**
 * Each collection is under its mandate, and the bank has told of one that has ended. A payment that
 * saves a mandate alone is completed.
 */
function auditMandates(evidence: BankEvidence): string[] {
  const { orders, saved_alone, books, subjects, mandates } = evidence;
  const reasons = Map.groupBy(
    orders.filter(({ id }) => (books.codes[written(id)] ?? "") in ENDS),
    ({ mandate }) => mandate,
  );
  return [
    ...orders.flatMap(({ id, mandate }) => {
      const theirs = books.mandates[written(id)] ?? null;
      const is_right = theirs === mandate || books.orders[written(id)] === undefined;
      return is_right ? [] : [`${id} is under ${mandate}, at the bank under ${theirs}`];
    }),
    ...[...mandates].filter(([id, ended]) => {
      // The first one ends it.
      const expected = reasons.get(id)?.map((order) => ENDS[books.codes[written(order.id)]!]) ?? [];
      return ended === null ? expected.length > 0 : !expected.includes(ended);
    }).map(([id, ended]) => `the mandate ${id} is ${ended ?? "active"}`),
    ...subjects.filter(({ id, status }) => saved_alone.includes(id) && status !== "completed")
      .map(({ id, status }) => `${id} saves a mandate alone, and is ${status}`),
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
  const of_payments = payments.flatMap(({ id, reference, amount }) => {
    const theirs = moved.get(reference) ?? 0;
    const { status = "pending", amount_received = null } = stored.get(id) ?? {};
    const is_paid = !["pending", "failed"].includes(status);
    return failing([
      [amount_received === theirs, `${id} has received ${amount_received}, at the bank ${theirs}`],
      [is_paid === theirs >= amount, `${id} of ${amount} is ${status} with ${theirs}`],
    ]);
  });
  const references = [
    ...payments.map(({ reference }) => reference),
    ...orders.map(({ id }) => written(id)),
    null,
  ];
  return [
    ...of_payments,
    ...failing(references.map((reference) => {
      const [ours, theirs] = [booked, moved].map((sums) => sums.get(reference) ?? 0);
      const name = reference ?? "other money";
      return [ours === theirs, `${name}: booked ${ours}, at the bank ${theirs}`];
    })),
  ];
}
