/**
 * A request for a page of a list, and whether it can cost the database more than its items.
 */

import type { ResourceKind } from "./load_statement.ts";

/** Kinds of resources that can be listed. */
export type ListKind = ResourceKind | "ledger_entries";

/** A page to read. */
export interface PageRequest {
  kind: ListKind;
  limit: number;
  starting_after: string | null;
  /** Equality by column; `id_from` (inclusive) and `id_before` (exclusive) bound the id. */
  filters: Record<string, string>;
  /** A payment that must exist for the list to exist. */
  parent_id?: string;
}

/** The filters whose index has the order of the list (pay.list_column). */
const INDEXED: Readonly<Partial<Record<ListKind, readonly string[]>>> = {
  payments: ["reference", "status"],
  refunds: ["payment_id"],
  transfers: ["status"],
  ledger_entries: ["subject_id", "transaction_id"],
  webhook_deliveries: ["subject_id", "endpoint_id"],
};

/** Whether the page is one of payments without filters: many of them share a statement (ADR 0024). */
export function isPlain({ kind, filters, parent_id }: PageRequest): boolean {
  return kind === "payments" && Object.keys(filters).length === 0 && parent_id === undefined;
}

/**
 * Whether the database reads no more rows for the page than it shows. This is true if an index has
 * the order of the list: without a filter, or with one that has such an index. Bounds of the id
 * cost nothing in either case. Any other page can read many rows for few items.
 */
export function isCheap({ kind, filters }: PageRequest): boolean {
  const columns = Object.keys(filters).filter((name) => name !== "id_from" && name !== "id_before");
  if (columns.length === 0) return true;
  const [column] = columns;
  // Most payments are completed: the index of the status leaves them out.
  if (kind === "payments" && filters["status"] === "completed") return false;
  return columns.length === 1 && (INDEXED[kind] ?? []).includes(column!);
}
