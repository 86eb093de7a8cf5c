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
    select relname as name from pg_class
    where relnamespace = 'pay'::regnamespace and relkind in ('r', 'p')
      and relname not in ('rate_counters', 'attempt_log')
      and exists (select from pg_attribute where attrelid = oid and attname = 'environment_id')`;
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
