/**
 * Files of a bank over the bridge and with the command: faults that stop no other file, and texts
 * in which a bank names orders and payments in its own way. tests/connectors/bank_import_test.ts
 * has what follows from each file.
 */

import assert from "node:assert/strict";
import { databaseOf } from "../../apps/operator/operator_database.ts";
import { rejectionOf } from "../../shared/connectors/bank/reported_statuses.ts";
import { creditorReference } from "../../shared/core/creditor_reference.ts";
import { BankStore } from "../../shared/store/bank_store.ts";
import { addBankAccount, runBank, written } from "../support/bank/bank.ts";
import {
  bookedOf,
  type LiveAccount,
  PAYER,
  payingEntry,
  withLiveAccount,
} from "../support/bank/live_account.ts";
import {
  writeDetail,
  writeEntry,
  writeFile,
  writeReport,
} from "../support/connectors/bank_file.ts";
import type { TestService } from "../support/service/service.ts";

/** Entries, details and statuses of a file of a bridge. */
const BRIDGE_ROWS = 10_000;
const IN_GBP = { methods: "swift", iban: "GB29NWBK60161331926819", currency: "GBP" };

Deno.test("files of a bank", (t) => withLiveAccount((live) => importFiles(t, live)));

async function importFiles(t: Deno.TestContext, live: LiveAccount): Promise<void> {
  const { service, account, bridge, collect, exportOrders, importFile, post, request } = live;
  const { send, show } = live;
  const { sql } = service;

  await t.step("a file with more rows than a bridge may send", async () => {
    const entries = writeEntry().repeat(BRIDGE_ROWS + 1);
    const { http, error } = await importFile(writeFile([{ entries }], { kind: "054" }));
    assert.equal(http, 400);
    assert.match(error, /more than 10000 entries.* deno task bank import FILE --account pac_/);
  });
  await t.step("references of a payment at another account", async () => {
    await addBankAccount(service, IN_GBP);
    const body = { amount: 1000, currency: "GBP", method_kind: "swift" };
    const { id } = await post("payments", body);
    for (const length of [undefined, 12]) {
      const RmtInf = `<Ustrd>${creditorReference(id).slice(0, length)}</Ustrd>`;
      assert.equal((await send({ NtryDtls: writeDetail({ RmtInf }) })).booked, 1);
    }
    assert.equal((await show(id)).amount_received, 0);
  });
  await t.step("a reference that is cut off is that of the payment that waits", async () => {
    const payment = await request();
    const RmtInf = `<Ustrd>Invoice ${creditorReference(payment).slice(0, 12)}</Ustrd>`;
    // The payment waits no more when the second one comes.
    for (const exceptions of [0, 1]) {
      const BookgDt = `<Dt>2026-11-1${exceptions}</Dt>`;
      const result = await send({ BookgDt, NtryDtls: writeDetail({ RmtInf }) });
      assert.equal(result.exceptions, exceptions);
      assert.equal((await show(payment)).amount_received, 1000);
    }
  });
  await t.step("a name that no file has, and a type in capital letters", async () => {
    assert.equal((await bridge("GET", "files/%00")).status, 404);
    const entries = writeEntry({ AcctSvcrRef: "CAPITALS1" });
    const path = `/api-v1-payments/providers/${account.id}/statements`;
    const { status } = await service.call("POST", path, {
      ...{ key: null, body: writeFile([{ entries }], { kind: "054" }), unchecked: true },
      headers: {
        ...{ Authorization: `Bearer ${account.bridge_token}`, "Content-Type": "Application/XML" },
      },
    });
    assert.equal(status, 200);
  });
  await t.step("a command with a folder, a file with a late fault, and a good one", async () => {
    const folder = await Deno.makeTempDir();
    const files = [`${folder}/late.xml`, `${folder}/good.xml`];
    const one = writeFile([{ entries: writeEntry({ AcctSvcrRef: "BESIDE001" }) }], { kind: "054" });
    // More than what is stored at a time.
    const entries = writeEntry({ AcctSvcrRef: "LATE00001" }).repeat(120) +
      writeEntry({ Amt: null });
    await Deno.writeTextFile(files[0]!, writeFile([{ entries }], { kind: "054" }));
    await Deno.writeTextFile(files[1]!, one);
    const count = async () => (await sql`select from pay.bank_entries`).length;
    const before = await count();
    const { code, lines } = await runBank(service, account.id, ["import", folder, ...files]);
    await Deno.remove(folder, { recursive: true });
    const results = lines.map((line) => (line as { result: string }).result);
    assert.deepEqual([code, results], [1, ["refused", "refused", "applied"]]);
    assert.equal(await count(), before + 1);
  });
  await t.step("a batch is booked before its rejection is applied", async () => {
    const ids: [string, string] = [
      (await collect({ amount: 300 })).id,
      (await collect({ amount: 400 })).id,
    ];
    const file = await exportOrders();
    await findsRejected(sql, account.id, file, ids);
    // Then the bank rejects the order, and books the rest of the batch by its total, in one file.
    const batch = `<Btch><PmtInfId>${file}-1</PmtInfId><NbOfTxs>1</NbOfTxs></Btch>`;
    const entry = writeEntry({ Amt: "3.00 EUR", AcctSvcrRef: "REST00001", NtryDtls: batch });
    const booked = writeFile([{ entries: entry }], { kind: "054" }).replace(/<.xml.+>/, "");
    const report = writeReport(null, [[`${file}-1`], [written(ids[1]), "RJCT"]]);
    assert.equal((await importFile(`<Files>${report}${booked}</Files>`)).error, null);
    const ends = await Promise.all(ids.map(async (id) => (await show(id)).status));
    assert.deepEqual(ends, ["completed", "failed"]);
  });
  await t.step("a refund of money of several payers names its destination", async () => {
    const id = await request(3000);
    for (const iban of ["DE89370400440532013000", PAYER.iban, "DE89370400440532013000"]) {
      const RltdPties = "<Dbtr><Pty><Nm>Payer</Nm></Pty></Dbtr>" +
        `<DbtrAcct><Id><IBAN>${iban}</IBAN></Id></DbtrAcct>`;
      await send(payingEntry(id, 1000, { RltdPties }));
    }
    assert.equal((await show(id)).status, "completed");
    const { error } = await post(`payments/${id}/refund`, { amount: 1000 });
    assert.equal(error.param, "destination");
  });
  await t.step("an order that is not recorded yet leaves the others their file", async () => {
    const { id: waiting } = await collect({ amount: 600 });
    const forget = (due_on: string | null) =>
      sql.begin(async (sql) => {
        await sql`set local session_replication_role = replica`;
        await sql`update pay.payments set body = jsonb_set(body::jsonb, '{method,due_on}',
          ${JSON.stringify(due_on)}::text::jsonb)::text where id = ${waiting}`;
      });
    await forget(null);
    const { id: ready } = await collect();
    const { body } = await bridge("POST", "files");
    assert.match(JSON.stringify(body), /its due date is not recorded yet: export it later/);
    const [{ name }] = (await bridge("GET", "files")).body.data;
    const { text } = await bridge("GET", `files/${name}`);
    assert.ok(text.includes(written(ready)) && !text.includes(written(waiting)));
    await forget("2026-12-31");
  });
  const { entries, ...booked } = await bookedOf(service);
  assert.deepEqual(booked, { events: entries, ledger: entries });
}

/** Asserts that a rejection that is stored and not applied ends its order among those of a file. */
async function findsRejected(
  sql: TestService["sql"],
  account_id: string,
  file: string,
  [good, bad]: [string, string],
): Promise<void> {
  const stored = await sql.begin(async (transaction) => {
    const store = new BankStore(databaseOf(transaction as unknown as TestService["sql"]));
    const [order] = await store.findOrders(account_id, bad);
    await transaction`savepoint before`;
    const rejection = rejectionOf(account_id, order!, new Date().toISOString());
    await store.storeEvents(account_id, [rejection]);
    const found = await store.findOrders(account_id, file);
    await transaction`rollback to before`;
    return found.map(({ id, state, is_open }) => [id, state, is_open]);
  });
  assert.deepEqual(stored, [[good, "exported", true], [bad, "rejected", false]]);
}

Deno.test("a file is not imported without the keys for the details of its payers", () =>
  withLiveAccount(
    async ({ service, bridge }) => {
      const file = writeFile([{ entries: writeEntry() }], { kind: "054" });
      const { status, body } = await bridge("POST", "statements", file);
      assert.deepEqual([status, body.error.code], [503, "provider_not_configured"]);
      assert.match(body.error.message, /BANK_DETAILS_KEYS/);
      assert.equal((await service.sql`select from pay.bank_files`).length, 0);
    },
    undefined,
    { vault: null },
  ));
