/** Totals of payments, and the number of items of a list (contract §5). */

import assert from "node:assert/strict";
import { fillLists } from "../support/database/filled_lists.ts";
import type { TestService } from "../support/service/service.ts";
import { assertRefused, PAYMENTS, serviceCase } from "../support/service/service_case.ts";

const FIRST_AT = Date.parse("2026-03-01T12:00:00.000Z");
const at = (seconds: number) => new Date(FIRST_AT + seconds * 1000).toISOString();
const CARD = { card: { token: "pm_card_visa" } };
const DECLINED = { card: { token: "pm_card_chargeDeclined" } };

interface Total {
  from: string | null;
  status: string;
  currency: string;
  count: number;
  amount_minor: number;
  amount_captured: number;
  amount_refunded: number;
}

async function totals(service: TestService, query = ""): Promise<unknown[]> {
  const body = await service.get(`${PAYMENTS}/totals?${query}`);
  assert.equal(body.has_more, false, JSON.stringify(body));
  return body.data.map((t: Total) => [
    t.from,
    t.status,
    t.currency,
    t.count,
    t.amount_minor,
    t.amount_captured,
    t.amount_refunded,
  ]);
}

serviceCase("GET /v1/payments/totals counts and adds up", async (t, service) => {
  await service.setClock(FIRST_AT);
  assert.deepEqual(await totals(service), []);
  await service.pay({ ...CARD, amount: 999_999_999_999 });
  const { body: { id } } = await service.pay({ ...CARD, amount: 1_000 });
  await service.call("POST", `${PAYMENTS}/${id}/refund`, { body: { amount: 300 } });
  await service.setClock(FIRST_AT + 59_999);
  await service.pay(DECLINED);
  const held = await service.pay({ ...CARD, amount: 2_000, capture: "manual" });
  await service.call("POST", `${PAYMENTS}/${held.body.id}/capture`, { body: { amount: 1_500 } });
  await service.setClock(FIRST_AT + 60_000);
  await service.pay({ ...CARD, amount: 5, currency: "JPY" });

  const rows: [query: string, totals: unknown[]][] = [
    ["", [
      [null, "completed", "EUR", 2, 1_000_000_001_999, 1_000_000_001_499, 0],
      [null, "completed", "JPY", 1, 5, 5, 0],
      [null, "declined", "EUR", 1, 1_000, 0, 0],
      [null, "partially_refunded", "EUR", 1, 1_000, 1_000, 300],
    ]],
    [`from=${at(0)}&span=60&currency=EUR&status=completed`, [
      [at(0), "completed", "EUR", 2, 1_000_000_001_999, 1_000_000_001_499, 0],
    ]],
    [`from=${at(59)}&span=60`, [
      [at(59), "completed", "EUR", 1, 2_000, 1_500, 0],
      [at(59), "completed", "JPY", 1, 5, 5, 0],
      [at(59), "declined", "EUR", 1, 1_000, 0, 0],
    ]],
    [`from=${at(0)}&span=60&status=completed&method_kind=card`, [
      [at(60), "completed", "JPY", 1, 5, 5, 0],
      [at(0), "completed", "EUR", 2, 1_000_000_001_999, 1_000_000_001_499, 0],
    ]],
    [`from=${at(60)}`, [[null, "completed", "JPY", 1, 5, 5, 0]]],
    [`to=${at(60)}&currency=JPY`, []],
    ["method_kind=sepa", []],
  ];
  for (const [query, expected] of rows) {
    await t.step(query || "all", async () => {
      assert.deepEqual(await totals(service, query), expected);
    });
  }

  const refused: [query: string, param: string][] = [
    ["span=60", "from"],
    [`from=${at(0)}&span=59`, "span"],
    [`from=${at(0)}&span=2678401`, "span"],
    ["starting_after=pay_00000000000000000000000000", "starting_after"],
  ];
  for (const [query, param] of refused) {
    await t.step(`refuses ${query}`, async () => {
      const response = await service.call("GET", `${PAYMENTS}/totals?${query}`);
      assertRefused(response, "invalid_parameter", param);
    });
  }
});

serviceCase("totals and counts of a long list", async (t, service) => {
  const environment_id = await service.environmentOf(service.key);
  await fillLists(service.sql, environment_id, { rows: 20_001 });

  await t.step("totals of the pages add up", async () => {
    let count = 0;
    const pages: number[] = [];
    for (let cursor = "";;) {
      const body = await service.get(`${PAYMENTS}/totals?${cursor}`);
      pages.push(body.data.reduce((sum: number, total: Total) => sum + total.count, 0));
      count += pages.at(-1)!;
      if (!body.has_more) break;
      cursor = `starting_after=${body.next_cursor}`;
    }
    assert.deepEqual([pages, count], [[20_000, 1], 20_001]);
  });

  // In 20 001 rows: every third is declined, every second has the reference, every seventh a
  // customer.
  const counted: [path: string, total: unknown][] = [
    ["payments?", { count: 10_000, is_exact: false }],
    ["payments?status=declined", { count: 6_667, is_exact: true }],
    ["payments?reference=often", { count: 10_000, is_exact: true }],
    ["payments?customer_id=u1", { count: 571, is_exact: true }],
    ["payments?status=completed", null],
    ["payments?search=often", null],
    ["webhook_endpoints?", { count: 0, is_exact: true }],
  ];
  for (const [path, total] of counted) {
    await t.step(path, async () => {
      const url = `/api-v1-payments/v1/${path}&limit=1`;
      // The rows that SQL has inserted are no payments.
      const read = async (query: string) => await service.get(url + query, { unchecked: true });
      const body = await read("&include=total");
      assert.deepEqual(body.total, total);
      assert.equal("total" in await read(""), false);
      if (body.next_cursor === null) return;
      const next = await read(`&include=total&starting_after=${body.next_cursor}`);
      assert.deepEqual(next.total, total);
    });
  }
  const other = await service.call("GET", `${PAYMENTS}?include=everything`);
  assertRefused(other, "invalid_parameter", "include");
});
