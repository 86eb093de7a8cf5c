/**
 * Transfers over HTTP (contract §3): the balance that they need and hold, and races for it.
 * tests/domain has the rules of each step, tests/model has lives of transfers.
 */

import assert from "node:assert/strict";
import { contentOf } from "../support/database/environment_content.ts";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import { startSecondService } from "../support/service/second_service.ts";
import type { TestService } from "../support/service/service.ts";
import { APPROVED, assertRefused, serviceCase } from "../support/service/service_case.ts";

const TRANSFERS = "/api-v1-payments/v1/transfers";

function send(
  service: Pick<TestService, "call">,
  body: Record<string, unknown> = {},
  options = {},
) {
  return service.call("POST", TRANSFERS, {
    body: { amount: 100, currency: "EUR", destination: APPROVED.sepa, ...body },
    ...options,
  });
}

serviceCase("POST /v1/transfers takes what the balance has", async (t, service) => {
  await service.make({ amount_minor: 1000, outcome: "success" });
  await t.step("a pending one holds its amount until it is cancelled", async () => {
    const { body: waiting } = await send(service, { settlement: "manual", amount: 900 });
    const held = await contentOf(service, service.key.environment_id);
    assertRefused(await send(service, { amount: 101 }), "balance_insufficient");
    assert.deepEqual(await contentOf(service, service.key.environment_id), held);
    const cancel = () => service.call("POST", `${TRANSFERS}/${waiting.id}/cancel`);
    const cancelled = await cancel();
    assert.equal(cancelled.body.status, "cancelled", cancelled.text);
    assert.equal((await send(service, { amount: 1000 })).status, 201);
    const again = await cancel();
    assertRefused(again, "invalid_state");
    assert.deepEqual(again.body.error.allowed, []);
  });
  await t.step("the balance of another currency does not count", async () => {
    const refused = await send(service, { currency: "USD", destination: APPROVED.swift });
    assertRefused(refused, "balance_insufficient");
  });
});

serviceCase("concurrent transfers on two isolates never overdraw", async (t, first) => {
  const second = startSecondService(first);
  const services = [first, second];
  const race = (i: number, body: Record<string, unknown>, idempotency_key?: string) =>
    send(services[i % 2]!, { amount: 7, ...body }, idempotency_key ? { idempotency_key } : {});
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
          (_, i) =>
            race(i, i % 4 < 2 ? {} : { currency: "USDC", destination: APPROVED.stablecoin }),
        ),
      );
      const made = (currency: string) =>
        responses.filter(({ status, body }) => status === 201 && body.currency === currency).length;
      assert.deepEqual([made("EUR"), made("USDC")], [14, 7]);
      assert.deepEqual([...new Set(responses.map(({ status }) => status))].sort(), [201, 402]);
      assert.deepEqual(await available(), { EUR: 2, USDC: 1 });
    });
    await t.step("one of cancel, complete and fail succeeds and moves the money once", async () => {
      await first.make({ amount_minor: 1000, outcome: "success" });
      for (let round = 0; round < 30; round++) {
        const before = (await available()).EUR!;
        const { body: made } = await race(0, { settlement: "manual" });
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
    await t.step("duplicates of a transfer that empties the balance get its response", async () => {
      const amount = (await available()).EUR!;
      const duplicates = await Promise.all(
        Array.from({ length: 20 }, (_, i) => race(i, { amount }, "last")),
      );
      assert.deepEqual([...new Set(duplicates.map(({ status }) => status))], [201]);
      assert.equal(new Set(duplicates.map(({ text }) => text)).size, 1);
      assert.equal((await available()).EUR, 0);
    });
    await t.step("the invariants hold", () => assertSilent(first.sql));
  } finally {
    await second.close();
  }
});
