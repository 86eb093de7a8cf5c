/**
 * applyProviderEvent() for payments that the payer sends, to an address of a chain and by bank
 * transfer: tables of cases, and properties over the orders of provider events. The ledger is
 * always the sum of the final transfers.
 */

import assert from "node:assert/strict";
import fc from "fast-check";
import type { ProviderEvent } from "../../shared/domain/providers/connector.ts";
import { NO_PARTS } from "../../shared/domain/operations/apply_event.ts";
import { ChangeBuilder } from "../../shared/domain/changes/change_builder.ts";
import { expectedOf } from "../../shared/domain/payments/received_money.ts";
import type { NextAction, Payment } from "../../shared/schema/payment.ts";
import type { DepositState } from "../../shared/store/provider_rows.ts";
import { applyToSubject, book, handleAll, providerEvent } from "../support/domain/applied_event.ts";
import { paymentWith, requestContext } from "../support/domain/decided_change.ts";

const SEED = Number(Deno.env.get("SEED") ?? Date.now() % 2 ** 31);
const context = requestContext(true);
const EXPIRES_AT = "2030-01-01T01:00:00.000Z";
const BEFORE = "2030-01-01T00:30:00.000Z";
const AFTER = "2030-01-01T01:30:00.000Z";

const ADDRESS = {
  type: "send_stablecoin",
  network: "ethereum",
  asset: "USDC",
  contract: "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48",
  address: "0x9858EfFD232B4033E47d90003D41EC34EcaEda94",
  amount_minor: 10,
  expires_at: EXPIRES_AT,
  uri: "ethereum:0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48@1/transfer",
} as const satisfies NextAction;

/** A payment of 10 USDC at the reservation, without its address. */
const reserved: Payment = paymentWith({
  status: "pending",
  livemode: true,
  amount_minor: 10,
  currency: "USDC",
  method_kind: "stablecoin",
  capability: "stablecoin_payment",
  settlement: null,
});

function event(
  members: Pick<ProviderEvent, "reference" | "state"> & Partial<ProviderEvent>,
): ProviderEvent {
  return providerEvent(members.op ?? "authorize", members.state, {
    object_id: ADDRESS.address,
    provider_reference: ADDRESS.address,
    amount_minor: 0,
    currency: "USDC",
    at: BEFORE,
    ...members,
  });
}

const opened = event({
  reference: `${ADDRESS.address}:opened`,
  state: "pending",
  amount_minor: 10,
  next_action: ADDRESS,
});
const expired = event({
  reference: `${ADDRESS.address}:expired`,
  op: "abandon",
  state: "failed",
  failure_code: "expired",
  at: EXPIRES_AT,
});

/**
 * Reads a provider event: `a4+B` transfer a of 4 is seen in block B, `a4-B` the chain has undone
 * block B, `a4-B!` the same after the time of the payment, `a4` it is final, `a4$` in another
 * token, `x` the time is over.
 */
function read(word: string): ProviderEvent {
  if (word === "x") return expired;
  const [, name, amount, sign, block, mark] = /^([a-z])(\d+)([+-])?([A-Z])?([!$])?$/.exec(word)!;
  const transfer = `0x${name}:0`;
  const chain = { tx_hash: `0x${name}`, log_index: 0, ...(block && { block_hash: block }) };
  const members = {
    object_id: transfer,
    amount_minor: Number(amount),
    chain,
    ...(mark === "!" && { at: AFTER }),
    ...(mark === "$" && { currency: "USDT" }),
  };
  if (sign === "+") {
    return event({ reference: `${transfer}:${block}:received`, state: "received", ...members });
  }
  if (sign === "-") {
    return event({ reference: `${transfer}:${block}:reorged`, state: "reorged", ...members });
  }
  return event({ reference: transfer, state: "succeeded", ...members });
}

/** The payment, its ledger and the handled provider events after some provider events. */
interface Books {
  payment: Payment;
  /** By account and currency. */
  ledger: Record<string, number>;
  handled: { event: ProviderEvent; outcome: string; exception: string | null }[];
  events: string[];
}

/**
 * The state that the database gives with a provider event.
 * @param told the events in the order in which the chain has told them
 */
function depositOf(
  { handled }: Books,
  event: ProviderEvent,
  told: readonly ProviderEvent[],
): DepositState {
  const { object_id } = event;
  const final = handled.filter(({ event: { state }, outcome }) =>
    state === "succeeded" && outcome === "applied"
  );
  return {
    final_minor: final.reduce((sum, each) => sum + each.event.amount_minor, 0),
    reports: handled.filter((each) =>
      ["applied", "ignored"].includes(each.outcome) && each.event.object_id === object_id
    ).map(({ event: handled }) => ({
      state: handled.state,
      block_hash: handled.chain?.block_hash ?? null,
      is_later: told.indexOf(handled) > told.indexOf(event),
    })),
  };
}

/**
 * Applies provider events.
 * @param payment that is not reserved, and has its address or reference
 * @param told as `depositOf` takes it; by default they are applied in this order
 */
function applyAll(
  provider_events: readonly ProviderEvent[],
  payment?: Payment,
  told = provider_events,
): Books {
  const books: Books = { payment: payment ?? reserved, ledger: {}, handled: [], events: [] };
  const all = payment ? provider_events : [opened, ...provider_events];
  const waiting = handleAll(all, (next) => {
    const subject = books.payment;
    const deposit = subject.method_kind === "stablecoin" ? depositOf(books, next, told) : null;
    const effect = applyToSubject({ ...NO_PARTS, subject, deposit }, next, 0, context);
    if (effect.outcome === "wait") return "wait";
    const exception = "exception" in effect ? effect.exception : null;
    books.handled.push({ event: next, outcome: effect.outcome, exception });
    const change = "change" in effect ? effect.change : null;
    if (change?.payment) books.payment = change.subject as Payment;
    books.events.push(...(change?.events ?? []).map(({ type }) => type));
    book(books.ledger, change?.ledger ?? [], (account, { currency }) => `${account} ${currency}`);
    return effect.outcome;
  });
  assert.deepEqual(waiting, [], "no provider event waits for ever");
  return books;
}

/** The state in one line: failure or status, received, and the ledger of what is not 0. */
function lineOf({ payment, ledger, handled }: Books): string {
  const { status, failure_code, amount_received, currency } = payment;
  const booked = Object.keys(ledger).sort()
    .filter((account) => !account.startsWith("processor") && ledger[account] !== 0)
    .map((account) => `${account.replace(` ${currency}`, "")} ${ledger[account]}`);
  const exceptions = handled.filter(({ exception }) => exception !== null).length;
  return [
    `${failure_code ?? status} ${amount_received}`,
    ...booked,
    ...exceptions === 0 ? [] : [`exceptions ${exceptions}`],
  ].join(", ");
}

const CASES: [name: string, provider_events: string, line: string][] = [
  ["nothing yet", "", "pending 0"],
  ["a transfer in a block", "a10+B", "processing 10"],
  ["a final transfer", "a10+B a10", "completed 10, available 10"],
  ["a final transfer that was not seen before", "a10", "completed 10, available 10"],
  ["a part", "a4+B", "processing 4"],
  ["a final part", "a4+B a4", "processing 4, unapplied 4"],
  ["two parts", "a4+B b6+C a4 b6", "completed 10, available 10"],
  ["two parts, the second one final first", "a4+B b6+C b6 a4", "completed 10, available 10"],
  ["too much", "a15+B a15", "completed 15, available 10, unapplied 5, exceptions 1"],
  ["too much in parts", "a4+B b9+C a4 b9", "completed 13, available 10, unapplied 3, exceptions 1"],
  [
    "a further transfer to a completed payment",
    "a10+B a10 b3+C b3",
    "completed 10, available 10, unapplied 3, exceptions 1",
  ],
  ["time over without money", "x", "expired 0"],
  ["time over with a part", "a4+B x", "underpaid 4"],
  ["time over with a final part", "a4+B a4 x", "underpaid 4, unapplied 4"],
  ["a part that is final after the time", "a4+B x a4", "underpaid 4, unapplied 4, exceptions 1"],
  ["time over, but the whole amount is in a block", "a10+B x", "processing 10"],
  ["that amount becomes final", "a10+B x a10", "completed 10, available 10"],
  ["a final transfer, then time over", "a10 x", "completed 10, available 10"],
  ["that amount is undone after the time", "a10+B x a10-B!", "expired 0"],
  ["a part of it is undone after the time", "a4+B b6+C x b6-C!", "underpaid 4"],
  ["money after the time", "x a10+B a10", "expired 0, unapplied 10, exceptions 1"],
  ["a reorganisation", "a10+B a10-B", "pending 0"],
  ["a reorganisation that takes a part", "a4+B b6+C b6-C", "processing 4"],
  ["a reorganisation into another block", "a10+B a10+C a10-B", "processing 10"],
  ["the same, told in another order", "a10+B a10-B a10+C", "processing 10"],
  ["a reorganisation, then final", "a10+B a10-B a10+C a10", "completed 10, available 10"],
  ["final in a block that was undone before", "a10+B a10-B a10", "completed 10, available 10"],
  ["undone before it was seen, by the order of provider events", "a10-B a10+B", "pending 0"],
  ["undone in a block that is seen later", "a10+C a10-B a10-C a10+B", "pending 0"],
  ["undone after it was final", "a10+B a10 a10-B", "completed 10, available 10, exceptions 1"],
  ["another token of ours", "a10+B$ a10$", "pending 0, unapplied USDT 10, exceptions 1"],
  [
    "another token, and then the right one",
    "a10$ b10",
    "completed 10, available 10, unapplied USDT 10, exceptions 1",
  ],
];
for (const [name, provider_events, line] of CASES) {
  Deno.test(`applyProviderEvent() of a payment by stablecoin: ${name}`, () => {
    assert.equal(lineOf(applyAll(provider_events.split(" ").filter(Boolean).map(read))), line);
  });
}

Deno.test("applyProviderEvent() of a payment by stablecoin: it gets its address", () => {
  const { payment, events } = applyAll([]);
  assert.deepEqual(events, ["payment.pending"]);
  assert.deepEqual(payment.next_action, ADDRESS);
});
Deno.test("applyProviderEvent() of a payment by stablecoin: each change of the received amount is told", () => {
  const { events, payment } = applyAll("a4+B b6+C b6-C b6+D a4 b6".split(" ").map(read));
  const told = ["pending", "processing", "processing", "processing", "processing", "completed"];
  assert.deepEqual(events, told.map((status) => `payment.${status}`));
  assert.equal(payment.sequence, reserved.sequence + events.length);
  assert.equal(payment.next_action, null);
});
Deno.test("applyProviderEvent() of a payment by stablecoin: money for a cancelled payment is unapplied", () => {
  const cancelled: Payment = { ...reserved, status: "cancelled", amount_received: 0 };
  const books = applyAll([read("a10+B"), read("a10")], cancelled);
  assert.equal(lineOf(books), "cancelled 0, unapplied 10, exceptions 1");
});

/** The life of a transfer on the chain: the blocks that had it, and whether it became final. */
const Transfer = fc.record({
  amount: fc.integer({ min: 1, max: 12 }),
  undone: fc.integer({ min: 0, max: 2 }),
  end: fc.constantFrom("gone", "seen", "final", "final"),
  is_reported: fc.boolean(),
});
const Chain = fc.record({
  transfers: fc.array(Transfer, { maxLength: 3 }),
  order: fc.array(fc.nat({ max: 1000 }), { minLength: 16, maxLength: 16 }),
});

Deno.test(`applyProviderEvent() of a payment by stablecoin: any order (seed ${SEED})`, () => {
  fc.assert(
    fc.property(Chain, ({ transfers, order }) => {
      const words = transfers.flatMap(({ amount, undone, end, is_reported }, i) => {
        const name = "abc"[i]! + amount;
        const blocks = ["B", "C", "D"];
        const past = blocks.slice(0, undone).flatMap((block) => [
          `${name}+${block}`,
          `${name}-${block}`,
        ]);
        const last = blocks[undone]!;
        if (end === "gone") return past;
        const seen = end === "seen" || is_reported ? [`${name}+${last}`] : [];
        return [...past, ...seen, ...end === "final" ? [name] : []];
      });
      const told = words.map(read);
      const shuffled = told.map((event, i) => ({ event, place: order[i] ?? 0 }))
        .sort((one, other) => one.place - other.place).map(({ event }) => event);
      const books = applyAll(shuffled, undefined, told);
      const sum = (ends: string[]) =>
        transfers.filter(({ end }) => ends.includes(end))
          .reduce((total, { amount }) => total + amount, 0);
      const final = sum(["final"]);
      const { status, amount_received } = books.payment;
      const unapplied = books.ledger["unapplied USDC"] ?? 0;
      assert.equal(0 - (books.ledger["processor USDC"] ?? 0), final, "the ledger is the chain");
      assert.equal(unapplied, final >= 10 ? final - 10 : final);
      const alarms = books.handled.filter(({ exception }) => /undone/.test(exception ?? ""));
      assert.deepEqual(alarms, [], "nothing was undone after it had been final");
      assert.equal(books.ledger["available USDC"] ?? 0, final >= 10 ? 10 : 0);
      assert.equal(status === "completed", final >= 10, status);
      if (final >= 10) return;
      assert.equal(amount_received, sum(["final", "seen"]));
      assert.equal(status, amount_received === 0 ? "pending" : "processing");
    }),
    { numRuns: 3000, seed: SEED },
  );
});

/** A payment of 10 euro cents by bank transfer. */
const wired: Payment = {
  ...reserved,
  currency: "EUR",
  method_kind: "sepa",
  capability: "sepa_payment",
  amount_received: 0,
};
/** Reads a provider event of a bank: `a4` books a transfer of 4, `x` the time is over. */
const booked = (word: string): ProviderEvent => ({ ...read(word), currency: "EUR" });
const byBank = (words: string, payment = wired) =>
  applyAll(words.split(" ").filter(Boolean).map(booked), payment);

const TRANSFERS: [provider_events: string, line: string, events: string][] = [
  ["a10", "completed 10, available 10", "completed"],
  ["a4", "pending 4, unapplied 4", "pending"],
  ["a4 b6", "completed 10, available 10", "pending completed"],
  ["a15", "completed 15, available 10, unapplied 5, exceptions 1", "completed"],
  [
    "a4 b3 c5",
    "completed 12, available 10, unapplied 2, exceptions 1",
    "pending pending completed",
  ],
  ["a10 b10", "completed 20, available 10, unapplied 10, exceptions 1", "completed completed"],
  ["x", "expired 0", "failed"],
  ["a4 x", "underpaid 4, unapplied 4", "pending failed"],
  ["x a10", "expired 10, unapplied 10, exceptions 1", "failed failed"],
  ["a4 x b6", "underpaid 10, unapplied 10, exceptions 1", "pending failed failed"],
];
for (const [words, line, events] of TRANSFERS) {
  Deno.test(`applyProviderEvent() of a payment by bank transfer: ${words}: ${line}`, () => {
    const books = byBank(words);
    assert.equal(lineOf(books), line);
    assert.deepEqual(books.events, events.split(" ").map((status) => `payment.${status}`));
  });
}

Deno.test("applyProviderEvent() of a payment by bank transfer: money for a cancelled payment", () => {
  const cancelled: Payment = { ...wired, status: "cancelled" };
  const { payment, ledger } = byBank("a10", cancelled);
  assert.deepEqual([payment.status, payment.amount_received], ["cancelled", 10]);
  assert.equal(ledger["unapplied EUR"], 10);
});

Deno.test(`applyProviderEvent() of a payment by bank transfer: any order (seed ${SEED})`, () => {
  const Amounts = fc.array(fc.integer({ min: 1, max: 12 }), { maxLength: 4 });
  fc.assert(
    fc.property(Amounts, fc.option(fc.nat({ max: 4 })), (amounts, end) => {
      const words = amounts.map((amount, i) => "abcd"[i]! + amount);
      if (end !== null) words.splice(end, 0, "x");
      const { payment, ledger } = byBank(words.join(" "));
      const sum = amounts.reduce((total, amount) => total + amount, 0);
      const captured = ledger["available EUR"] ?? 0;
      assert.equal(payment.amount_received, sum, "all that came is counted");
      assert.equal(captured + (ledger["unapplied EUR"] ?? 0), sum, "the ledger is the statement");
      assert.equal(captured, payment.status === "completed" ? 10 : 0);
      if (end === null) assert.equal(payment.status, sum >= 10 ? "completed" : "pending");
    }),
    { numRuns: 1000, seed: SEED },
  );
});

/** What the record of an event depends on, beside the payment: another token and `x` on nothing. */
const EXPECTED: [status: Payment["status"], word: string, expected: object][] = [
  ["pending", "a4+B", { reports: 1 }],
  ["pending", "a4", { reports: 1, final_minor: 3 }],
  ["failed", "a4", { reports: 1 }],
  ["pending", "a4$", {}],
  ["pending", "x", {}],
];
for (const [status, word, expected] of EXPECTED) {
  Deno.test(`expectedOf() ${word} of a payment that is ${status}`, () => {
    const change = new ChangeBuilder({ ...reserved, status }, context);
    const reports = [{ state: "received", block_hash: "B" }] as DepositState["reports"];
    assert.deepEqual(expectedOf(change, { final_minor: 3, reports }, read(word)), expected);
    assert.deepEqual(expectedOf(change, null, read(word)), {});
  });
}
