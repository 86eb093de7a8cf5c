/**
 * R8: a receiver is down for ten minutes. After its return every delivery of the backlog must arrive,
 * in order and with a fresh signature. In small runs the clocks of servers and receiver skip the ten
 * minutes after the first two attempts have failed in real time. Large runs wait.
 */

import { join } from "node:path";
import { addEndpoint, callApi, SANDBOX_PAYMENTS } from "./api_call.ts";
import type { Arrival } from "./arrival.ts";
import type { Verdict } from "./evidence.ts";
import { SIGNATURE_AGE_MS, SIGNATURE_AHEAD_MS } from "./delivery_audit.ts";
import { readJournal } from "./journal.ts";
import { launch } from "./process.ts";
import type { ReceiverSettings } from "./receiver_process.ts";
import { until } from "../support/common/until.ts";
import { freePort } from "../support/common/free_port.ts";
import { type Stage, untilWell } from "./stage.ts";

/** The options of the run. */
interface OutageOptions {
  /** Deliveries in the backlog. */
  backlog: number;
  /** Whether the run waits for ten minutes. */
  is_real: boolean;
}

const OUTAGE_MS = 600_000;
/** The attempts of each delivery at 0 and 5 s fail before the receiver starts. */
const REAL_START_MS = 7_000;
const CLIENTS = 16;
/** Longest time until the backlog is delivered: at least, and for each thousand deliveries. */
const DRAIN_MS = { least: 60_000, per_thousand: 9_000 };

/** Makes the backlog, starts the receiver, and judges the arrivals. */
export async function runOutage(
  stage: Stage,
  { backlog, is_real }: OutageOptions,
): Promise<Verdict[]> {
  const server = await stage.startServer();
  await untilWell(server);
  const { text } = await stage.makeSandbox("outage");
  const port = freePort();
  const { secret } = await addEndpoint(server.base_url, text, `http://127.0.0.1:${port}/`, ["*"]);
  const started = performance.now();
  const breaches: string[] = [];
  let next = 0;
  await Promise.all(Array.from({ length: CLIENTS }, async () => {
    // Each payment has two events.
    while (next < backlog / 2) {
      const body = { amount_minor: 100, currency: "EUR", outcome: "success" };
      const key = `outage-${next++}`;
      const { status } = await callApi(server.base_url, text, SANDBOX_PAYMENTS, { body, key });
      if (status !== 201) breaches.push(`${key} got ${status}`);
    }
  }));
  const due = 2 * next;
  const passed_ms = () => performance.now() - started;
  const wait_ms = (is_real ? OUTAGE_MS : REAL_START_MS) - passed_ms();
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, wait_ms)));
  const [waiting] = await stage.sql<{ pending: number; tried: number }[]>`
    select count(*) filter (where status = 'pending')::int as pending,
      count(*) filter (where cardinality(attempts) > 0)::int as tried
    from pay.webhook_deliveries`;
  const journal = join(stage.folder, "outage.journal");
  const ahead_ms = is_real ? 0 : OUTAGE_MS;
  const receiver = await launch(
    "receiver_process.ts",
    {
      port,
      seed: 0,
      journal,
      fail: 0,
      secrets: { "/": secret },
      ahead_ms,
    } satisfies ReceiverSettings,
  );
  stage.atEnd(async () => {
    receiver.kill();
    await receiver.ended;
  });
  await setDatabaseAhead(stage.sql, ahead_ms);
  await server.setAhead(ahead_ms);
  const back = performance.now();
  const deadline_ms = Math.max(DRAIN_MS.least, DRAIN_MS.per_thousand * backlog / 1_000);
  await until("the backlog is delivered", async () => {
    const rows = await stage.sql`
      select from pay.webhook_deliveries where status = 'pending' limit 1`;
    return rows.length === 0;
    // The comparison below reports missing deliveries.
  }, deadline_ms).catch(() => {});
  const drained_s = (performance.now() - back) / 1_000;
  const all = await readJournal<Arrival>(journal);
  const arrivals = all.filter(({ is_taken }) => is_taken);
  const events = new Set(arrivals.map(({ event_id }) => event_id));
  // The receiver refused deliveries that were signed before the jump of the clocks.
  const ages_ms = arrivals.map(({ age_ms }) => age_ms).sort((a, b) => a - b);
  const [newest_ms, oldest_ms] = [ages_ms[0] ?? 0, ages_ms.at(-1) ?? 0];
  if (events.size !== due) {
    const refused = all.length - arrivals.length;
    breaches.push(`${events.size} of ${due} arrived, ${refused} attempts were refused`);
  }
  if (oldest_ms >= SIGNATURE_AGE_MS) breaches.push(`a signature was ${oldest_ms} ms old`);
  if (newest_ms < -SIGNATURE_AHEAD_MS) {
    breaches.push(`a signature was made ${-newest_ms} ms after it arrived`);
  }
  if (arrivals.some(({ timestamps_apart_s }) => timestamps_apart_s !== 0)) {
    breaches.push("Webhook-Timestamp differs from the time of the signature");
  }
  if (waiting!.pending < due || waiting!.tried === 0) {
    breaches.push(`only ${waiting!.pending} were waiting, ${waiting!.tried} of them tried`);
  }
  const last = new Map<string, number>();
  for (const { subject_id, sequence } of arrivals) {
    if (sequence < (last.get(subject_id) ?? 0)) breaches.push(`${subject_id}: out of order`);
    last.set(subject_id, sequence);
  }
  return [{
    promise: "R8",
    says:
      `${waiting!.pending} deliveries waited ten minutes (${
        is_real ? "of real time" : "by the clock"
      }), ${waiting!.tried} of them with attempts; all arrived ${
        drained_s.toFixed(1)
      } s after the ` +
      `return, signatures at most ${oldest_ms} ms old`,
    breaches,
  }];
}

/** The database decides which deliveries are due, so its clock jumps too (ADR 0008). */
async function setDatabaseAhead(sql: Stage["sql"], ahead_ms: number): Promise<void> {
  await sql.unsafe(`create or replace function pay_internal.server_time() returns timestamptz
    language sql stable parallel safe set search_path = pg_catalog, pg_temp
    as $$ select now() + interval '${ahead_ms} milliseconds' $$`);
}
