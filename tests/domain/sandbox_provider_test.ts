/** The simulated provider and its test values: each behaviour always has the same result. */

import assert from "node:assert/strict";
import fc from "fast-check";
import type { Stablecoin } from "../../shared/core/currency.ts";
import { METHOD_KINDS, OUTCOMES } from "../../shared/core/vocabulary.ts";
import type { Network } from "../../shared/core/wallet_address.ts";
import {
  type AuthorizationRequest,
  authorizePayment,
  authorizeTransfer,
  transactionHash,
} from "../../shared/domain/providers/sandbox_provider.ts";
import {
  TEST_CARDS,
  type TestBehaviour,
  testCard,
  testIban,
  testWallet,
} from "../../shared/domain/providers/test_values.ts";
import type { MethodKind } from "../../shared/schema/payment.ts";
import { refusalOf } from "../support/domain/decided_change.ts";

const SEED = Number(Deno.env.get("SEED") ?? Date.now() % 2 ** 31);
const WALLET = {
  address: "0x000000000000000000000000000000000000dEaD",
  network: "ethereum",
  asset: "USDC",
} as const;

const CARDS: [number: string, TestBehaviour | undefined][] = [
  ["4242424242424242", "approve"],
  ["5555555555554444", "approve"],
  ["5200828282828210", "approve"],
  ["378282246310005", "approve"],
  ["6011111111111117", "approve"],
  ["4000000000000259", "dispute"],
  ["4000000000000119", "late"],
  ["4000000000000002", "decline"],
  ["4000000000009995", "no_funds"],
  ["4000002500003155", "authenticate"],
  ["4100000000000019", "aml_block"],
  ["4000000000000069", "expired"],
  ["4111111111111111", undefined],
];

for (const [number, behaviour] of CARDS) {
  Deno.test(`testCard() of ${number}: ${behaviour ?? "none"}`, () => {
    assert.equal(testCard(number), behaviour);
  });
}

Deno.test("TEST_CARDS has the published cards and no other", () => {
  const published = CARDS.flatMap(([number, behaviour]) => behaviour ? [number] : []);
  assert.deepEqual(
    TEST_CARDS.map(({ value }) => value.replaceAll(" ", "")).sort(),
    published.sort(),
  );
});

Deno.test("TEST_CARDS end with different digits, the only ones that the console shows", () => {
  const ends = TEST_CARDS.map(({ value }) => value.slice(-4));
  assert.deepEqual(ends.filter((end, i) => ends.indexOf(end) < i), []);
});

const ACCOUNTS: [text: string, behaviour: TestBehaviour | undefined][] = [
  ["DE89 3704 0044 0532 0130 00", "approve"],
  ["de89370400440532013000", "approve"],
  ["DE00 0000 0000 0000 0000 99", "bank_return"],
  ["de00000000000000000099", "bank_return"],
  ["gb82 west 1234 5698 7654 32", "approve"],
  ["DE88370400440532013000", undefined],
  ["0x000000000000000000000000000000000000dEaD", "approve"],
  ["0X000000000000000000000000000000000000DEAD", "approve"],
  ["0x0000000000000000000000000000000000000BAD", "revert"],
  ["0x0000 000000000000000000000000000000000bad", "revert"],
  ["0x000000000000000000000000000000000000beef", undefined],
];

for (const [text, behaviour] of ACCOUNTS) {
  Deno.test(`testIban() and testWallet() of ${text}: ${behaviour ?? "none"}`, () => {
    assert.equal(/^0x/i.test(text) ? testWallet(text) : testIban(text)?.behaviour, behaviour);
  });
}

const ANSWERS: [TestBehaviour | null, instant: string, manual: string][] = [
  [null, "pending", "pending"],
  ["approve", "completed", "pending"],
  ["bank_return", "failed bank_return R01", "pending"],
  ["revert", "failed onchain_reverted", "pending"],
  ["authenticate", "requires_action", "pending"],
  ["decline", "declined payment_declined", "pending"],
  ["no_funds", "declined insufficient_funds", "pending"],
  ["aml_block", "declined aml_blocked", "pending"],
  ["late", "processing", "pending"],
];

for (const [behaviour, instant, manual] of ANSWERS) {
  for (const kind of METHOD_KINDS) {
    Deno.test(`authorizePayment() ${behaviour ?? "nothing"} by ${kind}: ${instant}`, () => {
      assert.equal(answer({ behaviour, kind }), instant);
      // The bank of a card always decides at once.
      const waiting = answer({ behaviour, kind, manual: true });
      assert.equal(waiting, kind === "card" ? instant : manual);
    });
  }
  for (const outcome of OUTCOMES) {
    const result = {
      success: "completed",
      declined: "declined payment_declined",
      pending: "pending",
      refunded: "refunded",
      chargeback: "chargeback",
    }[outcome];
    Deno.test(`authorizePayment() ${outcome} overrides ${behaviour ?? "nothing"}`, () => {
      assert.equal(answer({ behaviour, kind: "sepa", outcome }), result);
    });
  }
}

Deno.test("authorizePayment() of the expired card throws unless the outcome is forced", () => {
  const request = { behaviour: "expired", kind: "card" } as const;
  assert.equal(
    refusalOf(() => authorizePayment(requestOf(request))),
    "invalid_parameter card.exp_year",
  );
  assert.equal(answer({ ...request, outcome: "success" }), "completed");
});

const TRANSFERS: [TestBehaviour | null, result: string][] = [
  [null, "completed"],
  ["approve", "completed"],
  ["bank_return", "failed bank_return R01"],
  ["revert", "failed onchain_reverted"],
];

for (const [behaviour, result] of TRANSFERS) {
  Deno.test(`authorizeTransfer() ${behaviour ?? "nothing"}: ${result}`, () => {
    const to = (manual: boolean) =>
      lineOf(authorizeTransfer(requestOf({ behaviour, kind: "sepa", manual })));
    assert.deepEqual([to(false), to(true)], [result, "pending"]);
  });
}

Deno.test(`transactionHash() depends on the payment and the destination (seed ${SEED})`, () => {
  const Payment = fc.record({
    amount_minor: fc.integer({ min: 1, max: 999_999_999_999 }),
    currency: fc.constantFrom("EUR", "USDC", "USDT"),
    network: fc.constantFrom<Network>("ethereum", "base", "tron"),
    asset: fc.constantFrom<Stablecoin>("USDC", "USDT"),
  });
  type Paid = { amount_minor: number; currency: string; network: Network; asset: Stablecoin };
  const hashOf = ({ amount_minor, currency, ...wallet }: Paid) =>
    transactionHash(amount_minor, currency, { address: WALLET.address, ...wallet });
  fc.assert(
    fc.property(Payment, Payment, (a, b) => {
      assert.match(hashOf(a), /^0x[0-9a-f]{64}$/);
      assert.equal(hashOf(a), hashOf({ ...a }));
      assert.equal(hashOf(a) === hashOf(b), JSON.stringify(a) === JSON.stringify(b));
    }),
    { seed: SEED },
  );
});

Deno.test("transactionHash() does not depend on the case of an address", () => {
  const lower = { ...WALLET, address: WALLET.address.toLowerCase() };
  assert.equal(transactionHash(5, "EUR", WALLET), transactionHash(5, "EUR", lower));
});

interface Asked {
  behaviour: TestBehaviour | null;
  kind: MethodKind;
  manual?: boolean;
  outcome?: AuthorizationRequest["outcome"];
}

function requestOf(
  { behaviour, kind, manual = false, outcome = null }: Asked,
): AuthorizationRequest {
  const instrument = { kind, behaviour, method: null };
  return { amount_minor: 1000, currency: "EUR", instrument, outcome, manual };
}

/** The answer to an authorization as one line. */
function answer(asked: Asked): string {
  return lineOf(authorizePayment(requestOf(asked)));
}

function lineOf({ result, ...more }: ReturnType<typeof authorizePayment>): string {
  return [result, ...Object.values(more)].join(" ");
}
