/**
 * The rules of the tables themselves, for any writer: each constraint is violated once and must be
 * the one that fails, the form of a ledger transaction, and the numbers that the service tells its
 * callers too. The statements run as a superuser, who bypasses row-level security.
 */

import assert from "node:assert/strict";
import postgres from "postgres";
import { idGenerator, isId } from "../../shared/core/ids.ts";
import { PAYMENT_STATUSES } from "../../shared/core/vocabulary.ts";
import { ENDPOINT_URL_LENGTH_MAX } from "../../shared/core/endpoint_url.ts";
import { MAX_ACTIVE_SECRETS } from "../../shared/domain/webhooks/endpoint_secret.ts";
import { MAX_SANDBOX_ENDPOINTS } from "../../shared/domain/webhooks/webhook_endpoints.ts";
import { MAX_BYTES } from "../../shared/sandbox/masked_body.ts";
import { MAX_KEPT_SANDBOXES, MAX_SANDBOXES } from "../../shared/sandbox/disposable_sandboxes.ts";
import {
  CLOCK_CEILING_MS,
  MAX_ADVANCE_DAYS,
  MAX_AMOUNT_MINOR,
} from "../../shared/schema/limits.ts";
import { MAX_ACTIVE_KEYS } from "../../shared/store/api_key_store.ts";
import { MAX_PENDING_DELIVERIES } from "../../shared/store/outcome.ts";
import { MOST_OPEN_CHECKOUTS } from "../../shared/store/checkout_store.ts";
import { insertRow, sampleRow, startTenants, type Tenants } from "../support/service/tenants.ts";

const ELSEWHERE = "env_00000000000000000000000000";
const AT = "2026-01-01T00:00:00Z";
const newId = idGenerator(Date.now());

/** The amounts of a payment of which no money was moved. */
const NO_MONEY = {
  amount_minor: 1000,
  amount_released: 0,
  amount_refunded: 0,
  amount_refunding: 0,
  amount_disputed: 0,
};
const COMPLETED = { status: "completed", ...NO_MONEY };
const OF_NOTHING = { amount_minor: 0, instrument_id: "ins_1" };

/** Amounts that no payment has before its money is taken. */
const MOVED = [{ amount_refunded: 1 }, { amount_refunding: 1 }, { amount_disputed: 1 }];

/** Amounts that a payment of 1000 in each status cannot have. */
const WRONG_MONEY: Record<string, Partial<typeof NO_MONEY>[]> = {
  ...Object.fromEntries(PAYMENT_STATUSES.map((status) => [status, MOVED])),
  completed: [{ amount_disputed: 1 }, { amount_refunded: 1 }],
  failed: [{ amount_disputed: 1 }],
  partially_refunded: [
    {},
    { amount_refunded: 1000 },
    { amount_refunded: 400, amount_released: 600 },
    { amount_refunded: 1, amount_disputed: 1 },
  ],
  refunded: [
    { amount_refunded: 999 },
    { amount_refunded: 399, amount_released: 600 },
    { amount_refunded: 1000, amount_disputed: 1 },
  ],
  chargeback: [{}],
};

/** Values that a payment of 1000 in each status can have. */
const RIGHT_MONEY: Record<string, Record<string, unknown>[]> = {
  ...Object.fromEntries(PAYMENT_STATUSES.map((status) => [status, [OF_NOTHING]])),
  authorized: [{}],
  completed: [
    { amount_refunding: 1000 },
    { amount_released: 999, amount_refunding: 1 },
    OF_NOTHING,
  ],
  failed: [{ amount_refunded: 1000 }, { amount_refunded: 400, amount_refunding: 600 }, OF_NOTHING],
  partially_refunded: [
    { amount_refunded: 399, amount_released: 600 },
    { amount_refunded: 1, amount_refunding: 999 },
  ],
  refunded: [{ amount_refunded: 400, amount_released: 600 }],
  chargeback: [
    { amount_disputed: 1000 },
    { amount_disputed: 300, amount_refunded: 400, amount_refunding: 300 },
    { amount_disputed: 1000, amount_refunded: 1000 },
  ],
};

type Violation = [constraint: string, patch: Record<string, unknown>];

/**
 * Changes of a valid row, each of which violates one constraint. PostgreSQL looks at checks before
 * keys, so only a row that violates a key has a key of its own. A primary key that is not here is
 * violated by the row itself.
 */
const VIOLATIONS: Violation[] = [
  ["environments_pkey", { account: "x" }],
  ["environments_id_livemode_key", {}],
  ["environments_id_form", { id: "env_short", public_id: "x", account: "x" }],
  ["environments_account_length", { account: "" }],
  ["environments_name_length", { name: "" }],
  ["environments_public_id", { id: ELSEWHERE }],
  ["environments_live_stays", { id: ELSEWHERE, livemode: true }],
  ["environments_merchant_size", {
    ...{ id: ELSEWHERE, public_id: ELSEWHERE, account: "x" },
    merchant: JSON.stringify({ name: "x".repeat(21_000) }),
  }],
  ["environments_moving_known", { public_id: "x", moving: "gone" }],
  ["environments_live_has_no_end", {
    public_id: ELSEWHERE,
    livemode: true,
    account: "x",
    ends_at: "2026-01-01",
  }],
  ["sandboxes_id_form", { id: "env_short" }],
  ["sandboxes_name_length", { name: "" }],
  ["sandboxes_seed_length", { seed: "" }],
  ["sandbox_settings_version_positive", { version: 0 }],
  ["sandbox_settings_offset_ms_range", { offset_ms: -1 }],
  ["sandbox_settings_target_stands", { target_at: "2026-01-01" }],
  ["sandbox_settings_runs_after_target", { runs_after: true }],
  ["sandbox_settings_below_ceiling", { frozen_at: "2200-01-02" }],
  ["sandbox_settings_seed_length", { seed: "", seed_root: "0".repeat(64) }],
  ["sandbox_settings_seed_root_form", { seed: "a", seed_root: "short" }],
  ["sandbox_settings_seed_root_form", { seed_root: "0".repeat(64) }],
  ["sandbox_settings_requests_counted", { requests: 1 }],
  ["sandbox_settings_transcript_bytes_not_negative", { transcript_bytes: -1 }],
  ["attempt_log_slot_in_range", { slot: 5 }],
  ["transcript_lines_n_positive", { n: 0 }],
  ["erasures_person_length", { person: "\\x00" }],
  ["sandbox_storage_bytes_not_negative", { day: "2026-01-02", bytes: -1 }],
  ["environments_one_live_per_account", { id: ELSEWHERE, public_id: ELSEWHERE, livemode: true }],
  ["api_keys_environment_fkey", { id: newId("key_"), environment_id: ELSEWHERE }],
  ["api_keys_id_form", { id: "key_short" }],
  ["api_keys_name_length", { name: "x".repeat(101) }],
  ["api_keys_scopes_known", { scopes: ["everything"] }],
  ["api_key_secrets_api_key_fkey", { hash: hash(1), api_key_id: "none" }],
  ["api_key_secrets_environment_fkey", { hash: hash(2), livemode: true, prefix: "sk_live_" }],
  ["api_key_secrets_hash_length", { hash: "\\x00" }],
  ["api_key_secrets_prefix_tells_mode", { prefix: "sk_live_" }],
  ["api_key_secrets_last_four_length", { last_four: "12345" }],
  ["payments_status_known", { status: "paid", amount_refunded: 0 }],
  ["payments_amount_minor_in_range", { amount_minor: 1e12 }],
  // These constraints are checked in the order of their names.
  ...Object.entries(WRONG_MONEY).flatMap(([status, wrong]) =>
    wrong.map((amounts): Violation => [
      "payments_money_agrees_with_status",
      { status, ...NO_MONEY, ...amounts },
    ])
  ),
  ["payments_refunds_in_range", { ...COMPLETED, amount_refunding: -1 }],
  ["payments_refunds_in_range", { ...COMPLETED, amount_refunding: 1001 }],
  ["payments_refunds_in_range", { ...COMPLETED, amount_released: 600, amount_refunding: 401 }],
  ["payments_refunds_in_range", {
    ...COMPLETED,
    status: "partially_refunded",
    amount_refunded: 400,
    amount_refunding: 601,
  }],
  ["payments_released_in_range", { ...COMPLETED, amount_released: -1 }],
  ["payments_released_in_range", { ...COMPLETED, amount_released: 1000 }],
  ["payments_of_nothing_saves", { ...COMPLETED, amount_minor: 0 }],
  ["payments_of_nothing_saves", { ...COMPLETED, ...OF_NOTHING, status: "authorized" }],
  ["payments_method_kind_known", { method_kind: "cash" }],
  ["payments_sequence_positive", { sequence: 0 }],
  ["instruments_status_known", { status: "expired" }],
  ["instruments_method_kind_known", { method_kind: "swift", mandate_id: null, signed_at: null }],
  ["instruments_usage_known", { usage: "always" }],
  ["instruments_ended_has_reason", { status: "ended", ended_at: AT }],
  ["instruments_ended_reason_known", { status: "ended", ended_at: AT, ended_reason: "gift" }],
  ["instruments_has_mandate", { method_kind: "card" }],
  ["instruments_has_mandate", { mandate_id: null, signed_at: null }],
  ["instruments_has_mandate", { signed_at: null }],
  ["instruments_has_mandate", {
    method_kind: "card",
    mandate_id: null,
    signed_at: null,
    is_kept: false,
  }],
  ["instruments_mandate", { id: "ins_2", mandate_id: "m-1" }],
  ["instruments_sequence_positive", { sequence: 0 }],
  ["checkouts_token_hash_length", { token_hash: "\\x00" }],
  ["checkouts_status_known", { status: "expired" }],
  ["checkouts_of_one_end", { status: "completed" }],
  ["checkouts_of_one_end", { max_payments: 2 }],
  ["checkouts_of_one_end", { expires_at: null }],
  ["checkouts_counts_agree", { payments_count: 1, payment_id: "p1" }],
  ["checkouts_counts_agree", { attempts: 1 }],
  ["checkouts_counts_agree", { attempts: 1, attempt_id: "p1", declines: 1 }],
  ["refunds_amount_minor_positive", { amount_minor: 0 }],
  ["refunds_status_known", { status: "sent" }],
  ["disputes_pkey", { status: "won" }],
  ["disputes_current", { id: "d1" }],
  ["disputes_amount_minor_positive", { status: "won", amount_minor: 0 }],
  ["disputes_status_known", { status: "open" }],
  ["events_pkey", { sequence: 99 }],
  ["events_subject_sequence_key", { id: "e1" }],
  ["events_sequence_positive", { sequence: 0 }],
  ["idempotency_keys_key_length", { key: "x".repeat(256) }],
  ["idempotency_keys_has_body", { key: "z", body: "{}" }],
  ["idempotency_keys_fingerprint_length", { key: "y", fingerprint: "\\x00" }],
  ["ledger_movements_leg_in_range", { leg: -1 }],
  ["ledger_movements_kind_known", { kind: "gift" }],
  ["ledger_movements_accounts_known", { debit_account: "pocket" }],
  ["ledger_movements_accounts_known", { credit_account: "pocket" }],
  ["ledger_movements_accounts_differ", { debit_account: "available" }],
  ["ledger_movements_amount_minor_positive", { amount_minor: 0 }],
  ["ledger_movements_amount_minor_positive", { amount_minor: -1 }],
  ["ledger_totals_stripe_in_range", { stripe: 64 }],
  ["requests_source_known", { source: "console" }],
  ["requests_bodies_bounded", { response_body: "x".repeat(16_385) }],
  ["rate_counters_stripe_in_range", { stripe: 64 }],
  ["transfers_status_known", { status: "lost" }],
  ["transfers_amount_minor_in_range", { amount_minor: 0 }],
  ["transfers_sequence_positive", { sequence: 0 }],
  ["webhook_endpoints_pkey", { slot: 1 }],
  ["webhook_endpoints_slot_key", { id: "w1" }],
  ["webhook_endpoints_slot_in_range", { slot: 64 }],
  ["webhook_endpoints_status_known", { status: "on" }],
  ["webhook_endpoints_url_length", { url: "x".repeat(2_049) }],
  ["webhook_endpoints_delivery_known", { delivery: "queue" }],
  ["webhook_endpoints_url_agrees_with_delivery", { delivery: "inbox" }],
  ["webhook_endpoints_url_agrees_with_delivery", { url: null }],
  ["webhook_endpoints_inbox_acknowledged_in_range", { inbox_acknowledged: 1 }],
  ["inbox_entries_pkey", { position: 2 }],
  ["inbox_entries_position_key", { delivery_id: "whd_2" }],
  ["inbox_entries_position_positive", { delivery_id: "whd_3", position: 0 }],
  ["webhook_deliveries_status_known", { status: "sent" }],
  ["webhook_deliveries_expired_leases_not_negative", { expired_leases: -1 }],
  ["webhook_deliveries_pending_has_next", { status: "pending" }],
  ["webhook_deliveries_pending_has_next", { leased_until: AT }],
  ["webhook_deliveries_fault_known", { fault: "other", fault_attempt: 1 }],
  ["webhook_deliveries_fault_has_attempt", { fault: "delay" }],
  ["faults_fault_known", { fault: "declined" }],
  ["faults_delay_has_ms", { fault: "delay" }],
  ["faults_delay_ms_in_range", { fault: "delay", delay_ms: 10_001 }],
  ["faults_times_in_range", { times: 1_001 }],
  ["faults_times_left_in_range", { times_left: 2 }],
  ["provider_accounts_connector_known", { connector: "other" }],
  ["provider_accounts_secret_name_form", { secret_name: "HOME" }],
  ["provider_accounts_notification_secret_names_form", {
    notification_secret_names: ["RELAY_TOKEN"],
  }],
  ["provider_accounts_notification_secret_names_form", {
    notification_secret_names: ["PROVIDER_A", "PROVIDER_B", "PROVIDER_C"],
  }],
  ["provider_accounts_bridge_token_hash_form", { bridge_token_hash: "x" }],
  ["provider_accounts_status_known", { status: "paused" }],
  ["provider_accounts_disabled_has_time", { status: "disabled" }],
  ["provider_methods_kind_known", { method_kind: "cash" }],
  ["provider_methods_currency_form", { currency: "eur" }],
  ["provider_methods_account_fkey", { method_kind: "sepa", account_id: "none" }],
  ["provider_operations_pkey", { subject_id: "pay_2" }],
  ["provider_operations_exclusive", { id: "c1", op: "cancel" }],
  ["provider_operations_op_known", { op: "gift" }],
  ["provider_operations_refund_has_id", { op: "refund" }],
  ["provider_operations_amount_minor_positive", { op: "capture", amount_minor: 0 }],
  ["provider_operations_state_known", { state: "lost", next_attempt_at: null }],
  ["provider_operations_pending_has_next", { next_attempt_at: null }],
  ["provider_operations_pending_has_next", {
    state: "operator",
    next_attempt_at: null,
    leased_until: AT,
  }],
  ["provider_operations_settled_has_time", { state: "settled", next_attempt_at: null }],
  ["provider_events_outcome_known", { outcome: "lost", handled_at: AT }],
  ["provider_events_handled_has_time", { outcome: "ignored" }],
  ["provider_events_exception_has_text", { outcome: "exception", handled_at: AT }],
  ["provider_events_booked_when_applied", { outcome: "ignored", handled_at: AT, booked_minor: 1 }],
  ["provider_events_dismissed_has_reason", { dismissed_at: AT }],
  ["provider_cursors_stalled_has_error", { account_id: "a", last_error: "x" }],
  ["xpub_counters_in_range", { xpub: "x", next_index: 2 ** 31 + 1 }],
  ["signer_nonces_in_range", { chain_id: 2, next_nonce: -1 }],
  ["chain_payouts_sent_has_fees", { max_fee: 1 }],
  ["chain_payouts_signed_once", { operation_id: "pc_3", nonce: 1, exported_at: AT }],
  ["deposit_addresses_pkey", { xpub_index: 1 }],
  ["deposit_addresses_index_once", { operation_id: "pc_2" }],
  ["deposit_addresses_in_range", { xpub_index: 2 ** 31 }],
  ["bank_files_sha256_form", { sha256: "x" }],
  ["bank_files_name_length", { name: "" }],
  ["bank_entries_id_form", { id: "a:1" }],
  ["bank_entries_batch_has_sum", { batch_id: "bf-1-1" }],
  ["bank_entries_same_has_events", { same_as: "e1" }],
  ["bank_entries_seen_in_range", { seen_in: 4 }],
  ["bank_details_sealed_length", { sealed: "x".repeat(4001) }],
  ["bank_details_sealed_has_key", { owner_id: "b", key_id: null }],
  ["bank_exports_name", { id: "b1" }],
  ["bank_exports_sealed_has_key", { id: "b1", sealed: null }],
  ["bank_exports_sha256_form", { sha256: "x" }],
  ["bank_exports_sums_positive", { payments: 0 }],
  ["bank_orders_state_known", { state: "lost" }],
  ["bank_orders_exported_has_file", { state: "exported" }],
  ["bank_orders_uetr_form", { uetr: "x" }],
  ["bank_orders_payee_check_form", { payee_check: "x" }],
  ["bank_orders_approved_has_check", { approved_at: "2026-11-24T00:00:00Z" }],
  ["archives_last_sha256_form", { environment_id: "a1", last_sha256: "x" }],
  ["settings_name_known", { name: "other" }],
];

const seconds = (call: string) => `extract(epoch from ${call})::bigint`;
/** The last number of a constraint. */
const bound = (name: string) =>
  `(select (regexp_match(pg_get_constraintdef(oid), '(\\d+)\\D*$'))[1] from pg_constraint
    where conname = '${name}')`;

/** A number of the service, and the expression of the database that has it. */
const NUMBERS: readonly (readonly [service: number, database: string])[] = [
  [MAX_ACTIVE_KEYS, "pay_internal.max_active_keys()"],
  [MAX_ACTIVE_SECRETS, "pay_internal.max_live_secrets()"],
  [MAX_SANDBOXES, "pay_internal.max_sandboxes()"],
  [MAX_KEPT_SANDBOXES, "pay_internal.max_stored_sandboxes()"],
  [MAX_SANDBOX_ENDPOINTS, "pay_internal.max_sandbox_endpoints()"],
  [MOST_OPEN_CHECKOUTS, "pay_internal.most_open_checkouts()"],
  [MAX_PENDING_DELIVERIES, "pay_internal.max_pending_deliveries()"],
  [MAX_ADVANCE_DAYS * 86_400, seconds("pay_internal.longest_advance()")],
  [CLOCK_CEILING_MS / 1000, seconds("pay_internal.clock_ceiling()")],
  [MAX_AMOUNT_MINOR, bound("payments_amount_minor_in_range")],
  [MAX_AMOUNT_MINOR, bound("transfers_amount_minor_in_range")],
  [ENDPOINT_URL_LENGTH_MAX, bound("webhook_endpoints_url_length")],
  [MAX_BYTES, bound("requests_bodies_bounded")],
];

Deno.test("constraints of the tables in pay", async (t) => {
  await using tenants = await startTenants();
  const { sql } = tenants.service;
  const has_row = new Set(VIOLATIONS.map(([constraint]) => constraint));
  const keys = tenants.tables.map((table): Violation => [`${table}_pkey`, {}])
    .filter(([constraint]) => !has_row.has(constraint));
  for (const [constraint, patch] of [...VIOLATIONS, ...keys]) {
    await t.step(`${constraint} refuses ${JSON.stringify(patch).slice(0, 80)}`, async () => {
      const table = tableOf(constraint, tenants.tables);
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
  for (const [status, right] of Object.entries(RIGHT_MONEY)) {
    await t.step(`${status} with ${JSON.stringify(right)} is accepted`, async () => {
      const row = await sampleRow(sql, "payments", tenants.environments.own);
      for (const values of right) {
        const id = newId("pay_");
        await insertRow(sql, "payments", { ...row, id, status, ...NO_MONEY, ...values });
      }
    });
  }
  await t.step("VIOLATIONS has every constraint and unique index", async () => {
    const names = await sql<{ name: string }[]>`
      select conname as name from pg_constraint
      where connamespace = 'pay'::regnamespace and contype in ('p', 'u', 'f', 'c', 'x')
      union
      select c.relname from pg_index i join pg_class c on c.oid = i.indexrelid
      where c.relnamespace = 'pay'::regnamespace and i.indisunique`;
    const known = new Set([...VIOLATIONS, ...keys].map(([constraint]) => constraint));
    assert.deepEqual(names.map(({ name }) => name).filter((name) => !known.has(name)), []);
  });
  await assertLedger(t, tenants);
  for (const [expected, expression] of NUMBERS) {
    await t.step(`the service and the database have the same ${expression}`, async () => {
      const [row] = await sql.unsafe(`select (${expression})::text as number`);
      assert.equal(row!.number, String(expected));
    });
  }
});

/** The table whose name a constraint begins with. */
function tableOf(constraint: string, tables: readonly string[]): string {
  return tables.filter((table) => constraint.startsWith(`${table}_`))
    .sort((a, b) => b.length - a.length)[0]!;
}

/** The constraint that an error names. These two keys of a row are equivalent. */
function violated({ constraint_name }: postgres.PostgresError, expected: string) {
  const alike = ["environments_pkey", "environments_id_livemode_key"];
  return alike.includes(expected) && alike.includes(constraint_name!) ? expected : constraint_name;
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
