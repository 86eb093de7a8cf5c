/**
 * A checkout as its payer sees it (contract §2): nothing of other payers, and nothing that only the
 * merchant may know. Pure.
 */

import { type CheckoutMethod, methodsFor } from "../../core/checkout_methods.ts";
import { formatTime } from "../../core/clock.ts";
import { ApiError } from "../../core/errors.ts";
import { withPaymentId } from "../../core/return_url.ts";
import type { CheckoutPage, PageAttempt } from "../../schema/checkout_page.ts";
import type { Payment } from "../../schema/payment.ts";
import { collectionOf, dueDateOfNew } from "../payments/collection.ts";
import type { StoredCheckout } from "./attempt.ts";
import { accountFor, type MethodAccount } from "./offers.ts";

/** The creditor identifier of every sandbox, which the Bundesbank publishes for tests. */
const TEST_CREDITOR = "DE98ZZZ09999999999";

/** The checkout of a payer as it is stored (`pay_internal.payer_detail`). */
export interface OwnCheckout extends StoredCheckout {
  merchant: CheckoutPage["merchant"];
  /** Those of a live environment; of a sandbox none. */
  accounts: MethodAccount[];
  /** The requests that the seeded sandbox has had; 0: it has no seed. */
  requests: number;
  /** The payment that the payer may see; null: none. */
  shown: Payment | null;
}

/**
 * Returns the checkout at a time. Throws `provider_not_configured` if it is open and its accounts
 * are gone.
 */
export function pageOf(stored: OwnCheckout, at_ms: number): CheckoutPage {
  const { checkout, merchant, shown } = stored;
  const { id, status, amount_minor, currency, other_prices, livemode } = checkout;
  const { description, locale, save, return_url, cancel_url, expires_at } = checkout;
  const methods = methodsOf(stored);
  const stripe = settingsOf(stored, "card");
  return {
    ...{ id, object: "checkout_page", status, merchant },
    ...{ amount_minor, currency, other_prices, methods, description, locale, save },
    publishable_key: stripe?.["publishable_key"] ?? null,
    connected_account: stripe?.["connected_account"] ?? null,
    mandate: methods.includes("sepa_debit") ? mandateOf(stored, at_ms) : null,
    ...{ return_url, cancel_url, is_link: checkout.max_payments === null, expires_at, livemode },
    now: formatTime(at_ms),
    attempt: shown && attemptOf(shown, return_url),
  };
}

/** Returns the methods of a checkout. An open live one offers those that still have an account. */
function methodsOf(stored: OwnCheckout): CheckoutMethod[] {
  const { methods, livemode, status } = stored.checkout;
  if (!livemode || status !== "open") return methods;
  const served = methods.filter((method) => {
    const settings = settingsOf(stored, method);
    return settings && (method !== "card" || settings["publishable_key"] !== undefined);
  });
  if (served.length > 0) return served;
  throw new ApiError("provider_not_configured", "No live provider takes this payment any more");
}

/**
 * Returns the settings of the live account that serves a method at its first price; null: there is
 * none, or the method is not offered.
 */
function settingsOf({ checkout, accounts }: OwnCheckout, method: CheckoutMethod) {
  if (!checkout.methods.includes(method)) return null;
  const price = [checkout, ...checkout.other_prices]
    .find(({ currency, amount_minor }) => methodsFor(currency, amount_minor).includes(method));
  return price === undefined ? null : accountFor(accounts, method, price.currency)?.settings;
}

function mandateOf(stored: OwnCheckout, at_ms: number): CheckoutPage["mandate"] {
  const { merchant, checkout: { livemode, amount_minor } } = stored;
  const settings = settingsOf(stored, "sepa_debit");
  return {
    creditor_name: settings?.["holder_name"] ?? merchant.name,
    creditor_identifier: livemode ? settings?.["creditor_id"] ?? null : TEST_CREDITOR,
    collects_on: amount_minor === 0 ? null : dueDateOfNew({ at_ms, livemode }),
  };
}

function attemptOf(payment: Payment, return_url: string | null): PageAttempt {
  const { id: payment_id, status, amount_minor, currency, method, method_kind } = payment;
  const { mandate, due_on } = collectionOf(payment);
  return {
    ...{ payment_id, status, method: mandate ? "sepa_debit" : method_kind, amount_minor, currency },
    instrument: instrumentOf(method),
    mandate_id: mandate?.id ?? null,
    next_action: payment.next_action,
    result_on: due_on,
    return_url: return_url === null ? null : withPaymentId(return_url, payment),
  };
}

function instrumentOf(method: Payment["method"]): PageAttempt["instrument"] {
  if (method?.type === "card") return { brand: method.card.brand, last4: method.card.last4 };
  return method && "iban" in method ? { brand: null, last4: method.iban.last4 } : null;
}
