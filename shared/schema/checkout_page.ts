/**
 * A checkout as the payer's page gets it. The routes of the page are not part of the API, so the
 * OpenAPI document does not have them (contract §2). Without the schema library, for the page.
 */

import type { CheckoutMethod } from "../core/checkout_methods.ts";
import type { Checkout } from "./checkout.ts";
import type { PayCheckoutBody } from "./checkout_body.ts";
import type { Payment } from "./payment.ts";

/** Name of the header with the token of a checkout, which is the fragment of its URL. */
export const TOKEN_HEADER = "Checkout-Token";
/** Name of the header with the `payment_id` of the payer's own attempt. */
export const ATTEMPT_HEADER = "Checkout-Attempt";

/** The body of `POST /checkout/payments`. */
export type PayPageBody = Omit<PayCheckoutBody, "instrument" | "authenticate">;

/**
 * The parts of the page, one of which the payer needs: the fields; the step of the attempt, which
 * is at the payer's bank, a transfer, or nothing but time; or the end.
 */
export type PageView =
  | ("form" | "action" | "transfer" | "processing")
  | ("paid" | "expired" | "cancelled" | "exhausted");

/** The payer's own attempt, without the reason of a decline. */
export interface PageAttempt extends
  Pick<
    Payment,
    "status" | "amount_minor" | "amount_received" | "currency" | "next_action"
  > {
  /** For the return to the shop, and for `ATTEMPT_HEADER`. */
  payment_id: string;
  method: CheckoutMethod;
  /** The card, or the account, which has no brand; null if the payer sends the money. */
  instrument: { brand: string | null; last4: string } | null;
  /** The reference of the mandate; null without one. */
  mandate_id: string | null;
  /** The day on which a collection is due; null for the others, and if it is not known. */
  result_on: string | null;
  /** The page of the shop, with the parameters `payment_id` and `checkout_id`. */
  return_url: string | null;
}

/** The response to `GET /checkout` and `POST /checkout/payments`. */
export interface CheckoutPage extends
  Pick<
    Checkout,
    | ("id" | "status" | "amount_minor" | "currency" | "other_prices" | "methods" | "description")
    | ("locale" | "save" | "return_url" | "cancel_url" | "expires_at" | "livemode")
  > {
  object: "checkout_page";
  view: PageView;
  /** Whether the payer can leave the attempt of the view for another one. */
  may_leave: boolean;
  /** `color` is like `#0a7f3f`, and `logo` a data URL. */
  merchant: { name: string; color: string | null; logo: string | null };
  /** `pk_live_…`, by which the page makes the token of a card; null for a test or without cards. */
  publishable_key: string | null;
  /** `acct_…`, for which the token is made; null: for the account of the key. */
  connected_account: string | null;
  /** For the text of a mandate; null unless `sepa_debit` is offered. */
  mandate: {
    creditor_name: string;
    /** Null: not known. */
    creditor_identifier: string | null;
    /** The first day of a collection that begins now; null: the bank decides, or none. */
    collects_on: string | null;
  } | null;
  /** Whether any number of payers can pay. */
  is_link: boolean;
  /** The time by the clock of the environment. */
  now: string;
  /**
   * The payer's own attempt: the successful or the last one, and of a link the one that
   * `ATTEMPT_HEADER` names.
   */
  attempt: PageAttempt | null;
}
