/**
 * `supabase/schemas/*.sql`: the functions and views of the schema `pay`, one topic a file. Tables,
 * constraints, indexes and policies are in the migrations; the migrations also bring these functions and
 * views to a database, as `deno task schema --release` has written them down (schema_release.ts).
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import postgres, { type TransactionSql } from "postgres";
import { splitStatements } from "./sql_statements.ts";

/** The files of this project. */
export const SCHEMAS_DIR = fileURLToPath(new URL("../supabase/schemas", import.meta.url));

/** Before and after statements that pay_owner is to run; as at the ends of every migration. */
const BECOME_OWNER = `grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;`;
const LEAVE_OWNER =
  `do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;`;
/** Functions may call one another, whichever comes first. */
const BODIES_UNCHECKED = "set check_function_bodies = off;";
const BODIES_CHECKED = "reset check_function_bodies;";

/** A function or view with everything that the files say about it. */
export interface SchemaObject {
  kind: "function" | "view";
  /** Without the schema; no two objects share one. */
  name: string;
  file: string;
  /** `create or replace …` first, then comments and grants; without semicolons. */
  statements: string[];
}

const COMMENT_LINES = /^(?:\s*--[^\n]*\n)+/;
const CREATES = /^create or replace (function|view) pay\.(\w+)/;
const SAYS_MORE =
  /^(?:comment on (?:function|view|column)|(?:grant|revoke) [^;]*? on(?: function)?)\s+pay\.(\w+)/;

/** Reads the files: functions first, then views, each kind by file and place in it. */
export async function readSchemaFiles(folder: string = SCHEMAS_DIR): Promise<SchemaObject[]> {
  const files: string[] = [];
  for await (const { name } of Deno.readDir(folder)) if (name.endsWith(".sql")) files.push(name);
  const objects = new Map<string, SchemaObject>();
  for (const file of files.sort()) {
    for (const { text, line } of splitStatements(await Deno.readTextFile(join(folder, file)))) {
      const statement = text.replace(COMMENT_LINES, "").trim();
      const [, kind, created] = CREATES.exec(statement) ?? [];
      const name = created ?? SAYS_MORE.exec(statement)?.[1];
      const object = name === undefined ? undefined : objects.get(name);
      if (created !== undefined && object === undefined) {
        objects.set(created, {
          kind: kind as SchemaObject["kind"],
          name: created,
          file,
          statements: [statement],
        });
      } else if (created === undefined && object?.file === file) {
        object.statements.push(statement);
      } else {
        throw new Error(
          `${file}:${line}: a file of supabase/schemas makes each function and view once, with ` +
            "create or replace, and then has its comments and grants; nothing else",
        );
      }
    }
  }
  const ofKind = (kind: SchemaObject["kind"]) =>
    [...objects.values()].filter((object) => object.kind === kind);
  return [...ofKind("function"), ...ofKind("view")];
}

/** The statements that make the objects, as pay_owner. */
export function renderObjects(objects: readonly SchemaObject[]): string {
  return objects.map(({ statements }) => statements.map((text) => `${text};\n`).join("")).join(
    "\n",
  );
}

/** Drops every function and view of a database's schema `pay` and makes those of the files. */
export async function applySchemaFiles(url: string, folder: string = SCHEMAS_DIR): Promise<void> {
  const objects = await readSchemaFiles(folder);
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    await sql.begin(async (transaction) => {
      const drops = await renderDrops(transaction);
      await transaction.unsafe(renderMigration([drops, renderObjects(objects)])).simple();
    });
  } finally {
    await sql.end();
  }
}

/** The parts as statements of pay_owner. */
export function renderMigration(parts: readonly string[]): string {
  return [BECOME_OWNER, BODIES_UNCHECKED, ...parts, BODIES_CHECKED, LEAVE_OWNER, ""].join("\n\n");
}

async function renderDrops(sql: TransactionSql): Promise<string> {
  const rows = await sql<{ statement: string }[]>`
    select 'drop view ' || string_agg(format('pay.%I', relname), ', ') as statement
    from pg_class where relnamespace = 'pay'::regnamespace and relkind = 'v'
    having count(*) > 0
    union all
    select format('drop function %s', oid::regprocedure)
    from pg_proc p where pronamespace = 'pay'::regnamespace
      and not exists (
        select from pg_depend d
        where d.refclassid = 'pg_proc'::regclass and d.refobjid = p.oid and d.deptype = 'n'
          and d.classid <> 'pg_rewrite'::regclass
      )`;
  return rows.map(({ statement }) => `${statement};`).join("\n");
}
