/** The statement that loads resources for a list of requests (`pay.load`). */

import { type Access, type Idempotency, keyedRequest, requestsText } from "./outcome.ts";

export type ResourceKind =
  | "payments"
  | "refunds"
  | "disputes"
  /** The dispute of a payment that is open or lost, by the id of the payment. */
  | "current_disputes"
  | "transfers"
  | "instruments"
  | "checkouts"
  /** The accounts that serve kinds of methods of the environment, as a list; without an id. */
  | "method_accounts"
  /** The checkout of a payer, by the id of the attempt that the payer names. */
  | "own_checkout"
  | "events"
  | "api_keys"
  | "own_api_key"
  | "sandboxes"
  | "webhook_endpoints"
  /** A webhook endpoint as responses show it: with `failing` while its attempts fail. */
  | "shown_webhook_endpoints"
  | "webhook_deliveries"
  | "idempotency_keys"
  | "faults"
  | "requests";

export const LOAD = `select * from pay.load(p_requests => $1::text)`;

export interface RequestedResource {
  access: Access;
  /** Null: the statement only checks the key and its scope. */
  kind: ResourceKind | null;
  id: string | null;
  idempotency: Idempotency | null;
}

/** Returns the parameter of `LOAD`. */
export function loadParameter(list: readonly RequestedResource[]): string {
  return requestsText(list.map(({ access, kind, id, idempotency }, i) => ({
    ...keyedRequest(access, idempotency, null, i),
    kind,
    id,
  })));
}
