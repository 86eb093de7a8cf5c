/**
 * The copy of a move (cells_move.ts): PostgreSQL's logical replication of the rows of some
 * environments from one cell to another. The publication at the source, its comment, the
 * subscription at the target and its slot have the name of the copy.
 */

import { setTimeout as pause } from "node:timers/promises";
import type { CellDatabase, TenantTable } from "./cells_database.ts";
import { CommandError, SQLSTATE, sqlstateOf } from "./command_line.ts";

export const LOOK_MS = 200;
export const FENCED_LOOK_MS = 20;
/** Between two lines about the progress of the copy. */
const TELL_MS = 5_000;
/** The copy is behind by at most this many bytes of WAL before the fence. */
const NEAR_BYTES = 1_000_000;
/** How long the target may fail to apply the copy, and how long after an error it may be well. */
const STALL_MS = 60_000;
const WELL_MS = 30_000;
/** A process that lives longer has begun to copy its table. */
const BEGUN_MS = 5_000;
/** A worker of the subscription ends within this time. */
const STOP_MS = 30_000;

export interface Copy {
  source: CellDatabase;
  target: CellDatabase;
  name: string;
  /** The tables of the source, read once. */
  tables: TenantTable[];
  /** Prints a line about the progress. */
  report(line: string): void;
}

/** Publishes the rows of environments at the source, with a comment. */
export async function publish(
  { source, name, tables }: Copy,
  ids: readonly string[],
  comment: string,
): Promise<void> {
  const list = `'{${ids.join(",")}}'::text[]`;
  await source.sql.begin(async (sql) => {
    await sql.unsafe(
      `create publication ${name} for table ` +
        tables.map((table) => `pay.${table.name} where (environment_id = any (${list}))`).join(
          ", ",
        ),
    );
    const [row] = await sql`select format('comment on publication %I is %L', ${name}::text,
      ${comment}::text) as text`;
    await sql.unsafe(row!.text);
  });
}

/** Begins to copy what is published. The environments must be at the target. */
export async function subscribe({ source, target, name }: Copy): Promise<void> {
  // The statement has the password of the source, and the server logs statements that fail. Only a
  // superuser can keep it out (docs/scaling.md).
  const session = await target.sql.reserve();
  try {
    for (const setting of ["log_statement = none", "log_min_error_statement = panic"]) {
      await session.unsafe(`set ${setting}`).catch((error) => {
        if (sqlstateOf(error) !== SQLSTATE.insufficient_privilege) throw error;
      });
    }
    // A copied table has a slot until the target has committed that it is complete. If a crash took
    // this commit back, the table could never be complete: it would wait for the slot for ever.
    const [row] = await session`select format(
      'create subscription %I connection %L publication %I
       with (run_as_owner = true, synchronous_commit = on)',
      ${name}::text, ${source.url}::text, ${name}::text) as text`;
    await session.unsafe(row!.text);
    await session`reset log_statement`.catch(() => {});
    await session`reset log_min_error_statement`.catch(() => {});
  } finally {
    session.release();
  }
}

/**
 * Waits until the copy is complete but for the newest changes. Returns false if a part of it was
 * lost.
 */
export async function follow(copy: Copy): Promise<boolean> {
  const { source, target, name, report } = copy;
  let told_at = 0;
  let failing = { since: 0, latest: 0 };
  let last_errors = Infinity;
  let at_work = Date.now();
  let done = 0;
  /** When each process that copies a table was seen first. */
  let seen = new Map<number, number>();
  for (;;) {
    const [tables] = await target.sql<
      [{
        ready: number;
        finished: number;
        all: number;
        is_synchronous: boolean;
        errors: number;
        workers: number[];
      }]
    >`
      select count(*) filter (where r.srsubstate = 'r')::integer as ready,
        count(*) filter (where r.srsubstate = 'f')::integer as finished, count(*)::integer as all,
        coalesce(bool_or(s.subsynccommit = 'on'), false) as is_synchronous,
        coalesce((select t.apply_error_count + t.sync_error_count
          from pg_stat_subscription_stats t where t.subname = ${name}), 0)::integer as errors,
        array(select t.pid from pg_stat_subscription t
          where t.subname = ${name} and t.relid is not null and t.pid is not null) as workers
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
    // Where not even the copy of a table can begin, its process ends at once and counts no error.
    seen = new Map(tables.workers.map((pid) => [pid, seen.get(pid) ?? now]));
    const is_copying = [...seen.values()].some((since) => now - since > BEGUN_MS);
    if (is_copied || is_copying || tables.ready + tables.finished > done) at_work = now;
    done = tables.ready + tables.finished;
    if (failing.latest - failing.since > STALL_MS || now - at_work > STALL_MS) {
      throw new CommandError(
        "The server of the target cannot apply the copy; its log has the reason. The account is still at " +
          "the source: mend it and run the same command, or abort",
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
export async function lostTables({ source, target, name }: Copy): Promise<string[]> {
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
    "The server of the source has deleted changes that the copy lacks (max_slot_wal_keep_size): abort, " +
      "and move again",
  );
}

/** The environments whose changes are published. */
export async function publishedIds({ sql }: CellDatabase, name: string): Promise<Set<string>> {
  const [row] = await sql<{ filter: string }[]>`
    select rowfilter as filter from pg_publication_tables
    where pubname = ${name} and tablename = 'payments'`;
  return new Set(row?.filter.match(/env_[0-9a-z]{26}/g) ?? []);
}

/**
 * Drops the subscription, its slots and the publication. PostgreSQL's own DROP SUBSCRIPTION fails
 * from then on if it was killed after it had dropped the slot, so the slots are dropped here.
 */
export async function endCopy(copy: Copy): Promise<void> {
  const { source, target, name } = copy;
  const found = await tableSlots(target, name);
  if (found) await stopCopy(copy);
  await waitUntil(STOP_MS, LOOK_MS, async () => {
    const slots = await source.sql<{ slot: string; active: boolean }[]>`
      select slot_name as slot, active from pg_replication_slots
      where slot_name = ${name} or starts_with(slot_name, ${found?.prefix ?? "none"})
        and right(slot_name, length(${found?.suffix ?? "none"})) = ${found?.suffix ?? "none"}`;
    for (const { slot } of slots.filter(({ active }) => !active)) {
      await source.sql`select pg_drop_replication_slot(${slot})`;
    }
    return slots.every(({ active }) => !active);
  }, "The slot of the copy stays in use");
  // The subscription last: as long as the target has it, the account cannot move on from there.
  await source.sql.unsafe(`drop publication if exists ${name}`);
  if (found) {
    await target.sql.unsafe(`alter subscription ${name} set (slot_name = none)`);
    await target.sql.unsafe(`drop subscription ${name}`);
  }
}

export async function stopCopy({ target, name }: Copy): Promise<void> {
  const { sql } = target;
  await sql.unsafe(`alter subscription ${name} disable`);
  await waitUntil(STOP_MS, FENCED_LOOK_MS, async () => {
    const [row] = await sql<[{ is_off: boolean }]>`
      select count(pid) = 0 as is_off from pg_stat_subscription where subname = ${name}`;
    return row.is_off;
  }, "The copy does not stop");
}

/** Looks until the condition is met. Throws after a time. */
export async function waitUntil(
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
