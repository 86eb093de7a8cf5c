/**
 * The simulated provider of the sandbox (contract §2). Its reply is a pure function of
 * the operation, so the same request always has the same result, on any machine and at any time. It
 * says what happens to the money; which status follows is decided as with a live provider.
 */

import { createHash } from "node:crypto";
import { canonicalJson } from "../core/canonical_json.ts";
import type { Stablecoin } from "../core/currency.ts";
import type { RandomSource } from "../core/ids.ts";
import type { Network } from "../core/wallet_address.ts";
import type { Dispute } from "../schema/dispute.ts";
import type { DisputeReason } from "../schema/statuses.ts";
import type { AuthenticationResult } from "../schema/payment_body.ts";
import type { Payment } from "../schema/payment.ts";
import type { Transfer } from "../schema/transfer.ts";
import type { MatchedFault } from "./fault_store.ts";
import { CAPTURE_WINDOW_MS } from "../domain/payments/payment_steps.ts";
import { collectionOf } from "../domain/payments/collection.ts";
import { isDeposit, settlesAtOnce } from "../domain/payments/lifecycle.ts";
import type {
  ProviderEvent,
  ProviderEventState,
  ProviderReply,
} from "../domain/providers/connector.ts";
import {
  type Begun,
  eventOf as eventAbout,
  type Operation,
  type TestValues,
} from "../domain/providers/operation.ts";
import { railOf, RAILS } from "../domain/rails.ts";
import {
  OF_COLLECTIONS,
  OUTCOME_RESULTS,
  SAVED_RESULTS,
  type SimulatedResult,
  TEST_RESULTS,
  testCardOf,
} from "../domain/providers/test_values.ts";
import { challengeUrl, newChallengeToken, type PayerUrls } from "./challenge_url.ts";
import { instructionsFor } from "./payment_instructions.ts";

/**
 * Time after which an operation with a late response, and one whose response is lost, has its
 * result.
 */
const LATE_RESPONSE_MS = 2_000;
const LOST_RESPONSE_MS = 60_000;
/** Time in which a dispute takes evidence, and after which it is lost (contract §3). */
const EVIDENCE_WINDOW_MS = 7 * 24 * 3_600_000;
/** Time after which a collection is returned whose payer did not want it. */
const LATE_RETURN_MS = 20 * 24 * 3_600_000;
/** Texts of evidence that decide a dispute at once. */
const DECISIVE: ReadonlyMap<string, "dispute_won" | "dispute_lost"> = new Map([
  ["winning_evidence", "dispute_won"],
  ["losing_evidence", "dispute_lost"],
]);

/** How a payment or transfer fails on its rail. */
export type RailFailure = Pick<ProviderEvent, "failure_code" | "return_code">;

/** The result of an operation that has none of its own: an advance decides. */
const WAITING: ProviderReply = { waiting: "an advance" };

type ProviderFault = MatchedFault<"provider">;

/** What the page of the payer's bank needs. */
export interface PayerPage {
  random: RandomSource;
  urls: PayerUrls;
}

/** Replies to an operation within its request. The result about its payee comes first. */
export function replyAtOnce(
  begun: Begun,
  fault: ProviderFault | null,
  at_ms: number,
  page: PayerPage,
): ProviderReply {
  const { operation, payee_check } = begun;
  const reply = resultAtOnce(begun, fault, at_ms, page);
  if (payee_check === null) return reply;
  const check = eventOf(operation, "succeeded", { op: "payee_check", bank: { payee_check } });
  if ("provider_events" in reply) return { provider_events: [check, ...reply.provider_events] };
  return "waiting" in reply ? { provider_events: [check] } : reply;
}

function resultAtOnce(
  { operation, test }: Begun,
  fault: ProviderFault | null,
  at_ms: number,
  page: PayerPage,
): ProviderReply {
  const { op, subject } = operation;
  const simulated = test === null ? null : simulate(test, subject);
  const due_ms = dueIn(operation, at_ms);
  if (fault) return faultyReply(operation, fault, simulated, test?.is_manual ?? false, due_ms);
  if (simulated === null) {
    return op === "refund" && (subject as Payment).settlement === "manual"
      ? WAITING
      : laterReply(operation);
  }
  if (due_ms > 0 && !test?.outcome && !test?.is_manual) {
    return unknown("in_progress", due_ms, simulated);
  }
  switch (simulated.result) {
    case "pending": {
      const is_sent = op === "authorize" && test?.behaviour === null && test.outcome === null;
      const event = is_sent ? instructionsEvent(operation, at_ms) : null;
      return event ? { provider_events: [event] } : WAITING;
    }
    case "processing":
      if (test?.is_manual) return { provider_events: [eventOf(operation, "pending")] };
      return unknown("in_progress", LATE_RESPONSE_MS);
    case "requires_action": {
      const challenge = challengeEvent(operation, page);
      const result = test?.authentication;
      return {
        provider_events: result === undefined
          ? [challenge]
          : [challenge, authenticationEvent(operation, subject as Payment, result)],
      };
    }
    default:
      return { provider_events: resultEvents(operation, simulated) };
  }
}

/** Returns the time until the due date of a new collection, which begins at 0:00 UTC; else 0. */
function dueIn({ op, subject }: Operation, at_ms: number): number {
  if (op !== "authorize" || subject.object !== "payment") return 0;
  const { due_on } = collectionOf(subject);
  return due_on === null ? 0 : Date.parse(due_on) - at_ms;
}

/** Replies to an operation that comes later: its result, or the end of a time that nobody used. */
export function laterReply(operation: Operation): ProviderReply {
  const { op, subject, request, dispute } = operation;
  const simulated = request.simulated as SimulatedResult | undefined;
  if (dispute) return { provider_events: [disputeEvent(operation, dispute)] };
  switch (op) {
    case "expire":
      return { provider_events: [eventOf(operation, "cancelled", { op: "cancel" })] };
    case "abandon":
      return { provider_events: endOfTime(operation, subject as Payment) };
    case "cancel":
      return { provider_events: [eventOf(operation, "cancelled")] };
    case "return":
      return {
        provider_events: [
          eventOf(operation, "returned", {
            op: "authorize",
            ...{ failure_code: "bank_return", return_code: TEST_RESULTS.return_later.return_code },
          }),
        ],
      };
    case "authorize":
    case "transfer":
    case "capture":
      return { provider_events: resultEvents(operation, simulated ?? { result: "completed" }) };
    default:
      return { provider_events: [eventOf(operation, "succeeded")] };
  }
}

function simulate(
  { outcome, is_manual, usage, ...test }: TestValues,
  subject: Payment | Transfer,
): SimulatedResult {
  if (outcome) return OUTCOME_RESULTS[outcome];
  const is_collected = subject.object === "payment" && collectionOf(subject).due_on !== null;
  const behaviour = OF_COLLECTIONS.has(test.behaviour) && !is_collected
    ? "approve"
    : test.behaviour;
  if (subject.object === "transfer") {
    if (is_manual) return { result: "pending" };
    const response = TEST_RESULTS[behaviour ?? "approve"];
    return response.result === "failed" ? response : { result: "completed" };
  }
  const saved = behaviour && usage && SAVED_RESULTS[behaviour]?.[usage];
  if (saved) return saved;
  // There is no money that could come back.
  const comes_back = behaviour === "dispute" || behaviour === "bank_return";
  if (comes_back && subject.amount_minor === 0) return { result: "completed" };
  if (!behaviour || is_manual && RAILS[subject.method_kind].takes_time) {
    return { result: "pending" };
  }
  return TEST_RESULTS[behaviour] as SimulatedResult;
}

function resultEvents(
  operation: Operation,
  result: SimulatedResult,
): [ProviderEvent, ...ProviderEvent[]] {
  const { op, subject } = operation;
  switch (result.result) {
    case "declined":
      return [eventOf(operation, "declined", { decline_code: result.code })];
    case "failed": {
      const { code: failure_code, return_code } = result;
      return [eventOf(operation, "failed", { failure_code, ...(return_code && { return_code }) })];
    }
  }
  if (subject.object === "transfer") {
    return [eventOf(operation, "succeeded", hashOf(subject))];
  }
  if (op === "authorize" && subject.capture === "manual") {
    return [authorizedEvent(operation)];
  }
  const money = eventOf(operation, "succeeded", hashOf(subject));
  const { amount_minor } = money;
  if (result.result === "refunded") {
    return [money, eventOf(operation, "succeeded", { op: "refund", amount_minor })];
  }
  if (result.result === "returned") {
    return [{ ...money, later: { op: "return", delay_ms: LATE_RETURN_MS } }];
  }
  if (result.result === "chargeback") {
    return [money, disputedEvent(operation, amount_minor, result.reason)];
  }
  const reason = testDispute(operation);
  if (reason === undefined) return [money];
  return [money, disputedEvent(operation, amount_minor, reason)];
}

/** The event of the result of 3-D Secure. */
export function authenticationEvent(
  operation: Operation,
  { capture }: Payment,
  result: AuthenticationResult,
): ProviderEvent {
  if (result === "failure") {
    return eventOf(operation, "declined", { decline_code: "authentication_failed" });
  }
  return capture === "manual" ? authorizedEvent(operation) : eventOf(operation, "succeeded");
}

function testDispute({ op, subject }: Operation): DisputeReason | undefined {
  const method = op === "capture" ? (subject as Payment).method : null;
  const is_disputed = method && "card" in method &&
    testCardOf(method.card)?.behaviour === "dispute";
  return is_disputed ? "fraudulent" : undefined;
}

function faultyReply(
  operation: Operation,
  { fault }: ProviderFault,
  simulated: SimulatedResult | null,
  is_manual: boolean,
  due_ms: number,
): ProviderReply {
  const { op, subject } = operation;
  const is_new = op === "authorize" || op === "transfer";
  if (fault === "timeout") {
    if (op === "authorize" && is_manual) {
      return { provider_events: [eventOf(operation, "pending")] };
    }
    return unknown("timeout", Math.max(LOST_RESPONSE_MS, due_ms), simulated);
  }
  if (fault === "declined" && op === "authorize") {
    return {
      provider_events: [eventOf(operation, "declined", { decline_code: "payment_declined" })],
    };
  }
  if (fault === "failed" && is_new) {
    return { provider_events: [eventOf(operation, "failed", railFailure(subject))] };
  }
  if (fault === "failed" && op === "refund") {
    return { provider_events: [eventOf(operation, "failed")] };
  }
  return { refused: "provider_refused", message: REFUSED };
}

const REFUSED = "The provider refused the payment";

/**
 * Makes the reply of a response that is late or lost. The later one is success, unless the result
 * of the instrument ends the payment in another way.
 */
function unknown(
  reason: "in_progress" | "timeout",
  after_ms: number,
  result: SimulatedResult | null = null,
): ProviderReply {
  const is_success = result === null ||
    ["completed", "pending", "processing", "requires_action"].includes(result.result);
  return {
    unknown: reason,
    may_repeat: true,
    after_ms,
    ...(!is_success && { simulated: result }),
  };
}

/** Makes the event that the amount is held on the card. The hold ends by itself. */
export function authorizedEvent(operation: Operation): ProviderEvent {
  return eventOf(operation, "authorized", {
    later: { op: "expire", delay_ms: CAPTURE_WINDOW_MS },
  });
}

/**
 * Makes the event that the payer has to authenticate, on the page for payers. The token of this
 * step is the provider's reference of the payment. Where the page is not hosted, the URL is that of
 * the operation that authenticates.
 */
export function challengeEvent(operation: Operation, { random, urls }: PayerPage): ProviderEvent {
  const { base_url, checkout_url } = urls;
  const token = checkout_url === null ? null : newChallengeToken(random);
  const url = token === null
    ? `${base_url}/api-v1-sandbox/payments/${operation.subject.id}/authenticate`
    : challengeUrl(checkout_url!, token);
  return eventOf(operation, "requires_action", {
    next_action: { type: "authenticate", url },
    provider_reference: token,
  });
}

/** Makes the event that the payer disputes an amount. The dispute ends by itself. */
export function disputedEvent(
  operation: Operation,
  amount_minor: number,
  reason: DisputeReason = "general",
): ProviderEvent {
  return eventOf(operation, "disputed", {
    op: "dispute",
    amount_minor,
    dispute: { reason, evidence_due_by: null },
    later: { op: "dispute_expire", delay_ms: EVIDENCE_WINDOW_MS },
  });
}

function disputeEvent(operation: Operation, present: Dispute): ProviderEvent {
  const { amount_minor } = present;
  if (operation.op !== "dispute_evidence") {
    return eventOf(operation, "dispute_lost", {
      op: "dispute",
      reference: `${present.id}:lost`,
      object_id: present.id,
      amount_minor,
    });
  }
  const { text, submit } = operation.request.dispute!;
  const evidence = { text: text ?? "", is_submitted: submit };
  const dispute = { reason: present.reason, evidence_due_by: present.evidence_due_by, evidence };
  const end = submit ? DECISIVE.get(evidence.text.trim()) : undefined;
  return end
    ? eventOf(operation, end, { op: "dispute", amount_minor, dispute })
    : eventOf(operation, "succeeded", { amount_minor, dispute });
}

/** Makes the events of a payment whose payer has done nothing, or has not sent the whole amount. */
function endOfTime(operation: Operation, payment: Payment): [ProviderEvent, ...ProviderEvent[]] {
  const expired = eventOf(operation, "failed", { failure_code: "expired" });
  const [final] = isDeposit(payment) ? finalEvents(operation, payment) : [];
  return final ? [final, expired] : [expired];
}

/** Makes the event that the money which a chain shows, if there is some, is final. */
export function finalEvents(operation: Operation, payment: Payment): ProviderEvent[] {
  const { amount_received } = payment;
  if (!amount_received || settlesAtOnce(payment)) return [];
  return [
    eventOf(operation, "succeeded", {
      op: "authorize",
      amount_minor: amount_received,
      is_counted: true,
    }),
  ];
}

/** Makes the event with the payment instructions for the payer. Null: there are none. */
function instructionsEvent(operation: Operation, at_ms: number): ProviderEvent | null {
  const instructions = instructionsFor(operation.subject as Payment, at_ms);
  if (instructions === null) return null;
  const { next_action, delay_ms } = instructions;
  return eventOf(operation, "pending", { next_action, later: { op: "abandon", delay_ms } });
}

/** Returns the failure of a payment or transfer on its rail, for advances and declared faults. */
export function railFailure(subject: Payment | Transfer): RailFailure {
  const { fails_with: failure_code, returns: return_code } = railOf(subject);
  return { failure_code, ...(return_code !== null && { return_code }) };
}

/** Makes an event of the simulated provider about an operation. */
export function eventOf(
  operation: Operation,
  state: ProviderEventState,
  more: Partial<ProviderEvent> = {},
): ProviderEvent {
  return eventAbout(operation, state, { account_id: "sandbox", ...more });
}

/** Returns the transaction of money from or to a wallet, as a member of an event. */
export function hashOf(subject: Payment | Transfer): Pick<ProviderEvent, "chain"> {
  const { amount_minor, currency } = subject;
  const method = subject.object === "payment" ? subject.method : subject.destination;
  const wallet = method && "wallet" in method ? method.wallet : null;
  return wallet ? { chain: { tx_hash: transactionHash(amount_minor, currency, wallet) } } : {};
}

/** Makes a transaction hash (`0x` and 32 bytes in hex) from amount, currency and wallet. */
export function transactionHash(amount_minor: number, currency: string, wallet: {
  address: string;
  network: Network;
  asset: Stablecoin;
}): string {
  const { address, network, asset } = wallet;
  const paid = canonicalJson({
    amount_minor,
    currency,
    address: address.toLowerCase(),
    network,
    asset,
  });
  return "0x" + createHash("sha256").update(paid).digest("hex");
}
