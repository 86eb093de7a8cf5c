/**
 * R16: an account moves between two cells while its keys are used, and the mover and both databases
 * are killed at each step. It has a sandbox with webhooks, disposable sandboxes with clocks, live
 * cards at the double of Stripe and stablecoins on a chain. HAProxy stands in front of the cells.
 */

import { fileURLToPath } from "node:url";
import { HDKey } from "@scure/bip32";
import { idGenerator } from "../../shared/core/ids.ts";
import { checkBooks } from "../../apps/operator/check_books.ts";
import { no_anvil } from "../support/chain/anvil.ts";
import { type CellsProxy, startHaproxy } from "../support/proxy/cells_proxy.ts";
import { until } from "../support/common/until.ts";
import { findHaproxy } from "../support/proxy/haproxy.ts";
import { no_stripe_double, startStripeDouble } from "../support/stripe/double.ts";
import { auditChain } from "./chain_audit.ts";
import { ChainClients } from "./chain_clients.ts";
import { ChainNode, CONFIRMATIONS } from "./chain_node.ts";
import type { Verdict } from "./evidence.ts";
import { killPostgres } from "./killer.ts";
import { auditLive, explainPayment, readOurBooks } from "./live_audit.ts";
import { LiveClients } from "./live_clients.ts";
import { passTime, settle } from "./live_time.ts";
import { MoveClients } from "./moves_clients.ts";
import { randomOf } from "./random.ts";
import { makeLiveEnvironment } from "./sandbox.ts";
import { type ApiServer, setStage, type Stage, untilWell } from "./stage.ts";

/** The options of the run. */
interface MovesOptions {
  seed: number;
  /** Payments of the sandbox before the first move. */
  payments: number;
  /** Kills at each step, of each process in turn; 0: one kill of each process, in one move. */
  kills: number;
  /** Between two payments of a client in the sandbox. */
  pause_ms: number;
}

/** The steps of a move, as the mover reports them. */
const STEPS = ["copy", "drain", "fence", "seal", "compare", "switch", "wake", "delete"] as const;
const VICTIMS = ["mover", "source", "target"] as const;
const ACCOUNT = "chaos";
const LABEL = "sk";
const SECRETS = {
  PROVIDER_STRIPE: "sk_live_chaos",
  PROVIDER_STRIPE_NOTIFICATIONS: "whsec_chaos",
};
const CELLS = fileURLToPath(new URL("../../apps/operator/cells.ts", import.meta.url));
const LIVE_CLIENTS = 6;
const SETTLE_MS = 600_000;
/** The longest time from the line of a step to a kill: longer where the step takes longer. */
const DELAYS_MS: Partial<Record<typeof STEPS[number], number>> = { copy: 3_000, delete: 300 };
const DELAY_MS = 60;
/** The longest time from the start of an abort to its kill. */
const ABORT_MS = 1_500;

/** Runs the run and judges it. */
export async function runMoves(stage: Stage, options: MovesOptions): Promise<Verdict[]> {
  if (await findHaproxy() === null || no_stripe_double || no_anvil) {
    const says = "left out: haproxy, localstripe or anvil is not installed";
    return [{ promise: "R16", says, breaches: [] }];
  }
  const run = new MovesRun(stage, await openSecond(stage), options);
  return await run.play();
}

async function openSecond(stage: Stage): Promise<Stage> {
  const second = await setStage();
  stage.atEnd(() => second.end());
  return second;
}

interface Cell {
  name: "a" | "b";
  stage: Stage;
  servers: ApiServer[];
}

/** Returns a random time up to the longest one. */
type Delay = (most_ms: number) => number;

/** A kill that has not happened yet. */
interface Due {
  step: typeof STEPS[number];
  victim: typeof VICTIMS[number];
}

class MovesRun {
  readonly #options: MovesOptions;
  readonly #stages: readonly Stage[];
  readonly #kills = new Map<string, number>();
  readonly #breaches: string[] = [];
  readonly #fences: number[] = [];
  readonly #moves: number[] = [];
  #aborts = 0;
  /** The cell that has the account, and the other one. */
  #home!: Cell;
  #away!: Cell;
  #proxy!: CellsProxy;

  constructor(first: Stage, second: Stage, options: MovesOptions) {
    this.#stages = [first, second];
    this.#options = options;
  }

  async play(): Promise<Verdict[]> {
    const [first, second] = this.#stages as [Stage, Stage];
    const double = (await startStripeDouble())!;
    first.atEnd(() => double.close());
    const node = await ChainNode.start();
    first.atEnd(() => node.close());
    const settings = {
      provider_secrets: SECRETS,
      master_secret: "the same secret in both cells, 32 bytes",
    };
    const open = async (name: Cell["name"], stage: Stage): Promise<Cell> => {
      const servers = [await stage.startServer(settings), await stage.startServer(settings)];
      await Promise.all(servers.map(untilWell));
      return { name, stage, servers };
    };
    this.#home = await open("a", first);
    this.#away = await open("b", second);
    const address = ({ servers }: Cell) => `127.0.0.1:${servers[0]!.port}`;
    this.#proxy = await startHaproxy(
      { a: address(this.#home), b: address(this.#away) },
      `${LABEL} a\n`,
    );
    first.atEnd(() => this.#proxy.close());
    const base_url = `${this.#proxy.origin}/functions/v1`;
    const live = await makeLiveEnvironment(first.sql, ACCOUNT);
    const stripe_id = await this.#addProvider(live.environment_id, "stripe", "card", {
      base_url: double.base_url,
    });
    await this.#addProvider(live.environment_id, "evm", "stablecoin", chainSettings(node));
    const notify = () =>
      double.notify({
        url: `${
          this.#home.servers[0]!.base_url
        }/api-v1-payments/providers/${stripe_id}/notifications`,
        secrets: [SECRETS.PROVIDER_STRIPE_NOTIFICATIONS],
      });
    await notify();
    const { text: key } = await first.makeSandbox("moving", ACCOUNT);
    const clients = new MoveClients(base_url, key, this.#options.pause_ms);
    first.atEnd(() => clients.close());
    await clients.fill(this.#options.payments);

    let is_over = false;
    const live_clients: LiveClients = new LiveClients({
      seed: this.#options.seed,
      clients: LIVE_CLIENTS,
      urls: [base_url],
      api_key: live.text,
      next: () => ({ is_over, pause_ms: 200 }),
      explain: (id) => explainPayment(this.#home.stage.sql, id),
    });
    const chain_clients = this.#chainClients(live.text, base_url);
    const times = this.#stages.map(passTime);
    const polls = this.#makePollsDue(() => is_over);
    const told = live_clients.tell();
    const bought = clients.buy();
    const chained = (async () => {
      while (!is_over) {
        await chain_clients.pay(2);
        await chain_clients.send(node, false);
        await node.mine();
        await chain_clients.payOut();
      }
    })();

    await this.#moveUntilKilled(notify);
    clients.stop();
    is_over = true;
    await Promise.all([told, bought, chained]);
    await Promise.all(times.map((time) => time.end()));
    await polls;
    await this.#rest(live.environment_id, node, chain_clients);
    return await this.#judge(live, double, node, { clients, live_clients, chain_clients });
  }

  async #addProvider(environment_id: string, connector: string, method: string, settings: object) {
    const id = idGenerator(Date.now())("pac_");
    await this.#home.stage.sql`select pay.add_provider_account(${id}, ${environment_id},
      ${connector}, ${[method]}, ${JSON.stringify(settings)},
      ${connector === "stripe" ? "PROVIDER_STRIPE" : null},
      ${connector === "stripe" ? ["PROVIDER_STRIPE_NOTIFICATIONS"] : []})`;
    return id;
  }

  #chainClients(key: string, base_url: string): ChainClients {
    const home = () => this.#home.stage.sql;
    const api = {
      get sql() {
        return home();
      },
      servers: [{ base_url }] as unknown as ApiServer[],
      key,
      seed: this.#options.seed,
    };
    return new ChainClients(api, randomOf(this.#options.seed, "moved chain"));
  }

  /** Moves the account to and fro until each process was killed at each step. */
  async #moveUntilKilled(notify: () => Promise<void>): Promise<void> {
    const { kills, seed } = this.#options;
    const random = randomOf(seed, "moves");
    let due: Due[] = kills > 0
      ? STEPS.flatMap((step) =>
        Array.from({ length: kills }, (_, i) => ({ step, victim: VICTIMS[i % VICTIMS.length]! }))
      )
      // At different steps, so that one move is enough.
      : VICTIMS.map((victim, i) => ({ step: STEPS[random.integer(2 * i, 2 * i + 1)]!, victim }));
    for (let moves = 0; due.length > 0 || moves === 0; moves++) {
      // Each process once at each step, in turns: the next mover begins with the step that was killed.
      const now = STEPS.flatMap((step, i) =>
        VICTIMS.flatMap((_, j) => {
          const victim = VICTIMS[(moves + i + j) % VICTIMS.length];
          return due.find((each) => each.step === step && each.victim === victim) ?? [];
        })
      );
      const done = await this.#move(now, moves % 2 === 0, (most) => random.integer(0, most));
      due = due.filter((each) => !done.includes(each));
      [this.#home, this.#away] = [this.#away, this.#home];
      await notify();
      await this.#assertOneHome();
      console.log(
        `       move ${moves + 1}: ${done.length} kills, ${due.length} left, ` +
          `${(this.#moves.at(-1)! / 1_000).toFixed(1)} s, fences ${
            this.#fences.slice(-3).map(Math.round)
          } ms`,
      );
    }
  }

  /** Moves the account once. Returns the kills that have happened. */
  async #move(planned: Due[], is_aborted: boolean, delay: Delay): Promise<Due[]> {
    const began = performance.now();
    const left = [...planned];
    let has_aborted = !is_aborted;
    for (;;) {
      const { code, output } = await this.#runMover(left, delay);
      // A mover can be killed after its last statement.
      if (code === 0 || output.includes("is at the target already\n")) break;
      if (!has_aborted) {
        has_aborted = true;
        const killed = this.#command("abort");
        await new Promise((resolve) => setTimeout(resolve, delay(ABORT_MS)));
        killed.kill();
        await killed.ended;
        const aborted = await this.#command("abort").ended;
        if (aborted.code === 0 || aborted.output.includes("No move of")) {
          this.#aborts++;
          await this.#assertOneHome();
        } else if (!/already|is at the target/.test(aborted.output)) {
          this.#breaches.push(`abort: ${aborted.output}`);
        }
      }
      if (performance.now() - began > 900_000) throw new Error(`the move does not end: ${output}`);
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
    this.#moves.push(performance.now() - began);
    return planned.filter((each) => !left.includes(each));
  }

  /** Starts the mover, and kills what is planned when it reports a step. */
  async #runMover(left: Due[], delay: Delay): Promise<{ code: number; output: string }> {
    let fenced_at: number | null = null;
    let killing: Promise<void> | null = null;
    const mover = this.#command("move", (line) => {
      if (line.startsWith("fence:")) fenced_at = performance.now();
      if (line.startsWith("wake:") && fenced_at !== null) {
        this.#fences.push(performance.now() - fenced_at);
      }
      const index = left.findIndex(({ step }) => line.startsWith(`${step}:`));
      // One after the other: a database that recovers cannot be killed.
      if (index < 0 || killing !== null) return;
      const [due] = left.splice(index, 1) as [Due];
      const { step, victim } = due;
      fenced_at = null;
      killing = (async () => {
        await new Promise((resolve) => setTimeout(resolve, delay(DELAYS_MS[step] ?? DELAY_MS)));
        const { stage } = victim === "source" ? this.#home : this.#away;
        if (!mover.isUnderWay()) {
          left.push(due);
        } else {
          const count = `${victim} at ${step}`;
          this.#kills.set(count, (this.#kills.get(count) ?? 0) + 1);
          if (victim === "mover") mover.kill();
          else await killPostgres(stage, stage.postgres.pid);
        }
        killing = null;
      })();
    });
    const ended = await mover.ended;
    await killing;
    return ended;
  }

  #command(action: "move" | "abort", onLine: (line: string) => void = () => {}) {
    const child = new Deno.Command(Deno.execPath(), {
      args: [
        ...["run", "-A", CELLS, action, "--account", ACCOUNT],
        ...action === "move"
          ? [
            ...["--map", this.#proxy.map_file, "--cell", this.#away.name],
            ...["--socket", this.#proxy.socket, "--run"],
          ]
          : [],
      ],
      env: {
        CELLS_FROM_URL: this.#home.stage.operator_url,
        CELLS_TO_URL: this.#away.stage.operator_url,
      },
      stdin: "null",
      stdout: "null",
      stderr: "piped",
    }).spawn();
    let output = "";
    let is_over = false;
    const read = (async () => {
      let rest = "";
      for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) {
        output += text;
        const lines = (rest + text).split("\n");
        rest = lines.pop()!;
        for (const line of lines) onLine(line);
      }
    })();
    const ended = (async () => {
      const { code } = await child.status;
      is_over = true;
      await read;
      return { code, output };
    })();
    return { isUnderWay: () => !is_over, kill: () => is_over || child.kill("SIGKILL"), ended };
  }

  /** Asserts that all environments of the account are open in one cell and absent in the other. */
  async #assertOneHome(): Promise<void> {
    const stateOf = async ({ stage }: Cell) => {
      const rows = await retried(() =>
        stage.sql<{ state: string }[]>`
          select distinct coalesce(moving, 'open') as state from pay.environments
          where account = ${ACCOUNT}`
      );
      return rows.map(({ state }) => state).join() || "nothing";
    };
    const found = `${await stateOf(this.#home)} at home, ${await stateOf(this.#away)} away`;
    if (found !== "open at home, nothing away") this.#breaches.push(`after a move: ${found}`);
  }

  async #makePollsDue(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      for (const { sql } of this.#stages) {
        await sql`update pay.provider_cursors u set polled_at = null
          from pay.environments e where e.id = u.environment_id and e.moving is null`
          .catch(() => {});
      }
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
  }

  /** Waits until everything that was begun has a result. */
  async #rest(live: string, node: ChainNode, chain: ChainClients): Promise<void> {
    const { stage, servers } = this.#home;
    await Promise.all(servers.map(untilWell));
    const time = passTime(stage);
    let is_over = false;
    const polls = this.#makePollsDue(() => is_over);
    await chain.send(node, true);
    await node.mine(2 * CONFIRMATIONS);
    await node.passTime(1_200);
    const settled = settle(stage, live);
    const mined = (async () => {
      while (!is_over) {
        await node.mine();
        await new Promise((resolve) => setTimeout(resolve, 500));
      }
    })();
    await until("every delivery has ended", async () => {
      const [open] = await retried(() =>
        stage.sql`select from pay.webhook_deliveries where status = 'pending' limit 1`
      );
      return open === undefined;
    }, SETTLE_MS).catch((error) => this.#breaches.push(String(error)));
    await settled.catch((error) => this.#breaches.push(String(error)));
    is_over = true;
    await Promise.all([polls, mined, time.end()]);
  }

  async #judge(
    live: { environment_id: string },
    double: NonNullable<Awaited<ReturnType<typeof startStripeDouble>>>,
    node: ChainNode,
    { clients, live_clients, chain_clients }: {
      clients: MoveClients;
      live_clients: LiveClients;
      chain_clients: ChainClients;
    },
  ): Promise<Verdict[]> {
    const { sql } = this.#home.stage;
    const { environment_id } = live;
    const ours = await readOurBooks(sql, environment_id);
    const cards = await sql<{ id: string }[]>`select id from pay.payments
      where environment_id = ${environment_id} and method_kind = 'card'`;
    const is_card = new Set(cards.map(({ id }) => id));
    const payments = ours.payments.filter(({ id }) => is_card.has(id));
    const refunds = ours.refunds.filter(({ payment_id }) => is_card.has(payment_id));
    const balances = new Map([...ours.balances].filter(([id]) => is_card.has(id)));
    const { operations } = live_clients;
    const books = await double.books(SECRETS.PROVIDER_STRIPE);
    // Checks the invariants, too.
    const chain = await auditChain({
      sql,
      environment_id,
      payments: chain_clients.payers,
      payouts: chain_clients.payouts,
      signer: node.signer,
      transfers: await node.transfers(),
    });
    const away = (await checkBooks(this.#away.stage.sql)).filter(({ breaches }) => breaches > 0);
    const bought = await clients.audit(sql);
    const missing = this.#options.kills === 0
      ? []
      : STEPS.flatMap((step) =>
        VICTIMS.map((victim) => `${victim} at ${step}`).filter((name) => !this.#kills.has(name))
      );
    const count = [...this.#kills.values()].reduce((sum, n) => sum + n, 0);
    const sorted = this.#fences.toSorted((x, y) => x - y);
    const fence = sorted[Math.floor(sorted.length / 2)];
    return [{
      promise: "R16",
      says:
        `${this.#moves.length} moves, ${this.#aborts} aborted, ${count} kills; ${bought.says}; ` +
        `${operations.length} live operations; ${chain.says}; ` +
        `from fence to wake ${fence === undefined ? "-" : Math.round(fence)} ms (median)`,
      breaches: [
        ...this.#breaches,
        ...bought.breaches,
        ...auditLive({ operations, payments, refunds, balances, books }),
        ...live_clients.faults,
        ...chain.breaches,
        ...chain_clients.faults,
        ...this.#stages.flatMap(({ server_faults }) =>
          server_faults.map(({ route, fault }) => `fault of a server: ${route} ${fault}`)
        ),
        ...away.map(({ invariant, breaches }) => `in the other cell: ${breaches} of ${invariant}`),
        ...missing.map((name) => `no kill of ${name}`),
      ],
    }];
  }
}

function chainSettings(node: ChainNode) {
  return {
    network: "ethereum",
    chain_id: "31337",
    rpc_urls: `${node.url},http://localhost:${node.port}`,
    xpub: HDKey.fromMasterSeed(new Uint8Array(32).fill(9)).derive("m/44'/60'/0'")
      .publicExtendedKey,
    "contract.USDC": node.token,
    confirmations: String(CONFIRMATIONS),
    expires_after_seconds: "600",
    signer_address: node.signer,
    signer_url: node.url,
  };
}

/** Repeats a query that fails on a connection to a killed server. */
async function retried<T>(ask: () => Promise<T>): Promise<T> {
  for (let tries = 0;; tries++) {
    try {
      return await ask();
    } catch (error) {
      if (tries === 20) throw error;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }
}
