/** Steps of the live flow in the database: accounts, reservations, provider events and records. */

import assert from "node:assert/strict";
import postgres from "postgres";
import { connect } from "./database.ts";
import { idGenerator } from "../../../shared/core/ids.ts";
import { ChainStore } from "../../../shared/store/chain_store.ts";
import type { NewOperationRow, OperationResult } from "../../../shared/store/operation_row.ts";
import type { HandledProviderEvent, ProviderRecord } from "../../../shared/store/provider_rows.ts";
import { openPool } from "./store_access.ts";
import { ProviderStore } from "../../../shared/store/provider_store.ts";
import type { ReservedOperation } from "../../../shared/store/store.ts";
import type { Payment } from "../../../shared/schema/payment.ts";
import type { TestKey, TestService } from "../service/service.ts";
import { serviceCase } from "../service/service_case.ts";
import { commit, completed, created, type Requested } from "./commit_list.ts";

/** How long a request holds its operation in these tests. */
export const LEASE_MS = 15_000;

/** Opens the store as the functions do. */
export function openProviderStore(
  { database: { functions_url } }: { database: { functions_url: string } },
): { store: ProviderStore; chain_store: ChainStore } & AsyncDisposable {
  const database = openPool({ url: functions_url });
  const [store, chain_store] = [new ProviderStore(database), new ChainStore(database)];
  return { store, chain_store, [Symbol.asyncDispose]: database.close };
}

/** The parts that a test of the live flow gets. */
export interface ProviderCase {
  service: TestService;
  /** A connection as superuser. */
  sql: postgres.Sql;
  live: TestKey;
  key: TestKey;
  /** Connections as the functions have them. */
  functions: postgres.Sql;
  store: ProviderStore;
  chain_store: ChainStore;
}

/** Registers a test with a service, and with the stores as the functions open them. */
export function providerCase(
  name: string,
  run: (t: Deno.TestContext, given: ProviderCase) => Promise<void>,
): void {
  serviceCase(name, async (t, service) => {
    await using functions = connect(service.database.functions_url, 4);
    await using stores = openProviderStore(service);
    const { sql, live, key } = service;
    await run(t, { service, sql, live, key, functions, ...stores });
  });
}

/** The methods of accounts by their connector, unless given. */
const METHOD_KINDS = { stripe: ["card"], evm: ["stablecoin"], bank: ["sepa"] };

/** Adds an account to an environment, of Stripe unless given. Returns its id. */
export async function addAccount(
  sql: postgres.Sql,
  environment_id: string,
  { connector = "stripe", method_kinds = METHOD_KINDS[connector], settings = {}, ...names }: {
    connector?: keyof typeof METHOD_KINDS;
    method_kinds?: string[];
    settings?: Record<string, string>;
    /** The variable that signs notifications. */
    signing_name?: string;
  } = {},
): Promise<string> {
  const id = idGenerator(Date.now())("pac_");
  const { signing_name = "PROVIDER_STRIPE_NOTIFICATIONS" } = names;
  const [secret, signing] = connector === "stripe"
    ? ["PROVIDER_STRIPE", [signing_name]]
    : [null, []];
  await sql`select pay.add_provider_account(
    p_id => ${id}, p_environment_id => ${environment_id}, p_connector => ${connector},
    p_method_kinds => ${method_kinds}::text[], p_settings => ${JSON.stringify(settings)},
    p_secret_name => ${secret}, p_notification_secret_names => ${signing}::text[])`;
  return id;
}

/** Makes an operation of a payment. */
export function operationFor(
  payment: { id: string; amount_minor: number; currency: string },
  patch: Partial<NewOperationRow> = {},
): NewOperationRow {
  return {
    id: idGenerator(Date.now())("pc_"),
    op: "authorize",
    subject_id: payment.id,
    refund_id: null,
    method_kind: "card",
    amount_minor: payment.amount_minor,
    currency: payment.currency,
    request: { token: "pm_1" },
    decline_is_error: true,
    lease_ms: LEASE_MS,
    delay_ms: null,
    provider_reference: null,
    ...patch,
  };
}

/** Makes the reservation of a new payment: the payment at `pending` with its operation. */
export async function reservation(
  key: string,
  patch: Partial<NewOperationRow> = {},
  options: Partial<Requested> = {},
): Promise<Requested> {
  const change = await created("pending");
  const operations = [operationFor(change.payment!, patch)];
  return {
    key,
    ...options,
    change: { ...change, response: { status: 102, body: "" }, operations },
  };
}

/** A payment whose authorization is under way. */
export interface Reserved {
  environment_id: string;
  payment: Payment;
  operation: ReservedOperation;
}

/** Commits the reservation of a new payment. */
export async function reserve(
  sql: postgres.Sql,
  { text, environment_id }: { text: string; environment_id: string },
  patch: Partial<NewOperationRow> = {},
  options: Partial<Requested> = {},
): Promise<Reserved> {
  const requested = await reservation(text, patch, options);
  const [row] = await commit(sql, [requested]);
  assert.equal(row!.outcome, "committed");
  return {
    environment_id,
    payment: JSON.parse(requested.change.payment!.body),
    operation: JSON.parse(row!.detail!),
  };
}

/** Makes the provider event that the money of a payment has come in. */
export function succeeded(
  { payment, operation }: Reserved,
  patch: Partial<HandledProviderEvent> = {},
): HandledProviderEvent {
  return {
    account_id: operation.account.id,
    reference: `pi_${payment.id}:succeeded`,
    object_id: `pi_${payment.id}`,
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
    exception: null,
    booked_minor: payment.amount_minor,
    was_booked_minor: 0,
    ...patch,
  };
}

/** Makes the record that completes a payment and settles its operation. */
export function completion(
  reserved: Reserved,
  patch: Partial<ProviderRecord> = {},
): ProviderRecord {
  const change = completed(reserved.payment);
  return {
    environment_id: reserved.environment_id,
    operation_id: reserved.operation.id,
    operation: { state: "settled", provider_reference: `pi_${reserved.payment.id}` },
    provider_events: [succeeded(reserved)],
    change,
    response: change.response,
    ...patch,
  };
}

/**
 * Writes the operations and provider events that the payments of a live environment have, by their
 * ledger.
 */
export async function addProviderRows(
  sql: postgres.TransactionSql,
  environment_id: string,
): Promise<void> {
  await sql`delete from pay.provider_operations where environment_id = ${environment_id}`;
  await sql`delete from pay.provider_events where environment_id = ${environment_id}`;
  await sql`
    insert into pay.provider_operations (environment_id, id, account_id, connector, op, subject_id,
      amount_minor, currency, request, state, attempts, created_at,
      next_attempt_at, may_repeat, api_key_id, request_id, decline_is_error)
    select environment_id, 'pc_' || right(id, 26), 'pac_1', 'stripe', 'authorize', id, amount_minor,
      currency, '{}', 'pending', 1, created_at, now(), true, 'key_1', 'req_1', true
    from pay.payments where environment_id = ${environment_id}`;
  await sql`
    insert into pay.provider_events (environment_id, account_id, reference, op, state, subject_id,
      amount_minor, currency, happened_at, received_at, body, outcome, handled_at, booked_minor)
    select environment_id, 'pac_1', subject_id, 'authorize', 'succeeded', subject_id, 1, currency,
      now(), now(), '{}', 'applied', now(), -(processor + chargebacks + external)
    from pay_internal.subject_accounts where environment_id = ${environment_id}`;
}

/** Records a result that changes nothing but its operation. */
export async function recordResult(
  store: ProviderStore,
  { environment_id, id, ...operation }: OperationResult & { environment_id: string; id: string },
): Promise<void> {
  await store.record([{
    environment_id,
    operation_id: id,
    operation,
    provider_events: [],
    change: null,
    response: null,
  }]);
}
