/**
 * pay.lease_provider_work(), called as pay_api: due work is leased, and two workers never get the
 * same work. Cursors and totals of accounts.
 */

import assert from "node:assert/strict";
import {
  addAccount,
  completion,
  openProviderStore,
  operationFor,
  providerCase,
  recordResult,
  reserve,
  succeeded,
} from "../support/database/provider_flow.ts";
import { openSession } from "../support/database/database.ts";
import { commit, refunded } from "../support/database/commit_list.ts";
import type { ProviderWork } from "../../shared/store/provider_rows.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const LEASE_MS = 30_000;
const NOON = Date.UTC(2026, 10, 22, 12);

/** A piece of work as text: its kind, and the id of its object. */
function nameOf({ kind, operation, event, account, day }: ProviderWork): string {
  const id = kind === "operation" || kind === "sync"
    ? operation!.id
    : kind === "event"
    ? event!.reference
    : account.id;
  return day === null ? `${kind} ${id}` : `${kind} ${id} ${day}`;
}

providerCase("pay.lease_provider_work()", async (t, given) => {
  const { service, sql, live, key, functions, store } = given;
  let now = NOON;
  const advance = (ms: number) => service.setClock(now += ms);
  const work = async (limit = 100) => (await store.leaseWork(limit, limit, LEASE_MS, now)).work;
  const names = async (limit?: number) => (await work(limit)).map(nameOf);
  const is_due = async () => {
    const text = new Date(now).toISOString();
    const [row] = await sql.begin(async (sql) => {
      await sql.unsafe(`set local role pay_owner`);
      await sql`select set_config('pay.worker', 'on', true)`;
      return await sql`select pay_internal.provider_work_is_due() as is_due, ${text}::text`;
    });
    return row!.is_due;
  };
  await advance(0);
  const account_id = await addAccount(sql, live.environment_id);
  const polled = () => store.saveCursor(account_id, null, true);
  /** The work of a kind that is leased next. */
  const namesOf = async (kind: string) => (await names()).filter((name) => name.startsWith(kind));
  await t.step("a new account is polled at once, and its lease ends", async () => {
    const [poll, ...more] = await work();
    assert.deepEqual([nameOf(poll!), more.length], [`poll ${account_id}`, 0]);
    assert.deepEqual([poll!.cursor, poll!.livemode], [null, true]);
    assert.deepEqual(await names(), []);
    await advance(LEASE_MS);
    assert.deepEqual(await names(), [`poll ${account_id}`]);
  });
  await t.step("the next poll comes after an hour, from the saved cursor", async () => {
    await store.saveCursor(account_id, { after: "evt_1" }, false);
    await advance(LEASE_MS - 1);
    assert.deepEqual(await names(), []);
    await store.saveCursor(account_id, { after: "evt_2" }, true);
    await advance(HOUR_MS - 1);
    assert.deepEqual(await names(), []);
    await advance(1);
    const [poll] = await work();
    assert.deepEqual(poll!.cursor, { after: "evt_2" });
    await store.saveCursor(account_id, { after: "evt_2" }, true);
  });
  await t.step("an operation is leased to its request, then to one worker each time", async () => {
    const { operation, payment } = await reserve(functions, live);
    await advance(14_999);
    assert.deepEqual(await names(), []);
    await advance(1);
    const [found, ...more] = await work();
    assert.deepEqual([nameOf(found!), more.length], [`operation ${operation.id}`, 0]);
    assert.equal(found!.subject_body, JSON.stringify(payment));
    assert.equal(found!.subject_sequence, 1);
    const { attempts, request, op, may_repeat } = found!.operation!;
    const expected = [2, { token: "pm_1" }, "authorize", true];
    assert.deepEqual([attempts, request, op, may_repeat], expected);
    assert.deepEqual(found!.account, operation.account);
    assert.deepEqual(await names(), []);
    const { environment_id } = live;
    const next_attempt_at = new Date(now + MINUTE_MS).toISOString();
    await recordResult(store, { environment_id, id: operation.id, next_attempt_at });
    assert.deepEqual(await names(), []);
    await advance(MINUTE_MS);
    assert.deepEqual(await names(), [`operation ${operation.id}`]);
    await recordResult(store, { environment_id, id: operation.id, state: "operator" });
    await advance(HOUR_MS);
    const later = await work();
    assert.deepEqual(later.map(({ kind }) => kind).sort(), ["poll", "sync"]);
    await polled();
  });
  await t.step("two workers never get the same work, and skip locked rows", async () => {
    const operations = [];
    for (let i = 0; i < 20; i++) {
      operations.push((await reserve(functions, live, { delay_ms: 0 })).operation.id);
    }
    await using holder = await openSession(sql);
    await holder`begin`;
    await holder`select from pay.provider_operations where id = ${operations[0]!} for update`;
    await using one = openProviderStore(service);
    await using other = openProviderStore(service);
    const leases = await Promise.all(
      [one, other].flatMap(({ store }) =>
        [1, 2, 3].map(() => store.leaseWork(4, 4, LEASE_MS, now))
      ),
    );
    const got = leases.flatMap(({ work }) => work).map(({ operation }) => operation!.id);
    await holder`commit`;
    got.push(...(await work()).map(({ operation }) => operation!.id));
    assert.deepEqual(got.sort(), operations.sort());
    assert.equal(new Set(got).size, operations.length);
    await sql`update pay.provider_operations set next_sync_at = null, state = 'settled',
      settled_at = now(), next_attempt_at = null, leased_until = null`;
  });
  await t.step("an event comes with its subject and the operation it can settle", async () => {
    const made = await reserve(functions, live);
    const { payment, operation, environment_id } = made;
    const { outcome: _, exception: __, booked_minor: ___, was_booked_minor: ____, ...event } =
      succeeded(made);
    // Names only the provider's object, which is not known yet.
    await store.storeProviderEvents(account_id, [{ ...event, subject_id: null }]);
    const provider_reference = event.provider_reference;
    const next_attempt_at = new Date(now + DAY_MS).toISOString();
    const note = { environment_id, id: operation.id, provider_reference, next_attempt_at };
    await recordResult(store, note);
    const [found, ...more] = await work();
    assert.equal(more.length, 0);
    const { received_at } = found!.event!;
    const unbooked = { booked_minor: 0, is_elsewhere: false, follows_unmatched: false };
    assert.deepEqual(found!.event, { ...event, ...unbooked, received_at });
    assert.equal(found!.subject_body, JSON.stringify(payment));
    assert.equal(found!.operation!.id, operation.id);
    assert.equal(found!.livemode, true);
    assert.deepEqual(await names(), []);
    await advance(LEASE_MS);
    assert.deepEqual(await names(), [`event ${event.reference}`]);
    await store.record([completion(made)]);
    await advance(LEASE_MS);
    assert.deepEqual(await names(), []);
  });
  await t.step("syncs every hour a payment that is not final, then once more", async () => {
    const made = await reserve(functions, live);
    const { environment_id, operation } = made;
    await sql`update pay.provider_operations set next_sync_at = null where id <> ${operation.id}`;
    await store.record([completion(made, { change: null, provider_events: [], response: null })]);
    const reference = `sync ${operation.id}`;
    await advance(10 * MINUTE_MS - 1);
    assert.deepEqual(await names(), []);
    await advance(1);
    assert.deepEqual(await names(), [reference]);
    assert.deepEqual(await names(), []);
    await polled();
    await advance(HOUR_MS);
    assert.deepEqual(await namesOf("sync"), [reference]);
    await polled();
    await store.record([completion(made, { operation_id: null, operation: null, response: null })]);
    await advance(HOUR_MS);
    assert.deepEqual(await namesOf("sync"), []);
    const [row] = await sql`
      select next_sync_at from pay.provider_operations
      where environment_id = ${environment_id} and id = ${operation.id}`;
    assert.equal(row!.next_sync_at, null);
    await polled();
  });
  await t.step("syncs no pending operation, whose next attempt asks the same", async () => {
    const { operation, environment_id } = await reserve(functions, live);
    const next_attempt_at = new Date(now + DAY_MS).toISOString();
    await recordResult(store, { environment_id, id: operation.id, next_attempt_at });
    await advance(10 * MINUTE_MS);
    assert.deepEqual(await names(), []);
    await recordResult(store, { environment_id, id: operation.id, state: "settled" });
  });
  await t.step("syncs a pending refund", async () => {
    const made = await reserve(functions, live);
    await store.record([completion(made)]);
    const change = refunded({
      ...made.payment,
      status: "completed",
      amount_captured: made.payment.amount_minor,
      settlement: "manual",
      sequence: 2,
    });
    const refund = change.refunds[0]!;
    change.operations.push(operationFor(made.payment, { op: "refund", refund_id: refund.id }));
    const [row] = await commit(functions, [{ change, key: live.text }]);
    assert.equal(row!.outcome, "committed");
    const { environment_id } = live;
    const { id } = change.operations[0]!;
    await recordResult(store, { environment_id, id, state: "settled" });
    await advance(10 * MINUTE_MS);
    const body = JSON.parse(refund.body);
    const found = (await work()).filter(({ kind }) => kind === "sync");
    assert.deepEqual(
      found.map(({ operation, refund_body }) => [operation!.id, refund_body]),
      body.status === "pending" ? [[id, refund.body]] : [],
    );
  });
  await t.step("totals: each whole day after the account, two hours after its end", async () => {
    const leased = async () => {
      const found = (await work()).filter(({ kind }) => kind === "totals");
      return found.map(({ day, cursor }) => [day, cursor]);
    };
    /** The totals that a job would read: their day, and the cursor to go on. */
    const totals = async () => {
      await polled();
      return await leased();
    };
    const end = (day: string, net_minor: number) =>
      store.storeTotals(account_id, day, [{ currency: "EUR", net_minor }]);
    now = NOON;
    await advance(1.5 * DAY_MS + 2 * HOUR_MS - 1);
    assert.deepEqual(await totals(), []);
    await advance(1);
    assert.deepEqual(await totals(), [["2026-11-23", null]]);
    await store.saveTotalsCursor(account_id, "2026-11-23", { after: "txn_1" });
    assert.deepEqual(await totals(), [["2026-11-23", { after: "txn_1" }]]);
    await end("2026-11-23", 5);
    assert.deepEqual(await totals(), []);
    await advance(2 * DAY_MS);
    assert.deepEqual(await totals(), [["2026-11-24", null]]);
    await store.saveTotalsCursor(account_id, "2026-11-24", { after: "txn_9" });
    // Late ones change neither the next day nor its lease.
    await store.saveTotalsCursor(account_id, "2026-11-23", { after: "txn_2" });
    await end("2026-11-23", 5);
    assert.deepEqual(await leased(), []);
    assert.deepEqual(await totals(), [["2026-11-24", { after: "txn_9" }]]);
    await end("2026-11-24", 6);
    await end("2026-11-24", 7);
    assert.deepEqual(await totals(), [["2026-11-25", null]]);
    const rows = await sql`
      select day::text, provider_minor from pay.provider_totals order by day`;
    assert.deepEqual(rows.map((row) => Object.values(row)), [
      ["2026-11-23", "5"],
      ["2026-11-24", "7"],
    ]);
  });
  await t.step("a disabled account is still polled and found by notifications", async () => {
    const found = await store.readAccount(account_id);
    assert.equal(found?.secret_name, "PROVIDER_STRIPE");
    assert.equal(await store.readAccount("pac_none"), null);
    await sql`select pay.disable_provider_account(${account_id})`;
    assert.equal((await store.readAccount(account_id))?.id, account_id);
    await advance(DAY_MS);
    assert.ok((await work()).some(({ kind }) => kind === "poll"));
  });
  await t.step("the operation of a sandbox that was reset is not leased", async () => {
    const { operation } = await reserve(functions, key, { delay_ms: 0 });
    const other = await reserve(functions, service.other, { delay_ms: 0 });
    await service.call("POST", "/api-v1-sandbox/reset", {});
    assert.deepEqual(await namesOf("operation"), [`operation ${other.operation.id}`]);
    assert.notEqual(operation.id, other.operation.id);
  });
  await t.step("provider_work_is_due() is true for a due operation or event only", async () => {
    await service.setClock(null);
    now = Date.now();
    await sql`delete from pay.provider_events`;
    await sql`delete from pay.provider_operations`;
    // The steps before have read the account at a fixed time, after which it is due again.
    await sql`delete from pay.provider_cursors`;
    assert.equal(await is_due(), false);
    await reserve(functions, service.other);
    assert.equal(await is_due(), false);
    const { payment } = await reserve(functions, service.other, { delay_ms: 0 });
    assert.equal(await is_due(), true);
    await sql`delete from pay.provider_operations where subject_id = ${payment.id}`;
    assert.equal(await is_due(), false);
    const made = await reserve(functions, service.other);
    const event = { ...succeeded(made), outcome: null, booked_minor: 0 };
    const nothing = { change: null, operation: null, operation_id: null, response: null };
    await store.record([completion(made, { ...nothing, provider_events: [event] })]);
    assert.equal(await is_due(), true);
  });
});

providerCase("accounts share the provider events that are leased", async (_, given) => {
  const { service, sql, live, store } = given;
  await service.setClock(NOON);
  const accounts: string[] = [];
  const filled = [[500, HOUR_MS, "card"], [3, 2000, "sepa"], [1, 1000, "swift"]] as const;
  for (const [events, age_ms, method] of filled) {
    const account_id = await addAccount(sql, live.environment_id, { method_kinds: [method] });
    accounts.push(account_id);
    await sql`
      insert into pay.provider_events (environment_id, account_id, reference, op, state,
        amount_minor, currency, happened_at, received_at, body)
      select ${live.environment_id}, ${account_id}, 'e' || n, 'authorize', 'received', 1, 'EUR',
        now(), ${new Date(NOON - age_ms)}::timestamptz + n * interval '1 ms', '{}'
      from generate_series(1, ${events}::int) n`;
  }
  await sql`update pay.provider_cursors set leased_until = 'infinity'`;
  const leased = async () => {
    const { work } = await store.leaseWork(9, 9, LEASE_MS, NOON);
    const events = work.filter(({ kind }) => kind === "event");
    return accounts.map((id) => events.filter(({ account }) => account.id === id).length);
  };
  assert.deepEqual(await leased(), [5, 3, 1]);
  assert.deepEqual(await leased(), [9, 0, 0]);
});

/** The most work that the worker leases at once. */
const LIMIT = 32;

providerCase("due events come before more than a quarter of the operations", async (_, given) => {
  const { service, sql, live, functions, store } = given;
  await service.setClock(NOON);
  const account_id = await addAccount(sql, live.environment_id);
  /** The numbers of pieces that are leased next, by kind. */
  const poll = async (most = LIMIT) => {
    const counts: Record<string, number> = {};
    const { work } = await store.leaseWork(LIMIT, most, LEASE_MS, NOON);
    for (const { kind } of work) counts[kind] = (counts[kind] ?? 0) + 1;
    return counts;
  };
  for (let i = 0; i < 2 * LIMIT; i++) {
    const made = await reserve(functions, live, { delay_ms: 0 });
    if (i % 4 > 0) continue;
    const { outcome: _, exception: __, booked_minor: ___, ...event } = succeeded(made);
    await store.storeProviderEvents(account_id, [{ ...event, state: "pending" }]);
  }
  assert.deepEqual(await poll(), { event: 16, operation: 15, poll: 1 });
  assert.deepEqual(await poll(), { operation: 32 });
  assert.deepEqual(await poll(5), { operation: 5 });
  assert.deepEqual(await poll(), { operation: 12 });
  assert.deepEqual(await poll(), {});
});
