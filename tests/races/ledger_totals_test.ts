/**
 * The totals of the ledger under concurrency: a total loses no amount, however many transactions
 * write it, and its newest rows are found in a bounded number of pages while an old snapshot is
 * open.
 */

import assert from "node:assert/strict";
import { openSession } from "../support/database/database.ts";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import { untilWaiting } from "../support/database/lock_waits.ts";
import { rowsRead } from "../support/database/pages_read.ts";
import type { TestService } from "../support/service/service.ts";
import { ASKS, raceCase } from "../support/service/two_instances.ts";

const STRIPES = 64;
/** Updates of one total during an old snapshot. Their row versions take more than 50 pages. */
const UPDATES = 5_000;
/** The maximum of index and table pages for one stripe. */
const MAX_PAGES = 15;

raceCase("pay.ledger_totals under concurrency", async (t, two) => {
  const { service } = two;
  await using session = await openSession(service.sql);
  /** Locks stripes of the captures in EUR during `work`, as other transactions do. */
  const hold = async (stripes: number, work: () => Promise<void>) => {
    await session`begin`;
    await session`
      select pg_advisory_xact_lock(hashtextextended(
        concat_ws(' ', 'total', ${service.key.environment_id}::text, 'EUR', 'processor', 'available'), n))
      from generate_series(0, ${stripes - 1}::int) n`;
    await work().finally(() => session`rollback`);
  };
  const create = (amount: number) => two.post(0, ASKS.create({ amount, outcome: "success" }));
  await t.step("a create uses the only free stripe", async () => {
    await hold(STRIPES - 1, async () => {
      const made = await create(100);
      assert.equal(made.status, 201, made.text);
    });
    const [row] = await service.sql`
      select amount_minor::int as amount from pay.ledger_totals
      where stripe = ${STRIPES - 1} and debit_account = 'processor'`;
    assert.equal(row?.amount, 100);
    assert.equal(await captured(service), 100);
  });
  await t.step("a create waits if no stripe is free, and its amount counts", async () => {
    const before = await captured(service);
    const creates: ReturnType<typeof create>[] = [];
    await hold(STRIPES, async () => {
      creates.push(create(7), create(11));
      await untilWaiting(service.sql, { calls: "pay.commit" });
      assert.equal(await captured(service), before);
    });
    for (const { status, text } of await Promise.all(creates)) assert.equal(status, 201, text);
    assert.equal(await captured(service), before + 18);
    await assertSilent(service.sql);
  });
  await t.step("reads of a total stay fast during an old snapshot", async () => {
    const { environment_id } = service.other;
    const add =
      `pay_internal.add_to_total('${environment_id}', 'EUR', 'processor', 'available', 1)`;
    const read =
      `select sum(amount_minor)::int as sum from pay_internal.read_totals('${environment_id}')`;
    await using writer = await openSession(service.sql);
    // Each update is a transaction of its own, so it makes a new row version.
    const addOften = (times: number) =>
      writer.unsafe(
        `do $$ begin for n in 1..${times} loop perform ${add}; commit; end loop; end $$`,
      );
    await writer`select set_config('pay.worker', 'on', false)`;
    // As in pay.commit: by its statistics, a scan of the table or a bitmap could be chosen.
    await writer`
      select set_config(split_part(setting, '=', 1), split_part(setting, '=', 2), false)
      from pg_proc, unnest(proconfig) setting
      where oid = 'pay.commit'::regproc and setting like 'enable_%'`;
    await writer`alter table pay.ledger_totals set (autovacuum_enabled = off)`;
    await writer`begin`;
    await writer`
      insert into pay.ledger_totals (environment_id, currency, debit_account, credit_account,
        stripe, generation, updates, amount_minor)
      select ${environment_id}, 'EUR', 'processor', 'available', 1, n, 0, 0
      from generate_series(1, ${UPDATES}::int) n`;
    await writer`rollback`;
    await session`begin isolation level repeatable read`;
    await session`select count(*) from pay.ledger_totals`;
    await addOften(UPDATES);
    // Only the rolled-back rows can be removed. The next versions use their space, so they are
    // before the older ones in the table.
    await writer`vacuum pay.ledger_totals`;
    await addOften(UPDATES / 10);
    const [total] = await writer.unsafe(read);
    assert.equal(total!.sum, 1.1 * UPDATES);
    for (const statistics of ["without", "with"]) {
      if (statistics === "with") await writer`analyze pay.ledger_totals`;
      const { pages } = await rowsRead(writer, read, []);
      const { pages: pages_to_add } = await rowsRead(writer, `select ${add}`, []);
      console.log(`${pages} pages to read, ${pages_to_add} to add, ${statistics} statistics`);
      assert.ok(pages <= MAX_PAGES && pages_to_add <= MAX_PAGES, `${pages}, ${pages_to_add}`);
    }
  });
});

/** The total of the captures in EUR. */
async function captured({ sql, key }: TestService): Promise<number> {
  const [row] = await sql`
    select coalesce(sum(amount_minor), 0)::int as amount from pay.ledger_totals
    where environment_id = ${key.environment_id} and currency = 'EUR'
      and debit_account = 'processor' and credit_account = 'available'`;
  return row!.amount;
}
