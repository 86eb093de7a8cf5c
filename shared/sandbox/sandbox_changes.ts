/**
 * Reads of "has anything changed?", for pages that show a sandbox (contract §7). A read waits as
 * that of an inbox does: without a connection, and all readers of an isolate share one statement.
 */

import { withoutRateCount } from "../domain/changes/service_request.ts";
import type { Places } from "../jobs/places.ts";
import { WaitingReaders } from "../jobs/waiting_readers.ts";
import type { Changes, ReadChangesQuery } from "../schema/changes.ts";
import { arrayOf, type Database } from "../store/database.ts";
import type { EntryCalls } from "../store/entry_calls.ts";
import { type Access, requestParameter, type Row } from "../store/outcome.ts";
import { sql } from "../store/statement.ts";

/** The position of a sandbox, which moves with everything that a page shows. */
interface Position {
  environment_id: string;
  position: string;
}

export class SandboxChanges {
  readonly #database: Database;
  readonly #calls: EntryCalls;
  readonly #places: Places;
  /** Readers that wait for a change. `position`: the one that they know. */
  readonly readers: WaitingReaders<Position>;

  /** @param calls the single calls of the same database */
  constructor(
    database: Database,
    calls: EntryCalls,
    places: Places,
    on_error: (error: unknown) => void,
  ) {
    this.#database = database;
    this.#calls = calls;
    this.#places = places;
    this.readers = new WaitingReaders((readers) => this.#findMoved(readers), on_error);
  }

  /**
   * Reads the position. While it is `after`, waits for a change, but no longer than `wait` seconds
   * or until the signal aborts. Throws `ApiError`; `rate_limited` also means that too many reads
   * wait.
   */
  async read(
    access: Access,
    { after, wait }: ReadChangesQuery,
    signalOf: () => AbortSignal,
  ): Promise<Changes> {
    let reading = access;
    const { position } = await this.readers.read<Position>({
      patience_ms: wait * 1000,
      read: async () => {
        const row = await this.#calls.ask<Row & { environment_id: string }>(
          reading,
          ...sql`select * from pay.read_position(p_request => ${requestParameter(reading)})`,
        );
        access.retries.restart();
        reading = withoutRateCount(access);
        return { environment_id: row.environment_id, position: row.body! };
      },
      isEmpty: ({ position }) => position === after,
      readerOf: (found) => found,
      hold: (waitForChange) => this.#hold(access, waitForChange),
      signalOf,
    });
    return { object: "changes", changed: position !== after, next_cursor: position };
  }

  close(): void {
    this.readers.close();
  }

  /** A page leaves half of the waits of its account to programs. */
  #hold({ key_hash }: Access, waitForChange: () => Promise<void>): Promise<void> {
    const account = [this.#calls.tenants.nameOf(key_hash)] as const;
    const { long_waits, page_waits } = this.#places;
    return page_waits.run(account, () => long_waits.run(account, waitForChange));
  }

  /** Readers of one sandbox share its position. */
  async #findMoved(readers: readonly Position[]): Promise<Position[]> {
    const ids = new Set(readers.map(({ environment_id }) => environment_id));
    const rows = await this.#database.query<Position>(
      ...sql`select environment_id, position
        from pay.sandbox_positions(p_environments => ${arrayOf(ids)}::text[])`,
    );
    const found = new Map(rows.map(({ environment_id, position }) => [environment_id, position]));
    return readers.filter(({ environment_id, position }) => found.get(environment_id) !== position);
  }
}
