/**
 * The invariants find nothing after captures, pending refunds, disputes and returns, and in a
 * sandbox that is a year ahead. They find a wrong amount in a row, in a body, in the ledger and in
 * the order of events.
 */

import assert from "node:assert/strict";
import { APPROVED_CARD, type TestService } from "../support/service/service.ts";
import {
  afterwards,
  assertBreaks,
  assertSilent,
  type Breaks,
  reword,
} from "../support/database/invariant_breaches.ts";
import { addEndpoint, settle } from "../support/webhook/recording_receiver.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";
import {
  advance,
  APPROVED,
  commandClock,
  PAYMENTS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";

/** The invariants that must find breaches, and statements that make each. */
const BREAKS: Breaks[] = [
  [
    "bodies payment_money",
    "update pay.payments set amount_released = amount_released - 1 where amount_released > 0",
    `update pay.payments set amount_released = 1
     where status = 'completed' and amount_released = 0`,
  ],
  ["bodies", reword("payments", '"amount_captured":700', '"amount_captured":701')],
  [
    "bodies texts",
    reword("payments", '"amount_captured":700', '"amount_captured":0'),
    reword("payments", '"amount_disputed":700', '"amount_disputed":70'),
    reword("payments", '"amount_refunding":', '"amount_refunding":1'),
    reword("payments", '"amount_refunding":300,', "", "status = 'completed'"),
  ],
  [
    "bodies disputes payment_money",
    "update pay.payments set amount_disputed = amount_disputed - 1 where status = 'chargeback'",
  ],
  [
    "ledger_totals payment_money",
    // A won dispute without its money, and a return of refunded money.
    "delete from pay.ledger_movements where kind = 'chargeback_reversal'",
    `update pay.ledger_movements set amount_minor = amount_minor + 1
     where kind = 'capture_reversal'`,
  ],
  [
    "bodies refunds",
    // A pending refund that its payment does not hold.
    `update pay.payments set amount_refunding = amount_refunding - 1
     where amount_refunding > 0 and status <> 'chargeback'`,
  ],
  ["refund_bodies refunds", "update pay.refunds set status = 'completed' where status = 'failed'"],
  [
    "refund_bodies",
    reword("refunds", '"status":"pending"', '"status":"completed"'),
    `update pay.events set object = replace(object, '"failure_code":"', '"failure_code":"x')
     where type = 'refund.failed'`,
  ],
  ["refunds", "delete from pay.refunds where status = 'pending'"],
  ["refund_bodies sequences texts", "delete from pay.events where type = 'refund.failed'"],
  [
    "moves refund_bodies",
    "update pay.events set type = 'refund.failed' where type = 'refund.completed'",
  ],
  [
    "moves texts",
    // A completed refund that its payment ignores.
    `update pay.events set type = 'payment.chargeback' where type = 'payment.partially_refunded'
       and sequence = 5`,
    // A second authorization in place of the capture.
    `update pay.events set type = 'payment.authorized'
     where type = 'payment.completed' and sequence = 3`,
    "update pay.events set type = 'refund.created' where type = 'payment.cancelled'",
  ],
  [
    "bodies moves texts",
    // A failed payment in place of a won dispute.
    `update pay.events set type = 'payment.failed'
     where type = 'payment.completed' and sequence = 6`,
  ],
  ["disputes", "delete from pay.disputes where status <> 'won'"],
  [
    "dispute_bodies disputes",
    // Still open after the payment has its money back.
    "update pay.disputes set status = 'needs_response' where status = 'won'",
    "update pay.disputes set amount_minor = amount_minor + 1 where status <> 'won'",
  ],
  [
    "dispute_bodies orphans",
    "update pay.disputes set payment_id = 'pay_' || right(id, 26) where status = 'won'",
  ],
  [
    "dispute_bodies",
    reword("disputes", '"won"', '"lost"'),
    `update pay.disputes
     set body = regexp_replace(body, '"closed_at":"[^"]*"', '"closed_at":null') where status = 'won'`,
  ],
  [
    "dispute_bodies moves",
    // A dispute that ends twice, and one that is a refund.
    "update pay.events set type = 'dispute.won' where type = 'dispute.created'",
    "update pay.events set type = 'refund.created' where type = 'dispute.won'",
  ],
  ["moves", "update pay.events set type = 'dispute.updated' where type = 'dispute.created'"],
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
  await assertBreaks(t, sql, BREAKS);
});

/** Captures, cancels, refunds, disputes and returns payments. */
async function work(service: TestService): Promise<void> {
  const send = (path: string, body: Record<string, unknown> = {}, idempotency_key?: string) =>
    service.post(path, body, idempotency_key === undefined ? {} : { idempotency_key });
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

  // A response that shows a state between two events: the payment with its pending refund.
  const between = await pay({});
  const held = await refund(between, 400);
  const path = `${SANDBOX}/payments/${between}/advance`;
  const shown = await send(path, { to: "completed" }, "stored-while-pending");
  assert.equal(shown.amount_refunding, 400);
  await end(held, "completed");
  await refund(between, 60);

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

const DAY_S = 86_400;

/** Breaches in the sandbox. */
const BREAKS_AHEAD: Breaks[] = [
  ["payment_money", "delete from pay.ledger_movements where subject_id = :newest"],
  ["bodies texts", reword("payments", '"completed"', '"pending"', "id = :newest")],
  [
    "moves sequences",
    "delete from pay.events where subject_id = :newest and type = 'payment.created'",
  ],
  ["effects", "delete from pay.idempotency_keys where key = 'newest'"],
  [
    "outbox",
    `delete from pay.webhook_deliveries where subject_id = :newest
       and event_type = 'payment.completed'`,
  ],
  [
    "endless_deliveries",
    // No advance makes it due, or only one of weeks.
    `update pay.webhook_deliveries set status = 'pending', next_attempt_at = 'infinity'
     where subject_id = :newest and event_type = 'payment.created'`,
    `update pay.webhook_deliveries set status = 'pending', next_attempt_at = 'infinity',
       due_at = due_at + interval '20 days', attempts = '{}'
     where subject_id = :newest and event_type = 'payment.completed'`,
  ],
];

/** Work of several kinds. Returns the id of a payment that is completed. */
async function workAhead(service: TestService, idempotency_key: string): Promise<string> {
  const { body: paid } = await service.pay({ card: APPROVED_CARD }, { idempotency_key });
  await service.pay({ card: { token: "pm_card_authenticationRequired" } });
  await service.pay({ card: { token: "pm_card_late" }, capture: "manual" });
  const made = await service.make({ outcome: "success" });
  await service.call("POST", `${PAYMENTS}/${made.body.id}/refund`, {
    body: { amount: 10 },
    idempotency_key: `re ${idempotency_key}`,
  });
  await service.make({ outcome: "chargeback" });
  await settle(service);
  return paid.id;
}

webhookCase("the invariants follow the clock of a sandbox", async (t, service, receiver) => {
  await addEndpoint(service, receiver.url("/hook"));
  await workAhead(service, "first");
  // The endpoint has to be older than the events of which every one has a delivery.
  for (const days of [1, 8, 300, 20, 15]) {
    await commandClock(service, { advance: days * DAY_S, mode: "frozen" });
    await workAhead(service, `after ${days}`);
    await t.step(`find nothing after ${days} days`, () => assertSilent(service.sql));
  }
  const newest = await workAhead(service, "newest");
  await t.step("find nothing in a frozen clock", () => assertSilent(service.sql));
  await assertBreaks(t, service.sql, BREAKS_AHEAD, { newest });
});
