/**
 * R16: an account moves between two cells while its keys are used, and the mover and both databases
 * are killed at each step. It has a sandbox with webhooks, disposable sandboxes with clocks, live
 * cards at the double of Stripe and stablecoins on a chain. HAProxy stands in front of the cells.
 */

import { no_anvil } from "../../../support/chain/anvil.ts";
import { pause } from "../../../support/common/until.ts";
import { addAccount } from "../../../support/database/provider_flow.ts";
import { type CellsProxy, startHaproxy } from "../../../support/proxy/cells_proxy.ts";
import { findHaproxy } from "../../../support/proxy/haproxy.ts";
import {
  no_stripe_double,
  startStripeDouble,
  type StripeDouble,
} from "../../../support/stripe/double.ts";
import { brokenInvariants, faultsOfServers, type Verdict } from "../../harness/audit.ts";
import { RepeatingClient } from "../../harness/client.ts";
import { randomOf } from "../../../support/core/random.ts";
import {
  type KeyedEnvironment,
  setStage,
  type Stage,
  STRIPE_SECRETS,
  untilAllWell,
} from "../../harness/stage.ts";
import { explained, FastTime, untilNone } from "../../harness/time.ts";
import { auditCards, readCardRows } from "../cards/audit.ts";
import { CardClients } from "../cards/clients.ts";
import { settle } from "../cards/run.ts";
import { auditChain } from "../chains/audit.ts";
import { ChainClients } from "../chains/clients.ts";
import { ChainNode, CONFIRMATIONS, EXPIRES_AFTER_S } from "../chains/node.ts";
import { MoveClients } from "./clients.ts";
import { ACCOUNT, type Cell, type Delay, type DueKill, Mover, STEPS, VICTIMS } from "./mover.ts";

interface MovesOptions {
  seed: number;
  /** Payments of the sandbox before the first move. */
  payments: number;
  /** Kills at each step, of each process in turn; 0: one kill of each process, in one move. */
  kills: number;
  /** Between two payments of a client in the sandbox. */
  pause_ms: number;
}

const LABEL = "sk";
const LIVE_CLIENTS = 6;
const SETTLE_MS = 600_000;
const MOVE_MS = 900_000;
/** The longest time from the start of an abort to its kill. */
const ABORT_MS = 1_500;
const MASTER_SECRET = "the same secret in both cells, 32 bytes";
const POLLS = { poll_every_ms: 1_000 };

export async function runMoves(stage: Stage, options: MovesOptions): Promise<Verdict[]> {
  if (await findHaproxy() === null || no_stripe_double || no_anvil) {
    const says = "left out: haproxy, localstripe or anvil is not installed";
    return [{ promise: "R16", says, breaches: [] }];
  }
  const second = await setStage();
  stage.atEnd(() => second.end());
  const double = await startStripeDouble();
  stage.atEnd(() => double.close());
  const node = await ChainNode.start();
  stage.atEnd(() => node.close());
  const open = async (name: Cell["name"], stage: Stage): Promise<Cell> => {
    const settings = { provider_secrets: STRIPE_SECRETS, master_secret: MASTER_SECRET };
    return { name, stage, servers: await stage.startServers(settings) };
  };
  const [a, b] = [await open("a", stage), await open("b", second)];
  const address = ({ servers }: Cell) => `127.0.0.1:${servers[0]!.port}`;
  const proxy = await startHaproxy({ a: address(a), b: address(b) }, `${LABEL} a\n`);
  stage.atEnd(() => proxy.close());
  return await new MovesRun(options, a, b, double, node, proxy).play();
}

class MovesRun {
  readonly #breaches: string[] = [];
  #moves = 0;
  readonly #mover: Mover;
  #aborts = 0;

  constructor(
    readonly options: MovesOptions,
    /** The cell that has the account, and the other one. */
    public home: Cell,
    public away: Cell,
    readonly double: StripeDouble,
    readonly node: ChainNode,
    readonly proxy: CellsProxy,
  ) {
    this.#mover = new Mover(proxy);
  }

  async play(): Promise<Verdict[]> {
    const { home: { stage }, away, options: { seed, payments, pause_ms }, node } = this;
    const live = await stage.makeLiveEnvironment(ACCOUNT);
    const { sql } = stage;
    const settings = { base_url: this.double.base_url };
    const stripe_id = await addAccount(sql, live.environment_id, { settings });
    await addAccount(sql, live.environment_id, { connector: "evm", settings: node.settings });
    await this.#notifyHome(stripe_id);
    const { key } = await stage.makeSandbox("moving", ACCOUNT);
    const proxy = { base_url: `${this.proxy.origin}/functions/v1` };
    const client = new RepeatingClient(stage, [proxy], { repeats_429: true });
    const buyers = new MoveClients(stage, client, key, pause_ms);
    await buyers.fill(payments);

    let is_over = false;
    const next = () => ({ is_over, pause_ms: 200 });
    const cards = new CardClients(seed, LIVE_CLIENTS, client, live.key, next);
    const chain = new ChainClients(() => this.home.stage.sql, client, live.key, seed);
    const times = [stage, away.stage].map((stage) => new FastTime(stage, POLLS));
    const working = Promise.all([
      cards.tell(),
      buyers.buy(),
      (async () => {
        while (!is_over) {
          await chain.pay(2);
          await chain.send(node, false);
          await node.mine();
          await chain.payOut();
        }
      })(),
    ]);
    // A client that fails is reported after the moves.
    working.catch(() => {});
    await this.#moveUntilKilled(stripe_id);
    buyers.stop();
    is_over = true;
    await working;
    await Promise.all(times.map((time) => time.end()));
    await this.#rest(live.environment_id, chain);
    return await this.#judge(live, client, buyers, cards, chain);
  }

  async #notifyHome(account_id: string): Promise<void> {
    const { base_url } = this.home.servers[0]!;
    await this.double.notify({
      url: `${base_url}/api-v1-payments/providers/${account_id}/notifications`,
      secrets: [STRIPE_SECRETS.PROVIDER_STRIPE_NOTIFICATIONS],
    });
  }

  /** Moves the account to and fro until each process was killed at each step. */
  async #moveUntilKilled(stripe_id: string): Promise<void> {
    const { kills, seed } = this.options;
    const random = randomOf(seed, "moves");
    let due: DueKill[] = kills > 0
      ? STEPS.flatMap((step) =>
        Array.from({ length: kills }, (_, i) => ({ step, victim: VICTIMS[i % VICTIMS.length]! }))
      )
      // At different steps, so that one move is enough.
      : VICTIMS.map((victim, i) => ({ step: STEPS[random.integer(2 * i, 2 * i + 1)]!, victim }));
    for (let moves = 0; due.length > 0 || moves === 0; moves++) {
      // Each process once at each step, in turns: the next mover begins with the step that was
      // killed.
      const now = STEPS.flatMap((step, i) =>
        VICTIMS.flatMap((_, j) => {
          const victim = VICTIMS[(moves + i + j) % VICTIMS.length];
          return due.find((each) => each.step === step && each.victim === victim) ?? [];
        })
      );
      const done = await this.#move(now, moves % 2 === 0, (most) => random.integer(0, most));
      due = due.filter((each) => !done.includes(each));
      [this.home, this.away] = [this.away, this.home];
      await this.#notifyHome(stripe_id);
      await this.#assertOneHome();
      console.log(`       move ${moves + 1}: ${done.length} kills, ${due.length} left`);
    }
  }

  async #move(planned: DueKill[], is_aborted: boolean, delay: Delay): Promise<DueKill[]> {
    const began = performance.now();
    const left = [...planned];
    for (let has_aborted = !is_aborted;; has_aborted = true) {
      const { code, output } = await this.#mover.move(this.home, this.away, left, delay);
      // A mover can be killed after its last statement.
      if (code === 0 || output.includes("is at the target already\n")) break;
      if (!has_aborted) await this.#abort(delay);
      if (performance.now() - began > MOVE_MS) throw new Error(`the move does not end: ${output}`);
      await pause(300);
    }
    this.#moves++;
    return planned.filter((each) => !left.includes(each));
  }

  /** Gives the move up, by a command that is killed and repeated. */
  async #abort(delay: Delay): Promise<void> {
    const killed = this.#mover.start("abort", this.home, this.away);
    await pause(delay(ABORT_MS));
    killed.kill("SIGKILL");
    await killed.ended;
    const { code, output } = await this.#mover.start("abort", this.home, this.away).ended;
    if (code === 0 || output.includes("No move of")) {
      this.#aborts++;
      await this.#assertOneHome();
    } else if (!/already|is at the target/.test(output)) this.#breaches.push(`abort: ${output}`);
  }

  /** Asserts that all environments of the account are open in one cell and absent in the other. */
  async #assertOneHome(): Promise<void> {
    const stateOf = async ({ stage: { sql } }: Cell) => {
      let states = "";
      await untilNone("the states are read", async () => {
        const rows = await sql<{ state: string }[]>`
          select distinct coalesce(moving, 'open') as state from pay.environments
          where account = ${ACCOUNT}`;
        states = rows.map(({ state }) => state).join() || "nothing";
        return [];
      });
      return states;
    };
    const found = `${await stateOf(this.home)} at home, ${await stateOf(this.away)} away`;
    if (found !== "open at home, nothing away") this.#breaches.push(`after a move: ${found}`);
  }

  /** Waits until everything that was begun has a result. */
  async #rest(environment_id: string, chain: ChainClients): Promise<void> {
    const { stage, servers } = this.home;
    await untilAllWell(servers);
    const time = new FastTime(stage, POLLS);
    await chain.send(this.node, true);
    await this.node.mine(2 * CONFIRMATIONS);
    await this.node.passTime(2 * EXPIRES_AFTER_S);
    let is_over = false;
    const mining = (async () => {
      for (; !is_over; await pause(500)) await this.node.mine();
    })();
    const unsettled = await explained(
      stage.sql,
      Promise.all([
        settle(stage, environment_id, time),
        untilNone(
          "every delivery has ended",
          () => stage.sql`select from pay.webhook_deliveries where status = 'pending' limit 1`,
          SETTLE_MS,
        ),
      ]),
    );
    this.#breaches.push(...unsettled);
    is_over = true;
    await Promise.all([mining, time.end()]);
  }

  async #judge(
    { environment_id }: KeyedEnvironment,
    client: RepeatingClient,
    buyers: MoveClients,
    cards: CardClients,
    chain: ChainClients,
  ): Promise<Verdict[]> {
    const { home: { stage: { sql } }, away, node } = this;
    const { operations } = cards;
    const { broken: _, ...ours } = await readCardRows(sql, environment_id);
    const books = await this.double.books(STRIPE_SECRETS.PROVIDER_STRIPE);
    // Checks the invariants, too.
    const on_chain = await auditChain(sql, environment_id, chain, node);
    const bought = await buyers.audit(sql);
    const { kills } = this.#mover;
    return [{
      promise: "R16",
      says: `${this.#moves} moves, ${this.#aborts} aborted, ${kills.total} kills; ` +
        `${bought.says}; ${operations.length} live operations; ${on_chain.says}`,
      breaches: [
        ...this.#breaches,
        ...bought.breaches,
        ...auditCards({ operations, ...ours, books }),
        ...on_chain.breaches,
        ...client.breaches,
        ...[this.home, away].flatMap(({ stage }) => faultsOfServers(stage)),
        ...(await brokenInvariants(away.stage.sql)).map((text) => `in the other cell: ${text}`),
        // Without a number of kills each process is killed at one step.
        ...(this.options.kills === 0 ? [] : kills.judge("R16").breaches),
      ],
    }];
  }
}
