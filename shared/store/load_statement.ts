/** The statement that loads resources for requests that were made at the same time (`pay.load`). */

import { type Access, type Idempotency, keyedRequest } from "./outcome.ts";

/** Kinds of resources that can be read by id. */
export type ResourceKind =
  | "payments"
  | "refunds"
  | "transfers"
  | "events"
  | "api_keys"
  | "webhook_endpoints"
  | "webhook_deliveries";

export const LOAD = `select * from pay.load(p_requests => $1::text)`;

/** A resource to load, and who asks for it. */
export interface RequestedResource {
  access: Access;
  /** Null: the request is only admitted. */
  kind: ResourceKind | null;
  id: string | null;
  idempotency: Idempotency | null;
}

/** The parameter of the statement. */
export function loadParameter(list: readonly RequestedResource[]): string {
  return JSON.stringify(list.map(({ access, kind, id, idempotency }, i) => ({
    ...keyedRequest(access, idempotency, null, i),
    kind,
    id,
  })));
}
