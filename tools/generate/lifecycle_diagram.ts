/** Draws the lifecycle of a payment as a Mermaid diagram. */

import { METHOD_KINDS, PAYMENT_STATUSES } from "../../shared/core/vocabulary.ts";
import {
  isCancellable,
  isCapturable,
  isRefundable,
  nextStatuses,
} from "../../shared/domain/payments/lifecycle.ts";
import type { Standing } from "../../shared/domain/payment_statuses.ts";
import { RAILS } from "../../shared/domain/rails.ts";

type Status = typeof PAYMENT_STATUSES[number];

/** Mermaid's mark for the beginning and the end. */
const OUTSIDE = "[*]";

/** Returns the diagram as a code block of Markdown. */
export function renderLifecycleDiagram(): string {
  const moves = PAYMENT_STATUSES.flatMap((from) =>
    PAYMENT_STATUSES.flatMap((to) => {
      const rails = METHOD_KINDS.filter((kind) =>
        standings(from, kind).some((payment) => nextStatuses(payment).includes(to))
      );
      return rails.length === 0 ? [] : [arrow(from, to, labelOf(from, to, rails))];
    })
  );
  const ends = PAYMENT_STATUSES.filter((status) =>
    METHOD_KINDS.every((kind) =>
      standings(status, kind).every((payment) => nextStatuses(payment).length === 0)
    )
  );
  return [
    "```mermaid",
    "stateDiagram-v2",
    arrow(OUTSIDE, "pending"),
    ...moves,
    ...ends.map((status) => arrow(status, OUTSIDE)),
    "```",
  ].join("\n");
}

function arrow(from: string, to: string, label = ""): string {
  return `  ${from} --> ${to}${label && `: ${label}`}`;
}

/** Returns the request that makes the transition, or its rails if not all rails allow it. */
function labelOf(from: Status, to: Status, rails: readonly (typeof METHOD_KINDS[number])[]) {
  if (rails.length < METHOD_KINDS.length) return `${rails.join(", ")} only`;
  const [payment] = standings(from, "card");
  if (to === "cancelled" && isCancellable(payment!)) return "cancel";
  if (to.endsWith("refunded") && isRefundable(payment!)) return "refund";
  if (to === "completed" && isCapturable(payment!)) return "capture";
  if (to === "authorized") return "manual capture";
  return from === "chargeback" ? "dispute won" : "";
}

/** Returns payments in a status, whose amounts can be refunded in parts. */
function standings(status: Status, method_kind: typeof METHOD_KINDS[number]): Standing[] {
  const refunded = status === "partially_refunded"
    ? [100]
    : status === "chargeback"
    ? [0, 100]
    : [0];
  const captures = RAILS[method_kind].has_manual_capture
    ? ["automatic", "manual"] as const
    : ["automatic"] as const;
  return captures.flatMap((capture) =>
    refunded.map((amount_refunded) => ({
      status,
      method_kind,
      capture,
      amount_captured: 1000,
      amount_refunded,
      amount_refunding: 0,
    }))
  );
}
