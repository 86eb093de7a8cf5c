/**
 * The judge of the run with a bank finds every broken promise. It finds nothing in a good run; then
 * each case breaks one thing at the bank or in what is stored, and the judge must name it.
 */

import assert from "node:assert/strict";
import { auditBank } from "./worlds/banks/audit.ts";

/** Breaks the good run. */
type Break = (run: ReturnType<typeof goodRun>) => unknown;

const CASES: [defect: string, breach: RegExp, breakRun: Break][] = [
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
    subjects.pop();
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

Deno.test("auditBank() finds nothing in a good run", () => {
  assert.deepEqual(auditBank(goodRun()), []);
});

for (const [defect, breach, breakRun] of CASES) {
  Deno.test(`auditBank() reports that ${defect}`, () => {
    const run = goodRun();
    breakRun(run);
    assert.match(auditBank(run).join("\n"), breach);
  });
}

/** A payment in two parts, and two transfers, of which the bank has booked one. */
function goodRun() {
  const orders: Parameters<typeof auditBank>[0]["books"]["orders"] = {
    "tr-1": "booked",
    "tr-2": "taken",
  };
  const part = (amount: number, of: string | null) => ({ amount, parts: [{ amount, of }] });
  return {
    payments: [{ id: "pay_1", reference: "RF1", amount: 900 }],
    orders: [{ id: "tr_1", amount: 30 }, { id: "tr_2", amount: 30 }],
    books: { entries: [part(400, "RF1"), part(-30, "tr-1"), part(600, "RF1")], orders },
    subjects: [
      { id: "pay_1", status: "completed", amount_received: 1000 as number | null },
      { id: "tr_1", status: "completed", amount_received: null },
      { id: "tr_2", status: "pending", amount_received: null },
    ],
    entries: [400, -30, 600],
    booked: new Map<string | null, number>([["RF1", 1000], ["tr-1", -30]]),
    broken: [] as string[],
  };
}
