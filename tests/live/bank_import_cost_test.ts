/**
 * The rows that an import reads for an entry do not grow with the entries that are stored already.
 * Only the total of a day is the sum of all its entries.
 */

import assert from "node:assert/strict";
import postgres from "postgres";
import { databaseOf } from "../../apps/operator/operator_database.ts";
import { importBankFile } from "../../shared/connectors/bank/import_bank_file.ts";
import { Vault } from "../../shared/core/vault.ts";
import type { ProviderAccount } from "../../shared/domain/providers/connector.ts";
import { BankStore } from "../../shared/store/bank_store.ts";
import { KEYS } from "../support/bank/bank.ts";
import {
  ACCOUNT,
  writeBalance,
  writeDetail,
  writeEntry,
  writeFile,
} from "../support/connectors/bank_file.ts";
import { createEnvironment } from "../support/database/api_keys.ts";
import { cloneDatabase } from "../support/database/database.ts";
import { readsOfTransaction } from "../support/database/pages_read.ts";
import { addAccount } from "../support/database/provider_flow.ts";

const DAY_MS = 86_400_000;
/** Entries of a large file. */
const MANY = 3_000;

/** `total`: a notification of the sums of several payments. `details`: with these payments. */
type Form = "total" | "details" | "statement";

/** Files in this order, and the rows of tables and indexes that the import of each may read. */
const FILES: [form: Form, day: number, entries: number, rows_max: number][] = [
  ["statement", 1, MANY, 20 * MANY],
  ["total", 2, MANY, 20 * MANY],
  // Beside many entries that no statement has.
  ["total", 3, 1, 200],
  ["details", 2, MANY, 20 * MANY],
  ["statement", 2, MANY, 20 * MANY],
  // The sum of the day, also of former versions of its rows.
  ["details", 2, 1, 4 * MANY],
];

Deno.test("the rows that an import reads", async (t) => {
  const database = await cloneDatabase();
  const open = () => postgres(database.url, { max: 1, onnotice: () => {} });
  const sql = open();
  try {
    const account = await makeAccount(sql);
    // Without statistics plans are at their worst. A session makes them with the rows that it finds.
    await sql`alter table pay.bank_entries set (autovacuum_enabled = off)`;
    await sql`alter table pay.provider_events set (autovacuum_enabled = off)`;
    for (const [at, [form, day, entries, rows_max]] of FILES.entries()) {
      await t.step(`file ${at + 1}: ${form}, ${entries} of day ${day}`, async () => {
        const session = open();
        const text = write(form, day, entries, `R${day}-${entries}`);
        const rows = await readByImport(session, account, text);
        await session.end();
        assert.ok(rows < rows_max, `${rows} rows`);
      });
    }
  } finally {
    await sql.end();
    await database.drop();
  }
});

async function makeAccount(sql: postgres.Sql): Promise<ProviderAccount> {
  const environment_id = `env_${"0".repeat(26)}`;
  const settings = { iban: ACCOUNT, bic: "COBADEFFXXX", holder_name: "Shop GmbH", currency: "EUR" };
  await createEnvironment(sql, { id: environment_id, account: "one", livemode: true });
  const bank = { connector: "bank", settings };
  const id = await addAccount(sql, environment_id, { ...bank, method_kinds: ["sepa"] });
  return { id, environment_id, ...bank, secret: null, notification_secrets: [] };
}

/** Imports a file in batches. Returns the rows that it has read. */
async function readByImport(
  sql: postgres.Sql,
  account: ProviderAccount,
  text: string,
): Promise<number> {
  const sha256 = crypto.randomUUID().replaceAll("-", "").repeat(2);
  const bytes = ReadableStream.from([new TextEncoder().encode(text)]);
  return await sql.begin(async (transaction) => {
    const store = new BankStore(databaseOf(transaction as unknown as postgres.Sql));
    const before = await readsOfTransaction(transaction);
    await store.beginFile(account.id, sha256, "file");
    const source = { bytes, bytes_max: text.length, rows_max: Infinity, sha256 };
    const imported = await importBankFile(account, source, Vault.read(KEYS), {
      storeRows: (rows) => store.storeRows(account.id, sha256, rows),
      findOrders: () => Promise.resolve([]),
      findReferences: (beginnings) => store.findReferences(account.id, beginnings),
      readPayers: () => Promise.resolve([]),
    });
    await store.endFile(account.id, sha256, imported);
    const after = await readsOfTransaction(transaction);
    return after.rows - before.rows;
  });
}

/** Writes a file whose entries have references and amounts of their own. */
function write(form: Form, day: number, count: number, reference: string): string {
  const date = new Date(Date.now() - day * DAY_MS).toISOString().slice(0, 10);
  const entries = Array.from({ length: count }, (_, at) => {
    const amount = `${at + 1}.00 EUR`;
    return writeEntry({
      Amt: amount,
      BookgDt: `<Dt>${date}</Dt>`,
      ValDt: `<Dt>${date}</Dt>`,
      AcctSvcrRef: `${reference}-${at}`,
      NtryDtls: form === "total"
        ? "<Btch><NbOfTxs>2</NbOfTxs></Btch>"
        : writeDetail({ Amt: amount }),
    });
  }).join("");
  if (form !== "statement") return writeFile([{ entries }], { kind: "054" });
  const head = writeBalance("OPBD", "0.00", "CRDT", date) +
    writeBalance("CLBD", `${count * (count + 1) / 2}.00`, "CRDT", date);
  return writeFile([{ head, entries }]);
}
