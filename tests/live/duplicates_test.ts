/**
 * Requests with one idempotency key while an operation is under way, and after its request died. An
 * operation under way holds no connection of the database.
 */

import assert from "node:assert/strict";
import { addAccount } from "../support/database/provider_flow.ts";
import { deliver, dieDuringOperation, eventsOf, shown } from "../support/live/live_actions.ts";
import { type LiveCase, liveCase, stopPolls, workAfter } from "../support/live/live_case.ts";
import { json, startFaultServer } from "../support/connectors/fault_server.ts";
import { intent } from "../support/connectors/stripe_case.ts";
import { startService } from "../support/service/service.ts";
import { until } from "../support/common/until.ts";

const PAYMENT = { amount: 1000, currency: "EUR", card: { token: "pm_card_visa" } };
/** Longer than the lease of a request. */
const LEASE_S = 16;

/** Makes the provider slow. */
const slowDown = ({ double }: LiveCase) =>
  double.plant({ method: "POST", at: "before", act: "delay", delay_ms: 300 });

liveCase("duplicates of a live request under way get the same bytes", async (given, t) => {
  const { body: { id } } = await given.pay();
  const declined = { ...PAYMENT, card: { token: "pm_card_chargeDeclined" } };
  /** Each row: the request, the status of its response, and the status in its body. */
  const REQUESTS: [name: string, path: string, body: object, code: number, status?: string][] = [
    ["create", "/payments", PAYMENT, 201, "completed"],
    ["declined create", "/payments", declined, 402],
    // The reservation of the first one already holds the rest.
    ["refund of the rest", `/payments/${id}/refund`, { amount: 1000 }, 201, "completed"],
  ];
  for (const [name, path, body, code, status] of REQUESTS) {
    await t.step(name, async () => {
      await slowDown(given);
      const idempotency_key = name.replaceAll(" ", "-");
      const send = () => given.call("POST", path, { body, idempotency_key });
      const responses = await Promise.all([send(), send(), send()]);
      assert.deepEqual(responses.map((response) => response.status), [code, code, code]);
      assert.equal(new Set(responses.map(({ text }) => text)).size, 1);
      assert.equal(responses[0]!.body.status, status);
    });
  }
  await t.step("captures with two keys: the second waits, and is refused", async () => {
    const { body: held } = await given.pay({ capture: "manual" });
    await slowDown(given);
    const responses = await Promise.all(
      ["one", "two"].map((idempotency_key) =>
        given.call("POST", `/payments/${held.id}/capture`, { body: {}, idempotency_key })
      ),
    );
    assert.deepEqual(responses.map(({ status }) => status).sort(), [200, 409]);
    const refused = responses.find(({ status }) => status === 409)!;
    assert.equal(refused.body.error.code, "invalid_state");
  });
  const { charge, refund } = await given.books();
  assert.equal(charge.filter(({ paid }) => paid).length, 3);
  assert.deepEqual(refund.map(({ amount }) => amount), [1000]);
});

liveCase(
  "the same key with another body is a conflict while the operation is under way",
  async (given) => {
    await slowDown(given);
    const first = given.pay({}, { idempotency_key: "one" });
    await until("the operation is reserved", async () => await countOperations(given) === 1);
    const other = await given.pay({ amount: 999 }, { idempotency_key: "one" });
    assert.equal(other.status, 409, other.text);
    assert.notEqual(other.body.error.code, "idempotency_in_progress");
    assert.equal((await first).status, 201);
  },
);

async function countOperations({ service }: LiveCase): Promise<number> {
  const [row] = await service.sql`select count(*)::int as operations from pay.provider_operations`;
  return row!.operations;
}

liveCase(
  "a duplicate of a request that died waits 3 s, then gets the worker's record",
  async (given) => {
    await stopPolls(given);
    await dieDuringOperation(given, "died");
    const began = performance.now();
    const early = await given.pay({}, { idempotency_key: "died" });
    assert.equal(early.status, 409, early.text);
    assert.equal(early.body.error.code, "idempotency_in_progress");
    assert.ok(performance.now() - began > 2_900);
    await workAfter(given, LEASE_S);
    const late = await given.pay({}, { idempotency_key: "died" });
    assert.equal(late.status, 201);
    assert.equal(late.body.status, "completed");
    assert.equal((await given.books()).charge.length, 1);
    const [row] = await given.service.sql`select count(*)::int as payments from pay.payments`;
    assert.equal(row!.payments, 1);
  },
);

liveCase("a key that is revoked during the operation does not lose the result", async (given) => {
  const key = await given.service.issueKey(given.service.live.environment_id);
  await slowDown(given);
  const options = { key: key.text, idempotency_key: "revoked" };
  const paying = given.pay({}, options);
  await until("the operation is reserved", async () => await countOperations(given) === 1);
  await given.service.sql`update pay.api_key_secrets set revoked_at = now()
    where api_key_id = ${key.id}`;
  const { status, body } = await paying;
  assert.equal(status, 201);
  assert.equal(body.status, "completed");
  assert.equal((await given.pay({}, options)).status, 401);
  assert.equal((await shown(given, body.id)).status, "completed");
});

liveCase(
  "a request whose operation a notification has settled gets the stored response",
  async (given) => {
    await stopPolls(given);
    await given.double.plant({ method: "POST", at: "after", act: "delay", delay_ms: 1_500 });
    const first = given.pay({}, { idempotency_key: "late" });
    await until("the provider has charged", async () => (await given.books()).charge.length > 0);
    await deliver(given, await eventsOf(given));
    const [row] = await given.service.sql<[{ id: string }]>`select id from pay.payments`;
    const made = await given.call("POST", `/payments/${row.id}/refund`, { body: { amount: 100 } });
    assert.equal(made.status, 201, made.text);
    const { status, text } = await first;
    const again = await given.pay({}, { idempotency_key: "late" });
    assert.deepEqual([status, text], [201, again.text]);
    assert.equal(again.body.status, "completed");
    assert.equal((await shown(given, row.id)).status, "partially_refunded");
  },
);

const CREATES = 300;

Deno.test("300 live creates under way hold no database connection while they wait", async () => {
  let waiting = 0;
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  // It responds to no create until the test lets it.
  await using provider = await startFaultServer(async (response, received) => {
    const { form } = received;
    const id = `pi_${++waiting}`;
    await released;
    const metadata = { payment: form.get("metadata[payment]"), call: form.get("metadata[call]") };
    const amount = Number(form.get("amount"));
    const members = { id, amount, amount_received: amount, metadata, latest_charge: null };
    json(200, intent({ ...members, livemode: true }))(response, received);
  });
  const service = await startService({ provider_secret: () => "sk_live_many" });
  try {
    const settings = { base_url: provider.base_url };
    await addAccount(service.sql, service.live.environment_id, { settings });
    const pay = () => service.pay(PAYMENT, { key: service.live.text, unchecked: true });
    const paying = Array.from({ length: CREATES }, pay);
    await until("every create waits for the provider", () => waiting === CREATES);
    // A transaction that is open during an operation would still be here.
    const busy = await service.sql`
      select state, query from pg_stat_activity
      where datname = current_database() and usename <> current_user and state <> 'idle'`;
    assert.deepEqual([...busy], []);
    release();
    const responses = await Promise.all(paying);
    assert.deepEqual([...new Set(responses.map(({ status }) => status))], [201]);
    assert.deepEqual([...new Set(responses.map(({ body }) => body.status))], ["completed"]);
  } finally {
    release();
    await service.close();
  }
});
