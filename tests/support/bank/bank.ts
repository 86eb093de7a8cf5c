/** The merchant's bank in tests: its files, and the operator's commands. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { runBankCommand } from "../../../scripts/operator/bank.ts";
import { readBankCommand } from "../../../scripts/operator/bank_command.ts";
import { connectorsOf } from "../../../scripts/operator/operator_database.ts";
import { readProviderCommand } from "../../../scripts/operator/provider_command.ts";
import { runProviderCommand } from "../../../scripts/operator/providers.ts";
import type { TestService } from "../service/service.ts";
import { type CamtEntry, camtFile } from "./camt.ts";

/** The keys of bank details. */
export const KEYS = `k1:${btoa("k".repeat(32))}`;

/** The merchant's bank: it books transfers, and writes them into files. */
export class Bank {
  readonly booked: CamtEntry[] = [];
  readonly #folder: string;
  readonly #service: TestService;
  readonly account_id: string;
  readonly iban: string;
  readonly currency: string;
  #files = 0;

  constructor(
    service: TestService,
    folder: string,
    account: { account_id: string; iban: string; currency: string },
  ) {
    this.#service = service;
    this.#folder = folder;
    ({ account_id: this.account_id, iban: this.iban, currency: this.currency } = account);
  }

  /** Books an entry, and tells of it in a notification. */
  async book(entry: Omit<CamtEntry, "id">): Promise<void> {
    const booked = { id: `${this.currency}2026${this.booked.length}`, ...entry };
    this.booked.push(booked);
    const [result] = await this.import({ kind: "camt.054", entries: [booked] });
    assert.deepEqual([result!.result, result!.entries, result!.error], ["applied", 1, null]);
  }

  async import(
    file: { kind: "camt.053" | "camt.054"; entries: CamtEntry[]; opening_minor?: number },
  ): Promise<ImportResult[]> {
    const { iban, currency } = this;
    const id = `${currency}${++this.#files}`;
    return await this.importText(camtFile({ id, iban, currency, ...file }));
  }

  /** Imports a text as a file, as `deno task bank import` does. The service runs beside it. */
  async importText(text: string): Promise<ImportResult[]> {
    const path = join(this.#folder, `${this.currency}${++this.#files}.xml`);
    await Deno.writeTextFile(path, text);
    const { code, lines } = await this.run("import", path);
    const results = lines as ImportResult[];
    assert.equal(code, results.some(({ result }) => result === "refused") ? 1 : 0);
    return results;
  }

  /** Runs `deno task bank`. The service works beside it. */
  async run(...args: string[]): Promise<{ code: number; lines: object[]; said: string[] }> {
    const command = readBankCommand([...args, "--account", this.account_id, "--json"]);
    let printed = "";
    const said: string[] = [];
    const { sql, deps } = this.#service;
    const timer = setInterval(() => deps.provider_worker.notify(), 20);
    try {
      const code = await runBankCommand(command!, {
        sql,
        env: (name) => name === "BANK_DETAILS_KEYS" ? KEYS : undefined,
        now_ms: () => deps.clock(),
        print: (text) => printed += text,
        printMessage: (line) => said.push(line),
      });
      const lines = printed.split("\n").filter(Boolean).map((line) => JSON.parse(line));
      return { code, lines, said };
    } finally {
      clearInterval(timer);
    }
  }
}

/** The result of an import. */
interface ImportResult {
  result: string;
  entries: number;
  booked: number;
  exceptions: number;
  error: string | null;
}

/** Adds an account at a bank to the live environment, as the operator does. */
export async function addBankAccount(
  service: TestService,
  { methods, ...settings }: {
    methods: string;
    iban: string;
    currency: string;
    creditor_id?: string;
  },
): Promise<{ id: string; bridge_token: string }> {
  const { sql } = service;
  let printed = "";
  const args = ["add", "--connector", "bank", "--methods", methods, "--account", "one", "--json"];
  const texts = { bic: "COBADEFFXXX", holder_name: "Shop GmbH", ...settings };
  const sets = Object.entries(texts).flatMap(([name, value]) => ["--set", `${name}=${value}`]);
  const command = readProviderCommand([...args, ...sets]);
  assert.ok(command.action !== "help");
  await runProviderCommand(command, {
    sql,
    findConnector: connectorsOf(sql),
    env: () => undefined,
    baseUrl: () => Promise.reject(new Error("a bank sends no notifications")),
    print: (text) => printed += text,
    printMessage: () => {},
  });
  return JSON.parse(printed);
}
