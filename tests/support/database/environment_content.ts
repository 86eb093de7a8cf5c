/** The rows of an environment, to show that a request has changed none. */

import type { TestService } from "../service/service.ts";

/** The columns that the dispatcher, or the use of a key, changes meanwhile. */
const CHANGES_MEANWHILE: Record<string, string[]> = {
  api_key_secrets: ["last_used_at"],
  webhook_deliveries: [
    "status",
    "attempt_count",
    "attempts",
    "next_attempt_at",
    "leased_until",
    "expired_leases",
  ],
  webhook_endpoints: ["failing_since"],
};

/** All rows of an environment by table, without the attempts that the dispatcher logs meanwhile. */
export async function contentOf(
  service: TestService,
  environment_id: string,
): Promise<Record<string, string[]>> {
  const tables = await service.sql<{ name: string }[]>`
    select table_name as name from information_schema.columns
    where table_schema = 'pay' and column_name = 'environment_id'
      and table_name not in ('rate_counters', 'attempt_log')
      and table_name in (select tablename from pg_tables where schemaname = 'pay') order by 1`;
  const rows = await service.sql.unsafe<{ name: string; row: string }[]>(
    tables.map(({ name }) =>
      `select '${name}' as name,
        (to_jsonb(t) - '{${CHANGES_MEANWHILE[name] ?? []}}'::text[])::text as row
       from pay.${name} t where environment_id = $1`
    ).join(" union all ") + " order by 1, 2",
    [environment_id],
  );
  const content: Record<string, string[]> = {};
  for (const { name } of tables) content[name] = [];
  for (const { name, row } of rows) content[name]!.push(row);
  return content;
}
