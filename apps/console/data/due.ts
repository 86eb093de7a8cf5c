/** The words for what the clock of the sandbox brings next, and the list of each kind. */

import type { Due } from "../../../packages/client/mod.ts";
import { href } from "./route.ts";

type Kind = Due["data"][number]["kind"];

/** The words of each kind, and the steps and the query of the list of those that wait. */
const KINDS: Readonly<Record<Kind, readonly [text: string, ...Parameters<typeof href>]>> = {
  payment_result: ["Result of a payment", ["payments"], { status: "processing" }],
  payment_end: ["Time to pay ends", ["payments"], { status: "pending" }],
  authentication_end: ["Time to authenticate ends", ["payments"], { status: "requires_action" }],
  authorization_end: ["Authorization ends", ["payments"], { status: "authorized" }],
  payment_return: ["The payer's bank takes a payment back", ["payments"], { status: "completed" }],
  refund_result: ["Result of a refund", ["refunds"], { status: "pending" }],
  transfer_result: ["Result of a transfer", ["transfers"], { status: "pending" }],
  dispute_loss: ["Lost without evidence", ["disputes"], { status: "needs_response" }],
  dispute_result: ["Result of a dispute", ["disputes"], { status: "under_review" }],
  delivery: ["Attempt to deliver an event", ["webhooks"]],
  instrument_end: ["A mandate ends without use", ["instruments"], { status: "active" }],
};

/** Returns what happens, in words. */
export function textOfDue(kind: Kind): string {
  return KINDS[kind][0];
}

/** Returns the link to those that wait. */
export function listOfDue(kind: Kind): string {
  const [, ...list] = KINDS[kind];
  return href(...list);
}
