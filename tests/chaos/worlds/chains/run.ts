/**
 * R14 on a chain: payments by stablecoin while the servers, PostgreSQL and the node are killed and
 * the chain is reorganised. Payers send the amount in one or more transfers, or too little, too
 * much or late, and repeat transfers that the chain has lost. The chain is the judge.
 */

import { no_anvil } from "../../../support/chain/anvil.ts";
import { type Random, randomOf } from "../../../support/core/random.ts";
import { addAccount } from "../../../support/database/provider_flow.ts";
import { faultsOfServers, Tally, type Verdict } from "../../harness/audit.ts";
import { RepeatingClient } from "../../harness/client.ts";
import { killPostgres } from "../../harness/killer.ts";
import { type ApiServer, type Stage, untilAllWell } from "../../harness/stage.ts";
import { explained, FastTime, untilNone } from "../../harness/time.ts";
import { auditChain } from "./audit.ts";
import { ChainClients } from "./clients.ts";
import { ChainNode, CONFIRMATIONS, EXPIRES_AFTER_S } from "./node.ts";

interface ChainOptions {
  seed: number;
  payments: number;
  /** Of each of the three kinds of processes. */
  kills: number;
}

interface ChainRun {
  stage: Stage;
  servers: readonly ApiServer[];
  node: ChainNode;
  clients: ChainClients;
}

const VICTIMS = ["servers", "PostgreSQL", "node"];
const NEW_PAYMENTS = 3;
/** Intervals of the passing of time and of the polls, in place of 15 s. */
const EVERY_MS = 200;

export async function runChain(stage: Stage, options: ChainOptions): Promise<Verdict[]> {
  if (no_anvil) return [{ promise: "R14", says: "left out: anvil is not installed", breaches: [] }];
  const node = await ChainNode.start();
  stage.atEnd(() => node.close());
  const { environment_id, key } = await stage.makeLiveEnvironment();
  const servers = await stage.startServers();
  await addAccount(stage.sql, environment_id, { connector: "evm", settings: node.settings });
  const client = new RepeatingClient(stage, servers, { repeats_429: true });
  const clients = new ChainClients(() => stage.sql, client, key, options.seed);
  const run = { stage, servers, node, clients };
  const time = new FastTime(stage, { every_ms: EVERY_MS, poll_every_ms: EVERY_MS, is_chain: true });
  const started = performance.now();
  const kills = await payAndKill(run, options);
  const unsettled = await explained(stage.sql, comeToRest(run, time));
  await time.end();
  const seconds = ((performance.now() - started) / 1_000).toFixed(1);
  const audit = await auditChain(stage.sql, environment_id, clients, node);
  const killed = kills.judge("R14");
  return [{
    promise: "R14",
    says: `chain: ${audit.says} in ${seconds} s; killed ${killed.says}; ` +
      `${node.reorganisations} reorganisations`,
    breaches: [
      ...unsettled,
      ...(unsettled.length > 0 ? faultsOfServers(stage).slice(-3) : []),
      ...audit.breaches,
      ...client.breaches,
      ...killed.breaches,
      ...(clients.payouts.length === 0 ? ["no payout was made"] : []),
    ],
  }];
}

/** Begins payments with each block, and kills meanwhile. */
async function payAndKill(run: ChainRun, { seed, payments, kills }: ChainOptions): Promise<Tally> {
  const { node, clients } = run;
  const random = randomOf(seed, "chain kills");
  const killed = new Tally(VICTIMS);
  const rounds = Math.ceil(payments / NEW_PAYMENTS);
  for (let round = 1; round <= rounds; round++) {
    const created = clients.pay(NEW_PAYMENTS);
    const due = VICTIMS.filter((victim) => killed.of(victim) < kills * round / rounds);
    if (due.length > 0) {
      const victim = random.pick(due);
      if (await kill(victim, run, random)) killed.add(victim);
    }
    await created;
    await clients.send(node, false);
    const paid = clients.payOut();
    await node.mine();
    await paid;
    if (node.isUndoable && random.chance(0.3)) await node.reorganise(random.integer(1, 3));
  }
  return killed;
}

/** Kills a process. Returns false if a kill of the node would undo a final transfer now. */
async function kill(victim: string, { stage, servers, node }: ChainRun, random: Random) {
  if (victim === "servers") await Promise.all(servers.map((server) => server.restart()));
  else if (victim === "PostgreSQL") await killPostgres(stage);
  else if (node.isUndoable) await node.kill(random.next());
  else return false;
  return true;
}

/** Sends late and lost transfers, until the chain has them and every payment has ended. */
async function comeToRest(run: ChainRun, time: FastTime): Promise<void> {
  const { stage: { sql }, servers, node, clients } = run;
  // A payment with new transfers ends only at the poll after them.
  const settle = (what: string) =>
    time.untilPolled(3, () =>
      untilNone(`${what}: every provider event is applied`, () =>
        sql`
          select from pay.provider_events where outcome is null
          union all select from pay.provider_operations where state = 'pending' and op = 'authorize'
          limit 1`));
  const settleAll = async (what: string) => {
    await settle(what);
    await untilNone(`${what}: no payment is open`, () =>
      sql`
        select from pay.payments
        where status = 'pending' or status = 'processing'
          and (body::json ->> 'amount_received')::bigint < amount_minor limit 1`);
  };
  await untilAllWell(servers);
  await clients.send(node, false);
  await node.mine();
  await settle("every transfer is seen");
  await node.passTime(2 * EXPIRES_AFTER_S);
  await settleAll("the time of every payment is over");
  await clients.send(node, true);
  await node.mine(2 * CONFIRMATIONS);
  await settleAll("every transfer is final");
  // A short run is over before its first payment is final.
  await clients.payOut();
  await untilNone("every payout has its result", async () => {
    await node.mine();
    return await sql`select from pay.provider_operations where state = 'pending'`;
  });
}
