/** An account, operations and objects of Stripe for the tests of its connector. */

import { stripeConnector } from "../../../shared/connectors/stripe/stripe_connector.ts";
import type {
  Operation,
  ProviderAccount,
  ProviderReply,
} from "../../../shared/domain/providers/connector.ts";
import type { Dispute } from "../../../shared/schema/dispute.ts";
import type { Payment } from "../../../shared/schema/payment.ts";
import type { Refund } from "../../../shared/schema/refund.ts";
import { paymentWith, SHOWN_FIELDS } from "../domain/decided_change.ts";
import { startFaultServer, type Step } from "./fault_server.ts";

const SUFFIX = "0".repeat(26);
export const PAYMENT_ID = `pay_${SUFFIX}`;
export const REFUND_ID = `re_${SUFFIX}`;
const DISPUTE_ID = `dp_${"5".repeat(26)}`;
export const OPERATION_ID = `pc_${SUFFIX}`;
export const SECRET = "sk_test_0123456789";
export const NOTIFICATION_SECRET = "whsec_0123456789";
/** The time of all operations, and of the objects that follow. */
export const NOW_MS = Date.parse("2026-11-20T12:00:00Z");
export const NOW = NOW_MS / 1000;

/** Members of an object of Stripe, or of a response. */
export type Members = Record<string, unknown>;

/** An account with a test key. */
export function account(more: Partial<ProviderAccount> = {}): ProviderAccount {
  return {
    id: "pac_1",
    environment_id: "env_1",
    connector: "stripe",
    settings: {},
    secret: SECRET,
    notification_secrets: [NOTIFICATION_SECRET],
    ...more,
  };
}

/** The state of an operation in its first attempt, which began at `NOW`. */
export const FIRST_ATTEMPT = {
  state: "pending",
  attempts: 1,
  created_at: new Date(NOW_MS).toISOString(),
  first_sent_at: null,
  may_repeat: true,
  request_id: "req_1",
  traceparent: null,
  decline_is_error: false,
  due_at: null,
  settings: null,
  reserved: null,
} as const;

/** An authorization of 10.99 EUR, reserved at `NOW`. `terms` are terms of its payment. */
export function operation(more: Partial<Operation> = {}, terms: Partial<Payment> = {}): Operation {
  return {
    id: OPERATION_ID,
    environment_id: "env_1",
    op: "authorize",
    subject_id: PAYMENT_ID,
    // A payment with every field: a test of a request notices each one that Stripe gets.
    subject: paymentWith({
      ...SHOWN_FIELDS,
      id: PAYMENT_ID,
      amount: 1099,
      amount_minor: 1099,
      currency: "EUR",
      capture: "automatic",
      return_url: "https://shop.example/back",
      ...terms,
    }),
    refund_id: null,
    refund: null,
    dispute: null,
    amount_minor: 1099,
    currency: "EUR",
    request: { token: "pm_card_visa" },
    provider_reference: null,
    ...FIRST_ATTEMPT,
    ...more,
  };
}

/** An operation that changes the payment `pi_1`. `terms` are terms of its payment. */
export function laterOperation(
  op: "capture" | "cancel" | "refund" | "abandon",
  amount_minor = 1099,
  terms: Partial<Payment> = {},
): Operation {
  const refund = op === "refund" ? { id: REFUND_ID } as Refund : null;
  const request = { token: null };
  return operation({ op, amount_minor, refund, request, provider_reference: "pi_1" }, terms);
}

/** An authorization that saves its card for the customer `u1`. An amount of 0 saves it alone. */
export function saving(amount_minor = 1099, customer: string | null = "cus_1"): Operation {
  const save = { usage: "off_session", customer_id: "u1" } as const;
  const request = { token: "pm_card_visa", save };
  return operation({ request, amount_minor, reserved: { customer } }, { amount_minor });
}

/** A payment by the card `pm_1`, which is saved. */
export function charging(terms: Partial<Payment>): Operation {
  const instrument = { account: "pac_1", customer: "cus_1" };
  return operation({ request: { token: "pm_1", instrument } }, terms);
}

/** The removal of the card `pm_1`. */
export const detaching = operation({
  op: "detach",
  amount_minor: 0,
  request: { token: "pm_1" },
  provider_reference: null,
});

/** An operation about the dispute `du_1`. A text of null accepts it. */
export function disputeOperation(text: string | null, submit = true): Operation {
  const dispute = { id: DISPUTE_ID, reference: "du_1", text, submit };
  return operation({
    op: text === null ? "dispute_accept" : "dispute_evidence",
    dispute: { id: DISPUTE_ID } as Dispute,
    request: { token: null, dispute },
    provider_reference: "pi_1",
  });
}

const METADATA = { payment: PAYMENT_ID, call: OPERATION_ID, environment: "env_1" };

/** A movement of the balance. */
export function movement(more: Members = {}) {
  return {
    id: "txn_1",
    object: "balance_transaction",
    amount: 1099,
    created: NOW + 2,
    currency: "eur",
    fee: 41,
    net: 1058,
    source: "ch_1",
    type: "charge",
    ...more,
  };
}

/** A charge with its movement expanded. */
export function charge(more: Members = {}) {
  return {
    id: "ch_1",
    object: "charge",
    balance_transaction: movement() as unknown,
    created: NOW + 1,
    livemode: false,
    metadata: METADATA,
    outcome: { type: "authorized" },
    payment_intent: "pi_1",
    ...more,
  };
}

/** A payment that has succeeded, with its charge expanded. */
export function intent(more: Members = {}) {
  return {
    id: "pi_1",
    object: "payment_intent",
    amount: 1099,
    amount_capturable: 0,
    amount_received: 1099,
    capture_method: "automatic",
    created: NOW,
    canceled_at: null,
    currency: "eur",
    last_payment_error: null,
    latest_charge: charge() as unknown,
    livemode: false,
    metadata: METADATA as Members,
    next_action: null,
    status: "succeeded",
    ...more,
  };
}

/** A payment that an issuer has declined. */
export function declinedIntent(decline_code: string, code = "card_declined") {
  const latest_charge = charge({ balance_transaction: null });
  const last_payment_error = { type: "card_error", code, decline_code };
  const status = "requires_payment_method";
  return intent({ status, amount_received: 0, latest_charge, last_payment_error });
}

/** The body of the response to a declined create. */
export function declinedResponse(decline_code: string, code = "card_declined") {
  const payment_intent = declinedIntent(decline_code, code);
  const message = "Your card was declined.";
  return { error: { type: "card_error", code, decline_code, message, payment_intent } };
}

/** A saved card. */
export function keptCard(more: Members = {}) {
  const card = { brand: "visa", last4: "4242", exp_month: 12, exp_year: 2034 };
  return {
    id: "pm_1",
    object: "payment_method",
    card,
    customer: "cus_1",
    livemode: false,
    ...more,
  };
}

/** A card that is saved without a charge. */
export function setup(more: Members = {}) {
  return {
    id: "seti_1",
    object: "setup_intent",
    cancellation_reason: null,
    created: NOW,
    customer: "cus_1",
    last_setup_error: null,
    livemode: false,
    metadata: { ...METADATA, currency: "eur" } as Members,
    next_action: null,
    payment_method: keptCard() as unknown,
    status: "succeeded",
    ...more,
  };
}

/** A refund that has succeeded. */
export function refund(more: Members = {}) {
  return {
    id: "re_1",
    object: "refund",
    amount: 300,
    balance_transaction: movement({ id: "txn_2", amount: -300, fee: 0, net: -300 }),
    created: NOW,
    currency: "eur",
    metadata: { ...METADATA, refund: REFUND_ID } as Members,
    payment_intent: "pi_1",
    status: "succeeded",
    ...more,
  };
}

/** A dispute of the whole payment. `moves` are the signed amounts and fees of its movements. */
export function dispute(status: string, ...moves: [amount: number, fee: number][]) {
  return {
    id: "du_1",
    object: "dispute",
    amount: 1099,
    balance_transactions: moves.map(([amount, fee], index) =>
      movement({ id: `txn_${index}`, amount, fee, created: NOW + 60 * (index + 1) })
    ),
    charge: "ch_1",
    created: NOW,
    currency: "eur",
    livemode: false,
    payment_intent: "pi_1",
    reason: "fraudulent",
    status,
  };
}

/** A payout to the merchant's bank account. */
export function payout(status: string, more: Members = {}) {
  return {
    id: "po_1",
    object: "payout",
    amount: 5000,
    created: NOW,
    currency: "eur",
    livemode: false,
    status,
    ...more,
  };
}

/** An event one minute later. */
export function event(type: string, object: Members, more: Members = {}) {
  return {
    id: "evt_1",
    object: "event",
    api_version: "2026-10-28.endive",
    created: NOW + 60,
    data: { object },
    livemode: false,
    type,
    ...more,
  };
}

/** A page of a list. */
export function page(data: Members[], has_more = false) {
  return { object: "list", url: "/v1/list", data, has_more };
}

/** A deadline that no test meets. */
export const patient = () => AbortSignal.timeout(30_000);

/** Sends an operation to a server with these steps. */
export const sent = (operation: Operation, ...steps: Step[]) => asked("send", operation, steps);

/** Syncs an operation at a server with these steps. */
export const synced = (operation: Operation, ...steps: Step[]) => asked("sync", operation, steps);

/** `shown` is the reply, or the references of its provider events. */
async function asked(method: "send" | "sync", operation: Operation, steps: Step[]) {
  await using server = await startFaultServer(...steps);
  const to = account({ settings: { base_url: server.base_url } });
  const reply = await stripeConnector().charges[method](to, operation, patient());
  return { reply, shown: references(reply), received: server.received };
}

/** Returns the references of the provider events of a reply, or another reply as it is. */
export function references(reply: ProviderReply) {
  return "provider_events" in reply
    ? reply.provider_events.map(({ reference }) => reference)
    : reply;
}
