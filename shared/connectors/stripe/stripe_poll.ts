/**
 * Polls an account: events, and all movements of the balance.
 *
 * A poll reads a window of time, one page of a list for each call: first the events, then those of
 * saved cards, then the movements. The next window begins some minutes before the end of the last
 * one, because Stripe promises no order in which events become visible. The cursor names times and
 * not only an event, because Stripe forgets events after 30 days.
 */

import * as z from "zod";
import type { ProviderAccount, ProviderEvent } from "../../domain/providers/connector.ts";
import { callStripe, isUnknown, type StripeFields } from "./stripe_call.ts";
import { providerEventsOf, STRIPE_EVENT_TYPES } from "./stripe_events.ts";
import { createdBetween, readPage } from "./stripe_lists.ts";
import { accountSource } from "./stripe_provider_events.ts";
import { movementEvents } from "./stripe_movements.ts";
import { BalanceTransaction, expandedOf, idOf, StripeEvent } from "./stripe_objects.ts";
import { EXPAND_CARD, EXPAND_CHARGE } from "./stripe_requests.ts";
import { STRIPE_VERSION } from "./stripe_settings.ts";

/** The first poll begins this long before the present. */
const FIRST_WINDOW_SECONDS = 3600;
/** Windows overlap by this, for events that become visible late. */
const OVERLAP_SECONDS = 300;
/** A window that nobody has finished for a day begins again. */
const WINDOW_SECONDS_MAX = 86_400;

/** The place of a poll. Times are Unix seconds. */
const Cursor = z.object({
  list: z.enum(["events", "cards", "movements"]),
  from: z.number().int(),
  /** The end of the window; null: the next poll decides it. */
  to: z.number().int().nullable(),
  /** The last object that was read in this window. */
  after: z.string().nullable(),
});
type Cursor = z.infer<typeof Cursor>;

/**
 * Objects of other versions that are read at once: less than Stripe's limit of requests a second.
 */
const READ_AT_ONCE = 10;

/** The list that is read after each. */
const AFTER = { events: "cards", cards: "movements", movements: null } as const;
/** The types of events about saved cards. A list names at most 20 types: they have their own. */
const IS_OF_CARDS = /^(?:setup_intent|payment_method)\./;

/** Reads the objects of a page, the newest first. Returns the provider events of each. */
type PageReader = (
  account: ProviderAccount,
  objects: readonly Record<string, unknown>[],
  signal: AbortSignal,
) => Promise<ProviderEvent[][]>;

const LISTS: Record<Cursor["list"], { path: string; fields: StripeFields; read: PageReader }> = {
  events: eventList(STRIPE_EVENT_TYPES.filter((type) => !IS_OF_CARDS.test(type))),
  cards: eventList(STRIPE_EVENT_TYPES.filter((type) => IS_OF_CARDS.test(type))),
  movements: {
    path: "/v1/balance_transactions",
    fields: [["expand[]", "data.source"]],
    read: (account, objects) =>
      Promise.resolve(objects.map((object) => {
        const moved = expandedOf(BalanceTransaction, object);
        return moved === null ? [] : movementEvents(accountSource(account), moved);
      })),
  },
};

function eventList(types: readonly string[]) {
  const fields = types.map((type) => ["types[]", type] as const);
  return { path: "/v1/events", fields, read: readEvents };
}

/** The lists of the objects that events show, and the fields of a read. */
const RESOURCES: Readonly<Record<string, { path: string; fields?: StripeFields }>> = {
  payment_intent: { path: "/v1/payment_intents", fields: [EXPAND_CHARGE] },
  refund: {
    path: "/v1/refunds",
    fields: [["expand[]", "balance_transaction"], ["expand[]", "failure_balance_transaction"]],
  },
  dispute: { path: "/v1/disputes" },
  payout: { path: "/v1/payouts" },
  setup_intent: { path: "/v1/setup_intents", fields: [EXPAND_CARD] },
  payment_method: { path: "/v1/payment_methods" },
};

/**
 * Reads Stripe's events as provider events. Stripe keeps the object of an event in the version that
 * the account had then, and members have other meanings in other versions. So the object of an
 * event with another version is read itself, once for its newest event.
 */
async function readEvents(
  account: ProviderAccount,
  objects: readonly Record<string, unknown>[],
  signal: AbortSignal,
): Promise<ProviderEvent[][]> {
  const provider_events: ProviderEvent[][] = objects.map(() => []);
  const others: { place: number; event: StripeEvent }[] = [];
  const seen = new Set<string>();
  for (const [place, object] of objects.entries()) {
    const event = expandedOf(StripeEvent, object);
    // One event that does not fit must not hold up the others. Totals and syncs remain.
    if (event === null) continue;
    if (event.api_version === STRIPE_VERSION) {
      provider_events[place] = providerEventsOf(account.id, event) ?? [];
      continue;
    }
    const id = idOf(event.data.object);
    if (id === null || seen.has(id)) continue;
    seen.add(id);
    others.push({ place, event });
  }
  for (let i = 0; i < others.length; i += READ_AT_ONCE) {
    await Promise.all(
      others.slice(i, i + READ_AT_ONCE).map(async ({ place, event }) => {
        const present = await readObject(account, event.data.object, signal);
        if (present !== null) {
          provider_events[place] = providerEventsOf(account.id, event, present) ?? [];
        }
      }),
    );
  }
  return provider_events;
}

/** Reads the object of an event in our version. Returns null if Stripe does not have it. */
async function readObject(
  account: ProviderAccount,
  { object, id }: Record<string, unknown>,
  signal: AbortSignal,
): Promise<unknown> {
  const resource = Object.hasOwn(RESOURCES, String(object)) ? RESOURCES[String(object)]! : null;
  if (resource === null) return null;
  const path = `${resource.path}/${encodeURIComponent(String(id))}`;
  const request = { method: "GET", path, fields: resource.fields ?? [] } as const;
  const response = await callStripe(account, request, signal);
  if (isUnknown(response)) throw new Error(`Stripe does not show ${id}: ${response.unknown}`);
  return response.status === 200 ? response.body : null;
}

/**
 * Reads the next page of an account. Provider events are oldest first within a page. Throws if
 * Stripe gives no page, or the cursor is not one of this connector.
 */
export async function pollStripe(
  account: ProviderAccount,
  cursor: unknown,
  at_ms: number,
  signal: AbortSignal,
): Promise<{ provider_events: ProviderEvent[]; cursor: unknown; more: boolean }> {
  const now = Math.floor(at_ms / 1000);
  const { list, from, to, after } = windowOf(cursor, now);
  const { path, fields, read } = LISTS[list];
  const window = createdBetween(from, to);
  const page = await readPage(account, path, [...fields, ...window], after, signal);
  if (isUnknown(page)) throw new Error(`Stripe gives no list of ${list}: ${page.unknown}`);
  const provider_events = (await read(account, page.objects, signal)).reverse().flat();
  if (page.after !== null) {
    return { provider_events, cursor: { list, from, to, after: page.after }, more: true };
  }
  const following = AFTER[list];
  if (following !== null) {
    return { provider_events, cursor: { list: following, from, to, after: null }, more: true };
  }
  const next = {
    list: "events",
    from: Math.max(from, to - OVERLAP_SECONDS),
    to: null,
    after: null,
  };
  return { provider_events, cursor: next, more: false };
}

function windowOf(cursor: unknown, now: number): Cursor & { to: number } {
  const from = now - FIRST_WINDOW_SECONDS;
  const begun = cursor === null ? { list: "events", from, to: null, after: null } : cursor;
  const place = expandedOf(Cursor, begun);
  if (place === null) throw new Error("The cursor of this account is not one of stripe");
  const { to } = place;
  if (to !== null && now - to <= WINDOW_SECONDS_MAX) return { ...place, to };
  return { list: "events", from: place.from, to: now + 1, after: null };
}
