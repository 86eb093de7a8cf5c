/**
 * `pay.list` with every combination of its filters. Each page reads a bounded number of rows, for
 * any share of matching rows and any table statistics, and the pages together are the list.
 * `LIST_ROWS` sets the number of rows of each list.
 */

import assert from "node:assert/strict";
import type { ReservedSql } from "postgres";
import { openSession } from "../support/database/database.ts";
import { parseApiKey } from "../../shared/core/api_key.ts";
import { isCheap } from "../../shared/store/page_request.ts";
import { serviceCase } from "../support/service/service_case.ts";
import {
  everyCombination,
  fillLists,
  type FilteredList,
} from "../support/database/filled_lists.ts";
import { rowsRead } from "../support/database/pages_read.ts";
import type { TestService } from "../support/service/service.ts";

const ROWS = Number(Deno.env.get("LIST_ROWS") ?? 20_000);
const LIMIT = 100;
/** The value of `pay_internal.page_rows()`. */
const PAGE_ROWS = 2000;
/** Rows of the key, its environment, the cursor, and the item after the page. */
const OTHER_ROWS = 40;
/** The statement counts a subject's rows before it reads them. */
const MAX_ROWS = 2 * PAGE_ROWS + OTHER_ROWS;
/** The limit for a page that reads only its items. */
const MAX_CHEAP_ROWS = LIMIT + OTHER_ROWS;
/**
 * Each row needs one page of its table and a part of an index page; the deliveries of a subject are
 * found one by one. The constant is for indexes in which nothing is found, which planning reads
 * too.
 */
const pagesFor = (rows: number, { kind, filters }: FilteredList) =>
  (kind === "webhook_deliveries" && "subject_id" in filters ? 2.2 : 1.2) * rows + 60;
/**
 * The rows of each list in the test that reads lists to the end: several times
 * `pay_internal.page_rows()`.
 */
const WALKED_ROWS = 3.5 * PAGE_ROWS;
const WALKED_LIMIT = 700;

const LIST = `select data, has_more, next_cursor from json_build_array(
  json_build_object('n', 1, 'key_hash', $1::text, 'at', now(), 'kind', $2::text,
    'limit', $3::int, 'starting_after', $4::text, 'filters', $5::text::json)) as sent (request),
  pay.list(request::text, request::text)`;

serviceCase("pay.list() reads a bounded number of rows", async (t, service) => {
  await using connection = await openSession(service.sql);
  const lists = everyCombination(ROWS);
  const hash = parseApiKey(service.key.text)!.hash;
  const parametersOf = ({ kind, filters }: FilteredList) => [
    ...[hash, kind, String(LIMIT), null, JSON.stringify(filters)],
  ];
  /** Lets the connection make and cache the plans. */
  const plan = async () => {
    for (const list of lists) {
      await connection.unsafe(LIST, parametersOf(list), { prepare: true });
    }
  };
  const assertBounded = async () => {
    let most = 0;
    for (const list of lists) {
      const { rows, pages } = await rowsRead(connection, LIST, parametersOf(list));
      const bound = isCheap({ ...list, limit: LIMIT, starting_after: null })
        ? MAX_CHEAP_ROWS
        : MAX_ROWS;
      const name = `${list.kind} ${JSON.stringify(list.filters)}`;
      assert.ok(rows <= bound, `${name}: ${rows} rows were read`);
      assert.ok(
        pages <= pagesFor(rows, list),
        `${name}: ${pages} pages were read for ${rows} rows`,
      );
      most = Math.max(most, rows);
    }
    console.log(`${lists.length} lists of ${ROWS} rows: at most ${most} rows were read`);
  };
  await keepStatistics(connection);
  // While the tables are empty.
  await plan();
  await fillLists(connection, service.key.environment_id, { rows: 500 });
  await connection`update pay.payments set status = 'pending', reference = 'often'`;
  await connection`analyze`;
  await fillLists(connection, service.key.environment_id, { first: 501, rows: ROWS - 500 });
  await fillLists(connection, service.other.environment_id, { rows: ROWS });
  await t.step("with outdated statistics", assertBounded);
  await t.step("from the middle", async () => {
    const middle = `pay_${String(ROWS / 2).padStart(26, "0")}`;
    const { rows } = await rowsRead(connection, LIST, [
      hash,
      "payments",
      String(LIMIT),
      middle,
      "{}",
    ]);
    assert.ok(rows <= MAX_CHEAP_ROWS, `${rows} rows were read`);
  });
  await t.step("with current statistics", async () => {
    await connection`analyze`;
    await assertBounded();
  });
  await t.step("without statistics", async () => {
    await forgetStatistics(connection);
    // Planning also reads pages.
    await plan();
    await assertBounded();
  });
  await t.step("for a key whose environment has no such rows", async () => {
    const empty = parseApiKey(service.live.text)!.hash;
    for (const list of lists) {
      const { kind, filters } = list;
      const parameters = [empty, kind, String(LIMIT), null, JSON.stringify(filters)];
      const { rows, pages } = await rowsRead(connection, LIST, parameters);
      const name = `${kind} ${JSON.stringify(filters)}`;
      assert.ok(
        rows <= OTHER_ROWS && pages <= pagesFor(rows, list),
        `${name}: ${rows}, ${pages}`,
      );
    }
  });
});

serviceCase("pay.list() returns each item once for any page size", async (t, service) => {
  await using connection = await openSession(service.sql);
  const { environment_id } = service.key;
  await fillLists(connection, environment_id, { rows: WALKED_ROWS });
  await fillLists(connection, service.other.environment_id, { rows: WALKED_ROWS });
  await connection`analyze`;
  const short = { pages: 0, empty: 0 };
  const lists = everyCombination(WALKED_ROWS);
  for (const kind of new Set(lists.map(({ kind }) => kind))) {
    await t.step(kind, async () => {
      for (const list of lists.filter((list) => list.kind === kind)) {
        const { ids, pages } = await walk(connection, service, list);
        assert.deepEqual(
          ids,
          await matching(connection, environment_id, list),
          JSON.stringify(list),
        );
        short.pages += pages.filter((size) => size < WALKED_LIMIT).length;
        short.empty += pages.filter((size) => size === 0).length;
      }
    });
  }
  await t.step("the only delivery of a payment with more events than a page reads", async () => {
    const list = { kind: "webhook_deliveries", filters: { subject_id: `pay_${"9".repeat(26)}` } };
    const event = "'evt_9' || lpad((n * 1000)::text, 25, '0')";
    await connection.unsafe(
      `insert into pay.events (environment_id, id, type, subject_id, sequence, created_at, body)
       select $1, ${event}, 'payment.completed', $2, n, now(), '{}'
       from generate_series(1, ${PAGE_ROWS + 100}) n`,
      [environment_id, list.filters.subject_id],
    );
    await connection.unsafe(
      `insert into pay.webhook_deliveries (environment_id, id, created_at, event_id, event_type,
         endpoint_id, subject_id, status)
       select $1, replace(${event}, 'evt', 'whd'), now(), ${event}, 'payment.completed', 'whe_9',
         $2, 'delivered' from generate_series(${PAGE_ROWS + 100}, ${PAGE_ROWS + 100}) n`,
      [environment_id, list.filters.subject_id],
    );
    assert.equal((await walk(connection, service, list as FilteredList)).ids.length, 1);
  });
  assert.ok(short.empty > 0 && short.pages > short.empty, JSON.stringify(short));
});

/**
 * Reads all pages of a list: the ids of the items, and the item count of each page but the last.
 */
async function walk(
  sql: ReservedSql,
  service: TestService,
  { kind, filters }: FilteredList,
): Promise<{ ids: string[]; pages: number[] }> {
  const ids: string[] = [];
  const pages: number[] = [];
  const hash = parseApiKey(service.key.text)!.hash;
  for (let cursor: string | null = null;;) {
    const parameters: (string | null)[] = [hash, kind, String(WALKED_LIMIT), cursor];
    const [page]: { data: string; has_more: boolean; next_cursor: string | null }[] = await sql
      .unsafe(LIST, [...parameters, JSON.stringify(filters)], { prepare: true });
    const { data, has_more, next_cursor } = page!;
    const items: { id: string }[] = JSON.parse(`[${data}]`);
    ids.push(...items.map(({ id }) => id.replace(/^[a-z]+_0*/, "")));
    assert.equal(next_cursor !== null, has_more);
    assert.ok(cursor === null || next_cursor === null || next_cursor < cursor, "it goes on");
    if (!has_more) return { ids, pages };
    pages.push(items.length);
    cursor = next_cursor;
  }
}

/** The numbers of the rows that match, newest first. */
async function matching(
  sql: ReservedSql,
  environment_id: string,
  { kind, filters }: FilteredList,
): Promise<string[]> {
  const where = Object.entries(filters).map(([name, value]) => {
    if (name === "id_from") return `id >= '${value}'`;
    if (name === "id_before") return `id < '${value}'`;
    if (name === "customer") return `body like '%"email":"${value}"%'`;
    return `${name} = '${value}'`;
  });
  const rows = await sql.unsafe<{ n: string }[]>(
    `select ltrim(substr(id, strpos(id, '_') + 1), '0') as n from pay.${kind}
     where ${[`environment_id = '${environment_id}'`, ...where].join(" and ")} order by id desc`,
  );
  return rows.map(({ n }) => n);
}

/** Disables autovacuum, which would analyze the tables at an unknown moment. */
async function keepStatistics(sql: ReservedSql): Promise<void> {
  const tables = await sql<{ name: string }[]>`
    select relname as name from pg_class
    where relnamespace = 'pay'::regnamespace and relkind = 'r'`;
  for (const { name } of tables) {
    await sql.unsafe(`alter table pay.${name} set (autovacuum_enabled = off)`);
  }
}

async function forgetStatistics(sql: ReservedSql): Promise<void> {
  await sql`
    delete from pg_statistic using pg_class c
    where starelid = c.oid and c.relnamespace = 'pay'::regnamespace`;
  await sql`
    update pg_class set reltuples = -1, relpages = 0, relallvisible = 0
    where relnamespace = 'pay'::regnamespace and relkind in ('r', 'i')`;
}
