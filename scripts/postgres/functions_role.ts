/** The login role of the two functions: member of `pay_api`, and so of nothing but its functions. */

import type { Sql } from "postgres";
import type { LoginRole } from "./embedded_postgres.ts";

/** As long as the functions wait for a statement themselves (shared/store/database.ts). */
const STATEMENT_TIMEOUT = "5s";

/**
 * Makes the role, or gives an existing one this password. The migrations must have run, because
 * they make `pay_api`; the caller may create roles.
 */
export async function grantFunctionsRole(sql: Sql, role: LoginRole): Promise<void> {
  const [found] = await sql`select from pg_roles where rolname = ${role.name}`;
  const verb = found === undefined ? "create" : "alter";
  const password = `'${role.password.replaceAll("'", "''")}'`;
  await sql.unsafe(`${verb} role "${role.name}" login inherit password ${password}`);
  await sql`grant pay_api to ${sql(role.name)}`;
  await sql.unsafe(`alter role "${role.name}" set statement_timeout = '${STATEMENT_TIMEOUT}'`);
}
