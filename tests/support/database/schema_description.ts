/**
 * The roles, and the schemas `pay` and `pay_internal` of a database, as lines that are the same on
 * PostgreSQL 15 to 17 and in a restored database. They leave out the queries of views, which each
 * version prints in its own way.
 */

import { connect } from "./database.ts";

/** SQL for the privileges of every role except the owner, in a fixed order. */
const grants = (acl: string, kind: string, owner: string) =>
  `array(
  select concat_ws(' ', nullif(a.grantee, 0)::regrole, a.privilege_type, a.is_grantable)
  from aclexplode(coalesce(${acl}, acldefault('${kind}', ${owner}))) a
  where a.grantee <> ${owner} order by 1)`;

/** Returns the description, sorted. */
export async function describeSchema(url: string): Promise<string[]> {
  await using sql = connect(url);
  const rows = await sql.begin("read only", async (transaction) => {
    // With this search path PostgreSQL writes names with their schema.
    await transaction`set local search_path = pg_catalog`;
    return await transaction.unsafe<{ line: string }[]>(QUERY);
  });
  return rows.map(({ line }) => line);
}

const QUERY = `
  with ours as (select oid from pg_namespace where nspname in ('pay', 'pay_internal')),
  relation as (
    select c.*, c.oid::regclass as name from pg_class c
    where c.relnamespace in (select oid from ours) and c.relkind not in ('i', 'I', 't')
  )
  select line::text from (
    select to_jsonb(r) - 'oid' - 'rolpassword' - 'rolconnlimit' from pg_roles r
    where r.rolname in ('pay_owner', 'pay_api', 'pay_operator', 'pay_reader')
    union all
    select jsonb_build_array('schema', n.nspname, n.nspowner::regrole,
      obj_description(n.oid, 'pg_namespace'), ${grants("n.nspacl", "n", "n.nspowner")})
    from pg_namespace n where n.oid in (select oid from ours)
    union all
    select jsonb_build_array('default', d.defaclobjtype, d.defaclacl::text[])
    from pg_default_acl d where d.defaclrole = 'pay_owner'::regrole
    union all
    select jsonb_build_array('relation', c.name, c.relkind, c.relpersistence, c.reloptions,
      c.relrowsecurity, c.relforcerowsecurity, c.relowner::regrole,
      obj_description(c.oid, 'pg_class'), obj_description(c.reltype, 'pg_type'),
      ${grants("c.relacl", "r", "c.relowner")}, pg_get_expr(c.relpartbound, c.oid),
      pg_get_partkeydef(c.oid))
    from relation c
    union all
    select jsonb_build_array('column', c.name, a.attnum - (
        select count(*) from pg_attribute d
        where d.attrelid = a.attrelid and d.attisdropped and d.attnum between 1 and a.attnum),
      a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, o.collname, a.attgenerated,
      pg_get_expr(d.adbin, d.adrelid), a.attacl::text[], col_description(c.oid, a.attnum))
    from relation c
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    left join pg_collation o on o.oid = a.attcollation
    union all
    select jsonb_build_array('constraint', c.name, o.conname, pg_get_constraintdef(o.oid))
    from relation c join pg_constraint o on o.conrelid = c.oid where o.contype <> 'n'
    union all
    select jsonb_build_array('index', pg_get_indexdef(i.indexrelid),
      obj_description(i.indexrelid, 'pg_class'))
    from relation c join pg_index i on i.indrelid = c.oid
    union all
    select jsonb_build_array('policy', to_jsonb(p)) from pg_policies p
    where p.schemaname in ('pay', 'pay_internal')
    union all
    select jsonb_build_array('trigger', pg_get_triggerdef(t.oid), t.tgenabled)
    from relation c join pg_trigger t on t.tgrelid = c.oid where not t.tgisinternal
    union all
    select jsonb_build_array('function', pg_get_functiondef(p.oid), p.proowner::regrole,
      obj_description(p.oid, 'pg_proc'), ${grants("p.proacl", "f", "p.proowner")})
    from pg_proc p where p.pronamespace in (select oid from ours)
    union all
    select jsonb_build_array('type', t.typname, t.typtype)
    from pg_type t where t.typnamespace in (select oid from ours) and t.typtype in ('d', 'e', 'r')
  ) as lines (line)
  order by 1`;
