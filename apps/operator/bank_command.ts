/** The options of `deno task bank`. Every error names the argument at fault. */

import { RECALL_REASONS, type RecallReason } from "../../shared/connectors/bank/write_recall.ts";
import { isId } from "../../shared/core/ids.ts";
import { UsageError } from "./command_line.ts";

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

/** Longest reason of a reject: a line or two for the merchant. */
const REASON_MAX = 200;

/** Returns the folder of `--out`. Throws `UsageError` without one. */
export function readFolder(action: string, out: string | undefined): string {
  if (out === undefined) throw new UsageError(`bank ${action} needs --out DIR`);
  return out;
}

/** Returns the only argument, the id of an order. Throws `UsageError` if it is none. */
export function readOrderId(action: string, [id = "", ...more]: readonly string[]): string {
  const is_order = (["pay_", "tr_", "re_"] as const).some((prefix) => isId(prefix, id));
  if (is_order && more.length === 0) return id;
  throw new UsageError(`bank ${action} needs the ID of a payment, transfer or refund`);
}

/** Reads the reason of a reject. */
export function readText(given: string): string {
  const text = given.trim();
  if (text !== "" && text.length <= REASON_MAX) return text;
  throw new UsageError(`--reason must have 1 to ${REASON_MAX} characters`);
}

/** Reads the reason of a recall. */
export function readReason(text: string = RECALL_REASONS[0]): RecallReason {
  const found = RECALL_REASONS.find((reason) => reason === text);
  if (found !== undefined) return found;
  throw new UsageError(`--reason must be ${RECALL_REASONS.join(", ")}`);
}
