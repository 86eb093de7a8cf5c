/**
 * The judge of the run with a bank. It compares the books of the bank with the payments, refunds
 * and transfers, with the entries and with the provider events. It shares no rule with the product.
 */

import type postgres from "postgres";
import { written } from "../../../support/bank/bank.ts";
import type { BankBooks } from "../../../support/bank/double.ts";
import { brokenInvariants, differences, failing } from "../../harness/audit.ts";
import type { BankOrder, PushPayment } from "./clients.ts";

type BankRows = Awaited<ReturnType<typeof readBankRows>>;

interface BankEvidence extends BankRows {
  payments: readonly PushPayment[];
  orders: readonly BankOrder[];
  saved_alone: readonly string[];
  books: BankBooks;
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

export async function readBankRows(sql: postgres.Sql, account_id: string) {
  const subjects = await sql<{ id: string; status: string; amount_received: number | null }[]>`
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
    subjects: [...subjects],
    /** Why each mandate has ended; null: it is active. */
    mandates: new Map(mandates.map(({ row }) => row)),
    /** The amounts of the stored entries. */
    entries: entries.map(({ amount }) => amount),
    /** The money that provider events have booked, by the reference of their subject. */
    booked: new Map(booked.map(({ row }) => row)),
    broken: await brokenInvariants(sql, true),
  };
}

export function auditBank(evidence: BankEvidence): string[] {
  const { books, entries } = evidence;
  return [
    ...differences(
      "entry",
      entries.map((amount) => [`${amount}`]),
      books.entries.map(({ amount }) => [`${amount}`]),
    ),
    ...auditOrders(evidence),
    ...auditMandates(evidence),
    ...auditMoney(evidence),
    ...evidence.broken,
  ];
}

/** Each order is at the bank, and has the status that the bank has given it. */
function auditOrders({ orders, books, subjects }: BankEvidence): string[] {
  const statuses = new Map(subjects.map(({ id, status }) => [id, status]));
  return [
    ...differences(
      "order",
      orders.map(({ id }) => [written(id)]),
      Object.keys(books.orders).map((id) => [id]),
    ),
    ...orders.flatMap(({ id }) => {
      const [state = "", status = "undefined"] = [books.orders[written(id)], statuses.get(id)];
      const is_right = state === "taken"
        ? statuses.has(id) && !DECIDED.has(status)
        : STATUSES[state]?.includes(status);
      return is_right ? [] : [`${id} is ${status}, at the bank ${state}`];
    }),
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
function auditMoney({ payments, books, subjects, booked }: BankEvidence): string[] {
  const moved = new Map<string | null, number>();
  for (const { amount, parts } of books.entries) {
    for (const part of parts.length === 0 ? [{ amount, of: null }] : parts) {
      moved.set(part.of, (moved.get(part.of) ?? 0) + part.amount);
    }
  }
  const stored = new Map(subjects.map((subject) => [subject.id, subject]));
  return [
    ...payments.flatMap(({ id, reference, amount }) => {
      const theirs = moved.get(reference) ?? 0;
      const { status = "pending", amount_received = null } = stored.get(id) ?? {};
      const is_paid = !["pending", "failed"].includes(status);
      return failing([
        [amount_received === theirs, `${id} has received ${amount_received}, of ${theirs}`],
        [is_paid === theirs >= amount, `${id} of ${amount} is ${status} with ${theirs}`],
      ]);
    }),
    ...differences("money", booked, moved),
  ];
}
