/**
 * Random operations on random payments, some at the same time and some repeated under their key.
 * Then an audit reads the tables; it shares no code with the service (security §3: R2, R4, R5). The
 * seed of a run is in the name of its step; `SEED` sets it.
 */

import assert from "node:assert/strict";
import fc from "fast-check";
import type { TestAnswer, TestService } from "../support/service/service.ts";
import {
  advance,
  APPROVED,
  card,
  KINDS,
  PAYMENTS,
  SANDBOX,
  serviceCase,
  STATUSES,
} from "../support/service/service_case.ts";

const SEED = Number(Deno.env.get("SEED") ?? Date.now() % 2 ** 31);
const RUNS = 120;

const Instrument = fc.constantFrom<Record<string, unknown>>(
  {},
  ...KINDS.map((kind) => APPROVED[kind]),
  card("4000 0000 0000 0002"),
  card("4000 0025 0000 3155"),
  { iban: "DE00 0000 0000 0000 0000 99" },
  { wallet: "0x0000000000000000000000000000000000000BAD" },
  { ...APPROVED.sepa, settlement: "manual" },
  { outcome: "success" },
  { outcome: "refunded" },
  { outcome: "chargeback" },
);
const Amount = fc.integer({ min: 1, max: 12 });
/** The payment to change: mostly the newest one, so that moves follow each other. */
const Target = fc.integer({ min: 0, max: 2 });
const Operation = fc.oneof(
  fc.record({ do: fc.constant("create"), body: Instrument, amount: Amount }),
  fc.record({ do: fc.constant("cancel"), target: Target }),
  fc.record({ do: fc.constant("refund"), target: Target, amount: fc.option(Amount) }),
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("advance"),
      target: Target,
      to: fc.constantFrom(...STATUSES),
    }),
  },
  fc.record({
    do: fc.constant("authenticate"),
    target: Target,
    result: fc.constantFrom("success", "failure"),
  }),
) as fc.Arbitrary<
  {
    do: string;
    body?: object;
    amount?: number | null;
    target?: number;
    to?: string;
    result?: string;
  }
>;
type Operation = typeof Operation extends fc.Arbitrary<infer T> ? T : never;
/** An operation, with a key or without, sent this many times at once. */
const Command = fc.record({
  operation: Operation,
  is_keyed: fc.boolean(),
  twins: fc.integer({ min: 1, max: 3 }),
});
type Command = typeof Command extends fc.Arbitrary<infer T> ? T : never;
/** Batches, one after the other. The commands of a batch run at once. */
const Workload = fc.array(fc.array(Command, { minLength: 1, maxLength: 4 }), {
  minLength: 1,
  maxLength: 12,
});

/** Every status that an operation of this workload can be answered with. */
const ANSWERS = new Set([200, 201, 400, 402, 409]);
const KEPT = new Set([200, 201, 402, 409]);

serviceCase("random operations keep the promises", async (t, service) => {
  await t.step(`seed ${SEED}`, async () => {
    await fc.assert(
      fc.asyncProperty(Workload, async (workload) => {
        await service.call("POST", `${SANDBOX}/reset`);
        await run(service, workload);
        await audit(service);
      }),
      { numRuns: RUNS, seed: SEED },
    );
  });
});

async function run(service: TestService, workload: Command[][]): Promise<void> {
  const payments: string[] = [(await service.make({ amount_minor: 7 })).body.id];
  const kept: [send: () => Promise<TestAnswer>, text: string][] = [];
  for (const batch of workload) {
    await Promise.all(batch.map(async ({ operation, is_keyed, twins }) => {
      const key = is_keyed ? crypto.randomUUID() : undefined;
      const id = payments[Math.max(0, payments.length - 1 - (operation.target ?? 0))]!;
      const send = () => perform(service, operation, id, key);
      const answers = await Promise.all(Array.from({ length: is_keyed ? twins : 1 }, send));
      for (const { status, text } of answers) assert.ok(ANSWERS.has(status), text);
      created(operation, answers[0]!, payments);
      if (!is_keyed) return;
      const lasting = answers.filter(({ status }) => KEPT.has(status)).map(({ text }) => text);
      assert.ok(new Set(lasting).size <= 1, "twins are answered alike");
      if (lasting.length > 0) kept.push([send, lasting[0]!]);
    }));
  }
  for (const [send, text] of kept) {
    const replay = await send();
    assert.equal(replay.headers.get("Idempotent-Replayed"), "true");
    assert.equal(replay.text, text, "a replay equals the first answer");
  }
}

function created(operation: Operation, answer: TestAnswer, payments: string[]): void {
  if (operation.do !== "create") return;
  payments.push(answer.status === 402 ? answer.body.error.payment.id : answer.body.id);
}

function perform(
  service: TestService,
  operation: Operation,
  id: string,
  idempotency_key: string | undefined,
): Promise<TestAnswer> {
  const keyed = idempotency_key === undefined ? {} : { idempotency_key };
  const { body, amount, result } = operation;
  switch (operation.do) {
    case "create":
      return service.pay({ amount, ...body }, keyed);
    case "cancel":
      return service.call("POST", `${PAYMENTS}/${id}/cancel`, keyed);
    case "refund": {
      const sent = amount === null ? {} : { amount };
      return service.call("POST", `${PAYMENTS}/${id}/refund`, { ...keyed, body: sent });
    }
    case "authenticate": {
      const url = `${SANDBOX}/payments/${id}/authenticate`;
      return service.call("POST", url, { ...keyed, body: { result } });
    }
  }
  return advance(service, id, operation.to!, keyed);
}

/** Each query finds no row when its promise holds. */
async function audit({ sql }: TestService): Promise<void> {
  const findings: [string, PromiseLike<readonly unknown[]>][] = [
    [
      "totals that are not the sum of the movements",
      sql`
      select debit_account, credit_account, currency from (
        select debit_account, credit_account, currency, amount_minor from pay.ledger_totals
        union all
        select debit_account, credit_account, currency, -amount_minor from pay.ledger_movements
      ) x
      group by debit_account, credit_account, currency having sum(amount_minor) <> 0`,
    ],
    [
      "payments whose events have gaps",
      sql`
      select p.id, p.sequence from pay.payments p
      join pay.events e on e.subject_id = p.id
      group by p.id, p.sequence
      having array_agg(e.sequence order by e.sequence)
        <> (select array_agg(n) from generate_series(1, p.sequence) n)`,
    ],
    [
      "payments without an event, or events without a payment",
      sql`
      select p.id, e.id from pay.payments p
      full join pay.events e on e.subject_id = p.id
      where p.id is null or e.id is null`,
    ],
    [
      "payments whose sums of refunds are not those of their refunds",
      sql`
      select p.id from pay.payments p
      left join pay.refunds r on r.payment_id = p.id
      group by p.id, p.amount_refunded, p.amount_refunding, p.amount_minor
      having coalesce(sum(r.amount_minor) filter (where r.status = 'completed'), 0)
          <> p.amount_refunded
        or coalesce(sum(r.amount_minor) filter (where r.status = 'pending'), 0)
          <> p.amount_refunding
        or p.amount_refunded + p.amount_refunding > p.amount_minor`,
    ],
    [
      "payments whose ledger movements do not match their status",
      sql`
      select p.id, p.status from pay.payments p
      left join pay.ledger_entries e on e.subject_id = p.id and e.account = 'available'
      group by p.id, p.status, p.amount_minor, p.amount_refunded, p.amount_disputed
      having coalesce(sum(case e.direction when 'credit' then e.amount_minor
          when 'debit' then -e.amount_minor end), 0)
        -- A dispute takes what is not held by a pending refund.
        <> case when p.status in ('completed', 'partially_refunded', 'chargeback')
          then p.amount_minor - p.amount_refunded - p.amount_disputed else 0 end`,
    ],
    [
      "payments whose body differs from their row or their newest event",
      sql`
      select p.id from pay.payments p
      join pay.events e on e.subject_id = p.id and e.sequence = p.sequence
      where p.body::json ->> 'status' <> p.status
        or (p.body::json ->> 'sequence')::int <> p.sequence
        or (p.body::json ->> 'amount_refunded')::bigint <> p.amount_refunded
        or (p.body::json ->> 'amount_refunding')::bigint <> p.amount_refunding
        or e.type like 'payment.%' and position('"data":{"object":' || p.body || '}' in e.body) = 0`,
    ],
  ];
  for (const [finding, query] of findings) {
    assert.deepEqual(JSON.stringify(await query), "[]", finding);
  }
}
