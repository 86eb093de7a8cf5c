/** The store of inboxes and of recovery. Each call runs one entry function in one round trip. */

import type { StoredResponse } from "./commit_rows.ts";
import { arrayOf, type Database } from "./database.ts";
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
import { sql } from "./statement.ts";
import type { LeasedDelivery, SecretSource } from "./webhook_store.ts";

export interface InboxPage {
  environment_id: string;
  /** The id of the environment that a reset keeps. */
  public_id: string;
  account: string;
  /** All deliveries up to this position are in this page or before it. */
  position: number;
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
    const row = await this.#calls.ask<ReadRow>(
      access,
      ...sql`select * from pay.read_inbox(p_request => ${[listedAccess(access, 0)]},
        p_id => ${endpoint_id}, p_after => ${after}::bigint, p_most => ${limit}::int)`,
    );
    if (row.outcome === "no_inbox" || row.outcome === "unknown_position") return row.outcome;
    return { environment_id: row.environment_id, ...JSON.parse(row.body!) };
  }

  /** Returns the ids of the endpoints whose inboxes have changed, one statement for all readers. */
  async changed(readers: readonly WaitingReader[]): Promise<string[]> {
    const rows = await this.#database.query<{ endpoint_id: string }>(
      ...sql`select endpoint_id from pay.changed_inboxes(p_waiting => ${readers})`,
    );
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
    const request = requestParameter(access, idempotency, { status: 202, body: "" });
    const row = await this.#calls.ask<Row<"off">>(
      access,
      ...sql`select * from pay.recover_deliveries(p_request => ${request}, p_id => ${endpoint_id},
        p_from => ${from}, p_before => ${before}, p_after => ${after},
        p_statuses => ${arrayOf(statuses)}::text[], p_refusal => ${refusal.body})`,
    );
    if (row.outcome === "committed") this.#on_due();
    return { response: responseOf(row), replayed: row.outcome === "replay" };
  }
}
