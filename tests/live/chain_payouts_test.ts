/**
 * Refunds and transfers in stablecoins: the service, a real node with a real token, and a signer in
 * front of the node. At the end of each test the ledger has what came in less what went out.
 */

import assert from "node:assert/strict";
import { type Hex, transferOf } from "../support/chain/chain_world.ts";
import { chainCase, MINUTE_S, newAddress } from "../support/chain/chain_case.ts";
import { addAccount } from "../support/database/provider_flow.ts";
import { operate } from "../support/live/provider_commands.ts";
import { startSecondService } from "../support/service/second_service.ts";

chainCase(
  "a refund is paid once, and completes when its block is final",
  async (given, signer, t) => {
    const { paid, refund, statusOf, received, later, mined, completed } = given;
    await t.step("one response", async () => {
      const made = await refund(await paid(), 400);
      assert.equal(made.status, "pending");
      await mined();
      assert.equal(await statusOf(made), "pending", "its block is not final");
      await completed(made);
    });
    await t.step("lost responses: the same nonce again", async () => {
      signer.way = "lost";
      const before = signer.nonces.length;
      const made = await refund(await paid(), 300);
      await later();
      await later();
      assert.equal(new Set(signer.nonces.slice(before)).size, 1);
      assert.equal(signer.nonces.length - before, 3);
      // It is found without its hash.
      await completed(made);
      signer.way = "well";
    });
    await t.step("a signer that is away, and then responds", async () => {
      signer.way = "dead";
      const before = signer.nonces.length;
      const made = await refund(await paid(), 200);
      signer.way = "refused";
      await later();
      signer.way = "well";
      await later();
      await completed(made);
      assert.equal(new Set(signer.nonces.slice(before)).size, 1);
    });
    await t.step("a stuck transaction is replaced by one with higher fees", async () => {
      const before = signer.nonces.length;
      const made = await refund(await paid(), 100);
      await later();
      assert.equal(signer.nonces.length, before + 1, "it waits for a block");
      await later(200);
      const [first, second] = signer.fees.slice(before);
      assert.ok(second! >= first! * 1.125, `${first} and ${second}`);
      await completed(made);
    });
    await t.step("a block that is undone takes nothing back before it is final", async () => {
      const made = await refund(await paid(), 50);
      await mined();
      await given.world.node.call("anvil_reorg", 1, []);
      await given.world.node.call("anvil_dropAllTransactions");
      await later();
      assert.deepEqual([await statusOf(made), await received(made.to)], ["pending", []]);
      await later(200);
      await completed(made);
    });
  },
);

chainCase("transfers of two workers have nonces of their own", async (given, signer) => {
  const { service, transfer, statusOf, completed, paid } = given;
  for (let i = 0; i < 3; i++) await paid();
  signer.way = "dead";
  const made = await Promise.all(Array.from({ length: 8 }, (_, i) => transfer(100 + i)));
  // The signer may have sent it already: nobody gives its money back.
  const { id } = made[0]!;
  const path = `/api-v1-payments/v1/transfers/${id}/cancel`;
  const refused = await service.call("POST", path, { key: service.live.text });
  assert.deepEqual([refused.status, refused.body.error?.code], [402, "provider_refused"]);
  assert.equal(await statusOf(made[0]!), "pending");
  signer.way = "well";
  const second = startSecondService(service);
  try {
    await service.setClock(Date.now() + MINUTE_S * 1000);
    await service
      .sql`update pay.provider_operations set leased_until = null where state = 'pending'`;
    await Promise.all([service.deps.provider_worker.notify(), second.work()]);
  } finally {
    await second.close();
  }
  await completed(...made);
  const rows = await service.sql`select nonce from pay.chain_payouts`;
  assert.equal(new Set(rows.map(({ nonce }) => nonce)).size, made.length);
  const url = `/api-v1-payments/v1/transfers/${id}`;
  const { body } = await service.call("GET", url, { key: service.live.text });
  assert.match(body.destination.wallet.tx_hash, /^0x[0-9a-f]{64}$/);
});

chainCase("payouts that cannot be paid", async (given, signer, t) => {
  const { service, refund, paid, statusOf, received, later, final, completed, wallet, usdc } =
    given;
  const { node } = given.world;
  const reply = async (id: string) => {
    const [row] = await service.sql`
      select state, last_reply from pay.provider_operations where ${id} in (refund_id, subject_id)
        and op in ('refund', 'transfer')`;
    return row!;
  };
  await t.step("money for one of two: the other one waits for more", async () => {
    const payment = await paid();
    const left = await given.world.balanceOf(usdc, wallet);
    await given.payByHand(newAddress(), left - 500);
    await given.mined();
    const one = await refund(payment, 400);
    const other = await refund(payment, 300);
    assert.match((await reply(other.id)).last_reply, /has 0\.000100 USDC.* needs 0\.000300 USDC/);
    await given.world.transfer(usdc, wallet, 10_000);
    await given.mined();
    await later();
    await completed(one, other);
  });
  await t.step("a reverted one fails, and the amount can be refunded again", async () => {
    const payment = await paid();
    const made = await refund(payment, 400);
    // A token that stops all transfers.
    const code = await node.call("eth_getCode", usdc, "latest");
    await node.call("anvil_setCode", usdc, "0x60006000fd");
    await given.mined();
    await node.call("anvil_setCode", usdc, code);
    await final();
    assert.equal(await statusOf(made), "failed");
    await completed(await refund(payment, 400));
  });
  await t.step("a nonce that somebody else has used is for the operator", async () => {
    const made = await refund(await paid(), 100);
    const [{ nonce }] = await service.sql`
      select max(nonce)::int as nonce from pay.chain_payouts` as [{ nonce: number }];
    await node.call("anvil_dropAllTransactions");
    await node.call("eth_sendTransaction", {
      from: wallet,
      to: wallet,
      nonce: `0x${nonce.toString(16)}`,
    });
    await final();
    await later();
    assert.equal(await statusOf(made), "pending");
    await later(3_700);
    assert.equal((await reply(made.id)).state, "operator");
    assert.deepEqual([await statusOf(made), await received(made.to)], ["pending", []]);
  });
  await t.step("a wrong destination is refused, and nothing is sent", async () => {
    const before = signer.nonces.length;
    for (const address of [usdc, wallet]) {
      const made = await refund(await paid(), 10, address);
      assert.equal(made.status, "failed");
    }
    const { status, failure_code } = await given.transfer(10, undefined, "polygon");
    assert.deepEqual([status, failure_code], ["failed", "provider_refused"]);
    assert.equal(signer.nonces.length, before);
  });
});

chainCase(
  "people sign payouts without a signer, and the chain settles them",
  async (given, signer, t) => {
    const { service, refund, paid, statusOf, received, final, later, wallet, usdc } = given;
    await given.set({ signer_url: null });
    const payment = await paid();
    const to = newAddress();
    const equal = [await refund(payment, 100, to), await refund(payment, 100, to)];
    const [environment] = await service.sql<{ account: string }[]>`
      select account from pay.environments where id = ${service.live.environment_id}`;
    const { account } = environment!;
    const run = async (is_again = false) => {
      const flags = ["--account", account, "--network", "base", ...is_again ? ["--again"] : []];
      const { out, said } = await operate(service.sql, ["payouts", "export", ...flags]);
      return { batch: JSON.parse(out), said: said.join("") };
    };
    await t.step("the batch has each of them once", async () => {
      const { batch } = await run();
      assert.equal(batch.chainId, "31337");
      assert.equal(batch.meta.createdFromSafeAddress.toLowerCase(), wallet);
      assert.match(batch.meta.checksum, /^0x[0-9a-f]{64}$/);
      const call = { to: usdc.toLowerCase(), value: "0", data: transferOf(to, 100) };
      assert.deepEqual(
        batch.transactions.map(({ to, value, data }: Record<string, string>) => ({
          to: to!.toLowerCase(),
          value,
          data,
        })),
        [call, call],
      );
      await assert.rejects(run(), /no payout to export/);
      const again = await run(true);
      assert.equal(again.batch.transactions.length, 2);
      assert.match(again.said, /pays twice/);
    });
    await t.step("each transfer settles one of them", async () => {
      await given.set({ signer_url: signer.url });
      await later();
      assert.deepEqual(signer.nonces, [], "the signer gets nothing that people sign");
      await given.payByHand(to, 100);
      await final();
      const statuses = async () => [await statusOf(equal[0]), await statusOf(equal[1])];
      assert.deepEqual(await statuses(), ["completed", "pending"]);
      await given.payByHand(to, 100);
      await final();
      assert.deepEqual(await statuses(), ["completed", "completed"]);
      assert.deepEqual(await received(to), [100, 100]);
    });
  },
);

chainCase("each transfer settles one payout", async (given, _signer, t) => {
  const { service, account_id, refund, paid, statusOf, final } = given;
  const { sql } = service;
  const { node } = given.world;
  await given.set({ signer_url: null });
  const payment = await paid();
  const to = newAddress();
  const exported = async (id: string) =>
    (await sql`select from pay.export_payouts(${id}, false)`).length;
  await t.step("a transfer that is read again settles no other payout", async () => {
    const first = await refund(payment, 100, to);
    assert.equal(await exported(account_id), 1);
    await given.payByHand(to, 100);
    await final();
    assert.equal(await statusOf(first), "completed");
    const other = await refund(payment, 100, to);
    await exported(account_id);
    await given.payByHand(to, 100);
    const { hash } = await node.call<{ hash: Hex }>("eth_getBlockByNumber", "0x1", false);
    await given.world.mine(5);
    const cursor = JSON.stringify({ final: { number: 1, hash }, span: 2_000, pass: null });
    await sql`select pay.reread_account(${account_id}, ${cursor})`;
    await given.work();
    assert.equal(await statusOf(other), "completed");
  });
  await t.step("an equal payout of another account waits with its export", async () => {
    const { environment_id } = service.live;
    const first = await refund(payment, 100, to);
    await sql`select pay.disable_provider_account(p_id => ${account_id})`;
    const [{ settings }] = await sql<[{ settings: Record<string, string> }]>`
      select settings from pay.provider_accounts`;
    const second_id = await addAccount(sql, environment_id, { connector: "evm", settings });
    const second = await refund(await paid(), 100, to);
    assert.deepEqual([await exported(account_id), await exported(second_id)], [1, 0]);
    await given.payByHand(to, 100);
    await final();
    assert.deepEqual([await statusOf(first), await statusOf(second)], ["completed", "pending"]);
    assert.equal(await exported(second_id), 1);
  });
});
