/**
 * The statement that loads payments for requests that were made at the same time (`pay.load_payments`).
 */

import { type Access, type Idempotency, listedAccess } from "./outcome.ts";

export const LOAD_PAYMENTS = `select * from pay.load_payments(p_requests => $1::text)`;

/** A payment to load, and who asks for it. */
export interface RequestedPayment {
  access: Access;
  id: string;
  idempotency: Idempotency | null;
}

/** The parameter of the statement. */
export function loadParameter(list: readonly RequestedPayment[]): string {
  return JSON.stringify(list.map(({ access, id, idempotency }, i) => ({
    ...listedAccess(access, i),
    id,
    idempotency_key: idempotency?.key ?? null,
    fingerprint: idempotency?.fingerprint ?? null,
  })));
}
