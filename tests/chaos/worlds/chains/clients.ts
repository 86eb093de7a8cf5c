/** The clients of the run on a chain: payers with their transfers, and payouts. */

import type postgres from "postgres";
import type { Hex } from "../../../support/chain/chain_world.ts";
import { type Random, randomOf } from "../../../support/core/random.ts";
import { type RepeatingClient, V1 } from "../../harness/client.ts";
import type { ChainNode } from "./node.ts";

/** The transfers of a payer, as parts of the amount. Late ones come after the payment's time. */
const PLANS: readonly { parts: readonly number[]; is_late?: true }[] = [
  ...[{ parts: [1] }, { parts: [1] }, { parts: [0.4, 0.6] }, { parts: [0.2, 0.3, 0.5] }],
  ...[{ parts: [1.5] }, { parts: [0.7, 0.7] }, { parts: [0.5] }, { parts: [] }],
  { parts: [1], is_late: true },
];

/** A payment with its payer's transfers, each with its latest transaction. */
interface Payer {
  /** Null: its create got no response. */
  id: string | null;
  address: string | null;
  amount_minor: number;
  sendings: { amount: number; tx_hash: Hex | null; is_late: boolean }[];
}

export class ChainClients {
  readonly payers: Payer[] = [];
  /** Refunds and transfers. Their wallets receive nothing else. */
  readonly payouts: { id: string; address: string; amount: number }[] = [];
  readonly #random: Random;
  #wallets = 0;

  constructor(
    /** The database can change when an account moves. */
    readonly sql: () => postgres.Sql,
    readonly client: RepeatingClient,
    readonly key: string,
    seed: number,
  ) {
    this.#random = randomOf(seed, "chain");
  }

  async pay(count: number): Promise<void> {
    await Promise.all(Array.from({ length: count }, async () => {
      const n = this.payers.length;
      const { parts, is_late = false } = this.#random.pick(PLANS);
      const amount_minor = this.#random.integer(1_000, 999_999);
      const payer: Payer = { id: null, address: null, amount_minor, sendings: [] };
      this.payers.push(payer);
      const body = { amount_minor, currency: "USDC", method_kind: "stablecoin" };
      const created = await this.#create("payments", body, String(n));
      payer.id = created.id;
      payer.address = (await this.client.nextAction(this.key, created)).address;
      const amounts = parts.map((part) => Math.ceil(amount_minor * part));
      payer.sendings = amounts.map((amount) => ({ amount, tx_hash: null, is_late }));
    }));
  }

  /** Refunds a part of a completed payment, and sends a transfer to a wallet. */
  async payOut(): Promise<void> {
    const open = await this.sql()<{ id: string; amount: number }[]>`
      select p.id, p.amount_minor::int as amount from pay.payments p
      join pay.environments e on e.id = p.environment_id and e.moving is null
      where p.status = 'completed' and p.amount_refunding = 0 and p.method_kind = 'stablecoin'`
      .catch(() => []);
    if (open.length === 0) return;
    const { id, amount } = this.#random.pick(open);
    const part = this.#random.integer(1, Math.floor(amount / 2));
    await Promise.all([
      this.#order(`payments/${id}/refund`, part, (address) => ({ destination: { address } })),
      this.#order("transfers", this.#random.integer(1, 99), (address) => ({
        currency: "USDC",
        destination: { wallet: { address, network: "ethereum" } },
      })),
    ]);
  }

  /** Sends the transfers that no block has. */
  async send(node: ChainNode, are_late: boolean): Promise<void> {
    for (const { address, sendings } of this.payers) {
      for (const sending of sendings) {
        if (sending.is_late && !are_late || address === null) continue;
        if (sending.tx_hash !== null && await node.has(sending.tx_hash)) continue;
        sending.tx_hash = await node.transfer(address, sending.amount);
      }
    }
  }

  /** Pays out to a new wallet. */
  async #order(path: string, amount: number, bodyFor: (address: string) => object): Promise<void> {
    const address = `0x${(0x10_0000 + ++this.#wallets).toString(16).padStart(40, "a")}`;
    const { id } = await this.#create(path, { amount_minor: amount, ...bodyFor(address) }, address);
    this.payouts.push({ id, address, amount });
  }

  #create(path: string, body: object, name: string) {
    return this.client.createTwice(this.key, `${V1}/${path}`, body, `chain-${name}`);
  }
}
