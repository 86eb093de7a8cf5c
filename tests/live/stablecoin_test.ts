/**
 * Live payments by stablecoin from the create to the ledger, with a node of a chain and a real
 * token. At the end of each test the ledger has the same sums as our addresses on the chain.
 */

import assert from "node:assert/strict";
import { checkBooks } from "../../apps/operator/check_books.ts";
import { depositAddress } from "../../shared/connectors/evm/evm_address.ts";
import { XPUB } from "../support/chain/watched.ts";
import {
  chainBalances,
  ledgerBalances,
  type StablecoinCase,
  stablecoinCase,
  unapplied,
} from "../support/chain/stablecoin_case.ts";
import { until } from "../support/common/until.ts";
import { launchServer } from "../support/service/server_process.ts";

/** Longer than the time of a payment. */
const HOUR_AND_MORE_S = 4_000;

/**
 * Asserts that the ledger agrees with the chain to the last unit, and that no invariant is broken.
 */
async function assertBalanced(given: StablecoinCase): Promise<void> {
  const { sql } = given.service;
  assert.deepEqual(await ledgerBalances(given), await chainBalances(given));
  // Reported provider events are for the operator. After they are dismissed, nothing may be left.
  await sql`select pay.dismiss_provider_event(account_id, reference, 'seen') from pay.list_reported_events()`;
  const verdicts = await checkBooks(sql);
  assert.deepEqual(verdicts.flatMap(({ breaches, examples }) => breaches > 0 ? examples : []), []);
}

async function eventsOf({ service }: StablecoinCase, { id }: { id: string }): Promise<string[]> {
  const rows = await service.sql<{ type: string }[]>`
    select type from pay.events where subject_id = ${id} order by sequence`;
  return rows.map(({ type }) => type.replace("payment.", ""));
}

/** Returns the reasons that the operator reads. */
async function reported({ service: { sql } }: StablecoinCase): Promise<string[]> {
  const rows = await sql`select amount_minor::int, outcome from pay.list_reported_events()`;
  return rows.map(({ amount_minor, outcome }) => `${outcome} ${amount_minor}`);
}

stablecoinCase(
  "a payment by stablecoin completes when its transfers are final",
  async (given, t) => {
    const { send, shown, mined, final } = given;
    await t.step("one transfer", async () => {
      const payment = await given.create();
      const hash = await send(payment, 1000);
      await mined();
      assert.deepEqual(await shown(payment), ["processing 1000"]);
      await mined();
      assert.deepEqual(await shown(payment), ["processing 1000"]);
      await final();
      assert.deepEqual(await shown(payment), ["completed 1000"]);
      assert.deepEqual(await eventsOf(given, payment), [
        "created",
        "pending",
        "processing",
        "completed",
      ]);
      const [event] = await given.service.sql`
      select body #>> '{chain,tx_hash}' as tx_hash from pay.provider_events
      where subject_id = ${payment.id} and state = 'succeeded'`;
      assert.equal(event!.tx_hash, hash);
    });
    await t.step("several transfers in blocks of their own", async () => {
      const payment = await given.create();
      for (const [amount, seen] of [[300, 300], [300, 600], [400, 1000]] as const) {
        await send(payment, amount);
        await mined();
        assert.deepEqual(await shown(payment), [`processing ${seen}`]);
      }
      await final();
      assert.deepEqual(await shown(payment), ["completed 1000"]);
      assert.equal(await unapplied(given, payment.id), 0);
    });
    await t.step("a first part is final before the second one is sent", async () => {
      const payment = await given.create();
      await send(payment, 999);
      await final();
      assert.deepEqual(await shown(payment), ["processing 999"]);
      assert.equal(await unapplied(given, payment.id), 999);
      await send(payment, 1);
      await final();
      assert.deepEqual(await shown(payment), ["completed 1000"]);
      assert.equal(await unapplied(given, payment.id), 0);
    });
    await t.step("an exchange pays two payments in one transaction", async () => {
      const payments = [await given.create(), await given.create()];
      const { world, usdc } = given;
      const exchange = await world.deployExchange();
      await world.transfer(usdc, exchange, 5_000);
      const [one, other] = payments.map(({ next_action }) => next_action.address);
      await world.payAll(exchange, usdc, [one, other, one], 500);
      await mined();
      assert.deepEqual(await shown(...payments), ["processing 1000", "processing 500"]);
      await world.payAll(exchange, usdc, [other], 500);
      await final();
      assert.deepEqual(await shown(...payments), ["completed 1000", "completed 1000"]);
    });
    assert.deepEqual(await reported(given), []);
    await assertBalanced(given);
  },
);

stablecoinCase("a chain that undoes a transfer takes the payment back", async (given, t) => {
  const { send, shown, mined, final, work, world: { node } } = given;
  await t.step("the only transfer: pending, and the same address again", async () => {
    const payment = await given.create();
    await send(payment, 1000);
    await mined();
    assert.deepEqual(await shown(payment), ["processing 1000"]);
    await node.call("anvil_reorg", 1, []);
    await work();
    assert.deepEqual(await shown(payment), ["pending 0"]);
    const url = `/api-v1-payments/v1/payments/${payment.id}`;
    const { body } = await given.service.call("GET", url, { key: given.service.live.text });
    assert.deepEqual(body.next_action, payment.next_action);
    await send(payment, 1000);
    await final();
    assert.deepEqual(await shown(payment), ["completed 1000"]);
    const types = ["created", "pending", "processing", "pending", "completed"];
    assert.deepEqual(await eventsOf(given, payment), types);
  });
  await t.step("one of two transfers: the other one counts", async () => {
    const payment = await given.create();
    await send(payment, 600);
    await mined();
    await send(payment, 400);
    await mined();
    await node.call("anvil_reorg", 1, []);
    await work();
    assert.deepEqual(await shown(payment), ["processing 600"]);
    await send(payment, 400);
    await final();
    assert.deepEqual(await shown(payment), ["completed 1000"]);
  });
  await t.step("another token at the address: nothing changes", async () => {
    const payment = await given.create();
    await send(payment, 600);
    await mined();
    await send(payment, 300, given.usdt);
    await mined();
    await node.call("anvil_reorg", 1, []);
    await work();
    assert.deepEqual(await shown(payment), ["processing 600"]);
    await send(payment, 400);
    await final();
    assert.deepEqual(await shown(payment), ["completed 1000"]);
  });
  await t.step("a transfer in another block of the new chain counts once", async () => {
    const payment = await given.create();
    const hash = await send(payment, 1000);
    await mined();
    const transaction = await node.call("eth_getRawTransactionByHash", hash);
    await node.call("anvil_reorg", 1, [[transaction, 0]]);
    await mined();
    assert.deepEqual(await shown(payment), ["processing 1000"]);
    await final();
    assert.deepEqual(await shown(payment), ["completed 1000"]);
  });
  await t.step("the whole amount after the time, in a block that is undone", async () => {
    const payment = await given.create();
    await mined();
    const head = await node.call<{ timestamp: string }>("eth_getBlockByNumber", "latest", false);
    await given.service.sql`update pay.deposit_addresses
      set expires_at = to_timestamp(${Number(head.timestamp) + 30})
      where payment_id = ${payment.id}`;
    await send(payment, 1000);
    await node.call("evm_increaseTime", 100);
    await mined();
    await work();
    // The chain is before the end of the time again.
    await node.call("anvil_reorg", 1, []);
    await work();
    assert.deepEqual(await shown(payment), ["pending 0"]);
    await node.call("evm_increaseTime", 200);
    await mined();
    assert.deepEqual(await shown(payment), ["failed 0 expired"]);
  });
  await t.step("a transfer that is final in another block before the next reading", async () => {
    const payment = await given.create();
    const hash = await send(payment, 1000);
    await mined();
    const transaction = await node.call("eth_getRawTransactionByHash", hash);
    await node.call("anvil_reorg", 1, [[transaction, 0]]);
    await final();
    assert.deepEqual(await shown(payment), ["completed 1000"]);
  });
  assert.deepEqual(await reported(given), []);
  await assertBalanced(given);
});

stablecoinCase("money that does not fit is booked and reported", async (given, t) => {
  const { create, send, shown, mined, final, pass, work } = given;
  await t.step("more than requested: completed, and the rest is unapplied", async () => {
    const payment = await create();
    await send(payment, 1500);
    await final();
    assert.deepEqual(await shown(payment), ["completed 1500"]);
    assert.equal(await unapplied(given, payment.id), 500);
  });
  await t.step("another transfer after the completion is unapplied", async () => {
    const payment = await create();
    await send(payment, 1000);
    await final();
    await send(payment, 70);
    await final();
    assert.deepEqual(await shown(payment), ["completed 1000"]);
    assert.equal(await unapplied(given, payment.id), 70);
  });
  await t.step("a token that is not requested, a fake one, and the coin of the chain", async () => {
    const payment = await create();
    const { world, account_id } = given;
    const { address } = payment.next_action;
    await send(payment, 1000, given.usdt);
    await send(payment, 1000, await world.deployToken());
    await world.node.call("eth_sendTransaction", { from: world.payer, to: address, value: "0x5" });
    await send(payment, 0);
    await final();
    assert.deepEqual(await shown(payment), ["pending 0"]);
    assert.equal(await unapplied(given, account_id), 1000);
    await send(payment, 1000);
    await final();
    assert.deepEqual(await shown(payment), ["completed 1000"]);
  });
  await t.step(
    "after the time: expired, underpaid, and final with money of the last minute",
    async () => {
      const payments = [await create(), await create(), await create()];
      const [, part, last] = payments;
      await send(part, 400);
      await final();
      await send(last, 1000);
      await mined();
      await pass(HOUR_AND_MORE_S);
      await work();
      await work();
      const failed = ["failed 0 expired", "failed 400 underpaid"];
      assert.deepEqual(await shown(...payments), [...failed, "processing 1000"]);
      await final();
      assert.deepEqual(await shown(...payments), [...failed, "completed 1000"]);
      const [none, ...late] = payments;
      for (const payment of late) await send(payment, 600);
      await send(none, 1000);
      await final();
      assert.deepEqual(await shown(...payments), [...failed, "completed 1000"]);
      const left = await Promise.all(payments.map(({ id }) => unapplied(given, id)));
      assert.deepEqual(left, [1000, 1000, 600]);
    },
  );
  const reports = await reported(given);
  assert.deepEqual(reports.filter((each) => each.startsWith("unmatched")), ["unmatched 1000"]);
  await assertBalanced(given);
});

stablecoinCase(
  "a server that dies before it records the address keeps it",
  async (given) => {
    const { service: { sql, live, database } } = given;
    const pay = (base_url: string) =>
      fetch(`${base_url}/api-v1-payments/v1/payments`, {
        method: "POST",
        headers: {
          Authorization: `Bearer ${live.text}`,
          "Content-Type": "application/json",
          "Idempotency-Key": "the-only-one",
        },
        body: JSON.stringify({ amount: 1000, currency: "USDC", method_kind: "stablecoin" }),
      });
    const first = await launchServer(database.functions_url, { lease_ms: 1_000 });
    let second: typeof first | null = null;
    try {
      const waiting = await sql.reserve();
      // The reservation inserts no provider event, and the record does. So the record waits, and
      // the reservation is committed.
      await waiting`begin`;
      await waiting`lock table pay.provider_events in share row exclusive mode`;
      const lost = pay(first.base_url).then(() => "created", () => "lost");
      const blocked = () =>
        sql`select pid from pg_stat_activity
        where wait_event_type = 'Lock' and datname = current_database()
          and query like '%pay.record(%'`;
      await until("the record waits", async () => (await blocked()).length > 0);
      const [backend] = await blocked();
      await first.kill();
      // Without its client the record would still be committed.
      await sql`select pg_terminate_backend(${backend!.pid})`;
      await waiting`rollback`;
      waiting.release();
      assert.equal(await lost, "lost");
      const reserved = await sql`
      select d.xpub_index::int, c.provider_reference
      from pay.deposit_addresses d join pay.provider_operations c on c.id = d.operation_id`;
      assert.deepEqual(reserved.map((row) => ({ ...row })), [
        { xpub_index: 0, provider_reference: null },
      ]);
      second = await launchServer(database.functions_url, { lease_ms: 1_000 });
      await sql`update pay.provider_operations set next_attempt_at = now(), leased_until = null`;
      const { base_url } = second;
      // deno-lint-ignore no-explicit-any
      let body: any;
      await until("the address is recorded", async () => {
        body = await (await pay(base_url)).json();
        return Boolean(body.next_action);
      });
      assert.equal(body.next_action.address, depositAddress(XPUB, 0));
      const [count] = await sql`
      select (select count(*) from pay.deposit_addresses)::int as addresses,
        (select next_index from pay.xpub_counters)::int as next_index`;
      assert.deepEqual({ ...count }, { addresses: 1, next_index: 1 });
      await second.kill();
      await given.send(body, 1000);
      // It can have died while it read the chain, and its last statement can still take the lease.
      await until("the payment is completed", async () => {
        await sql`update pay.provider_cursors set leased_until = null`;
        await given.final();
        return (await given.shown(body)).join() === "completed 1000";
      });
      await assertBalanced(given);
    } finally {
      await first.kill();
      await second?.kill();
    }
  },
);
