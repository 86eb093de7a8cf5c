/** The merchant's bank in tests: the double, its files, and the operator's commands. */

import assert from "node:assert/strict";
import { basename, join } from "node:path";
import { operate, providerCommands, setFlags } from "../live/provider_commands.ts";
import type { TestService } from "../service/service.ts";
import type { BankBooks, BankDouble, BookingForm, Movement } from "./double.ts";

/** The keys of bank details. */
export const KEYS = `k1:${btoa("k".repeat(32))}`;

/** The banks of the accounts, by the country of their IBANs. */
const BICS: Readonly<Record<string, string>> = {
  NL: "ABNANL2A",
  DE: "COBADEFFXXX",
  GB: "NWBKGB2LXXX",
};

type Settings = Readonly<Record<string, string>>;

/** A file that the bank has taken. */
interface TakenFile {
  name: string;
  kind: string;
  text: string;
  orders: string[];
}

/** The bank account of a merchant, whose files go to and fro at once. */
export class Bank {
  #files = 0;
  /** Entries that a notification has told of. */
  #told = 0;

  private constructor(
    readonly service: TestService,
    readonly double: BankDouble,
    readonly folder: string,
    readonly account_id: string,
    readonly iban: string,
    readonly currency: string,
  ) {}

  static async open(
    service: TestService,
    double: BankDouble,
    folder: string,
    account_id: string,
    { iban, currency }: { iban: string; currency: string },
  ): Promise<Bank> {
    await double.run("open", iban, { bic: bicOf(iban), currency });
    return new Bank(service, double, folder, account_id, iban, currency);
  }

  /** Books a movement that belongs to no order. `notify` tells of it. */
  async move(movement: Movement): Promise<void> {
    await this.double.run("move", this.iban, { day: this.#today(), ...movement });
  }

  /** Exports the orders that wait, and gives the files to the bank. Returns the files. */
  async takeOrders(): Promise<TakenFile[]> {
    const { lines } = await this.run("export", "--out", join(this.folder, "out"));
    const printed = lines as { kind: string; file: string }[];
    return await Promise.all(printed.map(async ({ file, kind }) => ({
      name: basename(file),
      kind,
      ...await this.take(await Deno.readTextFile(file)),
    })));
  }

  /** Writes the recall of an order. Returns it. */
  async recallText(id: string, reason = "CUST"): Promise<string> {
    const folder = join(this.folder, "out");
    const { lines } = await this.run("recall", id, "--reason", reason, "--out", folder);
    return await Deno.readTextFile((lines as { file: string }[])[0]!.file);
  }

  /** Recalls an order, and gives the recall to the bank. Returns it. */
  async recall(id: string, reason = "CUST"): Promise<string> {
    return (await this.take(await this.recallText(id, reason))).text;
  }

  /** Gives a file to the bank. The service reads the reply. */
  async take(text: string): Promise<{ text: string; orders: string[] }> {
    const { orders, reply } = await this.double.run("take", this.iban, { text });
    if (reply !== null) await this.importGood(reply);
    return { text, orders: orders.map(({ id }) => id) };
  }

  /** Books payments, refunds or transfers by their ids. */
  async book(ids: string[], form: BookingForm = "single"): Promise<void> {
    const day = this.#today();
    await this.double.run("book", this.iban, { ids: ids.map(written), day, form });
  }

  /** Returns an order that is booked. */
  async giveBack(id: string, code: string): Promise<void> {
    await this.double.run("give_back", this.iban, { id: written(id), code, day: this.#today() });
  }

  /** Rejects orders of one file, as a whole or one by one. The service reads the report. */
  async reject(ids: string[], code: string, is_whole = false): Promise<void> {
    const given = { ids: ids.map(written), code, is_whole };
    await this.importGood(await this.double.run("reject", this.iban, given));
    await this.service.deps.provider_worker.notify();
  }

  /** Goes on with an order after the merchant's approval. */
  async release(id: string): Promise<void> {
    await this.double.run("release", this.iban, { ids: [written(id)] });
  }

  async books(): Promise<BankBooks> {
    return await this.double.run("books", this.iban, {});
  }

  /** Tells of the entries since the last notification. */
  async notify(): Promise<ImportResult> {
    const { entries } = await this.books();
    const result = await this.importGood(await this.write("camt.054", { since: this.#told }));
    this.#told = entries.length;
    return result;
  }

  /** Writes the entries from a number on; by default all of them. */
  async write(
    kind: "camt.053" | "camt.054",
    part: { since?: number; opening?: number } = {},
  ): Promise<string> {
    const message = `${kind}.001.08`;
    return (await this.double.run("write", this.iban, { message, ...part })).text;
  }

  /** Imports a text as a file, as `deno task bank import` does. The service runs beside it. */
  async import(text: string): Promise<ImportResult> {
    const path = join(this.folder, `${this.currency}${++this.#files}.xml`);
    await Deno.writeTextFile(path, text);
    const { code, lines: [line] } = await this.run("import", path);
    const result = line as ImportResult;
    assert.equal(code, result.result === "refused" ? 1 : 0);
    return result;
  }

  /** Imports a text whose file must be good. */
  async importGood(text: string): Promise<ImportResult> {
    const result = await this.import(text);
    assert.deepEqual([result.result, result.error], ["applied", null], text);
    return result;
  }

  /** Runs `deno task bank`. The service works beside it. */
  run(...args: string[]): ReturnType<typeof runBank> {
    return runBank(this.service, this.account_id, args);
  }

  #today(): string {
    return new Date(this.service.deps.clock()).toISOString().slice(0, 10);
  }
}

/** Runs `deno task bank` for an account. The service works beside it. */
export async function runBank(
  { sql, deps }: TestService,
  account_id: string,
  args: readonly string[],
  keys = KEYS,
): Promise<{ code: number; lines: object[]; said: string[] }> {
  const timer = setInterval(() => deps.provider_worker.notify(), 20);
  try {
    const { code, out, said } = await operate(
      sql,
      ["bank", ...args, "--account", account_id, "--json"],
      { BANK_DETAILS_KEYS: keys },
      { now_ms: () => deps.clock() },
    );
    const lines = out.split("\n").filter(Boolean).flatMap((line) => JSON.parse(line));
    return { code, lines, said };
  } finally {
    clearInterval(timer);
  }
}

/** Our id as bank files have it. */
export function written(id: string): string {
  return id.replace("_", "-");
}

/** The result of an import. */
interface ImportResult {
  result: string;
  entries: number;
  booked: number;
  exceptions: number;
  warnings: string[];
  error: string | null;
}

/** Adds an account at a bank to the live environment, as the operator does. */
export async function addBankAccount(
  service: Pick<TestService, "sql">,
  { methods, ...settings }: { methods: string; iban: string; currency: string } & Settings,
): Promise<{ id: string; bridge_token: string }> {
  const args = ["add", "--connector", "bank", "--methods", methods, "--account", "one", "--json"];
  const texts = { bic: bicOf(settings.iban), holder_name: "Shop GmbH", ...settings };
  return JSON.parse(await runProviders(service, args, texts));
}

/** Calls a route of the bridge, as the program of a bank account does. */
export function callBridge(
  service: TestService,
  { id, bridge_token }: { id: string; bridge_token: string },
  method: string,
  path: string,
  body?: string,
): ReturnType<TestService["call"]> {
  return service.call(method, `/api-v1-payments/providers/${id}/${path}`, {
    key: null,
    ...body !== undefined && { body },
    headers: { Authorization: `Bearer ${bridge_token}`, "Content-Type": "application/xml" },
    unchecked: true,
  });
}

/** Runs `deno task providers` with settings. Returns what it prints. */
export async function runProviders(
  { sql }: Pick<TestService, "sql">,
  args: readonly string[],
  settings: Settings = {},
): Promise<string> {
  const { run } = providerCommands(sql, { BANK_DETAILS_KEYS: KEYS });
  return await run(...args, ...setFlags(settings));
}

function bicOf(iban: string): string {
  return BICS[iban.slice(0, 2).toUpperCase()]!;
}
