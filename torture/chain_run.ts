/**
 * R14 on a chain: payments by stablecoin while the servers, PostgreSQL and the node are killed and
 * the chain is reorganised. Payers send what they owe in one or more transfers, or too little, too
 * much or late, and send again what the chain has lost. The chain is the judge.
 */

import { HDKey } from "@scure/bip32";
import { idMint } from "../shared/core/ids.ts";
import { no_anvil } from "../tests/support/chain/anvil.ts";
import type { Hex } from "../tests/support/chain/chain_world.ts";
import { until } from "../tests/support/common/until.ts";
import { auditChain, type ChainPayment, type ChainPayout } from "./chain_audit.ts";
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
const ANSWER_DEADLINE_MS = 15_000;
const SETTLE_MS = 60_000;
/** How often a poll of the chain is due, in place of 15 s. */
const POLL_EVERY_MS = 200;

/** What a payer sends, as parts of the amount. Late parts are sent after the time of the payment. */
const PLANS: readonly { parts: readonly number[]; is_late?: true }[] = [
  { parts: [1] },
  { parts: [1] },
  { parts: [0.4, 0.6] },
  { parts: [0.2, 0.3, 0.5] },
  { parts: [1.5] },
  { parts: [0.7, 0.7] },
  { parts: [0.5] },
  { parts: [] },
  { parts: [1], is_late: true },
];

/** A payer's transfer, and the transaction that has it last. */
interface Sending {
  amount: number;
  tx_hash: Hex | null;
  is_late: boolean;
}

/** A payment with its payer. */
interface Payer extends ChainPayment {
  sendings: Sending[];
}

/** Runs the run and judges it. */
export async function runChain(stage: Stage, options: ChainOptions): Promise<Verdict[]> {
  if (no_anvil) return [{ promise: "R14", says: "left out: anvil is not installed", findings: [] }];
  const run = await ChainRun.begin(stage, options);
  return await run.play();
}

class ChainRun {
  readonly #stage: Stage;
  readonly #options: ChainOptions;
  readonly #node: ChainNode;
  readonly #servers: readonly ApiServer[];
  readonly #key: { environment_id: string; text: string };
  readonly #random: Random;
  readonly #payers: Payer[] = [];
  readonly #payouts: ChainPayout[] = [];
  readonly #faults: string[] = [];
  readonly #kills = { servers: 0, PostgreSQL: 0, node: 0 };
  #is_over = false;
  #wallets = 0;
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
    this.#key = key;
    this.#random = randomOf(options.seed, "chain");
  }

  static async begin(stage: Stage, options: ChainOptions): Promise<ChainRun> {
    const node = await ChainNode.start();
    stage.atEnd(() => node.close());
    const key = await makeLiveEnvironment(stage.sql, "torture");
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
    await stage.sql`select pay.add_provider_account(${idMint(Date.now())("pac_")},
      ${key.environment_id}, 'evm', ${["stablecoin"]}, ${JSON.stringify(settings)}, null, '{}')`;
    return new ChainRun(stage, options, node, servers, key);
  }

  async play(): Promise<Verdict[]> {
    const polls = this.#makePollsDue();
    const started = performance.now();
    const { payments, kills } = this.#options;
    const rounds = Math.ceil(payments / NEW_PAYMENTS);
    for (let round = 0; round < rounds; round++) {
      const created = this.#createPayments();
      const due = Object.entries(this.#kills).filter(([, count]) =>
        count < kills * (round + 1) / rounds
      );
      if (due.length > 0) await this.#kill(this.#random.pick(due)[0]);
      await created;
      await this.#sendAll(false);
      const paid = this.#payOut();
      await this.#node.mine();
      await paid;
      if (this.#node.isUndoable && this.#random.chance(0.3)) {
        await this.#node.reorganise(this.#random.integer(1, 3));
      }
    }
    const findings = await this.#comeToRest().then(() => [], (error) => this.#explain(error));
    this.#is_over = true;
    await polls;
    const seconds = ((performance.now() - started) / 1_000).toFixed(1);
    const audit = await auditChain({
      sql: this.#stage.sql,
      environment_id: this.#key.environment_id,
      payments: this.#payers,
      payouts: this.#payouts,
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
      findings: [...findings, ...audit.findings, ...this.#faults, ...missing],
    }];
  }

  /** Sends everything late and again, until the chain has it and every payment has its end. */
  async #comeToRest(): Promise<void> {
    await Promise.all(this.#servers.map(untilWell));
    await this.#sendAll(false);
    await this.#node.mine();
    await this.#settle("every transfer is seen");
    await this.#node.passTime(2 * EXPIRES_AFTER_S);
    await this.#settle("the time of every payment is over", false);
    await this.#sendAll(true);
    await this.#node.mine(2 * CONFIRMATIONS);
    await this.#settle("every transfer is final", false);
    await until("every payout has its result", async () => {
      await this.#node.mine();
      const [open] = await this.#stage.sql`
        select from pay.provider_calls where state = 'pending'`;
      return open === undefined;
    }, SETTLE_MS);
  }

  /** Waits until each fact is applied, after two polls. */
  async #settle(what: string, is_open_allowed = true): Promise<void> {
    const { sql } = this.#stage;
    // Three times, because a poll that is under way reads an old head, and a payment with news ends
    // at the next one.
    for (const poll of ["first", "second", "third"]) {
      this.#is_waiting = true;
      await sql`update pay.provider_cursors set polled_at = null`;
      await until(`${what}: the ${poll} poll`, async () => {
        const [row] = await sql`
          select from pay.provider_cursors where polled_at is not null and stalled_since is null`;
        return row !== undefined;
      }, SETTLE_MS);
      this.#is_waiting = false;
      await until(`${what}: every fact is applied`, async () => {
        const [open] = await sql`
          select from pay.provider_facts where outcome is null
          union all select from pay.provider_calls where state = 'pending' and op = 'authorize'
          limit 1`;
        return open === undefined;
      }, SETTLE_MS);
    }
    if (is_open_allowed) return;
    await until(`${what}: no payment is open`, async () => {
      const [open] = await sql`
        select from pay.payments
        where status = 'pending' or status = 'processing'
          and (body::json ->> 'amount_received')::bigint < amount_minor limit 1`;
      return open === undefined;
    }, SETTLE_MS);
  }

  /** Describes a run that does not come to rest. */
  async #explain(error: unknown): Promise<string[]> {
    const rows = await this.#stage.sql<{ row: unknown }[]>`
      select to_jsonb(u) as row from pay.provider_cursors u
      union all (select to_jsonb(f) - 'body' from pay.provider_facts f where f.outcome is null limit 3)`;
    const faults = this.#stage.server_faults.slice(-3).map(({ fault }) => fault.slice(0, 500));
    return [`${error}: ${JSON.stringify(rows.map(({ row }) => row))}`, ...faults];
  }

  async #createPayments(): Promise<void> {
    const begun = Array.from({ length: NEW_PAYMENTS }, async () => {
      const n = this.#payers.length;
      const plan = this.#random.pick(PLANS);
      const amount_minor = this.#random.integer(1_000, 999_999);
      const payer: Payer = { id: null, address: null, amount_minor, sendings: [] };
      this.#payers.push(payer);
      const answers = await Promise.all([0, 1].map((twin) => this.#create(n, amount_minor, twin)));
      const [one, other] = answers.map((body) => JSON.parse(body));
      if (one.id !== other.id || one.next_action.address !== other.next_action.address) {
        this.#faults.push(`payment ${n}: its twins are ${answers.join(" and ")}`);
      }
      payer.id = one.id;
      payer.address = one.next_action.address;
      payer.sendings = plan.parts.map((part) => ({
        amount: Math.ceil(amount_minor * part),
        tx_hash: null,
        is_late: plan.is_late ?? false,
      }));
    });
    await Promise.all(begun);
  }

  /** Refunds a part of a completed payment, and sends a transfer to a wallet. */
  async #payOut(): Promise<void> {
    const open = await this.#stage.sql<{ id: string; amount: number }[]>`
      select id, amount_minor::int as amount from pay.payments
      where status = 'completed' and amount_refunding = 0`.catch(() => []);
    if (open.length === 0) return;
    const { id, amount } = this.#random.pick(open);
    const part = this.#random.integer(1, Math.floor(amount / 2));
    const [refund_to, transfer_to] = [this.#newWallet(), this.#newWallet()];
    const refund = { amount_minor: part, destination: { address: refund_to } };
    const transfer = {
      amount_minor: this.#random.integer(1, 99),
      currency: "USDC",
      destination: { wallet: { address: transfer_to, network: "ethereum" } },
    };
    await Promise.all([
      this.#request(`payments/${id}/refund`, refund, refund_to, part),
      this.#request("transfers", transfer, transfer_to, transfer.amount_minor),
    ]);
  }

  /** Asks for a payout twice at once, under one key. */
  async #request(path: string, body: object, address: string, amount: number): Promise<void> {
    const key = `chain-${this.#options.seed}-${address}`;
    const [one, other] = await Promise.all(
      [0, 1].map((twin) => this.#post(path, body, key, twin).then((text) => JSON.parse(text))),
    );
    this.#payouts.push({ id: one.id, address, amount });
    if (one.id !== other.id) this.#faults.push(`${one.id} and ${other.id} have one key`);
  }

  #newWallet(): string {
    return `0x${(0x10_0000 + ++this.#wallets).toString(16).padStart(40, "a")}`;
  }

  /** Sends a request under its key until it is answered. */
  async #post(path: string, body: object, key: string, twin: number): Promise<string> {
    let text = "";
    await until(`${path} is answered`, async () => {
      const { base_url } = this.#servers[twin % this.#servers.length]!;
      const response = await fetch(`${base_url}/api-v1-payments/v1/${path}`, {
        method: "POST",
        headers: {
          "Authorization": `Bearer ${this.#key.text}`,
          "Content-Type": "application/json",
          "Idempotency-Key": key,
        },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(ANSWER_DEADLINE_MS),
      }).catch(() => null);
      text = await response?.text().catch(() => "") ?? "";
      return response?.status === 201 && text !== "";
    }, SETTLE_MS);
    return text;
  }

  /** Creates a payment under its key. Repeats the request until it is answered. */
  async #create(n: number, amount_minor: number, twin: number): Promise<string> {
    const body = { amount_minor, currency: "USDC", method_kind: "stablecoin" };
    const text = await this.#post("payments", body, `chain-${this.#options.seed}-${n}`, twin);
    // The service records the address later if the server has died before it did.
    const { id, next_action } = JSON.parse(text);
    return next_action === null ? await this.#addressed(id) : text;
  }

  async #addressed(id: string): Promise<string> {
    let body = "";
    await until(`${id} has an address`, async () => {
      const [row] = await this.#stage.sql<{ body: string }[]>`
        select body from pay.payments where id = ${id}`.catch(() => []);
      body = row?.body ?? "";
      return body !== "" && JSON.parse(body).next_action !== null;
    }, SETTLE_MS);
    return body;
  }

  /** Sends the transfers that no block has. */
  async #sendAll(are_late: boolean): Promise<void> {
    for (const { address, sendings } of this.#payers) {
      for (const sending of sendings) {
        if (sending.is_late && !are_late || address === null) continue;
        if (sending.tx_hash !== null && await this.#node.has(sending.tx_hash)) continue;
        sending.tx_hash = await this.#node.transfer(address, sending.amount);
      }
    }
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

  /** Makes the next attempts of payouts due, and lets their transactions get old. */
  async #passMinutes(): Promise<void> {
    await this.#stage.sql`
      update pay.provider_calls set
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
