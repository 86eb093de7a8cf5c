/** Makes rows that the database refuses, as a stored value does with which a statement fails. */

import type postgres from "postgres";

/** The SQLSTATE of the failure: a value out of the range of a type. */
export const POISON_CODE = "22009";

/** A table, and the rows of it that fail. */
interface Poison {
  table: string;
  /** `insert`, `update` or `delete`. */
  on: string;
  /** SQL over `new` and `old`. */
  when: string;
}

/** Makes every change of some rows fail. Returns a function that ends it. */
export async function poison(
  sql: postgres.Sql,
  { table, on, when }: Poison,
): Promise<() => Promise<void>> {
  await sql.unsafe(`
    create or replace function pay.test_poison() returns trigger language plpgsql as $$
    begin raise exception 'poisoned' using errcode = '${POISON_CODE}'; end $$;
    create trigger test_poison before ${on} on pay.${table} for each row when (${when})
      execute function pay.test_poison()`);
  return async () => {
    await sql.unsafe(`drop trigger test_poison on pay.${table}`);
  };
}

/** Makes a function of `pay_internal` fail for some arguments, by which a row cannot be read. */
export async function poisonFunction(
  sql: postgres.Sql,
  { name, when }: { name: string; when: string },
): Promise<void> {
  const [row] = await sql`
    select pg_get_functiondef(p.oid) as text, pg_get_function_identity_arguments(p.oid) as arguments,
      pg_get_function_result(p.oid) as result,
      (select string_agg(split_part(trim(a), ' ', 1), ', ')
       from unnest(string_to_array(pg_get_function_identity_arguments(p.oid), ',')) a) as names
    from pg_proc p where p.pronamespace = 'pay_internal'::regnamespace and p.proname = ${name}`;
  const { arguments: taken, result, names } = row!;
  await sql.unsafe(`
    alter function pay_internal.${name}(${taken}) rename to test_${name};
    create function pay_internal.${name}(${taken}) returns ${result} language plpgsql stable as $$
    begin
      if ${when} then raise exception 'poisoned' using errcode = '${POISON_CODE}'; end if;
      return pay_internal.test_${name}(${names});
    end $$;
    alter function pay_internal.${name}(${taken}) owner to pay_owner`);
}
