/**
 * Money of the account at the provider, outside of payments: payouts, fees, reserves, and the
 * totals of a day. The ledger moves when the provider's balance does.
 */

import assert from "node:assert/strict";
import { addAccount } from "../support/database/provider_flow.ts";
import { paid } from "../support/live/live_actions.ts";
import {
  assertBalanced,
  balances,
  breaches,
  liveCase,
  settle,
  workAfter,
} from "../support/live/live_case.ts";
import { json, startFaultServer } from "../support/connectors/fault_server.ts";
import { movement, page } from "../support/connectors/stripe_case.ts";
import { startService } from "../support/service/service.ts";

const HOUR_S = 3600;

liveCase(
  "every movement of the account is in the ledger, and the day's totals agree",
  async (given) => {
    const { sql } = given.service;
    // The first day that is read is the one after the account was added.
    await sql`update pay.provider_accounts set created_at = created_at - interval '2 days'`;
    await paid(given);
    const owner = given.secret;
    const book = async (type: string, amount: number, fee = 0) =>
      await given.double.act("movements", { owner, type, amount, fee });
    await book("stripe_fee", -120);
    await book("tax_fee", -23);
    await book("reserve_hold", -300);
    await book("topup", 5000);
    await book("reserve_release", 100);
    // The provider's balance has changed, although the payout is on its way.
    await given.double.act("payouts", { owner, currency: "eur" });
    await paid(given);
    await workAfter(given, HOUR_S + 60);
    await assertBalanced(given);
    const movements = await sql`
    select kind, amount_minor::int as amount from pay.ledger_movements
    where subject_id = ${given.account_id} order by amount_minor`;
    assert.deepEqual(movements.map(({ kind, amount }) => `${kind} ${amount}`), [
      "fee 23",
      "reserve_reversal 100",
      "fee 120",
      "reserve 300",
      "settlement_reversal 5000",
      "settlement 5617",
    ]);
    const { balances: shown } = (await given.call("GET", "/balance")).body;
    const reserve = shown.find(({ account }: { account: string }) => account === "reserve");
    assert.equal(reserve.amount_minor, -200);
    // Money of a product that this service does not know.
    await book("issuing_transaction", -70, 2);
    await workAfter(given, 2 * 24 * HOUR_S);
    await settle(given);
    assert.deepEqual((await breaches(given)).map((line) => line.replace(/.*: /, "")), [
      "the provider has booked -0.70 EUR as issuing_transaction, outside of payments",
    ]);
    const [totals] = await sql`select sum(provider_minor)::int as sum from pay.provider_totals`;
    const sum = Number(totals!.sum);
    assert.equal(sum, (await balances(given)).EUR);
    await sql`update pay.provider_totals set provider_minor = provider_minor + 1
    where provider_minor <> 0`;
    assert.match((await breaches(given)).join(), RegExp(`provider ${sum + 1} EUR, ledger ${sum}`));
  },
  { is_open: true },
);

const PAGES = 45;
/** Pages that a job reads. */
const JOB_PAGES = 20;
/** The page at which the provider breaks the connection once. */
const BROKEN_PAGE = 30;
/** Longer than the lease of an account. */
const LEASE_MS = 31_000;
const DAY_MS = 24 * HOUR_S * 1000;

Deno.test("the totals of a day with many pages are read in several jobs, each page once", async () => {
  const requested: number[] = [];
  let is_broken = false;
  // Each page has 1 cent, and 1 hundredth of a króna.
  await using provider = await startFaultServer((response, received) => {
    const after = received.query.get("starting_after");
    const at = after === null ? 0 : Number(after.slice("txn_".length)) + 1;
    requested.push(at);
    if (at === BROKEN_PAGE && !is_broken) {
      is_broken = true;
      return json(500, {})(response, received);
    }
    const cents = { amount: 1, fee: 0, net: 1 };
    const data = [
      movement({ ...cents, id: `txn_x${at}`, currency: "isk" }),
      movement({ ...cents, id: `txn_${at}` }),
    ];
    json(200, page(data, at < PAGES - 1))(response, received);
  });
  const service = await startService({ provider_secret: () => "sk_live_long" });
  const { sql, deps: { provider_worker } } = service;
  try {
    let now = Date.parse("2026-11-22T12:00:00Z");
    await service.setClock(now - 2 * DAY_MS);
    const settings = { base_url: provider.base_url };
    await addAccount(sql, service.live.environment_id, { settings });
    await service.setClock(now);
    await sql`update pay.provider_cursors set polled_at = ${new Date(now)}`;
    /** The pages that one job asks for. */
    const poll = async () => {
      requested.length = 0;
      await provider_worker.notify();
      await service.setClock(now += LEASE_MS);
      return [requested[0], requested.at(-1), requested.length];
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
  }
});
