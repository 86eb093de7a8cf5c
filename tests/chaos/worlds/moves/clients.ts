/**
 * The clients of an account that moves: they pay in its sandbox, and in disposable sandboxes with
 * clocks. A receiver counts the webhooks.
 */

import type postgres from "postgres";
import { pause } from "../../../support/common/until.ts";
import { differences, failing } from "../../harness/audit.ts";
import { CLOCK, eachAtOnce, type RepeatingClient, SANDBOX, V1 } from "../../harness/client.ts";
import { serveHooks } from "../../harness/receiver.ts";
import type { Stage } from "../../harness/stage.ts";

const BUYERS = 4;
const FILLERS = 64;
/** Between two disposable sandboxes, of which an account has 1 000 at most. */
const EVERY_MS = 2_000;
const DISPOSABLES_MAX = 900;
/** Long enough that the authorization of a payment expires. */
const ADVANCE_S = 8 * 86_400;
const CARD = { token: "pm_card_visa" };
const HELD = { amount: 500, currency: "EUR", capture: "manual", card: CARD };

export class MoveClients {
  /** The payments that were acknowledged, by their idempotency keys. */
  readonly #paid = new Map<string, string>();
  /** Disposable sandboxes, each with its only payment, and its clock when that had ended. */
  readonly #disposables: { key: string; payment_id: string; now: string }[] = [];
  /** How often each event has arrived. */
  readonly #arrivals = new Map<string, number>();
  readonly #url: string;
  #is_over = false;

  /** @param pause_ms between two payments of a buyer */
  constructor(
    stage: Stage,
    readonly client: RepeatingClient,
    readonly key: string,
    readonly pause_ms: number,
  ) {
    this.#url = serveHooks(stage, async (request) => {
      const { id } = await request.json();
      this.#arrivals.set(id, (this.#arrivals.get(id) ?? 0) + 1);
    });
  }

  /** Makes an endpoint, and the first payments. */
  async fill(payments: number): Promise<void> {
    await this.client.addEndpoint(this.key, { url: this.#url, events: ["payment.completed"] });
    await eachAtOnce(FILLERS, Array.from({ length: payments }), () => this.#pay());
  }

  /** Pays until `stop`. */
  async buy(): Promise<void> {
    const repeat = async (act: () => Promise<unknown>, pause_ms: number) => {
      for (; !this.#is_over; await pause(pause_ms)) await act();
    };
    await Promise.all([
      ...Array.from({ length: BUYERS }, () => repeat(() => this.#pay(), this.pause_ms)),
      repeat(() => this.#useDisposable(), EVERY_MS),
    ]);
  }

  stop(): void {
    this.#is_over = true;
  }

  /** Compares what was acknowledged with the rows of the cell that has the account. */
  async audit(sql: postgres.Sql): Promise<{ says: string; breaches: string[] }> {
    const twice = [...this.#arrivals.values()].filter((times) => times > 1).length;
    return {
      says: `${this.#paid.size} payments acknowledged, ${this.client.repeated} requests ` +
        `repeated, ${this.#arrivals.size} webhooks, ${twice} of them sent again, ` +
        `${this.#disposables.length} disposable sandboxes`,
      breaches: [
        ...await this.#auditPayments(sql),
        ...await this.#auditDeliveries(sql),
        ...await this.#auditDisposables(),
      ],
    };
  }

  async #auditPayments(sql: postgres.Sql): Promise<string[]> {
    const stored = await sql<{ id: string }[]>`
      select p.id from pay.payments p
      join pay.environments e on e.id = p.environment_id and not e.livemode and e.ends_at is null`;
    // Joined here: without statistics, PostgreSQL would compare each payment with each key.
    const keys = await sql<{ id: string; key: string }[]>`
      select subject_id as id, key from pay.idempotency_keys where subject_id is not null`;
    const key_of = new Map(keys.map(({ id, key }) => [id, key]));
    return differences(
      "key",
      stored.map(({ id }) => [id, key_of.get(id)]),
      [...this.#paid].map(([key, id]) => [id, key]),
    );
  }

  async #auditDeliveries(sql: postgres.Sql): Promise<string[]> {
    const deliveries = await sql<{ id: string; status: string; attempts: number }[]>`
      select d.event_id as id, d.status, d.attempt_count as attempts from pay.webhook_deliveries d
      join pay.environments e on e.id = d.environment_id and not e.livemode`;
    const known = new Set(deliveries.map(({ id }) => id));
    return failing([
      ...deliveries.map(({ id, status, attempts }) => {
        const times = this.#arrivals.get(id) ?? 0;
        // A kill can take the result of an attempt, and never the attempt.
        const is_right = status === "delivered" && times >= 1 && times <= attempts;
        return [is_right, `${id} is ${status}, came ${times} times in ${attempts} tries`] as const;
      }),
      [known.size === deliveries.length, "an event has two deliveries to one endpoint"],
      ...[...this.#arrivals.keys()]
        .map((id) => [known.has(id), `${id} has arrived, and its delivery is not stored`] as const),
    ]);
  }

  async #auditDisposables(): Promise<string[]> {
    const breaches: string[] = [];
    for (const { key, payment_id, now } of this.#disposables) {
      const payment = await this.client.send(key, `${V1}/payments/${payment_id}`);
      const clock = await this.client.send(key, CLOCK);
      const is_right = payment.status === 200 && payment.body.status === "cancelled" &&
        clock.status === 200 && clock.body.now >= now;
      if (is_right) continue;
      breaches.push(`a disposable sandbox has ${payment.text}, ${clock.text}, not ${now}`);
    }
    return breaches;
  }

  async #pay(): Promise<void> {
    const key = crypto.randomUUID();
    const body = { amount: 1999, currency: "EUR", outcome: "success" };
    const { id } = await this.client.createTwice(this.key, `${V1}/payments`, body, key);
    this.#paid.set(key, id);
  }

  /** Makes a disposable sandbox, pays there, and moves its clock. */
  async #useDisposable(): Promise<void> {
    if (this.#disposables.length === DISPOSABLES_MAX) return;
    const create = (token: string, path: string, body: object) =>
      this.client.createTwice(token, path, body, crypto.randomUUID());
    const { test_key: key } = await create(this.key, `${SANDBOX}/sandboxes`, {});
    const { id: payment_id } = await create(key, `${V1}/payments`, HELD);
    const { status, body, text } = await this.client.advanceClock(key, ADVANCE_S);
    if (status !== 200) throw new Error(`its clock: ${text}`);
    this.#disposables.push({ key, payment_id, now: body.now });
  }
}
