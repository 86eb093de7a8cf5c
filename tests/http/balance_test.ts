/**
 * `GET /v1/balance`: the balance is exact at any moment, and its cost does not grow with the
 * ledger.
 */

import assert from "node:assert/strict";
import { parseApiKey } from "../../shared/core/api_key.ts";
import { startSecondService } from "../support/service/second_service.ts";
import { fillLedger } from "../support/database/filled_sandbox.ts";
import {
  APPROVED,
  LEDGER,
  PAYMENTS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";
import { timed } from "../support/common/timed.ts";

const BALANCE = "/api-v1-payments/v1/balance";
const TRANSFERS = "/api-v1-payments/v1/transfers";
/** The number of operations of each writer. */
const TURNS = 60;
/** The number of timings of each of two operations. The shortest times are compared. */
const ROUNDS = 10;
/**
 * An operation may take at most five times as long with a million entries. Adding all of them up
 * would take more than a hundred times as long.
 */
const FACTOR_MAX = 5;

serviceCase("GET /v1/balance", async (t, service) => {
  await t.step("of an environment without a movement is empty", async () => {
    const { body } = await service.call("GET", BALANCE);
    assert.deepEqual(body, { object: "balance", livemode: false, balances: [] });
    const live = await service.call("GET", BALANCE, { key: service.live.text });
    assert.deepEqual(live.body, { object: "balance", livemode: true, balances: [] });
  });
  await t.step("is credits less debits, by currency and account", async () => {
    const paid = await service.make({ amount_minor: 1000, outcome: "success" });
    await service.make({ amount_minor: 70, currency: "USD", outcome: "chargeback" });
    await service.call("POST", `${PAYMENTS}/${paid.body.id}/refund`, { body: { amount: 300 } });
    await service.call("POST", TRANSFERS, {
      body: { amount: 50, currency: "EUR", destination: APPROVED.sepa, settlement: "manual" },
    });
    const { body } = await service.call("GET", BALANCE);
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

serviceCase("GET /v1/balance equals the sum of the entries at every moment", async (_t, first) => {
  const second = startSecondService(first);
  const environment_id = first.key.environment_id;
  const key_hash = parseApiKey(first.key.text)!.hash;
  let is_writing = true;
  const writer = async (call: typeof second.call) => {
    for (let i = 0; i < TURNS; i++) {
      const made = await call("POST", `${SANDBOX}/payments`, {
        body: { amount_minor: 100 + i, currency: i % 3 ? "EUR" : "USD", outcome: "success" },
      });
      assert.equal(made.status, 201, made.text);
      await call("POST", `${PAYMENTS}/${made.body.id}/refund`, { body: { amount: 10 } });
      const sent = await call("POST", TRANSFERS, {
        body: { amount: 20, currency: "EUR", destination: APPROVED.sepa, settlement: "manual" },
      });
      if (sent.status === 201) await call("POST", `${TRANSFERS}/${sent.body.id}/cancel`);
    }
  };
  /** Reads the balance and the entries in one snapshot, repeatedly. */
  const reader = async () => {
    let reads = 0;
    for (; is_writing; reads++) {
      await first.sql.begin("isolation level repeatable read", async (sql) => {
        const [shown] = await sql`
          select body from pay.balance(p_request => json_build_array(json_build_object(
            'n', 1, 'key_hash', ${key_hash}::text, 'at', now()))::text)`;
        const entries = await sql`
          select currency, account,
            coalesce(sum(amount_minor) filter (where direction = 'debit'), 0)::int as debits_minor,
            coalesce(sum(amount_minor) filter (where direction = 'credit'), 0)::int as credits_minor
          from pay.ledger_entries where environment_id = ${environment_id}
          group by 1, 2 order by 1, 2`;
        assert.deepEqual(
          JSON.parse(shown!.body).balances,
          entries.map((row) => ({ ...row, amount_minor: row.credits_minor - row.debits_minor })),
        );
      });
    }
    return reads;
  };
  try {
    await first.make({ outcome: "success" });
    const watching = reader();
    watching.catch(() => {});
    await Promise.all([
      writer(first.call),
      writer(second.call),
      writer(first.call),
      writer(second.call),
    ])
      .finally(() => is_writing = false);
    const reads = await watching;
    console.log(`${reads} readings equal their entries`);
    assert.ok(reads > 10);
  } finally {
    await second.close();
  }
});

serviceCase("a balance over a million ledger entries", async (t, service) => {
  await fillLedger(service.sql, service.key.environment_id, 500_000);
  await service.sql`analyze`;
  const read = async () => {
    const { response, ms } = await timed(service.call("GET", BALANCE));
    assert.equal(response.status, 200, response.text);
    assert.deepEqual(response.body.balances.map((b: { amount_minor: number }) => b.amount_minor), [
      50_000_000,
      -50_000_000,
    ]);
    return ms;
  };
  const young = { key: service.other.text };
  await service.make({ amount_minor: 50_000_000, outcome: "success" }, young);
  await t.step("GET /v1/balance is as fast as with a short history", async () => {
    await assertAsQuick(read, async () => {
      const { response, ms } = await timed(service.call("GET", BALANCE, young));
      assert.equal(response.status, 200, response.text);
      return ms;
    });
  });
  await t.step("POST /v1/transfers is as fast as with a short history", async () => {
    const amount = 50_000_000 / ROUNDS;
    const send = async (options: { key?: string }) => {
      const body = { amount, currency: "EUR", destination: APPROVED.sepa };
      const { response, ms } = await timed(service.call("POST", TRANSFERS, { ...options, body }));
      assert.equal(response.status, 201, response.text);
      return ms;
    };
    await assertAsQuick(() => send({}), () => send(young));
    const more = await service.call("POST", TRANSFERS, {
      body: { amount: 1, currency: "EUR", destination: APPROVED.sepa },
    });
    assert.equal(more.status, 402);
    assert.equal((await service.call("GET", `${LEDGER}?limit=1`)).body.has_more, true);
  });
});

/** Compares the shortest times of an operation with a long and with a short history. */
async function assertAsQuick(one: () => Promise<number>, beside: () => Promise<number>) {
  let [best, best_beside] = [Infinity, Infinity];
  for (let round = 0; round < ROUNDS; round++) {
    best = Math.min(best, await one());
    best_beside = Math.min(best_beside, await beside());
  }
  const figures = `${best.toFixed(1)} ms, without a history ${best_beside.toFixed(1)} ms`;
  console.log(figures);
  assert.ok(best < FACTOR_MAX * best_beside, figures);
}
