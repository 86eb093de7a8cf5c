/**
 * The oracles (`pay.oracle_*`): silent after ordinary work of every kind, and each speaks when its
 * promise is broken on purpose, past every other guard.
 */

import assert from "node:assert/strict";
import { checkBooks } from "../../scripts/check_books.ts";
import { APPROVED_CARD, startService, type TestService } from "../support/service.ts";
import { addEndpoint, openRecorder, settle } from "../webhook/recording_receiver.ts";

/** What breaks one promise, and the oracles that must say so. */
const BREAKS: [what: string, statements: string, oracles: string[]][] = [
  [
    "a ledger entry of another amount",
    `update pay.ledger_entries set amount_minor = amount_minor + 1
     where id = (select id from pay.ledger_entries where subject_id like 'pay\\_%'
       and account = 'processor' limit 1)`,
    ["oracle_ledger_totals", "oracle_ledger_transactions", "oracle_payment_money"],
  ],
  [
    "a ledger transaction without its entries",
    `delete from pay.ledger_entries where transaction_id =
       (select id from pay.ledger_transactions where kind = 'capture' limit 1)`,
    ["oracle_ledger_totals", "oracle_ledger_transactions", "oracle_payment_money"],
  ],
  ["a lost delta", "delete from pay.ledger_deltas", ["oracle_ledger_totals"]],
  [
    "a completed payment whose capture is gone",
    `with gone as (delete from pay.ledger_transactions where id =
       (select id from pay.ledger_transactions where kind = 'capture' limit 1) returning id)
     delete from pay.ledger_entries where transaction_id in (select id from gone)`,
    ["oracle_ledger_totals", "oracle_payment_money"],
  ],
  [
    "a transfer that was paid out but not taken",
    `update pay.ledger_entries set account = 'processor'
     where subject_id like 'tr\\_%' and account = 'available'`,
    ["oracle_ledger_totals", "oracle_transfer_money"],
  ],
  [
    "a refund that nobody counted",
    "update pay.refunds set amount_minor = amount_minor + 1",
    ["oracle_refunds"],
  ],
  [
    "an event that is missing",
    "delete from pay.events where type = 'payment.created'",
    ["oracle_bodies", "oracle_moves", "oracle_sequences"],
  ],
  [
    "an illegal move",
    `update pay.events set type = 'payment.chargeback' where type = 'refund.completed'`,
    ["oracle_moves"],
  ],
  [
    "a body that says something else",
    `update pay.payments set body = replace(body, '"completed"', '"declined"')`,
    ["oracle_bodies"],
  ],
  [
    "a payment that is gone",
    "delete from pay.payments where status = 'partially_refunded'",
    ["oracle_orphans"],
  ],
  [
    "a kept answer that is gone",
    "delete from pay.idempotency_keys where key = 'kept'",
    ["oracle_effects"],
  ],
  [
    "a second payment under the same key",
    `update pay.idempotency_keys set request_id = 'req_other' where key = 'kept'`,
    ["oracle_effects"],
  ],
  [
    "a delivery that was never written",
    "delete from pay.webhook_deliveries where event_type = 'payment.completed'",
    ["oracle_outbox"],
  ],
  [
    "a lease that never ends",
    `update pay.webhook_deliveries set status = 'pending', next_attempt_at = now(),
       leased_until = 'infinity' where event_type = 'payment.created'`,
    ["oracle_endless_deliveries"],
  ],
  [
    "a later event that came first",
    `update pay.webhook_deliveries set attempts = replace(attempts, '"at":"20', '"at":"30')
     where event_type = 'payment.created'`,
    ["oracle_delivery_order"],
  ],
  [
    "a later event that did not wait",
    `update pay.webhook_deliveries set status = 'pending', next_attempt_at = now(), attempts = '',
       attempt_count = 0 where event_type = 'payment.created'`,
    ["oracle_delivery_order"],
  ],
];

Deno.test("oracles", async (t) => {
  const service = await startService();
  const hooks = openRecorder();
  const { sql } = service;
  try {
    await addEndpoint(service, hooks.url("/"));
    await sql`update pay.webhook_endpoints set created_at = created_at - interval '1 minute'`;
    await work(service);
    const verdicts = await checkBooks(sql);
    await t.step("are silent after ordinary work", () => {
      assert.deepEqual(verdicts.filter(({ findings }) => findings > 0), []);
    });
    await t.step("are each broken once below, and each names its promises", () => {
      const broken = new Set(BREAKS.flatMap(([, , oracles]) => oracles));
      assert.deepEqual(verdicts.map(({ oracle }) => oracle).sort(), [...broken].sort());
      for (const { promise } of verdicts) assert.match(promise, /^R\d+(, R\d+)*: /);
    });
    for (const [what, statements, oracles] of BREAKS) {
      await t.step(`${what}: ${oracles.join(", ")}`, async () => {
        const said = await afterwards(sql, statements, async (session) => {
          const found = (await checkBooks(session)).filter(({ findings }) => findings > 0);
          for (const { examples } of found) assert.ok(examples.length > 0);
          return found.map(({ oracle }) => oracle).sort();
        });
        assert.deepEqual(said, oracles);
      });
    }
    await t.step("note_findings() keeps a finding once, forget_findings() none", async () => {
      await afterwards(sql, BREAKS[2]![1], async (session) => {
        const [first] = await session`select pay.note_findings() as findings`;
        const [again] = await session`select pay.note_findings() as findings`;
        assert.ok(Number(first!.findings) > 0);
        assert.equal(again!.findings, first!.findings);
        const noted = await session`select distinct oracle from pay.oracle_findings`;
        assert.deepEqual(noted.map(({ oracle }) => oracle), ["oracle_ledger_totals"]);
        const [forgotten] = await session`select pay.forget_findings() as findings`;
        assert.equal(forgotten!.findings, first!.findings);
        assert.equal((await session`select from pay.oracle_findings`).length, 0);
      });
      const [row] = await sql`select pay.note_findings() as findings`;
      assert.equal(row!.findings, "0");
    });
    await t.step("the purge of old data breaks no promise", async () => {
      const month = 30 * 86_400_000;
      await sql`update pay.environments set created_at = created_at - interval '31 days'`;
      service.setClock(Date.now() - month - 1_000);
      await work(service);
      service.setClock(null);
      while (await service.deps.webhook_store.purge(Date.now()) > 0);
      const found = (await checkBooks(sql)).filter(({ findings }) => findings > 0);
      assert.deepEqual(found, []);
    });
  } finally {
    await service.close();
    await hooks.close();
  }
});

/** A payment of every kind, refunds, transfers, and their deliveries. */
async function work(service: TestService): Promise<void> {
  const paid = await service.pay({ card: APPROVED_CARD }, { idempotency_key: "kept" });
  const refund = `/api-v1-payments/v1/payments/${paid.body.id}/refund`;
  await service.call("POST", refund, {
    body: { amount: 10 },
    idempotency_key: "kept-refund",
  });
  for (const outcome of ["success", "declined", "pending", "refunded", "chargeback"]) {
    await service.make({ outcome });
  }
  for (const settlement of ["instant", "manual"]) {
    const made = await service.call("POST", "/api-v1-payments/v1/transfers", {
      body: {
        amount: 5,
        currency: "EUR",
        settlement,
        destination: { iban: "DE89370400440532013000" },
      },
    });
    assert.equal(made.status, 201, made.text);
  }
  await settle(service);
}

/** What is so after some statements; all undone. The deferred check of the ledger is never reached. */
async function afterwards<T>(
  sql: TestService["sql"],
  statements: string,
  look: (session: TestService["sql"]) => Promise<T>,
): Promise<T> {
  const session = await sql.reserve();
  try {
    await session`begin`;
    await session.unsafe(statements);
    return await look(session);
  } finally {
    await session`rollback`;
    session.release();
  }
}
