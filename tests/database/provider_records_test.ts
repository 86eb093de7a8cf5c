/**
 * pay.record() and pay.store_provider_events(), called as pay_api: a result
 * is recorded whole or not at all, and a provider event has one effect, however many transactions
 * record it.
 */

import assert from "node:assert/strict";
import {
  addAccount,
  completion,
  openProviderStore,
  providerCase,
  recordResult,
  reserve,
  type Reserved,
  succeeded,
} from "../support/database/provider_flow.ts";
import { completed } from "../support/database/commit_list.ts";
import { behindLock } from "../support/database/lock_waits.ts";
import type { ProviderRecord } from "../../shared/store/provider_rows.ts";

/** A record without an operation, as of a notification. */
const NOTIFIED = { operation: null, operation_id: null, response: null };

/** A record of the provider event of a reservation, which changes nothing else. */
function onlyEvent(made: Reserved, patch: Parameters<typeof succeeded>[1]): ProviderRecord {
  const provider_events = [succeeded(made, patch)];
  return completion(made, { provider_events, change: null, ...NOTIFIED });
}

const EXCEPTION = { outcome: "exception", exception: "amount", booked_minor: 0 } as const;
const IGNORED = { outcome: "ignored", booked_minor: 0 } as const;

const RECORDED = "completed 1 1 applied settled";
const UNTOUCHED = "pending 0 0 none pending";
/** The outcome of most records, and the state afterwards. */
const SETTLED = ["recorded", true, RECORDED] as const;

providerCase("the results of operations of providers", async (t, given) => {
  const { service, sql, live, key, functions, store } = given;
  const account_id = await addAccount(sql, live.environment_id);
  let number = 0;
  const begin = () => reserve(functions, live, {}, { idempotency_key: `k${++number}` });
  /**
   * The status of the payment, its captures, completions, the outcome of its provider event, its
   * operation.
   */
  const stateOf = async ({ payment, operation }: Reserved) => {
    const [row] = await sql`
      select p.status,
        (select count(*) from pay.ledger_movements m where m.subject_id = p.id) as captures,
        (select count(*) from pay.events e
         where e.subject_id = p.id and e.type = 'payment.completed') as events,
        coalesce((select max(f.outcome) from pay.provider_events f
          where f.subject_id = p.id and f.op = 'authorize'), 'none') as event,
        c.state
      from pay.payments p join pay.provider_operations c on c.id = ${operation.id}
      where p.id = ${payment.id}`;
    return Object.values(row!).join(" ");
  };
  const responseOf = async ({ operation }: Reserved) => {
    const [row] = await sql`
      select k.status, k.body from pay.idempotency_keys k
      join pay.provider_operations c on c.request_id = k.request_id where c.id = ${operation.id}`;
    return row!;
  };

  /** Two transactions write a record of their own at once. Returns the outcomes. */
  const recordTwice = async (lock: string, make: () => ProviderRecord) => {
    await using one = openProviderStore(service);
    await using other = openProviderStore(service);
    const begin = () => [one, other].map(({ store }) => store.record([make()]));
    const both = await behindLock(sql, lock, begin, "pay.record");
    return both.map(([row]) => row!.outcome).sort();
  };

  /** A record of a reservation, its outcome, and the state afterwards. */
  const CASES: [
    name: string,
    make: (reserved: Reserved) => Promise<ProviderRecord> | ProviderRecord,
    expected: readonly [outcome: string, is_settled: boolean, state: string],
  ][] = [
    ["a result of the operation", (made) => completion(made), SETTLED],
    [
      "a result without an operation, as of a notification",
      (made) => completion(made, NOTIFIED),
      ["recorded", false, "completed 1 1 applied pending"],
    ],
    [
      "a provider event that was stored before",
      async (made) => {
        await store.storeProviderEvents(account_id, [succeeded(made)]);
        return completion(made);
      },
      SETTLED,
    ],
    [
      "an unmatched provider event",
      async (made) => {
        const unmatched = { outcome: "unmatched", booked_minor: 0, subject_id: null } as const;
        await store.record([onlyEvent(made, unmatched)]);
        return completion(made);
      },
      SETTLED,
    ],
    [
      "an unmatched provider event that is booked, by a record that does not know it",
      async (made) => {
        await store.record([onlyEvent(made, { outcome: "unmatched" })]);
        return completion(made);
      },
      ["stale", false, UNTOUCHED.replace("none", "unmatched")],
    ],
    [
      "an unmatched provider event that is booked, by a record that reverses it",
      async (made) => {
        await store.record([onlyEvent(made, { outcome: "unmatched" })]);
        return completion(made, { provider_events: [succeeded(made, { was_booked_minor: 1000 })] });
      },
      SETTLED,
    ],
    [
      "an exception that can be applied now",
      async (made) => {
        await store.record([onlyEvent(made, EXCEPTION)]);
        return completion(made);
      },
      SETTLED,
    ],
    [
      "another sequence",
      (made) => completion(made, { change: completed({ ...made.payment, sequence: 5 }) }),
      ["stale", false, UNTOUCHED],
    ],
    [
      "a settled operation",
      async (made) => {
        await store.record([completion(made)]);
        return completion(made, { change: null, provider_events: [] });
      },
      ["known", true, RECORDED],
    ],
    [
      "an applied provider event",
      async (made) => {
        await store.record([completion(made, NOTIFIED)]);
        return completion(made, { change: null });
      },
      ["known", false, "completed 1 1 applied pending"],
    ],
    [
      "an applied provider event that the record ignores",
      async (made) => {
        await store.record([completion(made, NOTIFIED)]);
        return completion(made, { change: null, provider_events: [succeeded(made, IGNORED)] });
      },
      SETTLED,
    ],
    [
      "a result of an operation that the operator has",
      async (made) => {
        const { environment_id, operation } = made;
        await recordResult(store, { environment_id, id: operation.id, state: "operator" });
        return completion(made);
      },
      SETTLED,
    ],
    [
      "an exception",
      (made) => ({ ...onlyEvent(made, EXCEPTION), operation_id: made.operation.id }),
      ["recorded", false, "pending 0 0 exception pending"],
    ],
  ];
  for (const [name, make, [outcome, is_settled, state]] of CASES) {
    await t.step(`record(): ${name}: ${outcome}`, async () => {
      const made = await begin();
      const record = await make(made);
      assert.deepEqual(await store.record([record]), [{ outcome, is_settled }]);
      assert.equal(await stateOf(made), state);
    });
  }
  await t.step("record() stores the response only while the key is under way", async () => {
    const made = await begin();
    assert.equal((await responseOf(made)).status, 102);
    const record = completion(made);
    await store.record([record]);
    assert.deepEqual({ ...await responseOf(made) }, { ...record.response });
    const other = await begin();
    await sql`update pay.idempotency_keys set status = 200, body = 'kept'
      where request_id = (select request_id from pay.provider_operations
        where id = ${other.operation.id})`;
    await store.record([completion(other)]);
    assert.deepEqual({ ...await responseOf(other) }, { status: 200, body: "kept" });
  });
  await t.step("record() of a list: each record has its own outcome", async () => {
    const [first, second] = [await begin(), await begin()];
    const stale = completion(second, { change: completed({ ...second.payment, sequence: 3 }) });
    const outcomes = await store.record([completion(first), stale, completion(first)]);
    assert.deepEqual(outcomes.map(({ outcome }) => outcome), ["recorded", "stale", "stale"]);
    assert.deepEqual([await stateOf(first), await stateOf(second)], [RECORDED, UNTOUCHED]);
  });
  await t.step("record() of a list: all with the same exception are recorded", async () => {
    const refused = [await begin(), await begin(), await begin()];
    const exception = succeeded(refused[0]!, {
      reference: "unusable today",
      outcome: "exception",
      exception: "the secret is refused",
      booked_minor: 0,
    });
    const outcomes = await store.record(
      refused.map((made) => completion(made, { provider_events: [exception] })),
    );
    assert.deepEqual(outcomes, refused.map(() => ({ outcome: "recorded", is_settled: true })));
  });
  await t.step("record(): two transactions apply a provider event once", async () => {
    const made = await begin();
    const lock = `select from pay.payments where id = '${made.payment.id}' for update`;
    const outcomes = await recordTwice(lock, () => completion(made));
    assert.deepEqual(outcomes, ["recorded", "stale"]);
    assert.equal(await stateOf(made), RECORDED);
  });
  for (const name of ["new", "stored"]) {
    await t.step(`record(): two transactions book a ${name} event of no payment once`, async () => {
      const made = await begin();
      const { ledger } = completed(made.payment);
      const payout = (): ProviderRecord => ({
        environment_id: live.environment_id,
        operation_id: null,
        operation: null,
        provider_events: [succeeded(made, {
          op: "payout",
          reference: `po_${name}:created`,
          subject_id: null,
          provider_reference: null,
        })],
        change: {
          expects: null,
          payment: null,
          transfer: null,
          refunds: [],
          disputes: [],
          events: [],
          operations: [],
          ledger: ledger.map((row) => ({
            ...row,
            subject_id: `${account_id}_${name}`,
            transaction_id: row.transaction_id.slice(0, -1) + (number++ % 8),
          })),
        },
        response: null,
      });
      if (name === "stored") {
        await store.storeProviderEvents(account_id, payout().provider_events);
      }
      const lock = name === "new"
        ? "lock pay.ledger_totals in exclusive mode"
        : "select from pay.provider_events where op = 'payout' for update";
      assert.deepEqual(await recordTwice(lock, payout), ["known", "recorded"]);
      const { count } = await sql`
        select from pay.ledger_movements where subject_id = ${`${account_id}_${name}`}`;
      assert.equal(count, 1);
    });
  }
  await t.step("record() writes nothing in a sandbox that was reset", async () => {
    const made = await reserve(functions, key);
    await service.post("/api-v1-sandbox/reset");
    assert.deepEqual(await store.record([completion(made)]), [
      { outcome: "known", is_settled: false },
    ]);
    assert.equal(await stateOf(made), UNTOUCHED);
  });
  await t.step("record() sees no payment of another environment", async () => {
    const made = await begin();
    const record = completion(made, { environment_id: service.other.environment_id });
    assert.deepEqual(await store.record([record]), [{ outcome: "stale", is_settled: false }]);
    assert.equal(await stateOf(made), UNTOUCHED);
  });
  await t.step("storeProviderEvents() stores each once and fills its subject", async () => {
    const made = await begin();
    const { payment, operation, environment_id } = made;
    const provider_reference = `pi_${payment.id}`;
    await recordResult(store, { environment_id, id: operation.id, provider_reference });
    const event = { ...succeeded(made), subject_id: null };
    const unknown = { ...event, reference: `${payment.id}:x`, provider_reference: "pi_other" };
    assert.equal(await store.storeProviderEvents(account_id, [event, unknown, event]), 2);
    assert.equal(await store.storeProviderEvents(account_id, [event, unknown]), 0);
    assert.equal(await store.storeProviderEvents("pac_none", [{ ...event, reference: "new" }]), 0);
    const rows = await sql`
      select subject_id, outcome from pay.provider_events
      where reference in (${event.reference}, ${unknown.reference}) order by 1 nulls last`;
    assert.deepEqual(rows.map((row) => ({ ...row })), [
      { subject_id: payment.id, outcome: null },
      { subject_id: null, outcome: null },
    ]);
  });
  await t.step("a result alone changes what it names, and no settled operation", async () => {
    const made = await begin();
    const { environment_id, operation } = made;
    const next_attempt_at = "2030-01-01T00:00:00.000Z";
    const note = { environment_id, id: operation.id, next_attempt_at, last_reply: "timeout" };
    await recordResult(store, { ...note, may_repeat: false });
    const read = async () => {
      const [row] = await sql`
        select state, next_attempt_at, leased_until, last_reply, may_repeat, provider_reference
        from pay.provider_operations where id = ${operation.id}`;
      return { ...row };
    };
    const noted = {
      state: "pending",
      next_attempt_at: new Date(next_attempt_at),
      leased_until: null,
      last_reply: "timeout",
      may_repeat: false,
      provider_reference: null,
    };
    assert.deepEqual(await read(), noted);
    await store.record([completion(made)]);
    const settled = await read();
    assert.equal(settled.state, "settled");
    await recordResult(store, { ...note, state: "pending", last_reply: "late" });
    assert.deepEqual(await read(), settled);
  });
});
