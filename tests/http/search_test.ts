/**
 * `GET /v1/payments?search=` (contract §5): whole values and words, also after a change, a reset
 * and an erasure. tests/database/search_words_test.ts has the job and the bounds.
 */

import assert from "node:assert/strict";
import { CURRENCIES } from "../../shared/core/currency.ts";
import { creditorReference } from "../../shared/core/creditor_reference.ts";
import { behindLock } from "../support/database/lock_waits.ts";
import { purgeAll } from "../support/database/purge.ts";
import { idsOf, page } from "../support/http/search.ts";
import type { TestService } from "../support/service/service.ts";
import {
  APPROVED,
  assertRefused,
  card,
  PAYMENTS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";

const FIRST_AT = Date.parse("2026-03-01T12:00:00.000Z");

const count = ({ count }: TestService, environment_id: string) =>
  count(`search_words where environment_id = '${environment_id}'`);

/** The payments of the first test, by name, in the order in which they are made. */
const MADE: Record<string, { body: Record<string, unknown>; idempotency_key?: string }> = {
  müller: {
    body: {
      ...{ ...APPROVED.card, amount: 33_333, reference: "INV-2026/0017" },
      customer: { id: "cus_17", email: "Jürgen.Müller@example.com", name: "Jürgen Müller" },
      metadata: { order_id: "A 1001" },
    },
    idempotency_key: "order-1001-try-1",
  },
  sepa: { body: { amount: 123_400, capability: "sepa_payment", metadata: { order: "B-7" } } },
  wallet: { body: { ...APPROVED.stablecoin, amount: 700, metadata: { orderId: "c7" } } },
  yen: {
    body: {
      ...card("5555 5555 5555 4444"),
      ...{ amount: 333, currency: "JPY", description: "Größe ΑΒΓ, Москва" },
    },
  },
  iban: { body: { ...APPROVED.sepa, amount: 55, description: "Order of 1 item" } },
  other: { body: { ...APPROVED.card, amount: 1_234, description: "müllerei" } },
};

/** What is typed, and the names of the payments that it finds, newest first. */
const TYPED: [text: string, ...names: string[]][] = [
  ["INV-2026/0017", "müller"],
  ["inv 0017", "müller"],
  ["cus_17", "müller"],
  ["jürgen.müller@EXAMPLE.com", "müller"],
  ["jurgen.muller@example.com", "müller"],
  ["example.com", "müller"],
  ["muller", "müller"],
  ["Mueller  JÜRGEN", "müller"],
  ["Mu\u0308ller", "müller"],
  ["müllere", "other"],
  ["order-1001-TRY-1", "müller"],
  ["a 1001", "müller"],
  ["b-7", "sepa"],
  ["C7", "wallet"],
  ["4242", "other", "müller"],
  ["4444", "yen"],
  ["3000", "iban"],
  ["order 1", "iban"],
  ["order 2"],
  ["333.33", "müller"],
  ["333,33 EUR", "müller"],
  ["€ 333.33", "müller"],
  ["333", "yen"],
  ["1.234", "sepa"],
  ["1,234.00", "sepa"],
  ["1 234,0", "sepa"],
  ["12.34", "other"],
  ["0x000000000000000000000000000000000000DEAD", "wallet"],
  ["grosse", "yen"],
  ["αβγ москва", "yen"],
  ["nobody"],
  ["muller nobody"],
  ["'; drop table pay.payments --"],
];

serviceCase("GET /v1/payments?search= finds values, words and parts", async (t, service) => {
  const { sql, key: { environment_id } } = service;
  const ids = new Map<string, string>();
  for (const [name, { body, ...options }] of Object.entries(MADE)) {
    service.trySetClock(FIRST_AT + ids.size);
    const made = await service.pay({ amount: 1, currency: "EUR", ...body }, options);
    assert.equal(made.status, 201, made.text);
    ids.set(name, made.body.id);
  }
  await t.step(
    "no create writes words",
    async () => assert.equal(await count(service, environment_id), 0),
  );
  const reference = creditorReference(ids.get("sepa")!);
  const typed: typeof TYPED = [
    ...TYPED,
    [reference.toLowerCase().replace(/(.{4})/g, "$1 "), "sepa"],
    [ids.get("wallet")!, "wallet"],
  ];
  for (const [text, ...names] of typed) {
    await t.step(`${text} → ${names}`, async () => {
      assert.deepEqual(await idsOf(service, text), names.map((name) => ids.get(name)));
    });
  }
  await t.step("with another filter", async () => {
    assert.deepEqual(await idsOf(service, "4242", "&created_before=2026-03-01T12:00:00.001Z"), [
      ids.get("müller"),
    ]);
    assert.deepEqual(await idsOf(service, "muller", "&status=declined"), []);
  });
  await t.step("not in another environment", async () => {
    for (const { text } of [service.other, service.live]) {
      assert.deepEqual((await page(service, "muller", "", text)).data, []);
    }
  });
  await t.step("by what a change adds", async () => {
    const refund = `${PAYMENTS}/${ids.get("müller")}/refund`;
    await service.call("POST", refund, { body: { amount: 1 }, idempotency_key: "refund-1" });
    assert.deepEqual(await idsOf(service, "refund-1"), [ids.get("müller")]);
  });
  await t.step("by the keys of the newest 20 events", async () => {
    const { body: { id } } = await service.pay({ ...APPROVED.card, amount: 100 });
    for (let n = 1; n <= 21; n++) {
      const body = { amount: 1 };
      const idempotency_key = `many-${n}`;
      await service.call("POST", `${PAYMENTS}/${id}/refund`, { body, idempotency_key });
    }
    assert.deepEqual([await idsOf(service, "many-21"), await idsOf(service, "many-1")], [[id], []]);
  });
  await t.step("no word stands there as text", async () => {
    const [types] = await sql`select array_agg(data_type::text) as types
      from information_schema.columns where table_schema = 'pay' and table_name = 'search_words'
        and column_name not in ('environment_id', 'payment_id')`;
    assert.deepEqual([...types!.types].sort(), ["ARRAY", "smallint"]);
  });
  await t.step("a payment has so many words at most", async () => {
    const description = Array.from({ length: 40 }, (_, i) => `word${i}`).join(" ");
    const { body: { id } } = await service.pay({ ...APPROVED.card, description });
    assert.deepEqual(await idsOf(service, "word15"), [id]);
    const [row] = await sql`select sum(cardinality(words))::int as words, count(*)::int as rows
        from pay.search_words where payment_id = ${id}`;
    // And an amount and four digits.
    assert.deepEqual([row!.words, row!.rows], [16 + 2, 2]);
  });
  await t.step("decimals and references are those of the service", async () => {
    const rows = await sql`select c, pay_internal.minor_digits(c) as digits
      from unnest(${[...CURRENCIES.keys()]}::text[]) c`;
    assert.deepEqual(new Map(rows.map(({ c, digits }) => [c, digits])), CURRENCIES);
  });
  await t.step("a reset begins without words, and retention deletes the old ones", async () => {
    await service.post(`${SANDBOX}/reset`);
    assert.deepEqual(await idsOf(service, "muller"), []);
    assert.ok(await count(service, environment_id) > 0);
    await purgeAll(sql);
    assert.equal(await count(service, environment_id), 0);
  });
});

serviceCase("no words of an earlier text are written after an erasure", async (_, service) => {
  const { sql, key: { environment_id } } = service;
  const customer = { id: "u1", email: "ada@example.com", name: "Ada" };
  await service.pay({ ...APPROVED.card, customer });
  const [erased] = await behindLock(
    sql,
    `select set_config('pay.worker', 'on', true);
     select pay_internal.write_words('${environment_id}', 100)`,
    () => [service.call("DELETE", "/api-v1-payments/v1/customers/u1")],
    "erase_customer",
  );
  assert.equal(erased!.status, 200);
  const [left] = await sql`select count(*)::int as words,
      count(*) filter (where word = any (pay_internal.word_hashes(${environment_id},
        '{ada,=ada@example.com}')))::int as personal
    from pay.search_words cross join unnest(words) word`;
  assert.deepEqual([left!.words > 0, left!.personal], [true, 0]);
});

serviceCase("GET /v1/payments finds a search as it was typed", async (t, service) => {
  const customer = { email: "ada@example.com" };
  const TEXTS = [
    'a "quoted" back\\slash',
    "line\nbreak",
    "Zoë's — 100 %",
    "tab\there",
    '"end"',
    ',"metadata":{"customer":',
  ];
  for (const text of TEXTS) await service.pay({ description: `<${text}>`, customer });
  for (const text of TEXTS) {
    await t.step(JSON.stringify(text), async () => {
      const { data } = await page(service, text);
      assert.deepEqual(data.map(({ description }) => description), [`<${text}>`]);
    });
  }
  await t.step(
    "in a part of a word letters beyond A to Z match in the same case only",
    async () => {
      const count = async (search: string) => (await page(service, search)).data.length;
      assert.deepEqual([await count("oë’"), await count("oë"), await count("OË")], [0, 1, 0]);
    },
  );
  for (const search of ["x", "x".repeat(101), "4242 4242 4242 4242"]) {
    await t.step(`${search.slice(0, 20)} (${search.length}) is refused`, async () => {
      const response = await service.call("GET", `${PAYMENTS}?${new URLSearchParams({ search })}`);
      assertRefused(response, "invalid_parameter", "search");
    });
  }
  await t.step("transfers are found by their description", async () => {
    await service.pay({ ...APPROVED.card, amount: 5000, currency: "EUR" });
    const transfers = "/api-v1-payments/v1/transfers";
    const body = { amount: 100, currency: "EUR", destination: APPROVED.sepa };
    await service.call("POST", transfers, { body: { ...body, description: "Payout of May" } });
    await service.call("POST", transfers, { body });
    const found = await service.get(`${transfers}?search=OF%20MAY`);
    assert.deepEqual(
      found.data.map(({ description }: { description: string }) => description),
      ["Payout of May"],
    );
  });
});
