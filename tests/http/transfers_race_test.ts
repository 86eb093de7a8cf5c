/**
 * Concurrent transfers on two isolates over one database never overdraw the balance, and the money
 * of each transfer moves once.
 */

import assert from "node:assert/strict";
import { checkBooks } from "../../apps/operator/check_books.ts";
import { startSecondService } from "../support/service/second_service.ts";
import { startService } from "../support/service/service.ts";

const TRANSFERS = "/api-v1-payments/v1/transfers";
const IBAN = "DE89 3704 0044 0532 0130 00";
const WALLET = "0x000000000000000000000000000000000000dEaD";

Deno.test("concurrent transfers on two isolates", async (t) => {
  const first = await startService();
  const second = startSecondService(first);
  const services = [first, second];
  const send = (i: number, body: Record<string, unknown>, idempotency_key?: string) =>
    services[i % 2]!.call("POST", TRANSFERS, {
      body: { amount: 7, currency: "EUR", destination: { iban: IBAN }, ...body },
      ...(idempotency_key && { idempotency_key }),
    });
  /** The available balance of each currency, as the sum of the entries. */
  const available = async () => {
    const rows = await first.sql`
      select currency,
        sum(case direction when 'credit' then amount_minor else -amount_minor end)::int as n
      from pay.ledger_entries where account = 'available' group by 1 order by 1`;
    return Object.fromEntries(rows.map(({ currency, n }) => [currency, n]));
  };
  try {
    await first.make({ amount_minor: 100, outcome: "success" });
    await first.make({
      amount_minor: 50,
      currency: "USDC",
      method_kind: "stablecoin",
      outcome: "success",
    });
    await t.step("of 80, only 14 of 7 EUR and 7 of 7 USDC fit into the balance", async () => {
      const responses = await Promise.all(
        Array.from(
          { length: 80 },
          (_, i) => send(i, i % 4 < 2 ? {} : { currency: "USDC", destination: { wallet: WALLET } }),
        ),
      );
      const made = (currency: string) =>
        responses.filter(({ status, body }) => status === 201 && body.currency === currency).length;
      assert.deepEqual([made("EUR"), made("USDC")], [14, 7]);
      assert.deepEqual([...new Set(responses.map(({ status }) => status))].sort(), [201, 402]);
      assert.deepEqual(await available(), { EUR: 2, USDC: 1 });
    });
    await t.step("with concurrent payments the balance never falls below 0", async () => {
      const paid = [];
      for (let i = 0; i < 10; i++) {
        paid.push((await first.make({ amount_minor: 70, outcome: "success" })).body.id);
      }
      const work = Array.from(
        { length: 100 },
        (_, i) =>
          i % 10 > 7
            ? services[i % 2]!.call("POST", "/api-v1-sandbox/payments", {
              body: { amount: 7, currency: "EUR", outcome: "success" },
            })
            : send(i, { amount: 10 }),
      );
      const responses = (await Promise.all(work)) as { status?: number }[];
      const made = responses.filter((response, i) => i % 10 < 8 && response.status === 201).length;
      const { EUR } = await available();
      assert.equal(EUR, 2 + 700 + 140 - 10 * made);
      assert.ok(EUR! >= 0 && made >= 70, `${made} made, ${EUR} left`);
    });
    await t.step("one of cancel, complete and fail succeeds and moves the money once", async () => {
      await first.make({ amount_minor: 1000, outcome: "success" });
      for (let round = 0; round < 30; round++) {
        const before = (await available()).EUR!;
        const { body: made } = await send(0, { settlement: "manual" });
        const advance = `/api-v1-sandbox/transfers/${made.id}/advance`;
        const responses = await Promise.all([
          first.call("POST", `${TRANSFERS}/${made.id}/cancel`),
          second.call("POST", `${TRANSFERS}/${made.id}/cancel`),
          // Not both in one round, because a completed transfer can fail later.
          second.call("POST", advance, { body: { to: round % 2 ? "completed" : "failed" } }),
        ]);
        const { body } = await first.call("GET", `${TRANSFERS}/${made.id}`);
        assert.equal(body.sequence, 2);
        const won = responses.filter(({ status }) => status === 200);
        assert.equal(won.length, 1, responses.map(({ text }) => text).join("\n"));
        assert.deepEqual(won[0]!.body, body);
        assert.equal((await available()).EUR, before - (body.status === "completed" ? 7 : 0));
      }
    });
    await t.step("duplicates under one idempotency key create one transfer", async () => {
      const before = (await available()).EUR!;
      const duplicates = await Promise.all(
        Array.from({ length: 20 }, (_, i) => send(i, {}, "duplicate")),
      );
      assert.equal(new Set(duplicates.map(({ text }) => text)).size, 1, duplicates[0]!.text);
      assert.equal((await available()).EUR, before - 7);
    });
    await t.step("duplicates of a transfer that empties the balance get its response", async () => {
      const amount = (await available()).EUR!;
      const duplicates = await Promise.all(
        Array.from({ length: 20 }, (_, i) => send(i, { amount }, "last")),
      );
      assert.deepEqual([...new Set(duplicates.map(({ status }) => status))], [201]);
      assert.equal(new Set(duplicates.map(({ text }) => text)).size, 1);
      assert.equal((await available()).EUR, 0);
    });
    await t.step("pay.check_books() finds nothing", async () => {
      const broken = (await checkBooks(first.sql)).filter(({ breaches }) => breaches > 0);
      assert.deepEqual(broken, []);
    });
  } finally {
    await second.close();
    await first.close();
  }
});
