/**
 * Describes the schemas `pay` and `pay_internal` of a database as text, from the system catalogue: roles, tables, views
 * and functions with their owners, comments and privileges. Two equal schemas have the same text.
 * The text looks like SQL, but is only for comparisons: only the migrations can create a database.
 */

import type { Sql, TransactionSql } from "postgres";

/**
 * The depth of a description. `whole` contains the bodies of functions and the queries of views, as
 * the server prints them. `signatures` leaves both out, so it is the same on PostgreSQL 15 to 17
 * and in a restored database.
 */
type Detail = "whole" | "signatures";

/** The description of each object by its name, `function pay.purge(…)`, in a fixed order. */
export type SchemaDescription = ReadonlyMap<string, string>;

/** A line of the description of an object. */
interface Line {
  object: string;
  line: string;
}

/**
 * Describes the schema.
 * @throws {Error} if the schema contains a kind of object that this module does not describe
 */
export async function readSchema(sql: Sql, detail: Detail): Promise<SchemaDescription> {
  return await sql.begin("read only", (transaction) => readSchemaWithin(transaction, detail));
}

/** Describes the schema within a transaction, and changes the search path of the transaction. */
export async function readSchemaWithin(
  sql: TransactionSql,
  detail: Detail,
): Promise<SchemaDescription> {
  // With this search path PostgreSQL writes names in expressions with their schema.
  await sql`set local search_path = pg_catalog`;
  const lines: Line[] = [];
  for (const query of [ROLES, SCHEMAS, relations(detail), functions(detail)]) {
    lines.push(...await sql.unsafe<Line[]>(query));
  }
  const unknown = await sql.unsafe<Line[]>(UNDESCRIBED);
  if (unknown.length > 0) {
    throw new Error(`The description leaves out ${unknown.map(({ line }) => line).join(", ")}`);
  }
  const objects = new Map<string, string[]>();
  for (const { object, line } of lines) {
    const known = objects.get(object);
    if (known) known.push(line);
    else objects.set(object, [line]);
  }
  return new Map(
    [...objects].map(([object, lines]) => [object, lines.join("\n").replace(/,\n\)/, "\n)")]),
  );
}

/** Returns the description as one text. */
export function renderDescription(description: SchemaDescription): string {
  return [...description].map(([object, text]) => `-- ${object}\n${text}\n`).join("\n");
}

const ROLES = `
  select 'roles' as object, format('create role %I %s %s %s %s %s;', rolname,
    case when rolcanlogin then 'login' else 'nologin' end,
    case when rolsuper then 'superuser' else 'nosuperuser' end,
    case when rolbypassrls then 'bypassrls' else 'nobypassrls' end,
    case when rolcreaterole then 'createrole' else 'nocreaterole' end,
    case when rolcreatedb then 'createdb' else 'nocreatedb' end) as line
  from pg_roles
  where rolname in ('pay_owner', 'pay_api', 'pay_operator', 'pay_reader')
  order by rolname collate "C"`;

/**
 * A query for the privileges of every role except the owner. It includes default privileges, such
 * as EXECUTE for `public`.
 */
function grantLines(from: string, acl: string, kind: string, owner: string, on: string): string {
  return `
    select format('grant %s on %s to %s;',
      string_agg(lower(a.privilege_type), ', ' order by a.privilege_type), min(${on}),
      case a.grantee when 0 then 'public' else a.grantee::regrole::text end) as line
    ${from}
    cross join aclexplode(coalesce(${acl}, acldefault('${kind}', ${owner}))) a
    where a.grantee <> ${owner}
    group by a.grantee`;
}

/** SQL for the oids of the schemas. */
const OIDS = `(select oid from pg_namespace where nspname in ('pay', 'pay_internal'))`;

const SCHEMAS = `
  with ours as (select * from pg_namespace where oid in ${OIDS})
  select 'schema ' || name as object, line from (
    select nspname as name, 1 as part,
      format('create schema %I authorization %s;', nspname, nspowner::regrole) as line
    from ours
    union all
    select nspname, 2,
      format('comment on schema %I is %L;', nspname, obj_description(oid, 'pg_namespace'))
    from ours
    union all
    select nspname, 3, line from ours n cross join lateral (${
  grantLines("from (select n.*) r", "r.nspacl", "n", "r.nspowner", "'schema ' || r.nspname")
}) granted
    union all
    select 'pay', 4, format('alter default privileges for role %s on type "%s": %s;',
      defaclrole::regrole, defaclobjtype, defaclacl)
    from pg_default_acl where defaclrole = 'pay_owner'::regrole
  ) lines
  order by name, part, line collate "C"`;

/**
 * The parts of the description of a table, view or composite type. Each is a query for the columns
 * relation, part, place within the part, and line.
 */
const RELATION_PARTS = [
  `select c.oid, 1, 0, case c.relkind
      when 'v' then format('create view %s%s (', c.oid::regclass,
        ' with (' || array_to_string(c.reloptions, ', ') || ')')
      when 'c' then format('create type %s as (', c.oid::regclass)
      else format('create%s table %s (',
        case c.relpersistence when 'u' then ' unlogged' else '' end, c.oid::regclass)
    end
    from relation c`,
  `select a.attrelid, 2, a.attnum, concat('  ', quote_ident(a.attname), ' ',
      format_type(a.atttypid, a.atttypmod),
      case when a.attcollation not in (0, t.typcollation)
        then ' collate ' || (
          select quote_ident(collname) from pg_collation where oid = a.attcollation)
      end,
      case a.attgenerated when 's'
        then format(' generated always as (%s) stored', pg_get_expr(d.adbin, d.adrelid))
        else ' default ' || pg_get_expr(d.adbin, d.adrelid)
      end,
      case when a.attnotnull then ' not null' end,
      ',')
    from relation c
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    join pg_type t on t.oid = a.atttypid
    left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum`,
  `select conrelid, 3, position(contype::text in 'pufcx'),
      format('  constraint %I %s,', conname, pg_get_constraintdef(oid))
    from pg_constraint where contype in ('p', 'u', 'f', 'c', 'x')`,
  `select c.oid, 4, 0, case c.relkind
      when 'v' then query_of(c.oid)
      else concat(')', ' partition by ' || pg_get_partkeydef(c.oid),
        ' with (' || array_to_string(c.reloptions, ', ') || ')', ';')
    end
    from relation c`,
  `select c.oid, 5, 0, format('alter %s %s owner to %s;', kind, c.oid::regclass, c.relowner::regrole)
    from relation c`,
  `select inhrelid, 6, 0, format('alter table %s attach partition %s %s;', inhparent::regclass,
      inhrelid::regclass, pg_get_expr(c.relpartbound, c.oid))
    from pg_inherits join relation c on c.oid = inhrelid`,
  `select objoid, 7, objsubid, case objsubid
      when 0 then format('comment on %s %s is %L;', kind, objoid::regclass, description)
      else format('comment on column %s.%I is %L;', objoid::regclass,
        (select attname from pg_attribute where attrelid = objoid and attnum = objsubid),
        description)
    end
    from pg_description join relation on relation.oid = objoid
    where classoid = 'pg_class'::regclass`,
  `select c.oid, 7, 0, format('comment on type %s is %L;', c.oid::regclass, description)
    from relation c join pg_description on classoid = 'pg_type'::regclass and objoid = c.reltype`,
  `select indrelid, 8, 0, pg_get_indexdef(indexrelid) || ';'
    from pg_index
    where not exists (
      select from pg_constraint where conindid = indexrelid and contype in ('p', 'u', 'x'))`,
  `select c.oid, 9, 0, format('alter table %s %s row level security;', c.oid::regclass, word)
    from relation c
    cross join lateral (values
      (case when c.relrowsecurity then 'enable' else 'disable' end),
      (case when c.relforcerowsecurity then 'force' else 'no force' end)) as security (word)
    where c.kind = 'table'`,
  `select polrelid, 10, 0, concat(format('create policy %I on %s as %s for %s to %s', polname,
        polrelid::regclass, case when polpermissive then 'permissive' else 'restrictive' end,
        case polcmd when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update'
          when 'd' then 'delete' else 'all' end,
        (select string_agg(case role when 0 then 'public' else role::regrole::text end, ', ')
          from unnest(polroles) role)),
      e'\\n  using (' || pg_get_expr(polqual, polrelid) || ')',
      e'\\n  with check (' || pg_get_expr(polwithcheck, polrelid) || ')', ';')
    from pg_policy`,
  `select tgrelid, 11, 0, concat(pg_get_triggerdef(oid), ';',
      case when tgenabled <> 'O' then format(' -- enabled: %s', tgenabled) end)
    from pg_trigger where not tgisinternal`,
  `select oid, 12, 0, line from relation c cross join lateral (${
    grantLines("from (select c.*) r", "r.relacl", "r", "r.relowner", "r.oid::regclass::text")
  }) granted`,
  `select attrelid, 13, attnum, format('privileges of column %s.%I: %s;', attrelid::regclass,
      attname, attacl)
    from pg_attribute where attacl is not null`,
];

/** SQL expression for the last line of a view: its query, or nothing of it. */
const VIEW_ENDS: Record<Detail, string> = {
  whole: "e') as\\n' || pg_get_viewdef(c.oid)",
  signatures: "');'",
};

function relations(detail: Detail): string {
  const parts = RELATION_PARTS.join(" union all ").replace("query_of(c.oid)", VIEW_ENDS[detail]);
  return `
    with relation as (
      select *, case relkind when 'v' then 'view' when 'c' then 'type' else 'table' end as kind
      from pg_class
      where relnamespace in ${OIDS} and relkind in ('r', 'p', 'v', 'c')
    )
    select c.kind || ' ' || c.oid::regclass as object, line
    from relation c
    join (${parts}) as parts (oid, part, place, line) using (oid)
    order by c.relname collate "C", part, place, line collate "C"`;
}

/** SQL expression for a function: the whole of it, or the part before its body. */
const DEFINITIONS: Record<Detail, string> = {
  whole: "rtrim(pg_get_functiondef(oid), e'\\n') || ';'",
  signatures:
    "regexp_replace(pg_get_functiondef(oid), e'\\n *(AS |BEGIN ATOMIC|RETURN ).*$', '') || ';'",
};

const functions = (detail: Detail) => `
  with routine as (
    select *, oid::regprocedure::text as signature
    from pg_proc where pronamespace in ${OIDS}
  )
  select 'function ' || p.signature as object, line
  from routine p
  join (
    select oid, 1, ${DEFINITIONS[detail]} from routine
    union all
    select oid, 2, format('alter function %s owner to %s;', signature, proowner::regrole)
    from routine
    union all
    select oid, 3,
      format('comment on function %s is %L;', signature, obj_description(oid, 'pg_proc'))
    from routine where obj_description(oid, 'pg_proc') is not null
    union all
    select oid, 4, line from routine p cross join lateral (${
  grantLines("from (select p.*) r", "r.proacl", "f", "r.proowner", "'function ' || r.signature")
}) granted
  ) as parts (oid, part, line) using (oid)
  order by p.proname collate "C", p.signature collate "C", part, line collate "C"`;

/** A query for the objects that the queries above do not describe. */
const UNDESCRIBED = `
  select '' as object, pg_describe_object('pg_class'::regclass, oid, 0) as line
  from pg_class
  where relnamespace in ${OIDS} and relkind not in ('r', 'p', 'v', 'c', 'i', 'I', 't')
  union all
  select '', pg_describe_object('pg_type'::regclass, oid, 0)
  from pg_type
  where typnamespace in ${OIDS} and typtype in ('d', 'e', 'r')
  union all
  select '', pg_describe_object('pg_proc'::regclass, oid, 0)
  from pg_proc
  where pronamespace in ${OIDS} and prokind not in ('f', 'p')`;
