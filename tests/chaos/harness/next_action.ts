/** Reads what the payer of a new payment has to do. */

import type postgres from "postgres";
import { until } from "../../support/common/until.ts";

/** An account that moves waits behind its fence while databases are killed. */
const GIVE_UP_MS = 300_000;

/**
 * Returns the next action of a payment: that of the response to its create. If the server died
 * before it recorded the action, the service records it later.
 */
export async function untilNextAction(
  sql: () => postgres.Sql,
  { id, next_action }: { id: string; next_action: unknown },
  // deno-lint-ignore no-explicit-any -- the caller knows the shape
): Promise<any> {
  let action = next_action;
  if (action !== null) return action;
  await until(`${id} has a next action`, async () => {
    const [row] = await sql()<{ body: string }[]>`
      select body from pay.payments where id = ${id}`.catch(() => []);
    action = row === undefined ? null : JSON.parse(row.body).next_action;
    return action !== null;
  }, GIVE_UP_MS);
  return action;
}
