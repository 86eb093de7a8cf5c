/** The next things that the clock of the sandbox brings, from the resources that name their time. */

import type { Dispute, Page, Payment, WebhookDelivery } from "../../../packages/client/mod.ts";
import { AUTHENTICATION_WINDOW_MS } from "../../../shared/domain/payments/lifecycle.ts";
import { MAX_PAGE } from "../../../shared/schema/limits.ts";
import { type Call, call } from "./calls.ts";
import { useLive } from "./live.ts";
import { href } from "./route.ts";
import { COLLECTED_LATER } from "./words.ts";

/** A thing that happens by itself at a time. */
interface Due {
  at_ms: number;
  text: string;
  /** The resource. */
  id: string;
  /** The link to the list of all things of this kind. */
  list: string;
}

/** The things of a kind, at least one, the earliest first. */
export interface DueGroup {
  text: string;
  list: string;
  items: readonly Due[];
}

/** The things that the clock brings next. */
interface Dues {
  /** Null before the first read. */
  groups: readonly DueGroup[] | null;
  /** Whether there are more things than the lists have shown. */
  is_cut: boolean;
  /** The error of the last read of a list, or null. */
  error: unknown;
}

/** Milliseconds between two reads. */
const EVERY_MS = 5_000;

/** Reads them, grouped by kind. The kind with the earliest thing is the first. */
export function useDues(): Dues {
  const usePage = <T>(read: Call<Page<T>>, dueOf: (item: T) => Due[]) => {
    const { data, error } = useLive(read, { every_ms: EVERY_MS });
    return { due: data && data.data.flatMap(dueOf), is_cut: data?.has_more === true, error };
  };
  const usePayments = (
    status: "authorized" | "requires_action" | "pending" | typeof COLLECTED_LATER,
  ) => usePage(call("payments", "list", { status, limit: MAX_PAGE }), dueOfPayment);
  const pages = [
    usePayments("authorized"),
    usePayments("requires_action"),
    usePayments("pending"),
    usePayments(COLLECTED_LATER),
    usePage(call("disputes", "list", { status: "needs_response", limit: MAX_PAGE }), dueOfDispute),
    usePage(
      call("webhookDeliveries", "list", { status: "pending", limit: MAX_PAGE }),
      dueOfDelivery,
    ),
  ];
  const is_read = pages.every(({ due }) => due !== null);
  return {
    groups: is_read ? groupsOf(pages.flatMap(({ due }) => due!)) : null,
    is_cut: pages.some(({ is_cut }) => is_cut),
    error: pages.find(({ error }) => error !== null)?.error ?? null,
  };
}

/** Returns the things until a time, by kind. */
export function dueUntil(groups: readonly DueGroup[], at_ms: number): DueGroup[] {
  return groups
    .map((group) => ({ ...group, items: group.items.filter((item) => item.at_ms <= at_ms) }))
    .filter(({ items }) => items.length > 0);
}

function groupsOf(due: readonly Due[]): DueGroup[] {
  const sorted = due.toSorted((a, b) => a.at_ms - b.at_ms);
  return [...Map.groupBy(sorted, ({ text, list }) => `${text} ${list}`).values()]
    .map((items) => ({ text: items[0]!.text, list: items[0]!.list, items }));
}

function dueOfPayment(payment: Payment): Due[] {
  const { id, status, method, method_kind, capture_before, next_action, updated_at } = payment;
  const due = (text: string, time: string, more: Record<string, string> = {}, later_ms = 0) => {
    const list = href(["payments"], { status, ...more });
    return [{ at_ms: Date.parse(time) + later_ms, text, id, list }];
  };
  if (status === COLLECTED_LATER && method && "due_on" in method && method.due_on) {
    return due("Collection is due", method.due_on, { method_kind });
  }
  if (capture_before !== null) return due("Authorization ends", capture_before);
  if (next_action !== null && "expires_at" in next_action) {
    return due("Time to pay ends", next_action.expires_at, { method_kind });
  }
  if (status !== "requires_action") return [];
  return due("Time to authenticate ends", updated_at, {}, AUTHENTICATION_WINDOW_MS);
}

function dueOfDispute({ id, status, evidence_due_by }: Dispute): Due[] {
  if (evidence_due_by === null) return [];
  const list = href(["disputes"], { status });
  return [{ at_ms: Date.parse(evidence_due_by), text: "Lost without evidence", id, list }];
}

/** A delivery that waits for another one has no time of its own. */
function dueOfDelivery(delivery: WebhookDelivery): Due[] {
  const { id, event_type, endpoint_id, payment_id, status, next_attempt_at, blocked_by } = delivery;
  if (next_attempt_at === null || blocked_by !== undefined) return [];
  const text = `Attempt to deliver ${event_type}`;
  const list = href(["webhooks", endpoint_id], { status });
  return [{ at_ms: Date.parse(next_attempt_at), text, id: payment_id ?? id, list }];
}
