/** Payouts in stablecoins that can be mistaken for others, and nodes that are wrong or limited. */

import assert from "node:assert/strict";
import { runWorkCommand } from "../../apps/operator/provider_work.ts";
import { connectorsOf } from "../../apps/operator/operator_database.ts";
import { idGenerator } from "../../shared/core/ids.ts";
import type { Hex } from "../support/chain/chain_world.ts";
import { startNodeProxy } from "../support/chain/node_proxy.ts";
import { balanceOf, newAddress, payoutCase, transferOf } from "../support/chain/payout_case.ts";

payoutCase("payouts and a node that is wrong or limited", async (given, signer, t) => {
  const { service: { sql }, world: { node }, transfer, paid, statusOf, final } = given;
  await using proxy = startNodeProxy(node.url);
  await given.set({ rpc_urls: `${proxy.url},${node.url}` });
  await paid();
  await t.step("one node alone chooses neither the fees nor the nonce", async () => {
    proxy.change = (method, [, block]) => {
      if (method === "eth_maxPriorityFeePerGas") return { result: "0x2386f26fc1000" };
      if (method === "eth_getTransactionCount" && block === "pending") return { result: "0x4d2" };
    };
    const made = await transfer(10, newAddress());
    proxy.change = () => undefined;
    assert.deepEqual([signer.nonces.at(-1), signer.fees.at(-1)! < 1e11], [0, true]);
    await final();
    assert.equal(await statusOf(made), "completed");
  });
  await t.step("without addresses to watch, the range halves until the node takes it", async () => {
    await sql`update pay.deposit_addresses set watch_until = null`;
    proxy.change = (method, [filter]) =>
      method === "eth_getLogs" && Number(filter.toBlock) - Number(filter.fromBlock) >= 20
        ? { error: { code: -32005, message: "query exceeds max block range 20" } }
        : undefined;
    const made = await transfer(10, newAddress());
    await given.mined(100);
    assert.equal(await statusOf(made), "completed");
    proxy.change = () => undefined;
  });
  await t.step("fees rise after first ones of zero", async () => {
    await node.call("anvil_setNextBlockBaseFeePerGas", "0x5f5e100");
    await node.call("anvil_mine");
    proxy.change = (method, [block]) =>
      method === "eth_maxPriorityFeePerGas"
        ? { result: "0x0" }
        : method === "eth_getBlockByNumber" && block === "latest"
        ? { result: { baseFeePerGas: "0x0" } }
        : undefined;
    const made = await transfer(10, newAddress());
    proxy.change = () => undefined;
    await given.later(200);
    await final();
    assert.equal(await statusOf(made), "completed");
  });
  await t.step(
    "a used nonce is for the operator also without the state of old blocks",
    async () => {
      proxy.change = (method, [, block]) =>
        method === "eth_getTransactionCount" && block.startsWith("0x")
          ? { error: { code: -32000, message: "missing trie node" } }
          : undefined;
      const made = await transfer(10, newAddress());
      const nonce = `0x${signer.nonces.at(-1)!.toString(16)}`;
      await node.call("anvil_dropAllTransactions");
      await node.call("eth_sendTransaction", { from: given.wallet, to: given.wallet, nonce });
      await given.mined();
      const state = async () => {
        const [operation] =
          await sql`select state from pay.provider_operations where subject_id = ${made.id}`;
        return operation!.state;
      };
      await given.later();
      assert.equal(await state(), "pending");
      await given.later(7_300);
      assert.equal(await state(), "operator");
      proxy.change = () => undefined;
    },
  );
  await t.step("money that is gone after the look at the balance: it waits", async () => {
    const { wallet, usdc } = given;
    const data = transferOf(newAddress(), await balanceOf(given, wallet));
    await node.call("eth_sendTransaction", { from: wallet, to: usdc, gas: "0xf4240", data });
    await given.mined();
    let looks = 0;
    const much = `0x${"f".repeat(10).padStart(64, "0")}`;
    await given.set({ rpc_urls: proxy.url });
    proxy.change = (method) =>
      method === "eth_call" && looks++ === 0 ? { result: much } : undefined;
    const made = await transfer(10, newAddress());
    assert.deepEqual([looks, await statusOf(made)], [2, "pending"]);
    proxy.change = () => undefined;
    await given.world.transfer(usdc, wallet, 1_000);
    await given.mined();
    await given.later();
    await final();
    assert.equal(await statusOf(made), "completed");
    await given.set({ rpc_urls: `${proxy.url},${node.url}` });
  });
  await t.step("many payouts in one block take few requests", async () => {
    const made = [];
    for (let i = 0; i < 60; i++) made.push(await transfer(10, newAddress()));
    await given.world.mine(8);
    proxy.requests = 0;
    await given.work();
    for (const each of made) assert.equal(await statusOf(each), "completed");
    assert.ok(proxy.requests < 40, `${proxy.requests} requests`);
  });
});

payoutCase("each transfer settles one payout", async (given, _signer, t) => {
  const { service, account_id, refund, paid, statusOf, final, wallet, usdc } = given;
  const { sql } = service;
  const { node } = given.world;
  await given.set({ signer_url: null });
  const payment = await paid();
  const to = newAddress();
  const exported = async (id: string) =>
    (await sql`select from pay.export_payouts(${id}, false)`).length;
  const data = transferOf(to, 100);
  const pay = () =>
    node.call("eth_sendTransaction", { from: wallet, to: usdc, gas: "0xf4240", data });
  await t.step("a transfer that is read again settles no other payout", async () => {
    const first = await refund(payment, 100, to);
    assert.equal(await exported(account_id), 1);
    await pay();
    await final();
    assert.equal(await statusOf(first), "completed");
    const other = await refund(payment, 100, to);
    await exported(account_id);
    await pay();
    const { hash } = await node.call<{ hash: Hex }>(
      "eth_getBlockByNumber",
      "0x1",
      false,
    );
    await given.world.mine(5);
    const cursor = JSON.stringify({ final: { number: 1, hash }, span: 2_000, pass: null });
    await sql`select pay.reread_account(${account_id}, ${cursor})`;
    await given.work();
    assert.equal(await statusOf(other), "completed");
  });
  await t.step("an equal payout of another account waits with its export", async () => {
    const { environment_id } = service.live;
    const first = await refund(payment, 100, to);
    const second_id = idGenerator(Date.now())("pac_");
    await sql`select pay.disable_provider_account(p_id => ${account_id})`;
    await sql`select pay.add_provider_account(${second_id}, ${environment_id}, 'evm',
      ${["stablecoin"]}, (select settings::text from pay.provider_accounts), null, ${[]})`;
    const second = await refund(await paid(), 100, to);
    assert.deepEqual([await exported(account_id), await exported(second_id)], [1, 0]);
    await pay();
    await final();
    assert.deepEqual([await statusOf(first), await statusOf(second)], ["completed", "pending"]);
    assert.equal(await exported(second_id), 1);
  });
});

payoutCase(
  "a payout that is paid after the operator has settled it as failed",
  async (given, signer) => {
    const { service: { sql, deps, ...service }, statusOf, final } = given;
    const payment = await given.paid();
    signer.way = "lost";
    const [refund, transfer] = [
      await given.refund(payment, 100, newAddress()),
      await given.transfer(200, newAddress()),
    ];
    await given.world.mine(8);
    // The reading is stalled, so nobody knows the transactions.
    const stop = () => sql`update pay.provider_cursors set polled_at = now() + interval '1 year'`;
    await stop();
    await service.setClock(Date.now() + 2 * 3_600_000);
    await deps.provider_worker.notify();
    const operations = await sql<{ id: string; state: string }[]>`
    select id, state from pay.provider_operations where op in ('refund', 'transfer')`;
    assert.deepEqual(operations.map(({ state }) => state), ["operator", "operator"]);
    for (const { id } of operations) {
      await runWorkCommand({ action: "settle", id, reference: null, syncs: true, is_json: false }, {
        sql,
        findConnector: connectorsOf(sql),
        env: () => undefined,
        print: () => {},
      });
    }
    await final();
    assert.deepEqual([await statusOf(refund), await statusOf(transfer)], ["failed", "failed"]);
    const found = await sql`select reason from pay.list_reported_events() order by amount_minor`;
    assert.deepEqual(found.map(({ reason }) => reason), [
      "the refund succeeded at the provider, but is failed here",
      "the transfer succeeded on the chain, but is failed here",
    ]);
  },
);
