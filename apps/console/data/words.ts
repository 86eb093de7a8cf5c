/**
 * Words and colours for the names that the API uses: statuses, event types and method kinds. The
 * records are typed by the lists of the API, so `deno check` reports a name without an entry.
 */

import type {
  Checkout,
  CheckoutMethod,
  CheckoutStatus,
  DeclineAdvice,
  DeliveryStatus,
  DisputeStatus,
  EventType,
  InstrumentEndReason,
  InstrumentStatus,
  InstrumentUsage,
  LedgerAccount,
  PayeeCheck,
  PaymentStatus,
  RefundStatus,
  TransferStatus,
  WebhookEndpoint,
} from "../../../packages/client/mod.ts";
import {
  type CheckToApprove,
  isDeposit,
  isOpenDeposit,
  settlesAtOnce,
} from "../../../shared/domain/payments/lifecycle.ts";
import type { Standing } from "../../../shared/domain/payment_statuses.ts";

/** Writes a number with groups: `1165` → `1,165`. */
export function countText(count: number): string {
  return COUNT.format(count);
}

const COUNT = new Intl.NumberFormat("en");

/** The look of a status: a class of theme.css. */
type Tone = "good" | "wait" | "warn" | "info" | "bad" | "off";

/**
 * The tone of a status of a payment, the words under the button that advances to it, and the title
 * of its event in the timeline where the type of the event is not clear enough.
 */
type StatusWords = readonly [tone: Tone, advance: string, event?: string];

const PAYMENT_STATUS_WORDS: Readonly<Record<PaymentStatus, StatusWords>> = {
  pending: ["wait", ""],
  requires_action: ["warn", "The payer must authenticate", "Authentication required"],
  processing: ["wait", "The rail has accepted the payment", "Processing"],
  authorized: ["warn", "The issuer holds the amount on the card"],
  completed: ["good", "The money has arrived"],
  declined: ["bad", "The issuer declines the payment"],
  failed: ["bad", "The rail fails, or the bank returns the money"],
  cancelled: ["off", "The payment is cancelled"],
  partially_refunded: ["info", "Half of the rest is refunded", "Partially refunded"],
  refunded: ["info", "All of the rest is refunded", "Fully refunded"],
  chargeback: ["bad", "The payer disputes the payment", "Disputed by the payer"],
};

const ADVANCES_FROM: Readonly<
  Partial<Record<PaymentStatus, Readonly<Partial<Record<PaymentStatus, string>>>>>
> = {
  authorized: {
    completed: "The whole amount is captured",
    failed: "The provider fails to capture the amount",
    cancelled: "The amount on the card is released",
  },
  chargeback: {
    completed: "The merchant wins the dispute",
    partially_refunded: "The merchant wins the dispute",
  },
};

/** Words under the buttons that advance a payment of 0, which only saves its instrument. */
const SAVE_ADVANCES: Readonly<Partial<Record<PaymentStatus, string>>> = {
  completed: "The instrument is saved, and no money moves",
  declined: "The issuer does not let the card be saved",
  failed: "The payer does not authenticate in time, or the bank refuses the mandate",
};

/** The status of a payment whose money is in a block and not final. */
export const ARRIVING_STATUS = "processing" satisfies PaymentStatus;

/** Words under the buttons that advance a payment that the payer sends to an address. */
const DEPOSIT_ADVANCES: Readonly<Partial<Record<PaymentStatus, string>>> = {
  pending: "A reorganisation of the chain undoes the transfers",
  processing: "A block has the missing amount",
  completed: "The whole amount is final",
  failed: "The time is over, and money is missing",
};

/** The same for a payment by bank transfer. */
const TRANSFER_IN_ADVANCES: Readonly<Partial<Record<PaymentStatus, string>>> = {
  completed: "The bank books the missing amount",
  failed: DEPOSIT_ADVANCES.failed!,
};

export const TRANSFER_ADVANCES: Readonly<Record<TransferStatus, string>> = {
  pending: "",
  completed: "The money has arrived at its destination",
  failed: "The rail sends the money back",
  cancelled: "The money becomes available again",
};

/** Statuses that other resources have and a payment has not. */
type OtherStatus = Exclude<
  | (RefundStatus | DisputeStatus | TransferStatus | DeliveryStatus)
  | (InstrumentStatus | WebhookEndpoint["status"] | CheckoutStatus),
  PaymentStatus
>;

const OTHER_TONES: Readonly<Record<OtherStatus, Tone>> = {
  available: "wait",
  needs_response: "warn",
  under_review: "wait",
  won: "good",
  lost: "bad",
  delivered: "good",
  enabled: "good",
  disabled: "off",
  active: "good",
  ended: "off",
  open: "wait",
  expired: "off",
};

/** The ways to pay a checkout. */
export const CHECKOUT_METHOD_WORDS: Readonly<Record<CheckoutMethod, string>> = {
  card: "Card",
  sepa_debit: "SEPA Direct Debit",
  sepa: "SEPA transfer",
  swift: "SWIFT transfer",
  stablecoin: "Stablecoin",
};

/** How an instrument can be used. */
export const USAGE_WORDS: Readonly<Record<InstrumentUsage, string>> = {
  on_session: "With the payer present",
  off_session: "Also without the payer",
};

export const END_WORDS: Readonly<Record<InstrumentEndReason, string>> = {
  deleted: "You have ended it.",
  erased: "Its customer was erased.",
  revoked: "The payer has revoked the mandate.",
  account_closed: "The account of the payer is closed.",
  used_up: "Nothing is collected after the last payment of its mandate.",
  idle: "Nothing was collected for 36 months.",
  removed_at_provider: "The provider has removed it.",
};

/** The meaning of the bank's results with which a payout waits for an approval. */
export const PAYEE_CHECK_WORDS: Readonly<Record<CheckToApprove, string>> = {
  close_match: "The account belongs to a similar name.",
  no_match: "The account belongs to another name.",
  unavailable: "The bank could not compare the name with the account.",
};

/** The next step after a decline. */
const ADVICE_WORDS: Readonly<Record<DeclineAdvice, string>> = {
  retry_later: "Try the same method again in hours or days.",
  use_another_method: "Ask the payer for another method.",
  do_not_retry: "Do not try this method again.",
  authenticate: "Let the payer authenticate a new payment.",
};

/** How many payments a checkout takes, and of a link how many it has had. */
export function kindOfCheckout({ max_payments, payments_count }: Checkout): string {
  if (max_payments !== null) return "One payment";
  return `Link, ${countText(payments_count)} paid`;
}

export function endpointName({ url }: Pick<WebhookEndpoint, "url">): string {
  return url ?? "Inbox";
}

/** The next step after a decline. A newer service may send advice that is not listed here. */
export function adviceText(advice: DeclineAdvice): string {
  return ADVICE_WORDS[advice] ?? "";
}

/** A name of the API in plain words: `requires_action` → "Requires action". */
export function label(name: string): string {
  const words = name.replaceAll(/[._]/g, " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** The bank's result about a payee in plain words. */
export function payeeCheckLabel(check: PayeeCheck): string {
  return `Payee: ${check.replaceAll("_", " ")}`;
}

/** The tone of a status. A newer service may send a status that is not listed here. */
export function toneOf(status: PaymentStatus | OtherStatus): Tone {
  return wordsOf(status)?.[0] ?? OTHER_TONES[status as OtherStatus] ?? "off";
}

export function advanceText(
  payment: Pick<Standing, "status" | "method_kind" | "amount_received" | "amount_minor">,
  to: PaymentStatus,
): string {
  const is_sent = isDeposit(payment) && isOpenDeposit(payment);
  const sent = settlesAtOnce(payment) ? TRANSFER_IN_ADVANCES : DEPOSIT_ADVANCES;
  const saved = payment.amount_minor === 0 ? SAVE_ADVANCES[to] : undefined;
  return (is_sent ? sent[to] : saved ?? ADVANCES_FROM[payment.status]?.[to]) ??
    PAYMENT_STATUS_WORDS[to][1];
}

/** The titles of events of instruments, whose types tell too little. */
const INSTRUMENT_EVENTS: Readonly<Partial<Record<EventType, string>>> = {
  "instrument.updated": "Renewed by the card network",
  "instrument.ended": "No payment can use it any more",
};

/**
 * The title of an event in a timeline.
 * @param before the type of the payment's event before this one, if it is known
 */
function eventTitle(type: EventType, before?: EventType): string {
  // Only a won dispute ends a chargeback. The payment's event has the type of its earlier status.
  if (before === "payment.chargeback") return "Chargeback reversed";
  const [subject, change] = type.split(".");
  return (subject === "payment" && wordsOf(change)?.[2]) || INSTRUMENT_EVENTS[type] || label(type);
}

/** The title of an event if it says more than the type of the event, else null. */
export function eventNote(type: EventType, before?: EventType): string | null {
  const title = eventTitle(type, before);
  const is_known = title === label(type) || title === label(type.split(".")[1] ?? "");
  return is_known ? null : title;
}

/** The tone of an event in a timeline, where only these three stand out. */
export function eventTone(type: EventType): "good" | "warn" | "bad" | "neutral" {
  if (type === "webhook_endpoint.disabled") return "bad";
  const tone = toneOf(type.split(".")[1] as PaymentStatus | OtherStatus);
  return tone === "good" || tone === "warn" || tone === "bad" ? tone : "neutral";
}

function wordsOf(status: string | undefined): StatusWords | undefined {
  return PAYMENT_STATUS_WORDS[status as PaymentStatus];
}

export const ACCOUNT_TEXTS: Readonly<Record<LedgerAccount, string>> = {
  available: "Your money: it can be transferred and refunded. Negative if refunds exceed it.",
  in_transit: "Transfers that are on their way.",
  external: "Transfers that have arrived at their destination.",
  chargebacks: "Money that the payers’ banks have taken back.",
  processor: "Negative: the money that the payment provider has received for you.",
  bank: "Negative: the money that the provider has paid out to your bank account.",
  unapplied: "Money that the provider has received and that matches no payment.",
  reserve: "Negative: your money that the provider holds back.",
};
export const ACCOUNTS = Object.keys(ACCOUNT_TEXTS) as readonly LedgerAccount[];
