/**
 * pay.commit() of changes with operations of providers, called as pay_api: the operation is written
 * with the change or not at all, to the account that serves the method or holds the payment.
 */

import assert from "node:assert/strict";
import { accessWith } from "../support/database/store_access.ts";
import { parseApiKey } from "../../shared/core/api_key.ts";
import type { TestService } from "../support/service/service.ts";
import { commit, created } from "../support/database/commit_list.ts";
import {
  addAccount,
  completion,
  LEASE_MS,
  operationFor,
  providerCase,
  reservation,
  reserve,
} from "../support/database/provider_flow.ts";
import { behindLock } from "../support/database/lock_waits.ts";
import type { Change } from "../../shared/store/commit_rows.ts";

const RESPONSE = { status: 102, body: "" };

async function countOf(service: TestService, id: string): Promise<string> {
  const { sql } = service;
  const rows = await Promise.all([
    sql`select from pay.payments where id = ${id}`,
    sql`select from pay.events where subject_id = ${id}`,
    sql`select from pay.provider_operations where subject_id = ${id}`,
  ]);
  return rows.map(({ count }) => count).join(" ");
}

providerCase("pay.commit() with operations", async (t, given) => {
  const { service, sql, live, key, functions, store } = given;
  /** A change of a payment that only begins an operation. */
  const followUp = (
    payment: { id: string; amount_minor: number; currency: string; sequence: number },
    op: "capture" | "cancel" | "refund",
    patch = {},
  ): Change => ({
    response: RESPONSE,
    expects: { id: payment.id, sequence: payment.sequence },
    payment: null,
    transfer: null,
    refunds: [],
    disputes: [],
    ledger: [],
    events: [],
    operations: [
      operationFor(payment, { op, refund_id: op === "refund" ? "re_1" : null, ...patch }),
    ],
  });
  await t.step("without a provider: unconfigured, nothing written, no key claimed", async () => {
    const requested = await reservation(live.text, {}, { idempotency_key: "none" });
    const good = async () => ({ change: await created(), key: key.text });
    const rows = await commit(functions, [await good(), requested, await good()]);
    const outcomes = rows.map(({ outcome }) => outcome);
    assert.deepEqual(outcomes, ["committed", "unconfigured", "committed"]);
    assert.equal(await countOf(service, requested.change.payment!.id), "0 0 0");
    assert.equal((await sql`select from pay.idempotency_keys where key = 'none'`).count, 0);
  });
  const account = await addAccount(sql, live.environment_id, { settings: { base_url: "x" } });

  await t.step("another method than those of the account: unconfigured", async () => {
    const [row] = await commit(functions, [await reservation(live.text, { method_kind: "sepa" })]);
    assert.equal(row!.outcome, "unconfigured");
  });
  await t.step("each change of a list has its operation, also after one with two", async () => {
    const simulated = await reservation(key.text);
    const later = operationFor(simulated.change.payment!, { op: "abandon", delay_ms: 1000 });
    simulated.change.operations.push(later);
    const list = [simulated, await reservation(live.text), await reservation(live.text)];
    const rows = await commit(functions, list);
    assert.deepEqual(
      rows.map(({ detail }) => JSON.parse(detail!).id),
      list.map(({ change }) => change.operations[0]!.id),
    );
  });
  await t.step("claims the key at 102 and writes the operation in one transaction", async () => {
    const requested = await reservation(live.text, {}, { idempotency_key: "claims" });
    const [row] = await commit(functions, [requested]);
    assert.equal(row!.outcome, "committed");
    const [operation] = await sql`
      select c.*, k.status as key_status, k.body as key_body, c.xmin = k.xmin as is_together,
        extract(epoch from c.leased_until - c.created_at) * 1000 as lease_ms,
        c.next_attempt_at = c.leased_until as is_due_then,
        c.next_sync_at - c.created_at as sync_after
      from pay.provider_operations c
      join pay.idempotency_keys k on k.request_id = c.request_id
      where c.subject_id = ${requested.change.payment!.id}`;
    const written = {
      ...{ key_status: 102, key_body: "", is_together: true, idempotency_key: "claims" },
      ...{ lease_ms: `${LEASE_MS}.000000`, is_due_then: true, sync_after: "00:10:00" },
      ...{ account_id: account, connector: "stripe", state: "pending", attempts: 1 },
      first_sent_at: operation!.created_at,
    };
    assert.deepEqual({ ...operation, ...written }, { ...operation });
    assert.deepEqual(JSON.parse(row!.detail!), {
      id: requested.change.operations[0]!.id,
      account: {
        id: account,
        environment_id: live.environment_id,
        connector: "stripe",
        settings: { base_url: "x" },
        secret_name: "PROVIDER_STRIPE",
        notification_secret_names: ["PROVIDER_STRIPE_NOTIFICATIONS"],
      },
      provider_reference: null,
      reserved: null,
      created_at: operation!.created_at.toISOString(),
    });
    const [duplicate] = await commit(functions, [{ ...requested, change: await created() }]);
    assert.equal(duplicate!.outcome, "in_progress");
  });
  await t.step("the store returns the operation, or throws provider_not_configured", async () => {
    const access = accessWith({ key_hash: parseApiKey(live.text)!.hash });
    const served = (await reservation(live.text)).change;
    const committed = await service.deps.store.commit(access, served, null);
    assert.equal(
      committed.outcome === "committed" && committed.operation?.id,
      served.operations[0]!.id,
    );
    const plain = await service.deps.store.commit(access, await created(), null);
    assert.equal(plain.outcome === "committed" && plain.operation, null);
    const unserved = (await reservation(live.text, { method_kind: "swift" })).change;
    await assert.rejects(service.deps.store.commit(access, unserved, null), {
      code: "provider_not_configured",
      message: 'No live provider is configured for "swift": use a test key, or let the operator ' +
        'run "deno task providers add"',
    });
  });
  await t.step("an operation with a delay is not leased, the worker sends it later", async () => {
    const { payment } = await reserve(functions, live, { delay_ms: 60_000 });
    const [operation] = await sql`
      select attempts, first_sent_at, leased_until, next_attempt_at - created_at as delay
      from pay.provider_operations where subject_id = ${payment.id}`;
    assert.deepEqual({ ...operation }, {
      attempts: 0,
      first_sent_at: null,
      leased_until: null,
      delay: "00:01:00",
    });
  });
  await t.step("in a test environment the account is the sandbox", async () => {
    const { operation, payment } = await reserve(functions, key, { method_kind: "swift" });
    assert.deepEqual(operation.account, {
      id: "sandbox",
      environment_id: key.environment_id,
      connector: "sandbox",
      settings: {},
      secret_name: null,
      notification_secret_names: [],
    });
    const [row] = await sql`
      select next_sync_at from pay.provider_operations where subject_id = ${payment.id}`;
    assert.equal(row!.next_sync_at, null);
  });
  await t.step("an operation of a stale change is not written", async () => {
    const { payment } = await reserve(functions, live);
    const change = followUp({ ...payment, sequence: 9 }, "refund");
    const [row] = await commit(functions, [{ change, key: live.text }]);
    assert.equal(row!.outcome, "stale");
    assert.equal(await countOf(service, payment.id), "1 1 1");
  });
  for (
    const [op, outcome] of [
      ["capture", "in_progress"],
      ["cancel", "in_progress"],
      ["refund", "committed"],
    ] as const
  ) {
    await t.step(`${op} while the authorization is pending: ${outcome}`, async () => {
      const { payment } = await reserve(functions, live);
      const [row] = await commit(functions, [{ change: followUp(payment, op), key: live.text }]);
      assert.equal(row!.outcome, outcome);
    });
  }
  await t.step("of two captures at once one is committed", async () => {
    const made = await reserve(functions, live);
    await store.record([completion(made)]);
    const payment = { ...made.payment, sequence: 2 };
    const list = () => [{ change: followUp(payment, "capture"), key: live.text }];
    const lock = `select from pay.payments where id = '${payment.id}' for update`;
    const begin = () => [commit(functions, list()), commit(functions, list())];
    const both = await behindLock(sql, lock, begin, "pay.commit");
    const outcomes = both.map(([row]) => row!.outcome);
    assert.deepEqual(outcomes.sort(), ["committed", "in_progress"]);
  });
  await t.step("of two cancels in one list one is committed", async () => {
    const made = await reserve(functions, live);
    await store.record([completion(made)]);
    const payment = { ...made.payment, sequence: 2 };
    const rows = await commit(functions, [
      { change: followUp(payment, "cancel"), key: live.text },
      { change: followUp(payment, "cancel"), key: live.text },
    ]);
    assert.deepEqual(rows.map(({ outcome }) => outcome), ["committed", "stale"]);
  });
  await t.step("a refund goes to the payment's account, also when it is disabled", async () => {
    const made = await reserve(functions, live);
    await store.record([completion(made)]);
    await sql`select pay.disable_provider_account(${account})`;
    const second = await addAccount(sql, live.environment_id);
    const payment = { ...made.payment, sequence: 2 };
    const change = followUp(payment, "refund");
    const [row] = await commit(functions, [{ change, key: live.text }]);
    const { account: used, provider_reference } = JSON.parse(row!.detail!);
    assert.deepEqual([used.id, provider_reference], [account, `pi_${payment.id}`]);
    const fresh = await reserve(functions, live);
    assert.equal(fresh.operation.account.id, second);
  });
  await t.step("a stored response comes before unconfigured", async () => {
    await sql`delete from pay.provider_methods`;
    const requested = await reservation(live.text, {}, { idempotency_key: "claims" });
    const [row] = await commit(functions, [requested]);
    assert.equal(row!.outcome, "in_progress");
  });
});
