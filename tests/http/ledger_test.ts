/**
 * The ledger and the balances in the API (contract §3): both sides of each movement, filters and
 * pages of `GET /v1/ledger_entries`, and an exact balance. races/ledger_totals_test.ts has the
 * balance of concurrent requests.
 */

import assert from "node:assert/strict";
import { readPages } from "../support/http/list_pages.ts";
import type { TestService } from "../support/service/service.ts";
import {
  advance,
  APPROVED,
  assertRefused,
  LEDGER,
  PAYMENTS,
  serviceCase,
} from "../support/service/service_case.ts";

const BALANCE = "/api-v1-payments/v1/balance";
const TRANSFERS = "/api-v1-payments/v1/transfers";
/** The characters of an id, in the order of their values (contract §2). */
const ORDINALS = "0123456789abcdefghjkmnpqrstvwxyz";

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

/** Makes a payment and moves it by commands, such as `refund 100` or `chargeback`. */
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
  return (await service.get(`${LEDGER}?limit=100&${query}`)).data;
}

/** Adds legs to the ledger transaction of a payment's capture, as fees would do. */
async function addLegs({ sql }: TestService, payment_id: string, legs: number): Promise<void> {
  await sql`
    insert into pay.ledger_movements
    select amount_minor + n, created_at, n, environment_id, transaction_id, kind, subject_id, refund_id,
      credit_account, 'external', currency
    from pay.ledger_movements, generate_series(1, ${legs - 1}::int) n
    where subject_id = ${payment_id} and leg = 0`;
}

serviceCase(
  "GET /v1/ledger_entries filters, and lists the legs of a transaction",
  async (t, service) => {
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
      [`transaction_id=${transaction_id}`, of_payment],
      ["account=available", everything.filter(({ account }) => account === "available")],
      [`payment_id=${older.id}&transaction_id=${transaction_id}`, []],
    ];
    for (const [query, entries] of lists) {
      const name = query.replaceAll(/_\w{26}/g, "_…");
      await t.step(`?${name}: pages of every size hold all ${entries.length} once`, async () => {
        for (let limit = 1; limit <= entries.length + 1; limit++) {
          const pages = await readPages(service, `${LEDGER}?${query}&limit=${limit}`);
          assert.equal(pages.length, Math.max(1, Math.ceil(entries.length / limit)));
          assert.deepEqual(pages.flatMap(({ data }) => data), entries);
        }
      });
    }
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
        assertRefused(response, "invalid_parameter", "starting_after");
      }
    });
  },
);

serviceCase("GET /v1/balance", async (t, service) => {
  await t.step("of an environment without a movement is empty", async () => {
    const body = await service.get(BALANCE);
    assert.deepEqual(body, { object: "balance", livemode: false, balances: [] });
    const live = await service.get(BALANCE, { key: service.live.text });
    assert.deepEqual(live, { object: "balance", livemode: true, balances: [] });
  });
  await t.step("is credits less debits, by currency and account", async () => {
    const paid = await service.make({ amount_minor: 1000, outcome: "success" });
    await service.make({ amount_minor: 70, currency: "USD", outcome: "chargeback" });
    await service.call("POST", `${PAYMENTS}/${paid.body.id}/refund`, { body: { amount: 300 } });
    await service.call("POST", TRANSFERS, {
      body: { amount: 50, currency: "EUR", destination: APPROVED.sepa, settlement: "manual" },
    });
    const body = await service.get(BALANCE);
    const row = (
      currency: string,
      account: string,
      debits_minor: number,
      credits_minor: number,
    ) => ({
      currency,
      account,
      debits_minor,
      credits_minor,
      amount_minor: credits_minor - debits_minor,
    });
    assert.deepEqual(body.balances, [
      row("EUR", "available", 350, 1000),
      row("EUR", "in_transit", 0, 50),
      row("EUR", "processor", 1000, 300),
      row("USD", "available", 70, 70),
      row("USD", "chargebacks", 0, 70),
      row("USD", "processor", 70, 0),
    ]);
  });
});

serviceCase("GET /v1/balance is exact beyond JavaScript's safe integers", async (_t, service) => {
  const { environment_id } = service.key;
  // 2^53 + 1 is the smallest positive integer that a double cannot hold.
  const sums: [currency: string, debits: string, credits: string][] = [
    ["EUR", "9007199254740993", "0"],
    ["GBP", "1", "9007199254740994"],
    ["USD", "123456789012345678901234567890", "123456789012345678901234567891"],
  ];
  for (const [currency, debits, credits] of sums) {
    await service.sql`
      insert into pay.ledger_totals (environment_id, currency, debit_account, credit_account, stripe,
        generation, updates, amount_minor)
      values
        (${environment_id}, ${currency}, 'available', 'external', 0, 0, 0, ${debits}),
        (${environment_id}, ${currency}, 'processor', 'available', 0, 0, 0, ${credits})`;
  }
  await service.make({ amount_minor: 2, currency: "EUR", outcome: "success" });
  const { status, text } = await service.call("GET", BALANCE);
  assert.equal(status, 200, text);
  const row = (
    currency: string,
    debits: string,
    credits: string,
    amount: string,
    account: string,
  ) =>
    `{"currency":"${currency}","account":"${account}","debits_minor":${debits},` +
    `"credits_minor":${credits},"amount_minor":${amount}}`;
  const rows = [
    row("EUR", "9007199254740993", "2", "-9007199254740991", "available"),
    row("EUR", "0", "9007199254740993", "9007199254740993", "external"),
    row("EUR", "2", "0", "-2", "processor"),
    row("GBP", "1", "9007199254740994", "9007199254740993", "available"),
    row("GBP", "0", "1", "1", "external"),
    row("GBP", "9007199254740994", "0", "-9007199254740994", "processor"),
    row("USD", sums[2]![1], sums[2]![2], "1", "available"),
    row("USD", "0", sums[2]![1], sums[2]![1], "external"),
    row("USD", sums[2]![2], "0", `-${sums[2]![2]}`, "processor"),
  ];
  assert.equal(text, `{"object":"balance","livemode":false,"balances":[${rows}]}`);
});
