/**
 * Types of bodies, responses, queries and lists of values (contract §2 to §7). Times are RFC 3339
 * in UTC, and amounts are integers in minor units of their currency.
 * Written by "deno task generate" from shared/.
 */

/** Parameters of every list. */
export interface ListParams {
  /** Maximum of items of a page, 1 to 100. By default 10; 100 where you iterate over items. */
  limit?: number | undefined;
  /** `next_cursor` of the page before, or the id of an item. The page begins after it. */
  starting_after?: string | undefined;
  /** `total`: also how many items the list has. */
  include?: "total" | undefined;
}

/** An API key. */
export interface ApiKey {
  /** `key_…` */
  id: string;
  object: "api_key";
  /** Your own name for the key. */
  name: string;
  /** Permissions of the key. Null: all. */
  scopes: Scope[] | null;
  /** True for a resource of a live key, false in a sandbox. */
  livemode: boolean;
  /** The secrets of the key that work now, newest first. */
  secrets: ({
    /** The beginning of the key's text, such as `sk_test_`. */
    prefix: string;
    /** The last four characters of the key's text. */
    last4: string;
    /** Time of creation. RFC 3339 in UTC, with milliseconds. */
    created_at: string;
    /** Time at which this secret expires: after a rotation, or with the key. */
    expires_at: string | null;
  })[];
  /** Time of the last use, updated at most once an hour. */
  last_used_at: string | null;
  /** Time of creation. RFC 3339 in UTC, with milliseconds. */
  created_at: string;
  /** Time at which the key expires. Null: never. */
  expires_at: string | null;
  /** Time of the revocation; null without one. RFC 3339 in UTC, with milliseconds. */
  revoked_at: string | null;
}

/** `ApiKey` with its secret, which the API shows only once: store it. */
export interface ApiKeyWithSecret extends ApiKey {
  /** The text of the key. Only creation and rotation show it. */
  secret: string;
}

/** A test key for the caller's own sandbox. */
export interface CreateApiKeyInput {
  /** Your own name for the key. Text of 1 to 100 characters. */
  name: string;
  /**
   * At most the scopes of the caller's key. By default all scopes, which only a key with all scopes
   * can give.
   */
  scopes?: Scope[] | undefined;
  /**
   * Time at which the key expires. By default, and at the latest, it expires with the caller's key.
   */
  expires_at?: string | undefined;
}

/** The time that the older secrets still work. */
export interface RotateApiKeyInput {
  /**
   * Seconds that the older secrets still work; `0` ends all of them at once. At most 5 secrets
   * work: a rotation that would make a sixth ends the oldest. A whole number of seconds from 0 to
   * 604800, which is 7 days. By default `86400`.
   */
  expires_in?: number | undefined;
}

/** A permission of a key. */
export type Scope =
  | "payments:read"
  | "payments:write"
  | "refunds:write"
  | "transfers:read"
  | "transfers:write"
  | "webhooks:read"
  | "webhooks:write"
  | "events:read"
  | "ledger:read"
  | "instruments:use"
  | "instruments:write"
  | "customers:erase"
  | "keys:write"
  | "sandbox:write";

/** Postal address of the account holder. Needed for an IBAN from outside the EEA. */
export interface PostalAddress {
  /** Street and number. Text of 1 to 70 characters. */
  line1?: string | undefined;
  /** A second line, such as a building. Text of 1 to 70 characters. */
  line2?: string | undefined;
  /** City. Text of 1 to 35 characters. */
  city: string;
  /** Postal code. Text of 1 to 16 characters. */
  postal_code?: string | undefined;
  /** Country code, ISO 3166-1 alpha-2. */
  country: string;
}

/**
 * The bank's comparison of the payee's name with the account. `unavailable`: the bank could not
 * compare them. `pending`: the bank has not finished. With `close_match`, `no_match` and
 * `unavailable` the payout stays `pending` until an operator approves it.
 */
export type PayeeCheck = "match" | "close_match" | "no_match" | "unavailable" | "pending";

/** The shown parts of a bank account. */
export interface MaskedIban {
  /** Country code, ISO 3166-1 alpha-2. */
  country: string;
  /** The last four characters of the IBAN. */
  last4: string;
}

/**
 * `instant` asks for SEPA Instant, for EUR to an IBAN only. If the payee's bank does not take it,
 * the payout fails, and is not sent again as a standard one. By default `standard`.
 */
export type Speed = "standard" | "instant";

/** Deleted bank details. */
export interface DeletedBankDetails {
  /** Id of the payment or transfer. */
  id: string;
  object: "bank_details";
  /** Always true. */
  deleted: true;
}

/** Whether anything in a sandbox has changed. */
export interface Changes {
  object: "changes";
  /** True if something has changed after the cursor, or if the request had none. */
  changed: boolean;
  /** The value of `after` for the next read. */
  next_cursor: string;
}

/** Prices that a payer pays by a method of their choice. */
export interface Checkout {
  /** `chk_…` */
  id: string;
  object: "checkout";
  status: CheckoutStatus;
  /**
   * The page for the payer, whose token is in the fragment; null: the operator has set no
   * `CHECKOUT_URL`.
   */
  url: string | null;
  /** The amount in minor units; 0: it only saves. */
  amount: number;
  /** Another name for `amount`. */
  amount_minor: number;
  /** Currency of the amounts: ISO 4217 code, `USDC` or `USDT`. */
  currency: string;
  /** Your prices in other currencies. */
  other_prices: CheckoutPrice[];
  /** The methods that the payer can choose. */
  methods: CheckoutMethod[];
  customer: Person | null;
  /** Your own text for the payer; null without one. */
  description: string | null;
  /** Your own number of the order or invoice. */
  reference: string | null;
  metadata: Metadata;
  capture: CaptureMethod;
  /** `on_session`: for payments with the payer present. `off_session`: also without. */
  save: InstrumentUsage | null;
  /** Language of the page; null: that of the browser. */
  locale: string | null;
  /** The page of your shop after the payment. */
  return_url: string | null;
  /** The page of your shop for a payer who gives up. */
  cancel_url: string | null;
  /** 1; null: a link, which any number of payers can pay until it expires or you cancel it. */
  max_payments: 1 | null;
  /** The end of new attempts; null: a link without one. */
  expires_at: string | null;
  /** True for a resource of a live key, false in a sandbox. */
  livemode: boolean;
  /**
   * Payments that were ever successful: `authorized`, `completed`, or a collection that is
   * `processing`. It never falls, and a late transfer can make it exceed `max_payments`.
   */
  payments_count: number;
  /** The last successful payment. */
  payment_id: string | null;
  /** Time of creation. RFC 3339 in UTC, with milliseconds. */
  created_at: string;
  /** Time of the last change. RFC 3339 in UTC, with milliseconds. */
  updated_at: string;
}

/** A checkout with its new attempt. */
export interface PaidCheckout extends Checkout {
  /** The new attempt. */
  payment: Payment;
}

/** A price in another currency. */
export interface CheckoutPrice {
  /** Amount in minor units of the currency: `1999` is 19.99 EUR. */
  amount_minor: number;
  /** Currency of the amounts: ISO 4217 code, `USDC` or `USDT`. */
  currency: string;
}

/**
 * A way to pay: `card`; `sepa_debit` collects from the payer's `iban`; by `sepa`, `swift` and
 * `stablecoin` the payer sends the money.
 */
export type CheckoutMethod = "card" | "sepa_debit" | "sepa" | "swift" | "stablecoin";

/** Status of a checkout. Only an `open` one takes attempts. */
export type CheckoutStatus = "open" | "completed" | "expired" | "cancelled";

/** Fields of a new checkout. */
export interface CheckoutFields {
  /** Currency of the amount: ISO 4217 code, `USDC` or `USDT`, in either case. */
  currency: string;
  /**
   * At most 5 prices in other currencies, which are your own: nothing is exchanged. Stablecoins are
   * offered only for a price in their currency.
   */
  other_prices?: {
    /** Amount in minor units of the currency: `1999` is 19.99 EUR. */
    amount_minor: number;
    /** Currency of the amount: ISO 4217 code, `USDC` or `USDT`, in either case. */
    currency: string;
  }[] | undefined;
  /**
   * The methods that the payer can choose. By default all that take one of the currencies, with a
   * live key those for which the operator has configured a provider.
   */
  methods?: CheckoutMethod[] | undefined;
  customer?: PersonInput | undefined;
  /** Your own text for people, such as what was sold. Text of at most 500 characters. */
  description?: string | undefined;
  /**
   * Your own number of the order or invoice. Each payment of the checkout has it too. Text of 1 to
   * 255 characters.
   */
  reference?: string | undefined;
  metadata?: Metadata | undefined;
  /** Of attempts by card. Other methods have no capture. */
  capture?: CaptureMethod | undefined;
  /** The usage of an instrument that the payer lets you save. Needs `customer.id`. */
  save?: InstrumentUsage | undefined;
  /** Language of the page: ISO 639-1. */
  locale?: string | undefined;
  /**
   * The page of your shop to which the payer comes back after `next_action`, with the parameter
   * `payment_id` added. https, or with a test key also http on localhost. Responses show it in its
   * normal form, such as `https://shop.example/` for `https://shop.example`.
   */
  return_url?: string | undefined;
  /** The page of your shop for a payer who gives up. */
  cancel_url?: string | undefined;
  /** 1; null: a link, which any number of payers can pay until it expires or you cancel it. */
  max_payments?: 1 | null | undefined;
  /**
   * The end of new attempts, at most 30 days ahead. By default 24 hours after the creation. Null
   * only for a link; one of a sandbox then expires 30 days after its creation or its last payment.
   */
  expires_at?: string | null | undefined;
}

/** `GET /v1/checkouts` */
export interface ListCheckoutsParams extends ListParams {
  /** Only checkouts in this status. */
  status?: CheckoutStatus | undefined;
  /** Only checkouts with this reference. Text of 1 to 255 characters. */
  reference?: string | undefined;
  /** Only checkouts of this customer. Text of 1 to 64 characters. */
  customer_id?: string | undefined;
}

/** The choices of a payer on the page. */
export interface PayCheckoutInput {
  card?: CardInput | undefined;
  /** Collects from this account, under a mandate of today. */
  iban?: string | IbanInput | undefined;
  /** By default that of `card`, `iban` or `currency`. */
  method?: CheckoutMethod | undefined;
  /** One of the prices. By default the first of the method. */
  currency?: string | undefined;
  /** The payer lets you save the card or the account, for the `save` of the checkout. */
  save?: true | undefined;
  /** A saved instrument of the customer. Needs the scope `instruments:use`. */
  instrument?: string | undefined;
  /** The result of 3-D Secure, if the payment asks for it. Without it the payment waits. */
  authenticate?: "success" | "failure" | undefined;
}

/** The clock of a sandbox. */
export interface Clock {
  object: "clock";
  /** RFC 3339 in UTC, with milliseconds. */
  now: string;
  /** `real`: the clock runs. `frozen`: it stands. */
  mode: "real" | "frozen";
  /** How far a running clock is ahead of the real time; null while the clock is frozen. */
  offset_seconds: number | null;
  /**
   * The end of the advances that are not complete; null: none is under way. In the response to
   * `POST`: the end of the advance of that request.
   */
  target: string | null;
}

/** The clock of a sandbox, and what became due. */
export interface ClockAdvance extends Clock {
  /**
   * The numbers of actions that the advance has done so far. Advances that overlap count together.
   */
  did: {
    /** Attempts to deliver webhooks, and deliveries to inboxes. */
    deliveries: number;
    /** Payments and authorizations that have ended by themselves. */
    expired_payments: number;
    /** Disputes that were lost at their deadline. */
    disputes_closed: number;
    /** Rows that were deleted after their retention. */
    purged: number;
  };
  /** True: the clock is on its way to `target`. Send `to` with the value of `target`. */
  has_more: boolean;
}

/** The things that the clock of a sandbox brings next. */
export interface Due {
  object: "due";
  /** RFC 3339 in UTC, with milliseconds. */
  now: string;
  /** The `until` of the request. */
  until: string | null;
  /** One item for each kind that something waits of, the earliest first. */
  data: ({
    /**
     * `payment_result`: the provider replies late, or a collection is due. `payment_end`,
     * `authentication_end`: the payer's time to pay or to authenticate ends. `authorization_end`:
     * an authorization ends. `payment_return`: the bank of a payer takes a payment back.
     * `refund_result` and `transfer_result`: the provider replies late. `dispute_loss`: a dispute
     * is lost without evidence. `dispute_result`: a dispute with evidence, or an accepted one, is
     * closed. `delivery`: a webhook is sent. `instrument_end`: a mandate ends after 36 months
     * without use.
     */
    kind:
      | "payment_result"
      | "payment_end"
      | "authentication_end"
      | "authorization_end"
      | "payment_return"
      | "refund_result"
      | "transfer_result"
      | "dispute_loss"
      | "dispute_result"
      | "delivery"
      | "instrument_end";
    /** How many of them wait. */
    count: number;
    /** When the first of them is due; before `now`: it is under way. */
    first_at: string;
    /**
     * The first of them: a payment (also of a refund or a dispute), transfer, delivery or
     * instrument.
     */
    first_id: string;
  })[];
  /**
   * True: at least 10 000 operations, deliveries or mandates wait. The counts are those of the
   * first 10 000 each.
   */
  has_more: boolean;
}

export interface DueParams {
  /** Only what is due until this RFC 3339 time of the sandbox. */
  until?: string | undefined;
}

/** Send `to` or `advance`, `mode`, or one of the first two together with `mode`. */
export interface SetClockInput {
  /**
   * The new time, at most 400 days after the present one and not after 2200-01-01T00:00:00Z. A time
   * before the end of an advance that is not complete goes on to that end.
   */
  to?: string | undefined;
  /**
   * Seconds by which the clock advances, after the end of the advances that are not complete. A
   * whole number of seconds from 1 to 34560000 (400 days).
   */
  advance?: number | undefined;
  /** `real`: the clock runs. `frozen`: it stands. */
  mode?: "real" | "frozen" | undefined;
}

/** The erasure of a customer. */
export interface ErasedCustomer {
  object: "customer";
  /** Your own id of the customer; null after an e-mail address. Text of 1 to 64 characters. */
  id: string | null;
  /** Always true. */
  deleted: true;
  /** Payments that this request has erased. */
  payments: number;
  /** Instruments that this request has ended or erased. */
  instruments: number;
  /** True: the service erases the rest within a day. */
  has_more: boolean;
}

/** A dispute: the payer has charged a payment back. */
export interface Dispute {
  /** `dp_…` */
  id: string;
  object: "dispute";
  /** Id of the payment that is charged back. */
  payment_id: string;
  /** Amount in minor units of the currency: `1999` is 19.99 EUR. */
  amount_minor: number;
  /** Currency of the amounts: ISO 4217 code, `USDC` or `USDT`. */
  currency: string;
  reason: DisputeReason;
  status: DisputeStatus;
  evidence: DisputeEvidence | null;
  /** Time until which evidence can be sent. Null if the provider of a live payment names none. */
  evidence_due_by: string | null;
  /** Time of creation. RFC 3339 in UTC, with milliseconds. */
  created_at: string;
  /** Time at which the dispute was won or lost. */
  closed_at: string | null;
}

/** The evidence of the merchant. */
export interface DisputeEvidence {
  /** The evidence in words. */
  text: string;
  /** Time at which the evidence was submitted. Null: it is saved only. */
  submitted_at: string | null;
}

/** Evidence for a dispute. */
export interface SubmitEvidenceInput {
  /** The evidence in words, at most 20000 characters. It replaces saved evidence. */
  text: string;
  /** False only saves the evidence. True, the default, submits it, which is possible once. */
  submit?: boolean | undefined;
}

/** The fields of a new fault beside its kind. */
export interface FaultFields {
  /** How often it happens. A whole number from 1 to 1000. By default `1`. */
  times?: number | undefined;
  /** The duration of a `delay` in milliseconds. A whole number from 1 to 10000. */
  delay_ms?: number | undefined;
}

/** A fault that was deleted: it does not happen any more. */
export interface DeletedFault {
  /** `flt_…` */
  id: string;
  object: "fault";
  /** Always true. */
  deleted: true;
}

/** A fault that was declared: the next matching targets fail. */
export interface Fault {
  /** `flt_…` */
  id: string;
  object: "fault";
  /**
   * The kind of target that fails: an API request, a webhook delivery, or a call to the simulated
   * payment provider.
   */
  on: "request" | "delivery" | "provider";
  /** The way in which the target fails. Each kind of target has faults of its own. */
  fault: RequestFault | DeliveryFault | ProviderFault;
  /** How often it was declared to happen. A whole number from 1 to 1000. */
  times: number;
  /** How often it will still happen. A whole number from 0 to 1000. */
  left: number;
  /** Conditions that a target has to match. */
  where: RequestConditions & DeliveryConditions & ProviderConditions;
  /** The duration of a `delay` in milliseconds. A whole number from 1 to 10000. */
  delay_ms: number | null;
  /** Time of creation. RFC 3339 in UTC, with milliseconds. */
  created_at: string;
}

/** Deliveries in the inbox of a webhook endpoint. */
export interface InboxPage {
  object: "inbox";
  /** The deliveries, oldest first. One with the declared fault `duplicate` comes twice. */
  data: InboxDelivery[];
  /** True if the inbox has more deliveries after these. */
  has_more: boolean;
  /**
   * The value of `after` for the next read. It acknowledges these deliveries, so send it when you
   * have handled them.
   */
  next_cursor: string;
}

/** A delivery in an inbox: the request that an endpoint with a URL would get. */
export interface InboxDelivery {
  /** `whd_…` */
  id: string;
  /** Id of the event that is delivered. */
  event_id: string;
  /** The headers, signed with the time of the read. */
  headers: Record<string, string>;
  /** The raw text that is signed. Verify it before you parse it. */
  body: string;
}

/** A recovery of the deliveries that an endpoint has missed. */
export interface Recovery {
  object: "recovery";
  /** Id of the endpoint that gets them. */
  endpoint_id: string;
  /** Number of deliveries that are `pending` again. */
  count: number;
  /** True if the period has more deliveries. */
  has_more: boolean;
  /** The value of `starting_after` for the next request. Null if `has_more` is false. */
  next_cursor: string | null;
}

/** The period whose deliveries the endpoint gets again. */
export interface RecoverInput {
  /** The first time of the period, at most 30 days ago. */
  since: string;
  /** The last time of the period. By default the present. */
  until?: string | undefined;
  /**
   * `failed`: deliveries that have failed or were cancelled. `all`: also those that the endpoint
   * has got. By default `"failed"`.
   */
  status?: "failed" | "all" | undefined;
  /** The `next_cursor` of the previous response. */
  starting_after?: string | undefined;
}

/** A card or SEPA mandate that later payments can use. */
export interface Instrument {
  /** `ins_…` */
  id: string;
  object: "instrument";
  status: InstrumentStatus;
  /** The customer of the payment that has saved it; null: it named none. */
  customer: {
    /** Your own id of the customer. Text of at most 64 characters. */
    id: string | null;
    /** E-mail address; null: none, or erased. */
    email: string | null;
    /** Name; null: none, or erased. */
    name: string | null;
  } | null;
  /** Kind of the payment method. */
  method_kind: "card" | "sepa";
  method: InstrumentMethod | null;
  /** `on_session`: for payments with the payer present. `off_session`: also without. */
  usage: InstrumentUsage;
  /** The mandate of the payer, by SEPA; null for a card. */
  mandate: {
    /**
     * Your own reference of the mandate: at most 35 letters, digits, single spaces and
     * `+?/:().,'-`.
     */
    id: string;
    /** When the payer signed: a date such as `2026-01-31`, or an RFC 3339 time. */
    signed_at: string;
  } | null;
  /**
   * Whether payments can name it as `instrument`. False: it is a mandate whose IBAN you send with
   * each payment.
   */
  is_kept: boolean;
  /** The payment that has saved it. */
  payment_id: string;
  ended_reason: InstrumentEndReason | null;
  /** The time of its last payment; null: none yet. */
  last_used_at: string | null;
  /** True for a resource of a live key, false in a sandbox. */
  livemode: boolean;
  /** 1 on creation, one more with each event and each change of the status. */
  sequence: number;
  /** Time of creation. RFC 3339 in UTC, with milliseconds. */
  created_at: string;
  /** Time of the last change. RFC 3339 in UTC, with milliseconds. */
  updated_at: string;
  /** The time of its end; null unless it has ended. */
  ended_at: string | null;
}

/**
 * `deleted` by you, `erased` with its customer, `revoked` by the payer at the bank,
 * `account_closed`, `used_up` by its last payment, `idle` for 36 months, or `removed_at_provider`.
 */
export type InstrumentEndReason =
  | "deleted"
  | "erased"
  | "revoked"
  | "account_closed"
  | "used_up"
  | "idle"
  | "removed_at_provider";

/** The card or account, masked. */
export type InstrumentMethod =
  /** The method of a payment by card. */
  | {
    type: "card";
    /** The shown parts of a card. */
    card: {
      /** The brand, such as `visa`, `mastercard`, `amex`, `discover`. */
      brand: string;
      /** The last four digits. */
      last4: string;
      /** Month of expiry, 1 to 12. */
      exp_month: number;
      /** Year of expiry, such as 2034. */
      exp_year: number;
    };
  }
  /** The account of the payer. */
  | {
    type: "sepa";
    iban: MaskedIban;
  };

/**
 * The balances of all accounts in all currencies. The API returns exact sums. As JavaScript
 * numbers, sums above `Number.MAX_SAFE_INTEGER` are rounded.
 */
export interface Balance {
  object: "balance";
  /** True for a resource of a live key, false in a sandbox. */
  livemode: boolean;
  /** The balance of each account in each currency. */
  balances: {
    /** Currency of the amounts: ISO 4217 code, `USDC` or `USDT`. */
    currency: string;
    account: LedgerAccount;
    /** Sum of all debits, in minor units. */
    debits_minor: number;
    /** Sum of all credits, in minor units. */
    credits_minor: number;
    /** Credits less debits, in minor units. */
    amount_minor: number;
  }[];
}

/** One side of a ledger transaction. An entry never changes. */
export interface LedgerEntry {
  /** `le_…` */
  id: string;
  object: "ledger_entry";
  /** The ledger transaction. Its debits and its credits have the same sum. */
  transaction_id: string;
  account: LedgerAccount;
  /** Side of the account that the amount is added to. */
  direction: "debit" | "credit";
  /** Amount in minor units of the currency: `1999` is 19.99 EUR. */
  amount_minor: number;
  /** Currency of the amounts: ISO 4217 code, `USDC` or `USDT`. */
  currency: string;
  /** The payment that moved the money, or null. */
  payment_id: string | null;
  /** The refund that moved the money, or null. */
  refund_id: string | null;
  /** The transfer that moved the money, or null. */
  transfer_id: string | null;
  /** Time of creation. RFC 3339 in UTC, with milliseconds. */
  created_at: string;
}

/** An account of the ledger. `available` is the money that transfers can use. */
export type LedgerAccount =
  | "processor"
  | "available"
  | "chargebacks"
  | "in_transit"
  | "external"
  | "bank"
  | "unapplied"
  | "reserve";

/** `GET /v1/disputes` */
export interface ListDisputesParams extends ListParams {
  /** Only disputes of this payment. */
  payment_id?: string | undefined;
  /** Only disputes in this status. */
  status?: DisputeStatus | undefined;
}

/** `GET /v1/instruments` */
export interface ListInstrumentsParams extends ListParams {
  /** Only instruments of this customer. Text of 1 to 64 characters. */
  customer_id?: string | undefined;
  /** Only instruments in this status. */
  status?: InstrumentStatus | undefined;
  /** Only instruments of this kind of method. */
  method_kind?: MethodKind | undefined;
}

/** `GET /v1/ledger_entries` */
export interface ListLedgerEntriesParams extends ListParams {
  /** Only entries of this payment. It cannot be combined with `transfer_id`. */
  payment_id?: string | undefined;
  /** Only entries of this transfer. */
  transfer_id?: string | undefined;
  /** Only entries of this ledger transaction. */
  transaction_id?: string | undefined;
  /** Only entries of this account. */
  account?: LedgerAccount | undefined;
  /** Only entries in this currency. */
  currency?: string | undefined;
}

/** `GET /v1/payments` */
export interface ListPaymentsParams extends ListParams {
  /** Only payments in this status. */
  status?: PaymentStatus | undefined;
  /** Only payments in this currency. */
  currency?: string | undefined;
  /** Only payments by this kind of method. */
  method_kind?: MethodKind | undefined;
  /** Only payments with this reference. Text of 1 to 255 characters. */
  reference?: string | undefined;
  /** Only payments whose customer has exactly this e-mail address. */
  customer?: string | undefined;
  /** Only payments whose customer has this `id`. Text of 1 to 64 characters. */
  customer_id?: string | undefined;
  /** Only payments that have saved or used this instrument. */
  instrument_id?: string | undefined;
  /** Only payments of this checkout. */
  checkout_id?: string | undefined;
  /**
   * Only payments with this value, such as an e-mail address, an amount or the last four digits, or
   * with these words in the customer's name, the reference or the description. If there are none,
   * only payments with this text in a part of them. Text of 2 to 100 characters.
   */
  search?: string | undefined;
  /** Only items created after this RFC 3339 time. */
  created_after?: string | undefined;
  /** Only items created before this RFC 3339 time. */
  created_before?: string | undefined;
}

/** `GET /v1/refunds` */
export interface ListRefundsParams extends ListParams {
  /** Only refunds of this payment. */
  payment_id?: string | undefined;
  /** Only refunds in this status. */
  status?: RefundStatus | undefined;
}

/** `GET /v1/transfers` */
export interface ListTransfersParams extends ListParams {
  /** Only transfers in this status. */
  status?: TransferStatus | undefined;
  /** Only transfers in this currency. */
  currency?: string | undefined;
  /** Only transfers with this text in the description. Text of 2 to 100 characters. */
  search?: string | undefined;
  /** Only items created after this RFC 3339 time. */
  created_after?: string | undefined;
  /** Only items created before this RFC 3339 time. */
  created_before?: string | undefined;
}

export interface PaymentTotalsParams {
  /** The `next_cursor` of the previous page. */
  starting_after?: string | undefined;
  /** Only payments created at or after this RFC 3339 time. */
  from?: string | undefined;
  /** Only payments created before this RFC 3339 time. */
  to?: string | undefined;
  /**
   * Seconds of each span of time that has totals of its own; the first begins at `from`. Without it
   * there is one span. A whole number of seconds from 60 to 2678400 (31 days).
   */
  span?: number | undefined;
  /** Only payments in this status. */
  status?: PaymentStatus | undefined;
  /** Only payments in this currency. */
  currency?: string | undefined;
  /** Only payments by this kind of method. */
  method_kind?: MethodKind | undefined;
}

/** The next step of the payer. A newer service may send a type that is not listed here. */
export type NextAction =
  /**
   * Send the payer to this page, where the bank asks for 3-D Secure. With a test key it is a page
   * with the buttons Approve and Fail. From there the payer comes to `return_url`, with the parameter
   * `payment_id`. The payment is `failed` with `expired` if the payer does not authenticate within 24
   * hours.
   */
  | {
    type: "authenticate";
    /** Address of the page for the payer. */
    url: string;
  }
  /** Show the payer these bank details. */
  | {
    type: "bank_transfer";
    /** IBAN to which the payer sends the money. */
    iban: string;
    /** BIC of its bank. */
    bic: string;
    /** Name of the account holder. */
    holder_name: string;
    /** The reference that the payer must give, ISO 11649. */
    reference: string;
    /** Amount in minor units of the currency: `1999` is 19.99 EUR. */
    amount_minor: number;
    /** Currency of the amounts: ISO 4217 code, `USDC` or `USDT`. */
    currency: string;
    /** Time of the end. RFC 3339 in UTC, with milliseconds. */
    expires_at: string;
    /** The text of a QR code for banking apps (EPC069-12). Null unless the currency is EUR. */
    epc_qr: string | null;
  }
  /** Show the payer this address. */
  | {
    type: "send_stablecoin";
    network: Network;
    asset: Stablecoin;
    /** Address of the token's contract on the network. In the sandbox a test token on Sepolia. */
    contract: string;
    /** The address that belongs to this payment alone. */
    address: string;
    /** Amount in minor units of the currency: `1999` is 19.99 EUR. */
    amount_minor: number;
    /** Time of the end. RFC 3339 in UTC, with milliseconds. */
    expires_at: string;
    /** An EIP-681 link for wallets and QR codes. */
    uri: string;
  };

/** A payment. */
export interface Payment {
  /** `pay_…` */
  id: string;
  object: "payment";
  status: PaymentStatus;
  /** The amount in minor units: 0 if the payment only saves its instrument. */
  amount: number;
  /** Another name for `amount`. */
  amount_minor: number;
  /** Currency of the amounts: ISO 4217 code, `USDC` or `USDT`. */
  currency: string;
  /** Sum of the completed refunds, in minor units. */
  amount_refunded: number;
  /** Sum of the pending refunds, in minor units. */
  amount_refunding: number;
  /** The amount that was taken: less than `amount` after a capture of a part. */
  amount_captured: number;
  /** The amount that the payer has charged back, in minor units. */
  amount_disputed: number;
  /** The amount that has arrived, on rails where the payer sends; null for the others. */
  amount_received: number | null;
  capability: Capability;
  method_kind: MethodKind;
  method: PaymentMethod | null;
  /** The instrument that the payment has saved or used; null: neither. */
  instrument_id: string | null;
  /** The checkout whose attempt it is; null: none. */
  checkout_id: string | null;
  /** Whether the payer was not present. */
  off_session: boolean;
  customer: Person | null;
  payer: Person | null;
  /** Your own text for people; null without one. */
  description: string | null;
  /** Your own number of the order or invoice. */
  reference: string | null;
  metadata: Metadata;
  next_action: NextAction | null;
  /** The page of your shop to which the payer comes back after `next_action`. */
  return_url: string | null;
  capture: CaptureMethod;
  /** The time at which an uncaptured authorization is cancelled by itself. */
  capture_before: string | null;
  /** `manual` if the payment waits for an advance; null with a live key. */
  settlement: Settlement | null;
  /** The reason of a decline or a failure, for programs; null without one. */
  failure_code: DeclineCode | FailureCode | null;
  /** The reason of the failure in words, for people. */
  failure_message: string | null;
  advice: DeclineAdvice | null;
  /** The bank's code of a return, such as `AC04`. */
  return_code: string | null;
  /** True for a resource of a live key, false in a sandbox. */
  livemode: boolean;
  /** Number of the payment's last event: 1 on creation, one more with each event. */
  sequence: number;
  /** Time of creation. RFC 3339 in UTC, with milliseconds. */
  created_at: string;
  /** Time of the last change. RFC 3339 in UTC, with milliseconds. */
  updated_at: string;
  /** Time of completion; null before it. RFC 3339 in UTC, with milliseconds. */
  completed_at: string | null;
  /** Time of the cancellation; null without one. RFC 3339 in UTC, with milliseconds. */
  cancelled_at: string | null;
}

/** The payment instrument, masked. */
export type PaymentMethod =
  /** The method of a payment by card. */
  | {
    type: "card";
    /** The shown parts of a card. */
    card: {
      /** The brand, such as `visa`, `mastercard`, `amex`, `discover`. */
      brand: string;
      /** The last four digits. */
      last4: string;
      /** Month of expiry, 1 to 12. */
      exp_month: number;
      /** Year of expiry, such as 2034. */
      exp_year: number;
    };
  }
  /** The method of a payment by bank. */
  | {
    /** Rail of the payment. */
    type: "sepa" | "swift";
    iban: MaskedIban;
    /** The mandate of the payer; null without one. */
    mandate: Mandate | null;
    /** The day on which the payment is collected under the mandate; null without one. */
    due_on: string | null;
  }
  /** The method of a payment by stablecoin. */
  | {
    type: "stablecoin";
    wallet: Wallet;
  };

/** A wallet. Its address is public, so responses show it whole. */
export interface Wallet {
  /** Address of the wallet, which is public. */
  address: string;
  network: Network;
  asset: Stablecoin;
  /** Hash of the transaction on chain. Null until it completes. */
  tx_hash: string | null;
}

/** The status to move to. */
export interface AdvanceInput {
  to: PaymentStatus;
  /** The reason of the dispute, only with `chargeback`. By default `general`. */
  reason?: DisputeReason | undefined;
  /**
   * Amount that the payer sends now, in minor units, only for a payment by bank transfer or to an
   * address. Default: the missing amount. For late money, send the current status of the payment as
   * `to`.
   */
  amount_received?: number | undefined;
  /**
   * The bank's code of the return, as in the external code set of ISO 20022: `AC04`, `AM04`,
   * `MD01`, `MD06`, `MS03` … Only with `failed`, for money by bank. By default `R01`.
   */
  return_code?: string | undefined;
}

/** The result of 3-D Secure. */
export interface AuthenticateInput {
  /** `failure` declines the payment with `authentication_failed`. By default `"success"`. */
  result?: "success" | "failure" | undefined;
}

/** `manual` only authorizes the amount; a capture within 7 days takes it. Cards only. */
export type CaptureMethod = "automatic" | "manual";

/** Without an amount the request captures the whole authorized amount. */
export interface CapturePaymentInput {
  /**
   * Amount in minor units of the currency: `1999` is 19.99 EUR. `amount_minor` is another name for
   * it: a request has one of them, or both with the same value, and responses have both.
   */
  amount?: number | undefined;
  /** Amount in minor units of the currency: `1999` is 19.99 EUR. */
  amount_minor?: number | undefined;
}

/**
 * Fields of a new payment. Send at most one of `card`, `iban`, `wallet` and `instrument`. Without
 * any of them and without `outcome` the payment is `pending`. If the payer then sends the money,
 * `next_action` has the place.
 */
export interface PaymentFields {
  /** Currency of the amount: ISO 4217 code, `USDC` or `USDT`, in either case. */
  currency: string;
  /**
   * Kind of the payment method (variant A). By default that of the instrument; without one
   * `card_payment`.
   */
  capability?: Capability | undefined;
  /** Kind of the payment method (variant B): another name for `capability`. Send one of the two. */
  method_kind?: MethodKind | undefined;
  customer?: PersonInput | undefined;
  /** The payer: another name for `customer`. Send one of the two. */
  payer?: PersonInput | undefined;
  card?: CardInput | undefined;
  /** A bank account: an object, or the IBAN as text. */
  iban?: string | IbanInput | undefined;
  mandate?: MandateInput | undefined;
  /** A wallet: an object, or the address as text. */
  wallet?: string | WalletInput | undefined;
  /**
   * A saved instrument in place of another one and its `mandate`. Needs the scope
   * `instruments:use`.
   */
  instrument?: string | undefined;
  /** `true`: the payer is not present. Only with an `instrument` whose `usage` is `off_session`. */
  off_session?: boolean | undefined;
  /**
   * Saves the card or the SEPA `iban` for later payments of the same `customer.id`: `on_session`
   * with the payer present, `off_session` also without.
   */
  save?: InstrumentUsage | undefined;
  /** Your own text for people, such as what was sold. Text of at most 500 characters. */
  description?: string | undefined;
  /**
   * Your own number of the order or invoice. Lists of payments can filter by it. Text of 1 to 255
   * characters.
   */
  reference?: string | undefined;
  metadata?: Metadata | undefined;
  capture?: CaptureMethod | undefined;
  /**
   * The page of your shop to which the payer comes back after `next_action`, with the parameter
   * `payment_id` added. https, or with a test key also http on localhost. Responses show it in its
   * normal form, such as `https://shop.example/` for `https://shop.example`.
   */
  return_url?: string | undefined;
  outcome?: Outcome | undefined;
  settlement?: Settlement | undefined;
}

/** The mandate of the payer, for a payment by SEPA with an `iban`. */
export interface Mandate {
  /**
   * Your own reference of the mandate: at most 35 letters, digits, single spaces and `+?/:().,'-`.
   */
  id: string;
  /** When the payer signed: a date such as `2026-01-31`, or an RFC 3339 time. */
  signed_at: string;
  /**
   * The place of the payment among those of the mandate. `recurring` can be the first too. Nothing
   * is collected after `final` or `one_off`.
   */
  sequence: MandateSequence;
}

/**
 * The mandate of the payer. `id` and `sequence` are required without `save`. With it the service
 * makes an id, and the sequence is `first` or `recurring`, by default `recurring`.
 */
export interface MandateInput {
  /**
   * Your own reference of the mandate: at most 35 letters, digits, single spaces and `+?/:().,'-`.
   */
  id?: string | undefined;
  /** When the payer signed: a date such as `2026-01-31`, or an RFC 3339 time. */
  signed_at: string;
  /**
   * The place of the payment among those of the mandate. `recurring` can be the first too. Nothing
   * is collected after `final` or `one_off`.
   */
  sequence?: MandateSequence | undefined;
}

/** Payments of a span of time that have the same status and currency. */
export interface PaymentTotal {
  object: "payment_total";
  /** The beginning of the span; null without `span`. */
  from: string | null;
  status: PaymentStatus;
  /** Currency of the amounts: ISO 4217 code, `USDC` or `USDT`. */
  currency: string;
  /** The number of payments. */
  count: number;
  /** The sum of their amounts. */
  amount_minor: number;
  /** The sum that was taken from payers; 0 for `failed`, also if the payments were paid before. */
  amount_captured: number;
  /** The sum that was refunded. */
  amount_refunded: number;
}

/** A refund: money back to the payer. */
export interface Refund {
  /** `re_…` */
  id: string;
  object: "refund";
  /** The refunded payment. */
  payment_id: string;
  /** Status of the payment as of the refund's last event. */
  payment_status: PaymentStatus;
  /**
   * Amount in minor units of the currency: `1999` is 19.99 EUR. `amount_minor` is another name for
   * it: a request has one of them, or both with the same value, and responses have both.
   */
  amount: number;
  /** Amount in minor units of the currency: `1999` is 19.99 EUR. */
  amount_minor: number;
  /** Currency of the amounts: ISO 4217 code, `USDC` or `USDT`. */
  currency: string;
  status: RefundStatus;
  /** The reason of a failed refund, for programs; null if it did not fail. */
  failure_code: FailureCode | null;
  /** The reason of the failure in words, for people. */
  failure_message: string | null;
  /** The bank's code of a return, such as `AC04`. */
  return_code: string | null;
  reason: RefundReason | null;
  metadata: Metadata;
  /** Where the refund goes, masked. Null if the request named nothing. */
  destination: RefundDestination | null;
  /** Null if no bank pays it out. */
  speed: Speed | null;
  /** Null if the bank has told none. */
  payee_check: PayeeCheck | null;
  /** True for a resource of a live key, false in a sandbox. */
  livemode: boolean;
  /** Time of creation. RFC 3339 in UTC, with milliseconds. */
  created_at: string;
  /** Time of the last change. RFC 3339 in UTC, with milliseconds. */
  updated_at: string;
}

/** The status to move to. */
export interface AdvanceRefundInput {
  to: RefundStatus;
  /**
   * The bank's code of the return, as in the external code set of ISO 20022: `AC04`, `AM04`,
   * `MD01`, `MD06`, `MS03` … Only with `failed`, for money by bank. By default `R01`.
   */
  return_code?: string | undefined;
}

/**
 * Without an amount the request refunds the rest of the payment. A payment that was sent to an
 * address needs `destination`.
 */
export interface CreateRefundInput {
  /**
   * Amount in minor units of the currency: `1999` is 19.99 EUR. `amount_minor` is another name for
   * it: a request has one of them, or both with the same value, and responses have both.
   */
  amount?: number | undefined;
  /** Amount in minor units of the currency: `1999` is 19.99 EUR. */
  amount_minor?: number | undefined;
  reason?: RefundReason | undefined;
  metadata?: Metadata | undefined;
  destination?: RefundDestinationInput | undefined;
  speed?: Speed | undefined;
}

/** Reason of the refund. */
export type RefundReason = "duplicate" | "fraudulent" | "requested_by_customer" | "other";

/** An idempotency key that an API key has used within the last 24 hours. */
export interface IdempotencyKey {
  /** The key, as the header `Idempotency-Key` sent it. */
  key: string;
  object: "idempotency_key";
  /** Id of the first request with this key. */
  first_request_id: string;
  /** HTTP method of the first request. */
  method: string;
  /** Path from the name of the function on: `/api-v1-payments/v1/payments`. */
  path: string;
  /** HTTP status of the stored response. Null while the first request is under way. */
  status: number | null;
  /** Time of the first request. */
  created_at: string;
  /** Time from which a request with this key is a new one. */
  expires_at: string;
  /** How often the stored response was replayed. Replays are counted behind their responses. */
  replays: number;
  /**
   * Body of the stored response, with `***` in place of secrets. Null while the first request is
   * under way.
   */
  body: Record<string, unknown> | null;
}

/** A request that a sandbox has received. */
export interface LoggedRequest {
  /** Id of the request, as in the header `Request-Id` of its response. */
  id: string;
  object: "request";
  /** HTTP method. */
  method: string;
  /**
   * Path from the name of the function on: `/api-v1-payments/v1/payments`. `***` stands for text
   * that the log does not show.
   */
  path: string;
  /** Known parameters of the query. `***` stands for free text. Null: none. */
  query: string | null;
  /** HTTP status of the response. */
  status: number;
  /** Code of the error. Null: the response is no error. */
  error_code: string | null;
  /** Its idempotency key. Null: none. */
  idempotency_key: string | null;
  /** True: the response is that of an earlier request. */
  idempotent_replay: boolean;
  /** Time from the arrival of the request to its response. */
  duration_ms: number;
  /** Id of the API key that sent the request. */
  api_key_id: string;
  /**
   * `web_page`: a browser sent the request for a page, such as the console. `program`: anything
   * else.
   */
  source: "program" | "web_page";
  /**
   * Id of the resource that the request has made, or else of the one that it names. A request has
   * made it also if its response is a decline, or an error of a declared fault. Null: none.
   */
  resource_id: string | null;
  /** The declared fault that decided the response, as in its header `Sandbox-Fault`. Null: none. */
  fault: string | null;
  /** Id of the fault. Null: none, or the request asked for it with the header `Sandbox-Fault`. */
  fault_id: string | null;
  /** Time at which the request arrived. */
  created_at: string;
  /**
   * Body with `…` in place of secrets and of unknown members. Null: not stored. Only the read of
   * one request has it.
   */
  request_body?: Record<string, unknown> | null | undefined;
  /** Body of the response, as `request_body`. */
  response_body?: Record<string, unknown> | null | undefined;
}

/** `GET /requests` */
export interface ListRequestsParams extends ListParams {
  /** Only requests with this method. */
  method?: string | undefined;
  /** Only requests with exactly this path, as the log shows it. */
  path?: string | undefined;
  /**
   * Only responses with this HTTP status or class of statuses, such as 4xx. `error`: 4xx and 5xx
   * without 402, because a decline is a result.
   */
  status?: string | undefined;
  /** Only the request with this id. */
  request_id?: string | undefined;
  /** Only requests with this idempotency key. Text of 1 to 255 characters. */
  idempotency_key?: string | undefined;
  /** Only requests of this API key. */
  api_key_id?: string | undefined;
  /** Only requests that have made this resource, or that name it in their path. */
  resource_id?: string | undefined;
  /** Only requests that this declared fault decided. */
  fault_id?: string | undefined;
  /** Only requests from such a client. */
  source?: "program" | "web_page" | undefined;
}

/** A disposable sandbox of the caller's account. */
export interface CreateSandboxInput {
  /** A name for people, such as the branch or the test. Text of 1 to 100 characters. */
  name?: string | undefined;
  /**
   * Seconds until the sandbox ends. It ends with the caller's key at the latest. A whole number of
   * seconds from 60 to 604800, which is 7 days. By default `86400`.
   */
  expires_in?: number | undefined;
  /**
   * The ids, tokens and secrets of the sandbox follow from this text and from the number of the
   * request, and its clock stands at 2030-01-01T00:00:00.000Z. So the same requests in the same
   * order give the same bytes. Null or left out: they are random. Text of 1 to 100 characters.
   */
  seed?: string | null | undefined;
}

/** A key of a disposable sandbox. */
export interface CreateSandboxKeyInput {
  /**
   * Your own name for the key. Text of 1 to 100 characters. By default `"Made for the sandbox"`.
   */
  name?: string | undefined;
  /**
   * At most the scopes of the caller's key. By default all scopes, which only a key with all scopes
   * can give.
   */
  scopes?: Scope[] | undefined;
  /**
   * Seconds until the key ends. By default, and at the latest, it ends with the sandbox, and with
   * the caller's key. A whole number of seconds from 60 to 604800, which is 7 days.
   */
  expires_in?: number | undefined;
}

/** A disposable sandbox. */
export interface DisposableSandbox {
  /** `env_…` */
  id: string;
  object: "sandbox";
  /** The name of the creation. Null: none. */
  name: string | null;
  /** The seed. Null: the ids of the sandbox are random. */
  seed: string | null;
  /** Time of creation. RFC 3339 in UTC, with milliseconds. */
  created_at: string;
  /** Time at which the sandbox and all its keys end. In the past: it has ended. */
  expires_at: string;
}

/** `DisposableSandbox` with its secret, which the API shows only once: store it. */
export interface SandboxWithKey extends DisposableSandbox {
  /**
   * The text of a key of the sandbox, with all scopes: `sk_test_…`, with a seed `skseeded_test_…`.
   * Only creation shows it.
   */
  test_key: string;
}

/** What the reset deletes beside the data. */
export interface ResetSandboxInput {
  /** Whether to delete the webhook endpoints too. By default they stay. */
  webhook_endpoints?: boolean | undefined;
}

/** The result of a reset. */
export interface SandboxReset {
  object: "sandbox_reset";
  /** Number of deleted resources of each kind, at most 250 000. */
  deleted: {
    /** Number of deleted resources of this kind. */
    payments: number;
    /** Number of deleted resources of this kind. */
    refunds: number;
    /** Number of deleted resources of this kind. */
    transfers: number;
    /** Number of deleted resources of this kind. */
    ledger_entries: number;
    /** Number of deleted resources of this kind. */
    events: number;
    /** Number of deleted resources of this kind. */
    webhook_deliveries: number;
    /** Number of deleted resources of this kind. */
    idempotency_keys: number;
    /** Number of deleted resources of this kind. */
    webhook_endpoints: number;
    /** Number of deleted resources of this kind. */
    instruments: number;
    /** Number of deleted resources of this kind. */
    checkouts: number;
  };
}

/** Reason that the payer gives. */
export type DisputeReason = "fraudulent" | "product_not_received" | "duplicate" | "general";

/**
 * Status of the dispute. `needs_response` waits for evidence, and `under_review` for the payer's
 * bank. `won` and `lost` are final.
 */
export type DisputeStatus = "needs_response" | "under_review" | "won" | "lost";

/**
 * Status of an instrument. It follows from the payment that has saved it. `failed` and `ended` are
 * final.
 */
export type InstrumentStatus = "pending" | "active" | "failed" | "ended";

/** Status of a payment. Final are `declined`, `failed`, `cancelled`, `refunded`. */
export type PaymentStatus =
  | "pending"
  | "requires_action"
  | "processing"
  | "authorized"
  | "completed"
  | "declined"
  | "failed"
  | "cancelled"
  | "partially_refunded"
  | "refunded"
  | "chargeback";

/**
 * Status of the refund. A `pending` refund is on its way to the payer and counts against the amount
 * that can be refunded.
 */
export type RefundStatus = "pending" | "completed" | "failed";

/** Status of a transfer. */
export type TransferStatus = "pending" | "completed" | "failed" | "cancelled";

/** A transfer: money out of the available balance. */
export interface Transfer {
  /** `tr_…` */
  id: string;
  object: "transfer";
  status: TransferStatus;
  /**
   * Amount in minor units of the currency: `1999` is 19.99 EUR. `amount_minor` is another name for
   * it: a request has one of them, or both with the same value, and responses have both.
   */
  amount: number;
  /** Amount in minor units of the currency: `1999` is 19.99 EUR. */
  amount_minor: number;
  /** Currency of the amounts: ISO 4217 code, `USDC` or `USDT`. */
  currency: string;
  destination: TransferDestination;
  /** Null if no bank pays it out. */
  speed: Speed | null;
  /** Null if the bank has told none. */
  payee_check: PayeeCheck | null;
  /** Your own text for people; null without one. */
  description: string | null;
  metadata: Metadata;
  /** The reason of a failure, for programs; null if it did not fail. */
  failure_code: FailureCode | null;
  /** The reason of the failure in words, for people. */
  failure_message: string | null;
  /** The bank's code of a return, such as `AC04`. */
  return_code: string | null;
  /** True for a resource of a live key, false in a sandbox. */
  livemode: boolean;
  /** Number of the transfer's last event: 1 on creation, one more with each event. */
  sequence: number;
  /** Time of creation. RFC 3339 in UTC, with milliseconds. */
  created_at: string;
  /** Time of the last change. RFC 3339 in UTC, with milliseconds. */
  updated_at: string;
  /** Time of completion; null before it. RFC 3339 in UTC, with milliseconds. */
  completed_at: string | null;
  /** Time of the cancellation; null without one. RFC 3339 in UTC, with milliseconds. */
  cancelled_at: string | null;
}

/** The destination of the money, masked. */
export type TransferDestination =
  /** A bank account as a destination. */
  | {
    type: "iban";
    iban: MaskedIban;
  }
  /** A wallet as a destination. */
  | {
    type: "wallet";
    wallet: Wallet;
  };

/** The status to move to. */
export interface AdvanceTransferInput {
  to: TransferStatus;
  /**
   * The bank's code of the return, as in the external code set of ISO 20022: `AC04`, `AM04`,
   * `MD01`, `MD06`, `MS03` … Only with `failed`, for money by bank. By default `R01`.
   */
  return_code?: string | undefined;
}

/** Fields of a new transfer. */
export interface TransferFields {
  /** Currency of the amount: ISO 4217 code, `USDC` or `USDT`, in either case. */
  currency: string;
  /**
   * The receiving account: send one of `iban` and `wallet`. The other members are for an `iban`.
   */
  destination: {
    /** A bank account: an object, or the IBAN as text. */
    iban?: string | IbanInput | undefined;
    /**
     * Name of the payee, which the bank verifies. Required with a live key. Text of 1 to 200
     * characters.
     */
    holder_name?: string | undefined;
    /** BIC of the bank, of 8 or 11 characters. */
    bic?: string | undefined;
    address?: PostalAddress | undefined;
    /** A wallet: an object, or the address as text. */
    wallet?: string | WalletInput | undefined;
  };
  speed?: Speed | undefined;
  /** Your own text for people, such as what was sold. Text of at most 500 characters. */
  description?: string | undefined;
  metadata?: Metadata | undefined;
  settlement?: Settlement | undefined;
}

/** Network of the wallet. */
export type Network = "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "solana" | "tron";

/** The payer. `customer` and `payer` are two names for the same person. */
export interface Person {
  /**
   * Your own id of the customer. Lists of payments can filter by it. Text of 1 to 64 characters.
   */
  id?: string | undefined;
  /** E-mail address of the person; null: erased. */
  email: string | null;
  /** Name of the person; null: erased. Text of 1 to 200 characters. */
  name?: string | null | undefined;
}

/** The payer: `customer` or `payer`. */
export interface PersonInput {
  /**
   * Your own id of the customer. Lists of payments can filter by it. Text of 1 to 64 characters.
   */
  id?: string | undefined;
  /** E-mail address of the person. Required, except beside an `instrument`. */
  email?: string | undefined;
  /** Name of the person. Text of 1 to 200 characters. */
  name?: string | undefined;
}

/**
 * Test keys only. `manual` leaves a transfer, or a payment whose money takes time, `pending` until
 * an advance moves it, and also the refunds of a payment.
 */
export type Settlement = "instant" | "manual";

/** Your own data: at most 50 entries. A name has at most 40 characters, a value at most 500. */
export type Metadata = Record<string, string>;

/** A deleted webhook endpoint. */
export interface DeletedWebhookEndpoint {
  /** `whe_…` */
  id: string;
  object: "webhook_endpoint";
  /** Always true. */
  deleted: true;
}

/** One HTTP attempt of a delivery. */
export interface DeliveryAttempt {
  /** Number of the attempt, from 1. */
  number: number;
  /** Time of the attempt. RFC 3339 in UTC, with milliseconds. */
  at: string;
  /** HTTP status of the receiver's response. Null: there was none. */
  response_status: number | null;
  /** Duration in milliseconds, rounded up to a multiple of 100. */
  duration_ms: number;
  /**
   * The reason for a missing response. `crashed`: the service stopped three times while it sent
   * this delivery, and the attempt counts as failed.
   */
  error: AttemptError | null;
}

/** The request of an attempt in a sandbox, and the beginning of its response. */
export interface DeliveryExchange {
  /** Number of the attempt. */
  attempt: number;
  /** The request of the attempt. */
  request: {
    /** The URL of the request. */
    url: string;
    /** Headers of the request, with the signatures. */
    headers: Record<string, string>;
    /** Body of the request: the exact text that the signature covers. */
    body: string;
  };
  /** Beginning of the response. Null: there was none. */
  response: {
    /**
     * The first 1 024 bytes of the response as UTF-8: status line, headers and body as they came.
     */
    text: string;
    /** True: the response had more bytes. */
    truncated: boolean;
  } | null;
}

/** The delivery of an event to one endpoint. */
export interface WebhookDelivery {
  /** `whd_…` */
  id: string;
  object: "webhook_delivery";
  /** The delivered event. */
  event_id: string;
  /** Type of an event. */
  event_type: EventType;
  /** The endpoint that receives it. */
  endpoint_id: string;
  /** The payment of the event. Null if the event belongs to no payment. */
  payment_id: string | null;
  status: DeliveryStatus;
  /**
   * All attempts up to 50, then the first and at least the newest 50. A delivery to an inbox has
   * none.
   */
  attempts: DeliveryAttempt[];
  /** Time of the next attempt; null if none is planned. RFC 3339 in UTC, with milliseconds. */
  next_attempt_at: string | null;
  /** Time of creation. RFC 3339 in UTC, with milliseconds. */
  created_at: string;
  /**
   * The pending delivery that this one waits for: the first of the same payment and endpoint.
   * Missing if it waits for none.
   */
  blocked_by?: string | undefined;
  /**
   * Requests and responses of the newest five attempts, oldest first. Only the read of one delivery
   * shows them, in a sandbox, for 7 days.
   */
  exchanges?: DeliveryExchange[] | undefined;
}

/** A URL or an inbox that gets events, signed with its own secret. */
export interface WebhookEndpoint {
  /** `whe_…` */
  id: string;
  object: "webhook_endpoint";
  /** `url` or `inbox`. */
  delivery: EndpointDelivery;
  /** Address that receives the events. Null for an inbox. */
  url: string | null;
  /** The types of events that it receives. */
  events: Subscription[];
  status: EndpointStatus;
  /**
   * `manual`: a request disabled it. `gone`: it returned 410. `failing`: all attempts of five days
   * failed.
   */
  disabled_reason: DisabledReason | null;
  /** Your own text for people; null without one. */
  description: string | null;
  metadata: Metadata;
  /** True for a resource of a live key, false in a sandbox. */
  livemode: boolean;
  /** Time of creation. RFC 3339 in UTC, with milliseconds. */
  created_at: string;
  /** Time of the last change. RFC 3339 in UTC, with milliseconds. */
  updated_at: string;
  /** Only reads show it, while the endpoint is enabled and its newest attempt failed. */
  failing?: true | undefined;
}

/** `WebhookEndpoint` with its secret, which the API shows only once: store it. */
export interface WebhookEndpointWithSecret extends WebhookEndpoint {
  /** The secret that signs its deliveries. Only creation and rotation show it. */
  secret: string;
}

/** The fields of a new endpoint beside its URL. */
export interface EndpointFields {
  /** The types of events that the endpoint receives. By default `["*"]`. */
  events?: Subscription[] | undefined;
  /** Your own text for people. Text of at most 500 characters. */
  description?: string | undefined;
  metadata?: Metadata | undefined;
}

/**
 * Status of a delivery. `available`: it is in an inbox, and its receiver has not acknowledged it.
 */
export type DeliveryStatus = "pending" | "available" | "delivered" | "failed" | "cancelled";

/**
 * `url`: the service sends the events to the URL. `inbox`: there is no URL, and the receiver reads
 * the events.
 */
export type EndpointDelivery = "url" | "inbox";

/** Status of an endpoint. Only an `enabled` one gets events. */
export type EndpointStatus = "enabled" | "disabled";

/** `GET /v1/events` */
export interface ListEventsParams extends ListParams {
  /** Only events of this type. */
  type?: EventType | undefined;
  /** Only events of this payment. It cannot be combined with `transfer_id`. */
  payment_id?: string | undefined;
  /** Only events of this transfer. */
  transfer_id?: string | undefined;
  /** Only events of this instrument, and of payments that have saved or used it. */
  instrument_id?: string | undefined;
  /** Only events that this request has caused. */
  request_id?: string | undefined;
}

/** `GET /v1/webhook_deliveries` */
export interface ListWebhookDeliveriesParams extends ListParams {
  /** Only deliveries to this webhook endpoint. */
  endpoint_id?: string | undefined;
  /** Only deliveries of this event. */
  event_id?: string | undefined;
  /** Only deliveries of events of this payment. It cannot be combined with `transfer_id`. */
  payment_id?: string | undefined;
  /** Only deliveries of events of this transfer. */
  transfer_id?: string | undefined;
  /** Only deliveries of `instrument.*` events of this instrument. */
  instrument_id?: string | undefined;
  /** Only deliveries in this status. */
  status?: DeliveryStatus | undefined;
}

/** The time that the older secrets still sign. */
export interface RotateSecretInput {
  /**
   * Seconds that the older secrets still sign, in addition to the new one; `0` ends all of them at
   * once. At most 5 secrets sign: a rotation that would make a sixth ends the oldest. A whole
   * number of seconds from 0 to 604800, which is 7 days. By default `0`.
   */
  expires_in?: number | undefined;
}

/** The event to send. */
export interface TriggerInput {
  /** The endpoint that receives the event. */
  endpoint_id: string;
  /** Any type of event except those of transfers and instruments. */
  event: EventType;
  /** The payment that the event shows. */
  payment_id: string;
}

/** The fields to change. Absent fields keep their values. */
export interface UpdateWebhookEndpointInput {
  /**
   * `inbox` removes the URL. `url` needs a `url`, and sends the deliveries to it that are in the
   * inbox and not acknowledged.
   */
  delivery?: EndpointDelivery | undefined;
  /** `https` and a public host. The operator can allow `http` and private hosts. */
  url?: string | undefined;
  /** The types of events that the endpoint receives. */
  events?: Subscription[] | undefined;
  status?: EndpointStatus | undefined;
  /** Your own text for people; null removes it. Text of at most 500 characters. */
  description?: string | null | undefined;
  metadata?: Metadata | undefined;
}

/** A bank account. */
export interface IbanInput {
  /** The IBAN. Spaces and case are ignored. */
  iban: string;
  /** BIC of the bank, of 8 or 11 characters. */
  bic?: string | undefined;
  /** Name of the account holder. Text of 1 to 200 characters. */
  holder_name?: string | undefined;
  address?: PostalAddress | undefined;
}

/** A wallet. */
export interface WalletInput {
  /** Address of the wallet. */
  address: string;
  /** By default the form of the address decides. */
  network?: Network | undefined;
  /** By default the currency of the payment if it is a stablecoin, else `USDC`. */
  asset?: Stablecoin | undefined;
}

/** A card by its number. Test keys only, and only the published test cards. */
export interface CardNumberInput {
  /** A published test card number. Spaces and dashes are ignored. Test keys only. */
  number: string;
  /** Month of expiry, 1 to 12. */
  exp_month: number;
  /** Year of expiry, such as 2034. A whole number from 2000 to 2100. */
  exp_year: number;
  /** Three digits, four for American Express. The service never stores it. */
  cvc: string;
  /** Postal code of the payer. Any is accepted. Text of at most 20 characters. */
  postal_code?: string | undefined;
}

/** A card by its token. */
export interface CardTokenInput {
  /**
   * The token of a card, which the provider's form in the browser makes: `pm_…`. Test keys take the
   * test tokens.
   */
  token: string;
}

/**
 * Where the refund goes: the wallet in `address`, or the bank account in `iban`. A refund by bank
 * goes to the payer's account without it.
 */
export interface RefundDestinationInput {
  /**
   * The address of the wallet as text, or for a bank account the postal address of the payee, with
   * `city` and `country` at least.
   */
  address?: string | PostalAddress | undefined;
  /** A bank account: an object, or the IBAN as text. */
  iban?: string | IbanInput | undefined;
  /**
   * Name of the payee, which the bank verifies. Required with a live key. Text of 1 to 200
   * characters.
   */
  holder_name?: string | undefined;
  /** BIC of the bank, of 8 or 11 characters. */
  bic?: string | undefined;
}

/** The wallet or the masked bank account to which a refund goes. */
export type RefundDestination =
  /** The wallet that the payer named. */
  | {
    /**
     * Address that the payer names, on the network of the payment. Never use the sender of the
     * payment: it can be an exchange.
     */
    address: string;
  }
  /** The bank account that the request named. */
  | {
    iban: MaskedIban;
  };

/** Conditions of a fault on requests. A request that has all of these values matches. */
export interface RequestConditions {
  /** Requests with this method. */
  method?: RequestMethod | undefined;
  /**
   * Requests to this path after the name of the function, with an id or with `{id}` in its place:
   * `/v1/payments/{id}/refund`.
   */
  path?: string | undefined;
  /** Requests with this `Idempotency-Key`. Text of 1 to 255 characters. */
  idempotency_key?: string | undefined;
}

/** Conditions of a fault on webhook deliveries. */
export interface DeliveryConditions {
  /** Deliveries to this webhook endpoint. */
  endpoint_id?: string | undefined;
  /** Deliveries of events of this type. */
  event_type?: EventType | undefined;
}

/** Conditions of a fault on calls to the simulated provider. */
export interface ProviderConditions {
  /** Calls about this kind of payment method. */
  method_kind?: MethodKind | undefined;
  /** Calls of this operation. */
  operation?: ProviderOperation | undefined;
}

/** The member `error` of the body of an error. */
export interface ErrorBody {
  /** Coarse group of the code. */
  type: ErrorType;
  /** The kind of error, for programs. */
  code: ErrorCode;
  /** The error in words, for people. The text may change. */
  message: string;
  /** The field, parameter or header at fault, as a path: `card.number`. */
  param?: string | undefined;
  /** The value of the header `Request-Id`. */
  request_id: string;
  /** The page that explains the code, if the operator publishes the documentation. */
  doc_url?: string | undefined;
  advice?: DeclineAdvice | undefined;
  /** With a decline: the payment, which is stored. */
  payment?: Payment | undefined;
  /** With `permission_denied`: the scope that the key lacks. */
  required_scope?: string | null | undefined;
  /** With `invalid_state`: the status of the resource. */
  current_status?: string | undefined;
  /** With `invalid_state`: the statuses that the resource can get. */
  allowed?: string[] | undefined;
  /** If a refund is too large: the amount that can be refunded, in minor units. */
  amount_refundable?: number | undefined;
  /** If a capture is too large: the authorized amount, in minor units. */
  amount_capturable?: number | undefined;
}

/** An error code. A newer service may send a code that is not listed here. */
export type ErrorCode = keyof typeof ERROR_CODES;

/** The type of an error. */
export type ErrorType = typeof ERROR_CODES[ErrorCode]["type"];

/** The type of an event. A newer service may send a type that is not listed here. */
export type EventType =
  | PaymentEventType
  | RefundEventType
  | DisputeEventType
  | TransferEventType
  | InstrumentEventType
  | EndpointEventType;

/** A subscription of an endpoint: an event type, all types of a resource, or all types. */
export type Subscription = EventType | EventPattern;

/** An amount in minor units, under either of its names. If you send both, they must be equal. */
export type AmountInput =
  | { amount: number; amount_minor?: number | undefined }
  | { amount_minor: number; amount?: number | undefined };

/** A card: its token, or with a test key the number of a test card. */
export type CardInput = CardNumberInput | CardTokenInput;

/** `POST /v1/payments`. Amounts are integers in minor units: 1999 is 19.99 EUR. */
export type CreatePaymentInput = PaymentFields & AmountInput;

/** `POST /v1/checkouts`. Amounts are integers in minor units: 1999 is 19.99 EUR. */
export type CreateCheckoutInput = CheckoutFields & AmountInput;

/** `POST /v1/transfers`. Amounts are integers in minor units: 1050 is 10.50 EUR. */
export type CreateTransferInput = TransferFields & AmountInput;

/**
 * `POST /v1/webhook_endpoints`. An endpoint has an `https` URL of a public host, or an inbox. The
 * operator can allow other URLs for test keys.
 */
export type CreateWebhookEndpointInput =
  & ({ delivery?: "url" | undefined; url: string } | { delivery: "inbox"; url?: undefined })
  & EndpointFields;

/** `POST /faults` */
export type CreateFaultInput =
  & (
    | { on: "request"; fault: RequestFault; where?: RequestConditions | undefined }
    | { on: "delivery"; fault: DeliveryFault; where?: DeliveryConditions | undefined }
    | { on: "provider"; fault: ProviderFault; where?: ProviderConditions | undefined }
  )
  & FaultFields;

/** The kind of payment method. */
export type MethodKind = "card" | "sepa" | "swift" | "stablecoin";

/** The kind of payment method, under its other name: `card_payment` is `card`, and so on. */
export type Capability = "card_payment" | "sepa_payment" | "swift_payment" | "stablecoin_payment";

/** A forced result of a sandbox payment. It overrides the instrument. */
export type Outcome = "success" | "declined" | "pending" | "refunded" | "chargeback";

/**
 * The next step that helps after a decline. `do_not_retry`: the method will be declined again. A
 * newer service may send a value that is not listed here.
 */
export type DeclineAdvice = "retry_later" | "use_another_method" | "do_not_retry" | "authenticate";

/** The code of a decline. The error has the payment, which is stored. */
export type DeclineCode =
  | "payment_declined"
  | "insufficient_funds"
  | "aml_blocked"
  | "authentication_failed"
  | "authentication_required";

/** The reason why a payment, refund or transfer failed after it was accepted. */
export type FailureCode =
  | "bank_return"
  | "onchain_reverted"
  | "processing_failed"
  | "expired"
  | "underpaid"
  | "provider_refused";

/** `on_session`: for payments with the payer present. `off_session`: also without. */
export type InstrumentUsage = "on_session" | "off_session";

/** The place of a payment among those of its mandate. Nothing follows `final` and `one_off`. */
export type MandateSequence = "first" | "recurring" | "final" | "one_off";

/** The asset of a wallet. Each has 6 decimals: 1500000 is 1.5 USDC. */
export type Stablecoin = "USDC" | "USDT";

/**
 * The reason why an endpoint is disabled. `gone`: it returned 410. `failing`: it failed for 5 days.
 */
export type DisabledReason = "manual" | "gone" | "failing";

/** The reason why an attempt got no response. */
export type AttemptError = "timeout" | "connection_failed" | "crashed";

/** An event type that shows a payment. */
export type PaymentEventType =
  | "payment.created"
  | "payment.pending"
  | "payment.requires_action"
  | "payment.processing"
  | "payment.authorized"
  | "payment.completed"
  | "payment.declined"
  | "payment.failed"
  | "payment.cancelled"
  | "payment.partially_refunded"
  | "payment.refunded"
  | "payment.chargeback";

/** An event type that shows a refund. */
export type RefundEventType =
  | "refund.created"
  | "refund.updated"
  | "refund.completed"
  | "refund.failed";

/** An event type that shows a dispute. */
export type DisputeEventType =
  | "dispute.created"
  | "dispute.updated"
  | "dispute.won"
  | "dispute.lost";

/** An event type that shows a transfer. */
export type TransferEventType =
  | "transfer.created"
  | "transfer.updated"
  | "transfer.completed"
  | "transfer.failed"
  | "transfer.cancelled";

/** An event type that shows an instrument. */
export type InstrumentEventType = "instrument.updated" | "instrument.ended";

/** An event type that shows a webhook endpoint. */
export type EndpointEventType = "webhook_endpoint.disabled" | "ping";

/** A pattern that matches several event types. */
export type EventPattern =
  | "*"
  | "payment.*"
  | "refund.*"
  | "dispute.*"
  | "transfer.*"
  | "instrument.*"
  | "webhook_endpoint.*";

/**
 * A declared fault of requests. After `server_error_after` and `connection_lost_after` the request
 * is done.
 */
export type RequestFault =
  | "rate_limited"
  | "service_unavailable"
  | "server_error_before"
  | "server_error_after"
  | "connection_lost_after"
  | "delay";

/** A declared fault of webhook deliveries. */
export type DeliveryFault =
  | "duplicate"
  | "delay"
  | "reorder"
  | "wrong_signature"
  | "drop_until_recovered";

/** A declared fault of the sandbox's provider. */
export type ProviderFault = "timeout" | "declined" | "failed";

/** An operation of the sandbox's provider. */
export type ProviderOperation = "authorize" | "capture" | "cancel" | "refund" | "transfer";

/** The method of a request. */
export type RequestMethod = "GET" | "POST" | "PUT" | "DELETE";

/** The HTTP status and type of every error code of the API. */
export const ERROR_CODES = {
  invalid_parameter: { status: 400, type: "invalid_request" },
  invalid_json: { status: 400, type: "invalid_request" },
  unauthorized: { status: 401, type: "authentication" },
  payment_declined: { status: 402, type: "payment" },
  insufficient_funds: { status: 402, type: "payment" },
  aml_blocked: { status: 402, type: "payment" },
  authentication_failed: { status: 402, type: "payment" },
  authentication_required: { status: 402, type: "payment" },
  provider_refused: { status: 402, type: "payment" },
  balance_insufficient: { status: 402, type: "payment" },
  test_key_required: { status: 403, type: "permission" },
  permission_denied: { status: 403, type: "permission" },
  origin_not_allowed: { status: 403, type: "permission" },
  not_found: { status: 404, type: "invalid_request" },
  method_not_allowed: { status: 405, type: "invalid_request" },
  idempotency_conflict: { status: 409, type: "idempotency" },
  idempotency_in_progress: { status: 409, type: "idempotency" },
  invalid_state: { status: 409, type: "invalid_request" },
  payload_too_large: { status: 413, type: "invalid_request" },
  unsupported_media_type: { status: 415, type: "invalid_request" },
  rate_limited: { status: 429, type: "rate_limit" },
  internal_error: { status: 500, type: "api" },
  service_unavailable: { status: 503, type: "api" },
  provider_not_configured: { status: 503, type: "api" },
} as const;
