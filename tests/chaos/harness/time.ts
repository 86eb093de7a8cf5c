/**
 * Time in the runs with providers: hours pass in seconds for the worker, and a run waits until
 * everything has a result.
 */

import postgres from "postgres";
import { pause, until } from "../../support/common/until.ts";
import type { Stage } from "./stage.ts";

interface TimeOptions {
  every_ms?: number;
  /** Interval of the polls of a provider. A poll of Stripe reads five minutes of events again. */
  poll_every_ms?: number;
  /** On a chain, payouts become older by 20 s with each step, and leases of polls are short. */
  is_chain?: boolean;
}

const SETTLE_MS = 180_000;
/** A statement that takes longer waits for a connection that a kill has broken. */
const STUCK_MS = 5_000;

/**
 * Makes time pass for the worker: the next attempt of an operation and the next sync of an open
 * payment are due after a second, and leases of dead processes end after 3 s. The operation that
 * ends a payment waits until the payer has come, or has sent money to the bank.
 */
export class FastTime {
  /** Whether somebody waits for a poll, and makes it due. */
  #is_waiting = false;
  #is_over = false;
  #refused: unknown;
  readonly #passing: Promise<void>;

  constructor(readonly stage: Stage, options: TimeOptions = {}) {
    const { every_ms = 1_000, poll_every_ms = 60_000, is_chain = false } = options;
    this.#passing = (async () => {
      for (let poll_at = Date.now() + poll_every_ms; !this.#is_over; await pause(every_ms)) {
        // A new connection each time, because PostgreSQL is killed now and then.
        const once = postgres(stage.postgres.superuser_url, { max: 1, onnotice: () => {} });
        const is_poll_due = Date.now() >= poll_at && !this.#is_waiting;
        if (is_poll_due) poll_at = Date.now() + poll_every_ms;
        const passed = passSecond(once, is_poll_due, is_chain).catch((error) => {
          // A constraint that refuses the statement would stop the time.
          if (isRefusal(error)) this.#refused ??= error;
        });
        await Promise.race([passed, pause(STUCK_MS)]);
        await once.end({ timeout: 1 }).catch(() => {});
      }
    })();
  }

  async end(): Promise<void> {
    this.#is_over = true;
    await this.#passing;
    if (this.#refused) throw this.#refused;
  }

  /**
   * Waits until every account was polled so many times: a poll that is under way reads a time that
   * has ended before.
   * @param onPolled called after each poll
   */
  async untilPolled(times: number, onPolled: () => Promise<void> = async () => {}): Promise<void> {
    this.#is_waiting = true;
    const { sql } = this.stage;
    for (let poll = 1; poll <= times; poll++) {
      await untilNone(`poll ${poll} is due`, () =>
        sql`
        update pay.provider_cursors set polled_at = null`);
      await untilNone(`poll ${poll}`, () =>
        sql`
        select from pay.provider_cursors where polled_at is null or stalled_since is not null`);
      await onPolled();
    }
    this.#is_waiting = false;
  }
}

/** Waits until a query returns no rows. A query on a connection to a killed server is repeated. */
export async function untilNone(
  what: string,
  ask: () => Promise<readonly unknown[]>,
  deadline_ms: number = SETTLE_MS,
): Promise<void> {
  await until(what, async () => (await ask().catch(() => [null])).length === 0, deadline_ms);
}

/** Describes the open operations and provider events, and the cursors, if a wait fails. */
export async function explained(sql: postgres.Sql, waiting: Promise<unknown>): Promise<string[]> {
  try {
    await waiting;
    return [];
  } catch (error) {
    const rows = await sql<{ row: unknown }[]>`
      (select to_jsonb(o) || jsonb_build_object('now', now()) as row from pay.provider_operations o
        where o.state = 'pending' limit 3)
      union all (select to_jsonb(e) - 'body' from pay.provider_events e
        where e.outcome is null limit 3)
      union all (select to_jsonb(c) from pay.provider_cursors c limit 3)`
      .catch((error) => [{ row: String(error) }]);
    return [`${error}: ${JSON.stringify(rows.map(({ row }) => row))}`];
  }
}

/** Reports whether PostgreSQL has refused a statement, and no kill has ended it. */
function isRefusal(error: unknown): boolean {
  return error instanceof postgres.PostgresError && /^(22|23|42)/.test(error.code);
}

async function passSecond(
  sql: postgres.Sql,
  is_poll_due: boolean,
  is_chain: boolean,
): Promise<void> {
  // A move of an account compares its rows with those of the other cell.
  const [moving] = await sql`select from pay.environments where moving is not null limit 1`;
  if (moving) return;
  await sql`
    update pay.provider_operations set
      leased_until = least(leased_until, now() + interval '3 seconds'),
      next_attempt_at = case
        when op = 'abandon' and exists (
          select from pay.payments p where p.id = subject_id
            and (p.status = 'requires_action' or p.method_kind = 'sepa')
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
  if (is_poll_due) await sql`update pay.provider_cursors set polled_at = null`;
  if (!is_chain) return;
  await sql`
    update pay.provider_cursors set leased_until = now() + interval '2 seconds'
    where leased_until > now() + interval '2 seconds'`;
  await sql`
    update pay.chain_payouts set sent_at = sent_at - interval '20 seconds'
    where sent_at > now() - interval '1 hour'`;
}
