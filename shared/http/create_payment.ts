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
import type { Begun } from "../domain/providers/operation.ts";
import type { CreatePaymentBody } from "../schema/payment_body.ts";
import type { Access, Idempotency } from "../store/outcome.ts";
import type { Loaded, Store } from "../store/store.ts";
import type { Dependencies } from "./dependencies.ts";

/**
 * Creates a payment. With a saved instrument it takes a round trip more, which is the one that
 * counts against the rate limit, unless it finds the stored response of the same request.
 * @param decline_is_error true: a decline returns 402. False: 201, as the sandbox function does
 */
export function createPayment(
  deps: Pick<Dependencies, "operations" | "store" | "vault">,
  request: ServiceRequest,
  body: CreatePaymentBody,
  decline_is_error: boolean,
): Promise<Reply> {
  const create = (used?: StoredInstrument) =>
    paymentOf(body, decline_is_error, request.context, used);
  return body.instrument === undefined
    ? deps.operations.create(request, create)
    : createWith(body.instrument, deps, request, create);
}

async function createWith(
  instrument: string,
  { operations, store, vault }: Pick<Dependencies, "operations" | "store" | "vault">,
  request: ServiceRequest,
  create: (used: StoredInstrument) => Begun,
): Promise<Reply> {
  const { access, idempotency } = request;
  let loaded: Loaded | null = await loadInstrument(store, access, instrument, idempotency);
  if (loaded.outcome === "replay") return { response: loaded.response, replayed: true };
  const counted = withoutRateCount(access);
  return await operations.create({ ...request, access: counted }, async () => {
    const found = loaded ?? await loadInstrument(store, counted, instrument, null);
    loaded = null;
    if (found.outcome === "replay") throw new Error("a load without a key has no replay");
    return create(await readStoredInstrument(found.body, found.detail!, vault));
  });
}

/** Loads a saved instrument, which needs a scope of its own. Throws `ApiError`. */
export async function loadInstrument(
  store: Store,
  access: Access,
  id: string,
  idempotency: Idempotency | null,
): Promise<Loaded> {
  try {
    const scoped = { ...access, scope: "instruments:use" } as const;
    return await store.load(scoped, "instruments", id, idempotency);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "not_found") throw error;
  }
  throw unknownInstrument();
}
