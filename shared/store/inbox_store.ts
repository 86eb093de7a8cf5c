/** The store of inboxes and of recovery. Each call runs one entry function in one round trip. */

import type { StoredResponse } from "./commit_rows.ts";
import type { Database } from "./database.ts";
import type { EntryCalls } from "./entry_calls.ts";
import {
  type Access,
  type Idempotency,
  listedAccess,
  requestParameter,
  type Responded,
  responseOf,
  type Row,
} from "./outcome.ts";
import type { LeasedDelivery, SecretSource } from "./webhook_store.ts";

export interface InboxPage {
  environment_id: string;
  /** The id of the environment that a reset keeps. */
  public_id: string;
  account: string;
  /** All deliveries up to this position are in this page or before it. */
  position: number;
  /** The position of the newest delivery. */
  newest: number;
  /** Newest first. */
  secrets: SecretSource[];
  /**
   * In the order of the inbox. `attempt`: how often the delivery was added to the inbox. `fault`:
   * the declared fault of this attempt; null: none.
   */
  data: {
    id: string;
    event_id: string;
    attempt: number;
    fault: LeasedDelivery["fault"];
    body: string;
    traceparent: string | null;
  }[];
}

/** A reader that waits for deliveries after a position. */
export interface WaitingReader {
  environment_id: string;
  endpoint_id: string;
  after: number;
}

interface MissedDeliveries {
  /** Bounds of the ids: from `from`, before `before`, and after `after` unless it is null. */
  from: string;
  before: string;
  after: string | null;
  statuses: readonly string[];
}

const READ = `select * from pay.read_inbox(
  p_request => $1::text, p_id => $2::text, p_after => $3::text::bigint, p_most => $4::int)`;
const CHANGED = `select endpoint_id from pay.changed_inboxes(p_waiting => $1::text)`;
const RECOVER = `select * from pay.recover_deliveries(
  p_request => $1::text, p_id => $2::text, p_from => $3::text, p_before => $4::text,
  p_after => $5::text, p_statuses => $6::text::text[], p_refusal => $7::text)`;

/** A row of `pay.read_inbox`. */
type ReadRow = Row<"no_inbox" | "unknown_position"> & { environment_id: string };

/** The store of inboxes and of recovery. The first and the last throw `ApiError`. */
export class InboxStore {
  readonly #database: Database;
  readonly #calls: EntryCalls;
  readonly #on_due: () => void;

  /**
   * @param calls the single calls of the same database
   * @param on_due called after a call that made a delivery due
   */
  constructor(database: Database, calls: EntryCalls, on_due: () => void) {
    this.#database = database;
    this.#calls = calls;
    this.#on_due = on_due;
  }

  /**
   * Reads deliveries after a position and acknowledges those up to it. `no_inbox`: the endpoint has
   * a URL. `unknown_position`: the position is beyond the newest delivery.
   * @param after null: the position that the receiver has acknowledged
   */
  async read(
    access: Access,
    endpoint_id: string,
    after: number | null,
    limit: number,
  ): Promise<InboxPage | "no_inbox" | "unknown_position"> {
    const request = JSON.stringify([listedAccess(access, 0)]);
    const position = after === null ? null : String(after);
    const row = await this.#calls.ask<ReadRow>(access, READ, [
      request,
      endpoint_id,
      position,
      limit,
    ]);
    if (row.outcome === "no_inbox" || row.outcome === "unknown_position") return row.outcome;
    return { environment_id: row.environment_id, ...JSON.parse(row.body!) };
  }

  /** Returns the ids of the endpoints whose inboxes have changed, one statement for all readers. */
  async changed(readers: readonly WaitingReader[]): Promise<string[]> {
    const rows = await this.#database.query<{ endpoint_id: string }>(CHANGED, [
      JSON.stringify(readers),
    ]);
    return rows.map(({ endpoint_id }) => endpoint_id);
  }

  /** Makes missed deliveries pending. Returns `refusal` if the endpoint is disabled. */
  async recover(
    access: Access,
    endpoint_id: string,
    { from, before, after, statuses }: MissedDeliveries,
    refusal: StoredResponse,
    idempotency: Idempotency | null,
  ): Promise<Responded> {
    const row = await this.#calls.ask<Row<"off">>(access, RECOVER, [
      requestParameter(access, idempotency, { status: 202, body: "" }),
      endpoint_id,
      from,
      before,
      after,
      `{${statuses.join()}}`,
      refusal.body,
    ]);
    if (row.outcome === "committed") this.#on_due();
    return { response: responseOf(row), replayed: row.outcome === "replay" };
  }
}
