/** The clients of the run with a bank, with everything that they have created. */

import type postgres from "postgres";
import { type RepeatingClient, untilNextAction, V1 } from "../../harness/client.ts";
import type { Random } from "../../../support/core/random.ts";

/** A payment by bank transfer, which its payer has to send. */
export interface PushPayment {
  id: string;
  reference: string;
  amount: number;
}

/** An order to the bank: a collection, refund or transfer. */
export interface BankOrder {
  id: string;
  amount: number;
}

/** The parts of the run that the clients use. */
interface BankApi {
  sql: postgres.Sql;
  client: RepeatingClient;
  key: string;
  seed: number;
}

const PAYER = { iban: "DE02120300000000202051", holder_name: "Ada Payer" };
const PAYEE = "FR1420041010050500013M02606";
/** Payees, by what the bank says about their names. */
const PAYEES = ["Match Payee", "Close match Payee", "No match Payee", "Zoë Müller"];

/** The clients. */
export class BankClients {
  readonly payments: PushPayment[] = [];
  readonly orders: BankOrder[] = [];
  readonly #api: BankApi;
  readonly #random: Random;
  #requests = 0;

  constructor(api: BankApi, random: Random) {
    this.#api = api;
    this.#random = random;
  }

  /** Creates payments by bank transfer. Returns them. */
  async push(count: number, amount = this.#random.integer(1_000, 99_999)): Promise<PushPayment[]> {
    const pushed = await Promise.all(Array.from({ length: count }, async () => {
      const body = { amount, currency: "EUR", method_kind: "sepa" };
      const created = await this.#create("payments", body);
      const { reference } = await untilNextAction(() => this.#api.sql, created);
      return { id: created.id, reference, amount };
    }));
    this.payments.push(...pushed);
    return pushed;
  }

  /** Collects, refunds and pays out. */
  async order(): Promise<void> {
    await Promise.all([
      ...Array.from({ length: 4 }, () => this.#collect()),
      ...Array.from({ length: 3 }, () => this.#payOut()),
      ...(await this.#refundable()).map(({ id, amount }) => {
        const part = this.#random.integer(1, Math.floor(amount / 2));
        return this.#order(`payments/${id}/refund`, part, {});
      }),
    ]);
  }

  async #collect(): Promise<void> {
    const number = this.orders.length + this.#requests;
    await this.#order("payments", this.#random.integer(100, 9_999), {
      currency: "EUR",
      method_kind: "sepa",
      iban: PAYER,
      mandate: { id: `M-${number}`, signed_at: "2026-01-31", sequence: "recurring" },
    });
  }

  async #payOut(): Promise<void> {
    const holder_name = this.#random.pick(PAYEES);
    await this.#order("transfers", this.#random.integer(1, 99), {
      currency: "EUR",
      destination: { iban: { iban: PAYEE, holder_name } },
      ...(this.#random.chance(0.3) && { speed: "instant" }),
    });
  }

  async #order(path: string, amount: number, body: object): Promise<void> {
    const { id } = await this.#create(path, { amount, ...body });
    this.orders.push({ id, amount });
  }

  /** Some completed payments without a refund. */
  async #refundable(): Promise<{ id: string; amount: number }[]> {
    const completed = await this.#api.sql<{ id: string; amount: number }[]>`
      select id, amount_minor::int as amount from pay.payments
      where status = 'completed' and amount_refunded = 0 and amount_refunding = 0
      order by id`.catch(() => []);
    return completed.filter(() => this.#random.chance(2 / completed.length));
  }

  #create(path: string, body: object) {
    const { client, key, seed } = this.#api;
    const idempotency_key = `bank-${seed}-${++this.#requests}`;
    return client.createTwice(key, `${V1}/${path}`, body, idempotency_key);
  }
}
