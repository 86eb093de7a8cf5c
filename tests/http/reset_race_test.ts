/**
 * A reset beside changes of the same sandbox: what was there goes whole, what is made meanwhile stays
 * whole. A lock holds the reset at the point where the two could be mixed up.
 */

import assert from "node:assert/strict";
import type { TestService } from "../support/service.ts";
import { APPROVED, PAYMENTS, SANDBOX, serviceCase } from "./service_case.ts";

serviceCase("reset beside changes", async (t, service) => {
  const old = await service.make({ amount_minor: 1000, outcome: "success" });
  const { reset, made, refund, sent } = await resetWhile(service, old.body.id, async () => {
    const made = await service.make({ amount_minor: 500, outcome: "success" });
    const refund = await service.call("POST", `${PAYMENTS}/${made.body.id}/refund`, {
      body: { amount: 100 },
      idempotency_key: "kept",
    });
    const sent = await service.call("POST", "/api-v1-payments/v1/transfers", {
      body: { amount: 50, currency: "EUR", destination: APPROVED.sepa },
    });
    return { made, refund, sent };
  });
  await t.step("what was there is gone, with what a change under way has added", async () => {
    assert.equal(reset.status, 200, reset.text);
    assert.deepEqual(reset.body.deleted, {
      payments: 1,
      refunds: 0,
      transfers: 0,
      ledger_entries: 2,
      events: 3,
      webhook_deliveries: 0,
      idempotency_keys: 0,
    });
    assert.equal((await service.call("GET", `${PAYMENTS}/${old.body.id}`)).status, 404);
    assert.deepEqual(await rowsOf(service, old.body.id), {
      events: 0,
      entries: 0,
      transactions: 0,
    });
  });
  await t.step("what was made meanwhile is there with all its rows", async () => {
    const { id } = made.body;
    assert.equal((await service.call("GET", `${PAYMENTS}/${id}`)).body.amount_refunded, 100);
    const path = `/api-v1-payments/v1/refunds/${refund.body.id}`;
    assert.equal((await service.call("GET", path)).status, 200);
    assert.deepEqual(await rowsOf(service, id), { events: 4, entries: 4, transactions: 2 });
    const transfer = { events: 2, entries: 4, transactions: 2 };
    assert.deepEqual(await rowsOf(service, sent.body.id), transfer);
    const replay = await service.call("POST", `${PAYMENTS}/${id}/refund`, {
      body: { amount: 100 },
      idempotency_key: "kept",
    });
    assert.equal(replay.text, refund.text);
  });
  await t.step("and the balance is theirs", async () => {
    const { body } = await service.call("GET", "/api-v1-payments/v1/balance");
    const shown = body.balances.map((
      { account, amount_minor }: { account: string; amount_minor: number },
    ) => [account, amount_minor]);
    assert.deepEqual(shown, [
      ["available", 350],
      ["external", 50],
      ["in_transit", 0],
      ["processor", -400],
    ]);
  });
});

/** Runs the work while a reset waits for a payment that another transaction is changing. */
async function resetWhile<T>(service: TestService, payment_id: string, work: () => Promise<T>) {
  const other = await service.sql.reserve();
  try {
    await other`begin`;
    await other`select from pay.payments where id = ${payment_id} for update`;
    await other`
      insert into pay.events (environment_id, id, type, subject_id, sequence, created_at, body)
      values (${service.key.environment_id}, ${`evt_${"0".repeat(26)}`}, 'payment.refunded',
        ${payment_id}, 3, now(), '{}')`;
    const resetting = service.call("POST", `${SANDBOX}/reset`);
    for (let waits = 0; waits === 0;) {
      const [row] = await service.sql`
        select count(*)::int as n from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'
          and query like '%pay.reset_sandbox%'`;
      waits = row!.n;
    }
    const done = await work();
    await other`commit`;
    return { ...done, reset: await resetting };
  } finally {
    other.release();
  }
}

async function rowsOf(service: TestService, subject_id: string) {
  const [row] = await service.sql`
    select (select count(*)::int from pay.events where subject_id = ${subject_id}) as events,
      (select count(*)::int from pay.ledger_entries where subject_id = ${subject_id}) as entries,
      (select count(*)::int from pay.ledger_transactions where subject_id = ${subject_id})
        as transactions`;
  return { ...row };
}
