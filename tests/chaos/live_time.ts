/**
 * Time in the live run: it passes faster for the provider worker, and the run waits for its end.
 */

import postgres from "postgres";
import { until } from "../support/common/until.ts";
import { RESULTS } from "./live_plan.ts";
import type { Stage } from "./stage.ts";

/** A poll reads five minutes of events again, so it is not due every second. */
const POLL_EVERY_S = 60;
const SETTLE_MS = 180_000;
/** A statement that takes longer waits for a connection that a kill has broken. */
const STUCK_MS = 5_000;

/**
 * Makes hours pass in seconds for the provider worker: the next attempt of an operation and the
 * next sync of an open payment are due after a second, and leases of dead processes end after 3 s.
 * The operation that ends a payment without an authentication waits until the payer has come.
 */
export function passTime({ postgres: { superuser_url } }: Stage): { end(): Promise<void> } {
  let is_over = false;
  let refused: unknown;
  const passing = (async () => {
    for (let second = 1; !is_over; second++) {
      // A new connection each time, because PostgreSQL is killed now and then.
      const sql = postgres(superuser_url, { max: 1, onnotice: () => {} });
      const passed = passSecond(sql, second % POLL_EVERY_S === 0).catch((error) => {
        // A constraint that refuses the statement would stop the time.
        if (isRefusal(error)) refused ??= error;
      });
      await Promise.race([passed, new Promise((resolve) => setTimeout(resolve, STUCK_MS))]);
      await sql.end({ timeout: 1 }).catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
  })();
  return {
    async end() {
      is_over = true;
      await passing;
      if (refused) throw refused;
    },
  };
}

/** Reports whether PostgreSQL has refused a statement, and no kill has ended it. */
function isRefusal(error: unknown): boolean {
  return error instanceof postgres.PostgresError && /^(22|23|42)/.test(error.code);
}

async function passSecond(sql: postgres.Sql, is_poll_due: boolean): Promise<void> {
  // A move of an account compares its rows with those of the other cell.
  const [moving] = await sql`select from pay.environments where moving is not null limit 1`;
  if (moving) return;
  await sql`
    update pay.provider_operations set
      leased_until = least(leased_until, now() + interval '3 seconds'),
      next_attempt_at = case
        when op = 'abandon' and exists (
          select from pay.payments p where p.id = subject_id and p.status = 'requires_action'
        ) then next_attempt_at
        when leased_until is null then now()
        else least(next_attempt_at, now() + interval '3 seconds') end
    where state = 'pending'`;
  await sql`
    update pay.provider_operations
    set next_sync_at = greatest(now(), created_at + interval '5 seconds')
    where next_sync_at > greatest(now(), created_at + interval '5 seconds')`;
  await sql`
    update pay.provider_events set leased_until = least(leased_until, now() + interval '3 seconds')
    where outcome is null`;
  if (is_poll_due) await makePollDue(sql);
}

async function makePollDue(sql: postgres.Sql): Promise<void> {
  await sql`update pay.provider_cursors set polled_at = null`;
}

/** Waits until the worker has a result for everything, and has polled all that happened. */
export async function settle({ sql }: Stage, environment_id: string): Promise<void> {
  const isSettled = async () => {
    const [open] = await sql`
      select from pay.provider_operations
      where environment_id = ${environment_id} and state = 'pending'
      union all select from pay.provider_events
      where environment_id = ${environment_id} and outcome is null
      union all select from pay.payments
      where environment_id = ${environment_id} and status <> all (${Object.keys(RESULTS)})
      limit 1`;
    return open === undefined;
  };
  await until("every call and provider event has a result", isSettled, SETTLE_MS).catch(
    async (error) => {
      throw new Error(`${error.message}: ${await explainOpen(sql, environment_id)}`);
    },
  );
  // Twice, because a poll that is under way reads a time that has ended before.
  for (const poll of ["first", "second"]) {
    await makePollDue(sql);
    await until(`the accounts are polled the ${poll} time`, async () => {
      const [open] = await sql`select from pay.provider_cursors where polled_at is null`;
      return open === undefined;
    }, SETTLE_MS);
  }
  await until("every polled provider event has a result", isSettled, SETTLE_MS);
}

/** Describes some of the operations and provider events that have no result. */
async function explainOpen(sql: postgres.Sql, environment_id: string): Promise<string> {
  const rows = await sql<{ row: unknown }[]>`
    (select to_jsonb(c) || jsonb_build_object('now', now()) as row from pay.provider_operations c
      where c.environment_id = ${environment_id} and c.state = 'pending' limit 3)
    union all (select to_jsonb(f) - 'body' from pay.provider_events f
      where f.environment_id = ${environment_id} and f.outcome is null limit 3)`;
  return JSON.stringify(rows.map(({ row }) => row));
}
