/**
 * The store of the live flow: results of operations, provider events, and the work of the provider
 * worker. Each call runs one entry function in one round trip (supabase/schemas/provider_*.sql).
 * No call takes an API key, because the key of a request can be revoked before its result arrives.
 */

import { formatTime } from "../core/clock.ts";
import { databaseSpan } from "../core/tracing.ts";
import { Batcher, GivenUp, sendBatch } from "../jobs/batcher.ts";
import { changedRows, numberedRows, rowArguments } from "./commit_statement.ts";
import { type Database, toApiError } from "./database.ts";
import type { OperationRow } from "./operation_row.ts";
import { callsOf, sql } from "./statement.ts";
import type {
  DepositState,
  ProviderEvent,
  ProviderRecord,
  ProviderTotal,
  ProviderWork,
  RecordOutcome,
  StoredAccount,
  StoredProviderEvent,
} from "./provider_rows.ts";

interface StoredChallenge {
  environment_id: string;
  merchant: string;
  /** JSON text. */
  body: string;
  /** The settings of the sandbox as JSON text; null: it has none. */
  settings: string | null;
}

/** A payment or transfer as it is now. */
interface PresentSubject {
  /** JSON text. */
  subject_body: string;
  /** JSON text; null: no refund. */
  refund_body: string | null;
  /** The dispute of the provider event as JSON text; null: none. */
  dispute_body: string | null;
  /** The amount that the ledger has booked for the provider event. */
  booked_minor: number;
  /** Set for a provider event about a transfer on a chain, else null. */
  deposit: DepositState | null;
}

const RECORD = `select * from pay.record(p_document => $1::text, ${rowArguments(2)})`;
/** The columns of a piece of work, with JSON as text. */
export const WORK_COLUMNS =
  `w.kind, w.environment_id, w.livemode, w.account::text, w.operation::text,
  w.event::text, w.subject_body, w.subject_sequence, w.refund_body, w.cursor::text, w.day::text`;
const LEASE = `select ${WORK_COLUMNS}
  from pay.lease_provider_work(
    p_limit => $1::int, p_asking_limit => $2::int, p_lease_ms => $3::int,
    p_at => $4::text::timestamptz) w`;

/** The rows of a record that changes nothing. */
const NO_ROWS = {
  payment: null,
  transfer: null,
  refunds: [],
  ledger: [],
  events: [],
  operations: [],
  disputes: [],
};

/** The second statement runs while the first waits for a lock. */
const RECORD_LIMITS = { concurrency: 2, most: 32 };

/** The store of the live flow. Each method throws `ApiError`. */
export class ProviderStore {
  readonly #database: Database;
  readonly #rows: ReturnType<typeof callsOf>;
  readonly #on_due: () => void;
  readonly #batcher: Batcher<ProviderRecord, RecordOutcome>;

  /** @param on_due called after a record that made webhook deliveries due */
  constructor(database: Database, on_due: () => void = () => {}) {
    this.#database = database;
    this.#rows = callsOf(database);
    this.#on_due = on_due;
    this.#batcher = new Batcher({ ...RECORD_LIMITS, send: (records) => this.#send(records) });
  }

  /**
   * Writes each record whole or not at all. A list is one transaction; single records share one.
   */
  async record(records: readonly ProviderRecord[]): Promise<RecordOutcome[]> {
    // A list has an order, which a single record does not need.
    const sent = () =>
      records.length === 1
        ? this.#batcher.add(records[0]!).then((outcome) => [outcome])
        : this.#send(records);
    return await databaseSpan("record", "pay.record", sent).catch((error) => {
      throw toApiError(error);
    });
  }

  /**
   * Stores the provider events of an account that are new, for the worker. Returns their number. If
   * the database refuses one, stores the others and throws: the provider event can be money, so its
   * sender has to send it again, and a poll stays at its page.
   */
  async storeProviderEvents(
    account_id: string,
    provider_events: readonly ProviderEvent[],
  ): Promise<number> {
    let stored = 0;
    const refused: unknown[] = [];
    await sendBatch(provider_events, {
      send: async (part) => {
        const [row] = await this.#database.attempt<{ stored: number }>(
          ...sql`select pay.store_provider_events(p_account_id => ${account_id},
            p_events => ${part})::int as stored`,
        );
        stored += row!.stored;
      },
      refuse: (_, error) => refused.push(error),
      in_order: true,
    });
    if (refused.length > 0) throw toApiError(refused[0]);
    return stored;
  }

  /**
   * Stores where the next poll begins. `is_done`: the provider has no more provider events at
   * present.
   */
  async saveCursor(account_id: string, cursor: unknown, is_done: boolean): Promise<void> {
    await this.#rows`pay.save_cursor(p_account_id => ${account_id},
      p_cursor => ${JSON.stringify(cursor)}, p_is_done => ${is_done}::boolean)`;
  }

  /** Stores the place and the sums so far in a day (`YYYY-MM-DD`) whose totals are being read. */
  async saveTotalsCursor(account_id: string, day: string, cursor: unknown): Promise<void> {
    await this.#rows`pay.save_totals_cursor(p_account_id => ${account_id}, p_day => ${day}::date,
      p_cursor => ${JSON.stringify(cursor)})`;
  }

  /** Ends the lease of a reading that is not done, a second later. Another job reads on. */
  async pauseReading(account_id: string): Promise<void> {
    await this.#rows`pay.pause_reading(p_account_id => ${account_id})`;
  }

  /** Records for the operator that a poll has failed. The next page that is read clears it. */
  async stallReading(account_id: string, error: string): Promise<void> {
    await this.#rows`pay.stall_reading(p_account_id => ${account_id}, p_error => ${error})`;
  }

  async storeTotals(
    account_id: string,
    day: string,
    totals: readonly ProviderTotal[],
  ): Promise<void> {
    await this.#rows`pay.store_totals(p_account_id => ${account_id}, p_day => ${day}::date,
      p_totals => ${totals})`;
  }

  /**
   * Leases due work, `asking_limit` pieces that ask a provider at most. Another worker can lease it
   * after `lease_ms`. `given_up`: pieces that the database cannot read, which come again as late.
   */
  async leaseWork(
    limit: number,
    asking_limit: number,
    lease_ms: number,
    at_ms: number,
  ): Promise<{ work: ProviderWork[]; given_up: GivenUp[] }> {
    const parameters = [limit, asking_limit, lease_ms, formatTime(at_ms)];
    type Leased = WorkRow | { kind: "given_up"; operation: string };
    const rows = await this.#database.query<Leased>(LEASE, parameters);
    const given_up: GivenUp[] = [];
    const work = rows.flatMap((row) => {
      if (row.kind !== "given_up") return [readWork(row)];
      const { kind, id, code } = JSON.parse(row.operation);
      given_up.push(new GivenUp(`${kind} ${id}`, { code }));
      return [];
    });
    return { work, given_up };
  }

  /** Counts a signed notification about another account of the provider. */
  async countIgnored(account_id: string): Promise<void> {
    await this.#rows`pay.count_ignored_notification(p_account_id => ${account_id})`;
  }

  /**
   * Reads a payment or transfer as it is now, with a refund and the booking of a provider event, or
   * null.
   */
  async readSubject(
    environment_id: string,
    subject_id: string,
    refund_id: string | null,
    event: Pick<ProviderEvent, "account_id" | "reference" | "object_id"> | null,
  ): Promise<PresentSubject | null> {
    type Row = Omit<PresentSubject, "deposit"> & { transfers: DepositState | null };
    const [row] = await this.#rows<Row>`pay.read_provider_subject(
      p_environment_id => ${environment_id}, p_subject_id => ${subject_id},
      p_refund_id => ${refund_id}, p_account_id => ${event?.account_id},
      p_reference => ${event?.reference}, p_object_id => ${event?.object_id})`;
    if (!row) return null;
    const { transfers: deposit, ...present } = row;
    return { ...present, deposit };
  }

  /** Reads the sandbox payment whose challenge has this token, or null. */
  async readChallenge(token: string): Promise<StoredChallenge | null> {
    const [row] = await this.#rows<StoredChallenge>`pay.read_challenge(p_token => ${token})`;
    return row ?? null;
  }

  /** Returns an account, also a disabled one, or null. */
  async readAccount(id: string): Promise<StoredAccount | null> {
    const [account] = await this.#rows<StoredAccount | null>`
      pay.read_provider_account(p_id => ${id})`;
    return account ?? null;
  }

  async #send(records: readonly ProviderRecord[]): Promise<RecordOutcome[]> {
    type Row = RecordOutcome & { n: number; deliveries: string };
    const rows = await this.#database.attempt<Row>(RECORD, recordParameters(records));
    if (rows.some(({ deliveries }) => Number(deliveries) > 0)) this.#on_due();
    const outcomes: RecordOutcome[] = [];
    for (const { n, outcome, is_settled } of rows) outcomes[n - 1] = { outcome, is_settled };
    return outcomes;
  }
}

/** Reads a row with `WORK_COLUMNS`. */
export function readWork(row: WorkRow): ProviderWork {
  const operation = parsePiece<OperationRow>(row.operation);
  const event = parsePiece<StoredProviderEvent>(row.event);
  return {
    ...row,
    account: JSON.parse(row.account),
    operation: operation.piece,
    event: event.piece,
    dispute_body: event.dispute_body ?? operation.dispute_body,
    deposit: event.deposit,
    cursor: parseOrNull(row.cursor),
  };
}

/** A piece of work, with JSON as text. */
export type WorkRow =
  & Omit<ProviderWork, "account" | "operation" | "event" | "dispute_body" | "deposit" | "cursor">
  & {
    account: string;
    operation: string | null;
    event: string | null;
    cursor: string | null;
  };

/**
 * Reads an operation or a provider event. The database adds the dispute or the address that it is
 * about.
 */
function parsePiece<T extends object>(
  text: string | null,
): { piece: T | null; dispute_body: string | null; deposit: DepositState | null } {
  if (text === null) return { piece: null, dispute_body: null, deposit: null };
  type Parts = { dispute_body?: string | null; transfers?: DepositState | null };
  const { dispute_body = null, transfers: deposit = null, ...piece }: T & Parts = JSON.parse(text);
  return { piece: piece as unknown as T, dispute_body, deposit };
}

/** Makes the parameters of `RECORD`. */
function recordParameters(records: readonly ProviderRecord[]): (string | null)[] {
  return changedRows(records.map(({ change }) => change ?? NO_ROWS), {
    records: records.map((
      { environment_id, operation_id, operation, provider_events, response },
      i,
    ) => ({
      n: i + 1,
      environment_id,
      operation_id,
      operation,
      provider_events,
      status: response?.status ?? null,
      body: response?.body ?? null,
    })),
    expects: numberedRows(records, ({ change }) => {
      if (!change?.expects) return [null];
      const { id, sequence, is_erased } = change.expects;
      return [{ id, sequence, ...(is_erased && { is_erased }) }];
    }),
    reports: numberedRows(records, ({ change, provider_events: [event] }) => {
      const { id, reports, final_minor } = change?.expects ?? {};
      if (event === undefined || reports === undefined) return [];
      const { account_id, object_id } = event;
      return [{ account_id, object_id, count: reports, payment_id: id, final_minor }];
    }),
    counts: numberedRows(
      records,
      ({ counted_as }) => [counted_as === undefined ? null : { counted_as }],
    ),
  });
}

function parseOrNull<T>(text: string | null): T | null {
  return text === null ? null : JSON.parse(text);
}
