/**
 * The store of payments, transfers and lists: calls entry functions of the database (schema `pay`),
 * each in one round trip, and turns their outcomes into values or `ApiError`s. Webhooks and API
 * keys have stores of their own (`webhook_store.ts`, `api_key_store.ts`).
 *
 * Every call presents the hash of the caller's key, and the database decides which environment and
 * scopes the key opens. Each call passes the id of the API key to `observe`, for the log.
 */

import { ApiError, invalidParameter } from "../core/errors.ts";
import { idGenerator } from "../core/ids.ts";
import { databaseSpan } from "../core/tracing.ts";
import type { MethodKind } from "../schema/payment_body.ts";
import type { Change, StoredResponse } from "./commit_rows.ts";
import { ChangeCost, COMMIT, commitParameters, type RequestedChange } from "./commit_statement.ts";
import type { Database } from "./database.ts";
import type { EntryCalls } from "./entry_calls.ts";
import type { KnownTenants } from "./known_tenants.ts";
import { LIST, listParameters, type RequestedPage } from "./list_statement.ts";
import {
  LOAD,
  loadParameter,
  type RequestedResource,
  type ResourceKind,
} from "./load_statement.ts";
import { isCheap, isPlain, type PageRequest } from "./page_request.ts";
import { PendingQuota } from "./pending_quota.ts";
import type { OperationRow } from "./operation_row.ts";
import type { StoredAccount } from "./provider_rows.ts";
import type { InstrumentEndReason } from "../schema/instrument.ts";
import { notActive } from "./inactive_instrument.ts";
import { type BatchLimits, batchRequests, type ListRow } from "./request_batcher.ts";
import { CostlyWork } from "../jobs/costly_work.ts";
import { sql } from "./statement.ts";
import { COSTLY_READS } from "../jobs/places.ts";
import {
  type Access,
  type Admitted,
  type Idempotency,
  requestParameter,
  type Responded,
  respondedBy,
  responseOf,
  type Row,
  untilFresh,
} from "./outcome.ts";

/**
 * A stored resource, or the stored response of an earlier request with the same idempotency key.
 */
export type Loaded =
  /** `detail` of a webhook endpoint: revision, secrets, environment and account, as JSON text. */
  | { outcome: "found"; body: string; detail: string | null }
  | { outcome: "replay"; response: StoredResponse };

export type Committed =
  /** `operation`: the one of a provider that the request sends now. */
  | { outcome: "committed"; response: StoredResponse; operation: ReservedOperation | null }
  | { outcome: "replay"; response: StoredResponse }
  /** Another request has changed the resource meanwhile; nothing was written. */
  | { outcome: "stale" }
  /** A new transfer exceeds the available balance; nothing was written. */
  | { outcome: "insufficient" };

interface Page {
  /** The items as JSON text, newest first, separated by commas. */
  data: string;
  has_more: boolean;
  next_cursor: string | null;
  /** The number of items of the list; null: not asked for, or not cheap (`pay.list`). */
  total: number | null;
}

/** An operation that is committed and leased to the request that sends it. */
export interface ReservedOperation
  extends Pick<OperationRow, "id" | "provider_reference" | "created_at" | "reserved"> {
  account: StoredAccount;
}

/** A number about the service, for monitoring. */
export interface Metric {
  name: string;
  help: string;
  value: number;
}

/** Longest wait of several changes for a lock. After it each change is sent alone. */
const HURRIED_MS = 50;

/** A row of `pay.list`: a page, and the environment of the key. */
type PageRow = ListRow & Page;

/** A row of `pay.commit`. */
type CommitRow = ListRow<
  | "stale"
  | "insufficient"
  | "instrument"
  | "unconfigured"
  | "incomplete"
  | "undirected"
  | "uncounted"
>;

/** Most instruments that are kept for a customer, as in `pay_internal.most_kept`. */
const MOST_KEPT = 50;

/** Upper estimate of the characters of a payment. */
const PAYMENT_CHARACTERS = 1_000;

/** Receivers of what a commit has made due. */
interface Listeners {
  /** Called after a commit that made webhook deliveries due. */
  on_due?: () => void;
  /** Called after a commit that made operations of the provider worker due in some time. */
  on_later?: (delay_ms: number) => void;
}

/** The store of payments, transfers and lists. Each method throws `ApiError`. */
export class Store {
  /** The tenants of the keys that the database has admitted. */
  readonly tenants: KnownTenants;
  readonly #database: Database;
  readonly #reads: Database;
  readonly #calls: EntryCalls;
  readonly #listeners: Listeners;
  readonly #costly_reads = new CostlyWork(COSTLY_READS);
  readonly #quotas = new PendingQuota();
  readonly #cost = new ChangeCost();
  readonly #commit: (requested: RequestedChange) => Promise<CommitRow>;
  readonly #loadPayment: (requested: RequestedResource) => Promise<Row>;
  readonly #readPage: (requested: RequestedPage) => Promise<PageRow>;
  #pinging: Promise<unknown> | null = null;

  /**
   * @param reads the same database over a separate connection, for costly reads
   * @param calls the single calls of the same database
   * @param limits of statements that requests share; only measurements pass them
   */
  constructor(
    database: Database,
    reads: Database,
    calls: EntryCalls,
    listeners: Listeners = {},
    limits?: BatchLimits,
  ) {
    this.tenants = calls.tenants;
    this.#database = database;
    this.#reads = reads;
    this.#calls = calls;
    this.#listeners = listeners;
    this.#commit = batchRequests<RequestedChange, CommitRow>(
      this.tenants,
      async (list, is_alone) => {
        const parameters = commitParameters(list, is_alone ? null : HURRIED_MS);
        const rows = await database.attempt<CommitRow>(COMMIT, parameters);
        this.#cost.learn(list, rows);
        return rows;
      },
      (requested) => this.#cost.of(requested),
      limits,
    );
    this.#loadPayment = batchRequests<RequestedResource>(
      this.tenants,
      (list) => database.attempt(LOAD, [loadParameter(list)]),
      () => 0,
      limits,
    );
    this.#readPage = batchRequests<RequestedPage, PageRow>(
      this.tenants,
      (list) => database.attempt(LIST, listParameters(list)),
      ({ page }) => page.limit * PAYMENT_CHARACTERS,
      limits,
    );
  }

  /** Checks the key, and counts the request. Throws `unauthorized` or `permission_denied`. */
  authenticate(access: Access): Promise<void> {
    return databaseSpan("load", "pay.load", () => this.#calls.authenticate(access));
  }

  /** Loads a resource. Throws `not_found` for an id that is not in the key's environment. */
  async load(
    access: Access,
    kind: ResourceKind,
    id: string,
    idempotency: Idempotency | null = null,
  ): Promise<Loaded> {
    const requested = { access, kind, id, idempotency };
    const row = await databaseSpan(
      "load",
      "pay.load",
      () =>
        kind === "payments"
          ? untilFresh(access, () => this.#loadPayment(requested))
          : this.#calls.ask(access, LOAD, [loadParameter([requested])]),
    );
    if (row.outcome === "replay") return { outcome: "replay", response: responseOf(row) };
    return { outcome: "found", body: row.body!, detail: row.detail ?? null };
  }

  async list(access: Access, page: PageRequest): Promise<Page> {
    const requested = { access, page };
    const { data, has_more, next_cursor, total } = await databaseSpan(
      "list",
      "pay.list",
      () =>
        isPlain(page)
          ? untilFresh(access, () => this.#readPage(requested))
          : isCheap(page)
          ? this.#calls.ask<PageRow>(access, LIST, listParameters([requested]))
          : this.#readCostly(requested),
    );
    return { data, has_more, next_cursor, total };
  }

  /**
   * Writes a change whole or not at all, and stores its response under the idempotency key. Throws
   * `provider_not_configured` if the change has an operation and there is no provider for it.
   */
  async commit(
    access: Access,
    change: Change,
    idempotency: Idempotency | null,
  ): Promise<Committed> {
    const row = await databaseSpan(
      "commit",
      "pay.commit",
      () => this.#commitCounted({ access, change, idempotency }),
    );
    const { on_due, on_later } = this.#listeners;
    if (Number(row.deliveries) > 0) on_due?.();
    if (row.outcome === "committed") {
      for (const { delay_ms } of change.operations) if (delay_ms !== null) on_later?.(delay_ms);
      const operation = row.detail ? JSON.parse(row.detail) as ReservedOperation : null;
      return { outcome: "committed", response: change.response, operation };
    }
    if (row.outcome === "unconfigured") throw unconfigured(change.operations[0]!.method_kind);
    if (row.outcome === "incomplete") throw tokenRequired();
    if (row.outcome === "undirected") throw destinationRequired(row.detail as string | null);
    if (row.outcome === "instrument") throw INSTRUMENT_REFUSALS[row.detail as "known"](change);
    if (row.outcome === "replay") return { outcome: "replay", response: responseOf(row) };
    return { outcome: row.outcome === "insufficient" ? "insufficient" : "stale" };
  }

  /** Returns the response to `GET /v1/balance` as JSON text. */
  async balance(access: Access): Promise<string> {
    const balance = sql`select * from pay.balance(p_request => ${requestParameter(access)})`;
    const row = await this.#calls.ask(access, ...balance);
    return row.body!;
  }

  /** Deletes the data of the key's sandbox (ADR 0022). */
  async resetSandbox(
    access: Access,
    idempotency: Idempotency | null,
    with_endpoints: boolean,
  ): Promise<Committed> {
    const row = await this.#calls.ask(
      access,
      ...sql`select * from pay.reset_sandbox(p_request => ${requestParameter(access, idempotency)},
        p_environment_id => ${idGenerator(access.at_ms)("env_")},
        p_with_endpoints => ${with_endpoints}::boolean)`,
    );
    if (row.outcome === "replay") return { outcome: "replay", response: responseOf(row) };
    return { outcome: "committed", response: { status: 200, body: row.body! }, operation: null };
  }

  /**
   * Deletes the bank details of a payment with its refunds, or of a transfer. Throws
   * `invalid_state` while something needs them.
   */
  async deleteBankDetails(
    access: Access,
    idempotency: Idempotency | null,
    id: string,
    response: StoredResponse,
  ): Promise<Responded> {
    const row = await this.#calls.ask<Row<"needed">>(
      access,
      ...sql`select * from pay.delete_bank_details(
        p_request => ${requestParameter(access, idempotency, response)}, p_id => ${id})`,
    );
    if (row.outcome === "needed") throw detailsNeeded(JSON.parse(row.detail!));
    const replayed = row.outcome === "replay";
    return { response: replayed ? responseOf(row) : response, replayed };
  }

  /**
   * Ends an instrument. Throws `invalid_state` while the payment that saves it has no result.
   * @param refusal the stored 409 if that payment was not successful
   */
  async endInstrument(
    access: Access,
    idempotency: Idempotency | null,
    id: string,
    refusal: string,
  ): Promise<Responded> {
    const row = await this.#calls.ask<Row<"pending">>(
      access,
      ...sql`select * from pay.end_instrument(
        p_request => ${requestParameter(access, idempotency)}, p_id => ${id},
        p_refusal => ${refusal})`,
    );
    if (row.outcome === "pending") throw notActive("end", { status: "pending" });
    if (Number(row.deliveries) > 0) this.#listeners.on_due?.();
    return { response: responseOf(row), replayed: row.outcome === "replay" };
  }

  /**
   * Erases a customer by the merchant's own id, or by the e-mail address. Throws `invalid_state`
   * while a payment, refund or dispute of the customer is open.
   */
  async eraseCustomer(
    access: Access,
    idempotency: Idempotency | null,
    { customer_id, email }: { customer_id?: string; email?: string },
  ): Promise<Responded> {
    const row = await this.#calls.ask<Row<"open">>(
      access,
      ...sql`select * from pay.erase_customer(
        p_request => ${requestParameter(access, idempotency)}, p_customer_id => ${customer_id},
        p_email => ${email})`,
    );
    if (row.outcome === "open") throw stillOpen(JSON.parse(row.detail!));
    if (Number(row.deliveries) > 0) this.#listeners.on_due?.();
    return respondedBy(row, 200);
  }

  /** Reads the columns of `pay.health`. */
  readMetrics(): Promise<Metric[]> {
    return this.#database.query<Metric>("select name, help, value from pay.read_metrics()", []);
  }

  /** Checks that the database responds. Throws `service_unavailable`. */
  async ping(): Promise<void> {
    // Concurrent callers share a statement, because the health route has no key and no limit.
    this.#pinging ??= this.#database.query("select 1", []).finally(() => this.#pinging = null);
    await this.#pinging;
  }

  /** Like `calls.ask`, but as a costly read. */
  #readCostly(requested: RequestedPage): Promise<Admitted<PageRow>> {
    const { access } = requested;
    return untilFresh(access, async () => {
      const [row] = await this.#costly_reads.run(
        this.tenants.nameOf(access.key_hash),
        () => this.#reads.query<PageRow>(LIST, listParameters([requested])),
      );
      return row;
    });
  }

  /** Commits a change. Before that it counts the deliveries of a sandbox if the change needs it. */
  async #commitCounted(
    requested: Omit<RequestedChange, "has_quota">,
  ): Promise<Admitted<CommitRow>> {
    const send = (access: Access, has_quota: boolean) =>
      untilFresh(access, () => this.#commit({ ...requested, access, has_quota }));
    const { access } = requested;
    const row = await send(access, this.#quotas.has(access.key_hash));
    if (row.outcome !== "uncounted") return row;
    // Counts against the rate limits, in place of the commit.
    const count = sql`select * from pay.read_pending_quota(
      p_request => ${requestParameter(access)})`;
    const { body } = await this.#calls.ask(access, ...count);
    this.#quotas.note(access.key_hash, Number(body));
    return await send({ ...access, rate_limits: null }, true);
  }
}

function unconfigured(method_kind: MethodKind): ApiError {
  return new ApiError(
    "provider_not_configured",
    `No live provider is configured for "${method_kind}": use a test key, or let the operator ` +
      'run "deno task providers add"',
  );
}

const ended = (why: string) => () =>
  invalidParameter("mandate.id", `${why}: let the payer sign a new one`);

/** The error of a payment that its instrument does not allow, by the detail of `pay.commit`. */
const INSTRUMENT_REFUSALS: Readonly<
  Record<
    | "many"
    | "known"
    | "kept"
    | "iban"
    | "customer"
    | "unreadable"
    | "used"
    | Exclude<InstrumentEndReason, "removed_at_provider">,
    (change: Change) => ApiError
  >
> = {
  many: () =>
    invalidParameter(
      "save",
      `This customer has ${MOST_KEPT} instruments, which is the limit: end one with ` +
        "DELETE /v1/instruments/{id}",
    ),
  known: () =>
    invalidParameter(
      "mandate.id",
      "An earlier payment has this mandate: let the payer sign a new one, or leave the id out",
    ),
  kept: () =>
    invalidParameter(
      "mandate.sequence",
      'This mandate is kept as an instrument: send "recurring", or use the "instrument"',
    ),
  deleted: ended("You have ended this mandate"),
  erased: ended("The customer of this mandate was erased"),
  revoked: ended("The payer's bank says that there is no such mandate any more"),
  account_closed: ended("The account of this mandate is closed or blocked"),
  used_up: ended("The last payment under this mandate was created before"),
  iban: () =>
    invalidParameter(
      "mandate.id",
      "This mandate belongs to another IBAN: let the payer sign a new one for this account",
    ),
  customer: () =>
    invalidParameter(
      "mandate.id",
      'This mandate belongs to another "customer.id": let this customer sign one of their own',
    ),
  unreadable: () =>
    new ApiError(
      "provider_not_configured",
      "The key with which the IBAN of this mandate is known is missing: let the operator put it " +
        "back into BANK_DETAILS_KEYS",
    ),
  used: () =>
    invalidParameter(
      "mandate.sequence",
      'An earlier payment has this mandate: send "recurring" or "final"',
    ),
  idle: ({ instruments }: Change) =>
    instruments?.some(({ act }) => act === "use")
      ? notActive("use", { status: "ended", ended_reason: "idle" })
      : ended("This mandate was not used for 36 months, so it has ended")(),
};

/**
 * Makes the 400 for a refund that no bank could pay to the account from which the money came.
 * @param lacks the member that its details lack; null: they are not known
 */
function destinationRequired(lacks: string | null): ApiError {
  return invalidParameter(
    "destination",
    lacks === null
      ? "The account of the payer is not known: the bank has not named it, several payers have " +
        "paid, or its details were deleted. Send the account to which the money goes as " +
        '"destination"'
      : `The bank has not told the ${lacks} of the payer, which a payment to this account needs: ` +
        `send the account with it as "destination"`,
  );
}

function detailsNeeded({ id, status }: { id: string; status: string }): ApiError {
  return new ApiError(
    "invalid_state",
    status === "exported"
      ? `Cannot delete: the order of ${id} is in a file that the bank has not got yet`
      : `Cannot delete: ${id} is ${status} and can still need the bank details. Wait for its ` +
        "result",
    { current_status: status, allowed: [] },
  );
}

/** Makes the 409 for an erasure of a customer of whom something is open. */
function stillOpen({ id, status }: { id: string; status: string }): ApiError {
  return new ApiError(
    "invalid_state",
    `Cannot erase the customer: ${id} is ${status}. Wait for its result, or end it`,
    { current_status: status, allowed: [] },
  );
}

function tokenRequired(): ApiError {
  return invalidParameter(
    "card",
    'A live payment by card needs the token of the provider: send "card": {"token": "pm_…"}',
  );
}
