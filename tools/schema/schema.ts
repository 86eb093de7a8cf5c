/**
 * `deno task schema` writes the migration of the functions and views from supabase/schemas.
 * `deno task schema --check` writes nothing. It fails if that migration is not current, if a
 * released migration has changed, or if a function is broken in a database with all migrations.
 * For the check it starts a PostgreSQL server, or uses the one of TEST_DATABASE_URL, whose user
 * must be allowed to create databases and roles.
 */

import { basename } from "node:path";
import { migrate, MigrationError } from "../../apps/server/migrations/migrate.ts";
import { findBrokenReleases, hashMigrations, readReleases } from "./releases.ts";
import { renderFunctions, writeFunctions } from "./schema_files.ts";
import { openConnection } from "../../apps/server/postgres/connection.ts";
import { withDatabase, withScratchServer } from "../testing/scratch_server.ts";

if (import.meta.main) Deno.exit(await main(Deno.args));

async function main(args: readonly string[]): Promise<number> {
  if (args.length > 1 || (args.length === 1 && args[0] !== "--check")) {
    console.error("Usage: deno task schema [--check]");
    return 2;
  }
  try {
    if (args.length === 1) return await withScratchServer(check);
    const written = await writeFunctions();
    console.log(written === null ? "The migrations are current" : `Written: ${written}`);
    return 0;
  } catch (error) {
    const is_complete = error instanceof MigrationError || (error as Error).constructor === Error;
    console.error(is_complete ? (error as Error).message : error);
    return 1;
  }
}

async function check(server_url: string): Promise<number> {
  const problems = await checkSchema(server_url);
  if (problems.length === 0) console.log("The migrations and supabase/schemas agree");
  else console.error(problems.join("\n"));
  return problems.length === 0 ? 0 : 1;
}

/** @param server_url whose user may create databases and roles */
export async function checkSchema(server_url: string): Promise<string[]> {
  const problems = findBrokenReleases(await readReleases(), await hashMigrations());
  const { path, is_current } = await renderFunctions();
  if (!is_current) {
    problems.push(`${basename(path)} and supabase/schemas differ: run "deno task schema"`);
  }
  const broken = await withDatabase(server_url, async (url) => {
    await migrate(url);
    return await findBrokenFunctions(url);
  });
  return [...problems, ...broken];
}

/**
 * Finds functions that would fail in a migrated database. PostgreSQL has checked no body when it
 * created them. For a plpgsql body and a text for `execute` it looks up names only when the
 * function runs, so names of the schemas are looked up here. A name after a quote is that of a
 * setting.
 * @returns for each: its name and the reason
 */
export async function findBrokenFunctions(url: string): Promise<string[]> {
  await using sql = openConnection(url);
  try {
    await sql.unsafe(`
      grant pay_owner to current_user;
      create function pg_temp.fault_in(p_function oid, p_language text) returns text
      language plpgsql as $$
      begin
        execute format('select %I($1)',
          case p_language when 'sql' then 'fmgr_sql_validator' else p_language || '_validator' end)
        using p_function;
        return null;
      exception when others then
        return sqlerrm;
      end
      $$`).simple();
    const rows = await sql<{ line: string }[]>`
      with body as (
        select p.oid, p.oid::regprocedure::text as function, p.pronamespace, p.proname,
          l.lanname::text as language, regexp_replace(p.prosrc, '--[^\n]*', '', 'g') as text
        from pg_proc p join pg_language l on l.oid = p.prolang
        where p.pronamespace in ('pay'::regnamespace, 'pay_internal'::regnamespace)
      )
      select function || ': ' || fault as line
      from body cross join lateral pg_temp.fault_in(oid, language) as fault
      where fault is not null
      union
      select function || ': ' || name[1] || ' does not exist'
      from body
      cross join lateral regexp_matches(text, '(?<![''\\w.])pay(?:_internal)?\\.\\w+', 'g') as name
      where to_regproc(name[1]) is null and to_regclass(name[1]) is null
        and to_regtype(name[1]) is null
      union
      select string_agg(function, ' and ') || ' have one name: drop the older one in a migration'
      from body group by pronamespace, proname having count(*) > 1
      order by line`;
    return rows.map(({ line }) => line);
  } finally {
    await sql.unsafe("revoke pay_owner from current_user");
  }
}
