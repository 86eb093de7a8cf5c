/** Draws the lifecycle of a payment as a Mermaid diagram. */

import { METHOD_KINDS, PAYMENT_STATUSES } from "../../shared/core/vocabulary.ts";
import {
  isCancellable,
  isRefundable,
  nextStatuses,
} from "../../shared/domain/payments/lifecycle.ts";

type Status = typeof PAYMENT_STATUSES[number];

/** Mermaid's mark for the beginning and the end. */
const OUTSIDE = "[*]";

/** Returns the diagram as a code block of Markdown. */
export function renderLifecycleDiagram(): string {
  const moves = PAYMENT_STATUSES.flatMap((from) =>
    PAYMENT_STATUSES.flatMap((to) => {
      const rails = METHOD_KINDS.filter((kind) => nextStatuses(standing(from, kind)).includes(to));
      return rails.length === 0 ? [] : [arrow(from, to, labelOf(from, to, rails))];
    })
  );
  const ends = PAYMENT_STATUSES.filter((status) =>
    METHOD_KINDS.every((kind) => nextStatuses(standing(status, kind)).length === 0)
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
  if (to === "cancelled" && isCancellable(standing(from, "card"))) return "cancel";
  if (to.endsWith("refunded") && isRefundable(standing(from, "card"))) return "refund";
  return "";
}

/** Returns a payment in a status, with an amount that can be refunded in parts. */
function standing(status: Status, method_kind: typeof METHOD_KINDS[number]) {
  return { status, method_kind, amount_minor: 1000, amount_refunded: 0 };
}
