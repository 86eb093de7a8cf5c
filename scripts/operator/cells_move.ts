/**
 * Moves an account from one cell to another while it is written to (docs/scaling.md). PostgreSQL's
 * logical replication copies its rows and keeps them up to date; the last seconds happen behind a
 * fence. Each step can be repeated, and its state is in the databases alone:
 *
 * | source            | target               | then the account                          |
 * | ----------------- | -------------------- | ----------------------------------------- |
 * | open or draining  | arriving, or nothing | is in the source; the copy goes on        |
 * | fenced or sealed  | arriving             | waits; the move goes on or back           |
 * | sealed            | open                 | is in the target; the source is deleted   |
 *
 * The source has the publication of the move, whose comment tells the rest, and the slot of its
 * subscription; both have the name of the account's hash.
 */

import { createHash } from "node:crypto";
import { isUnavailable } from "../../shared/core/database_error.ts";
import {
  type CellDatabase,
  chainKeysOf,
  countLeases,
  deleteRows,
  type Digest,
  digestOf,
  environmentsOf,
  filledTables,
  labelsOf,
  leaveCounters,
  moveCounters,
  type MovingEnvironment,
  openCell,
  openTransactions,
  type TenantTable,
  tenantTables,
  userOfChainKeys,
} from "./cells_database.ts";
import { type ProxyMap, readProxyMap, refuseAbsentCell, switchLabels } from "./cells_proxy.ts";
import { CommandError, UsageError } from "./command_line.ts";

/** Between two looks at the databases. */
const LOOK_MS = 200;
const FENCED_LOOK_MS = 20;
/** Between two lines about the progress of the copy. */
const TELL_MS = 5_000;
/** The copy is behind by at most this many bytes of WAL before the fence. */
const NEAR_BYTES = 1_000_000;
/** A lease of the dispatcher or the worker ends within 25 s, a transaction of a function in 5 s. */
const DRAIN_MS = 60_000;
const FENCE_MS = 30_000;
/** Copied in one statement. */
const BATCH_ROWS = 1_000;
/** How long the target may fail to apply the copy, and how long after an error it may be well. */
const STALL_MS = 60_000;
const WELL_MS = 30_000;

/** An account, and the databases between which it moves. */
export interface Move {
  account: string;
  source: CellDatabase;
  target: CellDatabase;
  /** How long the source keeps the keys after the proxy has switched. */
  keep_ms: number;
  /** Prints a line about the progress. */
  report(line: string): void;
}

/** Where the keys of the account lead afterwards. */
interface Destination {
  map: ProxyMap;
  /** The name of the target in the map. */
  cell: string;
}

/** What the comment of the publication tells an abort. */
interface Note extends Destination {
  account: string;
  /** The labels, with the cells that they had. */
  labels: [label: string, cell: string | null][];
}

/** The tables of a source, read once. */
interface Copy extends Move {
  name: string;
  tables: TenantTable[];
}

/** The state of a move, as both databases have it. */
interface MoveState {
  source: MovingEnvironment[];
  target: MovingEnvironment[];
  has_publication: boolean;
  has_slot: boolean;
  has_subscription: boolean;
}

/** The name of the publication, subscription and slot of an account's move. */
function nameOf(account: string): string {
  return `pay_move_${createHash("sha256").update(account).digest("hex").slice(0, 16)}`;
}

/**
 * Checks a move and returns what it would do, in lines. Changes nothing.
 * @throws {UsageError} if the account or the cell does not exist
 * @throws {CommandError} with what stands in the way
 */
export async function planMove(move: Move, { map, cell }: Destination): Promise<string[]> {
  const { account, source, target } = move;
  const state = await readState(move);
  if (state.source.length === 0) {
    throw new UsageError(
      state.target.length === 0
        ? `--account "${account}" does not exist at --from`
        : `--account "${account}" is at --to already`,
    );
  }
  const has_arrived = hasArrived(state);
  if (!has_arrived && state.target.some(({ moving }) => moving !== "arriving")) {
    throw new CommandError(`--to has an account "${account}" of its own`);
  }
  const tables = await tenantTables(source);
  if (JSON.stringify(tables) !== JSON.stringify(await tenantTables(target))) {
    throw new CommandError("--from and --to have tables with different columns");
  }
  const { labels, sharer } = await labelsOf(source, account);
  // A mover that was killed can have deleted them.
  if (labels.length === 0 && !has_arrived) {
    throw new CommandError(`The account "${account}" has no API keys`);
  }
  if (sharer !== null) {
    throw new CommandError(
      `The account "${sharer}" has keys with the same label, so the proxy cannot tell them apart: ` +
        "give one of them keys with a label of its own (keys create --prefix), and revoke the old ones",
    );
  }
  const cells = new Set((await readProxyMap(map)).values());
  if (!cells.has(cell) && map.socket === null) {
    throw new UsageError(`--cell "${cell}" is not in the map: name a cell that the proxy has`);
  }
  await refuseAbsentCell(map, cell);
  const keys = await chainKeysOf(source, account);
  for (const database of [source, target]) {
    const user = await userOfChainKeys(database, keys, account);
    if (user === null) continue;
    throw new CommandError(
      `The account "${user}" at ${database.flag} uses the same extended public key or signer: two ` +
        "cells would give the same address or nonce twice",
    );
  }
  const lines = [
    `account "${account}", ${state.source.length} environments, labels ${
      labels.join(", ")
    } → ${cell}`,
    ...has_arrived ? ["it is at --to; what is left is to delete it at --from"] : [],
    ...keys.length === 0
      ? []
      : [`its addresses and nonces are counted at --to afterwards: ${keys}`],
  ];
  const ids = state.source.map(({ id }) => id);
  for (const { name } of tables) {
    const [row] = await source.sql.unsafe<[{ rows: string }]>(
      `select count(*)::text as rows from pay.${name} t where t.environment_id = any ($1)`,
      [ids],
    );
    if (row.rows !== "0") lines.push(`  ${name}: ${row.rows}`);
  }
  const secrets = await source.sql<{ name: string }[]>`
    select distinct unnest(a.secret_name || a.notification_secret_names) as name
    from pay.provider_accounts a where a.environment_id = any (${ids}) order by 1`;
  lines.push(
    "the functions at --to need the same WEBHOOK_MASTER_SECRET" +
      secrets.filter(({ name }) => name !== null).map(({ name }) => `, ${name}`).join(""),
  );
  return lines;
}

/**
 * Moves an account, or goes on with a move.
 * @throws {CommandError} if the move cannot go on. The account is then open in one cell
 * @throws {Error} of the driver if a database is away. The account can then wait behind its fence,
 *   and the same call goes on
 */
export async function runMove(move: Move, destination: Destination): Promise<void> {
  await planMove(move, destination);
  await alone(move, () => advance(move, destination));
}

/** Goes back: opens the account at the source, and deletes what has arrived at the target. */
export async function abortMove(move: Move): Promise<void> {
  await alone(move, async () => {
    const state = await readState(move);
    if (hasArrived(state)) {
      throw new CommandError(
        `The account "${move.account}" is at --to already: "move" goes on and deletes it at --from`,
      );
    }
    if (!state.has_publication && !state.target.some(({ moving }) => moving === "arriving")) {
      throw new UsageError(`No move of --account "${move.account}" is under way`);
    }
    await reopen(move);
    await clear({ ...move, name: nameOf(move.account), tables: await tenantTables(move.source) });
    move.report("aborted: the account is at --from, and nothing of it is at --to");
  });
}

/** Reads the state of a move. */
async function readState({ account, source, target }: Move): Promise<MoveState> {
  const name = nameOf(account);
  const [published] = await source.sql<[{ has_one: boolean; has_slot: boolean }]>`
    select exists (select from pg_publication where pubname = ${name}) as has_one,
      exists (select from pg_replication_slots where slot_name = ${name}) as has_slot`;
  const [subscribed] = await target.sql<[{ has_one: boolean }]>`
    select exists (select from pg_subscription s join pg_database d on d.oid = s.subdbid
      where s.subname = ${name} and d.datname = current_database()) as has_one`;
  return {
    source: await environmentsOf(source, account),
    target: await environmentsOf(target, account),
    has_publication: published.has_one,
    has_slot: published.has_slot,
    has_subscription: subscribed.has_one,
  };
}

/** The moves that are under way from a database, one line each. */
export async function listMoves(source: CellDatabase): Promise<string[]> {
  const rows = await source.sql<{ name: string; note: string | null; behind: string | null }[]>`
    select p.pubname as name, obj_description(p.oid, 'pg_publication') as note,
      pg_size_pretty(pg_wal_lsn_diff(pg_current_wal_lsn(), s.confirmed_flush_lsn)) as behind
    from pg_publication p left join pg_replication_slots s on s.slot_name = p.pubname
    where starts_with(p.pubname, 'pay_move_') order by 1`;
  const lines: string[] = [];
  for (const { note, behind } of rows) {
    if (note === null) continue;
    const { account, cell } = JSON.parse(note) as Note;
    const steps = new Set(
      (await environmentsOf(source, account)).map(({ moving }) => moving ?? "open"),
    );
    lines.push(
      `"${account}" → ${cell}: ${[...steps].join(", ") || "deleted"} at --from, ` +
        (behind === null ? "no slot" : `the copy is ${behind} behind`),
    );
  }
  return lines;
}

/**
 * Whether the account is open at the target, and sealed at the source. The source can have
 * environments that retention has deleted at the target since, above all a source that was restored.
 */
function hasArrived({ source, target }: MoveState): boolean {
  const open = new Set(target.filter(({ moving }) => moving !== "arriving").map(({ id }) => id));
  return open.size > 0 && open.size === target.length &&
    source.every(({ moving }) => moving === "sealed") &&
    (source.length === 0 || source.some(({ id }) => open.has(id)));
}

/** Runs the work of the only mover of the account. */
async function alone(move: Move, work: () => Promise<void>): Promise<void> {
  // The end of this connection is the end of the lock.
  const lock = openCell(move.source.flag, move.source.url);
  try {
    await lock.sql.begin(async (sql) => {
      const [row] = await sql<[{ is_taken: boolean }]>`
        select pg_try_advisory_lock(hashtextextended(${`move ${move.account}`}, 0)) as is_taken`;
      if (!row.is_taken) throw new CommandError(`Another mover has the account "${move.account}"`);
    });
    await work();
  } finally {
    await lock.sql.end({ timeout: 0 });
  }
}

async function advance(move: Move, destination: Destination): Promise<void> {
  const copy: Copy = {
    ...move,
    name: nameOf(move.account),
    tables: await tenantTables(move.source),
  };
  if (!hasArrived(await readState(move))) {
    do await begin(copy, destination); while (!await follow(copy));
    try {
      await drain(copy);
      await fence(copy);
      await seal(copy);
      await compare(copy);
      await handOver(copy, destination);
    } catch (error) {
      // While a database is away the account waits behind its fence, and the move goes on or back.
      if (!isUnavailable(error)) await reopen(move);
      throw error;
    }
  }
  await finish(copy);
}

/** Begins the copy, unless it has begun. Begins again if a part of it was lost. */
async function begin(copy: Copy, destination: Destination): Promise<void> {
  const { account, source, target, name, tables, report } = copy;
  const state = await readState(copy);
  if (state.has_publication && state.has_subscription && state.has_slot) {
    const lost = await lostTables(copy);
    if (lost.length === 0) {
      await target.sql.unsafe(`alter subscription ${name} enable`);
      return report("copy: goes on");
    }
    report(`copy: begins again, because ${lost.join(", ")} was lost`);
  }
  await clear(copy);
  const ids = state.source.map(({ id }) => id);
  const { labels } = await labelsOf(source, account);
  const before = await readProxyMap(destination.map);
  const note: Note = {
    account,
    ...destination,
    labels: labels.map((label) => [label, before.get(label) ?? null]),
  };
  const list = `'{${ids.join(",")}}'::text[]`;
  await source.sql.begin(async (sql) => {
    await sql.unsafe(
      `create publication ${name} for table ` +
        tables.map((table) => `pay.${table.name} where (environment_id = any (${list}))`).join(
          ", ",
        ),
    );
    const [row] = await sql`select format('comment on publication %I is %L', ${name}::text,
      ${JSON.stringify(note)}::text) as text`;
    await sql.unsafe(row!.text);
  });
  await arrive(copy, ids);
  // A copied table has a slot until the target has committed that it is complete. If a crash took
  // this commit back, the table could never be complete: it would wait for the slot for ever.
  const [row] = await target.sql`select format(
    'create subscription %I connection %L publication %I
     with (run_as_owner = true, synchronous_commit = on)',
    ${name}::text, ${source.url}::text, ${name}::text) as text`;
  await target.sql.unsafe(row!.text);
  report(`copy: ${ids.length} environments, ${tables.length} tables`);
}

/** Writes the environments of the account to the target, where they are not open yet. */
async function arrive({ source, target }: Copy, ids: readonly string[]): Promise<void> {
  const rows = await source.sql`
    select e.id, e.public_id, e.account, e.livemode, e.name, e.created_at::text as created_at,
      e.retired_at::text as retired_at, e.ends_at::text as ends_at, 'arriving' as moving
    from pay.environments e where e.id = any (${ids as string[]})`;
  await target.sql`
    insert into pay.environments as e
    select * from json_populate_recordset(null::pay.environments, ${
    JSON.stringify(rows)
  }::text::json)
    on conflict on constraint environments_pkey do update
      set retired_at = excluded.retired_at, ends_at = excluded.ends_at, name = excluded.name
      where e.moving = 'arriving'`;
}

/**
 * Waits until the copy is complete but for the newest changes. Returns false if a part of it was
 * lost.
 */
async function follow(copy: Copy): Promise<boolean> {
  const { source, target, name, report } = copy;
  let told_at = 0;
  let failing = { since: 0, latest: 0 };
  let last_errors = Infinity;
  for (;;) {
    const [tables] = await target.sql<
      [{ ready: number; finished: number; all: number; is_synchronous: boolean; errors: number }]
    >`
      select count(*) filter (where r.srsubstate = 'r')::integer as ready,
        count(*) filter (where r.srsubstate = 'f')::integer as finished, count(*)::integer as all,
        coalesce(bool_or(s.subsynccommit = 'on'), false) as is_synchronous,
        coalesce((select t.apply_error_count + t.sync_error_count
          from pg_stat_subscription_stats t where t.subname = ${name}), 0)::integer as errors
      from pg_subscription s join pg_subscription_rel r on r.srsubid = s.oid
      where s.subname = ${name}`;
    if (tables.finished > 0 && (await lostTables(copy)).length > 0) return false;
    const behind = await behindOf(source, name);
    if (behind === null) return false;
    const is_copied = tables.ready === tables.all;
    // With one commit on disk after the other the target could stay behind.
    if (is_copied && tables.is_synchronous) {
      await target.sql.unsafe(`alter subscription ${name} set (synchronous_commit = off)`);
    }
    if (is_copied && behind < NEAR_BYTES) {
      // So that the account is not slow at first: autovacuum looks once a minute, at the least.
      await target.sql.unsafe(
        `analyze ${copy.tables.map((each) => `pay.${each.name}`).join(", ")}`,
      );
      report(`copy: complete, ${behind} bytes behind`);
      return true;
    }
    // Errors repeat every few seconds until their cause, such as a full disk, is gone.
    const now = Date.now();
    if (tables.errors > last_errors) {
      const is_new = now - failing.latest > WELL_MS;
      failing = { since: is_new ? now : failing.since, latest: now };
    }
    last_errors = tables.errors;
    if (failing.latest - failing.since > STALL_MS) {
      throw new CommandError(
        "The server of --to cannot apply the copy; its log has the reason. The account is still at " +
          "--from: mend it and run the same command, or abort",
      );
    }
    if (now - told_at > TELL_MS) {
      told_at = now;
      report(`copy: ${tables.ready} of ${tables.all} tables, ${behind} bytes behind`);
    }
    await pause(LOOK_MS);
  }
}

/** The tables that are copied but not complete, and whose slots do not exist any more. */
async function lostTables({ source, target, name }: Copy): Promise<string[]> {
  const slotOf = await tableSlots(target, name);
  if (slotOf === null) return [];
  const readFinished = async () => {
    const rows = await target.sql<{ table: string; oid: string }[]>`
      select r.srrelid::regclass::text as table, r.srrelid::text as oid
      from pg_subscription_rel r join pg_subscription s on s.oid = r.srsubid
      where s.subname = ${name} and r.srsubstate = 'f'`;
    return rows.map(({ table, oid }) => ({ table, slot: slotOf.prefix + oid + slotOf.suffix }));
  };
  const finished = await readFinished();
  const slots = await source.sql<{ slot: string; wal_status: string }[]>`
    select slot_name as slot, wal_status from pg_replication_slots
    where slot_name = any (${finished.map(({ slot }) => slot)})`;
  slots.forEach(refuseLostWal);
  const there = new Set(slots.map(({ slot }) => slot));
  if (finished.every(({ slot }) => there.has(slot))) return [];
  // The slot of a table that is complete meanwhile is gone, too.
  return (await readFinished()).filter(({ slot }) => !there.has(slot)).map(({ table }) => table);
}

/** The names at the source of the slots of a subscription's tables; null without a subscription. */
async function tableSlots(
  { sql }: CellDatabase,
  name: string,
): Promise<{ prefix: string; suffix: string } | null> {
  const [found] = await sql<{ prefix: string; suffix: string }[]>`
    select concat('pg_', s.oid, '_sync_') as prefix,
      concat('_', (select system_identifier from pg_control_system())) as suffix
    from pg_subscription s join pg_database d on d.oid = s.subdbid
    where s.subname = ${name} and d.datname = current_database()`;
  return found ?? null;
}

/** How far the copy is behind, in bytes of WAL; null without a slot, whose WAL can be gone. */
async function behindOf({ sql }: CellDatabase, name: string): Promise<number | null> {
  const [row] = await sql<{ behind: string | null; wal_status: string }[]>`
    select pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)::text as behind, wal_status
    from pg_replication_slots where slot_name = ${name}`;
  if (row === undefined) return null;
  refuseLostWal(row);
  return row.behind === null ? Infinity : Number(row.behind);
}

function refuseLostWal({ wal_status }: { wal_status: string }): void {
  if (wal_status !== "lost") return;
  throw new CommandError(
    "The server of --from has deleted changes that the copy lacks (max_slot_wal_keep_size): abort, " +
      "and move again",
  );
}

/** Lets the jobs begin nothing new, and waits for what they have begun. */
async function drain(copy: Copy): Promise<void> {
  const { account, source, report } = copy;
  await source.sql`update pay.environments set moving = 'draining'
    where account = ${account} and moving is null`;
  const ids = await idsOf(copy);
  await waitUntil(
    DRAIN_MS,
    LOOK_MS,
    async () => await countLeases(source, ids, false) === 0,
    "Deliveries or readings of the account do not end",
  );
  report("drain: nothing is under way");
}

/** Lets no request begin, and waits for what has begun. */
async function fence(copy: Copy): Promise<void> {
  const { account, source, report } = copy;
  // A request that began before can make a sandbox, so that there is one more environment. It can
  // be under way also if a mover before this one has written the fence.
  for (let count = 1; count > 0;) {
    ({ count } = await source.sql`update pay.environments set moving = 'fenced'
      where account = ${account} and (moving is null or moving = 'draining')`);
    await outlast(source);
  }
  const ids = await idsOf(copy);
  await waitUntil(
    FENCE_MS,
    FENCED_LOOK_MS,
    async () => await countLeases(source, ids, true) === 0,
    "Operations of the account do not end",
  );
  report("fence: requests wait");
}

/** Waits until the transactions have ended that may not have seen the last change. */
async function outlast(source: CellDatabase): Promise<void> {
  let open = await openTransactions(source);
  await waitUntil(FENCE_MS, FENCED_LOOK_MS, async () => {
    const now = new Set(open.length === 0 ? [] : await openTransactions(source));
    open = open.filter((id) => now.has(id));
    return open.length === 0;
  }, "A transaction at --from, such as a backup, does not end: move the account after it");
}

/** Lets nothing change any more, and brings the last changes to the target. */
async function seal(copy: Copy): Promise<void> {
  const { account, source, target, name, tables, report } = copy;
  await source.sql`update pay.environments set moving = 'sealed'
    where account = ${account} and moving = 'fenced'`;
  await outlast(source);
  const [{ lsn }] = await source.sql<[{ lsn: string }]>`select pg_current_wal_insert_lsn() as lsn`;
  // A change of the copy's own, so that the target confirms at once.
  await source.sql`update pay.api_keys k set name = k.name where k.id = (
    select o.id from pay.api_keys o join pay.environments e on e.id = o.environment_id
    where e.account = ${account} limit 1)`;
  await waitUntil(FENCE_MS, FENCED_LOOK_MS, async () => {
    const [row] = await source.sql<[{ is_there: boolean }]>`
      select coalesce(bool_or(confirmed_flush_lsn >= ${lsn}::pg_lsn), false) as is_there
      from pg_replication_slots where slot_name = ${name}`;
    return row.is_there;
  }, "The target does not get the last changes");
  const ids = await idsOf(copy);
  const published = await publishedIds(source, name);
  const late = ids.filter((id) => !published.has(id));
  // Those that a mover before this one has copied may be in part.
  const there = new Set((await environmentsOf(target, account)).map(({ id }) => id));
  await deleteRows(target, tables, late.filter((id) => there.has(id)));
  await arrive(copy, ids);
  for (const { name } of orderedTables(await filledTables(source, tables, late))) {
    await copyRows(copy, name, late);
  }
  await moveCounters(source, target, await chainKeysOf(source, account));
  report(`seal: the target has the last change, and ${late.length} environments that are new`);
}

/** The environments whose changes are published. */
async function publishedIds({ sql }: CellDatabase, name: string): Promise<Set<string>> {
  const [row] = await sql<{ filter: string }[]>`
    select rowfilter as filter from pg_publication_tables
    where pubname = ${name} and tablename = 'payments'`;
  return new Set(row?.filter.match(/env_[0-9a-z]{26}/g) ?? []);
}

/** The tables in an order in which each foreign key finds its row. */
function orderedTables(tables: readonly TenantTable[]): TenantTable[] {
  const first = ["provider_accounts", "api_keys"];
  return [
    ...tables.filter(({ name }) => first.includes(name)),
    ...tables.filter(({ name }) => !first.includes(name)),
  ];
}

/** Not with COPY: the driver stops reading from the connection after a long result of it. */
async function copyRows({ source, target }: Copy, name: string, ids: string[]): Promise<void> {
  const found = source.sql.unsafe<{ row: string }[]>(
    `select t::text as row from pay.${name} t where t.environment_id = any ($1)`,
    [ids],
  );
  for await (const rows of found.cursor(BATCH_ROWS)) {
    await target.sql.unsafe(
      // Without the offset each column would parse the row again.
      `insert into pay.${name} select (p.row).* from (
         select r.text::pay.${name} as row from unnest($1::text[]) r (text) offset 0) p`,
      [rows.map(({ row }) => row)],
    );
  }
}

/** Throws unless both cells have the same rows. */
async function compare(copy: Copy): Promise<void> {
  const { account, source, target, tables, report } = copy;
  const ids = await idsOf(copy);
  const environments: TenantTable = {
    name: "environments",
    columns: [],
    fingerprint: "t.public_id, t.livemode, t.name, t.created_at, t.retired_at, t.ends_at",
  };
  const digests = async (database: CellDatabase) => {
    const found: Digest[][] = [];
    for (const table of tables) found.push(await digestOf(database, table, ids));
    return found;
  };
  const [there, here] = await Promise.all([digests(source), digests(target)]);
  const different = tables.filter((_, i) => JSON.stringify(there[i]) !== JSON.stringify(here[i]));
  const rowsOf = async ({ sql }: CellDatabase) =>
    JSON.stringify(
      await sql.unsafe(
        `select t.id, ${environments.fingerprint} from pay.environments t where t.account = $1 order by 1`,
        [account],
      ),
    );
  if (await rowsOf(source) !== await rowsOf(target)) different.push(environments);
  if (different.length > 0) {
    throw new CommandError(
      `The cells have different rows in ${
        different.map(({ name }) => name).join(", ")
      }: the account ` +
        "stays at --from. Abort, and move again",
    );
  }
  const rows = there.flat().reduce((sum, digest) => sum + Number(digest.rows), 0);
  report(`compare: ${rows} rows are equal`);
}

/** Sends requests to the target and opens the account there: the point of no return. */
async function handOver(copy: Copy, { map, cell }: Destination): Promise<void> {
  const { account, source, target, name, report } = copy;
  const { labels } = await labelsOf(source, account);
  await stopCopy(target, name);
  await switchLabels(map, labels, cell);
  report(`switch: ${labels.join(", ")} → ${cell}`);
  await target.sql`update pay.environments set moving = null
    where account = ${account} and moving = 'arriving'`;
  report("wake: the account is at --to");
}

/** Opens the account at the source again, with the proxy as it was. Its copy goes on. */
async function reopen(move: Move): Promise<void> {
  const { account, source, target } = move;
  const name = nameOf(account);
  const [row] = await source.sql<{ note: string | null }[]>`
    select obj_description(oid, 'pg_publication') as note from pg_publication
    where pubname = ${name}`;
  const keys = await chainKeysOf(source, account);
  await leaveCounters(target, keys);
  await leaveCounters(source, keys, false);
  const is_fenced = (await environmentsOf(source, account)).some(({ moving }) => moving !== null);
  if (row?.note && is_fenced) {
    const note = JSON.parse(row.note) as Note;
    const now = await readProxyMap(note.map);
    for (const [label, cell] of note.labels) {
      if (cell !== null && now.get(label) !== cell) await switchLabels(note.map, [label], cell);
    }
  }
  await source.sql`update pay.environments set moving = null where account = ${account}`;
  if ((await readState(move)).has_subscription) {
    await target.sql.unsafe(`alter subscription ${name} enable`);
  }
}

/** Ends the copy, and deletes the account at the source. */
async function finish(copy: Copy): Promise<void> {
  const { account, source, tables, keep_ms, report } = copy;
  await endCopy(copy);
  // Requests that the proxy has sent to the source before still wait there, with their keys.
  await pause(keep_ms);
  const ids = await idsOf(copy);
  report(`delete: ${ids.length} environments at --from`);
  await deleteRows(source, tables, ids);
  report(`delete: nothing of "${account}" is at --from`);
}

/** Removes what an earlier beginning has left, except the rows of the source. */
async function clear(copy: Copy): Promise<void> {
  const { account, target, tables } = copy;
  await endCopy(copy);
  const arrived = (await environmentsOf(target, account)).filter(({ moving }) =>
    moving === "arriving"
  );
  await deleteRows(target, tables, arrived.map(({ id }) => id));
}

/**
 * Drops the subscription, its slots and the publication. PostgreSQL's own DROP SUBSCRIPTION fails
 * from then on if it was killed after it had dropped the slot, so the slots are dropped here.
 */
async function endCopy({ source, target, name }: Copy): Promise<void> {
  const found = await tableSlots(target, name);
  if (found) await stopCopy(target, name);
  await waitUntil(FENCE_MS, LOOK_MS, async () => {
    const slots = await source.sql<{ slot: string; active: boolean }[]>`
      select slot_name as slot, active from pg_replication_slots
      where slot_name = ${name} or starts_with(slot_name, ${found?.prefix ?? "none"})
        and right(slot_name, length(${found?.suffix ?? "none"})) = ${found?.suffix ?? "none"}`;
    for (const { slot } of slots.filter(({ active }) => !active)) {
      await source.sql`select pg_drop_replication_slot(${slot})`;
    }
    return slots.every(({ active }) => !active);
  }, "The slot of the copy stays in use");
  if (found) {
    await target.sql.unsafe(`alter subscription ${name} set (slot_name = none)`);
    await target.sql.unsafe(`drop subscription ${name}`);
  }
  await source.sql.unsafe(`drop publication if exists ${name}`);
}

/** Stops the workers of the subscription. */
async function stopCopy({ sql }: CellDatabase, name: string): Promise<void> {
  await sql.unsafe(`alter subscription ${name} disable`);
  await waitUntil(FENCE_MS, FENCED_LOOK_MS, async () => {
    const [row] = await sql<[{ is_off: boolean }]>`
      select count(pid) = 0 as is_off from pg_stat_subscription where subname = ${name}`;
    return row.is_off;
  }, "The copy does not stop");
}

async function idsOf({ account, source }: Copy): Promise<string[]> {
  return (await environmentsOf(source, account)).map(({ id }) => id);
}

/** Looks until the condition is met. Throws after a time. */
async function waitUntil(
  within_ms: number,
  every_ms: number,
  condition: () => Promise<boolean>,
  fault: string,
): Promise<void> {
  for (const until = Date.now() + within_ms; !await condition();) {
    if (Date.now() > until) throw new CommandError(`${fault} within ${within_ms / 1_000} s`);
    await pause(every_ms);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
