/** The simulated provider and its test values: each behaviour always has the same result. */

import assert from "node:assert/strict";
import fc from "fast-check";
import type { Stablecoin } from "../../shared/core/currency.ts";
import { METHOD_KINDS, OUTCOMES } from "../../shared/core/vocabulary.ts";
import type { Network } from "../../shared/core/wallet_address.ts";
import { systemRandom } from "../../shared/core/ids.ts";
import type { ProviderOp } from "../../shared/domain/providers/connector.ts";
import type { MatchedFault } from "../../shared/sandbox/fault_store.ts";
import { ChangeBuilder } from "../../shared/domain/changes/change_builder.ts";
import { beginOperation } from "../../shared/domain/providers/operation.ts";
import { replyAtOnce, transactionHash } from "../../shared/sandbox/sandbox_replies.ts";
import {
  TEST_CARDS,
  type TestBehaviour,
  testCard,
} from "../../shared/domain/providers/test_values.ts";
import type { MethodKind, Outcome } from "../../shared/schema/payment_body.ts";
import {
  NOW_MS,
  paymentWith,
  requestContext,
  transferWith,
  URLS,
} from "../support/domain/decided_change.ts";

const SEED = Number(Deno.env.get("SEED") ?? Date.now() % 2 ** 31);
type ProviderFault = MatchedFault<"provider">;
const WALLET = {
  address: "0x000000000000000000000000000000000000dEaD",
  network: "ethereum",
  asset: "USDC",
} as const;

const CARDS: Record<string, TestBehaviour> = {
  ...Object.fromEntries(
    ["4242424242424242", "5555555555554444", "5200828282828210", "378282246310005"]
      .concat("6011111111111117").map((number) => [number, "approve"]),
  ),
  "4000000000000259": "dispute",
  "4000000000000119": "late",
  "4000000000000002": "decline",
  "4000000000009995": "no_funds",
  "4000002500003155": "authenticate",
  "4000002760003184": "authenticate_always",
  "4000000000000341": "decline_saved",
  "4100000000000019": "aml_block",
  "4000000000000069": "expired",
};

Deno.test("TEST_CARDS has the published cards and no other, each with its behaviour", () => {
  const numbers = TEST_CARDS.map(({ value }) => value.replaceAll(" ", ""));
  assert.deepEqual(numbers.toSorted(), Object.keys(CARDS).sort());
  const behaviours = numbers.map((number) => [number, testCard(number)]);
  assert.deepEqual(Object.fromEntries(behaviours), CARDS);
  assert.equal(testCard("4111111111111111"), undefined);
});

Deno.test("TEST_CARDS end with different digits, the only ones that the console shows", () => {
  const ends = TEST_CARDS.map(({ value }) => value.slice(-4));
  assert.deepEqual(ends.filter((end, i) => ends.indexOf(end) < i), []);
});

const RESPONSES: [TestBehaviour | null, instant: string, manual: string][] = [
  [null, "waiting", "waiting"],
  ["approve", "succeeded", "succeeded"],
  ["bank_return", "failed bank_return R01", "failed bank_return R01"],
  ["revert", "failed onchain_reverted", "failed onchain_reverted"],
  ["authenticate", "requires_action", "requires_action"],
  ["authenticate_always", "requires_action", "requires_action"],
  ["decline_saved", "succeeded", "succeeded"],
  ["revoked", "succeeded", "succeeded"],
  ["return_later", "succeeded", "succeeded"],
  ["decline", "declined payment_declined", "declined payment_declined"],
  ["no_funds", "declined insufficient_funds", "declined insufficient_funds"],
  ["aml_block", "declined aml_blocked", "declined aml_blocked"],
  ["late", "unknown 2000", "pending"],
  ["dispute", "succeeded, dispute disputed", "succeeded, dispute disputed"],
];

for (const [behaviour, instant, manual] of RESPONSES) {
  for (const kind of METHOD_KINDS) {
    // The payer of a bank transfer sends it.
    const is_sent = behaviour === null && (kind === "sepa" || kind === "swift");
    const at_once = is_sent ? "pending" : instant;
    Deno.test(`replyAtOnce() ${behaviour ?? "nothing"} by ${kind}: ${at_once}`, () => {
      assert.equal(respond({ behaviour, kind }), at_once);
      // The bank of a card always decides at once.
      assert.equal(
        respond({ behaviour, kind, manual: true }),
        is_sent ? "pending" : kind === "card" ? manual : "waiting",
      );
    });
  }
  for (const outcome of OUTCOMES) {
    const result = {
      success: "succeeded",
      declined: "declined payment_declined",
      pending: "waiting",
      refunded: "succeeded, refund succeeded",
      chargeback: "succeeded, dispute disputed",
    }[outcome];
    Deno.test(`replyAtOnce() ${outcome} overrides ${behaviour ?? "nothing"}`, () => {
      assert.equal(respond({ behaviour, kind: "sepa", outcome }), result);
    });
  }
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

/** [fault, operation, behaviour of the instrument, rail, reply]. `manual`: settled manually. */
const FAULTS: [
  ProviderFault["fault"],
  ProviderOp,
  TestBehaviour | "manual",
  MethodKind,
  reply: string,
][] = [
  ["declined", "authorize", "no_funds", "card", "declined payment_declined"],
  ["declined", "capture", "approve", "card", "refused"],
  ["declined", "cancel", "approve", "card", "refused"],
  ["declined", "refund", "approve", "card", "refused"],
  ["declined", "transfer", "approve", "sepa", "refused"],
  ["failed", "authorize", "decline", "card", "failed processing_failed"],
  ["failed", "authorize", "approve", "sepa", "failed bank_return R01"],
  ["failed", "authorize", "approve", "stablecoin", "failed onchain_reverted"],
  ["failed", "capture", "approve", "card", "refused"],
  ["failed", "cancel", "approve", "card", "refused"],
  ["failed", "refund", "approve", "card", "refund failed"],
  ["failed", "transfer", "approve", "sepa", "transfer failed bank_return R01"],
  ["timeout", "authorize", "approve", "card", "unknown 60000, then its success"],
  ["timeout", "authorize", "authenticate", "card", "unknown 60000, then its success"],
  ["timeout", "authorize", "decline", "card", "unknown 60000, then declined"],
  ["timeout", "authorize", "bank_return", "sepa", "unknown 60000, then failed"],
  ["timeout", "authorize", "manual", "card", "pending"],
  ["timeout", "refund", "approve", "card", "unknown 60000, then its success"],
];

for (const [fault, op, behaviour, kind, expected] of FAULTS) {
  Deno.test(`replyAtOnce() ${fault} ${op} of ${behaviour} by ${kind}: ${expected}`, () => {
    const test = behaviour === "manual" ? { behaviour: null, manual: true } : { behaviour };
    assert.equal(respond({ ...test, kind, op, fault }), expected);
  });
}

interface Requested {
  behaviour: TestBehaviour | null;
  kind: MethodKind;
  manual?: boolean;
  outcome?: Outcome | null;
  op?: ProviderOp;
  fault?: ProviderFault["fault"];
}

const context = requestContext();

/** The reply to an operation, by default an authorization, as one line. */
function respond(
  { behaviour, kind, manual = false, outcome = null, op = "authorize", fault }: Requested,
): string {
  const begun = op === "transfer"
    ? beginOperation(new ChangeBuilder(transferWith({}), context), op)
    : beginOperation(
      new ChangeBuilder(paymentWith({ method_kind: kind, sequence: 0 }), context),
      op,
    );
  const test = { behaviour, outcome, is_manual: manual };
  const page = { random: systemRandom, urls: URLS };
  const declared = fault ? { id: "flt_1", fault, delay_ms: null } : null;
  const reply = replyAtOnce({ ...begun, test }, declared, NOW_MS, page);
  if ("waiting" in reply) return "waiting";
  if ("refused" in reply) return "refused";
  if ("unknown" in reply) {
    const then = fault ? `, then ${reply.simulated?.result ?? "its success"}` : "";
    return `unknown ${reply.after_ms}${then}`;
  }
  assert.ok("provider_events" in reply);
  return reply.provider_events.map(({ op, state, decline_code, failure_code, return_code }) =>
    [op === "authorize" ? null : op, state, decline_code, failure_code, return_code]
      .filter(Boolean).join(" ")
  ).join(", ");
}
