/**
 * The store of webhook endpoints, deliveries and the dispatcher. Each call runs one entry function
 * in one round trip.
 */

import { formatTime } from "../core/clock.ts";
import type { FAULTS } from "../core/vocabulary.ts";
import type { EventType } from "../schema/event_type.ts";
import type { EndpointDelivery, EndpointStatus } from "../schema/webhook_body.ts";
import type { StoredResponse } from "./commit_rows.ts";
import type { Database } from "./database.ts";
import type { EntryCalls } from "./entry_calls.ts";
import {
  type Access,
  type Admitted,
  type Idempotency,
  requestParameter,
  type Responded,
  responseOf,
  type Row,
  withAnySettings,
} from "./outcome.ts";
import { sql } from "./statement.ts";

/** The stored part of a secret. The master secret and the endpoint's id complete it. */
export interface SecretSource {
  version: number;
  salt: string;
  /** RFC 3339, by the clock of the sandbox; null for the current secret. */
  expires_at: string | null;
  /** RFC 3339: the real time at which the secret ends at the latest. Absent for the current one. */
  ends_at?: string;
}

/** A row of `pay.webhook_endpoints`. */
interface EndpointRow {
  id: string;
  delivery: EndpointDelivery;
  /** Null for an inbox. */
  url: string | null;
  events: string[];
  status: EndpointStatus;
  /** Newest first. */
  secrets: SecretSource[];
  revision: number;
  created_at: string;
  body: string;
}

/** The columns of an endpoint that the dispatcher needs. */
type LoadedEndpoint = Pick<EndpointRow, "revision" | "status" | "body">;

export interface EndpointChange {
  id: string;
  /** The revision on which the decision is based; null for a create. */
  expects_revision: number | null;
  /** The new state; null for a delete. */
  endpoint: EndpointRow | null;
  /** The response to store, with a reference in place of a secret. */
  response: StoredResponse;
}

/**
 * The outcome of a write. `stale`: the endpoint has changed meanwhile. `full`: the environment has
 * all its endpoints. `crowded`: the disposable sandboxes of the account have all theirs.
 * `calling_off`: deliveries of a disabled endpoint or a deleted inbox are still being cancelled.
 * `unread`: the inbox has too many deliveries to send all of them to a URL.
 */
export type Written =
  | { outcome: "committed" | "replay"; response: StoredResponse }
  | { outcome: "stale" | "full" | "crowded" | "calling_off" | "unread" };

export interface LeasedDelivery {
  environment_id: string;
  /** The id of the environment that a reset keeps. The dispatcher counts its leases by it. */
  public_id: string;
  account: string;
  id: string;
  endpoint_id: string;
  event_id: string;
  /**
   * The resource of the event. Deliveries of one endpoint and subject come in the sending order.
   */
  subject_id: string;
  attempt: number;
  /** End of the lease, as text. The database ignores a result with another number or end. */
  leased_until: string;
  url: string;
  /** JSON text of `SecretSource[]`. */
  secrets: string;
  livemode: boolean;
  failing_since: Date | null;
  /**
   * True after an expired lease or a crashed attempt. A dispatcher sends one poison delivery at a
   * time.
   */
  poison: boolean;
  /** The settings of the sandbox as JSON text; null: it has none. */
  settings: string | null;
  /**
   * True after the third expired lease. The dispatcher records a crashed attempt and does not send
   * it.
   */
  crashed: boolean;
  /** The payload. */
  body: string;
  /** The declared fault of this attempt; null: none. */
  fault: typeof FAULTS.delivery[number] | null;
  /** The place in a trace from which the event came (W3C Trace Context); null: none. */
  traceparent: string | null;
}

/** The request of an attempt in a sandbox, and the beginning of its response (ADR 0018). */
export interface AttemptLogEntry {
  url: string;
  /** The headers as JSON text. */
  headers: string;
  /** Null without a response. */
  response: string | null;
  /** True if the response had more bytes. */
  response_truncated: boolean;
}

/** The result of a leased delivery, which it names by the first four members. */
export interface AttemptResult {
  environment_id: string;
  id: string;
  attempt: number;
  leased_until: string;
  /** `released`: the dispatcher made no attempt, and the next lease uses the same number. */
  outcome: "delivered" | "failed" | "released";
  /** RFC 3339; null if there is no further attempt. */
  next_attempt_at: string | null;
  /** The attempt as JSON text; null if there was none. */
  record: string | null;
  /** Of a sandbox: the entry of its log of attempts. */
  log_entry?: AttemptLogEntry;
  /**
   * Of a sandbox with a clock of its own: the time of the next attempt by that clock, or of this
   * attempt if it is the last one. RFC 3339.
   */
  due_at?: string;
}

/** Number of further deliveries that a dispatcher takes of each holder for which it has leases. */
export interface LeaseCapacity {
  endpoints: Readonly<Record<string, number>>;
  /** By public id. */
  environments: Readonly<Record<string, number>>;
  accounts: Readonly<Record<string, number>>;
}

/** The request of a poll: results to record, and limits of new leases. */
export interface DeliveryPoll {
  results: readonly AttemptResult[];
  /** Most leases in total. The next three: most leases of a holder that is not in `capacity`. */
  limit: number;
  per_endpoint: number;
  per_environment: number;
  per_account: number;
  capacity: LeaseCapacity;
  /** Milliseconds by which accounts are ahead (fair_time.ts); null: lease no poison delivery. */
  poison_ahead: Readonly<Record<string, number>> | null;
  at_ms: number;
  leased_until_ms: number;
  /** Ids of endpoints to leave out. */
  excluded: readonly string[];
}

interface FailingEndpoint {
  endpoint_id: string;
  /** The SQLSTATE. */
  code: string;
}

interface TriggeredDelivery {
  endpoint_id: string;
  event_id: string;
  type: EventType;
  subject_id: string;
  body: string;
  traceparent: string | null;
  delivery_id: string;
  /** Null: nobody makes an attempt, and the event goes into the inbox of the endpoint. */
  leased_until_ms: number | null;
}

interface EndedTrigger {
  delivery_id: string;
  delivered: boolean;
  /** The attempt as JSON text. */
  record: string;
  log_entry: AttemptLogEntry | null;
}

interface DisabledEndpoint {
  environment_id: string;
  id: string;
  expects_revision: number;
  at_ms: number;
  body: string;
  event_id: string;
  delivery_id: string;
}

const POLL_DELIVERIES = `select * from pay.poll_deliveries(
  p_results => $1::text, p_capacity => $2::text, p_limit => $3::int,
  p_per_endpoint => $4::int, p_per_environment => $5::int, p_per_account => $6::int,
  p_poison_ahead => $7::text, p_at => $8::text::timestamptz,
  p_leased_until => $9::text::timestamptz, p_excluded => $10::text)`;
/** Milliseconds between two runs of the job of searches, whose ticks come every second or 5 s. */
const WORDS_EVERY_MS = 4_000;

/** A row of `pay.change_webhook_endpoint` or of `pay.redeliver`. */
type ChangeRow = Row<"stale" | "full" | "crowded" | "calling_off" | "unread" | "off">;

/** The stored response of an idempotency key while its triggered attempt is under way. */
const IN_PROGRESS: StoredResponse = { status: 102, body: "" };

/** The store of webhooks. Each method throws `ApiError`. */
export class WebhookStore {
  readonly #database: Database;
  readonly #calls: EntryCalls;
  readonly #on_due: () => void;
  #writing = Promise.resolve();
  #words_from = 0;

  /**
   * @param calls the single calls of the same database
   * @param on_due called after a call that made a delivery due
   */
  constructor(database: Database, calls: EntryCalls, on_due: () => void) {
    this.#database = database;
    this.#calls = calls;
    this.#on_due = on_due;
  }

  /** Writes a change of an endpoint whole or not at all. */
  async changeEndpoint(
    access: Access,
    change: EndpointChange,
    idempotency: Idempotency | null,
  ): Promise<Written> {
    const { id, expects_revision, endpoint, response } = change;
    const row = await this.#calls.ask<ChangeRow>(
      access,
      ...sql`select * from pay.change_webhook_endpoint(
        p_request => ${requestParameter(access, idempotency, response)}, p_id => ${id},
        p_expects_revision => ${expects_revision}::int, p_endpoint => ${endpoint})`,
    );
    return written(row, response);
  }

  /** Makes a delivery due again. Returns `refusal` if its endpoint is deleted or disabled. */
  async redeliver(
    access: Access,
    id: string,
    refusal: StoredResponse,
    idempotency: Idempotency | null,
  ): Promise<Written> {
    const row = await this.#calls.ask<ChangeRow>(
      access,
      ...sql`select * from pay.redeliver(p_request => ${requestParameter(access, idempotency)},
        p_id => ${id}, p_refusal => ${refusal.body})`,
    );
    if (row.outcome === "off") return { outcome: "committed", response: refusal };
    if (row.outcome === "committed") this.#on_due();
    return written(row, { status: 200, body: row.body ?? "" });
  }

  /**
   * Records a triggered event with its delivery and claims the idempotency key. Returns null if the
   * caller must make the attempt, else the response: that of the first request, or the delivery if
   * it is in an inbox. Throws `idempotency_in_progress` while a request with its key is under way.
   */
  async beginTrigger(
    access: Access,
    delivery: TriggeredDelivery,
    idempotency: Idempotency | null,
  ): Promise<Responded | null> {
    const { leased_until_ms, ...rest } = delivery;
    const trigger = {
      ...rest,
      ...(leased_until_ms !== null && { leased_until: formatTime(leased_until_ms) }),
    };
    const request = requestParameter(access, idempotency, IN_PROGRESS);
    const row = await this.#calls.ask(
      access,
      ...sql`select * from pay.begin_trigger(p_request => ${request}, p_trigger => ${trigger})`,
    );
    if (row.outcome === "replay") return { response: responseOf(row), replayed: true };
    if (leased_until_ms !== null) return null;
    this.#on_due();
    return { response: responseOf(row), replayed: false };
  }

  /** Records the attempt. Returns the delivery, and stores it as the response of the key. */
  async endTrigger(
    access: Access,
    { delivery_id, delivered, record, log_entry }: EndedTrigger,
    idempotency: Idempotency | null,
  ): Promise<StoredResponse> {
    const row = await withAnySettings(access, (access) =>
      this.#calls.ask(
        access,
        ...sql`select * from pay.end_trigger(p_request => ${requestParameter(access, idempotency)},
          p_delivery_id => ${delivery_id}, p_delivered => ${delivered}::boolean,
          p_attempt => ${record}, p_entry => ${log_entry})`,
      ));
    return { status: 200, body: row.body! };
  }

  /** Records results and leases due deliveries, of all environments. */
  pollDeliveries(poll: DeliveryPoll): Promise<LeasedDelivery[]> {
    return this.#database.query<LeasedDelivery>(POLL_DELIVERIES, [
      resultsParameter(poll.results),
      JSON.stringify(poll.capacity),
      poll.limit,
      poll.per_endpoint,
      poll.per_environment,
      poll.per_account,
      poll.poison_ahead && JSON.stringify(poll.poison_ahead),
      formatTime(poll.at_ms),
      formatTime(poll.leased_until_ms),
      JSON.stringify(poll.excluded),
    ]);
  }

  /** Finds the endpoints with which a poll fails. Takes as long as a poll for each of them. */
  async findFailingEndpoints(at_ms: number): Promise<FailingEndpoint[]> {
    const failing: FailingEndpoint[] = [];
    for (let after: string | undefined = ""; after !== undefined;) {
      type Row = { endpoint_id: string; code: string | null };
      const rows: Row[] = await this.#database.query<Row>(
        ...sql`select endpoint_id, code from pay.find_failing_endpoints(
          p_at => ${formatTime(at_ms)}::timestamptz, p_after => ${after})`,
      );
      for (const { endpoint_id, code } of rows) {
        if (code !== null) failing.push({ endpoint_id, code });
      }
      after = rows.find(({ code }) => code === null)?.endpoint_id;
    }
    return failing;
  }

  /** Loads an endpoint for the dispatcher; null if it is deleted. */
  async loadEndpoint(environment_id: string, id: string): Promise<LoadedEndpoint | null> {
    const [row] = await this.#database.query<LoadedEndpoint>(
      ...sql`select * from pay.load_webhook_endpoint(
        p_environment_id => ${environment_id}, p_id => ${id})`,
    );
    return row ?? null;
  }

  /** Disables an endpoint. Returns false if it has changed meanwhile. */
  async disableEndpoint(disabled: DisabledEndpoint): Promise<boolean> {
    const { environment_id, id, expects_revision, at_ms, body, event_id, delivery_id } = disabled;
    const [row] = await this.#database.query<{ outcome: "committed" | "stale" }>(
      ...sql`select pay.disable_webhook_endpoint(
        p_environment_id => ${environment_id}, p_id => ${id},
        p_expects_revision => ${expects_revision}::int, p_at => ${formatTime(at_ms)}::timestamptz,
        p_endpoint_body => ${body}, p_event_id => ${event_id},
        p_delivery_id => ${delivery_id}) as outcome`,
    );
    return row!.outcome === "committed";
  }

  /** Deletes a batch of rows after their retention. Returns the number of rows. */
  async purge(at_ms: number): Promise<number> {
    const [row] = await this.#database.query<{ purged: string }>(
      ...sql`select pay.purge(p_at => ${formatTime(at_ms)}::timestamptz)::text as purged`,
    );
    return Number(row!.purged);
  }

  /**
   * Writes the words by which a search finds the newest payments, unless the last run began a
   * moment ago: a run looks at every environment. After an error the next run writes them.
   */
  writeSearchWords(): Promise<void> {
    const now = performance.now();
    if (now < this.#words_from) return this.#writing;
    this.#words_from = now + WORDS_EVERY_MS;
    return this.#writing = this.#writing
      .then(() => this.#database.query("select pay.write_search_words()::text as events", []))
      .then(() => {}, () => {});
  }
}

function written(row: Admitted<ChangeRow>, response: StoredResponse): Written {
  switch (row.outcome) {
    case "committed":
      return { outcome: "committed", response };
    case "replay":
      return { outcome: "replay", response: responseOf(row) };
    case "full":
    case "crowded":
    case "calling_off":
    case "unread":
      return { outcome: row.outcome };
    default:
      return { outcome: "stale" };
  }
}

function resultsParameter(results: readonly AttemptResult[]): string {
  if (results.length === 0) return "{}";
  return JSON.stringify({
    ended: results.filter(({ outcome }) => outcome !== "released")
      .map(({ log_entry: _, ...ended }) => ended),
    released: results.filter(({ outcome }) => outcome === "released")
      .map(({ environment_id, id, attempt, leased_until }) => ({
        environment_id,
        id,
        attempt,
        leased_until,
      })),
    log_entries: results.flatMap(({ environment_id, id, attempt, log_entry }) =>
      log_entry === undefined ? [] : [{ ...log_entry, environment_id, id, attempt }]
    ),
  });
}
