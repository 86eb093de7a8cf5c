/**
 * Polls an account: events, and the movements of the balance that contain fees.
 *
 * A poll reads a window of time, one page of a list for each call: first the events, then the
 * charges on the balance. The next window begins some minutes before the end of the last one,
 * because Stripe promises no order in which events become visible. The cursor names times and not
 * only an event, because Stripe forgets events after 30 days.
 */

import * as z from "zod";
import type { Fact, ProviderAccount } from "../../domain/providers/connector.ts";
import { isUnknown, type StripeFields } from "./stripe_call.ts";
import { eventFacts, STRIPE_EVENT_TYPES } from "./stripe_events.ts";
import { chargeFee } from "./stripe_facts.ts";
import { createdBetween, readPage } from "./stripe_lists.ts";
import { BalanceTransaction, Charge, expandedOf, StripeEvent } from "./stripe_objects.ts";

/** The first poll begins this long before the present. */
const FIRST_WINDOW_SECONDS = 3600;
/** Windows overlap by this, for events that become visible late. */
const OVERLAP_SECONDS = 300;
/** A window that nobody has finished for a day begins again. */
const WINDOW_SECONDS_MAX = 86_400;

/** The place of a poll. Times are Unix seconds. */
const Cursor = z.object({
  list: z.enum(["events", "fees"]),
  from: z.number().int(),
  /** The end of the window; null: the next poll decides it. */
  to: z.number().int().nullable(),
  /** The last object that was read in this window. */
  after: z.string().nullable(),
});
type Cursor = z.infer<typeof Cursor>;

const LISTS: Record<Cursor["list"], {
  path: string;
  fields: StripeFields;
  read: (account_id: string, object: Record<string, unknown>) => Fact[];
}> = {
  events: {
    path: "/v1/events",
    fields: STRIPE_EVENT_TYPES.map((type) => ["types[]", type] as const),
    read: (account_id, object) => {
      const event = expandedOf(StripeEvent, object);
      // One event that does not fit must not hold up the others. Totals and looks remain.
      return (event && eventFacts(account_id, event)) ?? [];
    },
  },
  fees: {
    path: "/v1/balance_transactions",
    fields: [["type", "charge"], ["expand[]", "data.source"]],
    read: (account_id, object) => {
      const moved = expandedOf(BalanceTransaction, object);
      const charge = expandedOf(Charge, moved?.source);
      if (moved === null || charge === null) return [];
      const source = { account_id, livemode: charge.livemode, event_seconds: null };
      return chargeFee(source, charge, moved);
    },
  },
};

/**
 * Reads the next page of an account. Facts are oldest first within a page.
 *
 * @throws {Error} if Stripe gives no page, or the cursor is not one of this connector
 */
export async function pollStripe(
  account: ProviderAccount,
  cursor: unknown,
  at_ms: number,
  signal: AbortSignal,
): Promise<{ facts: Fact[]; cursor: unknown; more: boolean }> {
  const now = Math.floor(at_ms / 1000);
  const { list, from, to, after } = windowOf(cursor, now);
  const { path, fields, read } = LISTS[list];
  const window = createdBetween(from, to);
  const page = await readPage(account, path, [...fields, ...window], after, signal);
  if (isUnknown(page)) throw new Error(`Stripe gives no list of ${list}: ${page.unknown}`);
  const facts = page.objects.reverse().flatMap((object) => read(account.id, object));
  if (page.after !== null) {
    return { facts, cursor: { list, from, to, after: page.after }, more: true };
  }
  if (list === "events") {
    return { facts, cursor: { list: "fees", from, to, after: null }, more: true };
  }
  const next = {
    list: "events",
    from: Math.max(from, to - OVERLAP_SECONDS),
    to: null,
    after: null,
  };
  return { facts, cursor: next, more: false };
}

/** The window of a cursor, with its end. */
function windowOf(cursor: unknown, now: number): Cursor & { to: number } {
  const from = now - FIRST_WINDOW_SECONDS;
  const begun = cursor === null ? { list: "events", from, to: null, after: null } : cursor;
  const place = expandedOf(Cursor, begun);
  if (place === null) throw new Error("The cursor of this account is not one of stripe");
  const { to } = place;
  if (to !== null && now - to <= WINDOW_SECONDS_MAX) return { ...place, to };
  return { list: "events", from: place.from, to: now + 1, after: null };
}
