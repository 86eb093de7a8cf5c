/**
 * The judges of the runs with live cards and with a bank find every broken promise. They find nothing
 * in a good run; then each case breaks one thing in the books of the provider or the bank, in ours or
 * in a response, and the judge must name it.
 */

import assert from "node:assert/strict";
import type { StripeBooks } from "../support/stripe/double.ts";
import type { StripeObject } from "../support/stripe/journal.ts";
import { auditCards } from "./worlds/cards/audit.ts";
import type { CardFinished } from "./worlds/cards/clients.ts";
import type { CardAction } from "./worlds/cards/plan.ts";
import { auditBank } from "./worlds/banks/audit.ts";

type CardsBreak = (run: ReturnType<typeof goodCards>) => unknown;

const CARDS_CASES: [defect: string, breach: RegExp, breakRun: CardsBreak][] = [
  ["a payment was charged twice", /pay_1 was charged 2 times/, ({ books }) => {
    books.charge.push({ ...books.charge[0]!, id: "ch_3" });
  }],
  ["a payment has two objects", /pay_1 has 2 objects/, ({ books }) => {
    books.payment_intent.push({ ...books.payment_intent[0]!, id: "pi_3" });
  }],
  ["an object has no payment", /object of pay_9, which is not here/, ({ books }) => {
    books.payment_intent.push(object("payment_intent", "pi_9", { metadata: { payment: "pay_9" } }));
  }],
  ["a payment has no object", /pay_2 has 0 objects/, ({ books }) => books.payment_intent.pop()],
  ["an acknowledged payment is missing", /pay_2 was acknowledged/, ({ payments }) => {
    payments.pop();
  }],
  ["a payment is in no response", /pay_3 is in no response/, ({ payments }) => {
    payments.push({ ...payments[1]!, id: "pay_3" });
  }],
  ["another amount was captured", /captured 1000, the provider 999/, ({ books }) => {
    books.charge[0]!.amount_captured = 999;
  }],
  ["the status differs", /pay_1 is partially_refunded, at the provider/, ({ books }) => {
    books.payment_intent[0]!.status = "requires_capture";
  }],
  ["a refund was made twice", /re_1 is completed, but was refunded 2 times/, ({ books }) => {
    books.refund.push({ ...books.refund[0]!, id: "re_y" });
  }],
  ["a refund was not made", /re_1 is completed, but was refunded 0 times/, ({ books }) => {
    books.refund.pop();
  }],
  ["a refund of the provider is not here", /has a refund re_9/, ({ books }) => {
    books.refund.push(object("refund", "re_z", { metadata: { refund: "re_9" } }));
  }],
  ["a refund has another amount", /re_1 is of 300, at the provider of 301/, ({ books }) => {
    books.refund[0]!.amount = 301;
  }],
  ["a refund is in no response", /re_1 is in no response/, (run) => run.operations.splice(2, 1)],
  ["the refunded sum differs", /pay_1 has 299 refunded, not 300/, ({ payments }) => {
    payments[0]!.amount_refunded = 299;
  }],
  ["the ledger has a cent less", /pay_1: the ledger has 659, the provider 660/, ({ balances }) => {
    balances.set("pay_1", 659);
  }],
  ["duplicates got different responses", /duplicates got/, ({ operations }) => {
    operations[0]!.responses[1]!.text += " ";
  }],
  ["two duplicates were the first", /several first responses/, ({ operations }) => {
    operations[0]!.responses[1]!.is_replay = false;
  }],
  ["a change got no response", /refund-1: 0/, ({ operations }) => {
    operations[2]!.responses[0] = { status: 0, text: "", is_replay: false };
  }],
  ["a customer was made twice", /u1 has 2 customers at the provider/, ({ books }) => {
    books.customer.push({ ...books.customer[0]!, id: "cus_2" });
  }],
  ["a card is of another customer", /ins_1 is of cus_2, which is not/, ({ instruments }) => {
    instruments[0]!.customer = "cus_2";
  }],
  ["a card was detached twice", /ins_1 was detached 2 times/, ({ books }) => {
    books.event.push({ ...books.event[0]!, id: "evt_2" });
  }],
  ["a card was not detached", /ins_1 was detached 0 times/, ({ books }) => books.event.pop()],
  ["an ended card is active", /ins_1 is active, not ended/, ({ instruments }) => {
    instruments[0]!.status = "active";
  }],
  ["the card of a declined payment is kept", /ins_1 is ended, not failed/, ({ instruments }) => {
    instruments[0]!.payment_status = "declined";
  }],
  ["the provider keeps another card", /keeps pm_2, which is no instrument/, ({ books }) => {
    books.payment_method.push({ ...books.payment_method[0]!, id: "pm_2", customer: "cus_1" });
  }],
  ["an ended card was charged", /charge-1: ended, then 201/, ({ operations }) => {
    const charge = { do: "charge", amount_minor: 500, is_late: true } as const;
    operations.push(finished("charge-1", charge, null, 201, { id: "pay_1", status: "completed" }));
  }],
  ["a completed payment was not charged", /contradicts 201/, ({ books }) => {
    books.payment_intent[0]!.amount_received = 0;
  }],
  ["a declined payment was charged", /contradicts 402/, ({ books }) => {
    books.payment_intent[1]!.amount_received = 500;
  }],
];

/** A payment that was charged and refunded in part, and one that was declined. */
function goodCards() {
  const create = { do: "create", token: "pm", amount_minor: 1000, capture: "automatic" } as const;
  const refused = { error: { payment: { id: "pay_2", status: "declined" } } };
  const completed = (id: string) => ({ id, status: "completed" });
  const succeeded = (payment: string) => ({ status: "succeeded", metadata: { payment } });
  const books: StripeBooks = {
    payment_intent: [
      object("payment_intent", "pi_1", { ...succeeded("pay_1"), amount_received: 1000 }),
      object("payment_intent", "pi_2", {
        ...{ status: "canceled", amount_received: 0, metadata: { payment: "pay_2" } },
      }),
    ],
    charge: [object("charge", "ch_1", {
      ...{ ...succeeded("pay_1"), amount_captured: 1000, payment_intent: "pi_1" },
    })],
    refund: [object("refund", "re_x", {
      ...{ status: "succeeded", amount: 300, metadata: { payment: "pay_1", refund: "re_1" } },
    })],
    balance_transaction: [
      object("balance_transaction", "txn_1", { source: "ch_1", net: 960 }),
      object("balance_transaction", "txn_2", { source: "re_x", net: -300 }),
    ],
    customer: [object("customer", "cus_1", { metadata: { customer: "u1" } })],
    payment_method: [object("payment_method", "pm_1", { customer: null })],
    event: [object("event", "evt_1", {
      ...{ type: "payment_method.detached", data: { object: { id: "pm_1" } } },
    })],
    ...{ dispute: [], payout: [], setup_intent: [] },
  };
  return {
    operations: [
      finished("create-1", create, "pay_1", 201, completed("pay_1")),
      finished("create-2", { ...create, amount_minor: 500 }, "pay_2", 402, refused),
      finished("refund-1", { do: "refund", amount_minor: 300 }, "pay_1", 201, completed("re_1")),
      finished("end-1", { do: "end" }, null, 200, { id: "ins_1", ended_reason: "deleted" }),
    ],
    instruments: [{
      ...{ id: "ins_1", status: "ended", customer_id: "u1", customer: "cus_1" as string | null },
      ...{ token: "pm_1" as string | null, payment_status: "completed" },
    }],
    payments: [
      { id: "pay_1", status: "partially_refunded", amount_captured: 1000, amount_refunded: 300 },
      { id: "pay_2", status: "declined", amount_captured: 0, amount_refunded: 0 },
    ],
    refunds: [{ id: "re_1", payment_id: "pay_1", status: "completed", amount_minor: 300 }],
    balances: new Map([["pay_1", 660]]),
    books,
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

function object(kind: string, id: string, fields: object): StripeObject {
  return { id, object: kind, created: 0, ...fields };
}

type BankBreak = (run: ReturnType<typeof goodBank>) => unknown;

const BANK_CASES: [defect: string, breach: RegExp, breakRun: BankBreak][] = [
  ["an entry is booked twice", /4 entries are stored, and the bank has 3/, ({ entries }) => {
    entries.push(-30);
  }],
  ["an entry is lost", /2 entries are stored/, ({ entries }) => entries.pop()],
  ["an entry has another amount", /the entries are 971, at the bank 970/, ({ entries }) => {
    entries[1] = -29;
  }],
  ["the ledger has a cent more", /the ledger has 971, the statement 970/, ({ booked }) => {
    booked.set(null, 1);
  }],
  ["money is booked for another order", /tr-1: booked 0, at the bank -30/, ({ booked }) => {
    booked.delete("tr-1");
    booked.set("tr-2", -30);
  }],
  ["money without a purpose is not booked", /other money: booked 0, at the bank -5/, (run) => {
    run.books.entries.push({ amount: -5, parts: [] });
  }],
  ["an order never left", /tr_2 is pending, and the bank never got it/, ({ books }) => {
    delete books.orders["tr-2"];
  }],
  ["an order left that nobody made", /the bank has got tr-3, which nobody/, ({ books }) => {
    books.orders["tr-3"] = "booked";
  }],
  [
    "an order is under another mandate",
    /pay_2 is under M-1, at the bank under M-2/,
    ({ books }) => {
      books.mandates["pay-2"] = "M-2";
    },
  ],
  ["a mandate is over that nobody has closed", /M-1 is account_closed/, ({ mandates }) => {
    mandates.set("M-1", "account_closed");
  }],
  ["a closed mandate is active", /M-1 is active/, ({ books }) => {
    books.codes["pay-2"] = "AC04";
  }],
  ["a mandate that is saved alone is open", /pay_3 saves .* is processing/, ({ subjects }) => {
    subjects.find(({ id }) => id === "pay_3")!.status = "processing";
  }],
  ["a booked order is open", /tr_1 is pending, at the bank booked/, ({ subjects }) => {
    subjects[1]!.status = "pending";
  }],
  ["an order is completed that waits", /tr_2 is completed, at the bank taken/, ({ subjects }) => {
    subjects[2]!.status = "completed";
  }],
  ["a rejected order is not failed", /tr_1 is completed, at the bank rejected/, ({ books }) => {
    books.orders["tr-1"] = "rejected";
  }],
  ["a returned order is not failed", /tr_1 is completed, at the bank returned/, ({ books }) => {
    books.orders["tr-1"] = "returned";
  }],
  ["an order is missing", /tr_2 is undefined, at the bank taken/, ({ subjects }) => {
    subjects.splice(2, 1);
  }],
  ["a payment shows less", /pay_1 has received 400, at the bank 1000/, ({ subjects }) => {
    subjects[0]!.amount_received = 400;
  }],
  ["a paid payment is open", /pay_1 of 900 is pending with 1000/, ({ subjects }) => {
    subjects[0]!.status = "pending";
  }],
  ["a payment is completed with too little", /pay_1 of 1001 is completed/, ({ payments }) => {
    payments[0]!.amount = 1001;
  }],
  ["an invariant is broken", /invariant_ledger/, ({ broken }) => broken.push("invariant_ledger")],
];

/**
 * A payment in two parts, two transfers, of which the bank has booked one, a collection, and a
 * mandate that is saved alone.
 */
function goodBank() {
  const orders: Parameters<typeof auditBank>[0]["books"]["orders"] = {
    "tr-1": "booked",
    "tr-2": "taken",
    "pay-2": "taken",
  };
  const part = (amount: number, of: string | null) => ({ amount, parts: [{ amount, of }] });
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
      orders,
      mandates: { "pay-2": "M-1" } as Record<string, string>,
      codes: {} as Record<string, string>,
    },
    mandates: new Map<string, string | null>([["M-1", null]]),
    subjects: [
      { id: "pay_1", status: "completed", amount_received: 1000 as number | null },
      { id: "tr_1", status: "completed", amount_received: null },
      { id: "tr_2", status: "pending", amount_received: null },
      { id: "pay_2", status: "processing", amount_received: null },
      { id: "pay_3", status: "completed", amount_received: null },
    ],
    entries: [400, -30, 600],
    booked: new Map<string | null, number>([["RF1", 1000], ["tr-1", -30]]),
    broken: [] as string[],
  };
}

/** Judges a good run, and runs in which one thing is broken. */
function testJudge<Run>(
  judge: (run: Run) => string[],
  makeRun: () => Run,
  cases: [defect: string, breach: RegExp, breakRun: (run: Run) => unknown][],
): void {
  Deno.test(`${judge.name}() finds nothing in a good run`, () => {
    assert.deepEqual(judge(makeRun()), []);
  });
  for (const [defect, breach, breakRun] of cases) {
    Deno.test(`${judge.name}() finds that ${defect}`, () => {
      const run = makeRun();
      breakRun(run);
      assert.match(judge(run).join("\n"), breach);
    });
  }
}

testJudge(auditCards, goodCards, CARDS_CASES);
testJudge(auditBank, goodBank, BANK_CASES);
