/**
 * The cost of a bank's files. Beside other requests a file of a bridge stops the event loop only
 * for moments, and counts as a request. The rows that an import reads for an entry do not grow with
 * the entries that are stored already: only the total of a day is the sum of all its entries. The
 * memory of reading does not grow with the file.
 */

import assert from "node:assert/strict";
import type postgres from "postgres";
import { databaseOf } from "../../apps/operator/operator_database.ts";
import { importBankFile } from "../../shared/connectors/bank/import_bank_file.ts";
import { creditorReference } from "../../shared/core/creditor_reference.ts";
import { idGenerator } from "../../shared/core/ids.ts";
import { Vault } from "../../shared/core/vault.ts";
import type { ProviderAccount } from "../../shared/domain/providers/connector.ts";
import { BankStore } from "../../shared/store/bank_store.ts";
import { addBankAccount, callBridge, KEYS } from "../support/bank/bank.ts";
import { withLiveAccount } from "../support/bank/live_account.ts";
import { outputOf } from "../support/common/running_command.ts";
import {
  ACCOUNT,
  writeBalance,
  writeDetail,
  writeEntry,
  writeFile,
} from "../support/connectors/bank_file.ts";
import { createEnvironment } from "../support/database/api_keys.ts";
import { cloneDatabase, connect } from "../support/database/database.ts";
import { readsOfTransaction } from "../support/database/pages_read.ts";
import { addAccount } from "../support/database/provider_flow.ts";

/**
 * The longest stop is at most this part of the whole import. Without slices it is up to all of it.
 * Other programs can stop any import, so the best of some counts.
 */
const PARTS_MIN = 10;
const IMPORTS_MAX = 4;
const RATE = 5;

const newId = idGenerator(Date.now());
const remit = () =>
  writeDetail({
    RltdPties: "<Dbtr><Pty><Nm>Payer</Nm></Pty></Dbtr>" +
      "<DbtrAcct><Id><IBAN>NL91ABNA0417164300</IBAN></Id></DbtrAcct>",
    RmtInf: `<Ustrd>Invoice ${creditorReference(newId("pay_"))}</Ustrd>`,
  });
const LARGE_FILES: [name: string, file: (n: number) => string][] = [
  ["10 MB of empty elements", (n) => writeFile([{ head: "<a/>".repeat(2_600_000 + n) }])],
  ["an entry with 9 000 details", (n) => {
    const details = Array.from({ length: 9_000 }, remit).join("");
    const entry = { Amt: "90000.00 EUR", AcctSvcrRef: `LARGE202${n}`, NtryDtls: details };
    return writeFile([{ entries: writeEntry(entry) }], { kind: "054" });
  }],
];

const LIMITS = { rate_limit: RATE, account_rate_limit: 4 * RATE };
const IN_GBP = { methods: "swift", iban: "GB29NWBK60161331926819", currency: "GBP" };

Deno.test("files of a bridge beside other requests", (t) =>
  withLiveAccount(
    async ({ service, account: own }) => {
      const other = await addBankAccount(service, IN_GBP);
      // A 503 has stored nothing: the machine was too busy.
      const post = async (account: typeof own, file: string) => {
        for (;;) {
          const answer = await callBridge(service, account, "POST", "statements", file);
          if (answer.status !== 503) return answer;
        }
      };
      for (const [name, write] of LARGE_FILES) {
        await t.step(`${name}: the longest stop is a small part`, async () => {
          const shown: string[] = [];
          for (let n = 0; n < IMPORTS_MAX; n++) {
            const file = write(n);
            const { longest_ms, whole_ms } = await stopsDuring(async () => {
              const { status, body } = await post(own, file);
              assert.deepEqual([status, body.error], [200, null]);
            });
            if (longest_ms < whole_ms / PARTS_MIN) return;
            shown.push(`${Math.round(longest_ms)} of ${Math.round(whole_ms)} ms`);
          }
          assert.fail(shown.join(", "));
        });
      }
      await t.step("an account imports one file at a time, and others beside it", async () => {
        const file = LARGE_FILES[1]![1](IMPORTS_MAX);
        const responses = await Promise.all(
          [own, own, other].map((account, i) =>
            post(account, `${file.replace(ACCOUNT, i === 2 ? IN_GBP.iban : ACCOUNT)}<!-- -->`)
          ),
        );
        const codes = responses.map(({ status, body }) => body.error?.code ?? status);
        assert.deepEqual(codes.slice(0, 2).sort(), [200, "rate_limited"]);
        assert.equal(typeof codes[2], "number");
        const refused = responses.find(({ status }) => status === 429)!;
        assert.equal(refused.headers.get("Retry-After"), "1");
      });
      await t.step("its requests count as those of a live key", async () => {
        const statuses: number[] = [];
        const began = performance.now();
        while (statuses.length < 8 * RATE) {
          statuses.push((await callBridge(service, other, "GET", "files")).status);
        }
        const served = statuses.filter((status) => status === 200).length;
        // A burst, and what the time adds to it.
        const most = 2 * RATE + 1 + RATE * (performance.now() - began) / 1000;
        assert.ok(served > 0 && served <= most, `${statuses} of ${most}`);
        assert.ok(statuses.includes(429), `${statuses}`);
      });
    },
    { methods: "swift", iban: ACCOUNT, currency: "EUR" },
    LIMITS,
  ));

/** Runs something. Returns how long it took, and how long the event loop stood still at most. */
async function stopsDuring(
  run: () => Promise<void>,
): Promise<{ longest_ms: number; whole_ms: number }> {
  let longest_ms = 0;
  let last = performance.now();
  const look = () => {
    const now = performance.now();
    longest_ms = Math.max(longest_ms, now - last);
    last = now;
  };
  const timer = setInterval(look, 1);
  const began = performance.now();
  await run();
  look();
  clearInterval(timer);
  return { longest_ms, whole_ms: performance.now() - began };
}

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
  await using database = await cloneDatabase();
  await using sql = connect(database.url);
  const account = await makeAccount(sql);
  // Without statistics plans are at their worst. A session makes them with the rows that it
  // finds.
  await sql`alter table pay.bank_entries set (autovacuum_enabled = off)`;
  await sql`alter table pay.provider_events set (autovacuum_enabled = off)`;
  for (const [at, [form, day, entries, rows_max]] of FILES.entries()) {
    await t.step(`file ${at + 1}: ${form}, ${entries} of day ${day}`, async () => {
      await using session = connect(database.url);
      const text = write(form, day, entries, `R${day}-${entries}`);
      const rows = await readByImport(session, account, text);
      assert.ok(rows < rows_max, `${rows} rows`);
    });
  }
});

async function makeAccount(sql: postgres.Sql): Promise<ProviderAccount> {
  const environment_id = `env_${"0".repeat(26)}`;
  const settings = { iban: ACCOUNT, bic: "COBADEFFXXX", holder_name: "Shop GmbH", currency: "EUR" };
  await createEnvironment(sql, { id: environment_id, account: "one", livemode: true });
  const bank = { connector: "bank", settings } as const;
  const id = await addAccount(sql, environment_id, bank);
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

const PROGRAM = "tests/support/connectors/read_large_file.ts";
/** A process with a third of them has the heap that a reading needs. */
const RECORDS = 30_000;
/** 1.3 kB that stay in memory for each further record. */
const GROWTH_MB_MAX = 26;
/** A peak also has what the collector had not freed yet, so the least of some runs counts. */
const RUNS_MAX = 4;

async function measure(many: string, count: number): Promise<{ records: number; peak_mb: number }> {
  // The flags are those of the bank command (deno.json).
  const flags = "--v8-flags=--max-semi-space-size=2,--heap-growing-percent=50";
  const args = [Deno.execPath(), "run", "-A", "--no-check", flags, PROGRAM, many, `${count}`];
  return JSON.parse(await outputOf(args));
}

for (
  const [many, further] of [["entries", RECORDS + 3], ["details", 5], ["statuses", 1]] as const
) {
  Deno.test(`readBankFile() needs little memory for ${RECORDS} ${many}`, async () => {
    const third = await measure(many, RECORDS / 3);
    const peaks: number[] = [];
    do {
      const all = await measure(many, RECORDS);
      assert.equal(all.records, RECORDS + further);
      peaks.push(all.peak_mb);
    } while (Math.min(...peaks) - third.peak_mb >= GROWTH_MB_MAX && peaks.length < RUNS_MAX);
    assert.ok(Math.min(...peaks) - third.peak_mb < GROWTH_MB_MAX, `${third.peak_mb} to ${peaks}`);
  });
}
