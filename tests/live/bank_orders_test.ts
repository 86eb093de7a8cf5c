/**
 * Live orders to a bank: transfers, refunds and collections leave in files, each in one of them, and
 * the files of the bank bring their results. Nothing shows whole bank details.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { Vault } from "../../shared/core/vault.ts";
import { creditorReference } from "../../shared/core/creditor_reference.ts";
import { addBankAccount, Bank, KEYS } from "../support/bank/bank.ts";
import { camtFile, statusReport } from "../support/bank/camt.ts";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import { startService } from "../support/service/service.ts";

const OWN = "DE89370400440532013000";
const PAYEE = { iban: "FR1420041010050500013M02606", holder_name: "Zoë Müller" };
const PAYER = { name: "Jan Payer", iban: "NL91ABNA0417164300" };
const PAYMENTS = "/api-v1-payments/v1/payments";
const TRANSFERS = "/api-v1-payments/v1/transfers";

Deno.test("live orders to a bank", async (t) => {
  const folder = await Deno.makeTempDir();
  const service = await startService({ vault: Vault.read(KEYS) });
  const { sql, live: { text: key } } = service;
  const today = new Date().toISOString().slice(0, 10);
  const { id: account_id, bridge_token } = await addBankAccount(service, {
    methods: "sepa,swift",
    iban: OWN,
    currency: "EUR",
    creditor_id: "DE98ZZZ09999999999",
  });
  const bank = new Bank(service, folder, { account_id, iban: OWN, currency: "EUR" });
  const call = async (method: string, path: string, body?: object) => {
    const { status, body: response } = await service.call(method, path, {
      key,
      ...(body && { body, idempotency_key: crypto.randomUUID() }),
    });
    return { ...response, http: status };
  };
  const show = (id: string) =>
    call("GET", id.startsWith("tr_") ? `${TRANSFERS}/${id}` : `${PAYMENTS}/${id}`);
  const transfer = async (amount = 100) =>
    await call("POST", TRANSFERS, { amount, currency: "EUR", destination: { iban: PAYEE } });
  const collect = async (id: string, sequence = "recurring") =>
    await call("POST", PAYMENTS, {
      amount: 700,
      currency: "EUR",
      method_kind: "sepa",
      iban: { iban: PAYER.iban, holder_name: PAYER.name },
      mandate: { id, signed_at: "2026-01-31", sequence },
    });
  /** Exports, and returns the texts of the new files. */
  const exportNew = async () => {
    const out = join(folder, "out");
    const { lines } = await bank.run("export", "--out", out);
    return await Promise.all((lines as { file: string; kind: string }[]).map(async (line) => ({
      ...line,
      text: await Deno.readTextFile(line.file),
    })));
  };
  const written = (id: string) => id.replace("_", "-");
  try {
    let pushed = "";
    await t.step("money comes by bank transfer, so that there is some to send", async () => {
      const { id } = await call("POST", PAYMENTS, {
        amount: 10_000,
        currency: "EUR",
        method_kind: "sepa",
      });
      pushed = id;
      const text = creditorReference(id);
      await bank.book({ amount_minor: 10_000, booked_on: today, text, party: PAYER });
      assert.equal((await show(id)).status, "completed");
    });

    await t.step("a transfer waits, leaves in one file, and completes with its entry", async () => {
      const { id, status } = await transfer();
      assert.equal(status, "pending");
      const { lines } = await bank.run("list");
      assert.deepEqual(lines, [{
        id,
        kind: "transfer",
        state: "waiting",
        payee_check: null,
        amount_minor: 100,
        currency: "EUR",
      }]);
      const [file, ...others] = await exportNew();
      assert.deepEqual([file!.kind, others], ["sepa_transfers", []]);
      for (const part of [written(id), PAYEE.iban, "Zoe Mueller", ">1.00<"]) {
        assert.ok(file!.text.includes(part), `${part} in ${file!.text}`);
      }
      assert.deepEqual(await exportNew(), []);
      const debit = { amount_minor: -100, booked_on: today, end_to_end_id: written(id) };
      await bank.book(debit);
      assert.equal((await show(id)).status, "completed");
      await bank.book({ ...debit, amount_minor: 100, return_code: "AC04" });
      const { status: end, failure_code, return_code } = await show(id);
      assert.deepEqual([end, failure_code, return_code], ["failed", "bank_return", "AC04"]);
    });

    await t.step(
      "an order that waits can be cancelled or rejected, one that has left cannot",
      async () => {
        const [a, b, c] = [await transfer(), await transfer(), await transfer()];
        assert.equal((await call("POST", `${TRANSFERS}/${a.id}/cancel`, {})).status, "cancelled");
        assert.equal((await bank.run("reject", b.id)).code, 0);
        await service.deps.provider_worker.notify();
        assert.equal((await show(b.id)).status, "failed");
        const [file] = await exportNew();
        assert.ok(file!.text.includes(written(c.id)));
        assert.ok(!file!.text.includes(written(a.id)) && !file!.text.includes(written(b.id)));
        const late = await call("POST", `${TRANSFERS}/${c.id}/cancel`, {});
        assert.deepEqual([late.http, late.error.code], [402, "provider_refused"]);
        await assert.rejects(bank.run("reject", c.id), /deno task bank recall tr_/);
        const { lines: [recall] } = await bank.run("recall", c.id, "--out", join(folder, "out"));
        const text = await Deno.readTextFile((recall as { file: string }).file);
        assert.ok(text.includes("camt.055.001.05") && text.includes(written(c.id)));
      },
    );

    await t.step("a status report rejects orders, and tells of payees", async () => {
      const [a, b] = [await transfer(), await transfer()];
      const [file] = await exportNew();
      const message_id = /<MsgId>([^<]+)/.exec(file!.text)![1]!;
      const report = statusReport("R1", message_id, [
        { end_to_end_id: written(a.id), status: "RJCT", reason: "AC01" },
        { end_to_end_id: written(b.id), status: "RVNM" },
      ]);
      assert.equal((await bank.importText(report))[0]!.error, null);
      await service.deps.provider_worker.notify();
      const { status, failure_code, return_code } = await show(a.id);
      assert.deepEqual([status, failure_code, return_code], ["failed", "provider_refused", "AC01"]);
      const { lines } = await bank.run("list");
      const open = (lines as { id: string; next?: string }[]).find(({ id }) => id === b.id);
      assert.equal(open!.next, "approve");
      assert.equal((await bank.run("approve", b.id)).code, 0);
      await assert.rejects(bank.run("approve", b.id), /does not wait/);
      const unknown = statusReport("R2", "bf-00000000000000000000000000", [{ status: "RJCT" }]);
      assert.match((await bank.importText(unknown))[0]!.error!, /never exported/);
      const whole = statusReport("R3", message_id, [{ status: "RJCT", reason: "FF01" }]);
      assert.equal((await bank.importText(whole))[0]!.error, null);
      await service.deps.provider_worker.notify();
      assert.equal((await show(b.id)).return_code, "FF01");
    });

    await t.step("a refund goes back to the account that the statement names", async () => {
      const { id } = await call("POST", `${PAYMENTS}/${pushed}/refund`, { amount: 300 });
      const [file] = await exportNew();
      assert.ok(file!.text.includes(PAYER.iban) && file!.text.includes(written(id)));
      await bank.book({ amount_minor: -300, booked_on: today, end_to_end_id: written(id) });
      assert.equal((await show(pushed)).amount_refunded, 300);
    });

    await t.step("collections complete by their batch, and come back", async () => {
      const [a, b] = [await collect("M1"), await collect("M2")];
      assert.deepEqual([a.status, b.status], ["processing", "processing"]);
      const [file] = await exportNew();
      assert.equal(file!.kind, "collections");
      for (const part of [PAYER.iban, "M1", "DE98ZZZ09999999999", a.method.due_on]) {
        assert.ok(file!.text.includes(part), part);
      }
      const batch_id = /<PmtInfId>([^<]+)/.exec(file!.text)![1]!;
      await bank.book({ amount_minor: 1400, booked_on: today, batch_id });
      assert.deepEqual([(await show(a.id)).status, (await show(b.id)).status], [
        "completed",
        "completed",
      ]);
      await bank.book({
        amount_minor: -700,
        booked_on: today,
        end_to_end_id: written(a.id),
        return_code: "MD06",
      });
      const { status, return_code } = await show(a.id);
      assert.deepEqual([status, return_code], ["failed", "MD06"]);
    });

    await t.step("a bridge exports orders, and gets each file with the same bytes", async () => {
      const { id } = await transfer();
      const bridge = (method: string, path: string) =>
        service.call(method, `/api-v1-payments/providers/${account_id}/${path}`, {
          key: null,
          headers: { Authorization: `Bearer ${bridge_token}` },
          unchecked: true,
        });
      assert.deepEqual((await bridge("POST", "files")).body, { waiting: [] });
      const { body: { data } } = await bridge("GET", "files");
      const { name, sha256 } = data[0];
      const texts = await Promise.all(
        [1, 2].map(async () => (await bridge("GET", `files/${name}`)).text),
      );
      assert.ok(texts[0]!.includes(written(id)));
      assert.equal(texts[1], texts[0]);
      const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(texts[0]));
      assert.equal(new Uint8Array(hash).toHex(), sha256);
      assert.equal((await bridge("GET", "files/none.xml")).status, 404);
      assert.deepEqual(await exportNew(), [], "the bridge has got it");
      await bank.book({ amount_minor: -100, booked_on: today, end_to_end_id: written(id) });
    });

    await t.step("a return that comes before its debit waits for it", async () => {
      const { id } = await transfer();
      await exportNew();
      const debit = { amount_minor: -100, booked_on: today, end_to_end_id: written(id) };
      const back = { ...debit, id: "EUREARLY1", amount_minor: 100, return_code: "AC04" };
      bank.booked.push(back);
      const early = await service.call(
        "POST",
        `/api-v1-payments/providers/${account_id}/statements`,
        {
          key: null,
          body: camtFile({
            kind: "camt.054",
            iban: OWN,
            currency: "EUR",
            id: "E",
            entries: [back],
          }),
          headers: { Authorization: `Bearer ${bridge_token}`, "Content-Type": "application/xml" },
          unchecked: true,
        },
      );
      assert.deepEqual([early.status, early.body.booked], [200, 0]);
      assert.equal((await show(id)).status, "pending");
      await bank.book(debit);
      assert.equal((await show(id)).status, "completed");
      await service.setClock(Date.now() + 60_000);
      await service.deps.provider_worker.notify();
      await service.setClock(null);
      const { status, return_code } = await show(id);
      assert.deepEqual([status, return_code], ["failed", "AC04"]);
    });

    await t.step("of two exports at once, one has the order", async () => {
      const { id } = await transfer();
      const bridge = () =>
        service.call("POST", `/api-v1-payments/providers/${account_id}/files`, {
          key: null,
          headers: { Authorization: `Bearer ${bridge_token}` },
          unchecked: true,
        });
      const { ordersToExport } = service.deps.bank_store;
      // Both read before one of them stores.
      let readers = 0;
      const both = Promise.withResolvers<void>();
      service.deps.bank_store.ordersToExport = async (...given) => {
        const orders = await ordersToExport(...given);
        if (++readers === 2) both.resolve();
        await both.promise;
        return orders;
      };
      const responses = await Promise.all([bridge(), bridge()]);
      service.deps.bank_store.ordersToExport = ordersToExport;
      assert.deepEqual(responses.map(({ status }) => status).sort(), [200, 503]);
      const files = await exportNew();
      assert.deepEqual(files.map(({ text }) => text.includes(written(id))), [true]);
      await bank.book({ amount_minor: -100, booked_on: today, end_to_end_id: written(id) });
    });

    await t.step("an entry that repeats one is for the operator", async () => {
      const { id } = await transfer();
      await exportNew();
      const debit = { amount_minor: -100, booked_on: today, end_to_end_id: written(id) };
      await bank.book(debit);
      await bank.book(debit);
      const reported = await sql<{ reason: string }[]>`select * from pay.list_reported_events()`;
      assert.deepEqual(reported.length, 1);
      assert.match(reported[0]!.reason, /1\.00 EUR was booked for tr_.*completed already/);
      await sql`update pay.provider_events set dismissed_at = now(), dismissed_reason = 'seen'
        where exception is not null`;
    });

    await t.step("the database shows no whole IBAN, and the books agree", async () => {
      const tables = await sql<{ name: string }[]>`
        select tablename as name from pg_tables where schemaname = 'pay'`;
      for (const { name } of tables) {
        const rows = await sql`select t::text as row from ${sql(`pay.${name}`)} t`;
        for (const { row } of rows) {
          assert.ok(!row.includes(PAYEE.iban) && !row.includes(PAYER.iban), `${name}: ${row}`);
        }
      }
      await bank.import({ kind: "camt.053", entries: bank.booked, opening_minor: 0 });
      await assertSilent(sql);
    });
  } finally {
    await service.close();
    await Deno.remove(folder, { recursive: true });
  }
});
