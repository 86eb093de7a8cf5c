/**
 * The invariants of the live flow find nothing after ordinary work, and find each defect that is
 * made. A defect is written past all other guards and rolled back.
 */

import assert from "node:assert/strict";
import type postgres from "postgres";
import { afterwards, assertSilent } from "../support/database/invariant_breaches.ts";
import {
  addAccount,
  completion,
  type ProviderCase,
  providerCase,
  reserve,
  succeeded,
} from "../support/database/provider_flow.ts";

/** The last whole day, whose totals are read. */
const DAY = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
const onDay = (difference: string) => new RegExp(`^${DAY}: ${difference}$`);

const EXCEPTION =
  `update pay.provider_events set outcome = 'exception', exception = 'amount 5, ours 6'`;
/** Statements that make a defect, and the breaches: each invariant with a part of its detail. */
const DEFECTS: [statements: string, breaches: Record<string, RegExp>][] = [
  // Nobody has sent the operation for two hours, or the operator must decide.
  [
    `update pay.provider_operations set state = 'pending', settled_at = null,
       next_attempt_at = now() - interval '2 hours' where subject_id = :completed`,
    { provider_operations: /^authorize of pay_\w+: no attempt since / },
  ],
  [
    `update pay.provider_operations set state = 'operator', settled_at = null,
       last_reply = 'server_error' where subject_id = :completed`,
    { provider_operations: /the result is unknown, decide by hand: server_error$/ },
  ],
  [
    `update pay.provider_operations set state = 'settled', settled_at = now(), next_attempt_at = null,
       leased_until = null where subject_id = :pending`,
    { provider_operations: /is settled, but it is pending$/ },
  ],
  [
    "delete from pay.provider_operations where subject_id = :completed",
    { provider_operations: /^completed without an operation of a provider$/ },
  ],
  ["delete from pay.provider_events where subject_id = :completed", {
    provider_operations: /^completed without a provider event that the money has come in$/,
    provider_totals: onDay("provider 1000 EUR, ledger 0"),
  }],
  [
    `update pay.provider_events set outcome = 'ignored', booked_minor = 0
     where subject_id = :completed`,
    {
      provider_operations: /without a provider event/,
      provider_totals: /provider 1000 EUR, ledger 0$/,
    },
  ],
  [`${EXCEPTION} where reference = 'extra'`, { reported_events: /^exception: amount 5, ours 6$/ }],
  // The operator has dismissed it.
  [
    `${EXCEPTION}, dismissed_at = now(), dismissed_reason = 'seen' where reference = 'extra'`,
    {},
  ],
  ["update pay.provider_events set outcome = 'unmatched' where reference = 'extra'", {
    reported_events: /^unmatched: authorize pending of pay_/,
  }],
  [
    `update pay.provider_events set outcome = 'unmatched', booked_minor = 5,
       dismissed_at = now(), dismissed_reason = 'seen' where reference = 'extra'`,
    {
      provider_events: /^provider events of 5 EUR, ledger 0$/,
      provider_totals: onDay("provider 1000 EUR, ledger 1005"),
    },
  ],
  // Unmatched money that was matched and not reversed.
  [
    `insert into pay.ledger_movements (environment_id, transaction_id, leg, kind, subject_id,
       amount_minor, currency, debit_account, credit_account, created_at)
     select environment_id, 'txn_00000000000000000000000000', 0, 'unmatched', subject_id,
       amount_minor, currency, 'processor', 'unapplied', created_at
     from pay.ledger_movements where subject_id = :completed`,
    { provider_events: /^provider events of 1000 EUR, ledger 2000$/ },
  ],
  [
    `update pay.provider_events set outcome = null, handled_at = null,
       received_at = now() - interval '11 minutes' where reference = 'extra'`,
    { provider_events: /^not handled since / },
  ],
  // Booked twice.
  [
    `update pay.provider_events set outcome = 'applied', booked_minor = 1000
     where reference = 'extra'`,
    {
      provider_events: /^provider events of 2000 EUR, ledger 1000$/,
      provider_totals: onDay("provider 1000 EUR, ledger 2000"),
    },
  ],
  [
    `update pay.provider_events set booked_minor = 999
     where subject_id = :completed and state = 'succeeded'`,
    {
      provider_events: /^provider events of 999 EUR, ledger 1000$/,
      provider_totals: onDay("provider 1000 EUR, ledger 999"),
    },
  ],
  ["delete from pay.ledger_movements where subject_id = :completed", {
    provider_events: /^provider events of 1000 EUR, ledger 0$/,
  }],
  [
    `insert into pay.provider_totals
     select environment_id, account_id, day, 'USD', -5, read_at from pay.provider_totals`,
    { provider_totals: onDay("provider -5 USD, ledger 0") },
  ],
  // Other totals of a day whose totals are not read yet.
  ["update pay.provider_totals set day = day + 1", {
    provider_totals: onDay("provider 0 EUR, ledger 1000"),
  }],
  // Nobody has polled the account for three hours, or ever.
  ["update pay.provider_cursors set polled_at = now() - interval '181 minutes'", {
    provider_events: /^not read since /,
  }],
  ["update pay.provider_cursors set polled_at = null", { provider_events: /^not read since / }],
  ["update pay.provider_cursors set polled_at = now() - interval '179 minutes'", {}],
  ["update pay.provider_cursors set totals_day = totals_day - 4", {
    provider_totals: /^\d{4}-\d\d-\d\d: the totals of the provider are not read$/,
  }],
  ["update pay.provider_cursors set totals_day = totals_day - 1", {}],
  // Nobody needs to read a disabled account.
  [
    `update pay.provider_cursors set polled_at = null, totals_day = totals_day - 4;
     update pay.provider_accounts set status = 'disabled', disabled_at = now()`,
    {},
  ],
  // A kept mandate without its bank details.
  [
    `insert into pay.instruments (environment_id, id, status, method_kind, usage, is_kept,
       mandate_id, signed_at, payment_id, touched_at, sequence, created_at, updated_at)
     select environment_id, 'ins_1', 'active', 'sepa', 'off_session', true, 'M-1', '2026-01-31',
       id, now(), 1, now(), now()
     from pay.payments where id = :completed`,
    { instrument_details: /^active without bank details$/ },
  ],
];

async function reconcile(sql: postgres.ISql): Promise<[invariant: string, detail: string][]> {
  const rows = await sql`select invariant, detail from pay.reconcile()`;
  return rows.map(({ invariant, detail }) => [invariant.replace("invariant_", ""), detail]);
}

/** Makes a completed and a pending payment, and returns their ids. */
async function work({ sql, live, key, functions, store }: ProviderCase) {
  const account_id = await addAccount(sql, live.environment_id);
  await sql`update pay.provider_accounts set created_at = created_at - interval '2 days'`;
  await sql`update pay.provider_cursors set polled_at = now()`;
  const at = `${DAY}T12:00:00Z`;
  const done = await reserve(functions, live, {}, { idempotency_key: "done" });
  const extra = succeeded(done, {
    reference: "extra",
    state: "pending",
    outcome: "ignored",
    booked_minor: 0,
    at,
  });
  await store.record([completion(done, { provider_events: [succeeded(done, { at }), extra] })]);
  await store.storeTotals(account_id, DAY, [{ currency: "EUR", net_minor: 1000 }]);
  const pending = await reserve(functions, live, {}, { idempotency_key: "under way" });
  await reserve(functions, key, {}, { idempotency_key: "simulated" });
  return { completed: done.payment.id, pending: pending.payment.id };
}

providerCase("the invariants of the live flow", async (t, given) => {
  const { sql } = given;
  const ids = await work(given);
  await t.step("find nothing after ordinary work, and no other invariant does", async () => {
    assert.deepEqual(await reconcile(sql), []);
    await assertSilent(sql);
  });
  for (const [statements, breaches] of DEFECTS) {
    await t.step(`${statements}: ${Object.keys(breaches).join(", ")}`, async () => {
      const text = statements.replaceAll(/:(\w+)/g, (_, name) => `'${ids[name as "pending"]}'`);
      const found = await afterwards(sql, text, reconcile);
      assert.deepEqual(found.map(([invariant]) => invariant), Object.keys(breaches));
      for (const [invariant, detail] of found) assert.match(detail, breaches[invariant]!);
    });
  }
});
