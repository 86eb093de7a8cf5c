/**
 * The database of `deno task serve`: the check before it serves, and the check of the books for its
 * ticker. Both use the login of the functions.
 */

import type { Sql } from "postgres";
import { isUnavailable } from "../../../shared/core/database_error.ts";
import type { Settings } from "../../../shared/functions/settings.ts";
import { failedPoll, writeLogLine } from "../../../shared/http/log_line.ts";
import { connect } from "../../../shared/store/database.ts";
import { SettingsError } from "../data_dir/settings.ts";
import { refuseIsolation } from "../local/local_database.ts";
import { SQLSTATE, sqlstateOf } from "../../operator/command_line.ts";
import { ForeignDatabaseError, listMissing } from "../migrations/migrate.ts";

const VARIABLE = "PAYMENTS_DB_URL";
const REMEDY = 'run "deno task migrate" of this version';

interface ServeDatabase {
  /** Whether pg_cron and pg_net run the jobs, as the migrations have it (architecture §4). */
  has_scheduler: boolean;
  /** Checks the books unless they were checked within an hour. Logs an error. */
  checkBooks(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens the database.
 * @throws {SettingsError} if its schema is not that of this version, or its login does not fit
 * @throws {Error} if it cannot be reached now
 */
export async function openServeDatabase(settings: Settings): Promise<ServeDatabase> {
  const { database_url: url, database_authority: authority, prepare } = settings;
  const sql = connect({
    url,
    ...(authority !== undefined && { authority }),
    ...(prepare !== undefined && { prepare }),
  });
  const close = () => sql.end({ timeout: 0 });
  try {
    await refuseIsolation(sql, VARIABLE);
    await refuseSchema(sql);
    const has_scheduler = await findScheduler(sql);
    return { has_scheduler, checkBooks: () => checkBooks(sql), close };
  } catch (error) {
    await close();
    if (error instanceof SettingsError) throw error;
    const message = `${VARIABLE} cannot be used: ${(error as Error).message}`;
    // A supervisor starts the program again after an error that can pass.
    throw isUnavailable(error) ? new Error(message) : new SettingsError(message);
  }
}

async function refuseSchema(sql: Sql): Promise<void> {
  const missing = await listMissing(sql).catch((error) => {
    if (error instanceof ForeignDatabaseError) {
      throw new SettingsError(`The database of ${VARIABLE} ${error.reason}: serve that version`);
    }
    switch (sqlstateOf(error)) {
      case SQLSTATE.undefined_table:
        throw new SettingsError(`The database of ${VARIABLE} has no schema: ${REMEDY}`);
      case SQLSTATE.insufficient_privilege:
        throw new SettingsError(
          `The user of ${VARIABLE} may not read the record of migrations: make it a member of ` +
            `pay_api, and ${REMEDY}`,
        );
    }
    throw error;
  });
  if (missing.length === 0) return;
  throw new SettingsError(
    `The database of ${VARIABLE} is older than this version, it lacks ${missing[0]}: ${REMEDY}`,
  );
}

/** The condition under which the migrations schedule the jobs. Every role may read catalogues. */
async function findScheduler(sql: Sql): Promise<boolean> {
  const [found] = await sql<[{ is_there: boolean }]>`
    select exists (select from pg_namespace where nspname = 'net') and exists (
      select from pg_proc p join pg_namespace n on n.oid = p.pronamespace
      where n.nspname = 'cron' and p.proname = 'schedule'
    ) as is_there`;
  return found.is_there;
}

async function checkBooks(sql: Sql): Promise<void> {
  try {
    await sql.begin(async (transaction) => {
      // The check reads whole tables, and the role of the functions has a short timeout.
      await transaction`set local statement_timeout = 0`;
      await transaction`select pay.note_breaches_hourly()`;
    });
  } catch (error) {
    writeLogLine(failedPoll("check of the books", Date.now(), error));
  }
}
