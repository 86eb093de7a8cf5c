/** Parses the commands of `deno task providers` that settle operations and provider events. */

import { parseArgs } from "node:util";
import { isId } from "../../shared/core/ids.ts";
import { UsageError } from "./command_line.ts";

/** The name of a stored provider event. */
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

/** The names of these commands. */
export const WORK_ACTIONS = ["calls", "retry", "settle", "facts", "match", "dismiss"] as const;

/** A reference of a provider event, and an id at a provider: printable, without spaces. */
const REFERENCE = /^[!-~]{1,300}$/;
const EVENT_NAME = /^(?:(pac_[0-9a-z]{26})\/)?([!-~]{1,300})$/;
const TARGETS = ["pay_", "re_", "tr_"] as const;
/** A file for a bank, or a batch in it, as bank files name it. */
const BATCH = /^bf-[0-9a-z]{26}(-\d{1,5})?$/;
const FEE = /^\d{1,12}(\.\d{1,8})?$/;
const MAX_REASON = 500;

const JSON_OPTION = { json: { type: "boolean" } } as const;
const CALLS_OPTIONS = { ...JSON_OPTION, all: { type: "boolean" } } as const;
const SETTLE_OPTIONS = {
  ...JSON_OPTION,
  succeeded: { type: "string" },
  failed: { type: "boolean" },
  unsynced: { type: "boolean" },
} as const;
const MATCH_OPTIONS = { ...JSON_OPTION, fee: { type: "string" } } as const;
const DISMISS_OPTIONS = { ...JSON_OPTION, reason: { type: "string" } } as const;

/**
 * Parses the arguments after the name of the command. Throws `UsageError` or the parser's error.
 */
export function readWorkCommand(
  action: typeof WORK_ACTIONS[number],
  args: string[],
): WorkCommand {
  if (action === "calls") {
    const { all = false, json = false } = parseArgs({
      args,
      options: CALLS_OPTIONS,
      strict: true,
    }).values;
    return { action, is_all: all, is_json: json };
  }
  if (action === "settle") return readSettle(args);
  if (action === "dismiss") return readDismiss(args);
  if (action === "match") return readMatch(args);
  const { values, positionals } = parseArgs({
    args,
    options: JSON_OPTION,
    allowPositionals: action === "retry",
    strict: true,
  });
  const is_json = values.json === true;
  if (action === "facts") return { action, is_json };
  return { action, id: readOperationId(positionals), is_json };
}

function readMatch(args: string[]): WorkCommand {
  const { values, positionals } = parseArgs({
    args,
    options: MATCH_OPTIONS,
    allowPositionals: true,
    strict: true,
  });
  const { fee = null, json = false } = values;
  const [event, first, ...others] = positionals;
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
  if (fee !== null && !FEE.test(fee)) {
    throw new UsageError("--fee must be an amount such as 3.50, without its currency");
  }
  return { action: "match", event: readEventName(event), targets, fee, is_json: json };
}

function readSettle(args: string[]): WorkCommand {
  const { values, positionals } = parseArgs({
    args,
    options: SETTLE_OPTIONS,
    allowPositionals: true,
    strict: true,
  });
  const { succeeded, failed = false, unsynced = false, json = false } = values;
  if ((succeeded !== undefined) === failed) {
    throw new UsageError("settle needs either --succeeded REFERENCE or --failed");
  }
  if (succeeded !== undefined && !REFERENCE.test(succeeded)) {
    throw new UsageError("--succeeded must be the provider's id of the result, such as pi_...");
  }
  if (unsynced && !failed) throw new UsageError("--unsynced belongs to --failed");
  const id = readOperationId(positionals);
  return {
    action: "settle",
    id,
    reference: succeeded ?? null,
    syncs: !unsynced,
    is_json: json,
  };
}

function readDismiss(args: string[]): WorkCommand {
  const { values, positionals } = parseArgs({
    args,
    options: DISMISS_OPTIONS,
    allowPositionals: true,
    strict: true,
  });
  const reason = values.reason?.trim() ?? "";
  if (reason === "" || reason.length > MAX_REASON) {
    throw new UsageError(`--reason is required: 1 to ${MAX_REASON} characters`);
  }
  const [event, ...more] = positionals;
  if (event === undefined || more.length > 0) {
    throw new UsageError("dismiss needs one provider event, as the command facts prints it");
  }
  return { action: "dismiss", event: readEventName(event), reason, is_json: values.json === true };
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

function readOperationId([id, ...more]: readonly string[]): string {
  if (id === undefined) throw new UsageError("The id of the operation is missing: pc_...");
  if (more.length > 0) {
    throw new UsageError(`Unexpected argument "${more[0]}": give the id of one operation`);
  }
  if (isId("pc_", id)) return id;
  throw new UsageError("The argument is not the id of an operation: an id begins with pc_");
}
