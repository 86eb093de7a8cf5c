/**
 * A request for a page of a list, and the classification of its cost for the database (ADR 0004).
 */

import type { ResourceKind } from "./load_statement.ts";

export type ListKind =
  | Exclude<ResourceKind, "idempotency_keys">
  | "ledger_entries"
  | "payment_totals";

export interface PageRequest {
  kind: ListKind;
  limit: number;
  starting_after: string | null;
  /** `pay_internal.list_condition`; `id_from` (inclusive), `id_before` (exclusive) bound the id. */
  filters: Record<string, string>;
  /** A payment that must exist, else the list is 404. */
  parent_id?: string;
  /** With the number of items of the whole list. */
  counts?: boolean;
}

/** The filters whose index has the order of the list (`pay_internal.list_column`). */
const INDEXED: Readonly<Partial<Record<ListKind, readonly string[]>>> = {
  payments: ["reference", "customer_id", "instrument_id", "checkout_id", "status"],
  instruments: ["customer_id"],
  checkouts: ["reference", "customer_id"],
  refunds: ["payment_id"],
  disputes: ["payment_id", "status"],
  transfers: ["status"],
  ledger_entries: ["subject_id", "transaction_id"],
  webhook_deliveries: ["endpoint_id"],
};

/**
 * Reports whether the page lists payments without filters. Such pages share statements (ADR 0004).
 */
export function isPlain({ kind, filters, parent_id, counts }: PageRequest): boolean {
  return kind === "payments" && Object.keys(filters).length === 0 && parent_id === undefined &&
    counts !== true;
}

/**
 * Reports whether the database reads only the rows that the page shows. This is true without a
 * filter, or with one filter whose index has the order of the list. Bounds of the id change
 * nothing. The log of requests is short, so all of its pages are cheap. Any other page can read
 * many rows for few items.
 */
export function isCheap({ kind, filters }: PageRequest): boolean {
  const columns = Object.keys(filters).filter((name) => name !== "id_from" && name !== "id_before");
  if (columns.length === 0 || kind === "requests") return true;
  const [column] = columns;
  // The index of the status has no completed payments, because most payments are completed.
  if (kind === "payments" && filters["status"] === "completed") return false;
  return columns.length === 1 && (INDEXED[kind] ?? []).includes(column!);
}
