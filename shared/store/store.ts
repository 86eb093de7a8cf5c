/**
 * The only TypeScript with SQL: calls the entry functions of the database (schema `pay`), each in
 * one round trip, and turns their outcomes into values or `ApiError`s.
 *
 * Every call presents the hash of the caller's key; the database decides what it opens. `observe`
 * is told the API key's id once the database has named it, for the log.
 */

import { ApiError } from "../core/errors.ts";
import { formatTime } from "../core/clock.ts";
import type { Answer, Change } from "./change.ts";
import type { Database } from "./database.ts";

/** Who asks, and when. */
export interface Access {
  /** Lower-case hex SHA-256 of the key text. */
  key_hash: string;
  /** The scope that the operation needs; null when any key will do. */
  scope: string | null;
  at_ms: number;
  request_id: string;
  /** Told the API key's id. */
  observe: (api_key_id: string) => void;
}

/** The idempotency key of a request, with the fingerprint of what it asks. */
export interface Idempotency {
  key: string;
  /** Lower-case hex SHA-256. */
  fingerprint: string;
}

/** Kinds of resources that are stored with their body. */
export type ResourceKind = "payments" | "refunds";
/** Kinds of resources that can be listed. */
export type ListKind = ResourceKind | "ledger_entries";

/** A stored resource, or the kept answer of an earlier request with the same key. */
export type Loaded = { outcome: "found"; body: string } | { outcome: "replay"; answer: Answer };

/** What came of a change. */
export type Committed =
  | { outcome: "committed"; answer: Answer }
  | { outcome: "replay"; answer: Answer }
  | { outcome: "stale" };

/** A page of a list: the bodies joined by commas, newest first. */
export interface Page {
  data: string;
  has_more: boolean;
  next_cursor: string | null;
}

/** What a page is of. */
export interface PageRequest {
  kind: ListKind;
  limit: number;
  starting_after: string | null;
  filters: Record<string, string | undefined>;
  /** A payment that must exist for the list to exist. */
  parent_id?: string;
}

/** The service's memory. */
export interface Store {
  /** Throws `unauthorized` or `permission_denied` unless the key opens its environment. */
  authenticate(access: Access): Promise<void>;
  /** Throws `not_found` for an id that the key's environment does not hold. */
  load(
    access: Access,
    kind: ResourceKind,
    id: string,
    idempotency?: Idempotency | null,
  ): Promise<Loaded>;
  list(access: Access, request: PageRequest): Promise<Page>;
  /** Writes a change whole or not at all, with its answer kept under the idempotency key. */
  commit(access: Access, change: Change, idempotency: Idempotency | null): Promise<Committed>;
  /** Empties the key's sandbox. */
  resetSandbox(access: Access, idempotency: Idempotency | null): Promise<Committed>;
  /** Whether the database answers. Throws `service_unavailable`. */
  ping(): Promise<void>;
}

const LOAD = `select * from pay.load(
  p_key_hash => $1::text, p_scope => $2::text, p_at => $3::text::timestamptz,
  p_kind => $4::text, p_id => $5::text,
  p_idempotency_key => $6::text, p_fingerprint => $7::text)`;
const LIST = `select * from pay.list(
  p_key_hash => $1::text, p_scope => $2::text, p_at => $3::text::timestamptz,
  p_kind => $4::text, p_limit => $5::int, p_starting_after => $6::text,
  p_filters => $7::text, p_parent_id => $8::text)`;
/** Exported for the benchmark, which issues the very same statement by pgbench. */
export const COMMIT = `select * from pay.commit(
  p_changes => $1::text, p_payments => $2::text, p_refunds => $3::text,
  p_ledger => $4::text, p_events => $5::text)`;
const RESET = `select * from pay.reset_sandbox(
  p_key_hash => $1::text, p_scope => $2::text, p_at => $3::text::timestamptz,
  p_request_id => $4::text, p_idempotency_key => $5::text, p_fingerprint => $6::text)`;

/** How often a request is sent again when an answer older than 24 hours was in its way. */
const EXPIRED_TRIES = 3;

interface Row {
  outcome: string;
  api_key_id: string | null;
  status: number | null;
  body: string | null;
}

/** A store over one database. */
export function createStore(database: Database): Store {
  async function load(
    access: Access,
    kind: ResourceKind | null,
    id: string | null,
    idempotency: Idempotency | null = null,
  ): Promise<Row> {
    const [row] = await database.query<Row>(LOAD, [
      access.key_hash,
      access.scope,
      formatTime(access.at_ms),
      kind,
      id,
      idempotency?.key ?? null,
      idempotency?.fingerprint ?? null,
    ]);
    return admit(access, row);
  }

  async function untilFresh(attempt: () => Promise<Row>): Promise<Row> {
    let row = await attempt();
    for (let i = 0; i < EXPIRED_TRIES && row.outcome === "expired"; i++) row = await attempt();
    return row;
  }

  return {
    async authenticate(access) {
      await load(access, null, null);
    },

    async load(access, kind, id, idempotency) {
      const row = await load(access, kind, id, idempotency);
      if (row.outcome === "replay") return { outcome: "replay", answer: answerOf(row) };
      return { outcome: "found", body: row.body! };
    },

    async list(access, request) {
      const [row] = await database.query<Row & Page>(LIST, [
        access.key_hash,
        access.scope,
        formatTime(access.at_ms),
        request.kind,
        request.limit,
        request.starting_after,
        JSON.stringify(request.filters),
        request.parent_id ?? null,
      ]);
      admit(access, row);
      return { data: row!.data, has_more: row!.has_more, next_cursor: row!.next_cursor };
    },

    async commit(access, change, idempotency) {
      const parameters = commitParameters(access, change, idempotency);
      const row = await untilFresh(async () => {
        const [row] = await database.query<Row>(COMMIT, parameters);
        return admit(access, row);
      });
      if (row.outcome === "committed") return { outcome: "committed", answer: change.answer };
      if (row.outcome === "replay") return { outcome: "replay", answer: answerOf(row) };
      return { outcome: "stale" };
    },

    async resetSandbox(access, idempotency) {
      const row = await untilFresh(async () => {
        const [row] = await database.query<Row>(RESET, [
          access.key_hash,
          access.scope,
          formatTime(access.at_ms),
          access.request_id,
          idempotency?.key ?? null,
          idempotency?.fingerprint ?? null,
        ]);
        return admit(access, row);
      });
      if (row.outcome === "replay") return { outcome: "replay", answer: answerOf(row) };
      return { outcome: "committed", answer: { status: 200, body: row.body! } };
    },

    async ping() {
      await database.query("select 1", []);
    },
  };
}

/** The parameters of `pay.commit` for one change; a list of one. */
export function commitParameters(
  access: Access,
  change: Change,
  idempotency: Idempotency | null,
): string[] {
  const numbered = <T>(rows: readonly T[]) =>
    rows.length === 0 ? "[]" : JSON.stringify(rows.map((row) => ({ n: 1, ...row })));
  return [
    JSON.stringify([{
      n: 1,
      key_hash: access.key_hash,
      scope: access.scope,
      at: formatTime(access.at_ms),
      request_id: access.request_id,
      idempotency_key: idempotency?.key ?? null,
      fingerprint: idempotency?.fingerprint ?? null,
      ...(idempotency && change.answer),
      expects_id: change.expects?.payment_id ?? null,
      expects_sequence: change.expects?.sequence ?? null,
    }]),
    numbered(change.payment ? [change.payment] : []),
    numbered(change.refunds),
    numbered(change.ledger),
    numbered(change.events),
  ];
}

/** Passes a row on, or throws what its outcome means. The one map from outcomes to codes. */
function admit(access: Access, row: Row | undefined): Row {
  if (!row) throw new Error("an entry function gave no row");
  if (row.api_key_id) access.observe(row.api_key_id);
  switch (row.outcome) {
    case "unauthorized":
      throw unauthorized();
    case "forbidden":
      throw new ApiError("permission_denied", `This API key lacks the scope "${access.scope}"`, {
        required_scope: access.scope,
      });
    case "live":
      throw new ApiError("test_key_required", "The sandbox takes test keys only");
    case "not_found":
      throw notFound();
    case "conflict":
      throw new ApiError(
        "idempotency_conflict",
        "This Idempotency-Key was used with a different request: use a new key for a new operation",
      );
    case "unknown_cursor":
      throw new ApiError("invalid_parameter", "Unknown cursor: no such item in this list", {
        param: "starting_after",
      });
  }
  return row;
}

/** One answer for every reason why a key opens nothing (contract §6). */
export function unauthorized(): ApiError {
  return new ApiError(
    "unauthorized",
    "Send a valid API key as: Authorization: Bearer <API_KEY>",
    {},
    { "WWW-Authenticate": "Bearer" },
  );
}

/** One answer for unknown ids and for ids of other environments. */
export function notFound(): ApiError {
  return new ApiError("not_found", "No such resource");
}

function answerOf(row: Row): Answer {
  return { status: row.status!, body: row.body! };
}
