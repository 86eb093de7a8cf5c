/**
 * Makes the row and the payload of an event. The payload is text that is made once: the service
 * stores, signs and sends the same bytes (contract §4). Pure.
 */

import { formatTime } from "../../core/clock.ts";
import type { IdGenerator, RandomSource } from "../../core/ids.ts";
import type { EventType } from "../../schema/event_type.ts";
import type { EventRow } from "../../store/commit_rows.ts";

/** The origin of an event: a request, or a worker, which has no request id. */
export interface EventContext {
  request_id: string | null;
  idempotency_key: string | null;
  livemode: boolean;
  at_ms: number;
  newId: IdGenerator;
  random: RandomSource;
  /** URL of the documentation, for `doc_url` of errors; null: errors have none. */
  docs_url: string | null;
  /** The place in a trace from which the event comes (W3C Trace Context). Absent or null: none. */
  traceparent?: string | null;
}

/** The request that makes a change. */
export interface RequestContext extends EventContext {
  request_id: string;
  /**
   * Number of the request in the run of a seeded sandbox; then `newId` and `random` follow from the
   * seed. Null: the sandbox has no seed.
   */
  run_number: number | null;
}

/** Version of the event payload (contract §4). */
const API_VERSION = "v1";

/** The content of an event. */
interface EventContent {
  type: EventType;
  /** The resource whose events `sequence` orders: for a refund, its payment. */
  subject_id: string;
  sequence: number;
  /** The resource as of the event, as JSON text. */
  object: string;
  /** True for an event of a trigger, which changes nothing. */
  triggered?: boolean;
}

/** Makes the row of an event. */
export function eventRow(content: EventContent, context: EventContext): EventRow {
  const { type, subject_id, sequence, object, triggered } = content;
  const id = context.newId("evt_");
  const created_at = formatTime(context.at_ms);
  const { traceparent } = context;
  const head = JSON.stringify({
    id,
    object: "event",
    type,
    api_version: API_VERSION,
    created_at,
    livemode: context.livemode,
    sequence,
    ...(triggered && { triggered }),
  });
  const request = JSON.stringify({
    id: context.request_id,
    idempotency_key: context.idempotency_key,
  });
  return {
    id,
    type,
    subject_id,
    sequence,
    created_at,
    delivery_id: deliveryStem(id),
    body: `${head.slice(0, -1)},"data":{"object":${object}},"request":${request}}`,
    ...(traceparent && { traceparent }),
  };
}

/**
 * Returns the id of the deliveries of an event without the last character, which is that of the
 * endpoint's slot. The ordinal of the event stands before the two characters that
 * `pay_internal.delivery_id` sets, so the deliveries of one change sort by event and then by endpoint.
 */
function deliveryStem(event_id: string): string {
  const suffix = event_id.slice(event_id.indexOf("_") + 1);
  return `whd_${suffix.slice(0, -3)}${suffix.slice(-1)}${suffix.slice(-3, -2)}`;
}
