/**
 * R15, clocks: clients make payments that end by themselves, and the clock of their sandbox
 * advances day by day. Every advance has happened once, every payment has ended at its own time,
 * and the inbox has the events in the order of time.
 */

import { pause } from "../../../support/common/until.ts";
import { SANDBOX, V1 } from "../../harness/client.ts";
import { type Part, type PartReport, untilDone } from "./parts.ts";

const CLIENTS = 2;
/** Between two payments of a client, so that an advance that waits for a kill gets few more. */
const PAUSE_MS = 100;
/** After these days every payment has ended, and none is old enough for retention. */
const LAST_DAYS = 8;
const DAY_S = 86_400;
const CLOCK = `${SANDBOX}/clock`;
/** Payments, and the days after which they end by themselves. */
const KINDS = [
  { body: { card: { token: "pm_card_authenticationRequired" } }, status: "failed", days: 1 },
  { body: { card: { token: "pm_card_visa" }, capture: "manual" }, status: "cancelled", days: 7 },
] as const;

/** Advances a clock by a day, again and again, until the kills are over. */
export async function playClock({ stage, client, sandbox, send, isOver }: Part) {
  await client.addEndpoint(sandbox.key, { delivery: "inbox" });
  const begun = await send(CLOCK, { body: { mode: "frozen" }, key: "begin" });
  const begin_ms = Date.parse(begun.body.now);
  const breaches: string[] = [];
  let [payments, days, is_done] = [0, 0, false];
  const advance = async (by_days: number) => {
    days += by_days;
    let body: Record<string, unknown> = { advance: by_days * DAY_S };
    for (let i = 0;; i++) {
      const { status, text } = await send(CLOCK, { body, key: `day-${days}-${i}` });
      if (status !== 200) return void breaches.push(`an advance: ${status} ${text}`);
      const { has_more, target } = JSON.parse(text);
      if (!has_more) return;
      body = { to: target };
    }
  };
  await Promise.all([
    untilDone(CLIENTS, async (number, i) => {
      const { body } = KINDS[(number + i) % KINDS.length]!;
      const { status } = await send(`${V1}/payments`, {
        body: { amount: 100, currency: "EUR", ...body },
        key: `clock-${number}-${i}`,
      });
      if (status === 201) payments++;
      else breaches.push(`a payment: ${status}`);
      await pause(PAUSE_MS);
      return !is_done;
    }),
    (async () => {
      while (!isOver()) await advance(1);
      is_done = true;
    })(),
  ]);
  await advance(LAST_DAYS);
  const { now } = (await send(CLOCK)).body;
  const expected = new Date(begin_ms + days * DAY_S * 1_000).toISOString();
  if (now !== expected) breaches.push(`now is ${now}, not ${expected}`);
  for (const { status, days } of KINDS) {
    const wrong = await stage.sql<{ id: string }[]>`
      select id from pay.payments
      where environment_id = ${sandbox.environment_id} and status = ${status}
        and updated_at <> created_at + ${`${days} days`}::interval`;
    for (const { id } of wrong) breaches.push(`${id} is ${status} at another time than its own`);
  }
  const [row] = await stage.sql<{ open: number; disordered: number }[]>`
    select (
      select count(*) from pay.payments
      where environment_id = ${sandbox.environment_id} and status not in ('failed', 'cancelled')
    )::int as open, (
      select count(*) from (
        select v.created_at < lag(v.created_at) over (order by i.position) as is_late
        from pay.inbox_entries i
        join pay.webhook_deliveries d
          on d.environment_id = i.environment_id and d.id = i.delivery_id
        join pay.events v on v.environment_id = d.environment_id and v.id = d.event_id
        where i.environment_id = ${sandbox.environment_id}
      ) o where o.is_late
    )::int as disordered`;
  if (row!.open > 0) breaches.push(`${row!.open} payments have not ended`);
  if (row!.disordered > 0) breaches.push(`${row!.disordered} events are out of order in the inbox`);
  const says = `${payments} payments through ${days} days of a clock`;
  return { says, breaches } satisfies PartReport;
}
