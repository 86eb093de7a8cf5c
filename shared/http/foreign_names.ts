/**
 * Names of other APIs for fields that decide what happens to money, and what to send here. A client
 * that was written for another API would otherwise lose what it asks for: a later capture, a part of
 * the amount, an instrument (ADR 0016). Names of fields that change no money are not here, and
 * neither are names that a merchant can have for data of its own, such as `source` or `type`.
 *
 * Sources: docs.stripe.com/api (payment_intents, charges, refunds, transfers, webhook_endpoints,
 * accounts), docs.adyen.com/api-explorer (Checkout: payments, captures, refunds; Management:
 * webhooks), docs.mollie.com/reference (payments, captures, refunds, webhooks). Each line names
 * whose words they are.
 */

/** Names that stand for one field. Case, `_` and `-` make no difference, so each stands once. */
export interface ForeignNames {
  names: readonly string[];
  /** The field for which they stand. Only objects with this field know the names. */
  ours: string;
  /** They stand for nothing in an object that has this field too. */
  unless?: string;
  /** The end of the message after `send `; absent: the field. Null: there is nothing to send. */
  send?: string | null;
}

const LATER = '"capture": "manual" to take the money later';
const CARD = '"card": {"token": "pm_…"}, "iban" or "wallet"';
const KIND = '"method_kind", such as "card"';
const NO_SPLITS = null;

/** The names, by the field for which they stand. */
export const FOREIGN_NAMES: readonly ForeignNames[] = [
  // Stripe; its charges return `captured`, and `confirm` is false by default there.
  {
    ours: "capture",
    send: LATER,
    names: ["capture_method", "captured", "confirm", "confirmation_method"],
  },
  // Adyen.
  { ours: "capture", send: LATER, names: ["capture_delay_hours", "manual_capture"] },
  // Mollie.
  { ours: "capture", send: LATER, names: ["capture_mode", "capture_delay"] },
  // Stripe, Adyen and Mollie.
  { ours: "card", send: CARD, names: ["payment_method", "payment_method_data"] },
  { ours: "card", send: CARD, names: ["stored_payment_method_id", "encrypted_card_number"] },
  { ours: "card", send: CARD, names: ["card_token", "apple_pay_payment_token"] },
  // Mollie, and Stripe's `mandate_data`.
  {
    ours: "mandate",
    send: '"mandate": {"id", "signed_at", "sequence"}',
    names: ["mandate_id", "sequence_type", "mandate_data"],
  },
  // Stripe.
  {
    ours: "method_kind",
    send: KIND,
    names: ["payment_method_types", "payment_method_options", "automatic_payment_methods"],
  },
  // Adyen and Mollie.
  { ours: "method_kind", send: KIND, names: ["allowed_payment_methods", "method"] },
  // Adyen calls it returnUrl, which is our name, and Mollie redirectUrl. Stripe's Checkout has two.
  { ours: "return_url", names: ["redirect_url", "success_url", "shopper_return_url"] },
  // Mollie.
  {
    ours: "return_url",
    send: "the URL to POST /v1/webhook_endpoints",
    names: ["webhook_url", "notification_url"],
  },
  // Stripe, in a capture; and the amounts of its objects, where ours would be the whole amount.
  {
    ours: "amount",
    unless: "currency",
    names: ["amount_to_capture", "amount_capturable", "amount_captured", "amount_received"],
  },
  { ours: "amount", unless: "currency", names: ["amount_refunded", "refund_amount"] },
  // Adyen (modificationAmount, and the members of an amount), and Mollie.
  { ours: "amount", unless: "currency", names: ["modification_amount", "capture_amount", "value"] },
  { ours: "amount", unless: "currency", names: ["amount_cents", "amount_in_cents"] },
  // Stripe: money that goes to others, and captures of parts. There is nothing like it here.
  { ours: "amount", send: NO_SPLITS, names: ["application_fee", "application_fee_amount"] },
  { ours: "amount", send: NO_SPLITS, names: ["transfer_data", "on_behalf_of", "final_capture"] },
  { ours: "amount", send: NO_SPLITS, names: ["reverse_transfer", "refund_application_fee"] },
  // Adyen and Mollie.
  { ours: "amount", send: NO_SPLITS, names: ["splits", "routing", "reverse_routing"] },
  // Adyen (securityCode, expiryMonth), and names that many forms have.
  { ours: "cvc", names: ["security_code", "encrypted_security_code", "cvv", "cvv2"] },
  { ours: "exp_month", names: ["expiry_month", "expiration_month", "month"] },
  { ours: "exp_year", names: ["expiry_year", "expiration_year", "year"] },
  // The network and the asset decide where the money goes.
  { ours: "network", names: ["chain", "blockchain", "chain_id"] },
  { ours: "asset", names: ["coin", "token", "currency"] },
  // Stripe and Mollie. Without `events` an endpoint gets all of them.
  { ours: "events", names: ["enabled_events", "event_types", "topics"] },
  { ours: "url", names: ["endpoint_url", "webhook_url", "callback_url"] },
  // Stripe and Adyen.
  { ours: "status", unless: "since", names: ["disabled", "enabled", "active"] },
  // Without `scopes` a key has all of them, and without an end it lives as long as its maker.
  { ours: "scopes", names: ["permissions"] },
  { ours: "expires_at", names: ["expires_in", "expires", "expiry", "ttl"] },
  { ours: "expires_in", names: ["expires_at", "expires", "expiry", "ttl"] },
];

/**
 * Words that differ from one of our names by one letter, and that a merchant can have for data of
 * its own. Names of up to five letters are compared more strictly, so `cart` and `payee` need none.
 */
export const OTHER_WORDS: ReadonlySet<string> = new Set([
  "advanced",
  "pallet",
  "preference",
  "season",
  "stats",
]);
