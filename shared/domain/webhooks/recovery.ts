/** Recovery: an endpoint gets the deliveries of a period again that it has missed (contract §4). */

import { ApiError, invalidParameter } from "../../core/errors.ts";
import { idFloor } from "../../core/ids.ts";
import type { RecoverDeliveriesBody } from "../../schema/inbox_body.ts";
import type { InboxStore } from "../../store/inbox_store.ts";
import { renderError } from "../changes/error_body.ts";
import type { Reply, ServiceRequest } from "../changes/service_request.ts";

/** How long the service keeps deliveries (contract §4). */
const RETENTION_MS = 30 * 24 * 3_600_000;

/** The statuses of the deliveries that a recovery makes pending. */
const RECOVERED = {
  failed: ["failed", "cancelled"],
  all: ["failed", "cancelled", "delivered"],
} as const;

/**
 * Returns the function that makes missed deliveries pending again, a bounded number for each
 * request. Those that are pending or in the inbox already stay as they are. It throws `ApiError`.
 */
export function recoveryIn(store: InboxStore) {
  return function recover(
    { access, context, idempotency }: ServiceRequest,
    endpoint_id: string,
    body: RecoverDeliveriesBody,
  ): Promise<Reply> {
    const { since, until = Math.max(since, context.at_ms), status, starting_after } = body;
    checkPeriod(since, until, context.at_ms);
    const error = new ApiError(
      "invalid_state",
      "Cannot recover: the endpoint is disabled. Enable it first",
      { current_status: "disabled", allowed: ["enabled"] },
    );
    return store.recover(
      access,
      endpoint_id,
      {
        from: idFloor("whd_", since),
        // The id of a delivery has the millisecond of its creation, and "until" is inclusive.
        before: idFloor("whd_", until + 1),
        after: starting_after ?? null,
        statuses: RECOVERED[status],
      },
      { status: error.status, body: renderError(error, context) },
      idempotency,
    );
  };
}

/** Throws if the period is not within the retention. */
function checkPeriod(since: number, until: number, at_ms: number): void {
  if (since > at_ms) {
    throw invalidParameter("since", '"since" is in the future: send a time that has passed');
  }
  if (since < at_ms - RETENTION_MS) {
    throw invalidParameter(
      "since",
      '"since" is more than 30 days ago: the service keeps deliveries for 30 days',
    );
  }
  if (until < since) {
    throw invalidParameter("until", '"until" is before "since": send a later time');
  }
}
