/**
 * `GET /v1/payments` (contract §5): limits, cursors, the envelope, and every filter alone and
 * combined.
 */

import assert from "node:assert/strict";
import { PAYMENT_STATUSES } from "../../shared/core/vocabulary.ts";
import type { TestService } from "../support/service/service.ts";
import {
  APPROVED,
  assertRefused,
  KINDS,
  paymentIn,
  PAYMENTS,
  serviceCase,
} from "../support/service/service_case.ts";

interface Shown {
  id: string;
  status: string;
  currency: string;
  method_kind: string;
  reference: string | null;
  customer: { id?: string; email: string } | null;
  description: string | null;
  created_at: string;
}

function list(service: TestService, query = "", key?: string) {
  return service.call("GET", `${PAYMENTS}?${query}`, key ? { key } : {});
}

serviceCase("GET /v1/payments limits its pages", async (t, service) => {
  await t.step("an empty list has the envelope", async () => {
    assert.equal(
      (await list(service)).text,
      '{"object":"list","url":"/v1/payments","data":[],"has_more":false,"next_cursor":null}',
    );
  });
  const texts: string[] = [];
  for (let i = 0; i < 12; i++) {
    // Ids of one millisecond have no order.
    service.trySetClock(FIRST_AT + i);
    texts.unshift((await service.pay({ reference: `r${i}` })).text);
  }
  const ids = texts.map((text) => JSON.parse(text).id);
  await t.step("without a limit 10 payments, newest first, as they were returned", async () => {
    assert.equal(
      (await list(service)).text,
      `{"object":"list","url":"/v1/payments","data":[${texts.slice(0, 10)}],` +
        `"has_more":true,"next_cursor":"${ids[9]}"}`,
    );
  });
  await t.step("limit and starting_after count to the item", async () => {
    const idsOf = async (query: string) => {
      const { body } = await list(service, query);
      assert.equal(body.next_cursor, body.has_more ? body.data.at(-1).id : null);
      return [body.data.map(({ id }: Shown) => id), body.has_more];
    };
    assert.deepEqual(await idsOf("limit=11"), [ids.slice(0, 11), true]);
    assert.deepEqual(await idsOf("limit=12"), [ids, false]);
    assert.deepEqual(await idsOf("limit=100"), [ids, false]);
    assert.deepEqual(await idsOf(`starting_after=${ids[0]}`), [ids.slice(1, 11), true]);
    assert.deepEqual(await idsOf(`starting_after=${ids[1]}`), [ids.slice(2), false]);
    assert.deepEqual(await idsOf(`starting_after=${ids[11]}`), [[], false]);
  });
});

const FIRST_AT = Date.parse("2026-02-01T00:00:00.000Z");

/** Forty-one payments, a second apart: every status of every kind, some with references. */
async function variety(service: TestService): Promise<Shown[]> {
  const made: Shown[] = [];
  for (const status of PAYMENT_STATUSES) {
    // Only cards are authorized.
    for (const kind of status === "authorized" ? ["card" as const] : KINDS) {
      await service.setClock(FIRST_AT + made.length * 1000);
      made.unshift(
        await paymentIn(service, status, {
          ...APPROVED[kind],
          currency: kind === "swift" ? "USD" : "EUR",
          ...(made.length % 3 === 0 && { reference: `order ${made.length % 2}` }),
          ...customerOf(made.length),
        }),
      );
    }
  }
  return made;
}

/** Three payments in four have a customer, in either variant of the body. Two of them differ in case. */
function customerOf(n: number): Record<string, unknown> {
  const email = ["ada@example.com", "Ada@example.com", "o'hara@example.com"][n % 4];
  if (email === undefined) return {};
  // The texts of the others must not be taken for the e-mail address.
  const id = ["u1", "U1", "u'2"][n % 3]!;
  const person = { ...(n % 8 > 1 && { id }), email, name: "ada@example.com" };
  return {
    ...(n % 2 === 0 ? { customer: person } : { payer: person }),
    description: "o'hara@example.com",
    metadata: { email: "grace@example.com" },
  };
}

function at(seconds: number): string {
  return new Date(FIRST_AT + seconds * 1000).toISOString();
}

type Filter = [query: Record<string, string>, keep: (payment: Shown) => boolean];

/** A query, and the payments that it lists. */
const FILTERS: Filter[] = [
  ...PAYMENT_STATUSES.map((status): Filter => [{ status }, (p) => p.status === status]),
  ...KINDS.map((kind): Filter => [
    { method_kind: kind },
    (p) => p.method_kind === kind,
  ]),
  [{ currency: "EUR" }, (p) => p.currency === "EUR"],
  [{ currency: "usd" }, (p) => p.currency === "USD"],
  [{ currency: "GBP" }, () => false],
  [{ reference: "order 0" }, (p) => p.reference === "order 0"],
  [{ reference: "order" }, () => false],
  [{ reference: "' or true --" }, () => false],
  [{ customer: "ada@example.com" }, (p) => p.customer?.email === "ada@example.com"],
  [{ customer: "Ada@example.com" }, (p) => p.customer?.email === "Ada@example.com"],
  [{ customer: "o'hara@example.com" }, (p) => p.customer?.email === "o'hara@example.com"],
  [{ customer: "grace@example.com" }, () => false],
  [{ customer: "da@example.com" }, () => false],
  [{ customer_id: "u1" }, (p) => p.customer?.id === "u1"],
  [{ customer_id: "U1" }, (p) => p.customer?.id === "U1"],
  [{ customer_id: "u'2" }, (p) => p.customer?.id === "u'2"],
  [{ customer_id: "u1 " }, () => false],
  // The name of each customer is ada@example.com, and a description is an e-mail address.
  [{ search: "ADA@Example" }, (p) => p.customer !== null],
  [{ search: "o'hara@" }, (p) => p.customer !== null],
  [{ search: "rder 0" }, (p) => p.reference === "order 0"],
  [{ search: "grace@example.com" }, () => false],
  [{ search: "payment" }, () => false],
  [{ search: "_%" }, () => false],
  [{ search: "' or true --" }, () => false],
  [
    { search: "ORDER", status: "completed", created_after: at(4) },
    (p) => p.reference !== null && p.status === "completed" && p.created_at > at(4),
  ],
  [{ created_after: at(10) }, (p) => p.created_at > at(10)],
  [{ created_after: at(9.999) }, (p) => p.created_at > at(9.999)],
  [{ created_before: at(10) }, (p) => p.created_at < at(10)],
  [{ created_before: at(10.001) }, (p) => p.created_at < at(10.001)],
  [{ created_after: "2026-02-01T02:00:10+02:00" }, (p) => p.created_at > at(10)],
  [
    { created_after: at(5), created_before: at(8) },
    (p) => p.created_at > at(5) && p.created_at < at(8),
  ],
  [{ created_after: at(8), created_before: at(5) }, () => false],
  [{
    status: "completed",
    currency: "EUR",
    method_kind: "card",
    reference: "order 0",
    created_after: at(0),
    created_before: at(40),
  }, (p) =>
    p.status === "completed" && p.currency === "EUR" && p.method_kind === "card" &&
    p.reference === "order 0"],
];

serviceCase("GET /v1/payments filters by its fields", async (t, service) => {
  const all = await variety(service);
  await service.pay({ reference: "order 1", customer: { email: "ada@example.com" } }, {
    key: service.other.text,
  });
  for (const [query, keep] of FILTERS) {
    const expected = all.filter(keep).map(({ id }) => id);
    await t.step(`${JSON.stringify(query)} → ${expected.length}`, async () => {
      const response = await list(service, `limit=100&${new URLSearchParams(query)}`);
      assert.equal(response.status, 200, response.text);
      assert.deepEqual(response.body.data.map(({ id }: Shown) => id), expected);
    });
  }
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
      const { body } = await list(service, String(new URLSearchParams({ search: text })));
      assert.deepEqual(body.data.map(({ description }: Shown) => description), [`<${text}>`]);
    });
  }
  await t.step(
    "in a part of a word letters beyond A to Z match in the same case only",
    async () => {
      const count = async (search: string) =>
        (await list(service, String(new URLSearchParams({ search })))).body.data.length;
      assert.deepEqual([await count("oë’"), await count("oë"), await count("OË")], [0, 1, 0]);
    },
  );
  for (const search of ["x", "x".repeat(101), "4242 4242 4242 4242"]) {
    await t.step(`${search.slice(0, 20)} (${search.length}) is refused`, async () => {
      const response = await list(service, String(new URLSearchParams({ search })));
      assertRefused(response, 400, "invalid_parameter", "search");
    });
  }
  await t.step("transfers are found by their description", async () => {
    await service.pay({ ...APPROVED.card, amount: 5000, currency: "EUR" });
    const transfers = "/api-v1-payments/v1/transfers";
    const body = { amount: 100, currency: "EUR", destination: APPROVED.sepa };
    await service.call("POST", transfers, { body: { ...body, description: "Payout of May" } });
    await service.call("POST", transfers, { body });
    const found = await service.call("GET", `${transfers}?search=OF%20MAY`);
    assert.deepEqual(
      found.body.data.map(({ description }: Shown) => description),
      ["Payout of May"],
    );
  });
});
