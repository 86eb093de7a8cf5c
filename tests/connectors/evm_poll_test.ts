/** The poll of a chain, against a real node with a real token. */

import assert from "node:assert/strict";
import { idGenerator } from "../../shared/core/ids.ts";
import { type Anvil, no_anvil, startAnvil } from "../support/chain/anvil.ts";
import { ChainWorld, type Hex } from "../support/chain/chain_world.ts";
import { chainAccount, WatchedBooks } from "../support/chain/watched.ts";

/** The parts of a case. */
type Case = Awaited<ReturnType<typeof openCase>>;

async function openCase(node: Anvil) {
  const world = await ChainWorld.open(node);
  const token = await world.deployToken();
  const account = chainAccount({ rpc_urls: node.url, "contract.USDC": token });
  const books = new WatchedBooks(3);
  const poll = (blocks: number) => async () => {
    await world.mine(blocks);
    return await books.poll(account);
  };
  await poll(1)();
  /** `mined` mines a block and polls, and `final` mines until everything is final. */
  return { world, token, books, account, mined: poll(1), final: poll(5) };
}

function chainTest(name: string, fn: (parts: Case) => Promise<void>): void {
  Deno.test({
    name,
    ignore: no_anvil,
    fn: async () => {
      const node = await startAnvil();
      try {
        await fn(await openCase(node));
      } finally {
        await node.close();
      }
    },
  });
}

/** Each case sends to the first address, and names the amounts and payments that the poll tells. */
const CASES: [
  name: string,
  send: (parts: Case, to: string) => Promise<unknown>,
  ...told: string[],
][] = [
  ["a transfer", ({ world, token }, to) => world.transfer(token, to, 5), "5 pay_0"],
  [
    "several transfers",
    async ({ world, token }, to) => {
      for (const amount of [5, 6]) await world.transfer(token, to, amount);
    },
    "5 pay_0",
    "6 pay_0",
  ],
  ["a transfer of zero", ({ world, token }, to) => world.transfer(token, to, 0)],
  ["a fake token", async ({ world }, to) => world.transfer(await world.deployToken(), to, 5)],
  ["a failed transaction", ({ world, token }, to) => world.transfer(token, to, 10 ** 15 + 1)],
  [
    "the coin of the chain",
    ({ world }, to) =>
      world.node.call("eth_sendTransaction", { from: world.payer, to, value: "0x5" }),
  ],
];

for (const [name, send, ...told] of CASES) {
  chainTest(`poll() ${name}: ${told.length} final`, async (parts) => {
    await send(parts, parts.books.list[0]!.address);
    assert.deepEqual(await parts.mined(), told.map((each) => `received ${each}`));
    assert.deepEqual(await parts.mined(), [], "no provider event comes twice");
    assert.deepEqual(await parts.final(), told.map((each) => `succeeded ${each}`));
    assert.deepEqual(await parts.final(), []);
  });
}

chainTest("poll() another token of the account keeps its currency", async (parts) => {
  const other = await parts.world.deployToken();
  const { settings } = parts.account;
  const account = chainAccount({ ...settings, "contract.USDT": other });
  await parts.world.transfer(other, parts.books.list[0]!.address, 5);
  await parts.world.mine();
  await parts.books.poll(account);
  assert.deepEqual([...parts.books.provider_events.values()].map(({ currency }) => currency), [
    "USDT",
  ]);
});

chainTest("poll() a transfer that the chain undoes is gone, and comes again", async (parts) => {
  const { world, token, books, account } = parts;
  await world.transfer(token, books.list[0]!.address, 5);
  assert.deepEqual(await parts.mined(), ["received 5 pay_0"]);
  await world.node.call("anvil_reorg", 1, []);
  assert.deepEqual(await books.poll(account), ["reorged 5 pay_0"]);
  await world.transfer(token, books.list[0]!.address, 5);
  assert.deepEqual(await parts.mined(), ["received 5 pay_0"]);
  assert.deepEqual(await parts.final(), ["succeeded 5 pay_0"]);
});

chainTest(
  "poll() shows a moved transfer in its new block before it takes the old one back",
  async (parts) => {
    const { world: { node }, token, books, account } = parts;
    const hash = await parts.world.transfer(token, books.list[0]!.address, 5);
    assert.deepEqual(await parts.mined(), ["received 5 pay_0"]);
    // Between the two a payment whose time is over would have no money.
    books.list[0]!.expires_at = "2001-01-01T00:00:00.000Z";
    const transaction = await node.call("eth_getRawTransactionByHash", hash);
    await node.call("anvil_reorg", 1, [[transaction, 0]]);
    assert.deepEqual(await books.poll(account), ["received 5 pay_0"]);
    assert.deepEqual(await books.poll(account), ["reorged 5 pay_0"]);
    assert.deepEqual(await parts.final(), ["succeeded 5 pay_0"]);
  },
);

chainTest(
  "poll() reports expiry by the time of the chain, once, but not after money",
  async (parts) => {
    const { world, token, books } = parts;
    const head = await world.node.call<{ timestamp: Hex }>("eth_getBlockByNumber", "latest", false);
    const soon = new Date((Number(head.timestamp) + 1000) * 1000).toISOString();
    for (const deposit of books.list) deposit.expires_at = soon;
    assert.deepEqual(await parts.mined(), []);
    await world.node.call("evm_increaseTime", 1001);
    books.list[1]!.has_open_events = true;
    await world.transfer(token, books.list[0]!.address, 5);
    assert.deepEqual(await parts.mined(), ["received 5 pay_0", "failed 0 pay_2"]);
  },
);

chainTest(
  "poll() begins before its account was added, if its first reading is late",
  async (parts) => {
    const { world, token, books, account } = parts;
    const head = await world.node.call<{ timestamp: Hex }>("eth_getBlockByNumber", "latest", false);
    const added_ms = (Number(head.timestamp) + 900) * 1000;
    await world.node.call("evm_increaseTime", 1_000);
    await world.transfer(token, books.list[0]!.address, 5);
    await world.mine(2_000);
    books.cursor = null;
    const added = { ...account, id: idGenerator(added_ms)("pac_") };
    assert.deepEqual(await books.poll(added), ["succeeded 5 pay_0"]);
  },
);

chainTest("poll() waits when the final block is not the one that it has read", async (parts) => {
  await parts.final();
  await parts.world.node.call("anvil_reorg", 6, []);
  await assert.rejects(parts.mined(), /has undone the final block/);
});

Deno.test({
  name: "poll() waits when nodes disagree, or one is behind",
  ignore: no_anvil,
  fn: async () => {
    const nodes = await Promise.all([startAnvil(), startAnvil()]);
    try {
      const [one, other] = await Promise.all(nodes.map(ChainWorld.open));
      const token = await one!.deployToken();
      await other!.mine();
      const rpc_urls = nodes.map(({ url }) => url).join();
      const books = new WatchedBooks(1);
      await assert.rejects(
        books.poll(chainAccount({ rpc_urls, "contract.USDC": token })),
        /disagree about the block/,
      );
      await other!.node.call("evm_increaseTime", 1000);
      await other!.mine();
      await assert.rejects(
        books.poll(chainAccount({ rpc_urls, "contract.USDC": token })),
        /is behind the other/,
      );
      assert.equal(books.cursor, null);
    } finally {
      await Promise.all(nodes.map((node) => node.close()));
    }
  },
});
