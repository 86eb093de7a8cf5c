/**
 * Every list over the resources of the catalogue (contract §5): pages of each size hold all items
 * once, newest first, and each filter, alone and together with others, keeps the items that have
 * its value. search_test.ts has `search`, totals_test.ts `include`, request_story_test.ts
 * `resource_id`.
 */

import assert from "node:assert/strict";
import type * as z from "zod";
import { memberOf, namesOf } from "../../shared/schema/requirement.ts";
import { ADDRESSES } from "../../tools/generate/openapi/operations.ts";
import { CATALOGUE } from "../support/catalogue/requests.ts";
import { fill, firstValues, keep } from "../support/catalogue/run_catalogue.ts";
import type { TestService } from "../support/service/service.ts";
import { serviceCase } from "../support/service/service_case.ts";
import { readPages } from "../support/http/list_pages.ts";
import { EVENTS, settle } from "../support/webhook/recording_receiver.ts";

// deno-lint-ignore no-explicit-any
type Item = any;

/** Parameters that are no filters by a value, and those that other tests have. */
const OTHERS = ["limit", "starting_after", "include", "search", "resource_id"]
  .concat("created_after", "created_before");
/** A request and its log are in real time, so the log comes last. */
const LISTS = ADDRESSES.filter(({ id, alias_of, operation }) =>
  id.startsWith("list") && alias_of === null && namesOf(operation.query).includes("limit")
).toSorted((a, b) => Number(a.id === "listRequests") - Number(b.id === "listRequests"));

/** The subject of an event: an event of a refund or a dispute is about their payment. */
function subjectOf({ data: { object } }: Item): Record<string, string> {
  const { id, payment_id, object: kind } = object;
  return payment_id && kind !== "instrument" ? { payment_id } : { [`${kind}_id`]: id };
}

/** The value of an item that a filter compares. */
function valueOf(item: Item, name: string, events: ReadonlyMap<string, Item>): unknown {
  const event = item.object === "event" ? item : events.get(item.event_id);
  if (event && name.endsWith("_id") && !(name in item)) {
    if (name === "request_id") return event.request.id;
    // Events of a payment are listed by its instrument too, their deliveries are not.
    const of_payment = item === event && event.type.startsWith("payment.") &&
      event.data.object[name];
    return of_payment || subjectOf(event)[name];
  }
  if (name === "customer") return item.customer?.email;
  if (name === "customer_id") return item.customer?.id;
  if (name === "request_id") return item.id;
  return item[name];
}

async function read(service: TestService, path: string, query: Record<string, unknown>) {
  const search = new URLSearchParams(query as Record<string, string>);
  return await service.get(`${path}?${search}`) as { data: Item[] };
}

/** Reads a list in pages of this size. All but the last are full. */
async function pages(service: TestService, path: string, limit: number, query = {}) {
  const search = new URLSearchParams({ limit: String(limit), ...query });
  const found = (await readPages(service, `${path}?${search}`)).map(({ data }) => data as Item[]);
  for (const data of found.slice(0, -1)) assert.equal(data.length, limit);
  return found.flat();
}

/** Items of lists of which the catalogue makes too few for pages, or ends all. */
const MORE: [path: string, body: object][] = [
  ["/api-v1-payments/v1/webhook_endpoints", { delivery: "inbox" }],
  ["/api-v1-payments/v1/checkouts", {
    amount: 5,
    currency: "EUR",
    customer: { id: "u1", email: "u@b.co" },
  }],
  ...Array.from({ length: 4 }, (): [string, object] => ["/api-v1-sandbox/sandboxes", {}]),
];

/** Sends the catalogue up to its reset, a request a second. Returns the id of a payment. */
async function fillLists(service: TestService): Promise<string> {
  const saved = firstValues();
  for (const [path, body] of MORE) {
    await service.post(path, body);
  }
  const begin_ms = Date.now();
  const reset_at = CATALOGUE.findIndex(({ operation }) => operation === "resetSandbox");
  // An event of an endpoint does not show the payment with which it was triggered.
  const requests = CATALOGUE.slice(0, reset_at).filter(({ operation, body }) =>
    operation !== "triggerWebhook" || body!["event"] === "payment.completed"
  );
  for (const [i, request] of requests.entries()) {
    await service.setClock(begin_ms + i * 1000);
    const { method, path, options } = fill(request, saved);
    keep(request, await service.call(method, path, options), saved);
  }
  await settle(service);
  await service.deps.request_log.flush();
  return saved.get("payment")!;
}

/** A list with all its items. */
interface Listed {
  path: string;
  query: z.ZodType;
  all: Item[];
  /** The value of an item for a filter. */
  value(item: Item, name: string): unknown;
}

const idsOf = (items: Item[]) => items.map(({ id }) => id);

async function assertPages(service: TestService, { path, all }: Listed): Promise<void> {
  assert.ok(all.length > 0);
  assert.deepEqual(idsOf(all), [...new Set(idsOf(all))].sort().reverse());
  assert.deepEqual((await read(service, path, {})).data, all.slice(0, 10));
  for (const limit of [2, 7]) assert.deepEqual(await pages(service, path, limit), all);
}

/** Sends values of a filter. Returns whether an item has one. */
async function assertFilter(service: TestService, listed: Listed, name: string): Promise<boolean> {
  const { path, query, all, value } = listed;
  const [first = "", ...others] = new Set(all.map((item) => value(item, name) ?? []).flat());
  const text = String(first);
  // A text is compared as a whole, by its case, and is no SQL. Only a currency has no case.
  const changed = [text.toUpperCase(), text.toLowerCase(), `${text}x`, `${text}' or 1=1`];
  for (const sent of [text, ...others.slice(0, 5).map(String), ...changed]) {
    if (!memberOf(query, name)!.safeParse(sent).success) continue;
    const sought = name === "currency" ? sent.toUpperCase() : sent;
    const expected = all.filter((item) => String(value(item, name)) === sought);
    const { data } = await read(service, path, { limit: 100, [name]: sent });
    assert.deepEqual(idsOf(data), idsOf(expected).slice(0, 100), `${name}=${sent}`);
  }
  return text !== "";
}

async function assertTogether(service: TestService, listed: Listed, names: string[]) {
  const { path, all, value } = listed;
  for (const item of all.slice(0, 8)) {
    const together = names.map((name) => [name, value(item, name)] as const)
      .filter(([, value]) => typeof value === "string" || typeof value === "number");
    const expected = all.filter((other) =>
      together.every(([name, its]) => value(other, name) === its)
    );
    const found = await pages(service, path, 2, Object.fromEntries(together));
    assert.deepEqual(idsOf(found), idsOf(expected));
  }
}

async function assertTimes(service: TestService, { path, all }: Listed): Promise<void> {
  for (const more_ms of [-1, 0, 1]) {
    const [after, before] = [all.at(-2), all[1]].map(({ created_at }) =>
      new Date(Date.parse(created_at) + more_ms).toISOString()
    ) as [string, string];
    const expected = all.filter(({ created_at }) => created_at > after && created_at < before);
    // The same moment as another time zone writes it.
    const shifted = new Date(Date.parse(after) + 7_200_000).toISOString().replace("Z", "+02:00");
    const sent = { created_after: shifted, created_before: before };
    assert.deepEqual(await pages(service, path, 100, sent), expected);
  }
}

serviceCase("each list has its items once, and those of each filter", async (t, service) => {
  const payment = await fillLists(service);
  const events = new Map<string, Item>();
  for (const event of await pages(service, EVENTS, 100)) events.set(event.id, event);
  const unused: string[] = [];
  for (const { id, path: template, operation: { query } } of LISTS) {
    const path = template.replace("{id}", payment);
    const value = (item: Item, name: string) => valueOf(item, name, events);
    const listed: Listed = { path, query, all: await pages(service, path, 100), value };
    await t.step(`${id}: pages of all items, newest first`, () => assertPages(service, listed));
    const names = namesOf(query).filter((name) => !OTHERS.includes(name));
    for (const name of names) {
      await t.step(`${id}?${name}=`, async () => {
        if (!await assertFilter(service, listed, name)) unused.push(`${id} ${name}`);
      });
    }
    if (names.length > 1) {
      await t.step(`${id}: filters together`, () => assertTogether(service, listed, names));
    }
    if (namesOf(query).includes("created_after")) {
      await t.step(`${id}: times to the millisecond`, () => assertTimes(service, listed));
    }
  }
  await t.step("an item has a value of each filter but these", () => {
    assert.deepEqual(unused, ["listRequests fault_id"]);
  });
}, { request_log: true, rate_limit: 100_000 });
