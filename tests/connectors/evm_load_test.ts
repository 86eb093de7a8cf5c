/** The poll of a chain with a node's limits, and with many payments. */

import assert from "node:assert/strict";
import process from "node:process";
import type { EventContext } from "../../shared/domain/changes/event.ts";
import { applyToAccount } from "../../shared/domain/providers/apply_to_account.ts";
import type { ChainPayout } from "../../shared/store/chain_store.ts";
import { chainAccount, WatchedBooks } from "../support/chain/watched.ts";
import {
  DOUBLE_PAYER,
  DOUBLE_TOKEN,
  doubleHash,
  startNodeDouble,
} from "../support/chain/node_double.ts";

type AccountEvent = Parameters<typeof applyToAccount>[0];

/** A payout of one unit that was sent with the nonce 0. */
function payoutTo(destination: string): ChainPayout {
  return {
    operation_id: "pc_0",
    op: "transfer",
    subject_id: "pay_0",
    refund_id: null,
    amount_minor: 1,
    currency: "USDC",
    destination,
    nonce: 0,
    tx_hashes: [],
    max_fee: 1,
    priority_fee: 1,
    sent_seconds: 0,
    is_exported: false,
  };
}

Deno.test("poll() halves its range until the node accepts it, and misses nothing", async () => {
  const books = new WatchedBooks(2);
  const [one, two] = books.list.map(({ address }) => address);
  const paid = new Map([[1_001, [one!]], [1_500, [two!]], [1_999, [one!, two!]]]);
  await using node = startNodeDouble({ head: 2_000, final: 1_900, paid, span_max: 100 });
  const account = chainAccount({ rpc_urls: node.url, "contract.USDC": DOUBLE_TOKEN });
  assert.deepEqual(await books.poll(account), [
    "succeeded 1 pay_0",
    "succeeded 1 pay_1",
    "received 1 pay_0",
    "received 1 pay_1",
  ]);
});

Deno.test("poll() leaves out one address of a block that a node does not send, and goes on", async () => {
  const books = new WatchedBooks(8);
  const addresses = books.list.map(({ address }) => address);
  const flooded = addresses[5]!;
  const paid = new Map([
    [1_500, [...addresses, ...Array.from({ length: 30 }, () => flooded)]],
    [1_600, [flooded]],
  ]);
  const chain = { head: 2_000, final: 1_900, paid, span_max: 10_000, logs_max: 20 };
  await using node = startNodeDouble(chain);
  const account = chainAccount({ rpc_urls: node.url, "contract.USDC": DOUBLE_TOKEN });
  const found = await books.poll(account);
  const others = books.list.flatMap(({ index }) => index === 5 ? [] : [`succeeded 1 pay_${index}`]);
  assert.deepEqual(found, [...others, "succeeded 0 null", "succeeded 1 pay_5"]);
  const [unread] = [...books.provider_events.values()].filter(({ op }) => op === "adjustment");
  assert.equal(unread!.reference, `${flooded}:${doubleHash(1_500)}:1500:unread`);
  const context = { livemode: unread!.livemode } as EventContext;
  const event = { ...unread!, op: "adjustment", booked_minor: 0 } as AccountEvent;
  const reason =
    `block 1500 has more transfers to ${flooded} than a node sends, and none of them ` +
    "is booked";
  assert.deepEqual(applyToAccount(event, context), {
    outcome: "unmatched",
    exception: reason,
    movement: null,
  });
});

Deno.test("poll() stops at a block whose single address a node refuses for another reason", async () => {
  const books = new WatchedBooks(1);
  const paid = new Map([[1_500, [books.list[0]!.address]]]);
  // No range is small enough, and the error names no size of the response.
  const chain = { head: 2_000, final: 1_900, paid, span_max: 0, error: "block range limit" };
  await using node = startNodeDouble(chain);
  const account = chainAccount({ rpc_urls: node.url, "contract.USDC": DOUBLE_TOKEN });
  await assert.rejects(books.poll(account), /block range limit/);
});

Deno.test("poll() halves its range of payouts until the node accepts it", async () => {
  const books = new WatchedBooks(1);
  const { address } = books.list[0]!;
  const paid = new Map([[1_500, [address]]]);
  await using node = startNodeDouble({ head: 2_000, final: 1_900, paid, span_max: 100 });
  const account = chainAccount({
    rpc_urls: node.url,
    "contract.USDC": DOUBLE_TOKEN,
    signer_address: DOUBLE_PAYER,
  });
  books.store.openPayouts = () => Promise.resolve([payoutTo(address)]);
  const final = { number: 1_900, hash: doubleHash(1_900) };
  books.cursor = { final, span: 1_000, pass: null, paid: 900 };
  assert.deepEqual(await books.poll(account), ["succeeded 1 pay_0"]);
});

Deno.test("poll() of 10 000 payments and 1 000 transfers a block stays cheap", async () => {
  const books = new WatchedBooks(1);
  const [first] = books.list;
  const address = (index: number) => `0x${(index + 1).toString(16).padStart(40, "0")}`;
  for (let index = 1; index < 10_000; index++) {
    books.list.push({ ...first!, index, payment_id: `pay_${index}`, address: address(index) });
  }
  const receivers = (from: number) => Array.from({ length: 1_000 }, (_, at) => address(from + at));
  const paid = new Map([[1_001, receivers(1)], [1_002, receivers(5_000)], [
    1_003,
    receivers(9_000),
  ]]);
  const chain = { head: 1_003, final: 1_000, paid, span_max: 10_000 };
  // The nodes respond in this process too, so the figure counts their work as well.
  await using one = startNodeDouble(chain);
  await using other = startNodeDouble(chain);
  const rpc_urls = `${one.url},${other.url}`;
  const account = chainAccount({ rpc_urls, "contract.USDC": DOUBLE_TOKEN });
  const before = process.cpuUsage();
  const provider_events = await books.poll(account);
  const { user, system } = process.cpuUsage(before);
  const cpu_ms = (user + system) / 1000;
  console.log(`CPU of the pass with both nodes: ${cpu_ms.toFixed(0)} ms`);
  assert.equal(provider_events.length, 3_000);
  assert.equal(one.count.logs, 10);
  assert(cpu_ms < 10_000, `${cpu_ms} ms`);
});
