/**
 * The proof of imports and exports: a statement with 1 % of every trouble is applied exactly once,
 * and each payout is in exactly one file, although the command or PostgreSQL is killed at every
 * step. `BANK_PAYMENTS` sets the number of payments of the statement, for its time and memory.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { callApi } from "../chaos/harness/client.ts";
import { type ApiServer, setStage, type Stage, untilWell } from "../chaos/harness/stage.ts";
import { formatDecimal } from "../../shared/core/currency.ts";
import { idGenerator } from "../../shared/core/ids.ts";
import { KEYS, written } from "../support/bank/bank.ts";
import {
  holdTable,
  type RunningCommand,
  startBankCommand,
} from "../support/bank/killed_command.ts";
import { euros, orderEntry, payingEntry } from "../support/bank/live_account.ts";
import { until } from "../support/common/until.ts";
import {
  ACCOUNT,
  writeBalance,
  writeDetail,
  writeEntry,
  writeFile,
} from "../support/connectors/bank_file.ts";
import { assertSilent } from "../support/database/invariant_breaches.ts";

const PAYMENTS = Number(Deno.env.get("BANK_PAYMENTS") ?? 200);
const TRANSFERS = Math.max(20, PAYMENTS / 50);
/** Requests at a time. */
const CLIENTS = 24;
/** The bound of docs/going-live/bank.md for an import. */
const GROWTH_MB_MAX = 40;
const APPLIED_DEADLINE_MS = 60_000 + 30 * PAYMENTS;
const TODAY = new Date().toISOString().slice(0, 10);

const VICTIMS = ["the command", "PostgreSQL"] as const;
type Victim = typeof VICTIMS[number];
type LockMode = "exclusive" | "access exclusive";
/** Pays for the transfers. */
const FUNDS = TRANSFERS * 1_000;

/** The steps of an import, and the table that it writes next. */
const IMPORT_STEPS = {
  "the file is begun": "pay.bank_files",
  "entries are stored": "pay.bank_entries",
  "their events are stored": "pay.provider_events",
  "payers are stored": "pay.bank_details",
  "the totals are stored": "pay.provider_totals",
};

/** The steps of an export. */
const EXPORT_STEPS: Record<string, (proof: Proof) => Promise<RunningCommand>> = {
  "files are stored": (proof) => proof.until("pay.bank_exports", () => proof.export()),
  "files are written": (proof) => proof.exportUntil("access exclusive"),
  "files are noted": (proof) => proof.exportUntil("exclusive"),
};

/** An entry, and its amount: negative if money leaves. */
interface ProofEntry {
  amount: number;
  text: string;
}

/** The result of a payment: its status, the amount that came, and provider events for people. */
type Result = [status: string, received: number, reported: number];

function entry(amount: number, members: Record<string, string | null>): ProofEntry {
  const text = writeEntry({
    ...{ Amt: euros(Math.abs(amount)), CdtDbtInd: amount < 0 ? "DBIT" : "CRDT" },
    ...{ BookgDt: `<Dt>${TODAY}</Dt>`, ValDt: `<Dt>${TODAY}</Dt>`, ...members },
  });
  return { amount, text };
}

/** Makes the members of a payment's entry, or of the entry of a number beside it. */
type Entries = (amount: number, at?: number, members?: Record<string, string | null>) => ProofEntry;
/** The entries of the statement, and those of a notification `before` or `after` it. */
type Trouble = (amount: number, pays: Entries, other: Entries) => [
  result: Result,
  stated: ProofEntry[],
  noted?: { before?: ProofEntry; after?: ProofEntry },
];

const DETAIL = { NtryDtls: writeDetail({ Amt: "3.33 EUR" }) };
const CHARGE = { BkTxCd: "<Prtry><Cd>NCHG</Cd></Prtry>" };

/** 1 % of the payments have each of these. */
const TROUBLES: Record<string, Trouble> = {
  less: (amount, pays) => [["pending", amount - 1, 0], [pays(amount - 1)]],
  more: (amount, pays) => [["completed", amount + 7, 1], [pays(amount + 7)]],
  twice: (amount, pays) => [["completed", 2 * amount, 1], [pays(amount), pays(amount, 1)]],
  late: (amount, pays) => [["failed", amount, 1], [pays(amount)]],
  "no reference": (amount, _, other) => [["pending", 0, 1], [other(amount)]],
  "unknown debit": (amount, pays, other) => [
    ["completed", amount, 1],
    [pays(amount), other(-99, 1)],
  ],
  charges: (amount, pays, other) => [
    ["completed", amount, 0],
    [pays(amount), other(-150, 1, CHARGE)],
  ],
  reversal: (amount, pays, other) => [
    ["completed", amount, 2],
    [pays(amount), other(333, 1, DETAIL), other(-333, 2, { ...DETAIL, RvslInd: "true" })],
  ],
  "without a number": (amount, pays) => [
    ["completed", amount, 0],
    [pays(amount, 0, { AcctSvcrRef: null })],
  ],
  "known before": (amount, pays) => [
    ["completed", amount, 0],
    [pays(amount)],
    { before: pays(amount) },
  ],
  "details later": (amount, pays, other) => [
    ["completed", amount, 0],
    [other(amount)],
    { after: pays(amount) },
  ],
};
const NAMES = Object.keys(TROUBLES);

/** The entries of payments in the three files of the bank, and the results of the payments. */
function entriesOf(payments: readonly { id: string; amount: number }[]) {
  const [before, stated, after]: ProofEntry[][] = [[], [], []];
  const results = new Map<string, Result>();
  for (const [at, { id, amount }] of payments.entries()) {
    const other: Entries = (amount, n = 0, members) =>
      entry(amount, { AcctSvcrRef: `EUR2026${at}-${n}`, ...members });
    const pays: Entries = (amount, n, members) =>
      other(amount, n, { ...payingEntry(id, amount), ...members });
    const trouble: Trouble = TROUBLES[NAMES[at % 100] ?? ""] ??
      (() => [["completed", amount, 0], [pays(amount)]]);
    const [result, entries, noted = {}] = trouble(amount, pays, other);
    results.set(id, result);
    stated!.push(...entries);
    if (noted.before) before!.push(noted.before);
    if (noted.after) after!.push(noted.after);
  }
  return { before: before!, stated: stated!, after: after!, results };
}

Deno.test({
  name: `a statement of ${PAYMENTS} payments and ${TRANSFERS} payouts, with kills at every step`,
  ignore: Deno.build.os !== "linux",
  fn: async (t) => {
    const stage = await setStage();
    try {
      await prove(t, await Proof.open(stage));
    } finally {
      await stage.end();
    }
  },
});

async function prove(t: Deno.TestContext, proof: Proof): Promise<void> {
  const { sql } = proof.stage;
  let one_mb = 0;
  await t.step("a file with one entry brings the funds", async () => {
    const id = await proof.create(FUNDS);
    const funding = entry(FUNDS, { ...payingEntry(id, FUNDS), AcctSvcrRef: "EUR2026FUNDS" });
    one_mb = (await proof.importGood(await proof.write("054", [funding]))).peak_mb;
    proof.entries.push(funding);
  });

  await t.step("each payout is in exactly one file", async () => {
    const steps = Object.entries(EXPORT_STEPS);
    for (const [at, [name, step]] of steps.entries()) {
      const victim = VICTIMS[at % 2]!;
      const ids = await proof.times(Math.ceil(TRANSFERS / steps.length), () => proof.transfer());
      proof.transfers.push(...ids);
      const command = await step(proof);
      await proof.kill(victim, command);
      const { code, errors } = await proof.export().ended;
      assert.equal(code, 0, `${name}, ${victim}: ${errors}`);
    }
    await proof.checkExports();
  });

  const created = await proof.times(PAYMENTS, (at) => proof.create(1_000 + at));
  const payments = created.map((id, at) => ({ id, amount: 1_000 + at }));
  await proof.expire(payments.filter((_, at) => NAMES[at % 100] === "late").map(({ id }) => id));
  const { before, stated, after, results } = entriesOf(payments);
  for (const [at, id] of proof.transfers.entries()) {
    stated.push(entry(-100, { ...orderEntry(id, -100), AcctSvcrRef: `EUR2026OUT-${at}` }));
    if (at % 2 === 0) continue;
    const back = orderEntry(id, 100, { RtrInf: "<Rsn><Cd>AC04</Cd></Rsn>" });
    stated.push(entry(100, { ...back, AcctSvcrRef: `EUR2026BACK-${at}` }));
  }
  proof.entries.push(...stated);
  const path = await proof.write("053", proof.entries, true);

  await t.step("a killed import has stored nothing", async () => {
    await proof.importGood(await proof.write("054", before));
    const count = async () => {
      const [row] = await sql`select (select count(*) from pay.bank_files)::int as files,
        (select count(*) from pay.bank_entries)::int as entries`;
      return { ...row };
    };
    const stored = await count();
    for (const [at, [name, table]] of Object.entries(IMPORT_STEPS).entries()) {
      const victim = VICTIMS[at % 2]!;
      await proof.kill(victim, await proof.until(table, () => proof.import(path)));
      assert.deepEqual(await count(), stored, `${name}, ${victim}`);
    }
  });

  await t.step(
    "the next import works at once, and is applied although all are killed",
    async () => {
      const command = proof.import(path);
      await proof.untilImported(path);
      for (const kill of [() => proof.kill("PostgreSQL"), () => proof.server.restart()]) {
        await new Promise((resolve) => setTimeout(resolve, 200));
        await kill();
        await untilWell(proof.server);
      }
      await proof.untilApplied();
      const { peak_mb } = await command.ended;
      const again = await proof.importGood(path);
      assert.match(again.output, /"unchanged"/);
      await proof.importGood(await proof.write("054", after));
      await proof.untilApplied();
      assert.ok(peak_mb - one_mb <= GROWTH_MB_MAX, `${one_mb} MB, then ${peak_mb} MB`);
    },
  );

  await t.step("each payment and payout has its result, once", async () => {
    const found = await sql<{ id: string; status: string; received: number; captures: number }[]>`
      select p.id, p.status, coalesce((p.body::json ->> 'amount_received')::int, 0) as received,
        (select count(*)::int from pay.ledger_movements m
          where m.subject_id = p.id and m.kind = 'capture') as captures
      from pay.payments p`;
    const shown = new Map(found.map(({ id, ...payment }) => [id, payment]));
    for (const [id, [status, received]] of results) {
      const captures = status === "completed" ? 1 : 0;
      assert.deepEqual({ ...shown.get(id) }, { status, received, captures }, id);
    }
    const transfers = await sql<{ id: string; status: string }[]>`
      select id, status from pay.transfers`;
    const ends = new Map(transfers.map(({ id, status }) => [id, status]));
    for (const [at, id] of proof.transfers.entries()) {
      assert.equal(ends.get(id), at % 2 === 0 ? "completed" : "failed");
    }
  });

  await t.step("the ledger is the statement", async () => {
    const closing = sumOf(proof.entries);
    const [sums] = await sql`select
      (select count(*) from pay.bank_entries)::int as entries,
      (select sum(amount_minor) from pay.bank_entries)::float8 as bank,
      (select sum(booked_minor) from pay.provider_events)::float8 as booked,
      (select count(*) from pay.provider_events
        where exception is not null or outcome in ('unmatched', 'exception'))::int as reported`;
    const reported = [...results.values()].reduce((sum, [, , reported]) => sum + reported, 0);
    const wanted = { entries: proof.entries.length, bank: closing, booked: closing, reported };
    assert.deepEqual({ ...sums }, wanted);
    await sql`update pay.provider_events set dismissed_at = now(), dismissed_reason = 'seen'
      where exception is not null or outcome = 'unmatched'`;
    await assertSilent(sql);
    assert.deepEqual(proof.stage.server_faults, []);
  });
}

/** The product and its bank. */
class Proof {
  readonly stage: Stage;
  readonly server: ApiServer;
  /** The entries of the statement. */
  readonly entries: ProofEntry[] = [];
  readonly transfers: string[] = [];
  readonly #key: string;
  readonly #account_id: string;
  readonly #out: string;
  readonly #held: { release(): Promise<void> }[] = [];
  #files = 0;

  private constructor(stage: Stage, server: ApiServer, key: string, account_id: string) {
    this.stage = stage;
    this.server = server;
    this.#key = key;
    this.#account_id = account_id;
    this.#out = join(stage.folder, "out");
  }

  static async open(stage: Stage): Promise<Proof> {
    const { environment_id, key } = await stage.makeLiveEnvironment("proof");
    const id = idGenerator(Date.now())("pac_");
    const settings = {
      iban: ACCOUNT,
      bic: "COBADEFFXXX",
      holder_name: "Shop GmbH",
      currency: "EUR",
    };
    await stage.sql`select pay.add_provider_account(${id}, ${environment_id}, 'bank', ${["sepa"]},
      ${JSON.stringify(settings)}, null, ${[]})`;
    const server = await stage.startServer({ bank_details_keys: KEYS });
    await untilWell(server);
    return new Proof(stage, server, key, id);
  }

  /** Creates a payment by bank transfer. */
  create(amount: number): Promise<string> {
    return this.#post("payments", { amount, currency: "EUR", method_kind: "sepa" });
  }

  transfer(): Promise<string> {
    const iban = { iban: "FR1420041010050500013M02606", holder_name: "Zoe Payee" };
    return this.#post("transfers", { amount: 100, currency: "EUR", destination: { iban } });
  }

  /** Does something many times, by some clients. Returns the results in order. */
  async times<T>(count: number, make: (at: number) => Promise<T>): Promise<T[]> {
    const results: T[] = [];
    let next = 0;
    await Promise.all(Array.from({ length: CLIENTS }, async () => {
      for (let at = next++; at < count; at = next++) results[at] = await make(at);
    }));
    return results;
  }

  /** Lets the time of payments end. */
  async expire(ids: string[]): Promise<void> {
    const { sql } = this.stage;
    await sql`update pay.provider_operations set next_attempt_at = now()
      where op = 'abandon' and subject_id = any(${ids})`;
    await until("the late payments have failed", async () => {
      const [row] = await sql`select count(*)::int as count from pay.payments
        where id = any(${ids}) and status = 'failed'`;
      return row!.count === ids.length;
    }, APPLIED_DEADLINE_MS);
  }

  /** Writes a file of the bank. Returns its path. */
  async write(
    kind: "053" | "054",
    entries: readonly ProofEntry[],
    has_balances = false,
  ): Promise<string> {
    const path = join(this.stage.folder, `${kind}-${++this.#files}.xml`);
    const balances = writeBalance("OPBD", "0.00", "CRDT", TODAY) +
      writeBalance("CLBD", formatDecimal(sumOf(entries), "EUR"), "CRDT", TODAY);
    const texts = entries.map(({ text }) => text).join("");
    const statement = { head: has_balances ? balances : "", entries: texts };
    await Deno.writeTextFile(path, writeFile([statement], { kind }));
    return path;
  }

  import(path: string): RunningCommand {
    return this.#start("import", path);
  }

  async importGood(path: string) {
    const result = await this.import(path).ended;
    assert.equal(result.code, 0, result.output + result.errors);
    return result;
  }

  /** Runs a command until it waits to write a table. */
  async until(table: string, start: () => RunningCommand): Promise<RunningCommand> {
    const held = await this.hold(table);
    const command = start();
    await held.untilAwaited();
    return command;
  }

  /** Resolves when a file is imported, and its entries wait for the service. */
  async untilImported(path: string): Promise<void> {
    const name = path.split("/").at(-1)!;
    await until(`${name} is imported`, async () => {
      const [row] = await this.stage.sql`select from pay.bank_files where name = ${name}`;
      return row !== undefined;
    }, APPLIED_DEADLINE_MS);
  }

  async untilApplied(): Promise<void> {
    await until("all events are applied", async () => {
      // The leases of a killed server end sooner, and so does the wait of a return for its debit.
      await this.stage.sql`update pay.provider_events set leased_until = now() + interval '1 second'
        where leased_until > now() + interval '1 second'`;
      const [row] = await this.stage.sql`select exists (
        select from pay.provider_events where outcome is null) as is_open`;
      return !row!.is_open;
    }, APPLIED_DEADLINE_MS);
  }

  export(): RunningCommand {
    return this.#start("export", "--out", this.#out);
  }

  #start(...args: string[]): RunningCommand {
    return startBankCommand(this.stage, ...args, "--account", this.#account_id, "--json");
  }

  /** Locks a table until the next kill. */
  async hold(table: string, mode: LockMode = "exclusive", is_queued = false) {
    const held = await holdTable(this.stage, table, mode, is_queued);
    this.#held.push(held);
    return held;
  }

  /**
   * Exports until the files are stored: with the stronger lock nothing reads them, with the weaker one
   * they are written, and nothing notes it.
   */
  async exportUntil(mode: LockMode): Promise<RunningCommand> {
    const orders = await holdTable(this.stage, "pay.bank_orders");
    const command = this.export();
    await orders.untilAwaited();
    const exports = await this.hold("pay.bank_exports", mode, true);
    await orders.release();
    await exports.untilAwaited();
    return command;
  }

  /** Kills PostgreSQL or the command, and waits until the database is well again. */
  async kill(victim: Victim, command?: RunningCommand): Promise<void> {
    const { postgres } = this.stage;
    const { pid } = postgres;
    if (victim === "PostgreSQL") {
      Deno.kill(pid, "SIGKILL");
      await until("PostgreSQL runs again", () => postgres.pid !== pid);
    } else {
      command!.kill();
    }
    const ended = await command?.ended;
    assert.notEqual(ended?.code, 0);
    await this.#release();
    await untilWell(this.server);
    await until("the command's connection has ended", async () => {
      const rows = await this.stage.sql`select from pg_stat_activity
        where usename = session_user and pid <> pg_backend_pid() and state = 'active'
          and backend_type = 'client backend'`.catch(() => null);
      return rows?.length === 0;
    });
  }

  async #release(): Promise<void> {
    for (const held of this.#held.splice(0)) await held.release();
  }

  /** Asserts that each payout is in one file, which has the bytes of its export. */
  async checkExports(): Promise<void> {
    const before = await this.#outFiles();
    const { code, output } = await this.export().ended;
    assert.deepEqual([code, output], [0, ""]);
    assert.deepEqual(await this.#outFiles(), before);
    const exports = await this.stage.sql<{ name: string; sha256: string }[]>`
      select name, sha256 from pay.bank_exports order by name`;
    const hashes = await Promise.all([...before].map(async ([name, text]) => {
      const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
      return { name, sha256: new Uint8Array(hash).toHex() };
    }));
    assert.deepEqual(hashes, exports.map((row) => ({ ...row })));
    const ids = [...before.values()].flatMap((text) =>
      [...text.matchAll(/<EndToEndId>([^<]+)/g)].map(([, id]) => id!)
    );
    assert.deepEqual(ids.sort(), this.transfers.map(written).sort());
  }

  async #outFiles(): Promise<Map<string, string>> {
    const names = await Array.fromAsync(Deno.readDir(this.#out), ({ name }) => name);
    const files = new Map<string, string>();
    for (const name of names.filter((name) => name.endsWith(".xml")).sort()) {
      files.set(name, await Deno.readTextFile(join(this.#out, name)));
    }
    return files;
  }

  async #post(path: string, body: object): Promise<string> {
    const url = `/api-v1-payments/v1/${path}`;
    const { status, text, body: made } = await callApi(this.server.base_url, this.#key, url, {
      body,
    });
    assert.ok(status === 201 || status === 200, text);
    return made.id;
  }
}

function sumOf(entries: readonly ProofEntry[]): number {
  return entries.reduce((sum, { amount }) => sum + amount, 0);
}
