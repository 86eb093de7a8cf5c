/** Parses the arguments of `deno task bank`. Every error names the argument at fault. */

import { RECALL_REASONS, type RecallReason } from "../../shared/connectors/bank/write_recall.ts";
import { isId } from "../../shared/core/ids.ts";
import { readArguments, UsageError } from "./command_line.ts";

export const USAGE = `Usage: deno task bank COMMAND --account pac_… [--json]

  import FILE…      imports files of the bank: camt.052, camt.053, camt.054, pain.002 and camt.029
                    of any version. A file is imported whole or not at all, and once
  export --out DIR  writes the files for the bank: each order is in one of them
    --file NAME     writes this file again, with the same bytes
  list              lists the orders without a result
  approve ID        goes on with a payout whose payee the bank could not match
  reject ID         ends an order that is not exported yet: it fails
    --reason TEXT   the failure_message that the merchant sees, of at most 200 characters
  recall ID --out DIR
                    writes the recall of an exported order, or of a payout that the bank has made
                    (camt.055)
    --reason CODE   DUPL (sent twice), TECH (a technical fault), FRAD (a fraud) or CUST (another
                    one, the default)

  --account  the account, as "deno task providers list" shows it
  --json     prints JSON: a list of orders, and otherwise an object on each line
`;

export type BankCommand =
  & {
    account_id: string;
    is_json: boolean;
  }
  & (
    | { action: "import"; files: readonly string[] }
    | { action: "export"; folder: string; name: string | null }
    | { action: "list" }
    | { action: "approve"; id: string }
    | { action: "reject"; id: string; reason?: string }
    | { action: "recall"; id: string; folder: string; reason: RecallReason }
  );

/** Longest reason of a reject: a line or two for the merchant. */
const REASON_MAX = 200;
const TAKES = {
  import: ["…", "account", "json"],
  export: ["account", "json", "out", "file"],
  list: ["account", "json"],
  approve: ["…", "account", "json"],
  reject: ["…", "account", "json", "reason"],
  recall: ["…", "account", "json", "out", "reason"],
} as const;

/** Parses the arguments. Throws `UsageError`. */
export function readBankCommand(args: readonly string[]): BankCommand {
  const { action, values, names } = readArguments("bank", args, TAKES, USAGE);
  const { account = "", json = false, out, file, reason } = values;
  if (!isId("pac_", account)) {
    throw new UsageError(`--account must be the id of an account, such as pac_…\n\n${USAGE}`);
  }
  const common = { account_id: account, is_json: json };
  if (out === undefined && (action === "export" || action === "recall")) {
    throw new UsageError(`bank ${action} needs --out DIR`);
  }
  switch (action) {
    case "import":
      if (names.length === 0) throw new UsageError("bank import needs a FILE");
      return { ...common, action, files: names };
    case "export":
      return { ...common, action, folder: out!, name: file ?? null };
    case "list":
      return { ...common, action };
    case "approve":
    case "reject":
    case "recall": {
      const [id = "", ...more] = names;
      const is_order = (["pay_", "tr_", "re_"] as const).some((prefix) => isId(prefix, id));
      if (!is_order || more.length > 0) {
        throw new UsageError(`bank ${action} needs the ID of a payment, transfer or refund`);
      }
      if (action === "recall") {
        return { ...common, action, id, folder: out!, reason: readReason(reason) };
      }
      if (action === "approve") return { ...common, action, id };
      return { ...common, action, id, ...(reason !== undefined && { reason: readText(reason) }) };
    }
  }
}

function readText(given: string): string {
  const text = given.trim();
  if (text !== "" && text.length <= REASON_MAX) return text;
  throw new UsageError(`--reason must have 1 to ${REASON_MAX} characters`);
}

function readReason(text: string = RECALL_REASONS[0]): RecallReason {
  const found = RECALL_REASONS.find((reason) => reason === text);
  if (found !== undefined) return found;
  throw new UsageError(`--reason must be ${RECALL_REASONS.join(", ")}`);
}
