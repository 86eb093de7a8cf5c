/**
 * The rules of the tables themselves, for any writer: each constraint is violated once and must be
 * the one that fails, and the form of a ledger transaction. The statements run as a superuser, who
 * bypasses row-level security.
 */

import assert from "node:assert/strict";
import postgres from "postgres";
import { idGenerator, isId } from "../../shared/core/ids.ts";
import { insertRow, sampleRow, startTenants, type Tenants } from "../support/service/tenants.ts";

const ELSEWHERE = "env_00000000000000000000000000";
const newId = idGenerator(Date.now());

/** The amounts of a payment of which no money was moved. */
const NO_MONEY = {
  amount_minor: 1000,
  amount_released: 0,
  amount_refunded: 0,
  amount_refunding: 0,
  amount_disputed: 0,
};
const COMPLETED = { id: "p7", status: "completed", ...NO_MONEY };

/** Statuses with amounts that they do not allow, for a payment of 1000. */
const MONEY: [status: string, amounts: Partial<typeof NO_MONEY>][] = [
  ["completed", { amount_disputed: 1 }],
  ["completed", { amount_refunded: 1 }],
  ["partially_refunded", {}],
  ["partially_refunded", { amount_refunded: 1000 }],
  ["partially_refunded", { amount_refunded: 400, amount_released: 600 }],
  ["partially_refunded", { amount_refunded: 1, amount_disputed: 1 }],
  ["refunded", { amount_refunded: 999 }],
  ["refunded", { amount_refunded: 399, amount_released: 600 }],
  ["refunded", { amount_refunded: 1000, amount_disputed: 1 }],
  ["chargeback", {}],
  ["failed", { amount_disputed: 1 }],
  ...["pending", "requires_action", "processing", "authorized", "declined", "cancelled"].flatMap((
    status,
  ): [string, Partial<typeof NO_MONEY>][] => [
    [status, { amount_refunded: 1 }],
    [status, { amount_refunding: 1 }],
    [status, { amount_disputed: 1 }],
  ]),
];

/** Statuses with amounts that they allow, for a payment of 1000. */
const RIGHT_MONEY: typeof MONEY = [
  ["completed", { amount_refunding: 1000 }],
  ["completed", { amount_released: 999, amount_refunding: 1 }],
  ["partially_refunded", { amount_refunded: 399, amount_released: 600 }],
  ["partially_refunded", { amount_refunded: 1, amount_refunding: 999 }],
  ["refunded", { amount_refunded: 400, amount_released: 600 }],
  ["chargeback", { amount_disputed: 1000 }],
  ["chargeback", { amount_disputed: 300, amount_refunded: 400, amount_refunding: 300 }],
  ["chargeback", { amount_disputed: 1000, amount_refunded: 1000 }],
  ["failed", { amount_refunded: 1000 }],
  ["failed", { amount_refunded: 400, amount_refunding: 600 }],
  ["authorized", {}],
];

type Violation = [constraint: string, table: string, patch: Record<string, unknown>];

/** Changes of a valid row, each of which violates one constraint. */
const VIOLATIONS: Violation[] = [
  ["environments_pkey", "environments", { account: "x" }],
  ["environments_id_livemode_key", "environments", {}],
  ["environments_id_form", "environments", { id: "env_short", public_id: "x", account: "x" }],
  ["environments_account_length", "environments", { id: ELSEWHERE, account: "" }],
  ["environments_name_length", "environments", { id: ELSEWHERE, name: "" }],
  ["environments_public_id", "environments", { id: ELSEWHERE }],
  ["environments_live_stays", "environments", { id: ELSEWHERE, livemode: true }],
  ["environments_moving_known", "environments", { id: ELSEWHERE, public_id: "x", moving: "gone" }],
  ["environments_live_has_no_end", "environments", {
    id: ELSEWHERE,
    public_id: ELSEWHERE,
    livemode: true,
    account: "x",
    ends_at: "2026-01-01",
  }],
  ["sandboxes_pkey", "sandboxes", {}],
  ["sandboxes_id_form", "sandboxes", { id: "env_short" }],
  ["sandboxes_name_length", "sandboxes", { id: ELSEWHERE, name: "" }],
  ["sandboxes_seed_length", "sandboxes", { id: ELSEWHERE, seed: "" }],
  ["sandbox_settings_pkey", "sandbox_settings", {}],
  ["sandbox_settings_version_positive", "sandbox_settings", { version: 0 }],
  ["sandbox_settings_offset_ms_range", "sandbox_settings", { offset_ms: -1 }],
  ["sandbox_settings_target_stands", "sandbox_settings", { target_at: "2026-01-01" }],
  ["sandbox_settings_runs_after_target", "sandbox_settings", { runs_after: true }],
  ["sandbox_settings_below_ceiling", "sandbox_settings", { frozen_at: "2200-01-02" }],
  ["sandbox_settings_seed_length", "sandbox_settings", { seed: "", seed_root: "0".repeat(64) }],
  ["sandbox_settings_seed_root_form", "sandbox_settings", { seed: "a", seed_root: "short" }],
  ["sandbox_settings_seed_root_form", "sandbox_settings", { seed_root: "0".repeat(64) }],
  ["sandbox_settings_requests_counted", "sandbox_settings", { requests: 1 }],
  ["sandbox_settings_transcript_bytes_not_negative", "sandbox_settings", { transcript_bytes: -1 }],
  ["attempt_log_pkey", "attempt_log", {}],
  ["attempt_log_slot_in_range", "attempt_log", { slot: 5 }],
  ["transcript_lines_pkey", "transcript_lines", {}],
  ["mandates_pkey", "mandates", {}],
  ["transcript_lines_n_positive", "transcript_lines", { n: 0 }],
  ["sandbox_storage_pkey", "sandbox_storage", {}],
  ["sandbox_storage_bytes_not_negative", "sandbox_storage", { day: "2026-01-02", bytes: -1 }],
  ["environments_one_live_per_account", "environments", {
    id: ELSEWHERE,
    public_id: ELSEWHERE,
    livemode: true,
  }],
  ["api_keys_pkey", "api_keys", {}],
  ["api_keys_environment_fkey", "api_keys", { id: newId("key_"), environment_id: ELSEWHERE }],
  ["api_keys_id_form", "api_keys", { id: "key_short" }],
  ["api_keys_name_length", "api_keys", { id: newId("key_"), name: "x".repeat(101) }],
  ["api_keys_scopes_known", "api_keys", { id: newId("key_"), scopes: ["everything"] }],
  ["api_key_secrets_pkey", "api_key_secrets", {}],
  ["api_key_secrets_api_key_fkey", "api_key_secrets", { hash: hash(1), api_key_id: "none" }],
  ["api_key_secrets_environment_fkey", "api_key_secrets", {
    hash: hash(2),
    livemode: true,
    prefix: "sk_live_",
  }],
  ["api_key_secrets_hash_length", "api_key_secrets", { hash: "\\x00" }],
  ["api_key_secrets_prefix_tells_mode", "api_key_secrets", { hash: hash(3), prefix: "sk_live_" }],
  ["api_key_secrets_last_four_length", "api_key_secrets", { hash: hash(4), last_four: "12345" }],
  ["payments_pkey", "payments", {}],
  ["payments_status_known", "payments", { id: "p1", status: "paid", amount_refunded: 0 }],
  ["payments_amount_minor_in_range", "payments", { id: "p2", amount_minor: 1e12 }],
  // These constraints are checked in the order of their names.
  ...MONEY.map(([status, amounts]): Violation => [
    "payments_money_agrees_with_status",
    "payments",
    { id: "p4", status, ...NO_MONEY, ...amounts },
  ]),
  ["payments_refunds_in_range", "payments", { ...COMPLETED, amount_refunding: -1 }],
  ["payments_refunds_in_range", "payments", { ...COMPLETED, amount_refunding: 1001 }],
  ["payments_refunds_in_range", "payments", {
    ...COMPLETED,
    amount_released: 600,
    amount_refunding: 401,
  }],
  ["payments_refunds_in_range", "payments", {
    ...COMPLETED,
    status: "partially_refunded",
    amount_refunded: 400,
    amount_refunding: 601,
  }],
  ["payments_released_in_range", "payments", { ...COMPLETED, amount_released: -1 }],
  ["payments_released_in_range", "payments", { ...COMPLETED, amount_released: 1000 }],
  ["payments_method_kind_known", "payments", { id: "p5", method_kind: "cash" }],
  ["payments_sequence_positive", "payments", { id: "p6", sequence: 0 }],
  ["refunds_pkey", "refunds", {}],
  ["refunds_amount_minor_positive", "refunds", { id: "r1", amount_minor: 0 }],
  ["refunds_status_known", "refunds", { id: "r2", status: "sent" }],
  ["disputes_pkey", "disputes", { status: "won" }],
  ["disputes_current", "disputes", { id: "d1" }],
  ["disputes_amount_minor_positive", "disputes", { id: "d2", status: "won", amount_minor: 0 }],
  ["disputes_status_known", "disputes", { id: "d3", status: "open" }],
  ["events_pkey", "events", { sequence: 99 }],
  ["events_subject_sequence_key", "events", { id: "e1" }],
  ["events_sequence_positive", "events", { id: "e2", sequence: 0 }],
  ["idempotency_keys_pkey", "idempotency_keys", {}],
  ["idempotency_keys_key_length", "idempotency_keys", { key: "x".repeat(256) }],
  ["idempotency_keys_has_body", "idempotency_keys", { key: "z", body: "{}" }],
  ["idempotency_keys_fingerprint_length", "idempotency_keys", { key: "y", fingerprint: "\\x00" }],
  ["ledger_movements_pkey", "ledger_movements", {}],
  ["ledger_movements_leg_in_range", "ledger_movements", { leg: -1 }],
  ["ledger_movements_kind_known", "ledger_movements", { leg: 1, kind: "gift" }],
  ["ledger_movements_accounts_known", "ledger_movements", { leg: 1, debit_account: "pocket" }],
  ["ledger_movements_accounts_known", "ledger_movements", { leg: 1, credit_account: "pocket" }],
  ["ledger_movements_accounts_differ", "ledger_movements", { leg: 1, debit_account: "available" }],
  ["ledger_movements_amount_minor_positive", "ledger_movements", { leg: 1, amount_minor: 0 }],
  ["ledger_movements_amount_minor_positive", "ledger_movements", { leg: 1, amount_minor: -1 }],
  ["ledger_totals_pkey", "ledger_totals", {}],
  ["ledger_totals_stripe_in_range", "ledger_totals", { stripe: 64 }],
  ["rate_counters_pkey", "rate_counters", {}],
  ["requests_source_known", "requests", { id: "req_x", source: "console" }],
  ["requests_bodies_bounded", "requests", { id: "req_x", response_body: "x".repeat(16_385) }],
  ["requests_pkey", "requests", {}],
  ["rate_counters_stripe_in_range", "rate_counters", { stripe: 64 }],
  ["transfers_pkey", "transfers", {}],
  ["transfers_status_known", "transfers", { id: "tr2", status: "lost" }],
  ["transfers_amount_minor_in_range", "transfers", { id: "tr3", amount_minor: 0 }],
  ["transfers_sequence_positive", "transfers", { id: "tr4", sequence: 0 }],
  ["webhook_endpoints_pkey", "webhook_endpoints", { slot: 1 }],
  ["webhook_endpoints_slot_key", "webhook_endpoints", { id: "w1" }],
  ["webhook_endpoints_slot_in_range", "webhook_endpoints", { id: "w2", slot: 64 }],
  ["webhook_endpoints_status_known", "webhook_endpoints", { id: "w3", slot: 3, status: "on" }],
  ["webhook_endpoints_url_length", "webhook_endpoints", {
    id: "w4",
    slot: 4,
    url: "x".repeat(2_049),
  }],
  ["webhook_endpoints_delivery_known", "webhook_endpoints", {
    id: "w5",
    slot: 5,
    delivery: "queue",
  }],
  ["webhook_endpoints_url_agrees_with_delivery", "webhook_endpoints", {
    id: "w6",
    slot: 6,
    delivery: "inbox",
  }],
  ["webhook_endpoints_url_agrees_with_delivery", "webhook_endpoints", {
    id: "w7",
    slot: 7,
    url: null,
  }],
  ["webhook_endpoints_inbox_acknowledged_in_range", "webhook_endpoints", {
    id: "w8",
    slot: 8,
    inbox_acknowledged: 1,
  }],
  ["inbox_entries_pkey", "inbox_entries", { position: 2 }],
  ["inbox_entries_position_key", "inbox_entries", { delivery_id: "whd_2" }],
  ["inbox_entries_position_positive", "inbox_entries", { delivery_id: "whd_3", position: 0 }],
  ["webhook_deliveries_pkey", "webhook_deliveries", {}],
  ["webhook_deliveries_status_known", "webhook_deliveries", { id: "d1", status: "sent" }],
  ["webhook_deliveries_expired_leases_not_negative", "webhook_deliveries", {
    id: "d0",
    expired_leases: -1,
  }],
  ["webhook_deliveries_pending_has_next", "webhook_deliveries", { id: "d2", status: "pending" }],
  ["webhook_deliveries_pending_has_next", "webhook_deliveries", {
    id: "d3",
    leased_until: "2026-01-01T00:00:00Z",
  }],
  ["webhook_deliveries_fault_known", "webhook_deliveries", {
    id: "d4",
    fault: "other",
    fault_attempt: 1,
  }],
  ["webhook_deliveries_fault_has_attempt", "webhook_deliveries", { id: "d5", fault: "delay" }],
  ["sandbox_settings_pkey", "sandbox_settings", {}],
  ["sandbox_settings_version_positive", "sandbox_settings", { version: 0 }],
  ["sandbox_settings_offset_ms_range", "sandbox_settings", { offset_ms: -1 }],
  ["sandbox_settings_target_stands", "sandbox_settings", { target_at: "2030-01-01" }],
  ["sandbox_settings_runs_after_target", "sandbox_settings", { runs_after: true }],
  ["sandbox_settings_below_ceiling", "sandbox_settings", { frozen_at: "2200-01-02" }],
  ["faults_pkey", "faults", {}],
  ["faults_fault_known", "faults", { id: "flt_2", fault: "declined" }],
  ["faults_delay_has_ms", "faults", { id: "flt_3", fault: "delay" }],
  ["faults_delay_ms_in_range", "faults", { id: "flt_4", fault: "delay", delay_ms: 10_001 }],
  ["faults_times_in_range", "faults", { id: "flt_5", times: 1_001 }],
  ["faults_times_left_in_range", "faults", { id: "flt_6", times_left: 2 }],
  ["provider_accounts_pkey", "provider_accounts", {}],
  ["provider_accounts_connector_known", "provider_accounts", { id: "a1", connector: "other" }],
  ["provider_accounts_secret_name_form", "provider_accounts", { id: "a2", secret_name: "HOME" }],
  ["provider_accounts_notification_secret_names_form", "provider_accounts", {
    id: "a3",
    notification_secret_names: ["RELAY_TOKEN"],
  }],
  ["provider_accounts_notification_secret_names_form", "provider_accounts", {
    id: "a4",
    notification_secret_names: ["PROVIDER_A", "PROVIDER_B", "PROVIDER_C"],
  }],
  ["provider_accounts_bridge_token_hash_form", "provider_accounts", {
    id: "a7",
    bridge_token_hash: "x",
  }],
  ["provider_accounts_status_known", "provider_accounts", { id: "a5", status: "paused" }],
  ["provider_accounts_disabled_has_time", "provider_accounts", { id: "a6", status: "disabled" }],
  ["provider_methods_pkey", "provider_methods", {}],
  ["provider_methods_kind_known", "provider_methods", { method_kind: "cash" }],
  ["provider_methods_currency_form", "provider_methods", { currency: "eur" }],
  ["provider_methods_account_fkey", "provider_methods", {
    method_kind: "sepa",
    account_id: "none",
  }],
  ["provider_operations_pkey", "provider_operations", { subject_id: "pay_2" }],
  ["provider_operations_exclusive", "provider_operations", { id: "c1", op: "cancel" }],
  ["provider_operations_op_known", "provider_operations", { id: "c2", op: "gift" }],
  ["provider_operations_refund_has_id", "provider_operations", { id: "c3", op: "refund" }],
  ["provider_operations_amount_minor_positive", "provider_operations", {
    id: "c4",
    amount_minor: 0,
  }],
  ["provider_operations_state_known", "provider_operations", {
    id: "c5",
    state: "lost",
    next_attempt_at: null,
  }],
  ["provider_operations_pending_has_next", "provider_operations", {
    id: "c6",
    next_attempt_at: null,
  }],
  ["provider_operations_pending_has_next", "provider_operations", {
    id: "c7",
    state: "operator",
    next_attempt_at: null,
    leased_until: "2026-01-01T00:00:00Z",
  }],
  ["provider_operations_settled_has_time", "provider_operations", {
    id: "c8",
    state: "settled",
    next_attempt_at: null,
  }],
  ["provider_events_pkey", "provider_events", {}],
  ["provider_events_outcome_known", "provider_events", {
    reference: "f1",
    outcome: "lost",
    handled_at: "2026-01-01T00:00:00Z",
  }],
  ["provider_events_handled_has_time", "provider_events", { reference: "f2", outcome: "ignored" }],
  ["provider_events_exception_has_text", "provider_events", {
    reference: "f3",
    outcome: "exception",
    handled_at: "2026-01-01T00:00:00Z",
  }],
  ["provider_events_booked_when_applied", "provider_events", {
    reference: "f4",
    outcome: "ignored",
    handled_at: "2026-01-01T00:00:00Z",
    booked_minor: 1,
  }],
  ["provider_events_dismissed_has_reason", "provider_events", {
    reference: "f5",
    dismissed_at: "2026-01-01T00:00:00Z",
  }],
  ["provider_cursors_pkey", "provider_cursors", {}],
  ["provider_cursors_stalled_has_error", "provider_cursors", { account_id: "a", last_error: "x" }],
  ["xpub_counters_pkey", "xpub_counters", {}],
  ["xpub_counters_in_range", "xpub_counters", { xpub: "x", next_index: 2 ** 31 + 1 }],
  ["signer_nonces_pkey", "signer_nonces", {}],
  ["signer_nonces_in_range", "signer_nonces", { chain_id: 2, next_nonce: -1 }],
  ["chain_payouts_pkey", "chain_payouts", {}],
  ["chain_payouts_sent_has_fees", "chain_payouts", { operation_id: "pc_2", max_fee: 1 }],
  ["chain_payouts_signed_once", "chain_payouts", {
    operation_id: "pc_3",
    nonce: 1,
    exported_at: "2026-01-01T00:00:00Z",
  }],
  ["deposit_addresses_pkey", "deposit_addresses", { xpub_index: 1 }],
  ["deposit_addresses_index_once", "deposit_addresses", { operation_id: "pc_2" }],
  ["deposit_addresses_in_range", "deposit_addresses", {
    operation_id: "pc_3",
    xpub_index: 2 ** 31,
  }],
  ["provider_totals_pkey", "provider_totals", {}],
  ["bank_files_pkey", "bank_files", {}],
  ["bank_files_sha256_form", "bank_files", { sha256: "x" }],
  ["bank_files_name_length", "bank_files", { sha256: "1".repeat(64), name: "" }],
  ["bank_entries_pkey", "bank_entries", {}],
  ["bank_entries_id_form", "bank_entries", { id: "a:1" }],
  ["bank_entries_batch_has_sum", "bank_entries", { id: "e2", batch_id: "bf-1-1" }],
  ["bank_entries_same_has_events", "bank_entries", { id: "e2", same_as: "e1" }],
  ["bank_entries_seen_in_range", "bank_entries", { id: "e2", seen_in: 4 }],
  ["bank_details_pkey", "bank_details", {}],
  ["bank_details_sealed_length", "bank_details", { owner_id: "b", sealed: "x".repeat(4001) }],
  ["bank_details_sealed_has_key", "bank_details", { owner_id: "b", key_id: null }],
  ["bank_exports_pkey", "bank_exports", {}],
  ["bank_exports_name", "bank_exports", { id: "b1" }],
  ["bank_exports_sealed_has_key", "bank_exports", { id: "b1", sealed: null }],
  ["bank_exports_sha256_form", "bank_exports", { id: "b1", sha256: "x" }],
  ["bank_exports_sums_positive", "bank_exports", { id: "b2", payments: 0 }],
  ["bank_orders_pkey", "bank_orders", {}],
  ["bank_orders_state_known", "bank_orders", { owner_id: "b1", state: "lost" }],
  ["bank_orders_exported_has_file", "bank_orders", { owner_id: "b2", state: "exported" }],
  ["bank_orders_uetr_form", "bank_orders", { owner_id: "b5", uetr: "x" }],
  ["bank_orders_payee_check_form", "bank_orders", { owner_id: "b3", payee_check: "x" }],
  [
    "bank_orders_approved_has_check",
    "bank_orders",
    { owner_id: "b4", approved_at: "2026-11-24T00:00:00Z" },
  ],
  ["invariant_breaches_pkey", "invariant_breaches", {}],
  ["settings_pkey", "settings", {}],
  ["archives_pkey", "archives", {}],
  ["archives_last_sha256_form", "archives", { environment_id: "a1", last_sha256: "x" }],
  ["dispatcher_wakes_pkey", "dispatcher_wakes", {}],
  ["settings_name_known", "settings", { name: "other" }],
];

Deno.test("constraints of the tables in pay", async (t) => {
  const tenants = await startTenants();
  const { sql } = tenants.service;
  try {
    for (const [constraint, table, patch] of VIOLATIONS) {
      await t.step(`${constraint} refuses ${JSON.stringify(patch).slice(0, 80)}`, async () => {
        const row = await sampleRow(sql, table, tenants.environments.own);
        await assert.rejects(
          insertRow(sql, table, { ...row, ...patch }),
          (error: postgres.PostgresError) => {
            assert.equal(violated(error, constraint), constraint, error.message);
            return true;
          },
        );
      });
    }
    for (const [status, amounts] of RIGHT_MONEY) {
      await t.step(`${status} with ${JSON.stringify(amounts)} is accepted`, async () => {
        const row = await sampleRow(sql, "payments", tenants.environments.own);
        const id = newId("pay_");
        await insertRow(sql, "payments", { ...row, id, status, ...NO_MONEY, ...amounts });
      });
    }
    await t.step("VIOLATIONS has every constraint and unique index", async () => {
      const names = await sql<{ name: string }[]>`
        select conname as name from pg_constraint
        where connamespace = 'pay'::regnamespace and contype in ('p', 'u', 'f', 'c', 'x')
        union
        select c.relname from pg_index i join pg_class c on c.oid = i.indexrelid
        where c.relnamespace = 'pay'::regnamespace and i.indisunique`;
      const known = new Set(VIOLATIONS.map(([constraint]) => constraint));
      assert.deepEqual(names.map(({ name }) => name).filter((name) => !known.has(name)), []);
    });
    await assertLedger(t, tenants);
  } finally {
    await tenants.service.close();
  }
});

/**
 * The constraint that an error names. If a row violates two keys that are equivalent, the expected
 * one.
 */
function violated(error: postgres.PostgresError, expected: string): string | undefined {
  const { constraint_name } = error;
  const alike = [["environments_pkey", "environments_id_livemode_key"]];
  return alike.some((names) => names.includes(expected) && names.includes(constraint_name!))
    ? expected
    : constraint_name;
}

/**
 * [name, last character of the transaction id, legs, whether the table accepts them]. The ordinals
 * of the entries' ids must not exceed 31.
 */
const LEGS: [name: string, last_character: string, legs: number, is_taken: boolean][] = [
  ["one leg after the ordinal 29", "x", 1, true],
  ["two legs after the ordinal 29", "x", 2, false],
  ["one leg after the ordinal 30", "y", 1, false],
  ["15 legs after the ordinal 0", "0", 15, true],
  ["16 legs after the ordinal 0", "0", 16, false],
  ["a leg after no ordinal", "u", 1, false],
];

/** Each accepted transaction is balanced, and its entries have ids. */
async function assertLedger(t: Deno.TestContext, { service, environments }: Tenants) {
  const { sql } = service;
  const sample = await sampleRow(sql, "ledger_movements", environments.own);
  for (const [name, last_character, legs, is_taken] of LEGS) {
    await t.step(`${name}: ${is_taken ? "accepted" : "refused"}`, async () => {
      const transaction_id = idGenerator(Date.now())("txn_").slice(0, -1) + last_character;
      const write = sql.begin(async (sql) => {
        for (let leg = 0; leg < legs; leg++) {
          await insertRow(sql, "ledger_movements", { ...sample, transaction_id, leg });
        }
      });
      if (!is_taken) {
        await assert.rejects(write, { constraint_name: "ledger_movements_leg_in_range" });
        return;
      }
      await write;
      const entries = await sql<{ id: string; debit: string; credit: string }[]>`
        select id, sum(amount_minor) filter (where direction = 'debit') over () as debit,
          sum(amount_minor) filter (where direction = 'credit') over () as credit
        from pay.ledger_entries where transaction_id = ${transaction_id}`;
      assert.equal(new Set(entries.map(({ id }) => id)).size, 2 * legs);
      for (const { id } of entries) assert.ok(isId("le_", id), id);
      assert.equal(entries[0]!.debit, entries[0]!.credit);
    });
  }
  for (const column of ["debit_account", "credit_account", "amount_minor", "currency"]) {
    await t.step(`a movement without ${column} is refused`, async () => {
      const row = { ...sample, transaction_id: newId("txn_", 2), [column]: null };
      await assert.rejects(insertRow(sql, "ledger_movements", row), { code: "23502" });
    });
  }
}

function hash(n: number): string {
  return `\\x${String(n).padStart(64, "0")}`;
}
