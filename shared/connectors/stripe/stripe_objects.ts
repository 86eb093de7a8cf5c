/**
 * The members of Stripe's objects that this connector reads. A response that does not fit is
 * treated as no response. Objects inside of others, such as the charge of a payment, are read
 * apart: if one does not fit, the outer object still counts.
 * `tests/connectors/stripe_documents_test.ts` compares the shapes with the types of the npm
 * package.
 */

import * as z from "zod";

/** The end of the year 9999, the last time of RFC 3339. */
const LAST_SECONDS = 253_402_300_799;

const Amount = z.number().int();
const Seconds = z.number().int().min(0).max(LAST_SECONDS);
const Currency = z.string().regex(/^[a-z]{3,5}$/);
const Metadata = z.record(z.string(), z.string()).nullish();
/** Another object: its id, or the object where the request expands it. */
const Other = z.unknown().optional();

const id = (pattern: RegExp) => z.string().max(200).regex(pattern);

const Card = z.object({
  brand: z.string().nullish(),
  last4: z.string().nullish(),
  exp_month: z.number().int(),
  exp_year: z.number().int(),
});

const ChargedCard = Card.extend({
  capture_before: Seconds.nullish(),
});

/** A payment method, such as the card behind a token. */
export const PaymentMethod = z.object({
  object: z.literal("payment_method"),
  card: Card.nullish(),
});

/** A card that Stripe keeps for a customer. Detached, it has none any more. */
export const KeptCard = PaymentMethod.extend({
  id: id(/^pm_[A-Za-z0-9_]+$/),
  customer: Other,
  livemode: z.boolean(),
});
export type KeptCard = z.infer<typeof KeptCard>;

export const Customer = z.object({
  id: id(/^cus_[A-Za-z0-9_]+$/),
  object: z.literal("customer"),
  metadata: Metadata,
});

/** The error of a refused request, and of the last attempt of a payment. */
export const StripeError = z.object({
  type: z.string(),
  /** The issuer's advice after a decline. */
  advice_code: z.string().nullish(),
  code: z.string().nullish(),
  decline_code: z.string().nullish(),
  param: z.string().nullish(),
  message: z.string().nullish(),
  payment_intent: Other,
  payment_method: Other,
  setup_intent: Other,
});
export type StripeError = z.infer<typeof StripeError>;

/** The reason with which this service cancels a payment whose payer does nothing. */
export const ABANDONED = "abandoned";

const NextAction = z.object({
  type: z.string(),
  redirect_to_url: z.object({ url: z.string().nullish() }).nullish(),
});

export const PaymentIntent = z.object({
  id: id(/^pi_[A-Za-z0-9_]+$/),
  object: z.literal("payment_intent"),
  amount: Amount,
  amount_capturable: Amount,
  amount_received: Amount,
  capture_method: z.string(),
  created: Seconds,
  canceled_at: Seconds.nullish(),
  cancellation_reason: z.string().nullish(),
  currency: Currency,
  customer: Other,
  last_payment_error: StripeError.nullish(),
  latest_charge: Other,
  livemode: z.boolean(),
  metadata: Metadata,
  next_action: NextAction.nullish(),
  payment_method: Other,
  status: z.string(),
});
export type PaymentIntent = z.infer<typeof PaymentIntent>;

/**
 * A card that is saved without a charge. It is read as a payment of 0, in the currency that its
 * metadata name.
 */
export const SetupIntent = z.object({
  id: id(/^seti_[A-Za-z0-9_]+$/),
  object: z.literal("setup_intent"),
  cancellation_reason: z.string().nullish(),
  created: Seconds,
  customer: Other,
  last_setup_error: StripeError.nullish(),
  livemode: z.boolean(),
  metadata: Metadata,
  next_action: NextAction.nullish(),
  payment_method: Other,
  status: z.string(),
}).transform(({ last_setup_error, ...setup }): PaymentIntent => ({
  ...setup,
  object: "payment_intent",
  ...{ amount: 0, amount_capturable: 0, amount_received: 0, capture_method: "automatic" },
  currency: setup.metadata?.currency ?? "",
  last_payment_error: last_setup_error,
}));

/** A payment, also one of 0 that saves its card. */
export const Intent = z.union([PaymentIntent, SetupIntent]);

/** A charge: the movement of a payment. */
export const Charge = z.object({
  id: id(/^(?:ch|py)_[A-Za-z0-9_]+$/),
  object: z.literal("charge"),
  balance_transaction: Other,
  created: Seconds,
  livemode: z.boolean(),
  metadata: Metadata,
  outcome: z.object({ type: z.string().nullish() }).nullish(),
  payment_intent: Other,
  payment_method_details: z.object({ card: ChargedCard.nullish() }).nullish(),
});
export type Charge = z.infer<typeof Charge>;

export const BalanceTransaction = z.object({
  id: id(/^txn_[A-Za-z0-9_]+$/),
  object: z.literal("balance_transaction"),
  amount: Amount,
  created: Seconds,
  currency: Currency,
  fee: Amount,
  net: Amount,
  reporting_category: z.string().nullish(),
  source: Other,
  type: z.string(),
});
export type BalanceTransaction = z.infer<typeof BalanceTransaction>;

/** A refund. It has no `livemode`. */
export const StripeRefund = z.object({
  id: id(/^(?:re|pyr)_[A-Za-z0-9_]+$/),
  object: z.literal("refund"),
  amount: Amount,
  balance_transaction: Other,
  created: Seconds,
  currency: Currency,
  failure_balance_transaction: Other,
  metadata: Metadata,
  payment_intent: Other,
  status: z.string().nullish(),
});
export type StripeRefund = z.infer<typeof StripeRefund>;

export const Dispute = z.object({
  id: id(/^(?:du|dp)_[A-Za-z0-9_]+$/),
  object: z.literal("dispute"),
  amount: Amount,
  balance_transactions: z.array(BalanceTransaction),
  created: Seconds,
  currency: Currency,
  evidence: z.object({ uncategorized_text: z.string().nullish() }).nullish(),
  evidence_details: z.object({
    due_by: Seconds.nullish(),
    submission_count: z.number().int(),
  }).nullish(),
  livemode: z.boolean(),
  payment_intent: Other,
  reason: z.string(),
  status: z.string(),
});
export type Dispute = z.infer<typeof Dispute>;

/** A payout to the merchant's bank account. */
export const Payout = z.object({
  id: id(/^po_[A-Za-z0-9_]+$/),
  object: z.literal("payout"),
  amount: Amount,
  created: Seconds,
  currency: Currency,
  livemode: z.boolean(),
  status: z.string(),
});
export type Payout = z.infer<typeof Payout>;

export const StripeEvent = z.object({
  id: id(/^evt_[A-Za-z0-9_]+$/),
  object: z.literal("event"),
  account: z.string().nullish(),
  /** The version of the object in `data`, which never changes. */
  api_version: z.string().nullish(),
  created: Seconds,
  data: z.object({ object: z.record(z.string(), z.unknown()) }),
  livemode: z.boolean(),
  type: z.string(),
});
export type StripeEvent = z.infer<typeof StripeEvent>;

export const StripePage = z.object({
  object: z.literal("list"),
  data: z.array(z.record(z.string(), z.unknown())),
  has_more: z.boolean(),
});

/** Returns the id of another object, expanded or not. Returns null if there is none. */
export function idOf(other: unknown): string | null {
  if (typeof other === "string") return other;
  const expanded = z.object({ id: z.string() }).safeParse(other);
  return expanded.success ? expanded.data.id : null;
}

/** Reads another object. Returns null if it is not expanded or does not fit. */
export function expandedOf<T>(schema: z.ZodType<T>, other: unknown): T | null {
  const read = schema.safeParse(other);
  return read.success ? read.data : null;
}
