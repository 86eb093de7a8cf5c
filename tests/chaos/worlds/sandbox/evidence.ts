/** The evidence of the main run, which its audits read. */

import type postgres from "postgres";
import { checkBooks } from "../../../../apps/operator/check_books.ts";
import type { Arrival } from "../../harness/receiver.ts";
import type { Replays } from "../../harness/client.ts";
import type { KeyedEnvironment } from "../../harness/stage.ts";
import type { Finished } from "./clients.ts";
import type { Plan, Sandbox } from "./plan.ts";

export type Environments = Record<Sandbox, KeyedEnvironment>;

export interface Evidence {
  plan: Plan;
  rows: Rows;
  /** In the order in which the operations were over. */
  journal: Finished[];
  arrivals: Arrival[];
  environments: Environments;
  /** Endpoints by the path of their URL. `events` is `*` or such as `payment.*`. */
  endpoints: Record<string, { sandbox: Sandbox; events: string }>;
  replays: Replays;
  /** Number of audits during the run, and their breaches. */
  meanwhile: { audits: number; breaches: string[] };
  /** The events of redeliveries, and deliveries that did not follow the schedule. */
  drained: { redelivered: Set<string>; faults: string[] };
}

type Rows = Awaited<ReturnType<typeof readRows>>;

/** Reads the rows of a run that has come to rest. */
export async function readRows(sql: postgres.Sql, environments: Environments) {
  const events = await sql<
    /** With the public id of the environment. */
    { environment_id: string; id: string; type: string; body_hash: string }[]
  >`
    select v.public_id as environment_id, e.id, type,
      encode(sha256(convert_to(pay_internal.event_body(e), 'UTF8')), 'hex') as body_hash
    from pay.events e join pay.environments v on v.id = e.environment_id and v.retired_at is null
    where sequence is not null`;
  const stored = await sql<{ id: string; text: string }[]>`
    select id, body as text from pay.payments
    union all select id, body from pay.transfers
    union all
    select id, json_build_object('status', status, 'sequence', sequence)::text
    from pay.instruments`;
  const [counts] = await sql<{ movements: string }[]>`
    select count(*) as movements from pay.ledger_movements`;
  const saved_twice = await sql<{ payment_id: string }[]>`
    select payment_id from pay.instruments group by payment_id having count(*) > 1`;
  return {
    events: [...events],
    /** The texts of payments, transfers and instruments by their ids. */
    stored: new Map(stored.map(({ id, text }) => [id, text])),
    movements: counts!.movements,
    /** Payments with several instruments. */
    saved_twice: saved_twice.map(({ payment_id }) => payment_id),
    overdrawn: await overdrawnBalances(sql, environments),
    /** The broken invariants. */
    books: (await checkBooks(sql)).filter(({ breaches }) => breaches > 0),
  };
}

/** Balances that transfers have overdrawn, which they must not. */
export async function overdrawnBalances(
  sql: postgres.Sql,
  { transfers: { environment_id } }: Environments,
): Promise<string[]> {
  const rows = await sql`
    select currency, sum(signed) as balance from (
      select currency,
        case direction when 'credit' then amount_minor else -amount_minor end as signed
      from pay.ledger_entries where environment_id = ${environment_id} and account = 'available'
    ) e group by currency having sum(signed) < 0`;
  return rows.map(({ currency, balance }) => `${currency} overdrawn: ${balance}`);
}
