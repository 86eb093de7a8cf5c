/**
 * The clients of an account that moves: they pay in its sandbox, and in disposable sandboxes with
 * clocks, and repeat each request with its key until it has a final response. A receiver counts the
 * webhooks.
 */

import type postgres from "postgres";

const CLOCK = "/api-v1-sandbox/clock";
const BUYERS = 4;
const FILLERS = 64;
/** A request without a final response after this time is a breach. */
const GIVE_UP_MS = 300_000;
/** Between two disposable sandboxes. */
const EVERY_MS = 2_000;
/** An account has 1 000 disposable sandboxes at most. */
const DISPOSABLES_MAX = 900;
/** Long enough that the authorization of a payment expires. */
const ADVANCE_S = 8 * 86_400;

/** A disposable sandbox with its only payment, and its clock when that had ended. */
interface Disposable {
  key: string;
  payment_id: string;
  now: string;
}

/** The clients. */
export class MoveClients {
  readonly #base_url: string;
  readonly #key: string;
  readonly #pause_ms: number;
  /** The payments that were acknowledged, by their idempotency keys. */
  readonly #paid = new Map<string, string>();
  readonly #disposables: Disposable[] = [];
  readonly #faults: string[] = [];
  /** How often each event has arrived. */
  readonly #arrivals = new Map<string, number>();
  readonly #abort = new AbortController();
  readonly #receiver: Deno.HttpServer<Deno.NetAddr>;
  #waited = 0;
  #is_over = false;

  /** @param pause_ms between two payments of a buyer */
  constructor(base_url: string, key: string, pause_ms: number) {
    this.#base_url = base_url;
    this.#key = key;
    this.#pause_ms = pause_ms;
    this.#receiver = Deno.serve(
      { hostname: "127.0.0.1", port: 0, signal: this.#abort.signal, onListen: () => {} },
      async (request) => {
        const { id } = await request.json();
        this.#arrivals.set(id, (this.#arrivals.get(id) ?? 0) + 1);
        return new Response();
      },
    );
  }

  /** Makes an endpoint, and the first payments. */
  async fill(payments: number): Promise<void> {
    const { port } = this.#receiver.addr;
    await this.#send(this.#key, "POST", "/api-v1-payments/v1/webhook_endpoints", {
      url: `http://127.0.0.1:${port}/hook`,
      events: ["payment.completed"],
    });
    await Promise.all(Array.from({ length: FILLERS }, async (_, i) => {
      for (let n = i; n < payments; n += FILLERS) await this.#pay();
    }));
  }

  /** Pays until `stop`. */
  async buy(): Promise<void> {
    const repeat = async (act: () => Promise<void>, pause_ms: number) => {
      while (!this.#is_over) {
        await act();
        await pause(pause_ms);
      }
    };
    await Promise.all([
      ...Array.from({ length: BUYERS }, () => repeat(() => this.#pay(), this.#pause_ms)),
      repeat(() => this.#useDisposable(), EVERY_MS),
    ]);
  }

  stop(): void {
    this.#is_over = true;
  }

  async close(): Promise<void> {
    this.#abort.abort();
    await this.#receiver.finished;
  }

  /** Compares what was acknowledged with the rows of the cell that has the account. */
  async audit(sql: postgres.Sql): Promise<{ says: string; breaches: string[] }> {
    const breaches = [...this.#faults];
    const stored = await sql<{ id: string }[]>`
      select p.id from pay.payments p
      join pay.environments e on e.id = p.environment_id and not e.livemode and e.ends_at is null`;
    // Joined here: without statistics, PostgreSQL would compare each payment with each key.
    const keys = await sql<{ id: string; key: string }[]>`
      select subject_id as id, key from pay.idempotency_keys where subject_id is not null`;
    const ids = new Set(stored.map(({ id }) => id));
    const key_of = new Map(keys.map(({ id, key }) => [id, key]));
    for (const [key, id] of this.#paid) {
      if (!ids.has(id)) breaches.push(`${id} of ${key} is not in the cell`);
      else if (key_of.get(id) !== key) breaches.push(`${id} of ${key} has ${key_of.get(id)}`);
    }
    if (stored.length !== this.#paid.size) {
      breaches.push(`${stored.length} payments are stored, ${this.#paid.size} were acknowledged`);
    }
    const deliveries = await sql<{ event_id: string; status: string; attempts: number }[]>`
      select d.event_id, d.status, d.attempt_count as attempts from pay.webhook_deliveries d
      join pay.environments e on e.id = d.environment_id and not e.livemode`;
    for (const { event_id, status, attempts } of deliveries) {
      const times = this.#arrivals.get(event_id) ?? 0;
      // A kill can take the result of an attempt, and never the attempt.
      if (status !== "delivered" || times < 1 || times > attempts) {
        breaches.push(`${event_id} is ${status}, arrived ${times} times in ${attempts} attempts`);
      }
    }
    const known = new Set(deliveries.map(({ event_id }) => event_id));
    if (known.size !== deliveries.length) {
      breaches.push("an event has two deliveries to one endpoint");
    }
    for (const id of this.#arrivals.keys()) {
      if (!known.has(id)) breaches.push(`${id} has arrived, and its delivery is not stored`);
    }
    for (const { key, payment_id, now } of this.#disposables) {
      const payment = await this.#send(key, "GET", `/api-v1-payments/v1/payments/${payment_id}`);
      const clock = await this.#send(key, "GET", CLOCK);
      const is_right = payment.status === 200 && JSON.parse(payment.text).status === "cancelled" &&
        clock.status === 200 && JSON.parse(clock.text).now >= now;
      if (!is_right) {
        breaches.push(`a disposable sandbox has ${payment.text}, ${clock.text}, not ${now}`);
      }
    }
    const twice = [...this.#arrivals.values()].filter((times) => times > 1).length;
    return {
      says: `${this.#paid.size} payments acknowledged, ${this.#waited} requests repeated, ` +
        `${deliveries.length} webhooks, ${twice} of them sent again, ` +
        `${this.#disposables.length} disposable sandboxes`,
      breaches,
    };
  }

  async #pay(): Promise<void> {
    const key = crypto.randomUUID();
    const { status, text } = await this.#send(
      this.#key,
      "POST",
      "/api-v1-payments/v1/payments",
      { amount: 1999, currency: "EUR", outcome: "success" },
      key,
    );
    if (status === 201) this.#paid.set(key, JSON.parse(text).id);
    else this.#faults.push(`a payment: ${status} ${text}`);
  }

  /** Makes a disposable sandbox, pays there, and moves its clock. */
  async #useDisposable(): Promise<void> {
    if (this.#disposables.length === DISPOSABLES_MAX) return;
    const made = await this.#send(this.#key, "POST", "/api-v1-sandbox/sandboxes", {});
    if (made.status !== 201) {
      return void this.#faults.push(`a sandbox: ${made.status} ${made.text}`);
    }
    const { test_key: key } = JSON.parse(made.text);
    const paid = await this.#send(key, "POST", "/api-v1-payments/v1/payments", {
      amount: 500,
      currency: "EUR",
      capture: "manual",
      card: { number: "4242424242424242", exp_month: 12, exp_year: 2040, cvc: "123" },
    });
    if (paid.status !== 201) return void this.#faults.push(`in it: ${paid.status} ${paid.text}`);
    for (let body: unknown = { advance: ADVANCE_S };;) {
      const moved = await this.#send(key, "POST", CLOCK, body);
      if (moved.status !== 200) {
        return void this.#faults.push(`its clock: ${moved.status} ${moved.text}`);
      }
      const { now, target, has_more } = JSON.parse(moved.text);
      if (!has_more) {
        return void this.#disposables.push({ key, payment_id: JSON.parse(paid.text).id, now });
      }
      body = { to: target };
    }
  }

  async #send(key: string, method: string, path: string, body?: unknown, once?: string) {
    const idempotency_key = once ?? crypto.randomUUID();
    const give_up_at = performance.now() + GIVE_UP_MS;
    for (;; this.#waited++) {
      const response = await fetch(`${this.#base_url}${path}`, {
        method,
        headers: {
          Authorization: `Bearer ${key}`,
          ...(method === "POST" && { "Idempotency-Key": idempotency_key }),
          ...(body !== undefined && { "Content-Type": "application/json" }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(15_000),
      }).catch(() => null);
      const text = await response?.text().catch(() => null) ?? null;
      if (response && text !== null) {
        const { status } = response;
        // The fillers can be faster than the webhooks.
        const is_busy = status === 409 && text.includes("idempotency_in_progress") ||
          status === 429;
        if (status < 500 && !is_busy) return { status, text };
        if (status > 500 && status !== 503) this.#faults.push(`${path}: ${status} ${text}`);
        if (status === 500) this.#faults.push(`${path}: 500 ${text}`);
      }
      if (performance.now() > give_up_at) return { status: 0, text: "no response in time" };
      await pause(100);
    }
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
