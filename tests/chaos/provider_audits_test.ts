/**
 * The judges of the runs with live cards and with a bank find every broken promise. They find
 * nothing in a good run; then each case breaks one thing in the books of the provider or the bank,
 * in ours or in a response, and the judge must name it.
 */

import assert from "node:assert/strict";
import type { StripeObject } from "../support/stripe/journal.ts";
import { auditBank } from "./worlds/banks/audit.ts";
import { auditCards } from "./worlds/cards/audit.ts";
import type { CardFinished } from "./worlds/cards/clients.ts";
import type { CardAction } from "./worlds/cards/plan.ts";

type Break<Run> = (run: Run) => unknown;

const CARDS_CASES: [breach: RegExp, breakRun: Break<ReturnType<typeof goodCards>>][] = [
  [/pay_1 was charged 2 times/, change("books.charge.+", { id: "ch_3" })],
  [/pay_1 has 2 objects/, change("books.payment_intent.+", { id: "pi_3" })],
  [
    /of pay_9, which is not here/,
    change("books.payment_intent.+", { metadata: { payment: "pay_9" } }),
  ],
  [/pay_2 has 0 objects/, change("books.payment_intent.1")],
  [/pay_2 was acknowledged/, change("payments.1")],
  [/pay_3 is in no response/, change("payments.+", { id: "pay_3" })],
  [/captured 1000, the provider 999/, change("books.charge.0.amount_captured", 999)],
  [/pay_1 is partially_refunded, at/, change("books.payment_intent.0.status", "requires_capture")],
  [/re_1 is completed, but was refunded 2 times/, change("books.refund.+", { id: "re_y" })],
  [/re_1 is completed, but was refunded 0 times/, change("books.refund.0")],
  [/has a refund re_9/, change("books.refund.+", { metadata: { refund: "re_9" } })],
  [/re_1 is of 300, at the provider of 301/, change("books.refund.0.amount", 301)],
  [/re_1 is in no response/, change("operations.2")],
  [/pay_1 has 299 refunded, not 300/, change("payments.0.amount_refunded", 299)],
  [/pay_1: the ledger has 659, the provider 660/, ({ balances }) => balances.set("pay_1", 659)],
  [/create-1: duplicates got 201 .* and 201 {}/, change("operations.0.responses.1.text", "{}")],
  [/several first responses/, change("operations.0.responses.1.is_replay", false)],
  [/refund-1: 0/, change("operations.2.responses.0.status", 0)],
  [/u1 has 2 customers at the provider/, change("books.customer.+", { id: "cus_2" })],
  [/ins_1 is of cus_2, which is not/, change("instruments.0.customer", "cus_2")],
  [/ins_1 was detached 2 times/, change("books.event.+", { id: "evt_2" })],
  [/ins_1 was detached 0 times/, change("books.event.0")],
  [/ins_1 is active, not ended/, change("instruments.0.status", "active")],
  [/ins_1 is ended, not failed/, change("instruments.0.payment_status", "declined")],
  [/keeps pm_2, which/, change("books.payment_method.+", { id: "pm_2", customer: "cus_1" })],
  [/charge-1: ended, then 201/, ({ operations }) => {
    const charge = { do: "charge", amount_minor: 500, is_late: true } as const;
    operations.push(finished("charge-1", charge, null, 201, { id: "pay_1", status: "completed" }));
  }],
  [/contradicts 201/, change("books.payment_intent.0.amount_received", 0)],
  [/contradicts 402/, change("books.payment_intent.1.amount_received", 500)],
];

const BANK_CASES: [breach: RegExp, breakRun: Break<ReturnType<typeof goodBank>>][] = [
  [/4 entries are stored, and the bank has 3/, ({ entries }) => entries.push(-30)],
  [/2 entries are stored/, change("entries.2")],
  [/the entries are 971, at the bank 970/, change("entries.1", -29)],
  [/the ledger has 971, the statement 970/, ({ booked }) => booked.set(null, 1)],
  [/tr-1: booked 0, at the bank -30/, ({ booked }) => booked.set("tr-1", 0).set("tr-2", -30)],
  [/other money: booked 0, at the bank -5/, change("books.entries.+", { amount: -5, parts: [] })],
  [/tr_2 is pending, and the bank never got it/, change("books.orders.tr-2")],
  [/the bank has got tr-3, which nobody/, change("books.orders.tr-3", "booked")],
  [/pay_2 is under M-1, at the bank under M-2/, change("books.mandates.pay-2", "M-2")],
  [/M-1 is account_closed/, ({ mandates }) => mandates.set("M-1", "account_closed")],
  [/M-1 is active/, change("books.codes.pay-2", "AC04")],
  [/pay_3 saves .* is processing/, change("subjects.4.status", "processing")],
  [/tr_1 is pending, at the bank booked/, change("subjects.1.status", "pending")],
  [/tr_2 is completed, at the bank taken/, change("subjects.2.status", "completed")],
  [/tr_1 is completed, at the bank rejected/, change("books.orders.tr-1", "rejected")],
  [/tr_1 is completed, at the bank returned/, change("books.orders.tr-1", "returned")],
  [/tr_2 is undefined, at the bank taken/, change("subjects.2")],
  [/pay_1 has received 400, at the bank 1000/, change("subjects.0.amount_received", 400)],
  [/pay_1 of 900 is pending with 1000/, change("subjects.0.status", "pending")],
  [/pay_1 of 1001 is completed/, change("payments.0.amount", 1001)],
  [/invariant_ledger/, ({ broken }) => broken.push("invariant_ledger")],
];

/**
 * Changes the value at a path. Without a value it is removed, and a path to `+` adds a copy of the
 * first item with other fields.
 */
function change(path: string, value?: unknown): Break<object> {
  return (run) => {
    const names = path.split(".");
    const name = names.pop()!;
    // deno-lint-ignore no-explicit-any
    const holder = names.reduce((at: any, each) => at[each], run);
    if (name === "+") holder.push({ ...holder[0], ...value as object });
    else if (value !== undefined) holder[name] = value;
    else if (Array.isArray(holder)) holder.splice(Number(name), 1);
    else delete holder[name];
  };
}

/** A payment that was charged and refunded in part, and one that was declined. */
function goodCards() {
  const create = { do: "create", token: "pm", amount_minor: 1000, capture: "automatic" } as const;
  const refused = { error: { payment: { id: "pay_2", status: "declined" } } };
  const completed = (id: string) => ({ id, status: "completed" });
  const charged = { status: "succeeded", metadata: { payment: "pay_1" } };
  const [declined, refunded] = [{ payment: "pay_2" }, { payment: "pay_1", refund: "re_1" }];
  const detached = { type: "payment_method.detached", data: { object: { id: "pm_1" } } };
  return {
    operations: [
      finished("create-1", create, "pay_1", 201, completed("pay_1")),
      finished("create-2", { ...create, amount_minor: 500 }, "pay_2", 402, refused),
      finished("refund-1", { do: "refund", amount_minor: 300 }, "pay_1", 201, completed("re_1")),
      finished("end-1", { do: "end" }, null, 200, { id: "ins_1", ended_reason: "deleted" }),
    ],
    instruments: [{
      ...{ id: "ins_1", status: "ended", customer_id: "u1", customer: "cus_1" },
      ...{ token: "pm_1", payment_status: "completed" },
    }],
    payments: [
      { id: "pay_1", status: "partially_refunded", amount_captured: 1000, amount_refunded: 300 },
      { id: "pay_2", status: "declined", amount_captured: 0, amount_refunded: 0 },
    ],
    refunds: [{ id: "re_1", payment_id: "pay_1", status: "completed", amount_minor: 300 }],
    balances: new Map([["pay_1", 660]]),
    books: {
      payment_intent: [
        object("pi_1", { ...charged, amount_received: 1000 }),
        object("pi_2", { status: "canceled", amount_received: 0, metadata: declined }),
      ],
      charge: [object("ch_1", { ...charged, amount_captured: 1000, payment_intent: "pi_1" })],
      refund: [object("re_x", { status: "succeeded", amount: 300, metadata: refunded })],
      balance_transaction: [
        object("txn_1", { source: "ch_1", net: 960 }),
        object("txn_2", { source: "re_x", net: -300 }),
      ],
      customer: [object("cus_1", { metadata: { customer: "u1" } })],
      payment_method: [object("pm_1", { customer: null })],
      event: [object("evt_1", detached)],
      ...{ dispute: [], payout: [], setup_intent: [] },
    },
  };
}

function finished(
  key: string,
  action: CardAction,
  payment_id: string | null,
  status: number,
  shown: object,
): CardFinished {
  const text = JSON.stringify(shown);
  const responses = [false, true].map((is_replay) => ({ status, text, is_replay }));
  const target_id = action.do === "end" ? "ins_1" : payment_id;
  return { key, action, duplicates: 2, target_id, payment_id, responses };
}

function object(id: string, fields: object): StripeObject {
  return { id, object: "", created: 0, ...fields };
}

/**
 * A payment in two parts, two transfers, of which the bank has booked one, a collection, and a
 * mandate that is saved alone.
 */
function goodBank() {
  const part = (amount: number, of: string | null) => ({ amount, parts: [{ amount, of }] });
  const subject = (id: string, status: string, amount_received: number | null = null) => {
    return { id, status, amount_received };
  };
  return {
    payments: [{ id: "pay_1", reference: "RF1", amount: 900 }],
    orders: [
      { id: "tr_1", amount: 30, mandate: null },
      { id: "tr_2", amount: 30, mandate: null },
      { id: "pay_2", amount: 30, mandate: "M-1" },
    ],
    saved_alone: ["pay_3"],
    books: {
      entries: [part(400, "RF1"), part(-30, "tr-1"), part(600, "RF1")],
      orders: { "tr-1": "booked", "tr-2": "taken", "pay-2": "taken" } as const,
      mandates: { "pay-2": "M-1" },
      codes: {},
    },
    mandates: new Map<string, string | null>([["M-1", null]]),
    subjects: [
      subject("pay_1", "completed", 1000),
      subject("tr_1", "completed"),
      subject("tr_2", "pending"),
      subject("pay_2", "processing"),
      subject("pay_3", "completed"),
    ],
    entries: [400, -30, 600],
    booked: new Map<string | null, number>([["RF1", 1000], ["tr-1", -30]]),
    broken: [] as string[],
  };
}

function testJudge<Run>(
  judge: (run: Run) => string[],
  makeRun: () => Run,
  cases: [breach: RegExp, breakRun: Break<Run>][],
): void {
  Deno.test(`${judge.name}() finds nothing in a good run`, () => {
    assert.deepEqual(judge(makeRun()), []);
  });
  for (const [breach, breakRun] of cases) {
    Deno.test(`${judge.name}() finds that ${breach.source}`, () => {
      const run = makeRun();
      breakRun(run);
      assert.match(judge(run).join("\n"), breach);
    });
  }
}

testJudge(auditCards, goodCards, CARDS_CASES);
testJudge(auditBank, goodBank, BANK_CASES);
