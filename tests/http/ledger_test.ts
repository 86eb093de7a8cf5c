/**
 * The ledger in the API: the accounts that each movement debits and credits, the members of an
 * entry, and the filters and pages of `GET /v1/ledger_entries` (contract §3).
 */

import assert from "node:assert/strict";
import type { TestService } from "../support/service/service.ts";
import {
  advance,
  APPROVED,
  assertRefused,
  LEDGER,
  PAYMENTS,
  serviceCase,
} from "../support/service/service_case.ts";

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

/** Commands after a create, and the entries that they write, oldest first. */
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
    const response = name === "refund"
      ? await service.call("POST", `${PAYMENTS}/${payment.id}/refund`, {
        body: { amount: Number(amount) },
      })
      : await advance(service, payment.id, command);
    assert.ok(response.status < 300, response.text);
  }
  return payment;
}

async function entriesOf(service: TestService, query: string): Promise<Entry[]> {
  const response = await service.call("GET", `${LEDGER}?limit=100&${query}`);
  assert.equal(response.status, 200, response.text);
  return response.body.data;
}

serviceCase("GET /v1/ledger_entries shows both sides of every movement", async (t, service) => {
  for (const [name, body, commands, expected] of FLOWS) {
    await t.step(name, async () => {
      // Each request is a millisecond later than the one before, so the order of the entries is
      // known.
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
  const response = await service.call("GET", LEDGER);
  assert.equal(response.body.url, "/v1/ledger_entries");
  const { body: refunds } = await service.call("GET", `${PAYMENTS}/${payment.id}/refunds`);
  const [credit, debit, capture_credit] = response.body.data;
  for (const entry of response.body.data) assert.equal(Object.keys(entry).join(" "), MEMBERS);
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
      const response = await service.call("GET", `${LEDGER}?${query}`);
      assertRefused(response, 400, "invalid_parameter", param);
    });
  }
  await t.step("pages contain every entry once", async () => {
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

/** The characters of an id, in the order of their values (contract §2). */
const ORDINALS = "0123456789abcdefghjkmnpqrstvwxyz";

/** Adds legs to the ledger transaction of a payment's capture, as fees would do. */
async function addLegs({ sql }: TestService, payment_id: string, legs: number): Promise<void> {
  await sql`
    insert into pay.ledger_movements
    select amount_minor + n, created_at, n, environment_id, transaction_id, kind, subject_id, refund_id,
      credit_account, 'external', currency
    from pay.ledger_movements, generate_series(1, ${legs - 1}::int) n
    where subject_id = ${payment_id} and leg = 0`;
}

serviceCase("GET /v1/ledger_entries lists the legs of a transaction", async (t, service) => {
  const older = await run(service, { outcome: "success" }, ["refund 100"]);
  const { id } = await run(service, { outcome: "success" }, []);
  const LEGS = 13;
  await addLegs(service, id, LEGS);
  await run(service, { outcome: "chargeback" }, []);
  await run(service, { outcome: "success", currency: "USD" }, ["refund 10"]);
  const foreign = await service.make({ outcome: "success" }, { key: service.other.text });
  const everything = await entriesOf(service, "");
  const of_payment = everything.filter(({ payment_id }) => payment_id === id);
  await t.step("newest first: by leg, and each debit is older than its credit", () => {
    const expected = Array.from({ length: LEGS }, (_, leg) => {
      const [debit, credit] = leg === 0 ? ["processor", "available"] : ["available", "external"];
      return [`debit ${debit} ${1000 + leg}`, `credit ${credit} ${1000 + leg}`];
    }).flat();
    assert.deepEqual(
      of_payment.map((entry) => `${entry.direction} ${entry.account} ${entry.amount_minor}`),
      expected.reverse(),
    );
    const ids = everything.map(({ id }) => id);
    assert.deepEqual(ids, [...new Set(ids)].sort().reverse());
  });
  await t.step("an entry's id is derived from its transaction's id", () => {
    for (const [i, entry] of of_payment.toReversed().entries()) {
      const { transaction_id } = entry;
      assert.equal(entry.id.slice(3, -1), transaction_id.slice(4, -1));
      const first = ORDINALS.indexOf(transaction_id.at(-1)!);
      assert.equal(ORDINALS.indexOf(entry.id.at(-1)!), first + 1 + i);
    }
  });
  const [{ transaction_id }] = of_payment as [Entry];
  const lists: [query: string, entries: Entry[]][] = [
    ["", everything],
    [`payment_id=${id}`, of_payment],
    [`payment_id=${older.id}`, everything.filter(({ payment_id }) => payment_id === older.id)],
    [`transaction_id=${transaction_id}`, of_payment],
    ["account=available", everything.filter(({ account }) => account === "available")],
    ["account=external", everything.filter(({ account }) => account === "external")],
    ["account=in_transit", []],
    ["currency=eur", everything.filter(({ currency }) => currency === "EUR")],
    ["currency=JPY", []],
    [
      "account=available&currency=USD",
      everything.filter(({ account, currency }) => account === "available" && currency === "USD"),
    ],
    [
      `payment_id=${id}&account=available`,
      of_payment.filter(({ account }) => account === "available"),
    ],
    [
      `transaction_id=${transaction_id}&payment_id=${id}&account=processor`,
      of_payment.filter(({ account }) => account === "processor"),
    ],
  ];
  for (const [query, entries] of lists) {
    const name = query.replaceAll(/_\w{26}/g, "_…");
    await t.step(`?${name}: pages of every size hold all ${entries.length} once`, async () => {
      for (let limit = 1; limit <= entries.length + 1; limit++) {
        const met: Entry[] = [];
        for (let cursor = "", pages = 1;; pages++) {
          const page = await service.call("GET", `${LEDGER}?${query}&limit=${limit}${cursor}`);
          met.push(...page.body.data);
          const is_last = met.length === entries.length;
          assert.deepEqual([page.status, page.body.has_more], [200, !is_last], page.text);
          if (is_last) break;
          assert.deepEqual([page.body.data.length, pages <= entries.length], [limit, true]);
          cursor = `&starting_after=${page.body.next_cursor}`;
        }
        assert.deepEqual(met, entries);
      }
    });
  }
  await t.step("a page can start after any entry of any list", async () => {
    for (const [i, { id: cursor }] of everything.entries()) {
      for (const [query, entries] of lists) {
        assert.deepEqual(
          await entriesOf(service, `${query}&starting_after=${cursor}`),
          entries.filter((entry) => everything.indexOf(entry) > i),
          `?${query} after ${cursor}`,
        );
      }
    }
  });
  await t.step("an id that no entry has is refused as a cursor", async () => {
    const known = new Set(everything.map(({ id }) => id));
    const [theirs] = await service.sql`
      select id from pay.ledger_entries where subject_id = ${foreign.body.id}`;
    const unknown = [theirs!.id];
    for (const { id } of everything) {
      for (const last of ORDINALS) unknown.push(id.slice(0, -1) + last);
    }
    for (const cursor of unknown.filter((id) => !known.has(id))) {
      const response = await service.call("GET", `${LEDGER}?starting_after=${cursor}`);
      assertRefused(response, 400, "invalid_parameter", "starting_after");
    }
  });
});
