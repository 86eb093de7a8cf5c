/**
 * Tests of live keys: the product with an account at the double of Stripe. At the end of each the
 * ledger agrees with the double to the cent, and no invariant is broken.
 */

import assert from "node:assert/strict";
import { checkBooks } from "../../../apps/operator/check_books.ts";
import type { Settings } from "../../../shared/functions/settings.ts";
import { addAccount } from "../database/provider_flow.ts";
import { no_stripe_double, startStripeDouble, type StripeDouble } from "../stripe/double.ts";
import { type CallOptions, startService, type TestService } from "../service/service.ts";

/** A test's view of the product and its provider. */
export type LiveCase = Awaited<ReturnType<typeof makeCase>>;

/** The secret that signs notifications for a test's account. */
export const NOTIFICATION_SECRET = "whsec_live_case";

let double: StripeDouble | null = null;
let owners = 0;

Deno.test.beforeAll(async () => {
  if (!no_stripe_double) double = await startStripeDouble();
});
Deno.test.afterAll(async () => await double?.close());

/**
 * Registers a test with its own product. Without localstripe it is skipped, or fails in CI.
 * `is_open`: it leaves something that a person has to decide. `account`: settings of the account.
 */
export function liveCase(
  name: string,
  test: (given: LiveCase, t: Deno.TestContext) => Promise<void>,
  { is_open = false, account = {}, ...settings }: Partial<Settings> & {
    is_open?: boolean;
    account?: Record<string, string>;
  } = {},
): void {
  Deno.test({
    name,
    ignore: no_stripe_double,
    async fn(t) {
      assert.ok(double, "localstripe is not installed");
      const variables: Record<string, string> = {
        PROVIDER_STRIPE: `sk_live_${++owners}`,
        PROVIDER_STRIPE_NOTIFICATIONS: NOTIFICATION_SECRET,
      };
      const provider_secret = (name: string) => variables[name];
      const service = await startService({ provider_secret, ...settings });
      try {
        const given = await makeCase(service, double, variables, account);
        await test(given, t);
        if (!is_open) await assertBalanced(given);
      } finally {
        await service.close();
      }
    },
  });
}

async function makeCase(
  service: TestService,
  running: StripeDouble,
  variables: Record<string, string>,
  more: Record<string, string>,
) {
  const secret = variables.PROVIDER_STRIPE!;
  const settings = { base_url: running.base_url, ...more };
  const account_id = await addAccount(service.sql, service.live.environment_id, { settings });
  const key = service.live.text;
  // Every write has an idempotency key, so that the invariants check each response that is stored.
  const keyed = () => ({ key, idempotency_key: crypto.randomUUID() });
  return {
    ...{ service, double: running },
    /** The account of the live environment, `pac_…`. */
    account_id,
    /** The secret key at the double. */
    secret,
    /** The variables of the functions that begin with `PROVIDER_`. A test can change them. */
    variables,
    /** Creates a live payment of 1000 EUR cents with a token. */
    pay: (body: Record<string, unknown> = {}, options: CallOptions = {}) =>
      service.pay({ card: { token: "pm_card_visa" }, ...body }, { ...keyed(), ...options }),
    /** Calls the payments function with the live key. */
    call: (method: string, path: string, options: CallOptions = {}) =>
      service.call(method, `/api-v1-payments/v1${path}`, {
        ...(method === "GET" ? { key } : keyed()),
        ...options,
      }),
    books: () => running.books(secret),
    /** Runs the worker until it finds no more work. */
    work: () => service.deps.provider_worker.notify(),
  };
}

/** Longer than the lease of a provider event that waits for another one. */
const WAIT_S = 31;

/** Keeps the hourly poll away, so that only calls and syncs bring results. */
export async function stopPolls({ service }: LiveCase): Promise<void> {
  await service.sql`update pay.provider_cursors set polled_at = now() + interval '1 year'`;
}

/** Lets the polls begin again. */
export async function resumePolls({ service }: LiveCase): Promise<void> {
  await service.sql`update pay.provider_cursors set polled_at = null`;
}

/** Puts the clock of the product forward, and does the work that is due then. */
export async function workAfter(given: LiveCase, seconds: number): Promise<void> {
  const { clock } = given.service.deps;
  await given.service.setClock(clock() + seconds * 1000);
  await given.work();
}

/**
 * Does the work until every stored provider event has its outcome: a provider event can wait for
 * another one.
 */
export async function settle(given: LiveCase): Promise<void> {
  await given.work();
  for (let turn = 0; turn < 5; turn++) {
    const [open] = await given.service.sql`
      select reference from pay.provider_events where outcome is null limit 1`;
    if (!open) return;
    await workAfter(given, WAIT_S);
  }
}

/** The balances at the double by currency, in its minor units. */
export async function balances(given: LiveCase): Promise<Record<string, number>> {
  const { balance_transaction } = await given.books();
  const sums: Record<string, number> = {};
  for (const { currency, net } of balance_transaction) {
    sums[currency.toUpperCase()] = (sums[currency.toUpperCase()] ?? 0) + net;
  }
  return Object.fromEntries(Object.entries(sums).filter(([, sum]) => sum !== 0));
}

/** The balances at the provider by currency, according to our ledger. */
async function ledgerBalances({ service }: LiveCase): Promise<Record<string, number>> {
  const rows = await service.sql`
    select currency, -sum(processor + chargebacks + external) as balance
    from pay_internal.subject_accounts where environment_id = ${service.live.environment_id}
    group by currency having sum(processor + chargebacks + external) <> 0`;
  return Object.fromEntries(rows.map(({ currency, balance }) => [currency, Number(balance)]));
}

/** Returns the breaches of all invariants, as lines. */
export async function breaches({ service }: LiveCase): Promise<string[]> {
  const verdicts = await checkBooks(service.sql);
  return verdicts.flatMap(({ breaches, examples }) => breaches > 0 ? examples : []);
}

export async function assertBalanced(given: LiveCase): Promise<void> {
  await resumePolls(given);
  await settle(given);
  assert.deepEqual(await ledgerBalances(given), await balances(given));
  assert.deepEqual(await breaches(given), []);
}
