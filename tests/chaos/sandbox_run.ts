/**
 * R15: the features of sandboxes while servers and PostgreSQL are killed. A declared fault happens
 * exactly as often as declared, an inbox loses nothing, an advance of a clock happens once and in
 * order, a dispute ends once, and a disposable sandbox has its own data and leaves nothing.
 */

import { checkBooks } from "../../apps/operator/check_books.ts";
import type { Verdict } from "./evidence.ts";
import { killPostgres } from "./killer.ts";
import { playClock } from "./sandbox_clock.ts";
import { SandboxClient, type SandboxPlay } from "./sandbox_client.ts";
import { playDisposables } from "./sandbox_disposables.ts";
import { playDisputes } from "./sandbox_disputes.ts";
import { playFaults } from "./sandbox_faults.ts";
import { playInbox } from "./sandbox_inbox.ts";
import { type ApiServer, type Stage, untilWell } from "./stage.ts";

/** The time between a recovery and the next kill. */
const CALM_MS = 1_000;
const PARTS = [playFaults, playInbox, playClock, playDisputes, playDisposables];

/** Kills this many processes and judges each part. */
export async function runSandboxes(stage: Stage, kills: number): Promise<Verdict[]> {
  const servers = await Promise.all([stage.startServer(), stage.startServer()]);
  await Promise.all(servers.map(untilWell));
  const http = Deno.createHttpClient({ poolMaxIdlePerHost: 64 });
  stage.atEnd(() => http.close());
  let is_over = false;
  const plays: SandboxPlay[] = [];
  // Before the first kill, because the run does not repeat its own statements.
  for (const { name } of PARTS) {
    plays.push({
      stage,
      client: new SandboxClient(servers, http),
      sandbox: await stage.makeSandbox(name),
      isOver: () => is_over,
    });
  }
  const playing = Promise.all(PARTS.map((part, i) => part(plays[i]!)));
  // A part that fails during the kills is reported after them.
  playing.catch(() => {});
  for (let i = 0; i < kills; i++) {
    await pause(CALM_MS);
    await killNext(stage, servers, i);
    await Promise.all(servers.map(untilWell));
    await endLeases(stage);
  }
  await pause(CALM_MS);
  is_over = true;
  const reports = await playing;
  const breaches = reports.flatMap((
    report,
    i,
  ) => [...report.breaches, ...plays[i]!.client.breaches]);
  const repeated = plays.reduce((sum, { client }) => sum + client.broken, 0);
  for (const { breaches: found, invariant, examples } of await checkBooks(stage.sql)) {
    if (found > 0) breaches.push(`${invariant}: ${examples[0]}`);
  }
  for (const { route, fault } of stage.server_faults) {
    breaches.push(`fault of a server: ${route} ${fault}`);
  }
  if (repeated === 0) breaches.push("no request met a kill");
  return [{
    promise: "R15",
    says: `${kills} kills, ${repeated} requests repeated; ` +
      reports.map(({ says }) => says).join("; "),
    breaches,
  }];
}

/** The servers, the postmaster and one backend in turn. */
async function killNext(stage: Stage, servers: ApiServer[], i: number): Promise<void> {
  if (i % 2 === 0) return await servers[(i / 2) % servers.length]!.restart();
  let { pid } = stage.postgres;
  if (i % 4 === 3) {
    const [backend] = await stage.sql<{ pid: number }[]>`
      select pid from pg_stat_activity where application_name = 'payments' order by random()`;
    pid = backend?.pid ?? pid;
  }
  await killPostgres(stage, pid);
}

/** Ends the leases of dead processes soon, because an advance of a clock waits for them. */
async function endLeases({ sql }: Stage): Promise<void> {
  await sql`
    update pay.provider_operations
    set leased_until = least(leased_until, now() + interval '2 seconds'),
      next_attempt_at = least(next_attempt_at, now() + interval '2 seconds')
    where state = 'pending' and leased_until is not null`;
}

function pause(delay_ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, delay_ms));
}
