/** Actions and checks of live tests: the clock, notifications, and the books of both sides. */

import assert from "node:assert/strict";
import { checkBooks } from "../../../apps/operator/check_books.ts";
import type { TestResponse } from "../service/service.ts";
import type { StripeObject } from "../stripe/journal.ts";
import { signatureHeader } from "../stripe/notifications.ts";
import { type LiveCase, NOTIFICATION_SECRET } from "./live_case.ts";

/** Longer than the lease of a provider event that waits for another one. */
const WAIT_S = 31;

/** How far the clock of each test is ahead. */
const ahead = new WeakMap<LiveCase, number>();

/** Sets the clock of the product to the machine's, which is also the double's. */
export async function returnToPresent(given: LiveCase): Promise<void> {
  ahead.set(given, 0);
  await given.service.setClock(null);
}

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
  const ahead_ms = (ahead.get(given) ?? 0) + seconds * 1000;
  ahead.set(given, ahead_ms);
  await given.service.setClock(Date.now() + ahead_ms);
  await given.work();
}

/** The parts of a notification that a test can change. */
export interface Sent {
  account_id?: string;
  /** One signature for each. */
  secrets?: readonly string[];
  headers?: Record<string, string>;
}

/** Sends a body to the route of notifications, signed unless `secrets` is empty. */
export function notify(
  given: LiveCase,
  body: string,
  { account_id = given.account_id, secrets = [NOTIFICATION_SECRET], headers = {} }: Sent = {},
): Promise<TestResponse> {
  const at_ms = Date.now() + (ahead.get(given) ?? 0);
  return given.service.call("POST", `/api-v1-payments/providers/${account_id}/notifications`, {
    key: null,
    body,
    headers: {
      ...(secrets.length > 0 && { "Stripe-Signature": signatureHeader(body, secrets, at_ms) }),
      ...headers,
    },
    unchecked: true,
  });
}

/**
 * Sends events of the double as notifications, and applies their provider events. Returns the
 * statuses.
 */
export async function deliver(given: LiveCase, events: readonly StripeObject[]): Promise<number[]> {
  const statuses: number[] = [];
  for (const event of events) statuses.push((await notify(given, JSON.stringify(event))).status);
  await settle(given);
  return statuses;
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

/** Returns the events of one object of the double, the oldest first. */
export async function eventsOf(given: LiveCase, ...types: string[]): Promise<StripeObject[]> {
  const { event } = await given.books();
  return event.filter(({ type }) => types.length === 0 || types.includes(type));
}

/** Returns the payment as the API shows it. */
export async function shown(given: LiveCase, id: string) {
  return (await given.call("GET", `/payments/${id}`)).body;
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

/**
 * Asserts that our ledger agrees with the double to the cent, and that no invariant is broken.
 */
export async function assertBalanced(given: LiveCase): Promise<void> {
  await settle(given);
  assert.deepEqual(await ledgerBalances(given), await balances(given));
  assert.deepEqual(await breaches(given), []);
}

/** Returns the types of a payment's events in their order. The API must list the same ones. */
export async function eventTypes(given: LiveCase, id: string): Promise<string[]> {
  const rows = await given.service.sql<{ type: string }[]>`
    select type from pay.events where subject_id = ${id} order by sequence`;
  const types = rows.map(({ type }) => type);
  const { data } = (await given.call("GET", `/events?payment_id=${id}&limit=100`)).body;
  const listed: string[] = data.map(({ type }: { type: string }) => type);
  assert.deepEqual(listed.sort(), types.toSorted());
  return types;
}

/** Returns the stored provider events of a subject: state, outcome and exception. */
export async function providerEventsOf({ service }: LiveCase, subject_id: string | null) {
  const rows = await service.sql`
    select op || ' ' || state as event, outcome, exception from pay.provider_events
    where subject_id is not distinct from ${subject_id} order by received_at, reference`;
  return rows.map(({ event, outcome, exception }) => [event, outcome, exception]);
}
