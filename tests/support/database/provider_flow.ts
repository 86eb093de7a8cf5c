/** Steps of the live flow in the database: accounts, claims, facts and records. */

import assert from "node:assert/strict";
import type postgres from "postgres";
import { idMint } from "../../../shared/core/ids.ts";
import { openDatabase } from "../../../shared/store/database.ts";
import type { CallRow } from "../../../shared/store/commit_rows.ts";
import type { HandledFact, ProviderRecord } from "../../../shared/store/provider_rows.ts";
import { createProviderStore, type ProviderStore } from "../../../shared/store/provider_store.ts";
import type { ClaimedCall } from "../../../shared/store/store.ts";
import type { Payment } from "../../../shared/schema/payment.ts";
import { type Asked, commit, completed, created } from "./commit_list.ts";

/** How long a request holds its call in these tests. */
export const LEASE_MS = 15_000;

/** Opens the store as the functions do. Call `close` at the end. */
export function openProviderStore(
  { database: { functions_url } }: { database: { functions_url: string } },
): { store: ProviderStore; close: () => Promise<void> } {
  const database = openDatabase({ url: functions_url });
  return { store: createProviderStore(database), close: () => database.close() };
}

/** Adds an account to an environment, for cards. Returns its id. */
export async function addAccount(
  sql: postgres.Sql,
  environment_id: string,
  { method_kinds = ["card"], settings = {} }: {
    method_kinds?: string[];
    settings?: Record<string, string>;
  } = {},
): Promise<string> {
  const id = idMint(Date.now())("pac_");
  await sql`select pay.add_provider_account(
    p_id => ${id}, p_environment_id => ${environment_id}, p_connector => 'stripe',
    p_method_kinds => ${method_kinds}::text[], p_settings => ${JSON.stringify(settings)},
    p_secret_name => 'PROVIDER_STRIPE', p_notification_secret_names => '{PROVIDER_SIGNS}')`;
  return id;
}

/** Makes a call of a payment. */
export function callOf(
  payment: { id: string; amount_minor: number; currency: string },
  patch: Partial<CallRow> = {},
): CallRow {
  return {
    id: idMint(Date.now())("pc_"),
    op: "authorize",
    subject_id: payment.id,
    refund_id: null,
    method_kind: "card",
    amount_minor: payment.amount_minor,
    currency: payment.currency,
    request: { token: "pm_1", return_url: null },
    decline_is_error: true,
    lease_ms: LEASE_MS,
    delay_ms: null,
    ...patch,
  };
}

/** Makes the claim of a new payment: the payment at `pending` with its call. */
export async function claimed(
  key: string,
  patch: Partial<CallRow> = {},
  options: Partial<Asked> = {},
): Promise<Asked> {
  const change = await created("pending");
  const calls = [callOf(change.payment!, patch)];
  return { key, ...options, change: { ...change, answer: { status: 102, body: "" }, calls } };
}

/** A payment whose authorization is under way. */
export interface Claim {
  environment_id: string;
  payment: Payment;
  call: ClaimedCall;
}

/** Commits the claim of a new payment. */
export async function claim(
  sql: postgres.Sql,
  { text, environment_id }: { text: string; environment_id: string },
  patch: Partial<CallRow> = {},
  options: Partial<Asked> = {},
): Promise<Claim> {
  const asked = await claimed(text, patch, options);
  const [row] = await commit(sql, [asked]);
  assert.equal(row!.outcome, "committed");
  return {
    environment_id,
    payment: JSON.parse(asked.change.payment!.body),
    call: JSON.parse(row!.detail!),
  };
}

/** Makes the fact that the money of a payment has come in. */
export function succeeded(
  { payment, call }: Claim,
  patch: Partial<HandledFact> = {},
): HandledFact {
  return {
    account_id: call.account.id,
    reference: `pi_${payment.id}:succeeded`,
    op: "authorize",
    state: "succeeded",
    subject_id: payment.id,
    refund_id: null,
    provider_reference: `pi_${payment.id}`,
    amount_minor: payment.amount_minor,
    currency: payment.currency,
    at: new Date().toISOString(),
    livemode: true,
    outcome: "applied",
    finding: null,
    booked_minor: payment.amount_minor,
    ...patch,
  };
}

/** Makes the record that completes a payment and settles its call. */
export function completion(claim: Claim, patch: Partial<ProviderRecord> = {}): ProviderRecord {
  const change = completed(claim.payment);
  return {
    environment_id: claim.environment_id,
    call_id: claim.call.call_id,
    call: { state: "settled", provider_reference: `pi_${claim.payment.id}` },
    facts: [succeeded(claim)],
    change,
    answer: change.answer,
    ...patch,
  };
}
