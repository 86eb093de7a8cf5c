/** `payments list`: prints a page of payments, newest first. */

import type { MethodKind, Payment, PaymentStatus } from "../../client/mod.ts";
import {
  type Command,
  EXIT,
  JSON_OPTION,
  refuseArguments,
  SERVICE_OPTIONS,
  textOf,
} from "../command.ts";
import { PAGE_OPTIONS, pageOf, printPage } from "../output.ts";
import { paymentText } from "../payment_text.ts";
import { openClient } from "../service_access.ts";
import { oneLine } from "../terminal_text.ts";

export const PAYMENTS_LIST: Command = {
  name: "payments list",
  summary: "List payments, newest first",
  options: {
    status: { type: "string", value: "STATUS", help: "only this status, such as completed" },
    currency: { type: "string", value: "CODE", help: "only this currency" },
    "method-kind": { type: "string", value: "KIND", help: "only this kind, such as sepa" },
    reference: { type: "string", value: "TEXT", help: "only your own reference" },
    customer: { type: "string", value: "ADDRESS", help: "only this e-mail address" },
    "customer-id": { type: "string", value: "ID", help: "only your own id of the customer" },
    "created-after": { type: "string", value: "TIME", help: "such as 2026-01-31T09:00:00Z" },
    "created-before": { type: "string", value: "TIME", help: "such as 2026-02-28T09:00:00Z" },
    ...PAGE_OPTIONS,
    ...JSON_OPTION,
    ...SERVICE_OPTIONS,
  },
  examples: ["payments list", "payments list --status declined --limit 100 --json"],
  async run(values, args, surroundings) {
    refuseArguments(args);
    // The API checks every value and names the field at fault.
    const filters = {
      status: textOf(values, "status") as PaymentStatus | undefined,
      currency: textOf(values, "currency"),
      method_kind: textOf(values, "method-kind") as MethodKind | undefined,
      reference: textOf(values, "reference"),
      customer: textOf(values, "customer"),
      customer_id: textOf(values, "customer-id"),
      created_after: textOf(values, "created-after"),
      created_before: textOf(values, "created-before"),
      ...pageOf(values),
    };
    const { payments } = openClient(values, surroundings);
    await printPage(payments.list(filters), lineOf, values, surroundings);
    return EXIT.success;
  },
};

function lineOf(payment: Payment): string {
  const { created_at, reference } = payment;
  const shown = [paymentText({ ...payment, next_action: null }), created_at];
  return [...shown, ...(reference === null ? [] : [oneLine(reference)])].join("  ");
}
