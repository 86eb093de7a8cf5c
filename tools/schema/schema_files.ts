/**
 * Reads and applies `supabase/schemas/*.sql`: the functions and views of the schemas `pay` and
 * `pay_internal`, one topic a file. Tables, constraints, indexes and policies are in the migrations. schema_release.ts
 * generates the migration that changes a database to these functions and views.
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import postgres, { type PostgresError, type TransactionSql } from "postgres";
import { splitStatements } from "../../apps/server/migrations/sql_statements.ts";
import { workableOrder } from "./workable_order.ts";

/** The folder of the files. */
export const SCHEMAS_DIR = fileURLToPath(new URL("../../supabase/schemas", import.meta.url));

/** Statements around those that pay_owner runs. Every migration begins and ends with them. */
const BECOME_OWNER = `grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;`;
const LEAVE_OWNER =
  `do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;`;
/** Lets PostgreSQL create a function before the functions that it calls. */
const BODIES_UNCHECKED = "set check_function_bodies = off;";
const BODIES_CHECKED = "reset check_function_bodies;";

/** A function or view with its statements. */
export interface SchemaObject {
  kind: "function" | "view";
  /** The name with the schema, which is unique. */
  name: string;
  file: string;
  /** `create or replace …`, then comments and grants, all without semicolons. */
  statements: string[];
}

const COMMENT_LINES = /^(?:\s*--[^\n]*\n)+/;
const CREATES = /^create or replace (function|view) (pay(?:_internal)?\.\w+)/;
const COMMENTS_OR_GRANTS =
  /^(?:comment on (?:function|view|column)|(?:grant|revoke) [^;]*? on(?: function)?)\s+(pay(?:_internal)?\.\w+)/;
/** SQL for the oids of the two schemas. */
const SCHEMAS = `(select oid from pg_namespace where nspname in ('pay', 'pay_internal'))`;

/**
 * Reads the objects of the files, first the functions, then the views, in the order of the files.
 * @throws {Error} if a file contains another statement; the message has file and line
 */
export async function readSchemaFiles(folder: string = SCHEMAS_DIR): Promise<SchemaObject[]> {
  const files: string[] = [];
  for await (const { name } of Deno.readDir(folder)) if (name.endsWith(".sql")) files.push(name);
  const objects = new Map<string, SchemaObject>();
  for (const file of files.sort()) {
    for (const { text, line } of splitStatements(await Deno.readTextFile(join(folder, file)))) {
      const statement = text.replace(COMMENT_LINES, "").trim();
      const [, kind, created] = CREATES.exec(statement) ?? [];
      const name = created ?? COMMENTS_OR_GRANTS.exec(statement)?.[1];
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
          `${file}:${line}: a file of supabase/schemas contains only "create or replace", once ` +
            "for each function and view, followed by the comments and grants of the object",
        );
      }
    }
  }
  const ofKind = (kind: SchemaObject["kind"]) =>
    [...objects.values()].filter((object) => object.kind === kind);
  return [...ofKind("function"), ...ofKind("view")];
}

/** Returns the statements that create the objects. pay_owner must run them. */
export function renderObjects(objects: readonly SchemaObject[]): string {
  return objects
    .map(({ statements }) => statements.map((text) => `${text};\n`).join(""))
    .join("\n");
}

/** Returns the text of a migration in which pay_owner runs the statements. */
export function renderMigration(statements: string): string {
  return [BECOME_OWNER, BODIES_UNCHECKED, statements.trim(), BODIES_CHECKED, LEAVE_OWNER]
    .join("\n\n") + "\n";
}

/** Runs `work` as pay_owner, within a transaction. */
export async function asOwner<T>(sql: TransactionSql, work: () => Promise<T>): Promise<T> {
  await sql.unsafe(`${BECOME_OWNER}\n${BODIES_UNCHECKED}`).simple();
  const result = await work();
  await sql.unsafe(`${BODIES_CHECKED}\n${LEAVE_OWNER}`).simple();
  return result;
}

/**
 * Replaces the functions and views of a database by those of the files. Drops every function and
 * view that no other object uses, creates those of the files, and checks their bodies.
 * @throws {SchemaFileError} if the database refuses an object; the message names it
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
 * A function or view is invalid: the database refuses it, or its body uses an unknown name. The
 * message begins with its file and name.
 */
export class SchemaFileError extends Error {
  override readonly name = "SchemaFileError";

  constructor({ file, name }: SchemaObject, cause: Error) {
    const { detail } = cause as PostgresError;
    super([`${file}: ${name}: ${cause.message}`, ...detail ? [detail] : []].join("\n  "), {
      cause,
    });
  }
}

/**
 * Drops the functions and views, except those that a policy, a trigger or a default uses. The
 * files replace such a function, or it belongs to a table and only the migrations have it.
 */
async function dropAll(sql: TransactionSql): Promise<void> {
  const drops = await sql.unsafe<{ statement: string }[]>(`
    select format('drop view %s', oid::regclass) as statement
    from pg_class where relnamespace in ${SCHEMAS} and relkind = 'v'
    union all
    select format('drop function %s', oid::regprocedure)
    from pg_proc where pronamespace in ${SCHEMAS}`);
  await workableOrder(sql, drops, ({ statement }) => statement);
}

/**
 * Creates a function again to check its body. The first time its body was not checked, because
 * functions that it calls could be missing.
 */
async function checkBody(sql: TransactionSql, object: SchemaObject): Promise<void> {
  if (object.kind === "view") return;
  await sql.unsafe(object.statements[0]!).simple().catch((error) => {
    throw new SchemaFileError(object, error);
  });
}

/** A name of the schemas in a body. A name after a quote is that of a setting. */
const REFERENCE = /(?<!['\w.])pay(?:_internal)?\.\w+/g;

/**
 * Checks that every name of the schemas in a body is that of a function, relation or type. For a
 * plpgsql body and a text for `execute`, PostgreSQL only looks up names when the function runs.
 */
async function checkReferences(
  sql: TransactionSql,
  objects: readonly SchemaObject[],
): Promise<void> {
  const rows = await sql.unsafe<{ name: string }[]>(`
    select n.nspname || '.' || o.name as name
    from (
      select pronamespace, proname from pg_proc
      union all select relnamespace, relname from pg_class
      union all select typnamespace, typname from pg_type
    ) as o (namespace, name)
    join pg_namespace n on n.oid = o.namespace and n.oid in ${SCHEMAS}`);
  const known = new Set(rows.map(({ name }) => name));
  for (const object of objects) {
    const text = object.statements[0]!.replaceAll(/--[^\n]*/g, "");
    for (const [reference] of text.matchAll(REFERENCE)) {
      if (known.has(reference)) continue;
      throw new SchemaFileError(object, new Error(`${reference} does not exist`));
    }
  }
}
