/** Lists: awaited they give a page, iterated every item, with no more requests than needed. */

import assert from "node:assert/strict";
import { ApiError } from "../../packages/client/mod.ts";
import { error, type Requested, withServer } from "../support/client/scripted_server.ts";

/** Serves a list of five items by pages. */
function pages({ path }: Requested): Response {
  const query = new URL(path, "http://localhost").searchParams;
  const limit = Number(query.get("limit") ?? 10);
  const start = Number(query.get("starting_after")?.slice(4) ?? 0);
  const ids = [1, 2, 3, 4, 5].filter((n) => n > start);
  const data = ids.slice(0, limit).map((n) => ({ id: `pay_${n}` }));
  const has_more = ids.length > limit;
  const next_cursor = has_more ? data.at(-1)!.id : null;
  return Response.json({ object: "list", url: "/v1/payments", data, has_more, next_cursor });
}

Deno.test("list() awaited is its first page, in one request", () =>
  withServer([pages], async ({ client, requested }) => {
    const list = client.payments.list({ limit: 2 });
    assert.equal(requested.length, 0);
    const page = await list;
    assert.deepEqual(page.data.map(({ id }) => id), ["pay_1", "pay_2"]);
    assert.equal(page.next_cursor, "pay_2");
    assert.equal(await list, page);
    assert.equal(requested.length, 1);
  }));

Deno.test("list() iterated gives every item, with a request for each page", () =>
  withServer([pages], async ({ client, requested }) => {
    const ids: string[] = [];
    for await (const { id } of client.payments.list({ limit: 2, currency: "EUR" })) ids.push(id);
    assert.deepEqual(ids, ["pay_1", "pay_2", "pay_3", "pay_4", "pay_5"]);
    assert.deepEqual(requested.map(({ path }) => path.split("?")[1]), [
      "limit=2&currency=EUR",
      "limit=2&currency=EUR&starting_after=pay_2",
      "limit=2&currency=EUR&starting_after=pay_4",
    ]);
  }));

Deno.test("list() iterated continues after short and empty pages", async (t) => {
  const responses: Record<string, { data: number[]; next: string | null }> = {
    "": { data: [9], next: "pay_7" },
    "pay_7": { data: [], next: "pay_5" },
    "pay_5": { data: [], next: "pay_3" },
    "pay_3": { data: [2, 1], next: "pay_0" },
    "pay_0": { data: [], next: null },
  };
  const gaps = ({ path }: Requested) => {
    const query = new URL(path, "http://localhost").searchParams;
    const { data, next } = responses[query.get("starting_after") ?? ""]!;
    return Response.json({
      object: "list",
      url: "/v1/payments",
      data: data.map((n) => ({ id: `pay_${n}` })),
      has_more: next !== null,
      next_cursor: next,
    });
  };
  await t.step("items", () =>
    withServer([gaps], async ({ client, requested }) => {
      const items = await Array.fromAsync(client.payments.list({ limit: 3 }));
      assert.deepEqual(items.map(({ id }) => id), ["pay_9", "pay_2", "pay_1"]);
      assert.equal(requested.length, 5);
    }));
  await t.step("pages", () =>
    withServer([gaps], async ({ client }) => {
      const pages = await Array.fromAsync(client.payments.list({ limit: 3 }).pages());
      assert.deepEqual(pages.map(({ data }) => data.length), [1, 0, 0, 2, 0]);
    }));
});

Deno.test("list() iterated starts at starting_after, and reuses an awaited page", () =>
  withServer([pages], async ({ client, requested }) => {
    const list = client.payments.list({ limit: 2, starting_after: "pay_1" });
    await list;
    const ids = (await Array.fromAsync(list)).map(({ id }) => id);
    assert.deepEqual(ids, ["pay_2", "pay_3", "pay_4", "pay_5"]);
    assert.equal(requested.length, 2);
  }));

Deno.test("list() sends no further request after a break", () =>
  withServer([pages], async ({ client, requested }) => {
    for await (const { id } of client.payments.list({ limit: 2 })) if (id === "pay_2") break;
    assert.equal(requested.length, 1);
  }));

Deno.test("list().all() gives every item, in pages of 100 unless limit says otherwise", () =>
  withServer([pages], async ({ client, requested }) => {
    const ids = (await Array.fromAsync(client.payments.list().all())).map(({ id }) => id);
    assert.deepEqual(ids, ["pay_1", "pay_2", "pay_3", "pay_4", "pay_5"]);
    await Array.fromAsync(client.payments.list({ limit: 4, currency: "EUR" }).all());
    assert.deepEqual(requested.map(({ path }) => path.split("?")[1]), [
      "limit=100",
      "limit=4&currency=EUR",
      "limit=4&currency=EUR&starting_after=pay_4",
    ]);
  }));

const ARRAYS: [max: number, limit: number | undefined, items: number, queries: string[]][] = [
  [10_000, undefined, 5, ["limit=100"]],
  [3, undefined, 3, ["limit=3"]],
  [3, 2, 3, ["limit=2", "limit=2&starting_after=pay_2"]],
  [4, 2, 4, ["limit=2", "limit=2&starting_after=pay_2"]],
];
for (const [max, limit, items, queries] of ARRAYS) {
  Deno.test(`list({ limit: ${limit} }).toArray({ max: ${max} }) has ${items} items`, () =>
    withServer([pages], async ({ client, requested }) => {
      const found = await client.payments.list({ limit }).toArray({ max });
      assert.deepEqual(
        found.map(({ id }) => id),
        [1, 2, 3, 4, 5].slice(0, items).map((n) => `pay_${n}`),
      );
      assert.deepEqual(requested.map(({ path }) => path.split("?")[1]), queries);
    }));
}

Deno.test("list().toArray() refuses a missing or wrong max, and sends nothing", () =>
  withServer([pages], async ({ client, requested }) => {
    for (const max of [undefined, 0, -1, 1.5, NaN, Infinity, 10_001]) {
      const array = client.payments.list().toArray({ max: max as number });
      await assert.rejects(array, { name: "TypeError", message: /^max is / });
    }
    assert.equal(requested.length, 0);
  }));

Deno.test("list() omits undefined parameters and encodes the others", () =>
  withServer([pages], async ({ client, requested }) => {
    await client.payments.list({ status: undefined, reference: "a&b=c d" });
    assert.equal(requested[0]!.path.split("?")[1], "reference=a%26b%3Dc+d");
    await client.payments.list();
    assert.equal(requested[1]!.path, "/functions/v1/api-v1-payments/v1/payments");
  }));

Deno.test("list() rejects when it is awaited, iterated or caught", () =>
  withServer([error(400, "invalid_parameter")], async ({ client }) => {
    const list = () => client.payments.list({ limit: 0 });
    assert.ok(await list().catch((error) => error) instanceof ApiError);
    assert.ok(await list().then(null, (error) => error) instanceof ApiError);
    await assert.rejects(async () => await list(), ApiError);
    await assert.rejects(Array.fromAsync(list()), ApiError);
    let settled = false;
    await assert.rejects(list().finally(() => settled = true), ApiError);
    assert.ok(settled);
  }));
