/**
 * The view `pay.health`: its counts, and the roles that may read it. schedule_test.ts tests its
 * columns about pg_cron.
 */

import assert from "node:assert/strict";
import { connect } from "../support/database/database.ts";
import { idGenerator } from "../../shared/core/ids.ts";
import { RELAY_TOKEN, startService } from "../support/service/service.ts";

const HOUR_MS = 3_600_000;
const RELAY_URL = "https://ref.example.com/functions/v1/api-v1-payments/internal/relay";

Deno.test("pay.health shows", async (t) => {
  await using service = await startService();
  const { sql, key } = service;
  const environment_id = key.environment_id;
  const read = async () => {
    const [row] = await sql`select * from pay.health`;
    return row!;
  };
  /** Asserts which columns a statement changes, and rolls it back. */
  const changes = async (statement: string, expected: Record<string, unknown>) => {
    const before = await read();
    const after = await sql.begin(async (transaction) => {
      await transaction`set local session_replication_role = replica`;
      await transaction.unsafe(statement);
      const [row] = await transaction`select * from pay.health`;
      throw Object.assign(new Error("undo"), { row });
    }).catch(({ row, message }) => row ?? assert.fail(message));
    const changed = Object.keys(after).filter((name) =>
      name !== "oldest_due_seconds" && String(after[name]) !== String(before[name])
    );
    assert.deepEqual(Object.fromEntries(changed.map((name) => [name, after[name]])), expected);
    return Number(after.oldest_due_seconds);
  };
  const newId = (at_ms: number) => idGenerator(at_ms);
  const delivery = (
    status: string,
    at_ms: number,
    due: string,
    lease = "null",
    owner = service.live.environment_id,
  ) =>
    `insert into pay.webhook_deliveries (environment_id, id, event_id, event_type, endpoint_id,
       subject_id, sequence, status, next_attempt_at, leased_until, created_at)
     values ('${owner}', '${newId(at_ms)("whd_")}', 'evt_x', 'ping', 'whe_x', 'pay_x', 1,
       '${status}', ${due}, ${lease}, now())`;
  await service.pay({ outcome: "success" });
  await t.step("a healthy service", async () => {
    // The server of the tests is not durable.
    const { unfit_parameters: _, ...row } = await read();
    assert.deepEqual(row, {
      due_deliveries: "0",
      oldest_due_seconds: 0,
      pending_deliveries: "0",
      failed_deliveries_last_hour: "0",
      failing_endpoints: "0",
      invariant_breaches: null,
      books_checked_at: null,
      is_retention_behind: false,
      waiting_environments: "0",
      oldest_waiting_seconds: 0,
      largest_storage_bytes: "0",
      test_keys: "2",
      live_keys: "1",
      is_dispatcher_configured: false,
      waiting_accounts: "0",
      last_dispatcher_wake_at: null,
      last_retention_at: null,
      failed_cron_runs: null,
      last_dispatcher_status: null,
      failed_dispatcher_wakes_last_hour: null,
      unsettled_operations: "0",
      oldest_unsettled_operation_seconds: 0,
      unmatched_events: "0",
      stalled_readings: "0",
    });
  });
  await t.step("a due delivery, and for how long it has been due", async () => {
    const endpoint = (owner: string) =>
      `insert into pay.webhook_endpoints (environment_id, id, slot, url, events,
          status, secrets, revision, created_at, body)
        values ('${owner}', 'whe_x', 0, 'https://example.com/', '{*}', 'enabled', '[]', 1,
          now(), '{}');`;
    const seconds = await changes(
      endpoint(service.live.environment_id) +
        delivery("pending", Date.now(), "now() - interval '90 s'"),
      { due_deliveries: "1", pending_deliveries: "1" },
    );
    assert.ok(Math.abs(seconds - 90) < 5, String(seconds));
    // A tester's receiver can be as slow as it likes.
    const of_tester = await changes(
      endpoint(environment_id) +
        delivery("pending", Date.now(), "now() - interval '90 s'", "null", environment_id) +
        ";update pay.webhook_endpoints set failing_since = now()",
      { due_deliveries: "1", pending_deliveries: "1" },
    );
    assert.equal(of_tester, 0);
    const failing = ";update pay.webhook_endpoints set failing_since = now()";
    await changes(endpoint(service.live.environment_id) + failing, { failing_endpoints: "1" });
  });
  await t.step("a waiting or leased delivery as pending and not due", async () => {
    const waits = delivery("pending", Date.now(), "now() + interval '9 s'");
    await changes(waits, { pending_deliveries: "1" });
    const leased = delivery("pending", Date.now(), "now()", "now() + interval '9 s'");
    await changes(leased, { pending_deliveries: "1" });
  });
  await t.step("deliveries that failed in the last hour", async () => {
    const failed = { failed_deliveries_last_hour: "1" };
    await changes(delivery("failed", Date.now() - 0.9 * HOUR_MS, "null"), failed);
    await changes(delivery("failed", Date.now() - 1.1 * HOUR_MS, "null"), {});
    await changes(delivery("failed", Date.now(), "null", "null", environment_id), {});
  });
  await t.step("operations without a result, and the age of the oldest", async () => {
    const operation = (id: string, state: string, age: string, account_id = "pac_1") =>
      `insert into pay.provider_operations (environment_id, id, account_id, connector, op, subject_id,
         amount_minor, currency, request, state, attempts, created_at, first_sent_at,
         next_attempt_at, settled_at, may_repeat, api_key_id, request_id, decline_is_error)
       values ('${environment_id}', '${id}', '${account_id}', 'stripe', 'authorize', '${id}', 1, 'EUR',
         '{}', '${state}', 1, now() - interval '1 day', now() - interval '${age}',
         ${state === "pending" ? "now()" : "null"}, ${state === "settled" ? "now()" : "null"},
         true, 'key_1', 'req_1', true);`;
    await changes(
      operation("pc_1", "pending", "60 s") + operation("pc_2", "operator", "90 s") +
        operation("pc_3", "settled", "900 s") + operation("pc_4", "pending", "900 s", "sandbox") +
        // An operation that the worker sends later is not overdue.
        operation("pc_5", "pending", "900 s") +
        "update pay.provider_operations set first_sent_at = null where id = 'pc_5';",
      { unsettled_operations: "2", oldest_unsettled_operation_seconds: 90 },
    );
  });
  await t.step("provider events that match nothing", async () => {
    const event = (reference: string, outcome: string, id = service.live.environment_id) =>
      `insert into pay.provider_events (environment_id, account_id, reference, op, state,
         amount_minor, currency, happened_at, received_at, body, outcome, handled_at)
       values ('${id}', 'pac_1', '${reference}', 'authorize', 'succeeded', 1, 'EUR',
         now(), now(), '{}', '${outcome}', now());`;
    await changes(event("a", "unmatched") + event("b", "ignored"), { unmatched_events: "1" });
    // The provider events of a sandbox are its tester's.
    await changes(event("a", "unmatched", environment_id), {});
  });
  await t.step("accounts whose readings have failed for five minutes", async () => {
    const reading = (id: string, age: string | null) =>
      `insert into pay.provider_cursors (environment_id, account_id, stalled_since, last_error)
       values ('${environment_id}', '${id}',
         ${age === null ? "null, null" : `now() - interval '${age}', 'no response'`});`;
    await changes(
      reading("pac_a", "6 minutes") + reading("pac_b", "4 minutes") + reading("pac_c", null),
      { stalled_readings: "1" },
    );
  });
  await t.step("accounts that wait because they move", async () => {
    const move = (step: string) =>
      `update pay.environments set moving = '${step}' where id = '${environment_id}'`;
    await changes(move("draining"), { waiting_accounts: "1" });
    await changes(move("sealed"), { waiting_accounts: "1" });
    await changes(move("arriving"), {});
  });
  await t.step("the breaches of the books' check, after its first run", async () => {
    await sql`select pay.note_breaches()`;
    const { invariant_breaches, books_checked_at } = await read();
    assert.equal(invariant_breaches, "0");
    assert.ok(Math.abs(books_checked_at - Date.now()) < HOUR_MS);
    await changes(
      `insert into pay.invariant_breaches (environment_id, invariant, subject_id, detail)
       values ('${environment_id}', 'invariant_refunds', 'pay_x', 'x')`,
      { invariant_breaches: "1" },
    );
  });
  await t.step("events that retention should have deleted", async () => {
    const id = newId(Date.now() - 32 * 24 * HOUR_MS)("evt_");
    const event = `insert into pay.events (environment_id, id, type, subject_id, created_at, body)
       values ('${environment_id}', '${id}', 'ping', 'pay_x', now(), '{}');`;
    await changes(event, { is_retention_behind: true });
    const frozen = (days: number) =>
      `insert into pay.sandbox_settings (environment_id, version, offset_ms, frozen_at, counts)
       values ('${environment_id}', 9, 0, now() - interval '${days} days', '{}');`;
    await changes(event + frozen(0), { is_retention_behind: true });
    await changes(event + frozen(2), {});
  });
  await t.step("the number of active keys, and the dispatcher's address", async () => {
    await changes("update pay.api_keys set revoked_at = now()", { test_keys: "0", live_keys: "0" });
    const configure = `select pay.configure_relay('${RELAY_URL}', '${RELAY_TOKEN}')`;
    await changes(configure, { is_dispatcher_configured: true });
  });
  for (
    const [name, fit, unfit] of [
      ["default_transaction_isolation", "read committed", "serializable"],
      ["synchronous_commit", "on", "off"],
    ] as const
  ) {
    await t.step(`a parameter of the server: ${name} ${unfit}, and not ${fit}`, async () => {
      const shown = (value: string) =>
        sql.begin(async (transaction) => {
          await transaction.unsafe(`set local ${name} = '${value}'`);
          const [row] = await transaction`select unfit_parameters from pay.health`;
          return String(row!.unfit_parameters).includes(`${name} = ${value}`);
        });
      assert.deepEqual([await shown(unfit), await shown(fit)], [true, false]);
    });
  }
  await t.step("its row to pay_operator, and nothing to pay_api", async () => {
    await using functions = connect(service.database.functions_url);
    await assert.rejects(functions`select * from pay.health`, { code: "42501" });
    await sql.begin(async (transaction) => {
      await transaction`set local role pay_operator`;
      assert.equal((await transaction`select * from pay.health`).length, 1);
    });
  });
});
