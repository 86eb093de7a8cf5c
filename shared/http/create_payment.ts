/** Creates payments, for both functions: with an instrument of the body, or with a saved one. */

import { ApiError } from "../core/errors.ts";
import {
  type Reply,
  type ServiceRequest,
  withoutRateCount,
} from "../domain/changes/service_request.ts";
import { paymentOf } from "../domain/payments/create_payment.ts";
import {
  readStoredInstrument,
  type StoredInstrument,
  unknownInstrument,
} from "../domain/payments/instruments.ts";
import type { CreatePaymentBody } from "../schema/payment.ts";
import type { Access } from "../store/outcome.ts";
import type { Store } from "../store/store.ts";
import type { Dependencies } from "./dependencies.ts";

/**
 * Creates a payment. With a saved instrument it takes a round trip more, which is the one that
 * counts against the rate limit.
 * @param decline_is_error true: a decline returns 402. False: 201, as the sandbox function does
 */
export function createPayment(
  { operations, store }: Pick<Dependencies, "operations" | "store">,
  request: ServiceRequest,
  body: CreatePaymentBody,
  decline_is_error: boolean,
): Promise<Reply> {
  const { context, access } = request;
  const { instrument } = body;
  if (instrument === undefined) {
    return operations.create(request, () => paymentOf(body, decline_is_error, context));
  }
  const counted = withoutRateCount(access);
  let reading = access;
  return operations.create({ ...request, access: counted }, async () => {
    const used = await loadInstrument(store, reading, instrument);
    reading = counted;
    return paymentOf(body, decline_is_error, context, used);
  });
}

async function loadInstrument(store: Store, access: Access, id: string): Promise<StoredInstrument> {
  try {
    const loaded = await store.load({ ...access, scope: "instruments:use" }, "instruments", id);
    if (loaded.outcome === "found") return readStoredInstrument(loaded.body, loaded.detail!);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "not_found") throw error;
  }
  throw unknownInstrument();
}
