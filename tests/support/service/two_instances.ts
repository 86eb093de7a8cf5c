/**
 * Two instances over one database, as a platform runs isolates. Each has its own pool and queues,
 * so that their requests meet in the database only.
 */

import assert from "node:assert/strict";
import { checkBooks } from "../../../apps/operator/check_books.ts";
import { NO_DISPATCHER } from "../webhook/dispatcher_polls.ts";
import { startSecondService } from "./second_service.ts";
import { startService, type TestResponse, type TestService } from "./service.ts";

/** A request to either instance, as JSON. */
export interface Ask {
  path: string;
  body?: unknown;
  idempotency_key?: string;
  key?: string;
}

/** Two instances of the product. */
export interface TwoInstances {
  service: TestService;
  /** Sends a POST to one of the instances. */
  post(instance: number, ask: Ask): Promise<TestResponse>;
  /** Sends requests in parallel, alternately to the two instances. */
  race(asks: readonly Ask[]): Promise<TestResponse[]>;
  close(): Promise<void>;
}

/**
 * Returns the size of a race: the value of the environment variable, or the size for CI.
 * `DUPLICATES` is the number of requests with one key, `ROUNDS` the number of runs
 * (docs/reliability.md).
 */
export function sizeOf(name: "DUPLICATES" | "ROUNDS", standard: number): number {
  const size = Number(Deno.env.get(name) ?? standard);
  if (!(Number.isSafeInteger(size) && size > 0)) throw new RangeError(`${name} is not a number`);
  return size;
}

/** Registers a test with two instances over a database of its own. Each step is one race. */
export function raceCase(
  name: string,
  run: (t: Deno.TestContext, two: TwoInstances) => Promise<void>,
): void {
  Deno.test(name, async (t) => {
    const two = await startTwoInstances();
    try {
      await run(t, two);
    } finally {
      await two.close();
    }
  });
}

/** Starts two instances over a new database. */
async function startTwoInstances(): Promise<TwoInstances> {
  const service = await startService();
  const instances = [0, 1].map(() => startSecondService(service, NO_DISPATCHER));
  const post = (instance: number, { path, ...options }: Ask) =>
    instances[instance % 2]!.call("POST", path, options);
  // Opens the connections of both pools, so that requests of the first race meet.
  await Promise.all(Array.from({ length: 16 }, (_, i) =>
    post(i, {
      path: "/api-v1-payments/v1/payments",
      body: {},
    })));
  return {
    service,
    post,
    race: (asks) => Promise.all(asks.map((ask, i) => post(i, ask))),
    async close() {
      for (const { close } of instances) await close();
      await service.close();
    },
  };
}

/** Requests that create and move payments, and reset the sandbox. */
export const ASKS = {
  create: (body: Record<string, unknown> = {}): Ask => ({
    path: "/api-v1-payments/v1/payments",
    body: { amount: 1000, currency: "EUR", ...body },
  }),
  cancel: (id: string): Ask => ({ path: `/api-v1-payments/v1/payments/${id}/cancel` }),
  refund: (id: string, amount?: number): Ask => ({
    path: `/api-v1-payments/v1/payments/${id}/refund`,
    body: amount === undefined ? {} : { amount },
  }),
  advance: (id: string, to: string): Ask => ({
    path: `/api-v1-sandbox/payments/${id}/advance`,
    body: { to },
  }),
  reset: (): Ask => ({ path: "/api-v1-sandbox/reset" }),
};

/** Asserts that every stored payment is consistent and that the invariants hold. */
export async function assertSound({ sql }: TestService): Promise<void> {
  const faults = await sql`
    select 'events of ' || subject_id as fault from pay.events
    where sequence is not null
    group by environment_id, subject_id
    having min(sequence) <> 1 or max(sequence) <> count(*)
    union all
    select 'newest event of ' || p.id from pay.payments p
    where sequence <> (select max(sequence) from pay.events e
      where e.environment_id = p.environment_id and e.subject_id = p.id)
    union all
    select 'refunds of ' || p.id from pay.payments p
    where amount_refunded <> (select coalesce(sum(amount_minor), 0) from pay.refunds r
      where r.environment_id = p.environment_id and r.payment_id = p.id)
    union all
    select 'body of ' || p.id from pay.payments p
    where (body::json ->> 'status', (body::json ->> 'sequence')::int,
      (body::json ->> 'amount_refunded')::bigint)
      is distinct from (status, sequence, amount_refunded)
    union all
    select 'available of ' || p.id from pay.payments p
    where (
        select coalesce(sum(case direction when 'credit' then amount_minor
          else -amount_minor end), 0)
        from pay.ledger_entries e
        where e.environment_id = p.environment_id and e.subject_id = p.id and account = 'available')
      <> case when status in ('completed', 'partially_refunded') then amount_minor - amount_refunded
        when status = 'failed' then -amount_refunded else 0 end
    union all
    select 'no payment for ' || t.id from (
      select environment_id, id, subject_id from pay.events
      union all select environment_id, transaction_id, subject_id from pay.ledger_movements
      union all select environment_id, id, payment_id from pay.refunds
    ) t
    where t.subject_id like 'pay\\_%' and not exists (select from pay.payments p
      where p.environment_id = t.environment_id and p.id = t.subject_id)`;
  assert.deepEqual(faults.map(({ fault }) => fault), []);
  assert.deepEqual((await checkBooks(sql)).filter(({ breaches }) => breaches > 0), []);
}
