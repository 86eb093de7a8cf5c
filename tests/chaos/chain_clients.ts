/** The clients of the run on a chain. They repeat each request until it gets a response. */

import type postgres from "postgres";
import type { Hex } from "../support/chain/chain_world.ts";
import type { ChainPayment, ChainPayout } from "./chain_audit.ts";
import type { ChainNode } from "./chain_node.ts";
import type { Random } from "./random.ts";
import { postAgain, type RepeatedApi, untilNextAction } from "./repeated_request.ts";

/** The transfers of a payer, as parts of the amount. Late ones come after the payment's time. */
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

/** A payer's transfer, and its latest transaction. */
interface Sending {
  amount: number;
  tx_hash: Hex | null;
  is_late: boolean;
}

/** A payment with its payer. */
interface Payer extends ChainPayment {
  sendings: Sending[];
}

/** The parts of the run that the clients use. */
interface ChainApi extends RepeatedApi {
  sql: postgres.Sql;
  seed: number;
}

/** The clients, with the payments and payouts that they know. */
export class ChainClients {
  readonly payers: Payer[] = [];
  readonly payouts: ChainPayout[] = [];
  /** Responses that contradict each other. */
  readonly faults: string[] = [];
  readonly #api: ChainApi;
  readonly #random: Random;
  #wallets = 0;

  constructor(api: ChainApi, random: Random) {
    this.#api = api;
    this.#random = random;
  }

  /** Creates some payments, each twice at once under one key. */
  async pay(count: number): Promise<void> {
    const begun = Array.from({ length: count }, async () => {
      const n = this.payers.length;
      const plan = this.#random.pick(PLANS);
      const amount_minor = this.#random.integer(1_000, 999_999);
      const payer: Payer = { id: null, address: null, amount_minor, sendings: [] };
      this.payers.push(payer);
      const responses = await Promise.all(
        [0, 1].map((duplicate) => this.#create(n, amount_minor, duplicate)),
      );
      const [one, other] = responses.map((body) => JSON.parse(body));
      if (one.id !== other.id || one.next_action.address !== other.next_action.address) {
        this.faults.push(`payment ${n}: its duplicates are ${responses.join(" and ")}`);
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
  async payOut(): Promise<void> {
    const open = await this.#api.sql<{ id: string; amount: number }[]>`
      select p.id, p.amount_minor::int as amount from pay.payments p
      join pay.environments e on e.id = p.environment_id and e.moving is null
      where p.status = 'completed' and p.amount_refunding = 0 and p.method_kind = 'stablecoin'`
      .catch(() => []);
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
    const key = `chain-${this.#api.seed}-${address}`;
    const [one, other] = await Promise.all(
      [0, 1].map((duplicate) =>
        postAgain(this.#api, path, body, key, duplicate).then((text) => JSON.parse(text))
      ),
    );
    this.payouts.push({ id: one.id, address, amount });
    if (one.id !== other.id) this.faults.push(`${one.id} and ${other.id} have one key`);
  }

  #newWallet(): string {
    return `0x${(0x10_0000 + ++this.#wallets).toString(16).padStart(40, "a")}`;
  }

  /** Creates a payment under its key. */
  async #create(n: number, amount_minor: number, duplicate: number): Promise<string> {
    const body = { amount_minor, currency: "USDC", method_kind: "stablecoin" };
    const key = `chain-${this.#api.seed}-${n}`;
    const text = await postAgain(this.#api, "payments", body, key, duplicate);
    return await untilNextAction(this.#api.sql, text);
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
}
