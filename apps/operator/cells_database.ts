/**
 * The databases of two cells as a move of an account sees them (cells_move.ts): their identity, the
 * rows of an account, and what is under way there. A move logs in as an administrator: row-level
 * security does not apply, and no entry function serves it.
 */

import postgres from "postgres";
import { EVM_NETWORKS, type EvmNetwork } from "../../shared/connectors/evm/evm_networks.ts";
import { driverEncryption } from "../../shared/store/database_encryption.ts";
import { CommandError, UsageError } from "./command_line.ts";

/** The cell that has the account, and the one that gets it. */
export type Side = "source" | "target";

/** The variables with the URLs. A command line would show their passwords to others. */
export const URL_VARIABLES: Readonly<Record<Side, string>> = {
  source: "CELLS_FROM_URL",
  target: "CELLS_TO_URL",
};

const BATCH_ROWS = 5_000;
/** Deleted last, in this order, because others refer to them. */
const REFERRED = ["provider_accounts", "api_keys", "environments"];

export interface CellDatabase {
  side: Side;
  url: string;
  sql: postgres.Sql;
}

/** The step of a move that an environment has reached (supabase/schemas/moves.sql). */
type Moving = "draining" | "fenced" | "sealed" | "arriving";

export interface MovingEnvironment {
  id: string;
  moving: Moving | null;
}

/** A table with rows of tenants, and the columns that a move copies. */
export interface TenantTable {
  name: string;
  columns: string[];
  /** A row as text, with the lengths of long texts in place of them. */
  fingerprint: string;
}

/** The number of rows of an environment in a table, and the sum of the hashes of their columns. */
export interface Digest {
  environment_id: string;
  rows: string;
  hash: string;
}

/** Opens a database. It is not checked yet. */
export function openCell(side: Side, url: string): CellDatabase {
  if (!/^postgres(ql)?:$/.test(URL.parse(url)?.protocol ?? "")) {
    throw new UsageError(
      `${URL_VARIABLES[side]} must be a URL, like postgres://user:password@host:5432/database`,
    );
  }
  const sql = postgres(url, {
    max: 2,
    prepare: false,
    onnotice: () => {},
    connect_timeout: 10,
    // The end of the mover's connection is the end of its lock.
    max_lifetime: null,
    connection: {
      application_name: "deno task cells",
      TimeZone: "UTC",
      // A role to which row-level security applies would miss rows: it gets an error.
      row_security: "off",
      statement_timeout: 0,
    } as Record<string, string | number>,
    ...driverEncryption(url),
  });
  return { side, url, sql };
}

interface Identity {
  version: number;
  /** A copy of a server has its identifier, and not its start. */
  server: string;
  wal_level: string;
  may_bypass: boolean;
  may_replicate: boolean;
  may_subscribe: boolean;
}

/**
 * Checks that an account can move from one database to the other.
 * @throws {CommandError} with what stands in the way
 */
export async function refusePair(source: CellDatabase, target: CellDatabase): Promise<void> {
  const [from, to] = [await identityOf(source), await identityOf(target)];
  if (from.server === to.server) {
    // A subscription to a publication of its own server would wait for itself.
    throw new CommandError(
      "Both cells are on one server: each cell needs a server of its own",
    );
  }
  for (const [{ side }, { may_bypass }] of [[source, from], [target, to]] as const) {
    if (!may_bypass) {
      throw new CommandError(
        `The user of the ${side} must be a superuser, or bypass row-level security`,
      );
    }
  }
  if (from.wal_level !== "logical") {
    throw new CommandError('The server of the source needs the setting "wal_level = logical"');
  }
  if (!from.may_replicate) throw new CommandError("The user of the source needs REPLICATION");
  if (!to.may_subscribe) {
    throw new CommandError("The user of the target needs the role pg_create_subscription");
  }
  const [schema_from, schema_to] = [await schemaOf(source), await schemaOf(target)];
  if (schema_from !== schema_to) {
    throw new CommandError(
      "Both cells have different migrations: update the older cell first",
    );
  }
}

async function identityOf({ side, sql }: CellDatabase): Promise<Identity> {
  const version = Number((await sql`show server_version_num`)[0]!.server_version_num);
  if (version < 160_000) {
    throw new CommandError(`The server of the ${side} must be PostgreSQL 16 or newer`);
  }
  const [found] = await sql<[Omit<Identity, "version">]>`
    select concat((select system_identifier from pg_control_system()), ' ',
        extract(epoch from pg_postmaster_start_time())) as server,
      current_setting('wal_level') as wal_level, r.rolsuper or r.rolbypassrls as may_bypass,
      r.rolsuper or r.rolreplication as may_replicate,
      pg_has_role('pg_create_subscription', 'usage') as may_subscribe
    from pg_roles r where r.rolname = current_user`;
  return { version, ...found };
}

/** The versions of the migrations, with hashes of their texts where these are recorded. */
async function schemaOf({ side, sql }: CellDatabase): Promise<string> {
  const [found] = await sql<[{ has_schema: boolean }]>`
    select count(*) = 2 as has_schema from pg_class c
    where concat(c.relnamespace::regnamespace, '.', c.relname)
      in ('supabase_migrations.schema_migrations', 'pay.environments')`;
  if (!found.has_schema) {
    throw new CommandError(`The database of the ${side} has no schema of this service`);
  }
  const rows = await sql<{ migration: string }[]>`
    -- Without comments, white space and semicolons, which the Supabase CLI records differently.
    select concat(version, ' ', md5(regexp_replace(
      regexp_replace(array_to_string(statements, ''), '--[^\n]*', '', 'g'),
      '[\s;]+', '', 'g'))) as migration
    from supabase_migrations.schema_migrations order by version`;
  return rows.map(({ migration }) => migration).join();
}

/**
 * Makes the user a member of the owner of the tables, or takes this back when no move is under way
 * in the database. A superuser needs no membership.
 */
export async function holdOwner({ sql }: CellDatabase, is_held: boolean): Promise<void> {
  const [found] = await sql<[{ is_super: boolean; has_moves: boolean }]>`
    select (select rolsuper from pg_roles where rolname = current_user) as is_super,
      exists (select from pg_publication where starts_with(pubname, 'pay_move_'))
        or exists (select from pg_subscription s join pg_database d on d.oid = s.subdbid
          where starts_with(s.subname, 'pay_move_') and d.datname = current_database())
        as has_moves`;
  if (found.is_super || !is_held && found.has_moves) return;
  await sql.unsafe(
    is_held
      ? "grant pay_owner to current_user with inherit true"
      : "revoke pay_owner from current_user",
  );
}

/** The environments of an account, also those that resets have retired. */
export async function environmentsOf(
  { sql }: CellDatabase,
  account: string,
): Promise<MovingEnvironment[]> {
  return await sql<MovingEnvironment[]>`
    select id, moving from pay.environments where account = ${account} order by id`;
}

/** The tables with rows of tenants that a crash does not empty, without pay.environments. */
export async function tenantTables({ sql }: CellDatabase): Promise<TenantTable[]> {
  return await sql<TenantTable[]>`
    select c.relname as name, array_agg(a.attname::text order by a.attnum) as columns,
      -- Keys, states and codes have the collation "C"; other texts, such as bodies, are long.
      string_agg(case when a.atttypid = 'text'::regtype and l.collname <> 'C'
        then format('octet_length(t.%I)', a.attname) else format('t.%I', a.attname) end, ', '
        order by a.attnum) as fingerprint
    from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    left join pg_collation l on l.oid = a.attcollation
    where c.relnamespace = 'pay'::regnamespace and c.relkind = 'r' and c.relpersistence = 'p'
      -- The breaches that one cell has found say nothing about the other.
      and c.relname <> 'invariant_breaches'
      and exists (select from pg_attribute k where k.attrelid = c.oid
        and k.attname = 'environment_id' and not k.attisdropped)
    group by c.oid, c.relname order by c.relname`;
}

/** Counts and hashes the rows of environments in a table. */
export async function digestOf(
  { sql }: CellDatabase,
  table: TenantTable,
  environments: readonly string[],
): Promise<Digest[]> {
  return await sql.unsafe<Digest[]>(
    `select t.environment_id, count(*)::text as rows,
       sum(hashtextextended(row(${table.fingerprint})::text collate "C", 0)::numeric)::text as hash
     from pay.${table.name} t where t.environment_id = any ($1) group by 1 order by 1`,
    [environments as string[]],
  );
}

export async function filledTables(
  { sql }: CellDatabase,
  tables: readonly TenantTable[],
  environments: readonly string[],
): Promise<TenantTable[]> {
  const parts = tables.map(({ name }) =>
    `select '${name}' as name
     where exists (select from pay.${name} t where t.environment_id = any ($1))`
  );
  const rows = await sql.unsafe<{ name: string }[]>(parts.join(" union all "), [
    environments as string[],
  ]);
  const filled = new Set(rows.map(({ name }) => name));
  return tables.filter(({ name }) => filled.has(name));
}

export async function deleteRows(
  { sql }: CellDatabase,
  tables: readonly TenantTable[],
  environments: readonly string[],
): Promise<void> {
  if (environments.length === 0) return;
  const names = tables.map(({ name }) => name).filter((name) => !REFERRED.includes(name));
  for (const name of [...names, ...REFERRED]) {
    const column = name === "environments" ? "id" : "environment_id";
    for (let rows = BATCH_ROWS; rows === BATCH_ROWS;) {
      const { count } = await sql.unsafe(
        `delete from pay.${name} t where t.ctid = any (array(
           select o.ctid from pay.${name} o where o.${column} = any ($1) limit ${BATCH_ROWS}))`,
        [environments as string[]],
      );
      rows = count;
    }
  }
}

/** The transactions under way that began before now and can still change something. */
export async function openTransactions({ sql }: CellDatabase): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select l.virtualtransaction as id from pg_locks l
    join pg_stat_activity a on a.pid = l.pid
    where l.locktype = 'virtualxid' and l.granted and l.pid <> pg_backend_pid()
      and a.datname = current_database()
      and coalesce(a.backend_type, '') not in
        ('autovacuum worker', 'walsender', 'parallel worker', 'logical replication parallel worker')`;
  return rows.map(({ id }) => id);
}

/** The number of leases of deliveries, operations, provider events and readings of environments. */
export async function countLeases(
  { sql }: CellDatabase,
  environments: readonly string[],
  with_operations: boolean,
): Promise<number> {
  const ids = environments as string[];
  const [row] = await sql<[{ leases: number }]>`
    select ((
      select count(*) from pay.webhook_endpoints t
      join pay.webhook_deliveries d on d.endpoint_id = t.id and d.status = 'pending'
        and d.leased_until > now()
      where t.environment_id = any (${ids})
    ) + (
      select count(*) from pay.provider_operations c
      where ${with_operations} and c.environment_id = any (${ids}) and c.state = 'pending'
        and c.leased_until > now()
    ) + (
      select count(*) from pay.provider_events e
      where e.environment_id = any (${ids}) and e.outcome is null and e.leased_until > now()
    ) + (
      select count(*) from pay.provider_cursors u
      where u.environment_id = any (${ids}) and u.leased_until > now()
    ))::integer as leases`;
  return row.leases;
}

export async function labelsOf({ sql }: CellDatabase, account: string): Promise<string[]> {
  const rows = await sql<{ label: string }[]>`
    select distinct ${labelOf(sql)} as label from pay.api_key_secrets s
    where s.account = ${account} order by 1`;
  return rows.map(({ label }) => label);
}

/** An account beside another one whose keys have one of its labels; null: none. */
export async function sharerOf(
  { sql }: CellDatabase,
  labels: readonly string[],
  account: string,
): Promise<string | null> {
  const [row] = await sql<[{ name: string | null }]>`
    select min(s.account) as name from pay.api_key_secrets s
    where s.account <> ${account} and ${labelOf(sql)} = any (${labels as string[]})`;
  return row.name;
}

function labelOf(sql: postgres.Sql) {
  return sql`regexp_replace(split_part(s.prefix, '_', 1), 'seeded$', '')`;
}

/** A counter of addresses or nonces that only one cell may have. */
interface Counter {
  key: string;
  next: string;
}

/** The extended public keys and signers of an account's chains. */
export async function chainKeysOf({ sql }: CellDatabase, account: string): Promise<string[]> {
  const rows = await sql<{ key: string }[]>`
    select distinct k.key from pay.provider_accounts a
    join pay.environments e on e.id = a.environment_id and e.account = ${account}
    cross join lateral unnest(
      array[a.settings ->> 'xpub', a.settings ->> 'signer_address']) as k (key)
    where k.key is not null order by 1`;
  return rows.map(({ key }) => key);
}

/** The first other account that uses one of the keys; null: none. */
export async function userOfChainKeys(
  { sql }: CellDatabase,
  keys: readonly string[],
  account: string,
): Promise<string | null> {
  const [row] = await sql<[{ name: string | null }]>`
    select min(e.account) as name from pay.provider_accounts a
    join pay.environments e on e.id = a.environment_id and e.account <> ${account}
    where a.settings ->> 'xpub' = any (${keys as string[]})
      or lower(a.settings ->> 'signer_address') = any (${lower(keys)})`;
  return row.name;
}

/** The extended public keys and signers that two cells count, or will when accounts use them. */
export async function keysOfBoth(one: CellDatabase, other: CellDatabase): Promise<string[]> {
  const countedBy = async ({ sql }: CellDatabase) => {
    const rows = await sql<{ key: string }[]>`
      select x.xpub as key from pay.xpub_counters x where x.left_at is null
      union select lower(n.signer) from pay.signer_nonces n where n.left_at is null
      union select k.key from pay.provider_accounts a
      join pay.environments e on e.id = a.environment_id
        and coalesce(e.moving, 'open') not in ('sealed', 'arriving')
      cross join lateral unnest(
        array[a.settings ->> 'xpub', lower(a.settings ->> 'signer_address')]) as k (key)
      where k.key is not null
      order by 1`;
    return rows.map(({ key }) => key);
  };
  const there = new Set(await countedBy(one));
  return (await countedBy(other)).filter((key) => there.has(key));
}

/**
 * Gives each key of an account a counter, also before its first address or payout: with none, the
 * cell would accept the key again after the account has left.
 */
export async function startCounters({ sql }: CellDatabase, account: string): Promise<void> {
  const chains = await sql<{ settings: Record<string, string> }[]>`
    select a.settings from pay.provider_accounts a
    join pay.environments e on e.id = a.environment_id and e.account = ${account}
    where a.connector = 'evm'`;
  for (const { settings } of chains) {
    const { xpub, signer_address, network } = settings;
    if (xpub !== undefined) {
      await sql`insert into pay.xpub_counters (xpub, next_index) values (${xpub}, 0)
        on conflict on constraint xpub_counters_pkey do nothing`;
    }
    if (signer_address === undefined) continue;
    const chain_id = settings.chain_id ?? EVM_NETWORKS[network as EvmNetwork].chain_id;
    await sql`insert into pay.signer_nonces (chain_id, signer, next_nonce)
      values (${chain_id}::text::bigint, ${signer_address}, 0)
      on conflict on constraint signer_nonces_pkey do nothing`;
  }
}

/** Copies the counters of the keys, and makes those of the source count no more. */
export async function moveCounters(
  from: CellDatabase,
  to: CellDatabase,
  keys: readonly string[],
): Promise<void> {
  const xpubs = await from.sql<Counter[]>`
    select xpub as key, next_index::text as next from pay.xpub_counters
    where xpub = any (${keys as string[]})`;
  const nonces = await from.sql<(Counter & { chain_id: string })[]>`
    select chain_id::text, signer as key, next_nonce::text as next from pay.signer_nonces
    where lower(signer) = any (${lower(keys)})`;
  await leaveCounters(from, keys);
  for (const { key, next } of xpubs) {
    await to.sql`
      insert into pay.xpub_counters as x (xpub, next_index) values (${key}, ${next}::bigint)
      on conflict on constraint xpub_counters_pkey do update
        set next_index = greatest(x.next_index, excluded.next_index), left_at = null`;
  }
  for (const { chain_id, key, next } of nonces) {
    await to.sql`
      insert into pay.signer_nonces as n (chain_id, signer, next_nonce)
      values (${chain_id}::bigint, ${key}, ${next}::bigint)
      on conflict on constraint signer_nonces_pkey do update
        set next_nonce = greatest(n.next_nonce, excluded.next_nonce), left_at = null`;
  }
}

/** Makes the counters of the keys count no more, or again. */
export async function leaveCounters(
  { sql }: CellDatabase,
  keys: readonly string[],
  has_left = true,
): Promise<void> {
  await sql`update pay.xpub_counters set left_at = case when ${has_left} then now() end
    where xpub = any (${keys as string[]})`;
  await sql`update pay.signer_nonces set left_at = case when ${has_left} then now() end
    where lower(signer) = any (${lower(keys)})`;
}

/** Addresses in lower case: their upper-case letters are a checksum. */
function lower(keys: readonly string[]): string[] {
  return keys.map((key) => key.toLowerCase());
}
