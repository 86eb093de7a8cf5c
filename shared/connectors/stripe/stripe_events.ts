/**
 * Stripe's events as provider events: the types that this connector reads, and the check of a
 * notification. Pure.
 */

import type * as z from "zod";
import { invalidParameter } from "../../core/errors.ts";
import { jsonIn } from "../../core/response_body.ts";
import type { ProviderAccount, ProviderEvent } from "../../domain/providers/connector.ts";
import {
  detachEvents,
  disputeEvents,
  intentEvents,
  type ProviderEventSource,
  refundEvents,
  renewalEvents,
} from "./stripe_provider_events.ts";
import { payoutEvents } from "./stripe_payouts.ts";
import {
  Dispute,
  expandedOf,
  KeptCard,
  PaymentIntent,
  Payout,
  SetupIntent,
  StripeEvent,
  StripeRefund,
} from "./stripe_objects.ts";
import { readStripeSettings } from "./stripe_settings.ts";
import { requireSignature } from "./stripe_signature.ts";

/** Returns the provider events of an object, or null if it does not fit. */
type ObjectReader = (source: ProviderEventSource, object: unknown) => ProviderEvent[] | null;

const readerOf = <T>(
  schema: z.ZodType<T>,
  eventsOf: (source: ProviderEventSource, object: T) => ProviderEvent[],
): ObjectReader =>
(source, object) => {
  const read = expandedOf(schema, object);
  return read && eventsOf(source, read);
};
/** Other payment methods of the account are no cards, and have other ids. */
const cardReaderOf = (eventsOf: typeof renewalEvents): ObjectReader => (source, object) =>
  readerOf(KeptCard, eventsOf)(source, object) ?? [];

const intent = readerOf(PaymentIntent, intentEvents);
const setup = readerOf(SetupIntent, intentEvents);
const refund = readerOf(StripeRefund, refundEvents);
const dispute = readerOf(Dispute, disputeEvents);
const payout = readerOf(Payout, payoutEvents);

/**
 * The readers of events, by type. `charge.refunded` is left out, because its amounts are sums.
 * `charge.updated` is left out, because it has only the id of the movement with the fee: a sync
 * reads the charge, and a poll the movements themselves.
 */
const READERS = new Map(
  [
    ["payment_intent.succeeded", intent],
    ["payment_intent.payment_failed", intent],
    ["payment_intent.requires_action", intent],
    ["payment_intent.processing", intent],
    ["payment_intent.canceled", intent],
    ["payment_intent.amount_capturable_updated", intent],
    ["refund.created", refund],
    ["refund.updated", refund],
    ["refund.failed", refund],
    ["charge.dispute.created", dispute],
    ["charge.dispute.updated", dispute],
    ["charge.dispute.closed", dispute],
    ["charge.dispute.funds_withdrawn", dispute],
    ["charge.dispute.funds_reinstated", dispute],
    ["payout.created", payout],
    ["payout.paid", payout],
    ["payout.failed", payout],
    ["payout.canceled", payout],
    ["setup_intent.succeeded", setup],
    ["setup_intent.setup_failed", setup],
    ["setup_intent.requires_action", setup],
    ["setup_intent.canceled", setup],
    ["payment_method.automatically_updated", cardReaderOf(renewalEvents)],
    ["payment_method.detached", cardReaderOf(detachEvents)],
  ] as const,
);

/**
 * The types of Stripe's events that give provider events, for a poll and for the settings of a
 * webhook endpoint.
 */
export const STRIPE_EVENT_TYPES = [...READERS.keys()];

/**
 * Returns the provider events of an event: none for other types, null if its object does not fit.
 *
 * @param object of the event, if it is not the one in the event
 */
export function providerEventsOf(
  account_id: string,
  event: StripeEvent,
  object: unknown = event.data.object,
): ProviderEvent[] | null {
  const { livemode, created: event_seconds } = event;
  const read = READERS.get(event.type as typeof STRIPE_EVENT_TYPES[number]);
  return read ? read({ account_id, livemode, event_seconds }, object) : [];
}

/**
 * Reads a notification.
 *
 * @returns null for an event of another account: a platform has one endpoint for the events of all
 * connected accounts, and Stripe turns an endpoint off that refuses events
 * @throws {ApiError} `unauthorized`, `invalid_parameter`
 */
export function readNotification(
  { id, settings, notification_secrets }: ProviderAccount,
  raw: Uint8Array,
  headers: Headers,
  at_ms: number,
): ProviderEvent[] | null {
  requireSignature(raw, headers.get("stripe-signature"), notification_secrets, at_ms);
  const { connected_account } = readStripeSettings(settings);
  const read = StripeEvent.safeParse(jsonIn(raw));
  if (!read.success) throw invalidParameter("body", "must be an event of Stripe as JSON");
  const event = read.data;
  if ((event.account ?? null) !== connected_account) return null;
  const provider_events = providerEventsOf(id, event);
  if (provider_events === null) {
    throw invalidParameter("data.object", "does not fit the type of the event");
  }
  return provider_events;
}
