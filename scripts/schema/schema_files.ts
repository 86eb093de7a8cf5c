/**
 * `supabase/schemas/*.sql`: the functions and views of the schema `pay`, one topic a file. Tables,
 * constraints, indexes and policies are in the migrations. A generated migration brings the
 * functions and views to a database (schema_release.ts).
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import postgres, { type PostgresError, type TransactionSql } from "postgres";
import { splitStatements } from "./sql_statements.ts";
import { workableOrder } from "./workable_order.ts";

/** The files of this project. */
export const SCHEMAS_DIR = fileURLToPath(new URL("../../supabase/schemas", import.meta.url));

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
  return objects
    .map(({ statements }) => statements.map((text) => `${text};\n`).join(""))
    .join("\n");
}

/** The statements as those of a migration: pay_owner runs them. */
export function renderMigration(statements: string): string {
  return [BECOME_OWNER, BODIES_UNCHECKED, statements.trim(), BODIES_CHECKED, LEAVE_OWNER]
    .join("\n\n") + "\n";
}

/** Runs `work` as a migration would, within a transaction. */
export async function asOwner<T>(sql: TransactionSql, work: () => Promise<T>): Promise<T> {
  await sql.unsafe(`${BECOME_OWNER}\n${BODIES_UNCHECKED}`).simple();
  const result = await work();
  await sql.unsafe(`${BODIES_CHECKED}\n${LEAVE_OWNER}`).simple();
  return result;
}

/**
 * Makes the functions and views of a database's schema `pay` those of the files: drops all that
 * nothing else depends on, creates those of the files, and checks their bodies.
 * Errors: `SchemaFileError` naming the object.
 */
export async function applySchemaFiles(url: string, folder: string = SCHEMAS_DIR): Promise<void> {
  const objects = await readSchemaFiles(folder);
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    await sql.begin((transaction) =>
      asOwner(transaction, async () => {
        await dropAll(transaction);
        const { refused } = await workableOrder(
          transaction,
          objects,
          (object) => renderObjects([object]),
        );
        for (const [object, error] of refused) throw new SchemaFileError(object, error);
        await transaction.unsafe(BODIES_CHECKED).simple();
        for (const object of objects) await checkBody(transaction, object);
        await checkReferences(transaction, objects);
      })
    );
  } finally {
    await sql.end();
  }
}

/**
 * A function or view that the database refuses to create, replace or drop; the message names it.
 */
export class SchemaFileError extends Error {
  override readonly name = "SchemaFileError";

  constructor({ file, name }: SchemaObject, cause: Error) {
    const { detail } = cause as PostgresError;
    super([`${file}: pay.${name}: ${cause.message}`, ...detail ? [detail] : []].join("\n  "), {
      cause,
    });
  }
}

/**
 * Drops functions and views. Those that a policy, a trigger or the like uses stay: the files
 * replace them, or they belong to the tables and are in the migrations alone.
 */
async function dropAll(sql: TransactionSql): Promise<void> {
  const drops = await sql<{ statement: string }[]>`
    select format('drop view pay.%I', relname) as statement
    from pg_class where relnamespace = 'pay'::regnamespace and relkind = 'v'
    union all
    select format('drop function %s', oid::regprocedure)
    from pg_proc where pronamespace = 'pay'::regnamespace`;
  await workableOrder(sql, drops, ({ statement }) => statement);
}

/**
 * A function whose body was not checked is created once more, now that all that it uses is there.
 */
async function checkBody(sql: TransactionSql, object: SchemaObject): Promise<void> {
  if (object.kind === "view") return;
  await sql.unsafe(object.statements[0]!).simple().catch((error) => {
    throw new SchemaFileError(object, error);
  });
}

/** A name of the schema in a body; after a quote it is that of a setting. */
const REFERENCE = /(?<!['\w.])pay\.(\w+)/g;

/**
 * PostgreSQL does not look up what a plpgsql body or a text for `execute` uses until it runs. Every
 * name of the schema in the files is that of a function, relation or type.
 */
async function checkReferences(
  sql: TransactionSql,
  objects: readonly SchemaObject[],
): Promise<void> {
  const rows = await sql<{ name: string }[]>`
    select proname as name from pg_proc where pronamespace = 'pay'::regnamespace
    union select relname from pg_class where relnamespace = 'pay'::regnamespace
    union select typname from pg_type where typnamespace = 'pay'::regnamespace`;
  const known = new Set(rows.map(({ name }) => name));
  for (const object of objects) {
    const text = object.statements[0]!.replaceAll(/--[^\n]*/g, "");
    for (const [reference, name] of text.matchAll(REFERENCE)) {
      if (known.has(name!)) continue;
      throw new SchemaFileError(object, new Error(`${reference} does not exist`));
    }
  }
}
