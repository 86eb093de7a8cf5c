/** The statement that commits a list of changes (`pay.commit`, ADR 0001). */

import { Buffer } from "node:buffer";
import type { Change, ChangedRows, StoredResponse } from "./commit_rows.ts";
import {
  type Access,
  type Idempotency,
  keyedRequest,
  requestsText,
  type StoredBytes,
} from "./outcome.ts";
import { rowText } from "./row_text.ts";

export interface RequestedChange {
  access: Access;
  change: Change;
  idempotency: Idempotency | null;
  /** True: the sandbox may have more pending deliveries. Otherwise they can be uncounted. */
  has_quota: boolean;
}

/** The columns of the types `pay_internal.payment_row` to `pay_internal.event_row`, after n. */
const COLUMNS = {
  payments: `id status amount_minor amount_refunded amount_refunding amount_released amount_disputed
    currency method_kind reference customer_id instrument_id checkout_id sequence created_at
    updated_at body`,
  transfers: "id status amount_minor currency sequence created_at updated_at body",
  refunds: "id payment_id status amount_minor currency created_at is_to_payer body",
  disputes: "id payment_id status amount_minor currency provider_reference created_at body",
  ledger: `transaction_id leg kind subject_id refund_id debit_account credit_account amount_minor
    currency created_at`,
  events: `id type subject_id sequence created_at delivery_id request_id idempotency_key traceparent
    object before`,
};
type Kind = keyof typeof COLUMNS;
const KINDS = Object.entries(COLUMNS)
  .map(([kind, names]) => ({ kind: kind as Kind, columns: names.split(/\s+/) }));

/** Returns the arguments of a statement that are rows of changes, from a place on. */
export function rowArguments(place: number): string {
  return KINDS.map(({ kind }, i) => `p_${kind} => $${place + i}::text`).join(", ");
}

/** The statement. The benchmark runs the same text with pgbench. */
export const COMMIT = `select * from pay.commit(p_document => $1::text, p_patience_ms => $2::int,
  p_requests => $3::text, ${rowArguments(4)})`;

/**
 * Returns the parameters of `COMMIT`.
 * @param patience_ms longest wait for a lock; null: as long as a concurrent duplicate waits
 */
export function commitParameters(
  list: readonly RequestedChange[],
  patience_ms: number | null,
): (string | number | null)[] {
  const changes = list.map(({ change }) => change);
  const requests = requestsText(list.map(({ access, change, idempotency, has_quota }, i) => ({
    ...keyedRequest(access, idempotency, responseOf(change), i, () => storedBy(change)),
    ...(idempotency && subjectOf(change)),
    ...(has_quota && { has_quota }),
  })));
  const [document, ...rows] = changedRows(changes, {
    expects: numberedRows(changes, ({ expects }) => [expects]),
    faults: numberedRows(changes, ({ fault_id: id }) => [id === undefined ? null : { id }]),
  });
  return [document!, patience_ms, requests, ...rows];
}

/** The bytes of a row beside its text: ids, amounts, times, and its entries in indexes. */
const ROW_BYTES = 300;
/** The bytes of the words by which a search finds a payment, with their entries in indexes. */
const WORDS_BYTES = 600;

/** Estimates what a change adds to its sandbox, without the deliveries of its events. */
function storedBy(change: Change): StoredBytes {
  const { expects, payment, transfer, refunds, disputes, ledger, events, operations, instruments } =
    change;
  const texts = [responseOf(change).body];
  // The text of a changed payment replaces the one before.
  if (expects === null) texts.push(payment?.body, transfer?.body);
  for (const { body } of [...refunds, ...disputes]) texts.push(body);
  for (const { object, before } of events) texts.push(object, ...before ?? []);
  for (const { request } of operations) texts.push(JSON.stringify(request));
  for (const row of instruments ?? []) texts.push(JSON.stringify(row));
  const rows = texts.length + refunds.length + ledger.length + 2 * operations.length;
  let bytes = rows * ROW_BYTES + (expects === null && payment ? WORDS_BYTES : 0);
  for (const text of texts) bytes += Buffer.byteLength(text ?? "");
  return { bytes, events: events.length };
}

/** Returns the response to store, without a body that is the resource's: it is stored once. */
function responseOf(
  { response, payment, transfer }: Change,
): Pick<StoredResponse, "status"> & Partial<StoredResponse> {
  return response.body === (payment ?? transfer)?.body ? { status: response.status } : response;
}

function subjectOf({ response, payment, transfer, expects }: Change) {
  const row = payment ?? transfer;
  const subject_id = row?.id ?? expects?.id;
  return { subject_id, ...(response.body === row?.body && { sequence: row.sequence }) };
}

/**
 * Returns the document of changes, and the arguments that are rows of them. The first line of the
 * document is JSON. Rows name their texts by the numbers of further lines: a JSON text has no line
 * break and no tab outside of its escapes.
 * @param members of the document, beside those of a change
 */
export function changedRows(list: readonly ChangedRows[], members: object): (string | null)[] {
  const lines = [JSON.stringify({
    instruments: numberedRows(list, ({ instruments }) => instruments ?? []),
    checkouts: numberedRows(list, ({ checkouts }) => checkouts ?? []),
    operations: numberedRows(list, ({ operations }) => operations),
    ...members,
  })];
  const addLine = (text: string) => {
    if (text.includes("\n")) throw new Error("A text of a change has a line break");
    return lines.push(text);
  };
  const texts = KINDS.map(({ kind, columns }) => {
    const rows = list.flatMap((change, i) =>
      rowsIn(change, kind).flatMap((row) => row ? rowText(columns, row, i + 1, addLine) : [])
    );
    return rows.length === 0 ? null : `{${rows.join()}}`;
  });
  return [lines.join("\n"), ...texts];
}

function rowsIn(change: ChangedRows, kind: Kind): readonly (object | null)[] {
  if (kind === "payments") return [change.payment];
  return kind === "transfers" ? [change.transfer] : change[kind];
}

/**
 * Returns a member of the document (`pay_internal.document`), absent without rows. `n` of a row is
 * the place of its change in the list, from 1.
 */
export function numberedRows<From, Row extends object>(
  list: readonly From[],
  rowsOf: (change: From) => readonly (Row | null)[],
): (Row & { n: number })[] | undefined {
  const rows: (Row & { n: number })[] = [];
  for (let n = 1; n <= list.length; n++) {
    for (const row of rowsOf(list[n - 1]!)) if (row !== null) rows.push({ n, ...row });
  }
  return rows.length === 0 ? undefined : rows;
}

/** Characters that cost PostgreSQL as much as a delivery of an event. */
const DELIVERY_CHARACTERS = 200;
/** The part of the deliveries of each event that stays known when a statement has fewer. */
const MEMORY = 0.75;

/**
 * Estimates the cost of changes, as a number of characters. An event can have a delivery to each of
 * 64 endpoints; how many, the last statements tell.
 */
export class ChangeCost {
  #deliveries_of_event = 0;

  /** Learns from a statement. The rows tell the deliveries of the whole list. */
  learn(list: readonly RequestedChange[], [row]: readonly { deliveries?: string | null }[]): void {
    const events = list.reduce((sum, { change }) => sum + change.events.length, 0);
    if (events === 0) return;
    const deliveries_of_event = Number(row?.deliveries ?? 0) / events;
    this.#deliveries_of_event = Math.max(deliveries_of_event, this.#deliveries_of_event * MEMORY);
  }

  of({ change }: RequestedChange): number {
    const { response, payment, transfer, refunds, disputes, events } = change;
    let characters = response.body.length + (payment?.body.length ?? 0) +
      (transfer?.body.length ?? 0);
    for (const { body } of refunds) characters += body.length;
    for (const { body } of disputes) characters += body.length;
    // Each row has about 200 characters of ids, names and times.
    const of_event = 200 + this.#deliveries_of_event * DELIVERY_CHARACTERS;
    for (const { object = "", before = [] } of events) {
      characters += of_event + object.length;
      for (const splice of before) characters += splice.length;
    }
    return characters;
  }
}
