/** Decides what the page shows of a checkout. Pure. */

import { type CheckoutMethod, methodsFor } from "../../../shared/core/checkout_methods.ts";
import type { CheckoutPrice } from "../../../shared/schema/checkout.ts";
import type { CheckoutPage } from "../../../shared/schema/checkout_page.ts";

/** The parts of the page, one of which it shows. */
export type View =
  /** Fields, with the end of an earlier attempt. */
  | { kind: "form"; ended: "declined" | "failed" | null }
  | { kind: "action" | "transfer" | "processing"; attempt: Attempt }
  | { kind: "paid"; attempt: Attempt | null }
  | { kind: "expired" | "cancelled" };

type Attempt = NonNullable<CheckoutPage["attempt"]>;

/** With any other result a payment was successful, so that nobody is asked to pay twice. */
const UNPAID = ["declined", "failed", "cancelled"];

/** @param is_another the payer wants to pay in another way than by the attempt under way */
export function viewOf(page: CheckoutPage, is_another = false): View {
  const { status, attempt, is_link } = page;
  if (status === "completed" || is_link && attempt && isSuccess(attempt)) {
    return { kind: "paid", attempt };
  }
  const waiting = attempt && waitOf(attempt);
  const may_leave = status === "open" && waiting !== "processing";
  if (waiting && !(is_another && may_leave)) return { kind: waiting, attempt };
  if (status !== "open") return { kind: status };
  const { status: end = null } = attempt ?? {};
  return {
    kind: "form",
    ended: !is_another && (end === "declined" || end === "failed") ? end : null,
  };
}

/** Whether something happens at the payment without the payer: the page reads it again. */
export function isWaiting({ attempt }: CheckoutPage): boolean {
  return attempt !== null && !isSuccess(attempt) && waitOf(attempt) !== null;
}

function waitOf({ status, next_action }: Attempt): "action" | "transfer" | "processing" | null {
  if (status === "requires_action" && next_action?.type === "authenticate") return "action";
  if (status === "processing" || status === "requires_action") return "processing";
  if (status !== "pending") return null;
  return next_action === null ? "processing" : "transfer";
}

function isSuccess(attempt: Attempt): boolean {
  const { status, method } = attempt;
  return status === "processing" && method === "sepa_debit" ||
    !UNPAID.includes(status) && waitOf(attempt) === null;
}

/** The prices among which a payer can choose by a method. */
export function pricesFor(
  { amount_minor, currency, other_prices }: CheckoutPage,
  method: CheckoutMethod,
): CheckoutPrice[] {
  return [{ amount_minor, currency }, ...other_prices].filter((price) =>
    methodsFor(price.currency, price.amount_minor).includes(method)
  );
}
