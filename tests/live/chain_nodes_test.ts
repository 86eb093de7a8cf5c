/** Payouts with nodes that lie about the prices of gas, are wrong or are limited. */

import assert from "node:assert/strict";
import { startNodeProxy } from "../support/chain/node_proxy.ts";
import { chainCase, newAddress } from "../support/chain/chain_case.ts";
import { providerCommands, setFlags } from "../support/live/provider_commands.ts";

const gwei = (amount: number) => `0x${(amount * 1e9).toString(16)}`;

chainCase("one node that lies about fees", async (given, signer, t) => {
  const { service: { sql }, world: { node }, account_id, transfer, paid, later, completed } = given;
  await using proxy = startNodeProxy(node.url);
  await given.set({ rpc_urls: proxy.url });
  await paid();
  const report = (base: string, tip: string, { has_blocks = false } = {}) => {
    proxy.change = (method, [block]) => {
      if (method === "eth_maxPriorityFeePerGas") return { result: tip };
      if (method === "eth_feeHistory" && has_blocks) {
        return { result: { baseFeePerGas: [base, base], reward: [[tip]] } };
      }
      if (method !== "eth_getBlockByNumber" || block !== "latest") return;
      return { result: { baseFeePerGas: base } };
    };
  };
  const { run, said } = providerCommands(sql);
  const operations = () => run("calls");
  const set = async (settings: Record<string, string>) => {
    await run("set", account_id, ...setFlags(settings));
    return said.at(-1)!;
  };
  const waits = async ({ id }: { id: string }) => {
    const [operation] = await sql`
      select needs_operator from pay.provider_operations where subject_id = ${id}`;
    return operation!.needs_operator;
  };
  const nonces = async () => {
    const rows = await sql`select from pay.chain_payouts where nonce is not null`;
    return rows.length;
  };

  await t.step("a tip of 10^15 wei is not paid, and takes no nonce", async () => {
    report(gwei(1), gwei(1e6));
    const made = await transfer(10);
    await later();
    assert.deepEqual([signer.nonces, await nonces()], [[], 0]);
    const shown = await operations();
    assert.match(shown, /not sent: the tip is 1000000 gwei at a base fee of 1, and max_tip 1: if/);
    assert.match(shown, /raise it; if not, change rpc_urls/);
    assert.equal(await waits(made), true);
    proxy.change = () => undefined;
    await later();
    assert.equal(await waits(made), false, "it is sent");
    await completed(made);
  });
  await t.step("a fee above max_fee waits until the operator raises it", async () => {
    report(gwei(100), gwei(1));
    const before = signer.nonces.length;
    const made = await transfer(10);
    await later();
    assert.equal(signer.nonces.length, before);
    assert.match(await operations(), /not sent: the fee is 0\.0121 ETH, and max_fee 0\.001: if/);
    assert.match(await set({ max_fee: "0.02" }), /Changed pac_/);
    await later();
    const [cost] = signer.costs.slice(before);
    assert.ok(cost! > 1e16 && cost! <= 2e16, `${cost} wei`);
    proxy.change = () => undefined;
    await completed(made);
    await set({ max_fee: "0.001" });
  });
  const mineAt = async (base: string) => {
    await node.call("anvil_setNextBlockBaseFeePerGas", base);
    await given.mined();
  };
  /** Faults of a node, and the requests to the signer. anvil refuses a fee below the base. */
  const TOO_LOW = [
    ["proposes far too little sends the prices of its newest blocks", "proposal", 1],
    ["has no newest blocks sends what it proposes", "no blocks", 1],
    ["reported far too little is corrected a minute later", "everything", 3],
  ] as const;
  for (const [name, wrong, requests] of TOO_LOW) {
    await t.step(`a node that ${name}`, async () => {
      await mineAt(gwei(4));
      if (wrong === "no blocks") {
        const error = { code: -32601, message: "the method does not exist" };
        proxy.change = (method) => method === "eth_feeHistory" ? { error } : undefined;
      } else report(gwei(0.05), "0x0", { has_blocks: wrong === "everything" });
      const before = signer.nonces.length;
      const made = await transfer(10);
      await later();
      proxy.change = () => undefined;
      if (wrong === "everything") await later();
      await mineAt(gwei(4));
      assert.equal(signer.nonces.length - before, requests);
      assert.ok(Math.max(...signer.costs.slice(before)) <= 1e15, "never above max_fee");
      await completed(made);
    });
  }
});

chainCase("payouts and a node that is wrong or limited", async (given, signer, t) => {
  const { service: { sql }, world: { node }, transfer, paid, statusOf, completed } = given;
  await using proxy = startNodeProxy(node.url);
  await given.set({ rpc_urls: `${proxy.url},${node.url}` });
  await paid();
  await t.step("one node alone chooses neither the fees nor the nonce", async () => {
    proxy.change = (method, [, block]) => {
      if (method === "eth_maxPriorityFeePerGas") return { result: "0x2386f26fc1000" };
      if (method === "eth_getTransactionCount" && block === "pending") return { result: "0x4d2" };
    };
    const made = await transfer(10);
    proxy.change = () => undefined;
    assert.deepEqual([signer.nonces.at(-1), signer.fees.at(-1)! < 1e11], [0, true]);
    await completed(made);
  });
  await t.step(
    "a used nonce is for the operator also without the state of old blocks",
    async () => {
      proxy.change = (method, [, block]) =>
        method === "eth_getTransactionCount" && block.startsWith("0x")
          ? { error: { code: -32000, message: "missing trie node" } }
          : undefined;
      const made = await transfer(10);
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
    await given.payByHand(newAddress(), await given.world.balanceOf(usdc, wallet));
    await given.mined();
    let looks = 0;
    const much = `0x${"f".repeat(10).padStart(64, "0")}`;
    await given.set({ rpc_urls: proxy.url });
    proxy.change = (method) =>
      method === "eth_call" && looks++ === 0 ? { result: much } : undefined;
    const made = await transfer(10);
    assert.deepEqual([looks, await statusOf(made)], [2, "pending"]);
    proxy.change = () => undefined;
    await given.world.transfer(usdc, wallet, 1_000);
    await given.mined();
    await given.later();
    await completed(made);
    await given.set({ rpc_urls: `${proxy.url},${node.url}` });
  });
});
