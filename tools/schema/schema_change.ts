/**
 * Computes the statements that change the functions and views of a database to those of the schema
 * files. They create or replace the changed objects only, and drop an object only if PostgreSQL
 * cannot replace it. The module runs the statements in a transaction that it rolls back, so
 * PostgreSQL itself decides what must be dropped.
 */

import postgres, { type PostgresError, type TransactionSql } from "postgres";
import { diffLines } from "../diff_lines.ts";
import {
  readSchema,
  readSchemaWithin,
  renderDescription,
  type SchemaDescription,
} from "./schema_catalogue.ts";
import {
  asOwner,
  readSchemaFiles,
  renderObjects,
  SchemaFileError,
  type SchemaObject,
} from "./schema_files.ts";
import { workableOrder } from "./workable_order.ts";

/** The content of a migration. An object has the name of its description. */
export interface SchemaChange {
  /** Empty if nothing changes. */
  statements: string;
  /** Objects that are created or replaced. */
  created: string[];
  dropped: string[];
  /** Dropped objects that are not created again and that the HTTP functions could call. */
  withdrawn: string[];
}

/**
 * SQLSTATEs of a `create or replace` that needs a drop: another return type or other parameter
 * names of a function, other columns of a view.
 */
const NEEDS_DROP = ["42P13", "42P16"];

/** The two states, and the changes that are planned between them. */
interface Plan {
  before: SchemaDescription;
  target: SchemaDescription;
  objects: readonly SchemaObject[];
  /** Objects to drop first. */
  drops: Set<string>;
  /** Names of the objects of the schema files to create or replace. */
  creates: Set<string>;
}

/**
 * Computes the change from the database at `url` to the description `target`, with the statements
 * of the schema files. The database stays as it is.
 * @throws {SchemaFileError} if the database refuses a statement of the files
 */
export async function planChange(
  url: string,
  target: SchemaDescription,
  schemas: string,
): Promise<SchemaChange> {
  const objects = await readSchemaFiles(schemas);
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    const before = await readSchema(sql, "whole");
    const plan: Plan = {
      before,
      target,
      objects,
      drops: new Set([...before.keys()].filter((object) => !target.has(object))),
      creates: new Set(differing(before, target).filter((key) => target.has(key)).map(nameOf)),
    };
    for (;;) {
      const trial = await tryPlan(sql, plan);
      if ("change" in trial) return trial.change;
      for (const object of trial.must_drop) {
        plan.drops.add(object);
        if (target.has(object)) plan.creates.add(nameOf(object));
      }
    }
  } finally {
    await sql.end();
  }
}

type Trial = { change: SchemaChange } | { must_drop: string[] };

/** Carries the result out of the transaction. As it is thrown, the transaction is rolled back. */
class TrialEnded extends Error {
  constructor(readonly trial: Trial) {
    super();
  }
}

/** Runs the plan and rolls it back. Returns the change, or the objects that must be dropped too. */
async function tryPlan(sql: postgres.Sql, plan: Plan): Promise<Trial> {
  try {
    return await sql.begin(async (transaction) => {
      throw new TrialEnded(await asOwner(transaction, () => runPlan(transaction, plan)));
    });
  } catch (error) {
    if (error instanceof TrialEnded) return error.trial;
    throw error;
  }
}

async function runPlan(sql: TransactionSql, plan: Plan): Promise<Trial> {
  const { before, target, drops } = plan;
  const dropped = await workableOrder(sql, [...drops], (object) => `drop ${object}`);
  if (dropped.refused.length > 0) {
    return { must_drop: await dependantsOf(sql, dropped.refused, drops) };
  }
  const wanted = plan.objects.filter(({ name }) => plan.creates.has(name));
  const created = await workableOrder(sql, wanted, (object) => renderObjects([object]));
  for (const [{ name }, error] of created.refused) {
    if (!NEEDS_DROP.includes((error as PostgresError).code)) continue;
    return { must_drop: [...before.keys()].filter((object) => nameOf(object) === name) };
  }
  for (const [object, error] of created.refused) throw new SchemaFileError(object, error);
  const found = await readSchemaWithin(sql, "whole");
  const differences = differing(found, target);
  if (differences.length > 0) {
    // The files have lost a comment or a grant of an object. A drop removes it.
    const must_drop = differences.filter((object) => before.has(object) && !drops.has(object));
    if (must_drop.length > 0) return { must_drop };
    const [is, wanted] = [found, target].map(renderDescription);
    throw new Error(
      "The statements of the schema files do not change the database to the expected state " +
        `(-: the state after them, +: the expected one):\n${diffLines(is!, wanted!)}`,
    );
  }
  return { change: renderChange(plan, dropped.done, created.done) };
}

function renderChange(
  { before, target }: Plan,
  dropped: string[],
  created: SchemaObject[],
): SchemaChange {
  const names = new Set(created.map(({ name }) => name));
  const drops = dropped.map((object) => `drop ${object};\n`).join("");
  return {
    statements: [drops, renderObjects(created)].filter((part) => part !== "").join("\n"),
    created: [...target.keys()].filter((object) => names.has(nameOf(object))),
    dropped,
    withdrawn: dropped.filter((object) =>
      !target.has(object) && / to pay_api;$/m.test(before.get(object)!)
    ),
  };
}

/** Returns the functions and views that use the refused objects and are not in `drops`. */
async function dependantsOf(
  sql: TransactionSql,
  refused: readonly [string, Error][],
  drops: ReadonlySet<string>,
): Promise<string[]> {
  const named = (kind: string) =>
    refused.map(([object]) => object).filter((object) => object.startsWith(`${kind} `))
      .map((object) => object.slice(kind.length + 1));
  const rows = await sql<{ object: string }[]>`
    with used (classid, objid) as (
      select 'pg_proc'::regclass, f::regprocedure::oid from unnest(${named("function")}::text[]) f
      union all
      select c.classid, c.objid
      from pg_class v
      cross join lateral (
        values ('pg_class'::regclass, v.oid), ('pg_type'::regclass, v.reltype)) c (classid, objid)
      where v.oid in (select r::regclass from unnest(${named("view")}::text[]) r)
    )
    select distinct coalesce(
      (select 'view ' || r.ev_class::regclass from pg_rewrite r
        where d.classid = 'pg_rewrite'::regclass and r.oid = d.objid),
      (select 'function ' || p.oid::regprocedure from pg_proc p
        where d.classid = 'pg_proc'::regclass and p.oid = d.objid)) as object
    from pg_depend d
    join used u on u.classid = d.refclassid and u.objid = d.refobjid
    where d.deptype = 'n'`;
  const found = rows.map(({ object }) => object).filter((object) =>
    object !== null && !drops.has(object)
  );
  if (found.length > 0) return found;
  const [object, error] = refused[0]!;
  const { detail } = error as PostgresError;
  throw new Error(
    `Cannot drop ${object}, which must change: ${detail ?? error.message}\n` +
      "Write a migration by hand that removes its uses, with a version before this one",
  );
}

/** Returns the names of the objects that differ between the descriptions. */
function differing(a: SchemaDescription, b: SchemaDescription): string[] {
  return [...new Set([...a.keys(), ...b.keys()])].filter((object) =>
    a.get(object) !== b.get(object)
  );
}

/** Returns `pay.purge` for `function pay.purge(…)`. */
function nameOf(object: string): string {
  return /^\w+ (pay(?:_internal)?\.\w+)/.exec(object)?.[1] ?? object;
}
