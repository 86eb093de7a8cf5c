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
import { setTimeout as pause } from "node:timers/promises";
import type postgres from "postgres";
import { isUnavailable } from "../../shared/core/database_error.ts";
import {
  type Copy,
  endCopy,
  FENCED_LOOK_MS,
  follow,
  LOOK_MS,
  lostTables,
  publish,
  publishedIds,
  stopCopy,
  subscribe,
  waitUntil,
} from "./cells_copy.ts";
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
  sharerOf,
  startCounters,
  type TenantTable,
  tenantTables,
  userOfChainKeys,
} from "./cells_database.ts";
import { type ProxyMap, readProxyMap, refuseAbsentCells, switchLabels } from "./cells_proxy.ts";
import { CommandError, UsageError } from "./command_line.ts";

/** A lease of the dispatcher or the worker ends within 25 s, a transaction of a function in 5 s. */
const DRAIN_MS = 60_000;
const FENCE_MS = 30_000;
const BATCH_ROWS = 1_000;

/** An account, and the databases between which it moves. */
export interface Move extends Pick<Copy, "source" | "target" | "report"> {
  account: string;
  /** How long the source keeps the keys after the proxy has switched. */
  keep_ms: number;
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

/** A move whose copy is under way. */
interface MovingCopy extends Move, Copy {
  /** Throws `LostLock` if another mover can have the account. */
  refuseOthers(): Promise<void>;
}

/** The lock of the account ended with its connection, so another mover may have it. */
export class LostLock extends CommandError {
  constructor(account: string) {
    super(`The lock of the account "${account}" was lost`);
  }
}

interface MoveState {
  source: MovingEnvironment[];
  target: MovingEnvironment[];
  has_publication: boolean;
  has_slot: boolean;
  has_subscription: boolean;
  /** Whether an earlier move to the source has not ended. */
  arrives_here: boolean;
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
        ? `--account "${account}" does not exist at the source`
        : `--account "${account}" is at the target already`,
    );
  }
  const has_arrived = hasArrived(state);
  if (!has_arrived && state.target.some(({ moving }) => moving !== "arriving")) {
    throw new CommandError(`The target has an account "${account}" of its own`);
  }
  if (!has_arrived) refuseClosed(account, state);
  if (state.arrives_here) {
    throw new CommandError(
      `The move of "${account}" to the source has not ended: first run its command again`,
    );
  }
  const tables = await tenantTables(source);
  if (JSON.stringify(tables) !== JSON.stringify(await tenantTables(target))) {
    throw new CommandError("Both cells have tables with different columns");
  }
  const labels = await labelsOf(source, account);
  // A mover that was killed can have deleted them.
  if (labels.length === 0 && !has_arrived) {
    throw new CommandError(`The account "${account}" has no API keys`);
  }
  for (const database of [source, target]) {
    const sharer = await sharerOf(database, labels, account);
    if (sharer === null) continue;
    throw new CommandError(
      `The account "${sharer}" at the ${database.side} has keys with the same label, so the proxy ` +
        "cannot tell them apart: give one of them a label of its own (keys rotate --prefix, for " +
        "each of its keys), and wait until the older secrets have expired",
    );
  }
  const cells = new Set((await readProxyMap(map)).values());
  if (!cells.has(cell) && map.sockets.length === 0) {
    throw new UsageError(`--cell "${cell}" is not in the map: name a cell that the proxy has`);
  }
  await refuseAbsentCells(map, [cell]);
  const keys = await chainKeysOf(source, account);
  for (const database of [source, target]) {
    const user = await userOfChainKeys(database, keys, account);
    if (user === null) continue;
    throw new CommandError(
      `The account "${user}" at the ${database.side} uses the same extended public key or signer: two ` +
        "cells would give the same address or nonce twice",
    );
  }
  const lines = [
    `account "${account}", ${state.source.length} environments, labels ${
      labels.join(", ")
    } → ${cell}`,
    ...has_arrived ? ["it is at the target; what is left is to delete it at the source"] : [],
    ...keys.length === 0
      ? []
      : [`its addresses and nonces are counted at the target afterwards: ${keys}`],
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
    "the functions at the target need the same WEBHOOK_MASTER_SECRET" +
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
  await alone(move, (refuseOthers) => advance(move, destination, refuseOthers));
}

/**
 * Goes back: opens the account at the source, and deletes what has arrived at the target.
 * @param map the map of the proxy, if it is another one than at the beginning of the move
 */
export async function abortMove(move: Move, map: ProxyMap | null): Promise<void> {
  await alone(move, async () => {
    const state = await readState(move);
    if (hasArrived(state)) {
      throw new CommandError(
        `The account "${move.account}" is at the target already: "move" goes on and deletes it at the source`,
      );
    }
    if (!state.has_publication && !state.target.some(({ moving }) => moving === "arriving")) {
      throw new UsageError(`No move of --account "${move.account}" is under way`);
    }
    refuseClosed(move.account, state);
    await reopen(move, map);
    const tables = await tenantTables(move.source);
    await clear({ ...move, name: nameOf(move.account), tables });
    move.report("aborted: the account is at the source, and nothing of it is at the target");
  });
}

async function readState({ account, source, target }: Move): Promise<MoveState> {
  const name = nameOf(account);
  const [published] = await source.sql<[{ has_one: boolean; has_slot: boolean }]>`
    select exists (select from pg_publication where pubname = ${name}) as has_one,
      exists (select from pg_replication_slots where slot_name = ${name}) as has_slot`;
  const isSubscribed = async ({ sql }: CellDatabase) => {
    const [row] = await sql<[{ has_one: boolean }]>`
      select exists (select from pg_subscription s join pg_database d on d.oid = s.subdbid
        where s.subname = ${name} and d.datname = current_database()) as has_one`;
    return row.has_one;
  };
  return {
    source: await environmentsOf(source, account),
    target: await environmentsOf(target, account),
    has_publication: published.has_one,
    has_slot: published.has_slot,
    has_subscription: await isSubscribed(target),
    arrives_here: await isSubscribed(source),
  };
}

/**
 * The moves that are under way between two cells, and the accounts that are closed in one of them
 * without one, one line each.
 */
export async function listMoves(cells: readonly CellDatabase[]): Promise<string[]> {
  const lines: string[] = [];
  const copied = new Set<string>();
  for (const cell of cells) {
    const rows = await cell.sql<{ note: string | null; behind: string | null }[]>`
      select obj_description(p.oid, 'pg_publication') as note,
        pg_size_pretty(pg_wal_lsn_diff(pg_current_wal_lsn(), s.confirmed_flush_lsn)) as behind
      from pg_publication p left join pg_replication_slots s on s.slot_name = p.pubname
      where starts_with(p.pubname, 'pay_move_') order by p.pubname`;
    for (const { note, behind } of rows) {
      if (note === null) continue;
      const { account, cell: destination } = JSON.parse(note) as Note;
      copied.add(account);
      const steps = new Set(
        (await environmentsOf(cell, account)).map(({ moving }) => moving ?? "open"),
      );
      lines.push(
        `"${account}" → ${destination}: ${
          [...steps].join(", ") || "deleted"
        } at the ${cell.side}, ` +
          (behind === null ? "no slot" : `the copy is ${behind} behind`),
      );
    }
  }
  // Left by a mover that was killed before it deleted, or by an operator who closed a backup.
  for (const { side, sql } of cells) {
    const closed = await sql<{ account: string; steps: string }[]>`
      select e.account, string_agg(distinct e.moving, ', ') as steps
      from pay.environments e where e.moving is not null group by 1 order by 1`;
    for (const { account, steps } of closed) {
      if (copied.has(account)) continue;
      lines.push(
        `"${account}": ${steps} at the ${side}, and no copy between these cells: run the command of ` +
          "its move again",
      );
    }
  }
  return lines;
}

/**
 * Whether the account is open at the target, and sealed at the source. The source can have
 * environments that retention has deleted at the target since, above all a source that was
 * restored.
 */
function hasArrived({ source, target }: MoveState): boolean {
  const open = new Set(target.filter(({ moving }) => moving !== "arriving").map(({ id }) => id));
  return open.size > 0 && open.size === target.length &&
    source.every(({ moving }) => moving === "sealed") &&
    (source.length === 0 || source.some(({ id }) => open.has(id)));
}

/**
 * Refuses an account that is closed at the source for another reason than this move. It may be open
 * in a third cell, and must not be opened here or at the target.
 */
function refuseClosed(account: string, { source, ...state }: MoveState): void {
  if (state.has_publication && state.has_subscription) return;
  const steps = source.map(({ moving }) => moving).filter((moving) => moving !== null);
  if (steps.length === 0) return;
  throw new CommandError(
    steps.includes("arriving")
      ? `The account "${account}" has not arrived at the source yet`
      : `The account "${account}" has left the source, and is not at the target: name the cell that has it ` +
        "(docs/scaling.md, Backups and moves)",
  );
}

/** Runs the work of the only mover of the account, with a check that it still is. */
async function alone(
  move: Move,
  work: (refuseOthers: () => Promise<void>) => Promise<void>,
): Promise<void> {
  const { account, source } = move;
  // The end of this connection is the end of the lock.
  const lock = openCell(source.side, source.url);
  try {
    const pid = await lock.sql.begin(async (sql) => {
      const [row] = await sql<[{ is_taken: boolean; pid: number }]>`
        select pg_try_advisory_lock(hashtextextended(${`move ${account}`}, 0)) as is_taken,
          pg_backend_pid() as pid`;
      if (!row.is_taken) throw new CommandError(`Another mover has the account "${account}"`);
      return row.pid;
    });
    await work(async () => {
      const held = await source.sql`select from pg_locks
        where locktype = 'advisory' and granted and pid = ${pid}`;
      if (held.length === 0) throw new LostLock(account);
    });
  } finally {
    await lock.sql.end({ timeout: 0 });
  }
}

async function advance(
  move: Move,
  destination: Destination,
  refuseOthers: () => Promise<void>,
): Promise<void> {
  const copy: MovingCopy = {
    ...move,
    name: nameOf(move.account),
    tables: await tenantTables(move.source),
    refuseOthers,
  };
  const state = await readState(move);
  if (!hasArrived(state)) {
    // Again, because another mover can have moved it before this one had the lock.
    refuseClosed(move.account, state);
    do await begin(copy, destination); while (!await follow(copy));
    try {
      await drain(copy);
      await fence(copy);
      await seal(copy);
      await compare(copy);
      await handOver(copy, destination);
    } catch (error) {
      // While a database is away the account waits behind its fence, and the move goes on or back.
      if (isUnavailable(error) || error instanceof LostLock) throw error;
      await refuseOthers();
      await reopen(move, null).catch((fault) => move.report(fault.message));
      throw error;
    }
    if (destination.map.sockets.length === 0) {
      return move.report(
        "Reload the proxy, and run the same command again: it deletes at the source",
      );
    }
  }
  await finish(copy);
}

/** Begins the copy, unless it has begun. Begins again if a part of it was lost. */
async function begin(copy: MovingCopy, destination: Destination): Promise<void> {
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
  // Without its copy it could not be opened any more.
  if (state.source.some(({ moving }) => moving !== null)) await reopen(copy, destination.map);
  await clear(copy);
  await switchLabels(destination.map, [], destination.cell);
  const ids = state.source.map(({ id }) => id);
  const labels = await labelsOf(source, account);
  const before = await readProxyMap(destination.map);
  const note: Note = {
    account,
    ...destination,
    labels: labels.map((label) => [label, before.get(label) ?? null]),
  };
  await publish(copy, ids, JSON.stringify(note));
  await arrive(copy, ids);
  await subscribe(copy);
  report(`copy: ${ids.length} environments, ${tables.length} tables`);
}

/** Writes the environments of the account to the target, where they are not open yet. */
async function arrive({ source, target }: MovingCopy, ids: readonly string[]): Promise<void> {
  const rows = await source.sql`
    select e.id, e.public_id, e.account, e.livemode, e.name, e.created_at::text as created_at,
      e.retired_at::text as retired_at, e.ends_at::text as ends_at, 'arriving' as moving,
      e.stored_gb, e.resets_until::text as resets_until, e.merchant
    from pay.environments e where e.id = any (${ids as string[]})
    -- An environment that a reset has retired gives its public id free for the next one.
    order by e.retired_at nulls last, e.id`;
  await target.sql`
    insert into pay.environments as e
    select * from json_populate_recordset(null::pay.environments, ${
    JSON.stringify(rows)
  }::text::json)
    on conflict on constraint environments_pkey do update
      set retired_at = excluded.retired_at, ends_at = excluded.ends_at, name = excluded.name,
        stored_gb = excluded.stored_gb, resets_until = excluded.resets_until,
        merchant = excluded.merchant
      where e.moving = 'arriving'`;
}

/** Lets the jobs begin nothing new, and waits for what they have begun. */
async function drain(copy: MovingCopy): Promise<void> {
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
async function fence(copy: MovingCopy): Promise<void> {
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
  }, "A transaction at the source, such as a backup, does not end: move the account after it");
}

/** Lets nothing change any more, and brings the last changes to the target. */
async function seal(copy: MovingCopy): Promise<void> {
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
  // Another mover has ended the move meanwhile: the target has the only copy.
  if (ids.length === 0) throw new LostLock(account);
  const published = await publishedIds(source, name);
  const late = ids.filter((id) => !published.has(id));
  // Those that a mover before this one has copied may be in part.
  const there = new Set((await environmentsOf(target, account)).map(({ id }) => id));
  const filled = orderedTables(await filledTables(source, tables, late));
  // At once: the proxy of a mover that was killed can send requests there already, and their keys
  // must not be away.
  await target.sql.begin(async (transaction) => {
    const into = { ...copy, target: { ...target, sql: transaction as unknown as postgres.Sql } };
    // Retention has deleted others since they arrived. A move deletes nothing that is open.
    const gone = await transaction<{ id: string }[]>`
      select id from pay.environments
      where account = ${account} and moving = 'arriving' and id <> all (${ids}) for update`;
    await deleteRows(into.target, tables, [
      ...gone.map(({ id }) => id),
      ...late.filter((id) => there.has(id)),
    ]);
    await arrive(into, ids);
    for (const { name } of filled) await copyRows(into, name, late);
  });
  await startCounters(source, account);
  await moveCounters(source, target, await chainKeysOf(source, account));
  report(`seal: the target has the last change, and ${late.length} environments that are new`);
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
async function copyRows(
  { source, target }: MovingCopy,
  name: string,
  ids: string[],
): Promise<void> {
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
async function compare(copy: MovingCopy): Promise<void> {
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
        "stays at the source. Abort, and move again",
    );
  }
  const rows = there.flat().reduce((sum, digest) => sum + Number(digest.rows), 0);
  report(`compare: ${rows} rows are equal`);
}

/** Sends requests to the target and opens the account there: the point of no return. */
async function handOver(copy: MovingCopy, { map, cell }: Destination): Promise<void> {
  const { account, source, target, report } = copy;
  const labels = await labelsOf(source, account);
  await stopCopy(copy);
  await copy.refuseOthers();
  await switchLabels(map, labels, cell);
  report(`switch: ${labels.join(", ")} → ${cell}`);
  await copy.refuseOthers();
  if ((await environmentsOf(source, account)).some(({ moving }) => moving !== "sealed")) {
    throw new CommandError(`The account "${account}" was opened at the source meanwhile`);
  }
  await target.sql`update pay.environments set moving = null
    where account = ${account} and moving = 'arriving'`;
  report("wake: the account is at the target");
}

/**
 * Opens the account at the source again, and then switches the proxy back: until then requests get
 * 503 at the target. The copy goes on.
 * @throws {CommandError} if the proxy does not respond, or must be reloaded
 */
async function reopen(move: Move, map: ProxyMap | null): Promise<void> {
  const { account, source, target } = move;
  const name = nameOf(account);
  const [row] = await source.sql<{ note: string | null }[]>`
    select obj_description(oid, 'pg_publication') as note from pg_publication
    where pubname = ${name}`;
  const keys = await chainKeysOf(source, account);
  await leaveCounters(target, keys);
  await leaveCounters(source, keys, false);
  await source.sql`update pay.environments set moving = null where account = ${account}`;
  if ((await readState(move)).has_subscription) {
    await target.sql.unsafe(`alter subscription ${name} enable`);
  }
  if (!row?.note) return;
  const note = JSON.parse(row.note) as Note;
  const proxy = map ?? note.map;
  let was_switched = false;
  for (const [label, cell] of note.labels) {
    // The file can be right and the running proxy wrong, if it was away before.
    if (cell !== null && await switchLabels(proxy, [label], cell)) was_switched = true;
  }
  if (was_switched && proxy.sockets.length === 0) {
    throw new CommandError(
      "The account is open at the source: reload the proxy, and run the same command again",
    );
  }
  // Requests that the proxy has sent to the target before still wait there, with their keys.
  if (was_switched) await pause(move.keep_ms);
}

/** Ends the copy, and deletes the account at the source, whose counters count no more. */
async function finish(copy: MovingCopy): Promise<void> {
  const { account, source, tables, keep_ms, report } = copy;
  await endCopy(copy);
  // Requests that the proxy has sent to the source before still wait there, with their keys.
  await pause(keep_ms);
  await copy.refuseOthers();
  const ids = await idsOf(copy);
  report(`delete: ${ids.length} environments at the source`);
  // Again, for a source that was restored from a backup.
  await startCounters(source, account);
  await leaveCounters(source, await chainKeysOf(source, account));
  await deleteRows(source, tables, ids);
  report(`delete: nothing of "${account}" is at the source`);
}

/** Removes what an earlier beginning has left, except the rows of the source. */
async function clear(copy: Move & Copy): Promise<void> {
  const { account, target, tables } = copy;
  await endCopy(copy);
  const arrived = (await environmentsOf(target, account)).filter(({ moving }) =>
    moving === "arriving"
  );
  await deleteRows(target, tables, arrived.map(({ id }) => id));
}

async function idsOf({ account, source }: MovingCopy): Promise<string[]> {
  return (await environmentsOf(source, account)).map(({ id }) => id);
}
