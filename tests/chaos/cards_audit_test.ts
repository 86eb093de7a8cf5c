/**
 * The judge of the run with live cards finds every broken promise. It finds nothing in a good run; then each
 * case breaks one thing in the provider's books, in ours or in a response, and the judge must name
 * it.
 */

import assert from "node:assert/strict";
import type { StripeBooks } from "../support/stripe/double.ts";
import type { StripeObject } from "../support/stripe/journal.ts";
import { auditCards } from "./worlds/cards/audit.ts";
import type { CardFinished } from "./worlds/cards/clients.ts";
import type { CardAction } from "./worlds/cards/plan.ts";

/** Breaks the good run. */
type Break = (run: ReturnType<typeof goodRun>) => unknown;

const CASES: [defect: string, breach: RegExp, breakRun: Break][] = [
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
  ["a refund is in no response", /re_1 is in no response/, (run) => run.operations.pop()],
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
  ["a completed payment was not charged", /contradicts 201/, ({ books }) => {
    books.payment_intent[0]!.amount_received = 0;
  }],
  ["a declined payment was charged", /contradicts 402/, ({ books }) => {
    books.payment_intent[1]!.amount_received = 500;
  }],
];

Deno.test("auditCards() finds nothing in a good run", () => {
  assert.deepEqual(auditCards(goodRun()), []);
});

for (const [defect, breach, breakRun] of CASES) {
  Deno.test(`auditCards() finds that ${defect}`, () => {
    const run = goodRun();
    breakRun(run);
    const breaches = auditCards(run);
    assert.ok(breaches.some((text) => breach.test(text)), breaches.join("\n"));
  });
}

/** A payment that was charged and refunded in part, and one that was declined. */
function goodRun() {
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
    ...{ dispute: [], payout: [], event: [] },
  };
  return {
    operations: [
      finished("create-1", create, "pay_1", 201, completed("pay_1")),
      finished("create-2", { ...create, amount_minor: 500 }, "pay_2", 402, refused),
      finished("refund-1", { do: "refund", amount_minor: 300 }, "pay_1", 201, completed("re_1")),
    ],
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
  payment_id: string,
  status: number,
  shown: object,
): CardFinished {
  const text = JSON.stringify(shown);
  const responses = [false, true].map((is_replay) => ({ status, text, is_replay }));
  return { key, action, duplicates: 2, payment_id, responses };
}

function object(kind: string, id: string, fields: object): StripeObject {
  return { id, object: kind, created: 0, ...fields };
}
