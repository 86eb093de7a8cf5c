/** Fees of payouts: the account's limits bound every transaction, whatever nodes report. */

import assert from "node:assert/strict";
import fc from "fast-check";
import {
  excessOf,
  type FeeQuote,
  type Fees,
  firstFees,
  isBelowMarket,
  isTooDear,
  quoteOf,
  raisedFees,
} from "../../shared/connectors/evm/evm_fees.ts";
import { EVM_NETWORKS } from "../../shared/connectors/evm/evm_networks.ts";
import { readEvmSettings } from "../../shared/connectors/evm/evm_settings.ts";
import { XPUB } from "../support/chain/watched.ts";

const GWEI = 1e9;
const GAS = 120_000;
const settings = (more: Record<string, string> = {}) =>
  readEvmSettings({ network: "ethereum", rpc_urls: "https://a.example", xpub: XPUB, ...more });
const quote = (base_gwei: number, tip_gwei: number): FeeQuote => ({
  base_fee: base_gwei * GWEI,
  tip: tip_gwei * GWEI,
});

/** Quotes at the default limits of ethereum, and the setting that the reason names; null: none. */
const CASES: [string, FeeQuote[], "max_fee" | "max_tip" | null][] = [
  ["a usual market", [quote(20, 2)], null],
  ["a quiet market with a tip at max_tip", [quote(0.05, 5)], null],
  ["a quiet market with a tip above max_tip", [quote(0.05, 5.1)], "max_tip"],
  ["a rush with a tip of three times the base fee", [quote(40, 120)], null],
  ["a rush with a higher tip", [quote(40, 120.1)], "max_tip"],
  ["a tip of 10^15 wei", [quote(1, 1e6)], "max_tip"],
  ["a fee at max_fee", [quote(164, 2.6)], null],
  ["a fee above max_fee", [quote(164, 2.7)], "max_fee"],
  ["a base fee of 10^15 wei", [quote(1e6, 1)], "max_fee"],
  ["one wrong tip of two", [quote(20, 1e6), quote(20, 2)], null],
  ["one wrong base fee of two", [quote(20, 2), quote(1e6, 2)], null],
];

for (const [name, quotes, named] of CASES) {
  Deno.test(`excessOf() ${name}: ${named ?? "allowed"}`, () => {
    const excess = excessOf(quotes, GAS, settings());
    assert.equal(excess?.match(/max_(fee|tip)/)?.[0] ?? null, named, `${excess}`);
    assert.ok((excess ?? "").length < 150, excess!);
  });
}

Deno.test("excessOf() names the numbers and the remedy", () => {
  assert.equal(
    excessOf([quote(1, 1e6)], GAS, settings()),
    "the tip is 1000000 gwei at a base fee of 1, and max_tip 5: if a block explorer agrees, " +
      "raise it; if not, change rpc_urls",
  );
  assert.equal(
    excessOf([quote(1e6, 1)], GAS, settings({ max_fee: "0.0001" })),
    "the fee is 120 ETH, and max_fee 0.0001: if a block explorer agrees, raise it; if not, " +
      "change rpc_urls",
  );
});

/** Quotes at the default limits of ethereum, and the first fees in gwei. */
const FIRST: [string, FeeQuote[], max_fee: number, tip: number][] = [
  ["one node", [quote(20, 2)], 42, 2],
  ["two nodes that agree", [quote(20, 2), quote(20, 2)], 42, 2],
  ["one of two that reports far too little", [quote(0.05, 0), quote(20, 2)], 42, 2],
  ["one of two whose base fee exceeds max_fee", [quote(20, 2), quote(1e6, 3)], 42, 2],
  ["one of two whose tip exceeds max_tip", [quote(1, 2), quote(1, 1e6)], 4, 2],
  ["two that exceed max_tip", [quote(1, 10), quote(1, 1e6)], 7, 5],
];

for (const [name, quotes, max_fee, tip] of FIRST) {
  Deno.test(`firstFees() ${name}: ${max_fee} gwei with a tip of ${tip}`, () => {
    const fees = firstFees(quotes, GAS, settings());
    assert.deepEqual(fees, { max_fee: max_fee * GWEI, priority_fee: tip * GWEI });
  });
}

/** The base fees and tips of the newest blocks in gwei, and the quote of a proposal of 20 and 2. */
const HISTORIES: [string, number[], number[], FeeQuote][] = [
  ["no blocks", [], [], quote(20, 2)],
  ["dearer blocks", [30, 40], [3, 9, 4], quote(40, 4)],
  ["cheaper blocks", [50, 10], [1, 1, 9], quote(20, 2)],
];

for (const [name, base_fees, tips, expected] of HISTORIES) {
  Deno.test(`quoteOf() ${name}`, () => {
    const wei = (all: number[]) => all.map((gwei) => gwei * GWEI);
    const history = { base_fees: wei(base_fees), tips: wei(tips) };
    assert.deepEqual(quoteOf(quote(20, 2), history), expected);
  });
}

Deno.test("isBelowMarket() compares the offer with the lowest base fee", () => {
  const fees = { max_fee: 20 * GWEI, priority_fee: 2 * GWEI };
  assert.deepEqual(
    [[quote(20, 2)], [quote(21, 2)], [quote(21, 2), quote(20, 2)]].map((quotes) =>
      isBelowMarket(fees, quotes)
    ),
    [false, true, false],
  );
});

const anyQuotes = fc.array(
  fc.record({
    base_fee: fc.integer({ min: 0, max: 2 ** 50 }),
    tip: fc.integer({ min: 0, max: 2 ** 50 }),
  }),
  { minLength: 1, maxLength: 2 },
);
const anyLimits = fc.record({
  network: fc.constantFrom(...Object.keys(EVM_NETWORKS)),
  max_fee: fc.constantFrom("0.000001", "0.0001", "0.02", "0.1"),
  max_tip: fc.constantFrom("0.000000001", "0.01", "1", "100"),
}).map(settings);
const anyGas = fc.integer({ min: 21_000, max: 30_000_000 });

Deno.test("firstFees() and raisedFees() keep to the limits, whatever the nodes report", () => {
  const property = fc.property(
    anyQuotes,
    anyQuotes,
    anyGas,
    anyLimits,
    (first, later, gas, own) => {
      const most_tip = (quotes: FeeQuote[]) =>
        Math.max(own.max_tip, 3 * Math.min(...quotes.map(({ base_fee }) => base_fee)));
      const fees = firstFees(first, gas, own);
      const raised = raisedFees(fees, later, gas, own);
      for (const each of [fees, raised ?? fees]) {
        assert.ok(BigInt(gas) * BigInt(each.max_fee) <= own.max_fee);
        assert.ok(!isTooDear(gas, each, own));
        assert.ok(each.priority_fee >= 0 && each.priority_fee <= each.max_fee);
      }
      assert.ok(fees.priority_fee <= most_tip(first));
      if (raised === null) return;
      assert.ok(raised.max_fee >= fees.max_fee * 1.125, "nodes accept the replacement");
      assert.ok(raised.priority_fee >= fees.priority_fee * 1.125);
      assert.ok(raised.max_fee > fees.max_fee && raised.priority_fee > fees.priority_fee);
      const least_tip = Math.max(Math.ceil(fees.priority_fee * 1.125), fees.priority_fee + 1);
      assert.ok(raised.priority_fee <= Math.max(most_tip(later), least_tip));
    },
  );
  fc.assert(property, { numRuns: 2_000 });
});

Deno.test("raisedFees() reaches the market from the lowest first fees, although the node stays wrong", () => {
  const wrong = [quote(0, 0)];
  let fees = firstFees(wrong, GAS, settings());
  let raises = 0;
  for (; fees.max_fee < 100 * GWEI; raises++) {
    const raised = raisedFees(fees, wrong, GAS, settings());
    assert.ok(raised, `stopped at ${fees.max_fee}`);
    fees = raised;
  }
  // A raise needs 3 minutes, so these take less than two hours.
  assert.ok(raises <= 38, `${raises} raises`);
});

Deno.test("raisedFees() ends at max_fee with a tip that validators take, although the node stays wrong", () => {
  const wrong = [quote(30, 0)];
  const own = settings({ network: "polygon" });
  let fees: Fees | null = firstFees(wrong, GAS, own);
  let last = fees;
  for (; fees; fees = raisedFees(fees, wrong, GAS, own)) last = fees;
  assert.ok(last.max_fee * 1.125 > Number(own.max_fee / BigInt(GAS)));
  assert.equal(last.priority_fee, 150 * GWEI);
});

const RAISED: [name: string, fees: Fees, quotes: FeeQuote[], max_fee: number, tip: number][] = [
  ["a tip at max_tip", { max_fee: 10 * GWEI, priority_fee: 5 * GWEI }, [quote(1, 5)], 20, 5.625],
  [
    "to the market at once when a node reports it",
    { max_fee: 1, priority_fee: 0 },
    [quote(0, 0), quote(30, 2)],
    62,
    2,
  ],
];
for (const [name, fees, quotes, max_fee, tip] of RAISED) {
  Deno.test(`raisedFees() raises ${name}`, () => {
    const raised = raisedFees(fees, quotes, GAS, settings());
    assert.deepEqual(raised, { max_fee: max_fee * GWEI, priority_fee: tip * GWEI });
  });
}

Deno.test("isTooDear() compares a sent fee with a higher gas", () => {
  const fees = firstFees([quote(1e3, 5)], GAS, settings());
  assert.deepEqual([isTooDear(GAS, fees, settings()), isTooDear(GAS + 1, fees, settings())], [
    false,
    true,
  ]);
});
