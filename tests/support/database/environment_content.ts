/** The rows of an environment, to show that a request has changed none. */

import type { TestService } from "../service/service.ts";

/** The columns to compare in tables that the dispatcher changes meanwhile. */
const CHANGED_BY_DISPATCHER: Record<string, string> = {
  webhook_deliveries: "t.id",
  webhook_endpoints: "t.body",
};

/**
 * All rows of an environment, without the times at which its secrets were used, and without the
 * logged attempts that the dispatcher adds meanwhile.
 */
export async function contentOf(
  service: TestService,
  environment_id: string,
): Promise<Record<string, string[]>> {
  const tables = await service.sql<{ name: string }[]>`
    select table_name as name from information_schema.columns
    where table_schema = 'pay' and column_name = 'environment_id'
      and table_name not in ('api_key_secrets', 'rate_counters', 'attempt_log')
      and table_name in (select tablename from pg_tables where schemaname = 'pay') order by 1`;
  const rows = await service.sql.unsafe<{ name: string; row: string }[]>(
    tables.map(({ name }) =>
      `select '${name}' as name, ${CHANGED_BY_DISPATCHER[name] ?? "t::text"} as row
       from pay.${name} t where environment_id = $1`
    ).join(" union all ") + " order by 1, 2",
    [environment_id],
  );
  const content: Record<string, string[]> = {};
  for (const { name } of tables) content[name] = [];
  for (const { name, row } of rows) content[name]!.push(row);
  return content;
}
