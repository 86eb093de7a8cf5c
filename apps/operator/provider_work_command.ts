/** Parses the commands of `deno task providers` that settle operations and provider events. */

import { isId } from "../../shared/core/ids.ts";
import { readId, UsageError } from "./command_line.ts";
import type { ProviderValues as Values } from "./provider_command.ts";

export interface ProviderEventName {
  /** `pac_…`; null: the account that has the reference. */
  account_id: string | null;
  reference: string;
}

/** A command that settles operations or provider events. */
export type WorkCommand =
  | { action: "calls"; is_all: boolean; is_json: boolean }
  | { action: "facts"; is_json: boolean }
  | { action: "retry"; id: string; is_json: boolean }
  | {
    action: "settle";
    id: string;
    /** The provider's id of the result; null: the operation did nothing. */
    reference: string | null;
    /** False: the operator knows that it did nothing, so there is no sync with the provider. */
    syncs: boolean;
    is_json: boolean;
  }
  | {
    action: "match";
    event: ProviderEventName;
    /**
     * `pay_…`, `re_…` or `tr_…`. Several, or a batch or file for a bank (`bf-…`): the orders that the
     * bank has booked as one entry.
     */
    targets: readonly [string, ...string[]];
    /** What the bank took inside of the amount, such as `3.50`; null: nothing more than it told. */
    fee: string | null;
    is_json: boolean;
  }
  | { action: "dismiss"; event: ProviderEventName; reason: string; is_json: boolean };

/** A reference of a provider event, and an id at a provider: printable, without spaces. */
const REFERENCE = /^[!-~]{1,300}$/;
const EVENT_NAME = /^(?:(pac_[0-9a-z]{26})\/)?([!-~]{1,300})$/;
const TARGETS = ["pay_", "re_", "tr_"] as const;
/** A file for a bank, or a batch in it, as bank files name it. */
const BATCH = /^bf-[0-9a-z]{26}(-\d{1,5})?$/;
const FEE = /^\d{1,12}(\.\d{1,8})?$/;
const MAX_REASON = 500;

/** Reads the command from its options and names. Throws `UsageError`. */
export function readWorkCommand(
  action: WorkCommand["action"],
  values: Values,
  names: readonly string[],
): WorkCommand {
  const { all: is_all = false, json: is_json = false } = values;
  switch (action) {
    case "calls":
      return { action, is_all, is_json };
    case "facts":
      return { action, is_json };
    case "retry":
      return { action, id: readOperationId(names), is_json };
    case "settle":
      return { ...readSettle(values, names), is_json };
    case "match":
      return { ...readMatch(values, names), is_json };
    case "dismiss":
      return { ...readDismiss(values, names), is_json };
  }
}

/** A command without its option `--json`. */
type Read<Action> = Omit<Extract<WorkCommand, { action: Action }>, "is_json">;

function readMatch({ fee }: Values, names: readonly string[]): Read<"match"> {
  const [event, first, ...others] = names;
  if (event === undefined || first === undefined) {
    throw new UsageError(
      "match needs a provider event and what it is about: match EVENT pay_...|re_...|tr_...|bf-...",
    );
  }
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
  return { action: "match", event: readEventName(event), targets, fee: fee ?? null };
}

function readSettle(values: Values, names: readonly string[]): Read<"settle"> {
  const { succeeded, failed = false, unsynced = false } = values;
  if ((succeeded !== undefined) === failed) {
    throw new UsageError("settle needs either --succeeded REFERENCE or --failed");
  }
  if (succeeded !== undefined && !REFERENCE.test(succeeded)) {
    throw new UsageError("--succeeded must be the provider's id of the result, such as pi_...");
  }
  if (unsynced && !failed) throw new UsageError("--unsynced belongs to --failed");
  const id = readOperationId(names);
  return { action: "settle", id, reference: succeeded ?? null, syncs: !unsynced };
}

function readDismiss(values: Values, names: readonly string[]): Read<"dismiss"> {
  const reason = values.reason?.trim() ?? "";
  if (reason === "" || reason.length > MAX_REASON) {
    throw new UsageError(`--reason is required: 1 to ${MAX_REASON} characters`);
  }
  const [event, ...more] = names;
  if (event === undefined || more.length > 0) {
    throw new UsageError("dismiss needs one provider event, as the command facts prints it");
  }
  return { action: "dismiss", event: readEventName(event), reason };
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

function readOperationId(names: readonly string[]): string {
  return readId(names, "pc_", "operation");
}
