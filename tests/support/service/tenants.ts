/**
 * Two sandboxes and a live environment with rows in every table. A test sees which of these rows
 * row-level security shows to the owner of the tables, and which of them the owner can change.
 */

import postgres from "postgres";
import { openSession } from "../database/database.ts";
import { APPROVED_CARD, startService, type TestService } from "./service.ts";

/** The owner of a row, as the first sandbox sees it. */
type Tenant = "own" | "other" | "live";
/** Rows per tenant (or "nobody's"), or the SQLSTATE of a refusal. */
type RowCounts = Record<string, number> | string;

/** The rights on one table. */
export interface Sight {
  select: RowCounts;
  /** Copies of an own row and of another tenant's. 23505: row-level security allowed the insert. */
  insert: { own: string; other: string };
  update: RowCounts;
  delete: RowCounts;
}

/** Settings of a transaction. */
export type Settings = Record<string, string>;

/** The tenants of a test file. */
export interface Tenants extends AsyncDisposable {
  service: TestService;
  environments: Record<Tenant, string>;
  /** Every table of the schema. */
  tables: string[];
  /** Tests every table as the owner, with these settings. */
  look(settings: Settings): Promise<Record<string, Sight>>;
  /** Tests one table in the same way, with each of the settings, after a statement. */
  lookAt(table: string, each: readonly Settings[], statement?: string): Promise<Sight[]>;
}

/** A value of each type, for columns that take no null. */
const BY_TYPE: Record<string, unknown> = {
  text: "x",
  smallint: 1,
  integer: 1,
  bigint: 1,
  boolean: false,
  json: {},
  jsonb: {},
  date: "2026-01-01",
  "timestamp with time zone": "2026-01-01",
  ARRAY: "{}",
};

/** Values of columns of several seeds, where a constraint asks for more than a type. */
const COMMON: Record<string, unknown> = {
  connector: "stripe",
  currency: "EUR",
  expires_at: "2026-01-02",
  key_id: "k1",
  op: "authorize",
  owner_id: "tr_1",
  payment_id: "pay_1",
  sha256: "0".repeat(64),
  subject_id: "pay_1",
};

/** Other values of rows for tables that requests leave empty. */
const SEEDS: Record<string, Record<string, unknown>> = {
  sandboxes: { id: `env_${"0".repeat(26)}`, name: null },
  archives: { last_sha256: "0".repeat(64) },
  sandbox_settings: { requests: 0, transcript_bytes: 0 },
  faults: { kind: "request", fault: "rate_limited" },
  erasures: { person: "\\x" + "00".repeat(32), is_done: true },
  instruments: {
    ...{ status: "active", method_kind: "sepa", usage: "off_session", is_kept: true },
    ...{ mandate_id: "M-1", signed_at: "2026-01-01" },
  },
  checkouts: {
    ...{ status: "open", max_payments: 1, token_hash: "\\x" + "00".repeat(32), body: "{}" },
    ...{ payments_count: 0, payment_id: null, attempts: 0, attempt_id: null, declines: 0 },
    declines_since: null,
  },
  attempt_log: { url: "https://example.com/" },
  settings: { name: "relay_url", value: "http://127.0.0.1/" },
  invariant_breaches: { invariant: "invariant_refunds" },
  webhook_endpoints: {
    ...{ delivery: "url", url: "https://example.com/", events: ["*"], status: "enabled" },
    ...{ inbox_position: 0, inbox_acknowledged: 0, secrets: [], body: "{}" },
  },
  transfers: { status: "pending", body: "{}" },
  disputes: { status: "needs_response", body: "{}" },
  provider_accounts: {
    secret_name: "PROVIDER_STRIPE_SECRET",
    notification_secret_names: ["PROVIDER_STRIPE_NOTIFICATIONS"],
    status: "enabled",
  },
  provider_methods: { method_kind: "card", currency: "*" },
  provider_operations: { state: "pending", next_attempt_at: "2026-01-01", may_repeat: true },
  provider_events: { reference: "pi_1:succeeded", state: "succeeded", booked_minor: 0 },
  requests: { id: "req_1", method: "GET", path: "/", status: 200, source: "program" },
  bank_details: { sealed: "x" },
  bank_exports: { kind: "sepa_transfers", sealed: "x" },
  bank_orders: { state: "waiting" },
  webhook_deliveries: { event_type: "ping", status: "delivered", attempts: [] },
};

/** Starts the product and fills three environments. */
export async function startTenants(): Promise<Tenants> {
  const service = await startService();
  const { sql, key, other, live } = service;
  for (const { text } of [key, other]) {
    const options = { key: text, idempotency_key: "kept" };
    const paid = await service.pay({ card: APPROVED_CARD }, options);
    const url = `/api-v1-payments/v1/payments/${paid.body.id}/refund`;
    await service.call("POST", url, { key: text, body: { amount: 1 } });
  }
  const environments = {
    own: key.environment_id,
    other: other.environment_id,
    live: live.environment_id,
  };
  const tables = (await sql<{ name: string }[]>`
    select tablename as name from pg_tables where schemaname = 'pay' order by 1`)
    .map(({ name }) => name);
  for (const name of tables) await fill(sql, name, environments);
  const samples: Record<string, Sample> = {};
  for (const table of tables) {
    samples[table] = {
      own: await sampleRow(sql, table, environments.own),
      other: await sampleRow(sql, table, environments.other),
    };
  }
  return {
    service,
    environments,
    tables,
    [Symbol.asyncDispose]: service.close,
    look: (settings) =>
      inTransaction(sql, async (session) => {
        await become(session, settings);
        const sights: Record<string, Sight> = {};
        for (const [table, sample] of Object.entries(samples)) {
          sights[table] = await sightOf(session, table, sample, environments);
        }
        return sights;
      }),
    lookAt: (table, each, statement) =>
      inTransaction(sql, async (session) => {
        if (statement !== undefined) await session.unsafe(statement);
        const sights: Sight[] = [];
        for (const settings of each) {
          await session`savepoint settings`;
          await become(session, settings);
          sights.push(await sightOf(session, table, samples[table]!, environments));
          await session`rollback to settings`;
        }
        return sights;
      }),
  };
}

/** Runs the work in a transaction and rolls it back. */
async function inTransaction<T>(
  sql: postgres.Sql,
  work: (session: postgres.ReservedSql) => Promise<T>,
): Promise<T> {
  await using session = await openSession(sql);
  await session`begin`;
  return await work(session);
}

/** Makes the session the owner of the tables, with these settings, until the transaction ends. */
async function become(session: postgres.ReservedSql, settings: Settings): Promise<void> {
  await session`set local role pay_owner`;
  for (const [name, value] of Object.entries(settings)) {
    await session`select set_config(${name}, ${value}, true)`;
  }
}

/** Tables of the operator. No environment of a key gives access to them. */
export const OPERATORS_TABLES: ReadonlySet<string> = new Set([
  "settings",
  "dispatcher_wakes",
  "invariant_breaches",
  "archives",
  "xpub_counters",
  "signer_nonces",
]);

/** The column of a table that names the owner of a row. */
export function environmentColumn(table: string): string {
  if (table === "settings") return "name";
  if (table === "dispatcher_wakes") return "request_id";
  if (table === "xpub_counters") return "xpub";
  if (table === "signer_nonces") return "signer";
  return table === "environments" ? "id" : "environment_id";
}

/** Returns one row of an environment. */
export async function sampleRow(
  sql: postgres.Sql,
  table: string,
  environment_id: string,
): Promise<Record<string, unknown>> {
  const [found] = await sql.unsafe(
    `select to_json(t) as row from pay.${table} t where ${environmentColumn(table)} = $1 or $2`,
    [environment_id, OPERATORS_TABLES.has(table)],
  );
  if (!found) throw new Error(`pay.${table} has no row`);
  return found.row;
}

/**
 * Inserts a row into an empty table, and copies the first sandbox's to environments without one.
 */
async function fill(sql: postgres.Sql, table: string, environments: Record<Tenant, string>) {
  const column = environmentColumn(table);
  const own = environments.own;
  await sql.begin(async (transaction) => {
    const [found] = await transaction.unsafe(
      `select from pay.${table} where ${column} = $1 or $2 limit 1`,
      [own, OPERATORS_TABLES.has(table)],
    );
    if (!found) {
      const values = await valuesOf(transaction, table);
      await insertRow(transaction, table, { ...values, [column]: own, ...SEEDS[table] });
    }
    if (OPERATORS_TABLES.has(table)) return;
    for (const environment of [environments.other, environments.live]) {
      const rows = await transaction.unsafe(
        `select to_json(t) as row from pay.${table} t
         where ${column} = $1 and not exists (select from pay.${table} where ${column} = $2)`,
        [own, environment],
      );
      const copies = rows.map(({ row }) => ({ ...row, [column]: environment }));
      await insertRows(transaction, table, copies);
    }
  });
}

/** Values of the columns of a table that take no null, and of those in COMMON. */
async function valuesOf(sql: postgres.TransactionSql, table: string) {
  const columns = await sql<{ name: string; type: string; is_nullable: string }[]>`
    select column_name as name, data_type as type, is_nullable
    from information_schema.columns where table_schema = 'pay' and table_name = ${table}`;
  return Object.fromEntries(
    columns.filter(({ name, is_nullable }) => name in COMMON || is_nullable === "NO")
      .map(({ name, type }) => [name, COMMON[name] ?? BY_TYPE[type]]),
  );
}

/** Inserts a row that is given as an object with the table's columns. */
export async function insertRow(
  sql: postgres.Sql | postgres.TransactionSql | postgres.ReservedSql,
  table: string,
  row: Record<string, unknown>,
): Promise<void> {
  await insertRows(sql, table, [row]);
}

/** Inserts rows in one statement. */
async function insertRows(
  sql: postgres.Sql | postgres.TransactionSql | postgres.ReservedSql,
  table: string,
  rows: Record<string, unknown>[],
): Promise<void> {
  await sql.unsafe(
    `insert into pay.${table} select * from json_populate_recordset(null::pay.${table}, $1::text::json)`,
    [JSON.stringify(rows)],
  );
}

/** Copies of an own row of a table and of another tenant's. */
type Sample = Record<"own" | "other", Record<string, unknown>>;

async function sightOf(
  session: postgres.ReservedSql,
  table: string,
  { own, other }: Sample,
  environments: Record<Tenant, string>,
): Promise<Sight> {
  const tenants = Object.fromEntries(Object.entries(environments).map(([k, id]) => [id, k]));
  const count = (text: string) =>
    attempt(session, async () => {
      const rows = await session.unsafe(`with t as (${text})
        select e, count(*)::int as n from t group by e order by e`);
      return Object.fromEntries(rows.map(({ e, n }) => [tenants[e] ?? "nobody's", n])) as RowCounts;
    });
  const column = environmentColumn(table);
  const insert = (row: Record<string, unknown>) =>
    attempt(session, async () => {
      await insertRow(session, table, row);
      return "inserted";
    });
  return {
    select: await count(`select ${column} as e from pay.${table}`),
    insert: { own: await insert(own) as string, other: await insert(other) as string },
    update: await count(`update pay.${table} set ${column} = ${column} returning ${column} as e`),
    delete: await count(`delete from pay.${table} returning ${column} as e`),
  };
}

/** Runs a statement and rolls it back; returns the SQLSTATE of a refusal. */
async function attempt(
  session: postgres.ReservedSql,
  work: () => Promise<RowCounts>,
): Promise<RowCounts> {
  await session`savepoint attempt`;
  try {
    return await work();
  } catch (error) {
    if (error instanceof postgres.PostgresError) return error.code;
    throw error;
  } finally {
    await session`rollback to attempt`;
  }
}
