/**
 * R14 at a bank: payments by bank transfer, collections, payouts and refunds go to and fro in
 * files, while the servers, PostgreSQL and the operator's command are killed at each step of an
 * export and an import. The bank rejects and returns orders, and tells of each entry in up to three
 * files, which come doubled and in any order. The bank is the judge.
 */

import { addBankAccount, KEYS } from "../../../support/bank/bank.ts";
import { BankDouble, no_bank_double } from "../../../support/bank/double.ts";
import { faultsOfServers, Tally, type Verdict } from "../../harness/audit.ts";
import { RepeatingClient } from "../../harness/client.ts";
import {
  cutStatements,
  type Kill,
  killAtStatement,
  killDatabase,
  killServers,
  untilRows,
} from "../../harness/killer.ts";
import { type Random, randomOf } from "../../../support/core/random.ts";
import { type ApiServer, type Stage, untilAllWell } from "../../harness/stage.ts";
import { explained, FastTime, untilNone } from "../../harness/time.ts";
import { auditBank, readBankRows } from "./audit.ts";
import { BankCarrier } from "./carrier.ts";
import { BankClients } from "./clients.ts";
import { BankDays, OWN_ACCOUNT } from "./days.ts";

/** The steps of exports and imports at which processes are killed. */
type Point = [
  name: string,
  victim: "command" | "servers" | "PostgreSQL",
  during: "orders" | "export" | "import",
  table: string,
  text: string,
  /** Whether the operator's command does the work, or a bridge. */
  by_command: boolean,
];

const POINTS: readonly Point[] = [
  ["files not stored", "command", "export", "bank_exports", "pay.store_bank_exports(", true],
  ["file not noted", "command", "export", "bank_exports", "pay.note_bank_export(", true],
  ["entries not stored", "command", "import", "bank_entries", "pay.store_bank_rows(", true],
  ["import not ended", "command", "import", "provider_totals", "pay.end_bank_file(", true],
  ["order not recorded", "servers", "orders", "provider_events", "pay.record(", false],
  ["files stored", "servers", "export", "bank_exports", "pay.store_bank_exports(", false],
  ["import stored", "servers", "import", "bank_entries", "pay.import_bank_file(", false],
  ["export", "PostgreSQL", "export", "bank_exports", "pay.store_bank_exports(", false],
  // A bridge imports a file by one statement, and the command by several.
  ["import", "PostgreSQL", "import", "bank_entries", "pay.store_bank_rows(", true],
];

const BANK_KILL_POINTS = POINTS.map(([step, victim, during, table, text, by_command]) => ({
  ...{ name: `${victim}, ${step}`, victim, during, table, text, by_command },
}));
type BankKillPoint = typeof BANK_KILL_POINTS[number];

interface BankOptions {
  seed: number;
  /** At least: the days go on until every kill has happened. */
  days: number;
  kills: number;
}

const PAYMENTS = 4;
/** The first payment, out of which payouts are made. */
const FUNDS = 10_000_000;
const DAY_MS = 24 * 3_600_000;
/** Longest wait for a statement. A command has to start before. */
const STATEMENT_WAIT_MS = 15_000;
const EVERY_MS = 500;
const { iban: IBAN, ...OPENED } = OWN_ACCOUNT;

export async function runBank(stage: Stage, options: BankOptions): Promise<Verdict[]> {
  if (no_bank_double) {
    return [{ promise: "R14", says: "bank: left out, BANK_PROGRAMS is not set", breaches: [] }];
  }
  const double = new BankDouble();
  stage.atEnd(() => double.close());
  await double.run("open", IBAN, OPENED);
  const { key } = await stage.makeLiveEnvironment("one");
  const servers = await stage.startServers({ bank_details_keys: KEYS });
  const creditor_id = "DE98ZZZ09999999999";
  const account = await addBankAccount(stage, {
    ...{ methods: "sepa", iban: IBAN, currency: OWN_ACCOUNT.currency, creditor_id },
  });
  return await new BankRun(stage, options, servers, double, { ...account, key }).play();
}

class BankRun {
  readonly #random: Random;
  readonly #client: RepeatingClient;
  readonly #clients: BankClients;
  readonly #carrier: BankCarrier;
  readonly #bank: BankDays;
  readonly #kills = new Tally(BANK_KILL_POINTS.map(({ name }) => name));
  /** Files that were imported by half. */
  readonly #faults: string[] = [];
  readonly #due: BankKillPoint[];
  #imports = 0;

  constructor(
    readonly stage: Stage,
    readonly options: BankOptions,
    readonly servers: readonly ApiServer[],
    readonly double: BankDouble,
    readonly account: { id: string; bridge_token: string; key: string },
  ) {
    const random = this.#random = randomOf(options.seed, "bank");
    // Every point comes before one of them comes again.
    this.#due = Array.from({ length: options.kills }, () => random.shuffled(BANK_KILL_POINTS))
      .flat();
    this.#client = new RepeatingClient(stage, servers, { repeats_429: true });
    this.#clients = new BankClients(stage.sql, this.#client, account.key, random);
    this.#bank = new BankDays(double, random);
    this.#carrier = new BankCarrier(stage, this.#client, account);
  }

  async play(): Promise<Verdict[]> {
    const { sql } = this.stage;
    const time = new FastTime(this.stage, { every_ms: EVERY_MS });
    const started = performance.now();
    const unsettled = await explained(
      sql,
      this.#live().then(() => untilAllWell(this.servers)).then(() =>
        untilNone(
          "every event has a result",
          () => sql`select from pay.provider_events where outcome is null limit 1`,
        )
      ),
    );
    await time.end();
    const seconds = (performance.now() - started) / 1_000;
    const books = await this.double.run("books", IBAN, {});
    const { payments, orders, saved_alone } = this.#clients;
    const rows = await readBankRows(sql, this.account.id);
    const states = Map.groupBy(Object.values(books.orders), (state) => state);
    const counts = [...states].map(([state, all]) => `${all.length} ${state}`).join(", ");
    return [{
      promise: "R14",
      says: `bank: ${payments.length} payments by bank transfer, ${orders.length} orders ` +
        `(${counts}), ${rows.mandates.size} mandates, ${books.entries.length} entries in ${this.#imports} files, ` +
        `${seconds.toFixed(1)} s`,
      breaches: [
        ...unsettled,
        ...this.#faults,
        ...this.#client.breaches,
        ...auditBank({ payments, orders, saved_alone, books, ...rows }),
        ...faultsOfServers(this.stage),
      ],
    }, this.#kills.judge("bank")];
  }

  async #live(): Promise<void> {
    const { days } = this.options;
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
    const pushed = await this.#clients.push(is_first ? 1 : PAYMENTS, is_first ? FUNDS : undefined);
    if (!is_first) await this.#killing(at("orders"), () => this.#clients.order());
    for (const text of await this.#export(at("export"))) {
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
    const { entries } = await this.double.run("books", IBAN, {});
    const [stored] = await untilRows(() =>
      this.stage.sql<{ count: number }[]>`select count(*)::int as count from pay.bank_entries`
    );
    if (stored!.count === entries.length) return;
    this.#faults.push(`${point.name}: ${stored!.count} of ${entries.length} entries are imported`);
  }

  async #import(file: string): Promise<void> {
    this.#imports++;
    await this.#carrier.importByBridge(file);
  }

  async #killing<T>(point: BankKillPoint | null, work: () => Promise<T>): Promise<T> {
    if (point === null) return await work();
    const killCommand: Kill = async (_, __, sql, pids) => {
      this.#carrier.killCommand();
      // Its statement would commit if it were alone.
      await cutStatements(sql, pids);
      return { recovered: Promise.resolve(), has_ended_lock: false };
    };
    const kills = { command: killCommand, servers: killServers, PostgreSQL: killDatabase };
    const locked = Promise.withResolvers<void>();
    const at = { ...point, wait_ms: STATEMENT_WAIT_MS };
    const killing = killAtStatement(
      ...[this.stage, this.servers, at, kills[point.victim], locked.resolve] as const,
    );
    const [done, is_hit] = await Promise.all([locked.promise.then(work), killing]);
    this.#due.splice(this.#due.indexOf(point), 1);
    if (is_hit) this.#kills.add(point.name);
    else this.#due.push(point);
    return done;
  }
}
