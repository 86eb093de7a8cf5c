/**
 * Loads disputes for changes of their payments. Each change of a dispute changes the sequence of
 * its payment as well, so a dispute that is loaded after its payment is the present one, or the
 * commit is stale and decides again.
 */

import { ApiError } from "../../core/errors.ts";
import type { Dispute } from "../../schema/dispute.ts";
import type { Payment } from "../../schema/payment.ts";
import type { StoredDispute } from "../payments/dispute_payment.ts";
import type { Store } from "../../store/store.ts";
import { type Reply, type ServiceRequest, withoutRateCount } from "../changes/service_request.ts";

/**
 * Returns the open or lost dispute of a payment that is charged back. Null: the payment is not, or
 * the dispute has ended since the payment was loaded. One round trip, for such a payment only.
 */
export async function currentDispute(
  store: Store,
  { access }: ServiceRequest,
  { id, status }: Payment,
): Promise<Dispute | null> {
  if (status !== "chargeback") return null;
  try {
    const loaded = await store.load(withoutRateCount(access), "current_disputes", id);
    return loaded.outcome === "found" ? JSON.parse(loaded.body) : null;
  } catch (error) {
    if (error instanceof ApiError && error.code === "not_found") return null;
    throw error;
  }
}

/**
 * Loads a dispute, and runs a change of its payment. Returns the stored response of an earlier
 * request with the same idempotency key. Throws `not_found`.
 * @param run gets the request without its rate count, and a function that loads the dispute again
 */
export async function withDispute(
  store: Store,
  request: ServiceRequest,
  id: string,
  run: (
    request: ServiceRequest,
    payment_id: string,
    present: () => Promise<StoredDispute>,
  ) => Promise<Reply>,
): Promise<Reply> {
  const first = await store.load(request.access, "disputes", id, request.idempotency);
  if (first.outcome === "replay") return { response: first.response, replayed: true };
  const { payment_id }: Dispute = JSON.parse(first.body);
  const access = withoutRateCount(request.access);
  return await run({ ...request, access }, payment_id, async () => {
    const loaded = await store.load(access, "disputes", id);
    if (loaded.outcome === "replay") throw new Error("a load without a key has no replay");
    return { dispute: JSON.parse(loaded.body), provider_reference: loaded.detail };
  });
}
