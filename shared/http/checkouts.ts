/** Creates, pays and cancels checkouts. Attempts are made as `POST /v1/payments` makes payments. */

import { formatTime } from "../core/clock.ts";
import { ApiError } from "../core/errors.ts";
import type { RequestContext } from "../domain/changes/event.ts";
import { isFinalRefusal } from "../domain/changes/change_writer.ts";
import { DecisionLoop } from "../domain/changes/decision_loop.ts";
import { renderError } from "../domain/changes/error_body.ts";
import {
  type Reply,
  type ServiceRequest,
  withoutRateCount,
} from "../domain/changes/service_request.ts";
import {
  abandonedAttempt,
  afterAttempt,
  attemptBody,
  checkAttempt,
  checkOpen,
  type StoredCheckout,
  underWay,
} from "../domain/checkouts/attempt.ts";
import type { OwnCheckout } from "../domain/checkouts/checkout_page.ts";
import type { CheckoutUrls } from "../domain/checkouts/checkout_url.ts";
import { newCheckout, pricesOf } from "../domain/checkouts/new_checkout.ts";
import {
  type MethodAccount,
  type Offer,
  offersOf,
  offersOfAccounts,
} from "../domain/checkouts/offers.ts";
import { STATUSES } from "../domain/payment_statuses.ts";
import { cancelOf } from "../domain/payments/capture_and_cancel.ts";
import { paymentOf } from "../domain/payments/create_payment.ts";
import { readStoredInstrument } from "../domain/payments/instruments.ts";
import type { Begun } from "../domain/providers/operation.ts";
import type { Checkout } from "../schema/checkout.ts";
import type { CreateCheckoutBody, PayCheckoutBody } from "../schema/checkout_body.ts";
import type { Payment } from "../schema/payment.ts";
import type { PaymentStatus } from "../schema/statuses.ts";
import type { ResourceKind } from "../store/load_statement.ts";
import type { Loaded } from "../store/store.ts";
import { loadInstrument } from "./create_payment.ts";
import type { Dependencies } from "./dependencies.ts";

type Deps = Pick<
  Dependencies,
  "store" | "checkout_store" | "checkout_urls" | "operations" | "provider_accounts" | "vault"
>;

/** An id that no resource has, for a load of what belongs to the whole environment. */
const NO_ID = "none";

/**
 * Creates a checkout. With a live key it takes a round trip more, which reads the accounts that
 * take the methods. The responses of these functions have a reference in place of the URL.
 */
export async function createCheckout(
  deps: Deps,
  { access, context, idempotency }: ServiceRequest,
  body: CreateCheckoutBody,
  { master_secret }: CheckoutUrls,
): Promise<Reply> {
  const { store, checkout_store } = deps;
  let offers = offersOf(pricesOf(body));
  let counted = access;
  if (context.livemode) {
    const loaded = await store.load(access, "method_accounts", NO_ID, idempotency);
    if (loaded.outcome === "replay") return { response: loaded.response, replayed: true };
    offers = await liveOffers(deps, offers, loaded.body);
    counted = withoutRateCount(access);
  }
  const { row, checkout } = newCheckout(body, offers, context, master_secret);
  const response = { status: 201, body: JSON.stringify(checkout) };
  return await checkout_store.create(counted, row, response, idempotency);
}

/**
 * Returns the offers that the accounts of a live environment take.
 * @param accounts `MethodAccount[]` as JSON text
 */
async function liveOffers(
  { provider_accounts, vault }: Pick<Deps, "provider_accounts" | "vault">,
  offers: readonly Offer[],
  accounts: string,
): Promise<Offer[]> {
  const possible = offers.filter(({ method }) => method !== "sepa_debit" || vault !== null);
  return await offersOfAccounts(
    possible,
    JSON.parse(accounts) as MethodAccount[],
    (account, method, price) => provider_accounts.takes(account, method, price),
  );
}

/** Cancels a checkout, and an attempt that waits for its payer. */
export function cancelCheckout(deps: Deps, request: ServiceRequest, id: string): Promise<Reply> {
  const { context, idempotency } = request;
  return new DecisionLoop(deps.store).run(request, "checkouts", id, async (loaded, access) => {
    const stored = readCheckout(loaded);
    const { revision } = stored;
    try {
      checkOpen(stored, "cancel");
    } catch (error) {
      if (!isFinalRefusal(error)) throw error;
      const refusal = { status: error.status, body: renderError(error, context) };
      const refused = { id, revision, is_refused: true };
      return await deps.checkout_store.cancel(access, refused, refusal, idempotency);
    }
    await cancelAbandoned(deps, { ...request, access }, stored, "cancel");
    const cancelled: Checkout = {
      ...stored.checkout,
      status: "cancelled",
      updated_at: formatTime(context.at_ms),
    };
    const response = { status: 200, body: JSON.stringify(cancelled) };
    const change = { id, revision, is_refused: false };
    return await deps.checkout_store.cancel(access, change, response, idempotency);
  });
}

/** A request of a payer, who presents the token of a checkout. */
export interface PayerRequest extends ServiceRequest {
  /** Makes the context of a step, whose ids follow in a seeded sandbox from the label. */
  contextOf(label: string, stored: OwnCheckout): RequestContext;
}

/**
 * Makes an attempt. The response is the checkout with its payment, or for a payer the payment
 * alone.
 * @param id of the checkout; null: that of the payer
 */
export async function payCheckout(
  deps: Deps,
  request: ServiceRequest | PayerRequest,
  id: string | null,
  body: PayCheckoutBody,
): Promise<Reply> {
  const { store, operations } = deps;
  const place: [ResourceKind, string] = id === null ? ["own_checkout", ""] : ["checkouts", id];
  let loaded: Loaded | null = await store.load(request.access, ...place, request.idempotency);
  if (loaded.outcome === "replay") return { response: loaded.response, replayed: true };
  const counted = { ...request, access: withoutRateCount(request.access) };
  return await operations.create(counted, async () => {
    const found = loaded ?? await store.load(counted.access, ...place);
    loaded = null;
    if (found.outcome === "replay") throw new Error("a load without a key has no replay");
    return await beginAttempt(deps, counted, readCheckout(found), body);
  });
}

async function beginAttempt(
  deps: Deps,
  request: ServiceRequest | PayerRequest,
  stored: StoredCheckout,
  body: PayCheckoutBody,
): Promise<Begun> {
  const { access } = request;
  const { checkout, revision } = stored;
  const context = contextOf(request, stored, `attempt ${stored.attempts + 1} of ${checkout.id}`);
  checkAttempt(stored, context.at_ms);
  const used = body.instrument === undefined
    ? null
    : await loadInstrument(deps.store, access, body.instrument, null);
  if (used?.outcome === "replay") throw new Error("a load without a key has no replay");
  const instrument = used && await readStoredInstrument(used.body, used.detail!, deps.vault);
  const kind = instrument?.shown.method_kind ?? null;
  const create = attemptBody(checkout, body, kind, context.at_ms);
  const begun = paymentOf(create, false, context, instrument, checkout.id);
  begun.change.beginAttempt({
    revision,
    respond: "contextOf" in request ? null : (payment, is_paid) => {
      const after = afterAttempt(checkout, payment.id, is_paid, context.at_ms);
      return { status: 200, body: JSON.stringify({ ...after, payment }) };
    },
  });
  const page = deps.checkout_urls?.checkout_url;
  if (context.livemode && page) begun.operation.request.return_url = `${page}/`;
  await cancelAbandoned(deps, request, stored, "pay");
  const { authenticate: authentication } = body;
  return {
    ...begun,
    test: begun.test && { ...begun.test, ...(authentication && { authentication }) },
  };
}

/**
 * Cancels an attempt that its payer has left. Throws `invalid_state` unless nobody can pay it any
 * more: it was paid meanwhile, or its provider has not confirmed the cancel.
 */
async function cancelAbandoned(
  { operations }: Deps,
  request: ServiceRequest | PayerRequest,
  stored: StoredCheckout,
  action: string,
): Promise<void> {
  const id = abandonedAttempt(stored);
  if (id === null) return;
  const own = contextOf(request, stored, `cancel of ${id}`);
  const context = { ...own, idempotency_key: null };
  const unkeyed = { ...request, context, idempotency: null };
  let status: PaymentStatus | undefined;
  try {
    const { response } = await operations.change<Payment>(
      unkeyed,
      "payments",
      id,
      (payment) => cancelOf(payment, context),
    );
    const { error, ...left } = JSON.parse(response.body);
    status = error ? error.current_status : left.status;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.code === "invalid_state") status = error.details["current_status"] as PaymentStatus;
    else if (error.code !== "idempotency_in_progress") throw error;
  }
  if (!status || STATUSES[status].result !== "unpaid") throw underWay(action);
}

/** Returns the context of a step of an attempt. */
function contextOf(
  request: ServiceRequest | PayerRequest,
  stored: StoredCheckout,
  label: string,
): RequestContext {
  return "contextOf" in request ? request.contextOf(label, stored as OwnCheckout) : request.context;
}

/** Reads a loaded checkout. That of a payer is an `OwnCheckout`. */
export function readCheckout(
  { body, detail }: Extract<Loaded, { outcome: "found" }>,
): StoredCheckout {
  return { checkout: JSON.parse(body), ...JSON.parse(detail!) };
}
