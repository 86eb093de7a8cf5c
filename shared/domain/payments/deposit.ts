/**
 * The steps of a payment that the payer sends to an address of its own (contract §2, payments by
 * stablecoin). Each step adds its events and ledger movements to a change. `amount_received` is not
 * null for these payments and for no others. Pure.
 */

import { createHash } from "node:crypto";
import { formatTime } from "../../core/clock.ts";
import { isStablecoin, type Stablecoin } from "../../core/currency.ts";
import { ApiError, invalidParameter } from "../../core/errors.ts";
import {
  ETHEREUM_CHAIN_ID,
  ETHEREUM_CONTRACTS,
  tokenTransferUri,
} from "../../core/token_contract.ts";
import { isValidAddress, withChecksumCase } from "../../core/wallet_address.ts";
import type { NextAction, Payment, PaymentStatus } from "../../schema/payment.ts";
import type { CreateRefundBody } from "../../schema/refund.ts";
import type { PaymentChange } from "../changes/change_builder.ts";
import { isDeposit, missingAmount } from "./lifecycle.ts";
import { cancel, complete, fail } from "./settlement.ts";

/** Time in which the payer can send the money of a sandbox payment (contract §2). */
const DEPOSIT_WINDOW_MS = 3_600_000;

/**
 * Returns the members of a new sandbox payment that the payer sends to an address. Returns null if
 * the currency is not a stablecoin, because there is no exchange rate.
 */
export function depositMembers(
  { id, amount_minor, currency }: Pick<Payment, "id" | "amount_minor" | "currency">,
  at_ms: number,
): Pick<Payment, "amount_received" | "next_action"> | null {
  if (!isStablecoin(currency)) return null;
  const expires_at = formatTime(at_ms + DEPOSIT_WINDOW_MS);
  return { amount_received: 0, next_action: sendAction(id, currency, amount_minor, expires_at) };
}

/** Records the call that ends the payment when its time is over. */
export function addExpiry(change: PaymentChange): void {
  change.addCall({ op: "abandon", delay_ms: DEPOSIT_WINDOW_MS });
}

function sendAction(
  payment_id: string,
  asset: Stablecoin,
  amount_minor: number,
  expires_at: string,
): NextAction {
  const contract = ETHEREUM_CONTRACTS[asset];
  const address = sandboxAddress(payment_id);
  const transfer = { contract, chain_id: ETHEREUM_CHAIN_ID, address, amount_minor };
  const uri = tokenTransferUri(transfer);
  const type = "send_stablecoin";
  return { type, network: "ethereum", asset, contract, address, amount_minor, expires_at, uri };
}

/**
 * Makes the address of a sandbox payment from a hash of its id. Nobody has a private key for it, so
 * tokens that are sent to it by mistake are lost, as with any burn address.
 */
function sandboxAddress(payment_id: string): string {
  const hash = createHash("sha256").update(`sandbox deposit ${payment_id}`).digest("hex");
  return `0x${withChecksumCase(hash.slice(0, 40))}`;
}

/**
 * Advances an open deposit to a status of `advancesOf`, or `processing` again.
 * @param sent the amount that the payer sends now; undefined: the missing amount
 */
export function advanceDeposit(
  change: PaymentChange,
  to: PaymentStatus,
  sent: number | undefined,
): void {
  switch (to) {
    case "processing":
      return receive(change, sent ?? missingAmount(depositOf(change)));
    case "completed":
      return finalize(change, sent);
    case "pending":
      return undo(change);
    case "failed":
      if (sent !== undefined) receive(change, checkedPart(change, sent));
      return expire(change);
    case "cancelled":
      return cancel(change);
    default:
      throw new Error(`no deposit can be moved to ${to}`);
  }
}

/** Adds money that a block shows and that the chain can still undo. */
function receive(change: PaymentChange, amount_minor: number): void {
  const amount_received = depositOf(change).amount_received + amount_minor;
  if (!Number.isSafeInteger(amount_received)) throw tooMuch();
  change.addEvent("payment.processing", { status: "processing", amount_received });
}

/** Makes the received money final. The part above the amount of the payment is unapplied. */
function finalize(change: PaymentChange, sent: number | undefined): void {
  const missing = missingAmount(depositOf(change));
  if (sent !== undefined && sent < missing) {
    throw invalidParameter(
      "amount_received",
      `A payment completes with its whole amount: send at least the missing ${missing}, or advance ` +
        'to "processing"',
    );
  }
  const more = sent ?? missing;
  if (more > 0) receive(change, more);
  const { amount_minor, amount_received } = depositOf(change);
  if (amount_received > amount_minor) change.move("unmatched", amount_received - amount_minor);
  complete(change);
}

/** Takes back the received money: the chain has dropped its blocks. */
function undo(change: PaymentChange): void {
  change.addEvent("payment.pending", { status: "pending", amount_received: 0 });
}

/** Fails the payment whose time is over. Money that has arrived is booked as unapplied. */
export function expire(change: PaymentChange): void {
  const { amount_received } = depositOf(change);
  if (amount_received > 0) change.move("unmatched", amount_received);
  fail(change, amount_received > 0 ? "underpaid" : "expired", null);
}

function checkedPart(change: PaymentChange, sent: number): number {
  const missing = missingAmount(depositOf(change));
  if (sent < missing) return sent;
  throw invalidParameter(
    "amount_received",
    `A payment fails as underpaid below its amount: send less than the missing ${missing}`,
  );
}

function depositOf({ subject }: PaymentChange): Payment & { amount_received: number } {
  if (!isDeposit(subject)) throw new Error(`${subject.id} has no address`);
  return subject;
}

function tooMuch(): ApiError {
  return invalidParameter("amount_received", "The sum of the received amounts is too large");
}

/**
 * Checks the wallet of a refund. Throws `invalid_parameter` if a payment that was sent to an
 * address has none, if it is not an address of the network, or if the payment is not by stablecoin.
 */
export function checkRefundDestination(
  payment: Payment,
  { destination }: Pick<CreateRefundBody, "destination">,
): void {
  if (!destination) {
    if (!isDeposit(payment)) return;
    throw invalidParameter(
      "destination",
      'A payment that was sent to an address needs a "destination": ask the payer for a wallet ' +
        "address, because the sender can be an exchange",
    );
  }
  if (payment.method_kind !== "stablecoin") {
    throw invalidParameter(
      "destination",
      '"destination" is only for payments by stablecoin: leave it out',
    );
  }
  const { method } = payment;
  const network = method?.type === "stablecoin" ? method.wallet.network : "ethereum";
  const { address } = destination;
  if (isValidAddress(network, address) && !/^0x0{40}$/i.test(address)) return;
  throw invalidParameter(
    "destination.address",
    `This is not a wallet address on ${network}: check each character`,
  );
}
