/**
 * Begins transfers: money out of the available balance (contract §3). The database compares the
 * amount with the balance at the commit. Pure.
 */

import { formatTime } from "../../core/clock.ts";
import { invalidParameter } from "../../core/errors.ts";
import type { CreateTransferBody } from "../../schema/transfer_body.ts";
import type { Transfer, TransferDestination } from "../../schema/transfer.ts";
import { amountOf } from "../../schema/values.ts";
import { ChangeBuilder } from "../changes/change_builder.ts";
import type { RequestContext } from "../changes/event.ts";
import { invalidTransferState, needsApproval } from "../payments/lifecycle.ts";
import { checkAmount, type Instrument, readWallet } from "../providers/instrument.ts";
import { beginOperation, type Begun } from "../providers/operation.ts";
import { checkSpeed, type Payee, readPayee } from "../providers/payee.ts";
import { RAILS } from "../rails.ts";

/**
 * Begins a transfer: it holds its amount until it completes or fails. Throws `ApiError` if the
 * request is refused.
 */
export function transferOf(body: CreateTransferBody, context: RequestContext): Begun {
  const instrument = readDestination(body, context.livemode);
  checkAmount(instrument.kind, body);
  checkSpeed(body.speed, instrument.kind);
  if (context.livemode && body.settlement !== undefined) {
    throw invalidParameter("settlement", '"settlement" is for test keys only: leave it out');
  }
  const transfer = newTransfer(body, amountOf(body)!, instrument, context);
  const change = new ChangeBuilder(transfer, context);
  change.move("transfer", transfer.amount_minor);
  const { behaviour, payee_check, details } = instrument;
  const begun = beginOperation(change, "transfer", { details });
  if (context.livemode) return { ...begun, is_bank_order: details !== null };
  const is_manual = body.settlement === "manual" || needsApproval(payee_check);
  return { ...begun, payee_check, test: { behaviour, outcome: null, is_manual } };
}

/**
 * Begins a cancel. A live provider decides whether the money can still be kept. Throws
 * `invalid_state` unless the transfer is pending.
 */
export function cancelTransferOf(transfer: Transfer, context: RequestContext): Begun {
  if (transfer.status !== "pending") throw invalidTransferState("cancel", transfer);
  const begun = beginOperation(new ChangeBuilder(transfer, context), "cancel");
  return { ...begun, is_internal: !context.livemode };
}

function newTransfer(
  body: CreateTransferBody,
  amount_minor: number,
  instrument: Instrument,
  context: RequestContext,
): Transfer {
  const at = formatTime(context.at_ms);
  return {
    id: context.newId("tr_"),
    object: "transfer",
    status: "pending",
    amount: amount_minor,
    amount_minor,
    currency: body.currency,
    destination: shownDestination(instrument),
    speed: RAILS[instrument.kind].bank === null ? null : body.speed ?? "standard",
    payee_check: null,
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
function readDestination(
  { destination, currency }: CreateTransferBody,
  livemode: boolean,
): Payee {
  const { iban, wallet, ...details } = destination;
  if (iban && wallet) {
    throw invalidParameter(
      "destination",
      '"destination" has both "iban" and "wallet": send one of them',
    );
  }
  if (iban) return readPayee({ ...details, iban }, { currency, livemode });
  const [detail] = Object.keys(details);
  if (wallet && detail !== undefined) {
    throw invalidParameter(
      `destination.${detail}`,
      `"destination.${detail}" is only for an "iban": leave it out`,
    );
  }
  if (wallet) {
    const to = readWallet(wallet, currency, { prefix: "destination." });
    return { ...to, payee_check: null, details: null };
  }
  throw invalidParameter(
    "destination",
    '"destination" must be an object with either "iban" or "wallet"',
  );
}

function shownDestination({ method }: Instrument): TransferDestination {
  if (method && "wallet" in method) return { type: "wallet", wallet: method.wallet };
  if (method && "iban" in method) return { type: "iban", iban: method.iban };
  throw new Error("a destination is an account or a wallet");
}
