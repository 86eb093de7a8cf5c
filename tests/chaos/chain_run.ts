/**
 * R14 on a chain: payments by stablecoin while the servers, PostgreSQL and the node are killed and
 * the chain is reorganised. Payers send the amount in one or more transfers, or too little, too
 * much or late, and repeat transfers that the chain has lost. The chain is the judge.
 */

import { HDKey } from "@scure/bip32";
import { idGenerator } from "../../shared/core/ids.ts";
import { no_anvil } from "../support/chain/anvil.ts";
import { until } from "../support/common/until.ts";
import { auditChain } from "./chain_audit.ts";
import { ChainClients } from "./chain_clients.ts";
import { ChainNode, CONFIRMATIONS } from "./chain_node.ts";
import type { Verdict } from "./evidence.ts";
import { killPostgres } from "./killer.ts";
import { type Random, randomOf } from "./random.ts";
import { makeLiveEnvironment } from "./sandbox.ts";
import { type ApiServer, type Stage, untilWell } from "./stage.ts";

/** The options of the run. */
interface ChainOptions {
  seed: number;
  payments: number;
  /** Of each of the three kinds of processes. */
  kills: number;
}

/** Payments that begin with each block. */
const NEW_PAYMENTS = 3;
const EXPIRES_AFTER_S = 600;
const SETTLE_MS = 60_000;
/** Interval of the polls, in place of 15 s. */
const POLL_EVERY_MS = 200;

/** Runs the run and judges it. */
export async function runChain(stage: Stage, options: ChainOptions): Promise<Verdict[]> {
  if (no_anvil) return [{ promise: "R14", says: "left out: anvil is not installed", breaches: [] }];
  const run = await ChainRun.begin(stage, options);
  return await run.play();
}

class ChainRun {
  readonly #stage: Stage;
  readonly #options: ChainOptions;
  readonly #node: ChainNode;
  readonly #servers: readonly ApiServer[];
  readonly #environment_id: string;
  readonly #random: Random;
  readonly #clients: ChainClients;
  readonly #kills = { servers: 0, PostgreSQL: 0, node: 0 };
  #is_over = false;
  /** Whether somebody waits for a poll, and makes it due. */
  #is_waiting = false;

  private constructor(
    stage: Stage,
    options: ChainOptions,
    node: ChainNode,
    servers: readonly ApiServer[],
    key: { environment_id: string; text: string },
  ) {
    this.#stage = stage;
    this.#options = options;
    this.#node = node;
    this.#servers = servers;
    this.#environment_id = key.environment_id;
    this.#random = randomOf(options.seed, "chain");
    this.#clients = new ChainClients(
      { sql: stage.sql, servers, key: key.text, seed: options.seed },
      this.#random,
    );
  }

  static async begin(stage: Stage, options: ChainOptions): Promise<ChainRun> {
    const node = await ChainNode.start();
    stage.atEnd(() => node.close());
    const key = await makeLiveEnvironment(stage.sql, "chaos");
    const servers = await Promise.all([stage.startServer(), stage.startServer()]);
    await Promise.all(servers.map(untilWell));
    const seed = new Uint8Array(32).fill(9);
    const settings = {
      network: "ethereum",
      chain_id: "31337",
      rpc_urls: `${node.url},http://localhost:${node.port}`,
      xpub: HDKey.fromMasterSeed(seed).derive("m/44'/60'/0'").publicExtendedKey,
      "contract.USDC": node.token,
      confirmations: String(CONFIRMATIONS),
      expires_after_seconds: String(EXPIRES_AFTER_S),
      signer_address: node.signer,
      signer_url: node.url,
    };
    await stage.sql`select pay.add_provider_account(${idGenerator(Date.now())("pac_")},
      ${key.environment_id}, 'evm', ${["stablecoin"]}, ${JSON.stringify(settings)}, null, '{}')`;
    return new ChainRun(stage, options, node, servers, key);
  }

  async play(): Promise<Verdict[]> {
    const polls = this.#makePollsDue();
    const started = performance.now();
    const { payments, kills } = this.#options;
    const rounds = Math.ceil(payments / NEW_PAYMENTS);
    for (let round = 0; round < rounds; round++) {
      const created = this.#clients.pay(NEW_PAYMENTS);
      const due = Object.entries(this.#kills).filter(([, count]) =>
        count < kills * (round + 1) / rounds
      );
      if (due.length > 0) await this.#kill(this.#random.pick(due)[0]);
      await created;
      await this.#clients.send(this.#node, false);
      const paid = this.#clients.payOut();
      await this.#node.mine();
      await paid;
      if (this.#node.isUndoable && this.#random.chance(0.3)) {
        await this.#node.reorganise(this.#random.integer(1, 3));
      }
    }
    const breaches = await this.#comeToRest().then(() => [], (error) => this.#explain(error));
    this.#is_over = true;
    await polls;
    const seconds = ((performance.now() - started) / 1_000).toFixed(1);
    const audit = await auditChain({
      sql: this.#stage.sql,
      environment_id: this.#environment_id,
      payments: this.#clients.payers,
      payouts: this.#clients.payouts,
      signer: this.#node.signer,
      transfers: await this.#node.transfers(),
    });
    const missing = Object.entries(this.#kills).filter(([, count]) => count === 0)
      .map(([name]) => `no kill of ${name} happened`);
    const counts = Object.entries(this.#kills).map(([name, count]) => `${name} ${count}`);
    return [{
      promise: "R14",
      says: `chain: ${audit.says} in ${seconds} s; killed ${counts.join(", ")}; ` +
        `${this.#node.reorganisations} reorganisations`,
      breaches: [...breaches, ...audit.breaches, ...this.#clients.faults, ...missing],
    }];
  }

  /** Sends late and lost transfers, until the chain has them and every payment has ended. */
  async #comeToRest(): Promise<void> {
    await Promise.all(this.#servers.map(untilWell));
    await this.#clients.send(this.#node, false);
    await this.#node.mine();
    await this.#settle("every transfer is seen");
    await this.#node.passTime(2 * EXPIRES_AFTER_S);
    await this.#settle("the time of every payment is over", false);
    await this.#clients.send(this.#node, true);
    await this.#node.mine(2 * CONFIRMATIONS);
    await this.#settle("every transfer is final", false);
    await this.#until("every payout has its result", async () => {
      await this.#node.mine();
      return await this.#stage.sql`select from pay.provider_operations where state = 'pending'`;
    });
  }

  /** Waits until a query returns no rows. A query on a connection to a killed PostgreSQL fails. */
  async #until(what: string, ask: () => Promise<readonly unknown[]>): Promise<void> {
    await until(what, async () => (await ask().catch(() => [null])).length === 0, SETTLE_MS);
  }

  /** Waits until each provider event is applied, after three polls. */
  async #settle(what: string, is_open_allowed = true): Promise<void> {
    const { sql } = this.#stage;
    // A poll that is under way reads an old head, and a payment with new transfers ends only at the
    // poll after them.
    for (const poll of ["first", "second", "third"]) {
      this.#is_waiting = true;
      await this.#until(
        `${what}: the ${poll} poll is due`,
        () => sql`update pay.provider_cursors set polled_at = null`,
      );
      await this.#until(
        `${what}: the ${poll} poll`,
        () =>
          sql`select from pay.provider_cursors where polled_at is null or stalled_since is not null`,
      );
      this.#is_waiting = false;
      await this.#until(`${what}: every provider event is applied`, () =>
        sql`
          select from pay.provider_events where outcome is null
          union all select from pay.provider_operations where state = 'pending' and op = 'authorize'
          limit 1`);
    }
    if (is_open_allowed) return;
    await this.#until(`${what}: no payment is open`, () =>
      sql`
        select from pay.payments
        where status = 'pending' or status = 'processing'
          and (body::json ->> 'amount_received')::bigint < amount_minor limit 1`);
  }

  /** Describes a run that does not come to rest. */
  async #explain(error: unknown): Promise<string[]> {
    const rows = await this.#stage.sql<{ row: unknown }[]>`
      select to_jsonb(u) as row from pay.provider_cursors u
      union all (select to_jsonb(f) - 'body' from pay.provider_events f where f.outcome is null limit 3)`;
    const faults = this.#stage.server_faults.slice(-3).map(({ fault }) => fault.slice(0, 500));
    return [`${error}: ${JSON.stringify(rows.map(({ row }) => row))}`, ...faults];
  }

  async #kill(victim: string): Promise<void> {
    if (victim === "node") {
      if (!this.#node.isUndoable) return;
      await this.#node.kill(this.#random.next());
      this.#kills.node++;
    } else if (victim === "servers") {
      await Promise.all(this.#servers.map((server) => server.restart()));
      this.#kills.servers++;
    } else {
      await killPostgres(this.#stage, this.#stage.postgres.pid);
      this.#kills.PostgreSQL++;
    }
  }

  /** Makes the next attempts of payouts due, and makes their transactions older. */
  async #passMinutes(): Promise<void> {
    await this.#stage.sql`
      update pay.provider_operations set
        leased_until = least(leased_until, now() + interval '3 seconds'),
        next_attempt_at = case when leased_until is null then now()
          else least(next_attempt_at, now() + interval '3 seconds') end
      where state = 'pending' and op in ('refund', 'transfer')`;
    await this.#stage.sql`
      update pay.chain_payouts set sent_at = sent_at - interval '20 seconds'
      where sent_at > now() - interval '1 hour'`;
  }

  async #makePollsDue(): Promise<void> {
    while (!this.#is_over) {
      if (!this.#is_waiting) {
        await this.#stage.sql`update pay.provider_cursors set polled_at = null`.catch(() => {});
      }
      await this.#stage.sql`
        update pay.provider_cursors set leased_until = now() + interval '2 seconds'
        where leased_until > now() + interval '2 seconds'`.catch(() => {});
      await this.#passMinutes().catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, POLL_EVERY_MS));
    }
  }
}
