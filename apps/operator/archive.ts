/**
 * `deno task archive` writes the events and deliveries of live environments, which retention
 * deletes after 30 days, to a folder or an S3 bucket, one day after the other, with the sums of the
 * ledger. From then on retention deletes only what the archive has. `--check` reads an archive
 * again.
 *
 * archive_format.ts describes the files, archive_store.ts the places.
 */

import type postgres from "postgres";
import { gunzipSync, gzipSync } from "node:zlib";
import {
  type ArchivedFile,
  carryForward,
  dayPath,
  latestPath,
  type LedgerSum,
  Manifest,
  ManifestLink,
  type MovedSum,
  sha256,
} from "./archive_format.ts";
import { type ArchiveStore, openArchiveStore } from "./archive_store.ts";
import {
  action,
  CommandError,
  SQLSTATE,
  sqlstateOf,
  type Surroundings,
  UsageError,
} from "./command_line.ts";

export const USAGE = `Usage:
  deno task archive --to PLACE [--account ACCOUNT] [--until DAY]
  deno task archive --check --to PLACE [--account ACCOUNT]
  deno task archive --end --account ACCOUNT

Writes the events and deliveries of live environments, of each day (UTC) that ended a week ago.
From then on retention keeps what the archive does not have, so run it every day.

    --to PLACE         A folder, or s3://BUCKET/PREFIX with AWS_ACCESS_KEY_ID,
                       AWS_SECRET_ACCESS_KEY, and by choice AWS_REGION and AWS_ENDPOINT_URL.
    --account ACCOUNT  Only the live environment of this account.
    --until DAY        The first day that is not written, such as 2030-01-31.
    --check            Reads the whole archive, and compares checksums, chain and ledger with
                       the last checksum and the ledger of the database.
    --end              Retention deletes events after 30 days again. The files stay.
`;
const DAY_MS = 86_400_000;
/** Days until a delivery cannot change any more. pay.note_archive has the same number. */
const AGE_DAYS = 7;
const PAGE_ROWS = 1_000;
/** A file has at most this many lines and bytes before compression, so it fits into the memory. */
const FILE_LINES = 50_000;
const FILE_BYTES = 32 * 1024 ** 2;
const KINDS = ["events", "deliveries"] as const;

/** A live environment, as `pay.list_archives` returns it. */
interface ArchivedEnvironment {
  environment_id: string;
  account: string;
  /** Null if there is no archive, or it has ended. */
  archived_until: Date | null;
  next_day: Date;
  /** The last manifest that the database knows, also after the end of the archive. */
  last_day: string | null;
  last_sha256: string | null;
}

export const ACTIONS = action(["to", "account", "until", "check", "end"], (values, _, env) => {
  const { to, account = null, until, check: is_check = false, end: is_end = false } = values;
  if (is_check && is_end) throw new UsageError("--check and --end exclude each other");
  if (!is_end && !to) throw new UsageError("--to is missing: a folder, or s3://…");
  if (is_end && !account) throw new UsageError("--account is missing");
  const last_day = until === undefined ? null : readDay(until);
  const store = is_end ? null : openArchiveStore(to!, env);
  return async (surroundings) => {
    const { sql } = surroundings;
    const found = await sql<ArchivedEnvironment[]>`select * from pay.list_archives(${account})`;
    if (account !== null && found.length === 0) {
      throw new UsageError(`--account "${account}" has no live environment`);
    }
    if (store === null) return await endArchives(surroundings, found);
    if (is_check) return await forEach(found, (each) => checkArchive(surroundings, store, each));
    // Two runs would write the same files.
    const [lock] = await sql`
      select pg_try_advisory_lock(hashtextextended('archive', 0)) as is_taken`;
    if (!lock!.is_taken) throw new CommandError("Another archive is being written");
    await forEach(found, (each) => writeArchive(surroundings, store, each, last_day));
  };
});

async function endArchives(
  { sql, print }: Surroundings,
  found: readonly ArchivedEnvironment[],
): Promise<void> {
  for (const { environment_id, account } of found) {
    const [row] = await sql`select pay.end_archive(${environment_id}) as had_one`;
    print(`${account}: ${row!.had_one ? "the archive has ended" : "it had no archive"}\n`);
  }
}

function readDay(text: string): Date {
  const day = ManifestLink.shape.day.safeParse(text);
  if (!day.success) throw new UsageError(`--until "${text}" must be a day, such as 2030-01-31`);
  return new Date(text);
}

/** Does the work for each environment, so that the fault of one does not hold up the others. */
async function forEach(
  found: readonly ArchivedEnvironment[],
  work: (environment: ArchivedEnvironment) => Promise<void>,
): Promise<void> {
  const faults: string[] = [];
  for (const environment of found) {
    try {
      await work(environment);
    } catch (error) {
      const is_moving = sqlstateOf(error) === SQLSTATE.lock_not_available;
      if (!is_moving && !(error instanceof CommandError)) throw error;
      const { message } = error as Error;
      faults.push(is_moving ? `${environment.account}: ${message}` : message);
    }
  }
  if (faults.length > 0) throw new CommandError(faults.join("\n"));
}

async function writeArchive(
  { sql, print }: Surroundings,
  store: ArchiveStore,
  environment: ArchivedEnvironment,
  until: Date | null,
): Promise<void> {
  const { environment_id, account } = environment;
  const newest = Math.floor(Date.now() / DAY_MS - AGE_DAYS) * DAY_MS;
  const end = Math.min(until?.getTime() ?? newest, newest);
  const link = await lastLink(store, environment);
  const next_day = await nextDay(sql, environment, link);
  let before = link && { link, manifest: await readManifest(store, environment_id, link) };
  for (let at = next_day.getTime(); at < end; at += DAY_MS) {
    const from = new Date(at);
    const to = new Date(at + DAY_MS);
    const files: ArchivedFile[] = [];
    for (const kind of KINDS) {
      files.push(...await writeFiles(sql, store, environment_id, kind, from));
    }
    const opening = before === null
      ? carryForward([], await sumsOf(sql, environment_id, new Date(0), from))
      : before.manifest.ledger;
    const manifest: Manifest = {
      format: 1,
      environment_id,
      account,
      day: dayOf(from),
      previous: before && before.link,
      files,
      ledger: carryForward(opening, await sumsOf(sql, environment_id, from, to)),
    };
    const bytes = encode(manifest);
    const link = { day: manifest.day, sha256: sha256(bytes) };
    await putSafely(store, dayPath(environment_id, manifest.day), bytes);
    await putSafely(store, latestPath(environment_id), encode(link));
    await sql`select pay.note_archive(
      ${environment_id}, ${to.toISOString()}::timestamptz, ${link.sha256})`;
    before = { link, manifest };
    const count = (kind: string) =>
      files.reduce((sum, { name, lines }) => sum + (name.startsWith(kind) ? lines : 0), 0);
    print(`${account} ${link.day}: ${count("events")} events, ${count("deliveries")} deliveries\n`);
  }
}

/**
 * Returns the day with which the archive goes on. After an end of the archive it goes on behind its
 * last day, because retention has deleted from the days before since.
 */
async function nextDay(
  sql: postgres.Sql,
  { environment_id, account, archived_until, next_day }: ArchivedEnvironment,
  last: ManifestLink | null,
): Promise<Date> {
  if (last === null) {
    if (archived_until === null) return next_day;
    throw new CommandError(
      `${account}: this place has no archive until ${dayOf(archived_until)}: name the place of ` +
        "the other days, or end that archive first (--end)",
    );
  }
  const after = dayAfter(last);
  if (archived_until === null && after > next_day) {
    await sql`select pay.note_archive(
      ${environment_id}, ${after.toISOString()}::timestamptz, ${last.sha256})`;
  } else if (dayOf(after) !== dayOf(next_day)) {
    throw new CommandError(
      `${account}: the archive at this place ends with ${last.day}, and retention has deleted or ` +
        `archived elsewhere everything before ${dayOf(next_day)}: choose another place`,
    );
  }
  return after;
}

function dayAfter({ day }: Pick<ManifestLink, "day">): Date {
  return new Date(Date.parse(day) + DAY_MS);
}

/**
 * Returns the link to the last manifest that the database knows, or null if the place has no
 * archive. A run that was killed can have written another day.
 */
async function lastLink(
  store: ArchiveStore,
  environment: ArchivedEnvironment,
): Promise<ManifestLink | null> {
  const { environment_id, last_day } = environment;
  const latest = latestPath(environment_id);
  const bytes = await store.get(latest);
  let link = bytes && decode(ManifestLink, bytes, latest);
  while (link !== null && last_day !== null && link.day > last_day) {
    link = (await readManifest(store, environment_id, link)).previous;
  }
  if (link !== null) assertKnown(environment, link);
  return link;
}

/** Throws if the database knows another manifest of this day. */
function assertKnown(
  { account, last_day, last_sha256 }: ArchivedEnvironment,
  { day, sha256 }: ManifestLink,
): void {
  if (day !== last_day || sha256 === last_sha256) return;
  throw new CommandError(
    `${account}: the database knows another manifest of ${day}: this archive was changed, or is ` +
      "not the one that was written last",
  );
}

async function readManifest(
  store: ArchiveStore,
  environment_id: string,
  { day, sha256: expected }: ManifestLink,
): Promise<Manifest> {
  const path = dayPath(environment_id, day);
  return decode(Manifest, await getSafely(store, path, expected), path);
}

async function writeFiles(
  sql: postgres.Sql,
  store: ArchiveStore,
  environment_id: string,
  kind: typeof KINDS[number],
  from: Date,
): Promise<ArchivedFile[]> {
  const to = new Date(from.getTime() + DAY_MS);
  const files: ArchivedFile[] = [];
  let lines: string[] = [];
  let size = 0;
  const flush = async () => {
    if (lines.length === 0) return;
    const name = `${kind}-${String(files.length + 1).padStart(4, "0")}.ndjson.gz`;
    const bytes = new Uint8Array(gzipSync(`${lines.join("\n")}\n`));
    await putSafely(store, dayPath(environment_id, dayOf(from), name), bytes);
    files.push({ name, lines: lines.length, sha256: sha256(bytes) });
    lines = [];
    size = 0;
  };
  for (let after: string | null = null;;) {
    const rows: { id: string; line: string }[] = await sql`
      select id, line from pay.read_archive(
        ${environment_id}, ${kind}, ${from.toISOString()}::timestamptz,
        ${to.toISOString()}::timestamptz, ${after}, ${PAGE_ROWS})`;
    for (const { line } of rows) {
      if (lines.length === FILE_LINES || size + line.length > FILE_BYTES) await flush();
      lines.push(line);
      size += line.length;
    }
    if (rows.length < PAGE_ROWS) break;
    after = rows.at(-1)!.id;
  }
  await flush();
  return files;
}

function sumsOf(sql: postgres.Sql, environment_id: string, from: Date, to: Date) {
  return sql<MovedSum[]>`select * from pay.sum_archive(
    ${environment_id}, ${from.toISOString()}::timestamptz, ${to.toISOString()}::timestamptz)`;
}

/** Reads the archive of an environment from its end to its beginning. */
async function checkArchive(
  { sql, print }: Surroundings,
  store: ArchiveStore,
  environment: ArchivedEnvironment,
): Promise<void> {
  const { environment_id, account, last_day } = environment;
  // Up to the day that the database has noted: what stands behind it could be forged.
  const latest = await lastLink(store, environment);
  if (latest === null) {
    if (last_day === null) return print(`${account}: no archive\n`);
    throw new CommandError(`${account}: this place has no archive`);
  }
  let days = 0;
  let has_last_day = last_day === null;
  let newest: Manifest | null = null;
  for (let link: ManifestLink | null = latest; link !== null; days++) {
    const manifest: Manifest = await readManifest(store, environment_id, link);
    newest ??= manifest;
    assertKnown(environment, link);
    has_last_day ||= link.day === last_day;
    for (const { name, lines, sha256: expected } of manifest.files) {
      const path = dayPath(environment_id, manifest.day, name);
      const text = gunzipSync(await getSafely(store, path, expected)).toString();
      if (text.split("\n").length - 1 !== lines) {
        throw new CommandError(`${path}: not ${lines} lines`);
      }
    }
    link = manifest.previous;
  }
  const { ledger } = newest!;
  const end = dayAfter(latest);
  const booked = carryForward([], await sumsOf(sql, environment_id, new Date(0), end));
  if (closings(ledger) !== closings(booked)) {
    throw new CommandError(
      `${account} ${latest.day}: the sums of the ledger are ${
        closings(ledger)
      }, and those of the ` +
        `database are ${closings(booked)}`,
    );
  }
  if (!has_last_day) {
    throw new CommandError(
      `${account}: the archive at this place ends with ${latest.day} and lacks ${last_day}, and ` +
        `retention may have deleted everything until then`,
    );
  }
  print(`${account}: ${days} days until ${latest.day}, whole, and the ledger agrees\n`);
}

function closings(ledger: readonly LedgerSum[]): string {
  return ledger.map(({ currency, debit_account, credit_account, closing }) =>
    `${debit_account}→${credit_account} ${closing} ${currency}`
  ).join(", ");
}

/** Stores a file, and reads it again. */
async function putSafely(
  store: ArchiveStore,
  path: string,
  bytes: Uint8Array<ArrayBuffer>,
): Promise<void> {
  await store.put(path, bytes);
  await getSafely(store, path, sha256(bytes));
}

/** Reads a file whose checksum is known. */
async function getSafely(store: ArchiveStore, path: string, expected: string): Promise<Uint8Array> {
  const bytes = await store.get(path);
  if (bytes === null) throw new CommandError(`${path} is missing`);
  if (sha256(bytes) !== expected) throw new CommandError(`${path} has another checksum`);
  return bytes;
}

function encode(value: unknown): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(`${JSON.stringify(value, null, 2)}\n`);
}

function decode<T>(schema: { parse(value: unknown): T }, bytes: Uint8Array, path: string): T {
  try {
    return schema.parse(JSON.parse(new TextDecoder().decode(bytes)));
  } catch (error) {
    throw new CommandError(`${path} cannot be read: ${(error as Error).message}`);
  }
}

function dayOf(at: Date): string {
  return at.toISOString().slice(0, 10);
}
