/** The clients of the run with a bank, with everything that they have created. */

import type postgres from "postgres";
import { type RepeatingClient, V1 } from "../../harness/client.ts";
import type { Random } from "../../../support/core/random.ts";

/** A payment by bank transfer, which its payer has to send. */
export interface PushPayment {
  id: string;
  reference: string;
  amount: number;
}

/** An order to the bank: a collection, refund or transfer. Only a collection has a mandate. */
export interface BankOrder {
  id: string;
  amount: number;
  mandate: string | null;
}

const PAYER = { iban: "DE02120300000000202051", holder_name: "Ada Payer" };
const PAYEE = "FR1420041010050500013M02606";
/** Payees, by what the bank says about their names. */
const PAYEES = ["Match Payee", "Close match Payee", "No match Payee", "Zoë Müller"];

export class BankClients {
  readonly payments: PushPayment[] = [];
  readonly orders: BankOrder[] = [];
  /** Payments of 0, which save a mandate and are no orders. */
  readonly saved_alone: string[] = [];
  /** The mandates of saved instruments. */
  readonly #kept = new Map<string, string>();
  #requests = 0;

  constructor(
    readonly sql: postgres.Sql,
    readonly client: RepeatingClient,
    readonly key: string,
    readonly random: Random,
  ) {}

  /** Creates payments by bank transfer. */
  async push(count: number, amount = this.random.integer(1_000, 99_999)): Promise<PushPayment[]> {
    const pushed = await Promise.all(Array.from({ length: count }, async () => {
      const created = await this.#create("payments", amount, { method_kind: "sepa" });
      const { reference } = await this.client.nextAction(this.key, created);
      return { id: created.id, reference, amount };
    }));
    this.payments.push(...pushed);
    return pushed;
  }

  /** Collects, refunds and pays out. */
  async order(): Promise<void> {
    await Promise.all([
      ...Array.from({ length: 4 }, () => this.#collect()),
      ...Array.from({ length: 2 }, () => this.#save()),
      ...(await this.#usable()).map((instrument) => this.#use(instrument)),
      ...Array.from({ length: 3 }, () => this.#payOut()),
      ...(await this.#refundable()).map(({ id, amount }) => {
        const part = this.random.integer(1, Math.floor(amount / 2));
        return this.#order(`payments/${id}/refund`, part, { currency: undefined });
      }),
    ]);
  }

  async #collect(): Promise<void> {
    const id = `M-${this.orders.length + this.#requests}`;
    const mandate = { id, signed_at: "2026-01-31", sequence: "recurring" };
    const body = { method_kind: "sepa", iban: PAYER, mandate };
    await this.#order("payments", this.random.integer(100, 9_999), body, id);
  }

  /** Saves a mandate: by a first collection, or alone. */
  async #save(): Promise<void> {
    const amount = this.random.pick([0, this.random.integer(100, 9_999)]);
    const { id, instrument_id, method: { mandate } } = await this.#create("payments", amount, {
      ...{ iban: PAYER, mandate: { signed_at: "2026-01-31" }, save: "off_session" },
      customer: { id: `c${this.#requests}`, email: "ada@example.com" },
    });
    this.#kept.set(instrument_id, mandate.id);
    if (amount === 0) this.saved_alone.push(id);
    else this.orders.push({ id, amount, mandate: mandate.id });
  }

  /** Collects by an instrument, which the bank can have ended meanwhile. */
  async #use(instrument: string): Promise<void> {
    const amount = this.random.integer(100, 9_999);
    const mandate = this.#kept.get(instrument)!;
    await this.#order("payments", amount, { instrument, off_session: true }, mandate)
      .catch((error) => {
        if (!/: 409 .*"current_status":"ended"/.test(error.message)) throw error;
      });
  }

  async #payOut(): Promise<void> {
    const holder_name = this.random.pick(PAYEES);
    await this.#order("transfers", this.random.integer(1, 99), {
      destination: { iban: { iban: PAYEE, holder_name } },
      ...(this.random.chance(0.3) && { speed: "instant" }),
    });
  }

  async #order(path: string, amount: number, body: object, mandate: string | null = null) {
    const { id } = await this.#create(path, amount, body);
    this.orders.push({ id, amount, mandate });
  }

  async #usable(): Promise<string[]> {
    const active = await this.sql<{ id: string }[]>`
      select id from pay.instruments where is_kept and status = 'active' order by id`
      .catch(() => []);
    return this.random.shuffled(active.map(({ id }) => id).filter((id) => this.#kept.has(id)))
      .slice(0, 3);
  }

  async #refundable(): Promise<{ id: string; amount: number }[]> {
    const completed = await this.sql<{ id: string; amount: number }[]>`
      select id, amount_minor::int as amount from pay.payments
      where status = 'completed' and amount_minor > 0 and amount_refunded + amount_refunding = 0
      order by id`.catch(() => []);
    return completed.filter(() => this.random.chance(2 / completed.length));
  }

  #create(path: string, amount: number, fields: object) {
    const body = { amount, currency: "EUR", ...fields };
    return this.client.createTwice(this.key, `${V1}/${path}`, body, `bank-${++this.#requests}`);
  }
}
