/** Reads the options of the commands that settle operations and provider events. */

import { isId } from "../../shared/core/ids.ts";
import { readId, UsageError, type Values } from "./command_line.ts";

export interface ProviderEventName {
  /** `pac_…`; null: the account that has the reference. */
  account_id: string | null;
  reference: string;
}

/** A reference of a provider event, and an id at a provider: printable, without spaces. */
const REFERENCE = /^[!-~]{1,300}$/;
const EVENT_NAME = /^(?:(pac_[0-9a-z]{26})\/)?([!-~]{1,300})$/;
const TARGETS = ["pay_", "re_", "tr_"] as const;
/** A file for a bank, or a batch in it, as bank files name it. */
const BATCH = /^bf-[0-9a-z]{26}(-\d{1,5})?$/;
const FEE = /^\d{1,12}(\.\d{1,8})?$/;
const MAX_REASON = 500;

/** Reads a provider event, and what it is about. Throws `UsageError`. */
export function readMatch({ fee }: Values<"fee">, names: readonly string[]) {
  const [event, first, ...others] = names;
  if (event === undefined || first === undefined) {
    throw new UsageError(
      "match needs a provider event and what it is about: match EVENT pay_...|re_...|tr_...|bf-...",
    );
  }
  // Several, or a batch or file for a bank (`bf-…`): the bank has booked the orders as one entry.
  const targets = [first, ...others] as const;
  for (const target of targets) {
    if (TARGETS.some((prefix) => isId(prefix, target)) || BATCH.test(target)) continue;
    throw new UsageError(
      `"${target}" must be the id of a payment, refund, transfer or batch: pay_..., re_..., tr_..., ` +
        "bf-...",
    );
  }
  if (fee !== undefined && !FEE.test(fee)) {
    throw new UsageError("--fee must be an amount such as 3.50, without its currency");
  }
  // The fee is inside of the amount; null: nothing more than the bank told.
  return { event: readEventName(event), targets, fee: fee ?? null };
}

/** Reads an operation and its result. Throws `UsageError`. */
export function readSettlement(
  values: Values<"succeeded" | "failed" | "unsynced">,
  names: readonly string[],
) {
  const { succeeded, failed = false, unsynced = false } = values;
  if ((succeeded !== undefined) === failed) {
    throw new UsageError("settle needs either --succeeded REFERENCE or --failed");
  }
  if (succeeded !== undefined && !REFERENCE.test(succeeded)) {
    throw new UsageError("--succeeded must be the provider's id of the result, such as pi_...");
  }
  if (unsynced && !failed) throw new UsageError("--unsynced belongs to --failed");
  return {
    id: readId(names, "pc_", "operation"),
    /** The provider's id of the result; null: the operation did nothing. */
    reference: succeeded ?? null,
    /** False: the operator knows that it did nothing, so there is no sync with the provider. */
    syncs: !unsynced,
  };
}

/** Reads a provider event, and the reason to dismiss it. Throws `UsageError`. */
export function readDismissal(values: Values<"reason">, names: readonly string[]) {
  const reason = values.reason?.trim() ?? "";
  if (reason === "" || reason.length > MAX_REASON) {
    throw new UsageError(`--reason is required: 1 to ${MAX_REASON} characters`);
  }
  const [event, ...more] = names;
  if (event === undefined || more.length > 0) {
    throw new UsageError("dismiss needs one provider event, as the command facts prints it");
  }
  return { event: readEventName(event), reason };
}

function readEventName(text: string): ProviderEventName {
  const [, account_id = null, reference] = EVENT_NAME.exec(text) ?? [];
  if (reference === undefined) {
    throw new UsageError(
      "The provider event must look like pac_.../REFERENCE, as the command facts prints it",
    );
  }
  return { account_id, reference };
}
