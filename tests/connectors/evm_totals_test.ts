/** The totals of a day of a chain. */

import assert from "node:assert/strict";
import { evmConnector } from "../../shared/connectors/evm/evm_connector.ts";
import {
  DOUBLE_PAYER,
  DOUBLE_TOKEN,
  DOUBLE_ZERO_S,
  startNodeDouble,
} from "../support/chain/node_double.ts";
import { chainAccount, WatchedBooks } from "../support/chain/watched.ts";

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
  const books = new WatchedBooks(1);
  const [first] = books.list;
  const address = (index: number) => `0x${(index + 1).toString(16).padStart(40, "0")}`;
  for (let index = 1; index < 1_500; index++) {
    books.list.push({ ...first!, index, payment_id: `pay_${index}`, address: address(index) });
  }
  const paid = new Map([
    [1, [first!.address, address(1)]],
    [2_500, [address(1_400), address(1_400), address(9_999)]],
    [NEXT_DAY - 1, [address(1_499)]],
    [NEXT_DAY, [address(1)]],
  ]);
  const chain = { head: NEXT_DAY + 100, final: NEXT_DAY, paid, span_max: 700 };
  await using node = startNodeDouble(chain);
  const account = chainAccount({ rpc_urls: node.url, "contract.USDC": DOUBLE_TOKEN });
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
  const account = chainAccount({
    rpc_urls: node.url,
    "contract.USDC": DOUBLE_TOKEN,
    signer_address: DOUBLE_PAYER,
  });
  const day_ms = (DOUBLE_ZERO_S + NEXT_DAY - DAY_S) * 1000;
  const totals = [{ currency: "USDC", net_minor: -2 * PAYOUTS }];
  assert.deepEqual(await totalsOf(account, books, day_ms), totals);
  assert.ok(node.count.bodies < 100, `${node.count.bodies} requests`);
});
