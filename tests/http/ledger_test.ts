/**
 * The ledger as the API shows it: which accounts each movement debits and credits, the entry's
 * members, and the filters of `GET /v1/ledger_entries` (contract §3). The database refuses what is
 * not balanced, and every change of an entry.
 */

import assert from "node:assert/strict";
import type { TestService } from "../support/service.ts";
import { advance, APPROVED, assertRefused, LEDGER, PAYMENTS, serviceCase } from "./service_case.ts";

interface Entry {
  id: string;
  transaction_id: string;
  account: string;
  direction: string;
  amount_minor: number;
  currency: string;
  payment_id: string;
  refund_id: string | null;
}

const MEMBERS = "id object transaction_id account direction amount_minor currency payment_id " +
  "refund_id transfer_id created_at";
const CAPTURE = ["debit processor 1000", "credit available 1000"];

/** Commands after a create, and the entries that they leave, oldest first. */
const FLOWS: [string, Record<string, unknown>, commands: string[], entries: string[]][] = [
  ["capture", { outcome: "success" }, [], CAPTURE],
  ["no money moves while pending", { outcome: "pending" }, ["processing", "failed"], []],
  ["a decline moves none", { outcome: "declined" }, [], []],
  ["refund", { outcome: "success" }, ["refund 1000"], [
    ...CAPTURE,
    "debit available 1000",
    "credit processor 1000",
  ]],
  ["refunds of parts", { outcome: "success" }, ["refund 1", "refund 998", "refund 1"], [
    ...CAPTURE,
    "debit available 1",
    "credit processor 1",
    "debit available 998",
    "credit processor 998",
    "debit available 1",
    "credit processor 1",
  ]],
  ["chargeback", { outcome: "success" }, ["chargeback"], [
    ...CAPTURE,
    "debit available 1000",
    "credit chargebacks 1000",
  ]],
  ["chargeback of the rest", { outcome: "success" }, ["refund 1", "refund 300", "chargeback"], [
    ...CAPTURE,
    "debit available 1",
    "credit processor 1",
    "debit available 300",
    "credit processor 300",
    "debit available 699",
    "credit chargebacks 699",
  ]],
  ["forced refund", { outcome: "refunded" }, [], [
    ...CAPTURE,
    "debit available 1000",
    "credit processor 1000",
  ]],
  ["forced chargeback", { outcome: "chargeback" }, [], [
    ...CAPTURE,
    "debit available 1000",
    "credit chargebacks 1000",
  ]],
  ["bank return of SEPA", APPROVED.sepa, ["failed"], [
    ...CAPTURE,
    "debit available 1000",
    "credit processor 1000",
  ]],
  ["bank return of SWIFT", APPROVED.swift, ["failed"], [
    ...CAPTURE,
    "debit available 1000",
    "credit processor 1000",
  ]],
  ["capture after waiting", { ...APPROVED.sepa, settlement: "manual" }, ["completed"], CAPTURE],
];

async function run(service: TestService, body: Record<string, unknown>, commands: string[]) {
  const { body: payment, text, status } = await service.make(body);
  assert.equal(status, 201, text);
  for (const command of commands) {
    const [name, amount] = command.split(" ");
    const answer = name === "refund"
      ? await service.call("POST", `${PAYMENTS}/${payment.id}/refund`, {
        body: { amount: Number(amount) },
      })
      : await advance(service, payment.id, command);
    assert.ok(answer.status < 300, answer.text);
  }
  return payment;
}

async function entriesOf(service: TestService, query: string): Promise<Entry[]> {
  const answer = await service.call("GET", `${LEDGER}?limit=100&${query}`);
  assert.equal(answer.status, 200, answer.text);
  return answer.body.data;
}

serviceCase("GET /v1/ledger_entries shows both sides of every movement", async (t, service) => {
  for (const [name, body, commands, expected] of FLOWS) {
    await t.step(name, async () => {
      // Each request a millisecond later than the one before, so that entries sort by it.
      const payment = await run(service, body, commands);
      const entries = (await entriesOf(service, `payment_id=${payment.id}`)).reverse();
      assert.deepEqual(
        entries.map((entry) => `${entry.direction} ${entry.account} ${entry.amount_minor}`),
        expected,
      );
      const sums = new Map<string, number>();
      for (const entry of entries) {
        assert.deepEqual([entry.currency, entry.payment_id], ["EUR", payment.id]);
        const signed = entry.direction === "debit" ? entry.amount_minor : -entry.amount_minor;
        sums.set(entry.transaction_id, (sums.get(entry.transaction_id) ?? 0) + signed);
      }
      assert.equal(sums.size, expected.length / 2);
      assert.ok([...sums.values()].every((sum) => sum === 0));
    });
  }
});

serviceCase("GET /v1/ledger_entries shows an entry's members", async (_t, service) => {
  await service.setClock(Date.parse("2026-01-02T03:04:05.060Z"));
  const { body: payment } = await service.make({ outcome: "refunded", currency: "JPY" });
  const answer = await service.call("GET", LEDGER);
  assert.equal(answer.body.url, "/v1/ledger_entries");
  const { body: refunds } = await service.call("GET", `${PAYMENTS}/${payment.id}/refunds`);
  const [credit, debit, capture_credit] = answer.body.data;
  for (const entry of answer.body.data) assert.equal(Object.keys(entry).join(" "), MEMBERS);
  assert.match(credit.id, /^le_[0-9a-hjkmnp-tv-z]{26}$/);
  assert.match(credit.transaction_id, /^txn_[0-9a-hjkmnp-tv-z]{26}$/);
  assert.equal(debit.transaction_id, credit.transaction_id);
  assert.deepEqual(credit, {
    id: credit.id,
    object: "ledger_entry",
    transaction_id: credit.transaction_id,
    account: "processor",
    direction: "credit",
    amount_minor: 1000,
    currency: "JPY",
    payment_id: payment.id,
    refund_id: refunds.data[0].id,
    transfer_id: null,
    created_at: "2026-01-02T03:04:05.060Z",
  });
  assert.equal(capture_credit.refund_id, null);
});

serviceCase("GET /v1/ledger_entries filters", async (t, service) => {
  const first = await run(service, { outcome: "success" }, ["refund 100", "chargeback"]);
  const second = await run(service, { outcome: "success" }, []);
  await service.make({ outcome: "success" }, { key: service.other.text });
  const everything = await entriesOf(service, "");
  const transaction_id = everything.at(-3)!.transaction_id;
  const cases: [query: string, keep: (entry: Entry) => boolean, count: number][] = [
    ["", () => true, 8],
    [`payment_id=${first.id}`, (entry) => entry.payment_id === first.id, 6],
    [`payment_id=${second.id}`, (entry) => entry.payment_id === second.id, 2],
    [`transaction_id=${transaction_id}`, (entry) => entry.transaction_id === transaction_id, 2],
    ["account=available", (entry) => entry.account === "available", 4],
    ["account=processor", (entry) => entry.account === "processor", 3],
    ["account=chargebacks", (entry) => entry.account === "chargebacks", 1],
    ["account=in_transit", () => false, 0],
    [
      `account=available&payment_id=${first.id}`,
      (entry) => entry.account === "available" && entry.payment_id === first.id,
      3,
    ],
    [`payment_id=${second.id}&transaction_id=${transaction_id}`, () => false, 0],
    [`payment_id=pay_${"0".repeat(26)}`, () => false, 0],
    [`transaction_id=txn_${"0".repeat(26)}`, () => false, 0],
  ];
  for (const [query, keep, count] of cases) {
    await t.step(`?${query.replaceAll(/_\w{26}/g, "_…")} → ${count}`, async () => {
      const entries = await entriesOf(service, query);
      assert.deepEqual(entries, everything.filter(keep));
      assert.equal(entries.length, count);
    });
  }
  const refused: [query: string, param: string][] = [
    ["account=cash", "account"],
    ["payment_id=1", "payment_id"],
    ["transaction_id=pay_1", "transaction_id"],
    [`starting_after=le_${"0".repeat(26)}`, "starting_after"],
    ["limit=0", "limit"],
  ];
  for (const [query, param] of refused) {
    await t.step(`?${query} → 400`, async () => {
      const answer = await service.call("GET", `${LEDGER}?${query}`);
      assertRefused(answer, 400, "invalid_parameter", param);
    });
  }
  await t.step("pages meet every entry once", async () => {
    const met: Entry[] = [];
    for (let cursor = ""; met.length < 20;) {
      const { body } = await service.call("GET", `${LEDGER}?limit=3${cursor}`);
      met.push(...body.data);
      if (!body.has_more) break;
      cursor = `&starting_after=${body.next_cursor}`;
    }
    assert.deepEqual(met, everything);
  });
});

serviceCase("pay.ledger_entries refuses what is not balanced", async (t, service) => {
  const { body: payment } = await service.make({ outcome: "success" });
  const [entry] = await service.sql`select * from pay.ledger_entries where account = 'available'`;
  const added: [string, Record<string, unknown>][] = [
    ["one side alone", {}],
    ["one side of another transaction", { transaction_id: `txn_${"0".repeat(26)}` }],
    ["the same in another currency", { direction: "debit", currency: "USD" }],
  ];
  for (const [name, fields] of added) {
    await t.step(name, async () => {
      const row = { ...entry, id: `le_${"0".repeat(26)}`, ...fields };
      await assert.rejects(
        async () => await service.sql`insert into pay.ledger_entries ${service.sql(row)}`,
        { code: "PAY01" },
      );
      assert.equal((await entriesOf(service, `payment_id=${payment.id}`)).length, 2);
    });
  }
});
