/**
 * R15: the features of sandboxes while servers and PostgreSQL are killed. A declared fault happens
 * exactly as often as declared, an inbox loses nothing, an advance of a clock happens once and in
 * order, a dispute ends once, and a disposable sandbox has its own data and leaves nothing.
 */

import { pause } from "../../../support/common/until.ts";
import { brokenInvariants, faultsOfServers, sumOf, type Verdict } from "../../harness/audit.ts";
import { RepeatingClient } from "../../harness/client.ts";
import { killBackend, killPostgres } from "../../harness/killer.ts";
import { type ApiServer, type Stage, untilAllWell } from "../../harness/stage.ts";
import { playClock } from "./clock_part.ts";
import { playFaults } from "./faults_part.ts";
import { type Part, playDisposables, playDisputes, playInbox } from "./parts.ts";

const CALM_MS = 1_000;
const CLIENT = { timeout_ms: 5_000, give_up_ms: 60_000, repeats_429: true };
const PARTS = [playFaults, playInbox, playClock, playDisputes, playDisposables];

export async function runSandboxes(stage: Stage, kills: number): Promise<Verdict[]> {
  const servers = await stage.startServers();
  let is_over = false;
  const parts: Part[] = [];
  // Before the first kill, because the run does not repeat its own statements.
  for (const { name } of PARTS) {
    const client = new RepeatingClient(stage, servers, CLIENT);
    const sandbox = await stage.makeSandbox(name);
    parts.push({
      ...{ stage, client, sandbox },
      send: (path, request) => client.send(sandbox.key, path, request),
      isOver: () => is_over,
    });
  }
  const playing = Promise.all(PARTS.map((play, i) => play(parts[i]!)));
  // A part that fails during the kills is reported after them.
  playing.catch(() => {});
  for (let i = 0; i < kills; i++) {
    await pause(CALM_MS);
    await killNext(stage, servers, i);
    await untilAllWell(servers);
    await endLeases(stage);
  }
  await pause(CALM_MS);
  is_over = true;
  const reports = await playing;
  const repeated = sumOf(parts, ({ client }) => client.repeated);
  return [{
    promise: "R15",
    says: `${kills} kills, ${repeated} requests repeated; ` +
      reports.map(({ says }) => says).join("; "),
    breaches: [
      ...reports.flatMap(({ breaches }) => breaches),
      ...parts.flatMap(({ client }) => client.breaches),
      ...await brokenInvariants(stage.sql),
      ...faultsOfServers(stage),
      ...(repeated === 0 ? ["no request met a kill"] : []),
    ],
  }];
}

async function killNext(stage: Stage, servers: ApiServer[], i: number): Promise<void> {
  if (i % 2 === 0) await servers[(i / 2) % servers.length]!.restart();
  else if (i % 4 === 1) await killPostgres(stage);
  else await killBackend(stage, Math.random());
}

/** Ends the leases of dead processes soon, because an advance of a clock waits for them. */
async function endLeases({ sql }: Stage): Promise<void> {
  await sql`
    update pay.provider_operations
    set leased_until = least(leased_until, now() + interval '2 seconds'),
      next_attempt_at = least(next_attempt_at, now() + interval '2 seconds')
    where state = 'pending' and leased_until is not null`;
}
