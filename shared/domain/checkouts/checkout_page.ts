/**
 * A checkout as its payer sees it (contract §2): nothing of other payers, and nothing that only the
 * merchant may know. Pure.
 */

import { type CheckoutMethod, methodsFor } from "../../core/checkout_methods.ts";
import { formatTime } from "../../core/clock.ts";
import { epcQr } from "../../core/epc_qr.ts";
import { ApiError } from "../../core/errors.ts";
import { withPaymentId } from "../../core/return_url.ts";
import { withTransferAmount } from "../../core/token_transfer_uri.ts";
import type { CheckoutPage, PageAttempt, PageView } from "../../schema/checkout_page.ts";
import type { NextAction, Payment } from "../../schema/payment.ts";
import { STATUSES } from "../payment_statuses.ts";
import { collectionOf, dueDateOfNew } from "../payments/collection.ts";
import { isDeposit, missingAmount } from "../payments/lifecycle.ts";
import { abandonedAttempt, hasAttemptsLeft, isLink, type StoredCheckout } from "./attempt.ts";
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
  const view = viewOf(stored);
  return {
    ...{ id, object: "checkout_page", status, view, merchant },
    may_leave: status === "open" && (view === "action" || view === "transfer") &&
      // Money that has come would count for nothing.
      !((shown!.amount_received ?? 0) > 0) &&
      hasAttemptsLeft(stored) && (isLink(stored) || abandonedAttempt(stored) !== null),
    ...{ amount_minor, currency, other_prices, methods, description, locale, save },
    publishable_key: stripe?.["publishable_key"] ?? null,
    connected_account: stripe?.["connected_account"] ?? null,
    mandate: methods.includes("sepa_debit") ? mandateOf(stored, at_ms) : null,
    ...{ return_url, cancel_url, is_link: isLink(stored), expires_at, livemode },
    now: formatTime(at_ms),
    attempt: shown && attemptOf(shown, return_url),
  };
}

/** Returns the part of the page that the payer needs now. */
function viewOf(stored: OwnCheckout): PageView {
  const { checkout: { status }, shown } = stored;
  const step = shown && stepOf(shown);
  if (status === "completed" || isLink(stored) && step === "paid") return "paid";
  if (step !== null && step !== "paid") return step;
  if (status !== "open") return status;
  return hasAttemptsLeft(stored) ? "form" : "exhausted";
}

/** Returns the step of an attempt. Null: it has paid nothing, and cannot any more. */
function stepOf(payment: Payment): "action" | "transfer" | "processing" | "paid" | null {
  const { waits_for, result } = STATUSES[payment.status];
  const { next_action } = payment;
  switch (waits_for) {
    case "authentication":
      return next_action?.type === "authenticate" ? "action" : "processing";
    case "money":
      return next_action ? "transfer" : "processing";
    case "result":
      if (collectionOf(payment).mandate) return "paid";
      return isDeposit(payment) && missingAmount(payment) > 0 ? "transfer" : "processing";
    default:
      return result === "unpaid" ? null : "paid";
  }
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
  const { id: payment_id, status, amount_minor, amount_received, currency } = payment;
  const { method, method_kind } = payment;
  const { mandate, due_on } = collectionOf(payment);
  return {
    ...{ payment_id, status, method: mandate ? "sepa_debit" : method_kind },
    ...{ amount_minor, amount_received, currency },
    instrument: instrumentOf(method),
    mandate_id: mandate?.id ?? null,
    next_action: nextActionOf(payment),
    result_on: due_on,
    return_url: return_url === null ? null : withPaymentId(return_url, payment),
  };
}

/** Returns the next action of the payer. After a part of the money it asks for the rest. */
function nextActionOf(payment: Payment): NextAction | null {
  const { next_action } = payment;
  if (!next_action || next_action.type === "authenticate" || !isDeposit(payment)) {
    return next_action;
  }
  const rest = { ...next_action, amount_minor: missingAmount(payment) };
  return rest.type === "bank_transfer"
    ? { ...rest, epc_qr: epcQr(rest) }
    : { ...rest, uri: withTransferAmount(rest.uri, rest.amount_minor) };
}

function instrumentOf(method: Payment["method"]): PageAttempt["instrument"] {
  if (method?.type === "card") return { brand: method.card.brand, last4: method.card.last4 };
  return method && "iban" in method ? { brand: null, last4: method.iban.last4 } : null;
}
