/**
 * A day whose totals have more pages than one job of the worker reads: later jobs go on where the
 * last page was stored, also after a page that failed, and every movement counts once.
 */

import assert from "node:assert/strict";
import { idGenerator } from "../../shared/core/ids.ts";
import { startService } from "../support/service/service.ts";

const PAGES = 45;
/** Pages that a job reads. */
const JOB_PAGES = 20;
/** The page at which the provider breaks the connection once. */
const BROKEN_PAGE = 30;
/** Longer than the lease of an account. */
const LEASE_MS = 31_000;
const DAY_MS = 24 * 3_600_000;

/** A provider whose list of movements has many pages of two: 1 cent, and 1 hundredth of a króna. */
function startProvider() {
  const requested: number[] = [];
  let is_broken = false;
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, (request) => {
    const { searchParams } = new URL(request.url);
    const after = searchParams.get("starting_after");
    const page = after === null ? 0 : Number(after.slice("txn_".length)) + 1;
    requested.push(page);
    if (page === BROKEN_PAGE && !is_broken) {
      is_broken = true;
      return new Response(null, { status: 500 });
    }
    const movement = (id: string, currency: string) => ({
      ...{ id, object: "balance_transaction", type: "charge", amount: 1, created: 1, currency },
      ...{ fee: 0, net: 1 },
    });
    return Response.json({
      object: "list",
      data: [movement(`txn_x${page}`, "isk"), movement(`txn_${page}`, "eur")],
      has_more: page < PAGES - 1,
    });
  });
  return {
    base_url: `http://127.0.0.1:${server.addr.port}`,
    requested,
    close: () => server.shutdown(),
  };
}

Deno.test("the totals of a long day are read in several jobs", async () => {
  const provider = startProvider();
  const service = await startService({ provider_secret: () => "sk_live_long" });
  const { sql, deps: { provider_worker } } = service;
  try {
    let now = Date.parse("2026-11-22T12:00:00Z");
    await service.setClock(now - 2 * DAY_MS);
    await sql`select pay.add_provider_account(${idGenerator(now)("pac_")},
      ${service.live.environment_id}, 'stripe', ${["card"]},
      ${JSON.stringify({ base_url: provider.base_url })}, 'PROVIDER_STRIPE', ${[]}::text[])`;
    await service.setClock(now);
    await sql`update pay.provider_cursors set polled_at = ${new Date(now)}`;
    /** The pages that one job asks for. */
    const poll = async () => {
      provider.requested.length = 0;
      await provider_worker.notify();
      await service.setClock(now += LEASE_MS);
      return [provider.requested[0], provider.requested.at(-1), provider.requested.length];
    };
    const totals = async () => {
      const rows = await sql`
        select day::text, currency, provider_minor::int from pay.provider_totals order by currency`;
      return rows.map((row) => Object.values(row));
    };
    assert.deepEqual(await poll(), [0, JOB_PAGES - 1, JOB_PAGES]);
    // The next page fails, and the job with it.
    assert.deepEqual(await poll(), [JOB_PAGES, BROKEN_PAGE, BROKEN_PAGE - JOB_PAGES + 1]);
    assert.deepEqual(await totals(), []);
    assert.deepEqual(await poll(), [BROKEN_PAGE, PAGES - 1, PAGES - BROKEN_PAGE]);
    // 45 hundredths of a króna are rounded once, to nothing.
    assert.deepEqual(await totals(), [["2026-11-21", "EUR", PAGES], ["2026-11-21", "ISK", 0]]);
    assert.deepEqual(await poll(), [undefined, undefined, 0]);
  } finally {
    await service.close();
    await provider.close();
  }
});
