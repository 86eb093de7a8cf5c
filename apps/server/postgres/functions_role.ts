/**
 * The login role of the two functions. As a member of `pay_api` it can execute the entry functions
 * and nothing else.
 */

import type { Sql } from "postgres";
import type { LoginRole } from "./embedded_postgres.ts";

/** Equal to STATEMENT_DEADLINE_MS of the functions (shared/store/database.ts). */
const STATEMENT_TIMEOUT = "5s";

/**
 * Creates the role, or sets the password of an existing one. The migrations must have run before,
 * because they create `pay_api`. The user of `sql` must be allowed to create roles.
 */
export async function grantFunctionsRole(sql: Sql, role: LoginRole): Promise<void> {
  const [found] = await sql`select from pg_roles where rolname = ${role.name}`;
  const verb = found === undefined ? "create" : "alter";
  const password = `'${role.password.replaceAll("'", "''")}'`;
  await sql.unsafe(`${verb} role "${role.name}" login inherit password ${password}`);
  await sql`grant pay_api to ${sql(role.name)}`;
  await sql.unsafe(`alter role "${role.name}" set statement_timeout = '${STATEMENT_TIMEOUT}'`);
}
