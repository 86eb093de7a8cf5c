/**
 * `supabase/schemas/*.sql`: the functions and views of the schemas `pay` and `pay_internal`, one
 * topic a file. The migration `functions` brings them to databases: it is these files in an order
 * in which PostgreSQL accepts them. Tables, constraints, indexes and policies are in the other
 * migrations.
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { listMigrations, MIGRATIONS_DIR } from "../../apps/server/migrations/migrate.ts";
import { readReleases, releasedFiles } from "./releases.ts";
import { splitStatements } from "../../apps/server/migrations/sql_statements.ts";

const SCHEMAS_DIR = fileURLToPath(new URL("../../supabase/schemas", import.meta.url));

interface FunctionsMigration {
  path: string;
  text: string;
  /** Whether the file has this text. */
  is_current: boolean;
}

/** A function or view, with its comments and grants. */
interface SchemaObject {
  kind: "function" | "view";
  /** The name with the schema, which is unique. */
  name: string;
  text: string;
}

/** A function can be created before the functions that its body calls. */
const BEGINNING = `-- Written by "deno task schema" from supabase/schemas: do not edit.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;
set check_function_bodies = off;
`;
/**
 * The settings that functions share, unless a function has its own. A statement inside a function
 * takes the settings of the function that was called.
 */
const SETTINGS = `
do $settings$
declare
  v_shared record;
begin
  for v_shared in
    select p.oid::regprocedure as function, s.name, s.value
    from (values
      -- Supabase's advisors warn of a function without it.
      ('any', 'search_path', 'pg_catalog, pg_temp'),
      -- Its compilation (JIT) takes longer than any statement of the service.
      ('pay', 'jit', 'off'),
      -- The functions of the service look rows up. A session keeps the plan that it has made while
      -- a table was empty or small, so that plan must not read the whole table. With the values of
      -- parameters it would plan at each call: 600 µs for a page of payments instead of 270.
      ('pay_api', 'enable_seqscan', 'off'),
      ('pay_api', 'plan_cache_mode', 'force_generic_plan')
    ) as s (scope, name, value)
    join pg_catalog.pg_proc p
      on p.pronamespace in ('pay'::regnamespace, 'pay_internal'::regnamespace)
    where not exists (select from unnest(p.proconfig) c where starts_with(c, s.name || '='))
      and case s.scope when 'pay' then p.pronamespace = 'pay'::regnamespace
        when 'pay_api' then has_function_privilege('pay_api', p.oid, 'execute') else true end
  loop
    execute pg_catalog.format(
      'alter function %s set %I = %s', v_shared.function, v_shared.name, v_shared.value);
  end loop;
end
$settings$;
`;
const END = `
reset check_function_bodies;
do $$ begin execute pg_catalog.format('set role %I',
  pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
`;
const COMMENT_LINES = /^(?:\s*--[^\n]*\n)+/;
const CREATES = /^create or replace (function|view) (pay(?:_internal)?\.\w+)/;
const COMMENTS_OR_GRANTS =
  /^(?:comment on (?:function|view|column)|(?:grant|revoke) [^;]*? on(?: function)?)\s+(pay(?:_internal)?\.\w+)/;

/** Writes the migration if it is not current. Returns its path, or null if nothing was written. */
export async function writeFunctions(): Promise<string | null> {
  const { path, text, is_current } = await renderFunctions();
  if (is_current) return null;
  await Deno.writeTextFile(path, text);
  return path;
}

/**
 * Renders the migration. It has the functions and views that no released migration has with the
 * same text. If all migrations are released, its version is the present time.
 * @throws {Error} if a schema file contains another statement; the message has file and line
 */
export async function renderFunctions(): Promise<FunctionsMigration> {
  const released = releasedFiles(await readReleases());
  const known = new Map<string, string>();
  let file = `${new Date().toISOString().replaceAll(/\D/g, "").slice(0, 14)}_functions.sql`;
  let present = "";
  for (const migration of await listMigrations(MIGRATIONS_DIR)) {
    if (migration.name !== "functions") continue;
    const text = await Deno.readTextFile(join(MIGRATIONS_DIR, migration.file));
    if (!released.has(migration.file)) [file, present] = [migration.file, text];
    else for (const { name, text: object } of readObjects(text)) known.set(name, object);
  }
  const changed = (await readSchemaFiles()).filter(({ name, text }) => known.get(name) !== text);
  const text = renderMigration(changed.map(({ text }) => text).join("\n"));
  return {
    path: join(MIGRATIONS_DIR, file),
    text,
    is_current: text === present || (present === "" && changed.length === 0),
  };
}

export function renderMigration(statements: string): string {
  return [BEGINNING, statements, SETTINGS + END].join("\n");
}

/** Reads the objects of all files: the functions, then each view after the views that it reads. */
async function readSchemaFiles(): Promise<SchemaObject[]> {
  const files: string[] = [];
  for await (const { name } of Deno.readDir(SCHEMAS_DIR)) {
    if (name.endsWith(".sql")) files.push(name);
  }
  const objects: SchemaObject[] = [];
  for (const file of files.sort()) {
    objects.push(...readObjects(await Deno.readTextFile(join(SCHEMAS_DIR, file)), file));
  }
  const views = new Map(objects.filter(({ kind }) => kind === "view").map((o) => [o.name, o]));
  const placed = new Set(objects.filter(({ kind }) => kind === "function"));
  const place = (view: SchemaObject) => {
    views.delete(view.name);
    for (const [name] of view.text.matchAll(/\bpay(?:_internal)?\.\w+/g)) {
      const read = views.get(name);
      if (read !== undefined) place(read);
    }
    placed.add(view);
  };
  for (const view of views.values()) place(view);
  return [...placed];
}

/**
 * Returns the objects of a text, without the comments above their statements.
 * @param file the name of a schema file, which must contain nothing else; undefined: a migration
 */
function readObjects(text: string, file?: string): SchemaObject[] {
  const objects: SchemaObject[] = [];
  for (const { text: statement_text, line } of splitStatements(text)) {
    const statement = statement_text.replace(COMMENT_LINES, "").trim();
    const last = objects.at(-1);
    const [, kind, created] = CREATES.exec(statement) ?? [];
    if (created !== undefined) {
      const object = { kind: kind as SchemaObject["kind"], name: created, text: `${statement};\n` };
      objects.push(object);
    } else if (last !== undefined && COMMENTS_OR_GRANTS.exec(statement)?.[1] === last.name) {
      last.text += `${statement};\n`;
    } else if (file !== undefined) {
      throw new Error(
        `${file}:${line}: a file of supabase/schemas contains only "create or replace", each ` +
          "followed by the comments and grants of the object",
      );
    }
  }
  return objects;
}
