/**
 * The words by which searches find payments: the job writes each once, in bounded portions, and a
 * page reads a bounded number of rows. `SEARCH_ROWS=100000` makes the run whose figures are in
 * docs/decisions/0004-bounded-work.md.
 */

import assert from "node:assert/strict";
import { openSession } from "../support/database/database.ts";
import { parseApiKey } from "../../shared/core/api_key.ts";
import { LIST } from "../../shared/store/list_statement.ts";
import { rowsRead } from "../support/database/pages_read.ts";
import { poison } from "../support/database/poison.ts";
import { purgeAll } from "../support/database/purge.ts";
import { idsOf, page } from "../support/http/search.ts";
import type { TestService } from "../support/service/service.ts";
import { APPROVED, serviceCase } from "../support/service/service_case.ts";

const ROWS = Number(Deno.env.get("SEARCH_ROWS") ?? 6_000);
/** As `pay_internal.counted_rows`: the rows that a search counts. */
const COUNTED = 10_000;
/** The other rows of the longest page: payments, their words, and the events remembered. */
const MOST_READ = 5_000;
/** As `pay_internal.page_rows`. */
const PAGE_ROWS = 2_000;
const FIRST_AT = Date.parse("2026-03-01T12:00:00.000Z");
const DAY_MS = 86_400_000;

/** Sets one of the limits of the job, a number or a time. */
const limit = ({ sql }: TestService, name: string, value: number | "0 s" | "1 s") => {
  const type = typeof value === "number" ? "integer" : "interval";
  return sql.unsafe(`create or replace function pay_internal.${name}() returns ${type}
    language sql immutable parallel safe as $$ select ${type} '${value}' $$`);
};

const run = ({ sql }: TestService) => sql`select pay.write_search_words()`;

serviceCase("pay.write_search_words() reads a late event once, too", async (t, service) => {
  const { sql, key: { environment_id } } = service;
  const words = async () =>
    (await sql`select from pay.search_words cross join unnest(words)`).length;
  await service.setClock(FIRST_AT);
  const late = await service.pay({ reference: "late" });
  await sql`create table late as select * from pay.events`;
  await sql`delete from pay.events`;
  await service.setClock(FIRST_AT + 1_000);
  await service.pay({ reference: "early" });
  await run(service);
  const before = await words();
  assert.ok(before > 0);
  await t.step("a late event is read by the next run", async () => {
    await sql`insert into pay.events select * from late`;
    await run(service);
    assert.ok(await words() > before);
    assert.deepEqual(await idsOf(service, "late"), [late.body.id]);
  });
  const cursor = async () =>
    (await sql`select * from pay.search_cursors
    where environment_id = ${environment_id}`)[0]!;
  await t.step("the cursor moves on after 20 s, and rests at the newest event", async () => {
    assert.equal((await cursor()).after_id, "");
    for (const seconds of [22, 43]) {
      await service.setClock(FIRST_AT + seconds * 1_000);
      await run(service);
    }
    const [{ newest }] = await sql<
      [{ newest: string }]
    >`select max(id) as newest from pay.events`;
    const { after_id, seen, marked_at } = await cursor();
    assert.deepEqual([after_id, seen, marked_at], [newest, [], null]);
  });
  await t.step("a read event is not read again", async () => {
    await sql`delete from pay.search_words`;
    await run(service);
    assert.equal(await words(), 0);
  });
  await t.step("an environment that fails holds up no other", async () => {
    const end = await poison(sql, {
      table: "search_words",
      on: "insert",
      when: `new.environment_id = '${environment_id}'`,
    });
    await service.pay({ reference: "first" });
    const other = await service.pay({ reference: "first" }, { key: service.other.text });
    await run(service);
    const rows = await sql`select distinct payment_id as id from pay.search_words`;
    assert.deepEqual(rows.map(({ id }) => id), [other.body.id]);
    await end();
    await run(service);
    assert.equal((await idsOf(service, "first")).length, 1);
  });
  await t.step("an account that moves is left alone", async () => {
    await service.pay({ reference: "moved" });
    const before = await words();
    await sql`update pay.environments set moving = 'draining' where id = ${environment_id}`;
    await run(service);
    assert.equal(await words(), before);
    await sql`update pay.environments set moving = null`;
    await run(service);
    assert.ok(await words() > before);
  });
  for (
    const [name, few, many] of [["environments_of_job", 1, 200], [
      "job_time",
      "0 s",
      "1 s",
    ]] as const
  ) {
    await t.step(`${name} bounds the environments of a run`, async () => {
      await limit(service, name, few);
      await service.pay({ reference: "one" });
      await service.pay({ reference: "one" }, { key: service.other.text });
      await sql`delete from pay.search_cursors`;
      await sql`delete from pay.search_words`;
      const environments = async () =>
        (await sql`select distinct environment_id from pay.search_words`).length;
      await run(service);
      assert.equal(await environments(), 1);
      await limit(service, name, many);
      await run(service);
      assert.equal(await environments(), 2);
    });
  }
  await t.step("a text that is no JSON has no words", async () => {
    const [row] = await sql`select pay_internal.words_of(jsonb_populate_record(p,
      '{"body": "no JSON"}')) as words from pay.payments p limit 1`;
    assert.deepEqual(row!.words, []);
  });
  await t.step("retention deletes the words of deleted payments", async () => {
    await service.setClock(FIRST_AT + 40 * DAY_MS);
    await purgeAll(sql);
    assert.equal(await words(), 0);
  });
});

/** Fills a sandbox with copies of a payment by SQL. Each has an event and texts of its own. */
async function fill(service: TestService): Promise<void> {
  const { sql, key: { environment_id } } = service;
  const { text, body } = await service.pay({
    ...APPROVED.card,
    reference: "ref-NNN",
    customer: { email: "personNNN@example.com", name: "Ada PersonNNN" },
    metadata: { order_id: "order-NNN" },
    description: "Order NNN of the shop",
  });
  await sql`delete from pay.payments`;
  await sql`delete from pay.events`;
  const suffix = "'1' || lpad(n::text, 25, '0')";
  await sql.unsafe(
    `insert into pay.payments (environment_id, id, status, amount_minor, amount_refunded, currency,
       method_kind, reference, sequence, created_at, updated_at, body)
     select $1, 'pay_' || ${suffix}, 'completed', n, 0, 'EUR', 'card', 'ref-' || n, 2, now(), now(),
       replace(replace($2, 'NNN', n::text), $3, 'pay_' || ${suffix})
     from generate_series(1, $4::int) n`,
    [environment_id, text, body.id, ROWS],
  );
  await sql.unsafe(
    `insert into pay.events (environment_id, id, type, subject_id, sequence, created_at,
       request_id, idempotency_key)
     select $1, 'evt_' || ${suffix}, 'payment.created', 'pay_' || ${suffix}, 1, now(), 'req',
       'key-' || n
     from generate_series(1, $2::int) n`,
    [environment_id, ROWS],
  );
}

serviceCase(`a search among ${ROWS} payments`, async (t, service) => {
  const { sql } = service;
  await fill(service);
  await t.step("a search writes a portion of a bounded size", async () => {
    await page(service, "nobody");
    const rows = await sql`select distinct payment_id from pay.search_words`;
    assert.equal(rows.length, 200);
  });
  await t.step("a portion reads only its rows, with the statistics of empty tables", async () => {
    await using connection = await openSession(sql);
    const { rows } = await rowsRead(connection, "select pay.write_search_words()", []);
    console.log(`${rows} rows for a portion`);
    // Nine for each event. Reading all events for that takes more.
    assert.ok(rows <= 10 * 2_000, `${rows} rows were read`);
  });
  await sql`analyze pay.events, pay.payments`;
  await t.step("the job writes such portions, too, and remembers so many events", async () => {
    await limit(service, "most_seen", 1_000);
    for (let events = 1; events > 0;) {
      const [row] = await sql`select pay.write_search_words()::int as events`;
      events = row!.events;
      assert.ok(events <= 2_000, `${events}`);
      const [cursor] = await sql`select max(cardinality(seen)) as seen from pay.search_cursors`;
      assert.ok(cursor!.seen <= 1_000 + 2 * 2_000, `${cursor!.seen} are remembered`);
    }
  });
  await sql`analyze`;
  const n = Math.floor(ROWS / 3);
  const id = `pay_1${String(n).padStart(25, "0")}`;
  for (
    const text of [
      id,
      `ref-${n}`,
      `person${n}@example.com`,
      `Person${n}`,
      `ada person${n}`,
      `order-${n}`,
      `key-${n}`,
      `${(n / 100).toFixed(2)}`,
    ]
  ) {
    await t.step(`finds ${text}`, async () => assert.deepEqual(await idsOf(service, text), [id]));
  }
  /** Counts the rows that a page reads. */
  const rowsOf = async (search: string) => {
    const key_hash = parseApiKey(service.key.text)!.hash;
    const request = { n: 1, key_hash, scope: null, at: new Date(), kind: "payments", limit: 100 };
    await using connection = await openSession(sql);
    const list = JSON.stringify([{ ...request, filters: { search } }]);
    return (await rowsRead(connection, LIST, [list, list])).rows;
  };
  const searches: [string, number][] = [
    [`person${n}@example.com`, 50],
    ["ada shop", COUNTED + MOST_READ],
    ["nobody", PAGE_ROWS + 40],
  ];
  for (const [search, most] of searches) {
    await t.step(`a page of ${search} reads ${most} rows at most`, async () => {
      const rows = await rowsOf(search);
      console.log(`${search}: ${rows} rows`);
      assert.ok(rows <= most, `${rows} rows`);
    });
  }
  await t.step("a value of all payments has pages of the newest", async () => {
    let cursor = "";
    for (let first = ROWS; first > ROWS - 300; first -= 100) {
      const began = performance.now();
      const { data, has_more, next_cursor } = await page(service, "4242", cursor);
      console.log(`a page of 4242: ${(performance.now() - began).toFixed(0)} ms`);
      assert.equal(data[0]!.id, `pay_1${String(first).padStart(25, "0")}`);
      assert.deepEqual([data.length, has_more], [100, true]);
      cursor = `&starting_after=${next_cursor}`;
    }
  });
  await t.step("words of many payments, and one of few, are read in pages", async () => {
    const { data, has_more } = await page(service, "shop order of 7");
    assert.deepEqual([data.map(({ id }) => id), has_more], [
      [`pay_1${"7".padStart(25, "0")}`],
      false,
    ]);
    const found = [];
    let pages = 0;
    for (let cursor = ""; pages < 4; pages++) {
      const { data, has_more, next_cursor } = await page(service, "ada shop", cursor);
      found.push(...data);
      if (!has_more) break;
      cursor = `&starting_after=${next_cursor}`;
    }
    assert.equal(found.length, 400);
  });
  await t.step("part of a word is found in pages of the rows that a page reads", async () => {
    const found = [];
    let pages = 0;
    for (let cursor = "", is_over = false; !is_over && pages < 10; pages++) {
      const { data, has_more, next_cursor } = await page(service, `erson${ROWS - 2_500}@`, cursor);
      found.push(...data.map(({ id }) => id));
      is_over = !has_more;
      cursor = `&starting_after=${next_cursor}`;
    }
    assert.deepEqual(found, [`pay_1${String(ROWS - 2_500).padStart(25, "0")}`]);
    assert.ok(pages >= Math.min(10, ROWS / PAGE_ROWS), `${pages} pages`);
  });
  await t.step("words that only older payments have are found in bounded pages", async () => {
    const newest = `pay_1${String(ROWS - 2_500).padStart(25, "0")}`;
    await sql`delete from pay.search_words where payment_id > ${newest}`;
    // Otherwise reads count entries of deleted rows, until a vacuum comes.
    await sql`vacuum pay.search_words`;
    // Counted as common: the page reads the newest payments.
    const { data, has_more, next_cursor } = await page(service, "ada shop");
    assert.deepEqual([data, has_more], [[], true]);
    const next = await page(service, "ada shop", `&starting_after=${next_cursor}`);
    assert.equal(next.data[0]!.id, newest);
    if (ROWS - 2_500 > COUNTED / 2) return;
    const found = await page(service, "shop");
    assert.deepEqual([found.data[0]!.id, found.data.length], [newest, 100]);
    const rows = await rowsOf("shop");
    assert.ok(rows <= 3 * COUNTED / 2 + MOST_READ, `${rows} rows`);
  });
}, { rate_limit: 100_000 });
