/**
 * The invariants of money find nothing after captures, pending refunds, disputes and returns, and
 * find a wrong amount in a row, in a body, in the ledger and in the order of events.
 */

import assert from "node:assert/strict";
import type { TestService } from "../support/service/service.ts";
import { afterwards, assertSilent, saidBy } from "../support/database/invariant_breaches.ts";
import {
  advance,
  APPROVED,
  PAYMENTS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";

/** Statements that break one promise, and the invariants that must find it. */
const BREAKS: [what: string, statements: string, invariants: string[]][] = [
  [
    "a released amount that was captured",
    "update pay.payments set amount_released = amount_released - 1 where amount_released > 0",
    ["invariant_bodies", "invariant_payment_money"],
  ],
  [
    "a released amount of a payment that was captured as a whole",
    `update pay.payments set amount_released = 1
     where status = 'completed' and amount_released = 0`,
    ["invariant_bodies", "invariant_payment_money"],
  ],
  [
    "a body with another captured amount",
    `update pay.payments set body = replace(body, '"amount_captured":700', '"amount_captured":701')`,
    ["invariant_bodies"],
  ],
  [
    "a body without a captured amount",
    `update pay.payments set body = replace(body, '"amount_captured":700', '"amount_captured":0')`,
    ["invariant_bodies", "invariant_texts"],
  ],
  [
    "a disputed amount that is not in the ledger",
    "update pay.payments set amount_disputed = amount_disputed - 1 where status = 'chargeback'",
    ["invariant_bodies", "invariant_disputes", "invariant_payment_money"],
  ],
  [
    "a body with another disputed amount",
    `update pay.payments set body = replace(body, '"amount_disputed":700', '"amount_disputed":70')`,
    ["invariant_bodies", "invariant_texts"],
  ],
  [
    "a won dispute without its money",
    "delete from pay.ledger_movements where kind = 'chargeback_reversal'",
    ["invariant_ledger_totals", "invariant_payment_money"],
  ],
  [
    "a return of refunded money",
    `update pay.ledger_movements set amount_minor = amount_minor + 1
     where kind = 'capture_reversal'`,
    ["invariant_ledger_totals", "invariant_payment_money"],
  ],
  [
    "a pending refund that its payment does not hold",
    `update pay.payments set amount_refunding = amount_refunding - 1
     where amount_refunding > 0 and status <> 'chargeback'`,
    ["invariant_bodies", "invariant_refunds"],
  ],
  [
    "a body with another amount of pending refunds",
    `update pay.payments set body = replace(body, '"amount_refunding":', '"amount_refunding":1')`,
    ["invariant_bodies", "invariant_texts"],
  ],
  [
    "a body without the amount of pending refunds",
    `update pay.payments set body = replace(body, '"amount_refunding":300,', '')
     where status = 'completed'`,
    ["invariant_bodies", "invariant_texts"],
  ],
  [
    "a failed refund that counts",
    "update pay.refunds set status = 'completed' where status = 'failed'",
    ["invariant_refund_bodies", "invariant_refunds"],
  ],
  [
    "a pending refund whose body is completed",
    `update pay.refunds set body = replace(body, '"status":"pending"', '"status":"completed"')`,
    ["invariant_refund_bodies"],
  ],
  [
    "a missing refund",
    "delete from pay.refunds where status = 'pending'",
    ["invariant_refunds"],
  ],
  [
    "a missing event of a failed refund",
    "delete from pay.events where type = 'refund.failed'",
    ["invariant_refund_bodies", "invariant_sequences", "invariant_texts"],
  ],
  [
    "an event of a failed refund with another body",
    `update pay.events set object = replace(object, '"failure_code":"', '"failure_code":"x')
     where type = 'refund.failed'`,
    ["invariant_refund_bodies"],
  ],
  [
    "a refunded payment whose refund has failed",
    "update pay.events set type = 'refund.failed' where type = 'refund.completed'",
    ["invariant_moves", "invariant_refund_bodies"],
  ],
  [
    "a completed refund that its payment ignores",
    `update pay.events set type = 'payment.chargeback' where type = 'payment.partially_refunded'
       and sequence = 5`,
    ["invariant_moves", "invariant_texts"],
  ],
  [
    "a second authorization in place of the capture",
    `update pay.events set type = 'payment.authorized'
     where type = 'payment.completed' and sequence = 3`,
    ["invariant_moves", "invariant_texts"],
  ],
  [
    "a refund of an authorized payment",
    "update pay.events set type = 'refund.created' where type = 'payment.cancelled'",
    ["invariant_moves", "invariant_texts"],
  ],
  [
    "a failed payment in place of a won dispute",
    `update pay.events set type = 'payment.failed'
     where type = 'payment.completed' and sequence = 6`,
    ["invariant_bodies", "invariant_moves", "invariant_texts"],
  ],
  [
    "a missing dispute",
    "delete from pay.disputes where status <> 'won'",
    ["invariant_disputes"],
  ],
  [
    "a dispute that is still open after the payment has its money back",
    "update pay.disputes set status = 'needs_response' where status = 'won'",
    ["invariant_dispute_bodies", "invariant_disputes"],
  ],
  [
    "a dispute of another amount",
    "update pay.disputes set amount_minor = amount_minor + 1 where status <> 'won'",
    ["invariant_dispute_bodies", "invariant_disputes"],
  ],
  [
    "a dispute of a payment that does not exist",
    "update pay.disputes set payment_id = 'pay_' || right(id, 26) where status = 'won'",
    ["invariant_dispute_bodies", "invariant_orphans"],
  ],
  [
    "a body with another end of the dispute",
    `update pay.disputes set body = replace(body, '"won"', '"lost"')`,
    ["invariant_dispute_bodies"],
  ],
  [
    "a lost dispute without a time",
    `update pay.disputes
     set body = regexp_replace(body, '"closed_at":"[^"]*"', '"closed_at":null') where status = 'won'`,
    ["invariant_dispute_bodies"],
  ],
  [
    "a dispute that ends twice",
    "update pay.events set type = 'dispute.won' where type = 'dispute.created'",
    ["invariant_dispute_bodies", "invariant_moves"],
  ],
  [
    "an event of a dispute before it began",
    "update pay.events set type = 'dispute.updated' where type = 'dispute.created'",
    ["invariant_moves"],
  ],
  [
    "a chargeback whose dispute is a refund",
    "update pay.events set type = 'refund.created' where type = 'dispute.won'",
    ["invariant_dispute_bodies", "invariant_moves"],
  ],
];

/** A fee of 3 for a captured payment, which the provider keeps. */
const FEE = `
  insert into pay.ledger_movements
  select 3, created_at, 0, environment_id, 'txn_' || repeat('0', 26), 'fee', subject_id, null,
    'available', 'processor', currency
  from pay.ledger_movements where kind = 'capture' limit 1;
  update pay.ledger_totals t set amount_minor = amount_minor + 3
  where ctid = (select ctid from pay.ledger_totals
    where debit_account = 'available' and credit_account = 'processor' limit 1)`;

serviceCase("the invariants of money", async (t, service) => {
  const { sql } = service;
  await work(service);
  await t.step("find nothing after every kind of move", () => assertSilent(sql));
  await t.step("find nothing after a fee", () => afterwards(sql, FEE, assertSilent));
  for (const [what, statements, invariants] of BREAKS) {
    await t.step(`${what}: ${invariants.join(", ")}`, async () => {
      assert.deepEqual(await afterwards(sql, statements, saidBy), invariants);
    });
  }
});

/** Captures, cancels, refunds, disputes and returns payments. */
async function work(service: TestService): Promise<void> {
  const send = async (path: string, body: Record<string, unknown> = {}) => {
    const response = await service.call("POST", path, { body });
    assert.ok(response.status < 300, response.text);
    return response.body;
  };
  const pay = async (body: Record<string, unknown>): Promise<string> => {
    const made = await service.make({ ...APPROVED.card, settlement: "manual", ...body });
    assert.equal(made.status, 201, made.text);
    return made.body.id;
  };
  const refund = (id: string, amount: number) => send(`${PAYMENTS}/${id}/refund`, { amount });
  const end = (refund: { id: string }, to: string) =>
    send(`${SANDBOX}/refunds/${refund.id}/advance`, { to });
  const move = async (id: string, to: string) => {
    const moved = await advance(service, id, to);
    assert.equal(moved.status, 200, moved.text);
  };

  const in_part = await pay({ capture: "manual" });
  await send(`${PAYMENTS}/${in_part}/capture`, { amount: 700 });
  await refund(in_part, 300);
  await pay({ capture: "manual" });
  await send(`${PAYMENTS}/${await pay({ capture: "manual" })}/cancel`);

  const refunded = await pay({});
  await end(await refund(refunded, 400), "completed");
  await end(await refund(refunded, 100), "failed");
  const [one, other] = [await refund(refunded, 200), await refund(refunded, 300)];
  await end(other, "completed");
  await end(one, "completed");
  await refund(refunded, 60);

  const disputed = await pay({});
  await refund(disputed, 300);
  await move(disputed, "chargeback");
  const won = await pay({});
  await move(won, "chargeback");
  await move(won, "completed");
  const won_partly = await pay({});
  const late = await refund(won_partly, 300);
  await move(won_partly, "chargeback");
  await end(late, "completed");
  await move(won_partly, "partially_refunded");
  const returned = await pay({ ...APPROVED.sepa, card: undefined, settlement: undefined });
  await refund(returned, 400);
  await move(returned, "failed");
}
