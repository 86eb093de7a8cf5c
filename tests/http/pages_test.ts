/**
 * Pages of lists (contract §5): payments that are created and moved while somebody pages, pages
 * that end before they are full, and the bound of their bytes. After an early end the next page
 * starts after the last row read, which need not match the filters, until `has_more` is false. Such
 * pages are read in a queue of their own, so no other request waits for them. The seed of a run is
 * in the name of its step; `SEED` sets it.
 */

import assert from "node:assert/strict";
import fc from "fast-check";
import { generateApiKey } from "../../shared/core/api_key.ts";
import { fillLists } from "../support/database/filled_lists.ts";
import { readPages } from "../support/http/list_pages.ts";
import type { TestService } from "../support/service/service.ts";
import {
  advance,
  APPROVED,
  assertRefused,
  PAYMENTS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";

const SEED = Number(Deno.env.get("SEED") ?? Date.now() % 2 ** 31);
const RUNS = 60;

/** The changes beside one page: new payments, and moves of payments of the start. */
const Turn = fc.record({
  creates: fc.integer({ min: 0, max: 4 }),
  moved: fc.array(fc.nat({ max: 40 }), { maxLength: 2 }),
  is_during: fc.boolean(),
});
const Paging = fc.record({
  initial: fc.integer({ min: 0, max: 25 }),
  limit: fc.integer({ min: 1, max: 9 }),
  by_status: fc.boolean(),
  turns: fc.array(Turn, { minLength: 1, maxLength: 6 }),
});
type Paging = typeof Paging extends fc.Arbitrary<infer T> ? T : never;

serviceCase(
  "GET /v1/payments lists each payment once while others are created",
  async (t, service) => {
    await t.step(`seed ${SEED}`, async () => {
      await fc.assert(
        fc.asyncProperty(Paging, (paging) => pageThrough(service, paging)),
        { numRuns: RUNS, seed: SEED },
      );
    });
  },
);

async function pageThrough(service: TestService, paging: Paging): Promise<void> {
  await service.call("POST", `${SANDBOX}/reset`);
  const start: string[] = [];
  for (let i = 0; i < paging.initial; i++) start.push((await service.make()).body.id);
  // A move takes a payment out of the list of pending ones, so this list gets no moves.
  const query = paging.by_status ? "&status=pending" : "";
  const met: string[] = [];
  let cursor = "";
  for (let page = 0;; page++) {
    const turn = paging.turns[page % paging.turns.length]!;
    const work = () => disturb(service, turn, paging.by_status ? [] : start);
    const url = `${PAYMENTS}?limit=${paging.limit}${query}${cursor}`;
    const read = () => service.call("GET", url);
    const { body } = turn.is_during
      ? (await Promise.all([read(), work()]))[0]
      : (await work(), await read());
    met.push(...body.data.map(({ id }: { id: string }) => id));
    assert.ok(body.data.length <= paging.limit);
    assert.equal(new Set(met).size, met.length, "none twice");
    assert.equal(body.next_cursor, body.has_more ? met.at(-1) : null);
    if (!body.has_more) break;
    assert.equal(body.data.length, paging.limit);
    cursor = `&starting_after=${body.next_cursor}`;
  }
  assert.deepEqual(met, met.toSorted().reverse(), "newest first");
  const known = new Set(start);
  assert.deepEqual(met.filter((id) => known.has(id)).toSorted(), start.toSorted(), "all once");
}

async function disturb(
  service: TestService,
  turn: { creates: number; moved: number[] },
  movable: string[],
): Promise<void> {
  const creates = Array.from({ length: turn.creates }, () => service.make());
  const moves = turn.moved.filter((i) => i < movable.length)
    .map((i) => advance(service, movable[i]!, "completed"));
  const responses = await Promise.all([...creates, ...moves]);
  for (const { status, text } of responses) assert.ok(status < 300, text);
}

const V1 = "/api-v1-payments/v1";
/** Several times `pay_internal.page_rows()`. */
const ROWS = 7_000;
serviceCase("a list without matches continues over empty pages", async (t, service) => {
  await fillLists(service.sql, service.key.environment_id, { rows: ROWS });
  await t.step("one for each 2 000 items that are read", async () => {
    const pages = await readPages(service, `${PAYMENTS}?currency=GBP&limit=100`);
    assert.deepEqual(pages.map(({ data }) => data), [[], [], [], []]);
  });
  await t.step("a cursor of a deleted row is refused like an unknown one", async () => {
    const path = `${PAYMENTS}?currency=GBP`;
    const { next_cursor } = await service.get(path);
    await service.sql`delete from pay.payments where id = ${next_cursor}`;
    const response = await service.call("GET", `${path}&starting_after=${next_cursor}`);
    assertRefused(response, "invalid_parameter", "starting_after");
  });
});

serviceCase("slow list reads delay no other request", async (_t, service) => {
  await service.pay();
  const read = () => service.call("GET", `${V1}/transfers?currency=EUR`);
  await read();
  const holder = await service.sql.reserve();
  try {
    await holder`begin`;
    await holder`lock table pay.transfers in access exclusive mode`;
    // More reads than the other queue has connections.
    let returned = 0;
    const reads = Array.from({ length: 12 }, async () => {
      const { status } = await read();
      returned++;
      return status;
    });
    const { body } = await service.pay(APPROVED.card);
    await service.get(`${PAYMENTS}/${body.id}`);
    assert.equal((await service.get(PAYMENTS)).data.length, 2);
    assert.equal((await service.get(`${PAYMENTS}?status=pending`)).data.length, 1);
    assert.equal(returned, 0);
    await holder`rollback`;
    for (const status of await Promise.all(reads)) assert.ok(status === 200 || status === 503);
    assert.equal((await read()).status, 200);
  } finally {
    holder.release();
  }
});

serviceCase("reads with unknown keys leave room for valid keys", async (_t, service) => {
  const read = async (key: string) => {
    const path = `${V1}/transfers?currency=EUR`;
    return (await service.call("GET", path, { key })).status;
  };
  const fresh = await service.issueKey(service.other.environment_id);
  const holder = await service.sql.reserve();
  try {
    await holder`begin`;
    await holder`lock table pay.transfers in access exclusive mode`;
    const waiting = [read(service.key.text)];
    // More reads than one tenant may have waiting. Each is refused while the first read still runs.
    const refused = Array.from({ length: 60 }, () => read(generateApiKey("test")));
    for (const status of await Promise.all(refused)) assert.equal(status, 401);
    // The service has not seen this key before, so it does not know its tenant.
    waiting.push(read(fresh.text));
    await holder`rollback`;
    assert.deepEqual(await Promise.all(waiting), [200, 200]);
  } finally {
    holder.release();
  }
});

/** The value of `pay_internal.page_bytes()`. */
const PAGE_BYTES = 2 ** 18;

/** The ids of a list, and the number of items and the bytes of each page. */
async function pagesOf(service: TestService, path: string) {
  const pages = await readPages(service, `${path}?limit=100`, { unchecked: true });
  return {
    ids: pages.flatMap(({ data }) => data.map(({ id }) => id)),
    sizes: pages.map(({ data, text }) => [data.length, new TextEncoder().encode(text).length]),
  };
}

serviceCase("GET of a list bounds the bytes of a page", async (t, service) => {
  const id = (prefix: string, n: number) => prefix + String(n).padStart(26, "0");
  /** Inserts a hundred items. `bytes` gives the length of each, in characters of two bytes. */
  const fill = async (bytes: (n: number) => number) => {
    for (const table of ["events", "payments"]) {
      await service.sql.unsafe(`delete from pay.${table}`);
    }
    for (let n = 1; n <= 100; n++) {
      const body = (id: string) => JSON.stringify({ id, text: "ü".repeat(bytes(n) / 2) });
      await service.sql`
        insert into pay.events (environment_id, id, type, subject_id, created_at, body)
        values (${service.key.environment_id}, ${id("evt_", n)}, 'payment.completed',
          ${id("pay_", 1)}, now(), ${body(id("evt_", n))})`;
      await service.sql`
        insert into pay.payments (environment_id, id, status, amount_minor, amount_refunded, currency,
          method_kind, sequence, created_at, updated_at, body)
        values (${service.key.environment_id}, ${id("pay_", n)}, 'pending', 1, 0, 'EUR', 'card', 1,
          now(), now(), ${body(id("pay_", n))})`;
    }
  };
  const lists: [path: string, prefix: string][] = [
    ["/api-v1-payments/v1/events", "evt_"],
    [PAYMENTS, "pay_"],
  ];
  const all = (prefix: string) => Array.from({ length: 100 }, (_, i) => id(prefix, 100 - i));
  await fill(() => 12_500);
  for (const [path, prefix] of lists) {
    await t.step(`${path}: items of 12.5 kB come in pages of 20`, async () => {
      const { ids, sizes } = await pagesOf(service, path);
      assert.deepEqual(ids, all(prefix));
      assert.deepEqual(sizes.map(([items]) => items), [20, 20, 20, 20, 20]);
      for (const [, bytes] of sizes) assert.ok(bytes! <= PAGE_BYTES + 200, `${bytes} bytes`);
    });
  }
  await fill((n) => n % 50 === 0 ? 2 * PAGE_BYTES : 1_000);
  for (const [path, prefix] of lists) {
    await t.step(`${path}: an item over the bound is alone on its page`, async () => {
      const { ids, sizes } = await pagesOf(service, path);
      assert.deepEqual(ids, all(prefix));
      assert.deepEqual(sizes.map(([items]) => items), [1, 49, 1, 49]);
    });
  }
});
