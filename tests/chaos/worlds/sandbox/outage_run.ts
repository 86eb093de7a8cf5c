/**
 * R8: a receiver is down for ten minutes. After its return every delivery of the backlog must
 * arrive, in order and with a fresh signature. In small runs the clocks of servers and receiver
 * skip the ten minutes after the first two attempts have failed in real time. Large runs wait.
 */

import { freePort } from "../../../support/common/free_port.ts";
import { pause } from "../../../support/common/until.ts";
import type { Verdict } from "../../harness/audit.ts";
import { COMPLETED, eachAtOnce, RepeatingClient, SANDBOX } from "../../harness/client.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { type Stage, untilWell } from "../../harness/stage.ts";
import { untilNone } from "../../harness/time.ts";
import { judgeArrivals } from "./delivery_audit.ts";

const OUTAGE_MS = 600_000;
/** The attempts of each delivery at 0 and 5 s fail before the receiver starts. */
const REAL_START_MS = 7_000;
const CLIENTS = 16;
/** Deliveries of one sandbox. It takes 20 000 that are pending. */
const DELIVERIES_OF_SANDBOX = 15_000;
/** Longest time until the backlog is delivered: at least, and for each thousand deliveries. */
const DRAIN_MS = { least: 60_000, per_thousand: 9_000 };

/**
 * Makes the backlog, starts the receiver, and judges the arrivals.
 * @param backlog number of deliveries
 * @param is_real whether the run waits for ten minutes
 */
export async function runOutage(
  stage: Stage,
  { backlog, is_real }: { backlog: number; is_real: boolean },
): Promise<Verdict[]> {
  const server = await stage.startServer();
  await untilWell(server);
  const client = new RepeatingClient(stage, [server]);
  const port = freePort();
  const keys: string[] = [];
  const secrets: Record<string, string> = {};
  while (keys.length < backlog / DELIVERIES_OF_SANDBOX) {
    const path = `/${keys.length}`;
    const { key } = await stage.makeSandbox(`outage ${keys.length}`);
    const url = `http://127.0.0.1:${port}${path}`;
    secrets[path] = (await client.addEndpoint(key, { url, events: ["*"] })).secret;
    keys.push(key);
  }
  const started = performance.now();
  const breaches: string[] = [];
  // Each payment has two events.
  const payments = Array.from({ length: Math.ceil(backlog / 2) }, (_, i) => i);
  await eachAtOnce(CLIENTS, payments, async (i) => {
    const payment = { body: COMPLETED, key: `outage-${i}` };
    const { status } = await client.send(keys[i % keys.length]!, `${SANDBOX}/payments`, payment);
    if (status !== 201) breaches.push(`payment ${i} got ${status}`);
  });
  const due = 2 * payments.length;
  const wait_ms = (is_real ? OUTAGE_MS : REAL_START_MS) - (performance.now() - started);
  await pause(Math.max(0, wait_ms));
  const [waiting] = await stage.sql<{ pending: number; tried: number }[]>`
    select count(*) filter (where status = 'pending')::int as pending,
      count(*) filter (where cardinality(attempts) > 0)::int as tried
    from pay.webhook_deliveries`;
  const { pending, tried } = waiting!;
  const ahead_ms = is_real ? 0 : OUTAGE_MS;
  const receiver = await startReceiver(stage, { port, seed: 0, fail: 0, secrets, ahead_ms });
  await setDatabaseAhead(stage.sql, ahead_ms);
  await server.setAhead(ahead_ms);
  const back = performance.now();
  const deadline_ms = Math.max(DRAIN_MS.least, DRAIN_MS.per_thousand * backlog / 1_000);
  // The comparison below reports missing deliveries.
  await untilNone(
    "the backlog is delivered",
    () => stage.sql`select from pay.webhook_deliveries where status = 'pending' limit 1`,
    deadline_ms,
  ).catch(() => {});
  const drained_s = (performance.now() - back) / 1_000;
  // The receiver refused deliveries that were signed before the jump of the clocks.
  const all = await receiver.read();
  const arrivals = all.filter(({ is_taken }) => is_taken);
  const { taken, disordered, stale, oldest_ms } = judgeArrivals(arrivals);
  if (taken.size !== due) {
    const refused = all.length - arrivals.length;
    breaches.push(`${taken.size} of ${due} arrived, ${refused} attempts were refused`);
  }
  if (pending < due || tried === 0) {
    breaches.push(`only ${pending} were waiting, ${tried} of them tried`);
  }
  return [{
    promise: "R8",
    says:
      `${pending} deliveries waited ten minutes (${is_real ? "of real time" : "by the clock"}), ` +
      `${tried} of them with attempts; all arrived ${drained_s.toFixed(1)} s after the return, ` +
      `signatures at most ${oldest_ms} ms old`,
    breaches: [
      ...breaches,
      ...client.breachesOfCalm,
      ...stale,
      ...disordered.map((name) => `out of order: ${name}`),
    ],
  }];
}

/** The database decides which deliveries are due, so its clock jumps too (ADR 0008). */
async function setDatabaseAhead(sql: Stage["sql"], ahead_ms: number): Promise<void> {
  await sql.unsafe(`create or replace function pay_internal.server_time() returns timestamptz
    language sql stable parallel safe set search_path = pg_catalog, pg_temp
    as $$ select now() + interval '${ahead_ms} milliseconds' $$`);
}
