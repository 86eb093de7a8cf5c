/**
 * The rules that the tables keep by themselves, whoever writes: every constraint violated once, by
 * name, and the ledger's zero sum at commit. Everything here runs as superuser, past row-level
 * security.
 */

import assert from "node:assert/strict";
import postgres from "postgres";
import { idMint } from "../../shared/core/ids.ts";
import { insertRow, sampleRow, startTenants, type Tenants } from "./tenants.ts";

const ELSEWHERE = "env_00000000000000000000000000";
const mint = idMint(Date.now());

/** What is changed of a good row so that it violates just one constraint. */
const VIOLATIONS: [constraint: string, table: string, patch: Record<string, unknown>][] = [
  ["environments_pkey", "environments", { account: "x" }],
  ["environments_id_livemode_key", "environments", {}],
  ["environments_id_form", "environments", { id: "env_short", public_id: "x", account: "x" }],
  ["environments_account_length", "environments", { id: ELSEWHERE, account: "" }],
  ["environments_name_length", "environments", { id: ELSEWHERE, name: "" }],
  ["environments_public_id", "environments", { id: ELSEWHERE }],
  ["environments_live_stays", "environments", { id: ELSEWHERE, livemode: true }],
  ["environments_one_live_per_account", "environments", {
    id: ELSEWHERE,
    public_id: ELSEWHERE,
    livemode: true,
  }],
  ["api_keys_pkey", "api_keys", {}],
  ["api_keys_environment_fkey", "api_keys", { id: mint("key_"), environment_id: ELSEWHERE }],
  ["api_keys_id_form", "api_keys", { id: "key_short" }],
  ["api_keys_name_length", "api_keys", { id: mint("key_"), name: "x".repeat(101) }],
  ["api_keys_scopes_known", "api_keys", { id: mint("key_"), scopes: ["everything"] }],
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
  ["payments_amount_refunded_in_range", "payments", {
    id: "p3",
    status: "other",
    amount_refunded: -1,
  }],
  ["payments_refunded_agrees_with_status", "payments", { id: "p4", amount_refunded: 0 }],
  ["payments_method_kind_known", "payments", { id: "p5", method_kind: "cash" }],
  ["payments_sequence_positive", "payments", { id: "p6", sequence: 0 }],
  ["refunds_pkey", "refunds", {}],
  ["refunds_amount_minor_positive", "refunds", { id: "r1", amount_minor: 0 }],
  ["events_pkey", "events", { sequence: 99 }],
  ["events_subject_sequence_key", "events", { id: "e1" }],
  ["events_sequence_positive", "events", { id: "e2", sequence: 0 }],
  ["idempotency_keys_pkey", "idempotency_keys", {}],
  ["idempotency_keys_key_length", "idempotency_keys", { key: "x".repeat(256) }],
  ["idempotency_keys_fingerprint_length", "idempotency_keys", { key: "y", fingerprint: "\\x00" }],
  ["ledger_transactions_pkey", "ledger_transactions", {}],
  ["ledger_transactions_kind_known", "ledger_transactions", { id: "t1", kind: "gift" }],
  ["ledger_entries_pkey", "ledger_entries", {}],
  ["ledger_entries_account_known", "ledger_entries", { id: "l1", account: "pocket" }],
  ["ledger_entries_direction_known", "ledger_entries", { id: "l2", direction: "up" }],
  ["ledger_entries_amount_minor_positive", "ledger_entries", { id: "l3", amount_minor: 0 }],
  ["ledger_deltas_pkey", "ledger_deltas", {}],
  ["ledger_totals_pkey", "ledger_totals", {}],
  ["rate_counters_pkey", "rate_counters", {}],
  ["rate_counters_stripe_in_range", "rate_counters", { stripe: 64 }],
  ["transfers_pkey", "transfers", {}],
  ["transfers_status_known", "transfers", { id: "tr2", status: "lost" }],
  ["transfers_amount_minor_in_range", "transfers", { id: "tr3", amount_minor: 0 }],
  ["transfers_sequence_positive", "transfers", { id: "tr4", sequence: 0 }],
  ["webhook_endpoints_pkey", "webhook_endpoints", { slot: 1 }],
  ["webhook_endpoints_slot_key", "webhook_endpoints", { id: "w1" }],
  ["webhook_endpoints_slot_in_range", "webhook_endpoints", { id: "w2", slot: 16 }],
  ["webhook_endpoints_status_known", "webhook_endpoints", { id: "w3", slot: 3, status: "on" }],
  ["webhook_endpoints_url_length", "webhook_endpoints", {
    id: "w4",
    slot: 4,
    url: "x".repeat(2_049),
  }],
  ["webhook_deliveries_pkey", "webhook_deliveries", {}],
  ["webhook_deliveries_status_known", "webhook_deliveries", { id: "d1", status: "sent" }],
  ["webhook_deliveries_lost_claims_not_negative", "webhook_deliveries", {
    id: "d0",
    lost_claims: -1,
  }],
  ["webhook_deliveries_pending_has_next", "webhook_deliveries", { id: "d2", status: "pending" }],
  ["webhook_deliveries_pending_has_next", "webhook_deliveries", {
    id: "d3",
    leased_until: "2026-01-01T00:00:00Z",
  }],
  ["oracle_findings_pkey", "oracle_findings", {}],
  ["settings_pkey", "settings", {}],
  ["relay_wakes_pkey", "relay_wakes", {}],
  ["settings_name_known", "settings", { name: "other" }],
];

Deno.test("constraints", async (t) => {
  const tenants = await startTenants();
  const { sql } = tenants.service;
  try {
    for (const [constraint, table, patch] of VIOLATIONS) {
      await t.step(`${constraint} is kept`, async () => {
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
    await t.step("every constraint and unique index stands in the table", async () => {
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

/** The constraint of an error; where a row violates two keys alike, the expected one counts. */
function violated(error: postgres.PostgresError, expected: string): string | undefined {
  const { constraint_name } = error;
  const alike = [["environments_pkey", "environments_id_livemode_key"]];
  return alike.some((names) => names.includes(expected) && names.includes(constraint_name!))
    ? expected
    : constraint_name;
}

type Side = [direction: "debit" | "credit", amount_minor: number, currency: string];

/** Entries of one new ledger transaction, and whether the database takes them. */
const LEDGERS: [name: string, sides: Side[], expected: "balanced" | "PAY01"][] = [
  ["two equal sides", [["debit", 5, "EUR"], ["credit", 5, "EUR"]], "balanced"],
  ["three sides", [["debit", 5, "EUR"], ["credit", 2, "EUR"], ["credit", 3, "EUR"]], "balanced"],
  [
    "two currencies, each with two sides",
    [["debit", 5, "EUR"], ["credit", 5, "EUR"], ["debit", 7, "USD"], ["credit", 7, "USD"]],
    "balanced",
  ],
  ["one side", [["debit", 5, "EUR"]], "PAY01"],
  ["sides of unequal amounts", [["debit", 5, "EUR"], ["credit", 4, "EUR"]], "PAY01"],
  ["two debits", [["debit", 5, "EUR"], ["debit", 5, "EUR"]], "PAY01"],
  ["sides of two currencies", [["debit", 5, "EUR"], ["credit", 5, "USD"]], "PAY01"],
  [
    "currencies that only sum to zero together",
    [["debit", 5, "EUR"], ["credit", 4, "EUR"], ["debit", 4, "USD"], ["credit", 5, "USD"]],
    "PAY01",
  ],
];

async function assertLedger(t: Deno.TestContext, { service, environments }: Tenants) {
  const { sql } = service;
  /** Inserts in one statement; tells how that failed. */
  async function write(sides: Side[], transaction_id: string, opened: string | null) {
    const entries = sides.map(([direction, amount_minor, currency]) => ({
      environment_id: environments.own,
      id: crypto.randomUUID(),
      transaction_id,
      subject_id: "pay_1",
      account: "available",
      direction,
      amount_minor,
      currency,
      created_at: "2026-01-01",
    }));
    try {
      await sql.begin(async (transaction) => {
        if (opened) await transaction`select set_config('pay.environment_ids', ${opened}, true)`;
        await transaction`insert into pay.ledger_entries ${transaction(entries)}`;
      });
      return "balanced";
    } catch (error) {
      return (error as postgres.PostgresError).code;
    }
  }
  const opened = `{${environments.own}}`;
  for (const [name, sides, expected] of LEDGERS) {
    await t.step(`a ledger transaction of ${name}: ${expected}`, async () => {
      assert.equal(await write(sides, mint("txn_"), opened), expected);
    });
  }
  await t.step("a superuser with no environment open cannot pass the check", async () => {
    assert.equal(await write(LEDGERS[0]![1], mint("txn_"), null), "PAY01");
  });
  await t.step("a balanced transaction takes no further entry", async () => {
    const id = mint("txn_");
    assert.equal(await write(LEDGERS[0]![1], id, opened), "balanced");
    assert.equal(await write([["debit", 1, "EUR"]], id, opened), "PAY01");
  });
}

function hash(n: number): string {
  return `\\x${String(n).padStart(64, "0")}`;
}
