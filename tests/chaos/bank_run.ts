/**
 * R14 at a bank: payments by bank transfer, collections, payouts and refunds go to and fro in files,
 * while the servers, PostgreSQL and the operator's command are killed at each step of an export and
 * an import. The bank rejects and returns orders, and tells of each entry in up to three files, which
 * come doubled and in any order. The bank is the judge.
 */

import type postgres from "postgres";
import { addBankAccount, KEYS } from "../support/bank/bank.ts";
import { BankDouble, no_bank_double } from "../support/bank/double.ts";
import { until } from "../support/common/until.ts";
import { auditBank, readBankRows } from "./bank_audit.ts";
import { BankCarrier } from "./bank_carrier.ts";
import { BankClients } from "./bank_clients.ts";
import { BankDays, OWN_ACCOUNT } from "./bank_day.ts";
import { BANK_KILL_POINTS, type BankKillPoint } from "./bank_points.ts";
import type { Verdict } from "./evidence.ts";
import { killPostgres } from "./killer.ts";
import { type Random, randomOf } from "./random.ts";
import { makeLiveEnvironment } from "./sandbox.ts";
import { type ApiServer, type Stage, untilWell } from "./stage.ts";
import { killAtStatement, type Killed } from "./statement_point.ts";

/** The options of the run. */
interface BankOptions {
  seed: number;
  /** At least: the days go on until every kill has happened. */
  days: number;
  /** At each point. */
  kills: number;
}

const CLIENT_PAYMENTS = 4;
/** The first payment, out of which payouts are made. */
const FUNDS = 10_000_000;
const DAY_MS = 24 * 3_600_000;
/** Longest wait for a statement. A command has to start before. */
const STATEMENT_WAIT_MS = 15_000;
const SETTLE_MS = 60_000;
const LEASES_EVERY_MS = 500;

/** Runs the run and judges it. */
export async function runBank(stage: Stage, options: BankOptions): Promise<Verdict[]> {
  if (no_bank_double) {
    return [{ promise: "R14", says: "bank: left out, BANK_PROGRAMS is not set", breaches: [] }];
  }
  return await (await BankRun.begin(stage, options)).play();
}

class BankRun {
  readonly #stage: Stage;
  readonly #options: BankOptions;
  readonly #servers: readonly ApiServer[];
  readonly #double: BankDouble;
  readonly #account_id: string;
  readonly #random: Random;
  readonly #clients: BankClients;
  readonly #carrier: BankCarrier;
  readonly #bank: BankDays;
  readonly #kills = new Map<string, number>();
  /** Files that were imported by half. */
  readonly #faults: string[] = [];
  /** The kills that are left. */
  readonly #due: BankKillPoint[];
  #imports = 0;
  #is_over = false;

  private constructor(
    stage: Stage,
    options: BankOptions,
    servers: readonly ApiServer[],
    double: BankDouble,
    account: { id: string; bridge_token: string; key: string },
  ) {
    const { id: account_id, bridge_token, key } = account;
    this.#stage = stage;
    this.#options = options;
    this.#servers = servers;
    this.#double = double;
    this.#account_id = account_id;
    this.#random = randomOf(options.seed, "bank");
    // Every point comes before one of them comes again.
    this.#due = Array.from(
      { length: options.kills },
      () => this.#random.shuffled(BANK_KILL_POINTS),
    ).flat();
    const api = { sql: stage.sql, servers, key, seed: options.seed };
    this.#clients = new BankClients(api, this.#random);
    this.#bank = new BankDays(double, this.#random);
    this.#carrier = new BankCarrier({
      ...{ stage, servers, account_id, bridge_token },
      bank_details_keys: KEYS,
    });
  }

  static async begin(stage: Stage, options: BankOptions): Promise<BankRun> {
    const double = new BankDouble();
    stage.atEnd(() => double.close());
    const { iban, ...opened } = OWN_ACCOUNT;
    await double.run("open", iban, opened);
    const { text: key } = await makeLiveEnvironment(stage.sql, "one");
    const settings = { bank_details_keys: KEYS };
    const servers = await Promise.all([stage.startServer(settings), stage.startServer(settings)]);
    await Promise.all(servers.map(untilWell));
    const account = await addBankAccount(stage, {
      methods: "sepa",
      iban,
      currency: OWN_ACCOUNT.currency,
      creditor_id: "DE98ZZZ09999999999",
    });
    return new BankRun(stage, options, servers, double, { ...account, key });
  }

  async play(): Promise<Verdict[]> {
    const leases = this.#endLeases();
    const started = performance.now();
    const unsettled = await this.#live().then(() => this.#settle())
      .then(() => [], (error) => [String(error)]);
    this.#is_over = true;
    await leases;
    return this.#judge(unsettled, (performance.now() - started) / 1_000);
  }

  /** Goes through the days. */
  async #live(): Promise<void> {
    const { days } = this.#options;
    const days_max = 2 * days;
    const first_ms = Date.now() - (days_max + 2) * DAY_MS;
    const dateOf = (day: number) => new Date(first_ms + day * DAY_MS).toISOString().slice(0, 10);
    // The first day has no orders, so nothing is killed.
    await this.#day(dateOf(0), { is_first: true });
    let day = 1;
    for (; day <= days || this.#due.length > 0 && day < days_max; day++) {
      await this.#day(dateOf(day), {});
    }
    await this.#day(dateOf(day), { is_last: true });
  }

  /** A day of the merchant and the bank, with a kill in each kind of work. */
  async #day(
    date: string,
    { is_first = false, is_last = false }: { is_first?: boolean; is_last?: boolean },
  ): Promise<void> {
    const at = (during: BankKillPoint["during"]) =>
      is_first ? null : this.#due.find((point) => point.during === during) ?? null;
    const pushed = is_first
      ? await this.#clients.push(1, FUNDS)
      : await this.#clients.push(CLIENT_PAYMENTS);
    if (!is_first) await this.#killing(at("orders"), () => this.#clients.order());
    const texts = await this.#export(at("export"));
    for (const text of texts) {
      for (const file of await this.#bank.take(text)) await this.#import(file);
    }
    for (const { reference, amount } of pushed) {
      await this.#bank.pay(reference, amount, date, is_first ? [1] : undefined);
    }
    if (this.#random.chance(0.3)) await this.#bank.receive(this.#random.integer(1, 999), date);
    await this.#bank.work(date, is_last);
    const { files, whole_day } = await this.#bank.report(is_last);
    const killed_at = this.#random.integer(0, files.length);
    for (const [i, file] of [...files, null].entries()) {
      if (i === killed_at) await this.#importAt(whole_day, at("import"));
      if (file === null) continue;
      const copies = this.#random.pick([1, 1, 2]);
      await Promise.all(Array.from({ length: copies }, () => this.#import(file)));
    }
  }

  /** Exports the orders that wait. Returns all files for the bank. */
  async #export(point: BankKillPoint | null): Promise<string[]> {
    // The command comes to its note without another statement at the same table.
    if (point?.text.includes("note_bank_export")) await this.#carrier.prepare();
    return await this.#killing(point, async () => {
      if (point?.by_command) return await this.#carrier.exportByCommand();
      // Two exports at once must not put an order into two files.
      const [texts] = await Promise.all([this.#carrier.exportByBridge(), this.#carrier.prepare()]);
      return texts;
    });
  }

  async #importAt(file: string, point: BankKillPoint | null): Promise<void> {
    await this.#killing(
      point,
      () => point?.by_command ? this.#carrier.importByCommand(file) : this.#import(file),
    );
    if (point === null) return;
    // Later files have the same entries, and would hide what a half of a file has lost.
    const { entries } = await this.#double.run("books", OWN_ACCOUNT.iban, {});
    let stored: number | undefined;
    await until("the entries are counted", async () => {
      const counted = await this.#stage.sql<{ count: number }[]>`
        select count(*)::int as count from pay.bank_entries`.catch(() => []);
      stored = counted[0]?.count;
      return stored !== undefined;
    });
    if (stored === entries.length) return;
    this.#faults.push(`${point.name}: ${stored} of ${entries.length} entries are imported`);
  }

  async #import(file: string): Promise<void> {
    this.#imports++;
    await this.#carrier.importByBridge(file);
  }

  /** Does some work while its point is waited for. */
  async #killing<T>(point: BankKillPoint | null, work: () => Promise<T>): Promise<T> {
    if (point === null) return await work();
    const { table, text } = point;
    const locked = Promise.withResolvers<void>();
    const killing = killAtStatement(
      this.#stage,
      { table, text, wait_ms: STATEMENT_WAIT_MS },
      (sql, pids) => this.#kill(point.victim, sql, pids),
      locked.resolve,
    );
    const [done, is_hit] = await Promise.all([locked.promise.then(work), killing]);
    this.#due.splice(this.#due.indexOf(point), 1);
    if (is_hit) this.#kills.set(point.name, (this.#kills.get(point.name) ?? 0) + 1);
    else this.#due.push(point);
    return done;
  }

  async #kill(
    victim: BankKillPoint["victim"],
    sql: postgres.Sql,
    pids: number[],
  ): Promise<Killed> {
    if (victim === "command") {
      this.#carrier.killCommand();
      // Its statement does not notice that, and would commit if it were alone.
      await sql`select pg_terminate_backend(pid) from unnest(${pids}::int[]) as pid`;
      return { recovered: Promise.resolve(), has_ended_lock: false };
    }
    if (victim === "servers") {
      // restart() sends SIGKILL before it returns.
      const restarted = this.#servers.map((server) =>
        server.restart().then(() => untilWell(server))
      );
      return { recovered: Promise.all(restarted), has_ended_lock: false };
    }
    await killPostgres(this.#stage, this.#stage.postgres.pid);
    return { recovered: Promise.all(this.#servers.map(untilWell)), has_ended_lock: true };
  }

  /** Ends the leases of dead processes, and those of events that wait for another one. */
  async #endLeases(): Promise<void> {
    while (!this.#is_over) {
      await this.#stage.sql`
        update pay.provider_events set leased_until = now() + interval '1 second'
        where outcome is null and leased_until > now() + interval '1 second'`.catch(() => {});
      await this.#stage.sql`
        update pay.provider_operations set
          leased_until = least(leased_until, now() + interval '3 seconds'),
          next_attempt_at = case when leased_until is null then now() else next_attempt_at end
        where state = 'pending' and op <> 'abandon'`.catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, LEASES_EVERY_MS));
    }
  }

  /** Waits until the service has a result for everything that the bank has told. */
  async #settle(): Promise<void> {
    await Promise.all(this.#servers.map(untilWell));
    await until("every event has a result", async () => {
      const open = await this.#stage.sql`
        select from pay.provider_events where outcome is null limit 1`;
      return open.length === 0;
    }, SETTLE_MS);
  }

  async #judge(unsettled: readonly string[], seconds: number): Promise<Verdict[]> {
    const books = await this.#double.run("books", OWN_ACCOUNT.iban, {});
    const { payments, orders } = this.#clients;
    const rows = await readBankRows(this.#stage.sql, this.#account_id);
    const breaches = auditBank({ payments, orders, books, ...rows });
    const states = Map.groupBy(Object.values(books.orders), (state) => state);
    const counts = [...states].map(([state, all]) => `${all.length} ${state}`).join(", ");
    const missing = BANK_KILL_POINTS.filter(({ name }) => !this.#kills.has(name))
      .map(({ name }) => `no "${name}" happened`);
    const server_faults = this.#stage.server_faults.map(({ route, fault }) =>
      `fault of a server: ${route} ${fault}`
    );
    return [{
      promise: "R14",
      says: `bank: ${payments.length} payments by bank transfer, ${orders.length} orders ` +
        `(${counts}), ${books.entries.length} entries in ${this.#imports} files, ` +
        `${seconds.toFixed(1)} s`,
      breaches: [
        ...unsettled,
        ...this.#faults,
        ...this.#clients.faults,
        ...breaches,
        ...server_faults,
      ],
    }, {
      promise: "bank",
      says: BANK_KILL_POINTS.map(({ name }) => `${name} ${this.#kills.get(name) ?? 0}`).join("; "),
      breaches: missing,
    }];
  }
}
