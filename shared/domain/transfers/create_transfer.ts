/**
 * Decides transfers: money out of the available balance (contract §3). The database compares the
 * amount with the balance at the commit. Pure.
 */

import { formatTime } from "../../core/clock.ts";
import { invalidParameter } from "../../core/errors.ts";
import type { FailureCode, MethodKind } from "../../schema/payment.ts";
import type { CreateTransferBody, Transfer, TransferDestination } from "../../schema/transfer.ts";
import { amountOf } from "../../schema/values.ts";
import type { Change } from "../../store/commit_rows.ts";
import type { RequestContext } from "../changes/event.ts";
import { checkCurrency, type Instrument, readIban, readWallet } from "../providers/instrument.ts";
import { invalidTransferState, transferAdvances } from "../payments/lifecycle.ts";
import { ChangeBuilder, methodOf, type TransferChange } from "../changes/change_builder.ts";
import { countFault, lostCall, type ProviderFault } from "../providers/provider_fault.ts";
import {
  authorizeTransfer,
  RAIL_FAILURES,
  transactionHash,
} from "../providers/sandbox_provider.ts";
import { FAILURES } from "../payments/settlement.ts";

/**
 * Decides the creation of a transfer. Throws `ApiError` if the request is refused.
 * @param fault the declared fault of the provider; null: none
 */
export function decideTransfer(
  body: CreateTransferBody,
  context: RequestContext,
  fault: ProviderFault | null = null,
): Change {
  const instrument = readDestination(body);
  const amount_minor = amountOf(body)!;
  const settled = authorizeTransfer({
    amount_minor,
    currency: body.currency,
    instrument,
    manual: body.settlement === "manual",
  });
  const change = beginTransfer(body, context, instrument);
  if (fault) {
    failAsDeclared(change, fault, settled);
    return countFault(fault, change.finish({ status: 201, body: change.body }));
  }
  if (settled.result === "completed") complete(change);
  if (settled.result === "failed") fail(change, settled.code, settled.return_code ?? null);
  return change.finish({ status: 201, body: change.body });
}

/** Returns the kind of the rail of a new transfer. Throws `ApiError` if the request is refused. */
export function kindOfTransfer(body: CreateTransferBody): MethodKind {
  return readDestination(body).kind;
}

/** Applies a declared fault of the provider, as with a live provider (ADR 0023). */
function failAsDeclared(
  change: TransferChange,
  { fault }: ProviderFault,
  settled: ReturnType<typeof authorizeTransfer>,
): void {
  if (fault === "timeout") {
    change.addCall({ op: "transfer", ...lostCall(settled) });
  } else if (fault === "declined") {
    fail(change, "provider_refused", null);
  } else {
    const { code, return_code } = RAIL_FAILURES[methodOf(change.subject)];
    fail(change, code, return_code);
  }
}

/** Begins a transfer: it holds its amount until it completes or fails. */
export function beginTransfer(
  body: CreateTransferBody,
  context: RequestContext,
  instrument = readDestination(body),
): TransferChange {
  if (context.livemode && body.settlement !== undefined) {
    throw invalidParameter("settlement", '"settlement" is for test keys only: leave it out');
  }
  const transfer = newTransfer(body, amountOf(body)!, instrument, context);
  const change = new ChangeBuilder(transfer, context);
  change.move("transfer", transfer.amount_minor);
  change.addEvent("transfer.created");
  return change;
}

/** Decides a cancel. Throws `invalid_state` unless the transfer is pending. */
export function decideCancelTransfer(transfer: Transfer, context: RequestContext): Change {
  if (transfer.status !== "pending") throw invalidTransferState("cancel", transfer);
  const change = new ChangeBuilder(transfer, context);
  change.move("transfer_reversed", transfer.amount_minor);
  change.addEvent("transfer.cancelled", { status: "cancelled", cancelled_at: change.at });
  return change.finish({ status: 200, body: change.body });
}

/** Decides an advance to the status `to`. Returns null if the transfer has it already. */
export function decideAdvanceTransfer(
  transfer: Transfer,
  to: Transfer["status"],
  context: RequestContext,
): Change | null {
  if (to === transfer.status) return null;
  if (!transferAdvances(transfer).includes(to)) {
    throw invalidTransferState(`advance to "${to}"`, transfer);
  }
  if (to === "cancelled") return decideCancelTransfer(transfer, context);
  const change = new ChangeBuilder(transfer, context);
  if (to === "completed") complete(change);
  else if (transfer.destination.type === "iban") fail(change, "bank_return", "R01");
  else fail(change, "onchain_reverted", null);
  return change.finish({ status: 200, body: change.body });
}

/**
 * Completes the transfer: the money has left.
 * @param tx_hash of a transfer to a wallet; by default the simulated one of the sandbox
 */
export function complete(change: TransferChange, tx_hash?: string): void {
  const { amount_minor, currency, destination } = change.subject;
  change.move("transfer_completed", amount_minor);
  change.addEvent("transfer.completed", {
    status: "completed",
    completed_at: change.at,
    ...(destination.type === "wallet" && {
      destination: {
        ...destination,
        wallet: {
          ...destination.wallet,
          tx_hash: tx_hash ?? transactionHash(amount_minor, currency, destination.wallet),
        },
      },
    }),
  });
}

/** Makes the transfer fail, and moves the money back to the available balance. */
export function fail(change: TransferChange, code: FailureCode, return_code: string | null): void {
  change.move("transfer_reversed", change.subject.amount_minor);
  change.addEvent("transfer.failed", {
    status: "failed",
    failure_code: code,
    failure_message: FAILURES[code],
    return_code,
  });
}

function newTransfer(
  body: CreateTransferBody,
  amount_minor: number,
  instrument: Instrument,
  context: RequestContext,
): Transfer {
  const at = formatTime(context.at_ms);
  return {
    id: context.mint("tr_"),
    object: "transfer",
    status: "pending",
    amount: amount_minor,
    amount_minor,
    currency: body.currency,
    destination: shownDestination(instrument),
    description: body.description ?? null,
    metadata: body.metadata ?? {},
    failure_code: null,
    failure_message: null,
    return_code: null,
    livemode: context.livemode,
    sequence: 0,
    created_at: at,
    updated_at: at,
    completed_at: null,
    cancelled_at: null,
  };
}

/** Reads the destination of a transfer. Throws `invalid_parameter`. */
function readDestination({ destination, currency }: CreateTransferBody): Instrument {
  const { iban, wallet } = destination;
  if (iban && wallet) {
    throw invalidParameter(
      "destination",
      '"destination" has both "iban" and "wallet": send one of them',
    );
  }
  const at = { prefix: "destination." };
  if (iban) {
    const account = readIban(iban.iban, undefined, currency, at);
    checkCurrency(account.kind, currency);
    return account;
  }
  if (wallet) return readWallet(wallet, currency, at);
  throw invalidParameter(
    "destination",
    '"destination" must be an object with either "iban" or "wallet"',
  );
}

function shownDestination({ method }: Instrument): TransferDestination {
  if (method?.type === "stablecoin") return { type: "wallet", wallet: method.wallet };
  if (method?.type === "sepa" || method?.type === "swift") {
    return { type: "iban", iban: method.iban };
  }
  throw new Error("a destination is an account or a wallet");
}
