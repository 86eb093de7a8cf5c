/**
 * Makes the rows of events. The payload of an event is the same text whenever it is signed, sent
 * or read (contract §4). Pure.
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

export interface RequestContext extends EventContext {
  request_id: string;
  /**
   * Number of the request in the run of a seeded sandbox; then `newId` and `random` follow from the
   * seed. Null: the sandbox has no seed.
   */
  run_number: number | null;
}

/** Version of the event payload (contract §4), also in `pay_internal.event_body`. */
const API_VERSION = "v1";

interface EventContent {
  type: EventType;
  /** The resource whose events `sequence` orders: for a refund, its payment. */
  subject_id: string;
  sequence: number;
  /** The object that the event shows, as JSON text; null: the resource as of the event. */
  object: string | null;
  /** The splices that undo the event in the text of the resource; null: none. */
  before: string[] | null;
}

/** Makes the row of an event. The database composes the payload (`pay_internal.event_body`). */
export function eventRow(content: EventContent, context: EventContext): EventRow {
  const { type, subject_id, sequence, object, before } = content;
  const { request_id, idempotency_key, traceparent } = context;
  const id = context.newId("evt_");
  return {
    id,
    type,
    subject_id,
    sequence,
    created_at: formatTime(context.at_ms),
    delivery_id: deliveryStem(id),
    ...(object !== null && { object }),
    ...(before !== null && { before }),
    ...(request_id !== null && { request_id }),
    ...(idempotency_key !== null && { idempotency_key }),
    ...(traceparent && { traceparent }),
  };
}

/** An event of a trigger, which changes nothing, with its payload. */
export type TriggeredEvent = Pick<EventRow, "id" | "type" | "subject_id" | "delivery_id"> & {
  /** JSON text. */
  body: string;
  request_id: string | null;
  traceparent: string | null;
};

export function triggeredEvent(
  { type, subject_id, sequence, object }: Omit<EventContent, "before"> & { object: string },
  context: EventContext,
): TriggeredEvent {
  const id = context.newId("evt_");
  const { livemode, request_id, traceparent = null } = context;
  const created_at = formatTime(context.at_ms);
  const head = JSON.stringify({
    ...{ id, object: "event", type, api_version: API_VERSION, created_at, livemode, sequence },
    triggered: true,
  });
  const request = JSON.stringify({
    id: request_id,
    idempotency_key: context.idempotency_key,
  });
  const body = `${head.slice(0, -1)},"data":{"object":${object}},"request":${request}}`;
  return { id, type, subject_id, delivery_id: deliveryStem(id), body, request_id, traceparent };
}

/**
 * Returns the id of the deliveries of an event without the last character, which is that of the
 * endpoint's slot. The ordinal of the event stands before the two characters that
 * `pay_internal.delivery_id` sets, so the deliveries of one change sort by event and then by
 * endpoint.
 */
function deliveryStem(event_id: string): string {
  const suffix = event_id.slice(event_id.indexOf("_") + 1);
  return `whd_${suffix.slice(0, -3)}${suffix.slice(-1)}${suffix.slice(-3, -2)}`;
}
