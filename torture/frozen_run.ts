/**
 * R12: stops PostgreSQL with SIGSTOP while clients send requests: in turn the postmaster alone, and all
 * processes. Every request must get an answer within 2 s, which is 503 with Retry-After during a stop.
 * The service must work again within 5 s after SIGCONT. At the end each key has made one payment.
 */

import { checkBooks } from "../scripts/operator/check_books.ts";
import { callApi, SANDBOX_PAYMENTS } from "./api_call.ts";
import type { Verdict } from "./evidence.ts";
import { type Stage, untilWell } from "./stage.ts";

const CLIENTS = 16;
const FROZEN_MS = 2_500;
const WELL_MS = 700;
const ANSWERED_WITHIN_MS = 2_000;
const WELL_WITHIN_MS = 5_000;

/** Stops PostgreSQL this many times and judges the answers. */
export async function runFrozen(stage: Stage, freezes: number): Promise<Verdict[]> {
  const server = await stage.startServer();
  const { text } = await stage.makeSandbox("frozen");
  await untilWell(server);
  const findings: string[] = [];
  const answers = { good: 0, refused: 0 };
  const ids = new Set<string>();
  let [slowest_ms, is_over, last_good, give_up_at] = [0, false, 0, Infinity];
  const clients = Array.from({ length: CLIENTS }, async (_, client) => {
    for (let i = 0; !is_over; i++) {
      const key = `frozen-${client}-${i}`;
      const body = { amount_minor: 100, currency: "EUR", outcome: "success" };
      // The client repeats the last request too, so that each key has a payment.
      for (let status = 0; status !== 201 && performance.now() < give_up_at;) {
        const answer = await callApi(server.base_url, text, SANDBOX_PAYMENTS, { body, key });
        status = answer.status;
        slowest_ms = Math.max(slowest_ms, answer.ms);
        if (answer.ms > ANSWERED_WITHIN_MS) {
          findings.push(`${status} after ${Math.round(answer.ms)} ms`);
        }
        if (status === 201) {
          answers.good++;
          ids.add(answer.body.id);
          last_good = performance.now();
          await pause(5);
          continue;
        }
        answers.refused++;
        const is_right = status === 503 && answer.headers.get("Retry-After") === "1";
        if (!is_right) findings.push(`${status} ${JSON.stringify(answer.body)}`);
        // A tenth of Retry-After, to put more load on the service.
        await pause(100);
      }
    }
  });
  const returns: number[] = [];
  for (let i = 0; i < freezes; i++) {
    await pause(WELL_MS);
    const pids = i % 2 === 0 ? await processesOf(stage) : [stage.postgres.pid];
    for (const pid of pids) signal(pid, "SIGSTOP");
    await pause(FROZEN_MS);
    for (const pid of pids.toReversed()) signal(pid, "SIGCONT");
    const thawed = performance.now();
    while (last_good < thawed && performance.now() - thawed < 2 * WELL_WITHIN_MS) await pause(5);
    const well_ms = performance.now() - thawed;
    returns.push(well_ms);
    if (well_ms > WELL_WITHIN_MS) {
      findings.push(`no good answer for ${Math.round(well_ms)} ms after a stop`);
    }
  }
  is_over = true;
  give_up_at = performance.now() + 2 * WELL_WITHIN_MS;
  await Promise.all(clients);
  const [row] = await stage.sql<{ payments: number }[]>`
    select count(*)::int as payments from pay.payments`;
  if (row!.payments !== answers.good || ids.size !== answers.good) {
    findings.push(
      `${row!.payments} payments for ${answers.good} keys, answered with ${ids.size} ids`,
    );
  }
  for (const { findings: found, oracle, examples } of await checkBooks(stage.sql)) {
    if (found > 0) findings.push(`${oracle}: ${examples[0]}`);
  }
  if (answers.refused === 0) findings.push("no request was refused during a stop");
  return [{
    promise: "R12",
    says: `${freezes} stops of ${FROZEN_MS} ms, ${answers.good} payments, ` +
      `${answers.refused} times 503, slowest answer ${Math.round(slowest_ms)} ms, ` +
      `first good answer ${Math.round(Math.max(...returns))} ms after a stop at most`,
    findings,
  }];
}

/** The postmaster first, then its child processes. */
async function processesOf({ sql, postgres }: Stage): Promise<number[]> {
  const rows = await sql<{ pid: number }[]>`select pid from pg_stat_activity`;
  return [postgres.pid, ...rows.map(({ pid }) => pid)];
}

function signal(pid: number, name: Deno.Signal): void {
  try {
    Deno.kill(pid, name);
  } catch {
    // The process has ended.
  }
}

function pause(delay_ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, delay_ms));
}
