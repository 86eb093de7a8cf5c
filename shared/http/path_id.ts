/**
 * The id in a path: the kind of its resource, and the 404. The 404 is the same for an unknown id
 * and for an id of another environment (contract §6).
 */

import { ApiError } from "../core/errors.ts";
import { idPattern, type IdPrefix } from "../core/ids.ts";
import { PAYMENTS_FUNCTION, SANDBOX_FUNCTION } from "./route.ts";

interface PathKind {
  prefix: IdPrefix;
  noun: string;
  /** The function that serves the resource; by default that of payments. */
  home?: string;
}

const COLLECTIONS: Readonly<Record<string, PathKind>> = {
  payments: { prefix: "pay_", noun: "payment" },
  sandbox: { prefix: "pay_", noun: "payment" },
  disputes: { prefix: "dp_", noun: "dispute" },
  refunds: { prefix: "re_", noun: "refund" },
  instruments: { prefix: "ins_", noun: "instrument" },
  checkouts: { prefix: "chk_", noun: "checkout" },
  transfers: { prefix: "tr_", noun: "transfer" },
  api_keys: { prefix: "key_", noun: "API key" },
  webhook_endpoints: { prefix: "whe_", noun: "webhook endpoint" },
  webhook_deliveries: { prefix: "whd_", noun: "webhook delivery" },
  events: { prefix: "evt_", noun: "event" },
  sandboxes: { prefix: "env_", noun: "disposable sandbox", home: SANDBOX_FUNCTION },
  requests: { prefix: "req_", noun: "request", home: SANDBOX_FUNCTION },
  faults: { prefix: "flt_", noun: "fault", home: SANDBOX_FUNCTION },
};

const COLLECTION_LIST = Object.entries(COLLECTIONS);

/** Returns the kind of the id in a path such as `/v1/payments/:id/refund`, or null without one. */
export function pathKind(path: string): PathKind | null {
  const steps = path.split("/");
  const at = steps.findIndex((step) => step === ":id" || step === "{id}");
  return at === -1 ? null : COLLECTIONS[steps[at - 1]!] ?? null;
}

/** Returns the path of a resource with that of its function: `/api-v1-payments/v1/payments/…`. */
export function pathOfResource(id: string): string {
  const [collection, { home = PAYMENTS_FUNCTION }] = COLLECTION_LIST
    .find(([, { prefix }]) => id.startsWith(prefix))!;
  return `/${home}/v1/${collection}/${id}`;
}

export function noSuchResource({ prefix, noun }: PathKind, sent_id: string): ApiError {
  const article = /^[aeiou]/i.test(noun) ? "an" : "a";
  return new ApiError(
    "not_found",
    idPattern(prefix).test(sent_id)
      ? `No ${noun} has this id: an API key sees only resources of its own environment`
      : `The id in the path is not the id of ${article} ${noun}: copy the whole id, which begins ` +
        `with "${prefix}"`,
  );
}
