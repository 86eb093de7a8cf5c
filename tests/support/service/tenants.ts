/**
 * Two sandboxes and a live environment with rows in every table. A test sees which of these rows
 * row-level security shows to the owner of the tables, and which of them the owner can change.
 */

import postgres from "postgres";
import { APPROVED_CARD, startService, type TestService } from "./service.ts";

/** The owner of a row, as the first sandbox sees it. */
type Tenant = "own" | "other" | "live";
/** Rows per tenant (or "nobody's"), or the SQLSTATE of a refusal. */
type Seen = Record<string, number> | string;

/** The rights on one table. */
export interface Sight {
  select: Seen;
  /** Copies of an own row and of another tenant's. 23505: row-level security allowed the insert. */
  insert: { own: string; other: string };
  update: Seen;
  delete: Seen;
}

/** Settings of a transaction. */
export type Settings = Record<string, string>;

/** The tenants of a test file. */
export interface Tenants {
  service: TestService;
  environments: Record<Tenant, string>;
  /** Every table of the schema. */
  tables: string[];
  /** Tests every table as the owner, with these settings. */
  look(settings: Settings): Promise<Record<string, Sight>>;
  /** Tests one table in the same way, with each of the settings, after a statement. */
  lookAt(table: string, each: readonly Settings[], statement?: string): Promise<Sight[]>;
}

/** Values of columns that several of the seeds have. A table takes those of its own columns. */
const COMMON = {
  account_id: "pac_1",
  amount_minor: 1,
  api_key_id: "key_1",
  connector: "stripe",
  created_at: "2026-01-01",
  currency: "EUR",
  delivery_id: "whd_1",
  endpoint_id: "whe_1",
  expires_at: "2026-01-02",
  key_id: "k1",
  name: "a.xml",
  op: "authorize",
  operation_id: "pc_1",
  owner_id: "tr_1",
  payment_id: "pay_1",
  request_id: "req_1",
  sealed: "x",
  sequence: 1,
  sha256: "0".repeat(64),
  stored_at: "2026-01-01",
  subject_id: "pay_1",
  updated_at: "2026-01-01",
};

/** Rows for tables that requests leave empty, with COMMON. Columns without a value are null. */
const SEEDS: Record<string, Record<string, unknown>> = {
  sandboxes: { id: `env_${"0".repeat(26)}`, account: "one", made_by: "key_1", name: null },
  archives: { archived_until: "2026-01-01", last_sha256: "0".repeat(64), is_ended: false },
  dispatcher_wakes: { woken_at: "2026-01-01" },
  sandbox_settings: {
    version: 1,
    offset_ms: 0,
    runs_after: false,
    is_stopping: false,
    counts: {},
    fault_kinds: [],
    requests: 0,
    transcript_bytes: 0,
  },
  faults: {
    id: "flt_1",
    kind: "request",
    fault: "rate_limited",
    filter: {},
    times: 1,
    times_left: 1,
  },
  transcript_lines: { n: 1, line: "{}" },
  erasures: {
    person: "\\x" + "00".repeat(32),
    after_id: "",
    until_id: "",
    is_done: true,
    erased_at: "2026-01-01",
  },
  sandbox_storage: { day: "2026-01-01", account: "account", bytes: 1 },
  instruments: {
    id: "ins_1",
    status: "active",
    method_kind: "sepa",
    usage: "off_session",
    is_kept: true,
    mandate_id: "M-1",
    signed_at: "2026-01-01",
    touched_at: "2026-01-01",
  },
  attempt_log: {
    slot: 1,
    attempt: 1,
    url: "https://example.com/",
    headers: "{}",
    response_truncated: false,
  },
  settings: { name: "relay_url", value: "http://127.0.0.1/" },
  invariant_breaches: { invariant: "invariant_refunds", detail: "", found_at: "2026-01-01" },
  webhook_endpoints: {
    id: "whe_1",
    slot: 0,
    delivery: "url",
    url: "https://example.com/",
    inbox_position: 0,
    inbox_acknowledged: 0,
    events: ["*"],
    status: "enabled",
    secrets: [],
    revision: 1,
    body: "{}",
  },
  rate_counters: {
    account: "account",
    livemode: false,
    stripe: 0,
    window_number: 1,
    current_count: 1,
    previous_count: 0,
    stored_bytes: 0,
  },
  transfers: { id: "tr_1", status: "pending", body: "{}" },
  disputes: { id: "dp_1", status: "needs_response", body: "{}" },
  provider_accounts: {
    id: "pac_1",
    settings: {},
    secret_name: "PROVIDER_STRIPE_SECRET",
    notification_secret_names: ["PROVIDER_STRIPE_NOTIFICATIONS"],
    status: "enabled",
    ignored_notifications: 0,
  },
  provider_methods: { method_kind: "card", currency: "*" },
  provider_operations: {
    id: "pc_1",
    request: {},
    state: "pending",
    attempts: 1,
    next_attempt_at: "2026-01-01",
    may_repeat: true,
    needs_operator: false,
    decline_is_error: true,
  },
  provider_events: {
    reference: "pi_1:succeeded",
    state: "succeeded",
    happened_at: "2026-01-01",
    received_at: "2026-01-01",
    body: {},
    booked_minor: 0,
  },
  requests: {
    id: "req_1",
    method: "GET",
    path: "/",
    status: 200,
    is_replay: false,
    duration_us: 1,
    source: "program",
  },
  provider_cursors: {},
  xpub_counters: { next_index: 1 },
  signer_nonces: { chain_id: 1, next_nonce: 1 },
  chain_payouts: { destination: "0x1", tx_hashes: "{}" },
  bank_files: { imported_at: "2026-01-01" },
  bank_entries: { seen_in: 0, id: "e1", booked_on: "2026-01-01" },
  bank_details: {},
  bank_exports: {
    id: "bf_1",
    kind: "sepa_transfers",
    payments: 1,
    sum_minor: 1,
    is_opt_out: false,
  },
  bank_orders: { state: "waiting", changed_at: "2026-01-01" },
  deposit_addresses: { xpub_index: 0 },
  provider_totals: { day: "2026-01-01", provider_minor: 1, read_at: "2026-01-02" },
  webhook_deliveries: {
    id: "whd_1",
    event_id: "evt_1",
    event_type: "ping",
    status: "delivered",
    attempt_count: 1,
    expired_leases: 0,
    attempts: [],
  },
  inbox_entries: { position: 1 },
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
  const session = await sql.reserve();
  try {
    await session`begin`;
    return await work(session);
  } finally {
    await session`rollback`;
    session.release();
  }
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
  if (!found) throw new Error(`pay.${table} has no row: make one, or add it to SEEDS`);
  return found.row;
}

/** Inserts the seed of a table, and copies the first sandbox's rows to environments without one. */
async function fill(sql: postgres.Sql, table: string, environments: Record<Tenant, string>) {
  const column = environmentColumn(table);
  const own = environments.own;
  const seed = SEEDS[table];
  await sql.begin(async (transaction) => {
    if (seed) await insertRow(transaction, table, { ...COMMON, [column]: own, ...seed });
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
      return Object.fromEntries(rows.map(({ e, n }) => [tenants[e] ?? "nobody's", n])) as Seen;
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
async function attempt(session: postgres.ReservedSql, work: () => Promise<Seen>): Promise<Seen> {
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
