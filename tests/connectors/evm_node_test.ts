/** The poll and the totals of a chain at a node's limits, and with many payments. */

import assert from "node:assert/strict";
import process from "node:process";
import { evmConnector } from "../../shared/connectors/evm/evm_connector.ts";
import type { EventContext } from "../../shared/domain/changes/event.ts";
import { applyToAccount } from "../../shared/domain/providers/apply_to_account.ts";
import type { ChainPayout } from "../../shared/store/chain_store.ts";
import { chainAccount, WatchedBooks } from "../support/chain/watched.ts";
import {
  DOUBLE_PAYER,
  DOUBLE_TOKEN,
  DOUBLE_ZERO_S,
  doubleHash,
  startNodeDouble,
} from "../support/chain/node_double.ts";

type AccountEvent = Parameters<typeof applyToAccount>[0];

/** The account of a double of a node. */
const accountAt = (rpc_urls: string, more: Record<string, string> = {}) =>
  chainAccount({ rpc_urls, "contract.USDC": DOUBLE_TOKEN, ...more });
/** An address that no wallet has. */
const address = (index: number) => `0x${(index + 1).toString(16).padStart(40, "0")}`;

/** Books with many payments, of which only the first address is below the key. */
function manyBooks(count: number): WatchedBooks {
  const books = new WatchedBooks(1);
  const [first] = books.list;
  for (let index = 1; index < count; index++) {
    books.list.push({ ...first!, index, payment_id: `pay_${index}`, address: address(index) });
  }
  return books;
}

/** A payout of one unit that was sent with the nonce 0. */
function payoutTo(destination: string, more: Partial<ChainPayout> = {}): ChainPayout {
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
    ...more,
  };
}

Deno.test("poll() halves its range until the node accepts it, and misses nothing", async () => {
  const books = new WatchedBooks(2);
  const [one, two] = books.list.map(({ address }) => address);
  const paid = new Map([[1_001, [one!]], [1_500, [two!]], [1_999, [one!, two!]]]);
  await using node = startNodeDouble({ head: 2_000, final: 1_900, paid, span_max: 100 });
  const account = accountAt(node.url);
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
  const account = accountAt(node.url);
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
  const account = accountAt(node.url);
  await assert.rejects(books.poll(account), /block range limit/);
});

const exported = { nonce: null, is_exported: true };
/** Open payouts, of which one unit to the address is paid. */
const PAYOUTS: [name: string, payouts: (address: string) => ChainPayout[]][] = [
  ["of a signer, by its nonce", (to) => [payoutTo(to)]],
  ["that people sign, by the amount", (to) => [
    payoutTo(to, { ...exported, operation_id: "pc_2", amount_minor: 2 }),
    payoutTo(to, exported),
  ]],
];
for (const [name, payouts] of PAYOUTS) {
  Deno.test(`poll() finds a payout ${name}, in ranges that the node accepts`, async () => {
    // No address is watched.
    const books = new WatchedBooks(0);
    const paid = new Map([[1_500, [address(7)]]]);
    await using node = startNodeDouble({ head: 2_000, final: 1_900, paid, span_max: 100 });
    const account = accountAt(node.url, { signer_address: DOUBLE_PAYER });
    books.store.openPayouts = () => Promise.resolve(payouts(address(7)));
    const final = { number: 1_900, hash: doubleHash(1_900) };
    books.cursor = { final, span: 1_000, pass: null, paid: 900 };
    assert.deepEqual(await books.poll(account), ["succeeded 1 pay_0"]);
  });
}

Deno.test("poll() of 10 000 payments and 1 000 transfers a block stays cheap", async () => {
  const books = manyBooks(10_000);
  const receivers = (from: number) => Array.from({ length: 1_000 }, (_, at) => address(from + at));
  const paid = new Map([1, 5_000, 9_000].map((from, at) => [1_001 + at, receivers(from)]));
  const chain = { head: 1_003, final: 1_000, paid, span_max: 10_000 };
  // The nodes respond in this process too, so the figure counts their work as well.
  await using one = startNodeDouble(chain);
  await using other = startNodeDouble(chain);
  const account = accountAt(`${one.url},${other.url}`);
  const before = process.cpuUsage();
  const provider_events = await books.poll(account);
  const { user, system } = process.cpuUsage(before);
  const cpu_ms = (user + system) / 1000;
  console.log(`CPU of the pass with both nodes: ${cpu_ms.toFixed(0)} ms`);
  assert.equal(provider_events.length, 3_000);
  assert.equal(one.count.logs, 10);
  assert(cpu_ms < 10_000, `${cpu_ms} ms`);
});

const DAY_S = 86_400;
/** The block of the double in which the day after its first block begins. */
const NEXT_DAY = DAY_S - DOUBLE_ZERO_S % DAY_S;

/** Reads a day to its end. Returns the totals. */
async function totalsOf(
  account: ReturnType<typeof chainAccount>,
  books: WatchedBooks,
  day_ms: number,
) {
  const time = { from_ms: day_ms, to_ms: day_ms + DAY_S * 1000 };
  let cursor: unknown = null;
  for (;;) {
    const signal = AbortSignal.timeout(30_000);
    const read = await evmConnector(books.store).feed.totals(account, time, cursor, signal);
    if ("totals" in read) return read.totals;
    // As the database does, the cursor passes through JSON.
    cursor = JSON.parse(JSON.stringify(read.cursor));
  }
}

Deno.test("totals() sums the transfers of a day in batches and ranges that the node takes", async () => {
  const books = manyBooks(1_500);
  const paid = new Map([
    [1, [books.list[0]!.address, address(1)]],
    [2_500, [address(1_400), address(1_400), address(9_999)]],
    [NEXT_DAY - 1, [address(1_499)]],
    [NEXT_DAY, [address(1)]],
  ]);
  const chain = { head: NEXT_DAY + 100, final: NEXT_DAY, paid, span_max: 700 };
  await using node = startNodeDouble(chain);
  const account = accountAt(node.url);
  const day_ms = (DOUBLE_ZERO_S + NEXT_DAY - DAY_S) * 1000;
  assert.deepEqual(await totalsOf(account, books, day_ms), [{ currency: "USDC", net_minor: 5 }]);
  await assert.rejects(totalsOf(account, books, day_ms + DAY_S * 1000), /is not final/);
  const before = await totalsOf(account, books, day_ms - DAY_S * 1000);
  assert.deepEqual(before, [], "a day before the chain has no transfers");
});

Deno.test("totals() reads any number of payouts, in batches of pages", async () => {
  const PAYOUTS = 1_250;
  const books = new WatchedBooks(0);
  const payouts = Array.from({ length: PAYOUTS }, (_, at) => {
    const tx_hash = `0x${at.toString(16).padStart(64, "0")}`;
    return { reference: `${tx_hash}:0:paid`, tx_hash, currency: "USDC" as const, amount_minor: 2 };
  });
  books.store.paidPayouts = (_account_id, _time, after, limit) =>
    Promise.resolve(payouts.filter(({ reference }) => reference > after).slice(0, limit));
  const chain = { head: NEXT_DAY + 100, final: NEXT_DAY, paid: new Map(), span_max: 700 };
  await using node = startNodeDouble(chain);
  const account = accountAt(node.url, { signer_address: DOUBLE_PAYER });
  const day_ms = (DOUBLE_ZERO_S + NEXT_DAY - DAY_S) * 1000;
  const totals = [{ currency: "USDC", net_minor: -2 * PAYOUTS }];
  assert.deepEqual(await totalsOf(account, books, day_ms), totals);
  assert.ok(node.count.bodies < 100, `${node.count.bodies} requests`);
});
