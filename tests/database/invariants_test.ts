/**
 * The invariants (`pay.invariant_*`) find nothing after ordinary work of every kind. Each finds a
 * violation of its promise that the test writes past all other guards.
 * idempotency_catalogue_test.ts looks at them after every operation.
 */

import assert from "node:assert/strict";
import { ERROR_CATALOGUE } from "../../shared/core/errors.ts";
import { checkBooks } from "../../apps/operator/check_books.ts";
import {
  afterwards,
  assertBreaks,
  assertSilent,
  type Breaks,
  reword,
  saidBy,
} from "../support/database/invariant_breaches.ts";
import { addProviderRows } from "../support/database/provider_flow.ts";
import { startService, type TestService } from "../support/service/service.ts";
import { APPROVED, card, PAYMENTS, SANDBOX, within } from "../support/service/service_case.ts";
import { addEndpoint, openRecorder, settle } from "../support/webhook/recording_receiver.ts";

const V1 = "/api-v1-payments/v1";
const TRANSFERS = `${V1}/transfers`;
const EUR = { amount: 1000, currency: "EUR" };
const TO_BANK = { ...EUR, destination: APPROVED.sepa };
const MONTH_MS = 30 * 86_400_000;

const CAPTURE = `select transaction_id from pay.ledger_movements where kind = 'capture' limit 1`;

/** SQL for the attempts of a delivery with times in another century. */
const timesMoved = (century: string) =>
  `replace(attempts::text, 'at\\":\\"20', 'at\\":\\"${century}')::json[]`;

/** Deletes payments in a status with all their rows but the stored responses. */
const forget = (status: string) =>
  `delete from pay.payments where status = '${status}';
   delete from pay.events where subject_id not in (select id from pay.payments
     union all select id from pay.transfers union all select id from pay.instruments);
   delete from pay.webhook_deliveries where event_id not in (select id from pay.events)`;

const WRONG_MOVEMENT = `update pay.ledger_movements set amount_minor = amount_minor + 1
  where transaction_id = (${CAPTURE})`;
const WRONG_RESPONSE = `
  update pay.idempotency_keys set body = replace(pay_internal.response_body(idempotency_keys),
    '"amount_minor":1000', '"amount_minor":1001'), subject_id = null, sequence = null
  where key = 'kept'`;
const UNMATCHED = `
  insert into pay.provider_events (environment_id, account_id, reference, op, state, amount_minor,
    currency, happened_at, received_at, body, outcome, handled_at)
  select id, 'pac_1', 'pi_1', 'authorize', 'succeeded', 1, 'EUR', now(), now(), '{}', 'unmatched',
    now() from pay.environments where livemode`;
const NOTHING = "(select id from pay.payments where amount_minor = 0)";

/** The invariants that must find breaches, and statements that make each. */
const BREAKS: Breaks[] = [
  [
    "ledger_totals payment_money",
    WRONG_MOVEMENT,
    `delete from pay.ledger_movements where transaction_id = (${CAPTURE})`,
  ],
  [
    "ledger_totals",
    "delete from pay.ledger_totals",
    "update pay.ledger_totals set debit_account = 'external' where debit_account = 'processor'",
    // A sandbox past its retention.
    `update pay.environments set created_at = created_at - interval '31 days';
     update pay.ledger_totals set amount_minor = amount_minor - 1`,
  ],
  ["ledger_legs", `update pay.ledger_movements set leg = 1 where transaction_id = (${CAPTURE})`],
  [
    "ledger_legs ledger_totals payment_money",
    // A leg of another payment.
    `insert into pay.ledger_movements
     select amount_minor, created_at, 1, environment_id, transaction_id, kind,
       (select id from pay.payments where status = 'pending' limit 1), refund_id, debit_account,
       credit_account, currency
     from pay.ledger_movements where transaction_id = (${CAPTURE})`,
  ],
  [
    "ledger_totals transfer_money",
    // A transfer that was paid out but not debited.
    `update pay.ledger_movements set debit_account = 'processor'
     where subject_id like 'tr\\_%' and debit_account = 'available'`,
  ],
  ["refund_bodies refunds", "update pay.refunds set amount_minor = amount_minor + 1"],
  [
    "refund_bodies",
    "update pay.refunds set body = ''",
    `update pay.refunds set body = replace(body, '"amount_minor":' || amount_minor,
       '"amount_minor":9')`,
    reword("refunds", '"metadata":{}', '"metadata":{"a":"b"}'),
  ],
  ["disputes stored_responses", "delete from pay.disputes"],
  ["dispute_bodies", reword("disputes", '"reason":"', '"reason":"x')],
  ["instruments refund_bodies refunds", `update pay.refunds set payment_id = ${NOTHING}`],
  [
    "instruments payment_money",
    `update pay.ledger_movements set subject_id = ${NOTHING} where transaction_id = (${CAPTURE})`,
  ],
  [
    "checkouts",
    "update pay.checkouts set payments_count = payments_count + 1, attempts = attempts + 1",
    "update pay.payments set is_counted = false where is_counted",
    "update pay.payments set is_counted = true where checkout_id is null",
  ],
  [
    "instruments",
    "update pay.instruments set status = 'active' where status = 'failed'",
    "update pay.instruments set status = 'failed' where status = 'active'",
    "update pay.instruments set status = 'pending' where status = 'failed'",
    // Ended without an event, and active after the event of its end.
    `update pay.instruments set status = 'ended', ended_reason = 'deleted', ended_at = now()
     where status = 'active'`,
    `update pay.instruments set status = 'active', ended_reason = null, ended_at = null
     where status = 'ended'`,
    // A mandate with two instruments.
    `drop index pay.instruments_mandate;
     insert into pay.instruments select (json_populate_record(t, '{"id":"ins_2"}')).*
     from pay.instruments t where t.mandate_id is not null`,
  ],
  [
    "bodies moves sequences stored_responses",
    "delete from pay.events where type = 'payment.created'",
  ],
  [
    "moves refund_bodies",
    "update pay.events set type = 'payment.chargeback' where type = 'refund.completed'",
  ],
  ["bodies texts", reword("payments", '"completed"', '"declined"')],
  // The places of the texts before shift.
  ["stored_responses texts", reword("payments", '"description":null', '"description":"A book"')],
  [
    "texts",
    "update pay.events set before = array['9,1,x'] where type = 'payment.completed'",
    "update pay.events set before = null where type = 'transfer.completed'",
  ],
  ["orphans stored_responses", "delete from pay.payments where status = 'partially_refunded'"],
  [
    "moves refunds sequences stored_responses texts",
    "delete from pay.refunds; delete from pay.events where type = 'refund.completed'",
  ],
  [
    "effects",
    "delete from pay.idempotency_keys where key = 'kept'",
    "update pay.idempotency_keys set request_id = 'req_other' where key = 'kept'",
    `update pay.idempotency_keys set (subject_id, sequence) = (select subject_id, sequence
       from pay.idempotency_keys where key = 'kept-pending') where key = 'kept'`,
  ],
  [
    "effects stored_responses",
    `update pay.idempotency_keys set body = 'x', subject_id = null, sequence = null
     where key = 'kept'`,
  ],
  [
    "stored_responses",
    forget("pending"),
    forget("declined"),
    WRONG_RESPONSE,
    reword("idempotency_keys", '"currency":"EUR"', '"currency":"USD"', "key = 'kept-decline'"),
    "update pay.idempotency_keys set sequence = 99 where key = 'kept'",
    "update pay.idempotency_keys set status = 500 where key = 'kept'",
  ],
  ["outbox", "delete from pay.webhook_deliveries where event_type = 'payment.completed'"],
  [
    "inboxes",
    `update pay.webhook_deliveries set status = 'available', next_attempt_at = null
     where id = (select max(id) from pay.webhook_deliveries where status = 'delivered')`,
  ],
  [
    "endless_deliveries",
    `update pay.webhook_deliveries set status = 'pending', next_attempt_at = now(),
       leased_until = 'infinity' where event_type = 'payment.created'`,
    // No dispatcher has leased them for 20 days.
    `update pay.webhook_deliveries set status = 'pending', attempts = '{}', attempt_count = 0,
       next_attempt_at = now() - interval '20 days'`,
    // A lease that ended long ago.
    `update pay.webhook_deliveries set attempts = ${timesMoved("19")};
     update pay.webhook_deliveries set status = 'pending',
       next_attempt_at = now() - interval '3 hours', leased_until = now() - interval '2 hours'
     where event_type = 'payment.declined'`,
  ],
  [
    "delivery_order",
    // A later event was delivered first, or sent before the earlier one.
    `update pay.webhook_deliveries set attempts = ${timesMoved("30")}
     where event_type = 'payment.created'`,
    `update pay.webhook_deliveries set status = 'pending', next_attempt_at = now(), attempts = '{}',
       attempt_count = 0 where event_type = 'payment.created'`,
  ],
  [
    // No defect: the record of the first attempt of an earlier event was lost.
    "",
    `update pay.webhook_deliveries set attempts = replace(
         ${timesMoved("30")}::text, 'number\\":1', 'number\\":2')::json[]
     where event_type = 'payment.created'`,
  ],
  ["reported_events", UNMATCHED],
  [
    "deposits",
    // A payment to an address that has completed without a transfer.
    `insert into pay.provider_operations (environment_id, id, account_id, connector, op, subject_id,
       amount_minor, currency, request, state, attempts, created_at, settled_at, may_repeat,
       api_key_id, request_id, decline_is_error)
     select environment_id, 'pc_1', 'pac_1', 'evm', 'authorize', id, amount_minor, currency, '{}',
       'settled', 1, now(), now(), true, 'key_1', 'req_1', true
     from pay.payments where status = 'completed' and amount_minor > 0 limit 1;
     insert into pay.deposit_addresses
       (environment_id, account_id, operation_id, payment_id, xpub_index, expires_at)
     select environment_id, account_id, id, subject_id, 0, now() from pay.provider_operations
     where id = 'pc_1'`,
  ],
];

/** The invariants that provider_invariants_test.ts breaks. */
const LIVE = ["instrument_details", "provider_events", "provider_operations", "provider_totals"];

/** Breaches of live payments older than the retention period. */
const OLD_BREAKS: Breaks[] = [
  [
    "orphans",
    "delete from pay.payments where status = 'partially_refunded' and environment_id = :live",
  ],
  ["bodies", reword("payments", '"pending"', '"completed"', "environment_id = :live")],
  [
    "refund_bodies",
    reword("refunds", '"EUR"', '"USD"', "environment_id = :live"),
    "delete from pay.events where environment_id = :live and type like 'refund.%'",
  ],
  [
    "bodies sequences",
    "delete from pay.events where environment_id = :live and type = 'payment.cancelled'",
  ],
  [
    "bodies moves texts",
    `update pay.events set type = 'payment.processing'
     where environment_id = :live and type = 'payment.refunded'`,
  ],
  ["ledger_totals", "delete from pay.ledger_totals where environment_id = :live"],
];

Deno.test("the invariants of the books", async (t) => {
  await using service = await startService();
  await using hooks = openRecorder();
  const { sql } = service;
  await addEndpoint(service, hooks.url("/"));
  await sql`update pay.webhook_endpoints set created_at = created_at - interval '1 minute'`;
  await work(service);
  const verdicts = await checkBooks(sql);
  await t.step("find nothing after ordinary work", () => assertSilent(sql));
  await t.step("find nothing in a queue with progress", async () => {
    const waiting = `update pay.webhook_deliveries set status = 'pending',
      next_attempt_at = now() - interval '2 hours' where event_type = 'payment.chargeback'`;
    await afterwards(sql, waiting, assertSilent);
  });
  await t.step("are all in BREAKS, and name their promises", () => {
    const broken = new Set([...LIVE, ...BREAKS.flatMap(([words]) => words.split(" "))]);
    broken.delete("");
    const all = verdicts.map(({ invariant }) => invariant.replace("invariant_", ""));
    assert.deepEqual(all.sort(), [...broken].sort());
    for (const { promise } of verdicts) assert.match(promise, /^R\d+(, R\d+)*: /);
  });
  await assertBreaks(t, sql, BREAKS);
  await t.step("a stored error is judged by the catalogue: code, type and status", async () => {
    const DECLINE = '"type":"payment","code":"payment_declined"';
    const stored = (as: string, status: number) =>
      afterwards(
        sql,
        `update pay.idempotency_keys set status = ${status},
           body = replace(body, '${DECLINE}', '${as}') where key = 'kept-decline'`,
        saidBy,
      );
    for (const [code, { status, type }] of Object.entries(ERROR_CATALOGUE)) {
      const as = `"type":"${type}","code":"${code}"`;
      assert.deepEqual(await stored(as, status), status < 500 ? [] : ["stored_responses"]);
      assert.deepEqual(await stored(as, 418), ["stored_responses"], code);
    }
    for (const as of ['"type":"payment","code":"unknown"', '"type":"x","code":"invalid_json"']) {
      for (const status of [400, 402]) {
        assert.deepEqual(await stored(as, status), ["stored_responses"], as);
      }
    }
  });
  await t.step("a breach of a sandbox is recorded if it is an alarm", async () => {
    const recorded = (statements: string) =>
      afterwards(sql, statements, async (session) => {
        await session`select pay.note_breaches()`;
        const [row] = await session`select * from pay.health`;
        return [Number(row!.invariant_breaches) > 0, Number(row!.unmatched_events)];
      });
    assert.deepEqual(await recorded(WRONG_MOVEMENT), [true, 0]);
    assert.deepEqual(await recorded(WRONG_RESPONSE), [false, 0]);
    assert.deepEqual(await recorded(UNMATCHED), [false, 1]);
    const of_tester = UNMATCHED.replace("where livemode", "where not livemode");
    assert.deepEqual(await recorded(of_tester), [false, 0]);
  });
  await t.step("each hour reads the texts of late, and another 24th of all", async () => {
    const found = (age: string) =>
      afterwards(
        sql,
        `update pay.payments set body = 'x', updated_at = updated_at - interval '${age}';
         delete from pay.transfers`,
        async (session) => {
          const counts: number[] = [];
          for (const part of ["", ...Array(24).keys()]) {
            await session`select set_config('pay.part_of_texts', ${String(part)}, true)`;
            counts.push((await session`select from pay.invariant_texts`).length);
          }
          return counts;
        },
      );
    const [broken, ...lately] = await found("1 hour");
    assert.ok(broken! > 10);
    assert.deepEqual(lately, Array(24).fill(broken));
    const [all, ...parts] = await found("3 hours");
    assert.equal(all, broken);
    assert.equal(parts.reduce((sum, count) => sum + count), broken);
    assert.ok(Math.max(...parts) < broken!);
  });
  await t.step("note_breaches() stores a breach once, forget_breaches() drops it", async () => {
    await afterwards(sql, "delete from pay.ledger_totals", async (session) => {
      const [first] = await session`select pay.note_breaches() as breaches`;
      const [again] = await session`select pay.note_breaches() as breaches`;
      assert.ok(Number(first!.breaches) > 0);
      assert.equal(again!.breaches, first!.breaches);
      const noted = await session`select distinct invariant from pay.invariant_breaches`;
      assert.deepEqual(noted.map(({ invariant }) => invariant), ["invariant_ledger_totals"]);
      const [forgotten] = await session`select pay.forget_breaches() as breaches`;
      assert.equal(forgotten!.breaches, first!.breaches);
      assert.equal((await session`select from pay.invariant_breaches`).length, 0);
    });
    const [row] = await sql`select pay.note_breaches() as breaches`;
    assert.equal(row!.breaches, "0");
  });
  await t.step("find nothing after a reset and a purge of old rows", async () => {
    await service.post(`${SANDBOX}/reset`);
    await assertSilent(sql);
    await sql`update pay.environments set created_at = created_at - interval '31 days'`;
    await service.setClock(Date.now() - MONTH_MS - 1_000);
    await work(service);
    await work(service, service.other.text);
    await service.setClock(null);
    await setLivemode(service, true);
    while (await service.deps.webhook_store.purge(Date.now()) > 0);
    await assertSilent(sql);
  });
  await t.step("find nothing after a change of an old payment of a live account", async () => {
    const { environment_id, text: key } = service.other;
    await setLivemode(service, false);
    const paid = await sql<{ id: string; status: string }[]>`
      select id, status from pay.payments
      where environment_id = ${environment_id} and status in ('completed', 'requires_action')
        and instrument_id is null and checkout_id is null`;
    assert.deepEqual(paid.map(({ status }) => status).sort(), ["completed", "requires_action"]);
    for (const { id, status } of paid) {
      const move = status === "completed" ? "refund" : "cancel";
      await service.post(`${PAYMENTS}/${id}/${move}`, {}, { key });
    }
    await setLivemode(service, true);
    await assertSilent(sql);
  });
  await assertBreaks(t, sql, OLD_BREAKS, { live: service.other.environment_id });
});

/**
 * Creates a payment of every kind, refunds, transfers, their stored responses and their deliveries.
 */
async function work(service: TestService, key = service.key.text): Promise<void> {
  const { call, post, pay } = within(service, key);
  const [declined, secure] = [card("4000 0000 0000 0002"), card("4000 0025 0000 3155")];
  const { body: paid } = await pay(APPROVED.card, "kept");
  await post(`${PAYMENTS}/${paid.id}/refund`, { amount: 10 }, "kept-refund");
  await pay(declined, "kept-decline");
  await post(TRANSFERS, { ...TO_BANK, amount: 1e9 }, "kept-dear");
  const { body: failing } = await pay(secure, "kept-secure");
  const authenticate = `${SANDBOX}/payments/${failing.id}/authenticate`;
  await post(authenticate, { result: "failure" }, "kept-failure");
  await pay(secure);
  const { body: pending } = await pay({}, "kept-pending");
  for (const name of ["kept-cancel", "kept-refusal"]) {
    await post(`${PAYMENTS}/${pending.id}/cancel`, {}, name);
  }
  const save = { customer: { id: "c", email: "c@example.com" }, save: "off_session" };
  const back = { return_url: "https://shop.example/back" };
  const mandate = { signed_at: "2026-01-31" };
  await pay({ ...save, amount: 0, ...APPROVED.card, ...back });
  await pay({ ...save, ...declined });
  await pay({ ...save, ...secure, ...back });
  await pay({ ...save, ...APPROVED.sepa, mandate });
  const { body: saved } = await pay({ ...save, ...APPROVED.card });
  const instrument = `${V1}/instruments/${saved.instrument_id}`;
  await call("DELETE", instrument, { idempotency_key: "kept-end" });
  const { body: checkout } = await post(`${V1}/checkouts`, EUR, "kept-checkout");
  for (const [i, payer] of [declined, APPROVED.card].entries()) {
    await post(`${SANDBOX}/checkouts/${checkout.id}/pay`, payer, `kept-attempt-${i}`);
  }
  for (const outcome of ["success", "declined", "pending", "refunded", "chargeback"]) {
    const body = { amount_minor: 1000, currency: "EUR", outcome };
    await post(`${SANDBOX}/payments`, body, `made-${outcome}`);
  }
  const advance = `${SANDBOX}/payments/${paid.id}/advance`;
  await post(advance, { to: "partially_refunded" }, "kept-advance");
  const { body: disputed } = await pay({ outcome: "chargeback" });
  const { body: disputes } = await call("GET", `${V1}/disputes?payment_id=${disputed.id}`);
  const evidence = `${V1}/disputes/${disputes.data[0].id}/evidence`;
  await post(evidence, { text: "A receipt" }, "kept-evidence");
  for (const settlement of ["instant", "manual"]) {
    const body = { ...TO_BANK, amount: 5, settlement };
    const made = await post(TRANSFERS, body, `kept-transfer-${settlement}`);
    assert.equal(made.status, 201, made.text);
  }
  await settle(service);
}

/** Makes the other sandbox live, so that its payments are never purged, or a sandbox again. */
async function setLivemode({ sql, other }: TestService, livemode: boolean): Promise<void> {
  await sql.begin(async (sql) => {
    // Replication mode skips the foreign key, so the keys stay test keys.
    await sql`set local session_replication_role = replica`;
    await sql`update pay.environments set livemode = ${livemode} where id = ${other.environment_id}`;
    if (livemode) await addProviderRows(sql, other.environment_id);
  });
}
