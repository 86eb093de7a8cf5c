/**
 * The store of the live flow: results of operations, provider events, and the work of the provider
 * worker. Each call runs one entry function in one round trip (supabase/schemas/provider_*.sql).
 * No call takes an API key, because the key of a request can be revoked before its result arrives.
 */

import { formatTime } from "../core/clock.ts";
import { databaseSpan } from "../core/tracing.ts";
import { Batcher, GivenUp, sendBatch } from "../jobs/batcher.ts";
import { changedRows, numberedRows } from "./commit_statement.ts";
import { type Database, toApiError } from "./database.ts";
import type { OperationRow } from "./operation_row.ts";
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

const RECORD = `select * from pay.record(p_document => $1::text)`;
const STORE_PROVIDER_EVENTS =
  `select pay.store_provider_events(p_account_id => $1::text, p_events => $2::text)::int as stored`;
const SAVE_CURSOR = `select pay.save_cursor(
  p_account_id => $1::text, p_cursor => $2::text, p_is_done => $3::text::boolean)`;
const SAVE_TOTALS_CURSOR = `select pay.save_totals_cursor(
  p_account_id => $1::text, p_day => $2::text::date, p_cursor => $3::text)`;
const PAUSE_READING = `select pay.pause_reading(p_account_id => $1::text)`;
const STALL_READING = `select pay.stall_reading(p_account_id => $1::text, p_error => $2::text)`;
const STORE_TOTALS = `select pay.store_totals(
  p_account_id => $1::text, p_day => $2::text::date, p_totals => $3::text)`;
/** The columns of a piece of work, with JSON as text. */
export const WORK_COLUMNS =
  `w.kind, w.environment_id, w.livemode, w.account::text, w.operation::text,
  w.event::text, w.subject_body, w.subject_sequence, w.refund_body, w.cursor::text, w.day::text`;
const LEASE = `select ${WORK_COLUMNS}
  from pay.lease_provider_work(
    p_limit => $1::int, p_asking_limit => $2::int, p_lease_ms => $3::int,
    p_at => $4::text::timestamptz) w`;
const COUNT_IGNORED = `select pay.count_ignored_notification(p_account_id => $1::text)`;
const READ_SUBJECT = `select subject_body, refund_body, dispute_body, booked_minor::text,
    transfers::text as deposit
  from pay.read_provider_subject(p_environment_id => $1::text, p_subject_id => $2::text,
    p_refund_id => $3::text, p_account_id => $4::text, p_reference => $5::text,
    p_object_id => $6::text)`;
const READ_CHALLENGE = `select * from pay.read_challenge(p_token => $1::text)`;
const READ_ACCOUNT = `select pay.read_provider_account(p_id => $1::text)::text as account`;

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
  readonly #on_due: () => void;
  readonly #batcher: Batcher<ProviderRecord, RecordOutcome>;

  /** @param on_due called after a record that made webhook deliveries due */
  constructor(database: Database, on_due: () => void = () => {}) {
    this.#database = database;
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
        const parameters = [account_id, JSON.stringify(part)];
        const [row] = await this.#database.attempt<{ stored: number }>(
          STORE_PROVIDER_EVENTS,
          parameters,
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
    await this.#database.query(SAVE_CURSOR, [account_id, JSON.stringify(cursor), String(is_done)]);
  }

  /** Stores the place and the sums so far in a day (`YYYY-MM-DD`) whose totals are being read. */
  async saveTotalsCursor(account_id: string, day: string, cursor: unknown): Promise<void> {
    await this.#database.query(SAVE_TOTALS_CURSOR, [account_id, day, JSON.stringify(cursor)]);
  }

  /** Ends the lease of a reading that is not done, a second later. Another job reads on. */
  async pauseReading(account_id: string): Promise<void> {
    await this.#database.query(PAUSE_READING, [account_id]);
  }

  /** Records for the operator that a poll has failed. The next page that is read clears it. */
  async stallReading(account_id: string, error: string): Promise<void> {
    await this.#database.query(STALL_READING, [account_id, error]);
  }

  async storeTotals(
    account_id: string,
    day: string,
    totals: readonly ProviderTotal[],
  ): Promise<void> {
    await this.#database.query(STORE_TOTALS, [account_id, day, JSON.stringify(totals)]);
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
    await this.#database.query(COUNT_IGNORED, [account_id]);
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
    type Row = Omit<PresentSubject, "booked_minor" | "deposit"> & {
      booked_minor: string;
      deposit: string | null;
    };
    const { account_id = null, reference = null, object_id = null } = event ?? {};
    const named = [account_id, reference, object_id];
    const parameters = [environment_id, subject_id, refund_id, ...named];
    const [row] = await this.#database.query<Row>(READ_SUBJECT, parameters);
    if (!row) return null;
    const { booked_minor, deposit, ...bodies } = row;
    return { ...bodies, booked_minor: Number(booked_minor), deposit: parseOrNull(deposit) };
  }

  /** Reads the sandbox payment whose challenge has this token, or null. */
  async readChallenge(token: string): Promise<StoredChallenge | null> {
    const [row] = await this.#database.query<StoredChallenge>(READ_CHALLENGE, [token]);
    return row ?? null;
  }

  /** Returns an account, also a disabled one, or null. */
  async readAccount(id: string): Promise<StoredAccount | null> {
    const [row] = await this.#database.query<{ account: string | null }>(READ_ACCOUNT, [id]);
    return parseOrNull<StoredAccount>(row!.account);
  }

  async #send(records: readonly ProviderRecord[]): Promise<RecordOutcome[]> {
    type Row = RecordOutcome & { n: number; deliveries: string };
    const rows = await this.#database.attempt<Row>(RECORD, [recordDocument(records)]);
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

/** Makes the parameter of `RECORD`. */
function recordDocument(records: readonly ProviderRecord[]): string {
  return JSON.stringify({
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
    ...changedRows(records.map(({ change }) => change ?? NO_ROWS)),
  });
}

function parseOrNull<T>(text: string | null): T | null {
  return text === null ? null : JSON.parse(text);
}
