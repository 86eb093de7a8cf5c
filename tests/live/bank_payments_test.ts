/**
 * Live payments by bank transfer: the bank's files say what the payer has sent (contract §2). The
 * results are those of a sandbox, each entry is booked once whatever files have it, and the ledger
 * has every movement of the statement. Of entries that name nothing the operator sees what they
 * are, matches them with payments, whose payers get refunds, and has rules for the account's own
 * business.
 */

import { checkBooks } from "../../apps/operator/check_books.ts";
import { renderEvents } from "../../apps/operator/provider_work_table.ts";
import assert from "node:assert/strict";
import { creditorReference } from "../../shared/core/creditor_reference.ts";
import { Vault } from "../../shared/core/vault.ts";
import { addBankAccount, Bank, callBridge, KEYS, runProviders } from "../support/bank/bank.ts";
import { BankDouble, no_bank_double } from "../support/bank/double.ts";
import { bankCase, type LiveBank, PAYER } from "../support/bank/live_account.ts";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import { payByTransfer, type TransferWorld } from "../support/http/bank_transfer_case.ts";
import { operate, providerCommands } from "../support/live/provider_commands.ts";
import { type ServedService, withServedService } from "../support/service/served_service.ts";

const DAY_MS = 24 * 3_600_000;
const EURO = "DE89370400440532013000";
const DOLLAR = "GB29NWBK60161331926819";

Deno.test({
  name: "live payments by bank transfer",
  ignore: no_bank_double,
  fn: async (t) => {
    const folder = await Deno.makeTempDir();
    const double = new BankDouble();
    try {
      await withServedService((served) => payLive(t, served, double, folder), {
        vault: Vault.read(KEYS),
      });
    } finally {
      await double.close();
      await Deno.remove(folder, { recursive: true });
    }
  },
});

async function payLive(
  t: Deno.TestContext,
  { service, base_url }: ServedService,
  double: BankDouble,
  folder: string,
): Promise<void> {
  let at = Date.now();
  await service.setClock(at);
  const euro = { methods: "sepa,swift", iban: EURO, currency: "EUR" };
  const dollar = { methods: "swift", iban: DOLLAR, currency: "USD" };
  const banks = new Map<string, Bank>();
  const tokens = new Map<string, string>();
  for (const settings of [euro, dollar]) {
    const { id: account_id, bridge_token } = await addBankAccount(service, settings);
    tokens.set(account_id, bridge_token);
    banks.set(settings.currency, await Bank.open(service, double, folder, account_id, settings));
  }
  const bank = banks.get("EUR")!;
  const world: TransferWorld = {
    base_url,
    api_key: service.live.text,
    async book({ id, currency }, amount) {
      // As people type it, over the end of a line.
      const reference = creditorReference(id).toLowerCase().replace(/(.{4})/g, "$1 ");
      const text = `Invoice 17, ${reference.slice(0, 9)}\n${reference.slice(9)} thank you`;
      const bank = banks.get(currency)!;
      await bank.move({ amount, text });
      assert.equal((await bank.notify()).entries, 1);
    },
    expire: async () => {
      // Statements of five more days can have what was booked in time.
      await service.setClock(at += 19 * DAY_MS);
      await service.deps.provider_worker.notify();
    },
  };
  await t.step("money that a statement reports after the time of the payer", async () => {
    const body = { amount: 1000, currency: "EUR", method_kind: "sepa" };
    const { body: payment } = await service.pay(body, { key: service.live.text });
    await service.setClock(at += 18 * DAY_MS);
    await service.deps.provider_worker.notify();
    await world.book(payment, 1000);
    await service.deps.provider_worker.notify();
    const path = `/api-v1-payments/v1/payments/${payment.id}`;
    const { body: { status } } = await service.call("GET", path, { key: service.live.text });
    assert.equal(status, "completed");
  });
  await payByTransfer(t, world, { method_kind: "sepa", currency: "EUR" });
  await payByTransfer(t, world, { method_kind: "swift", currency: "USD" });

  await t.step("an account of the same bank account is refused", async () => {
    await assert.rejects(addBankAccount(service, { ...euro, methods: "sepa" }), /another account/);
    // Another currency, and another spelling.
    const again = { methods: "swift", iban: "de89 3704 0044 0532 0130 00", currency: "CHF" };
    await assert.rejects(addBankAccount(service, again), /another account has it/);
  });
  await t.step("money without a reference and charges have a place in the books", async () => {
    await bank.move({ amount: 777, text: "no reference" });
    await bank.move({ amount: -350, family: "MCOP CHRG" });
    await bank.move({ amount: -100, text: "rent" });
    assert.equal((await bank.notify()).booked, 3);
  });
  await t.step("the statement of the day has nothing new, and agrees with the ledger", async () => {
    for (const bank of banks.values()) {
      const statement = await bank.write("camt.053", { opening: 12_345 });
      assert.equal((await bank.importGood(statement)).booked, 0);
      const [ledger] = await service.sql<[{ sum: string }]>`
        select sum(booked_minor) as sum from pay.provider_events
        where account_id = ${bank.account_id}`;
      const { entries } = await bank.books();
      assert.equal(Number(ledger.sum), entries.reduce((sum, { amount }) => sum + amount, 0));
    }
  });
  /** Books a movement, and writes a file that has only this one. */
  const moved = async (kind: "camt.053" | "camt.054", amount: number) => {
    const since = (await bank.books()).entries.length;
    await bank.move({ amount, text: "x" });
    return await bank.write(kind, { since });
  };
  await t.step("a file of another account, or with a wrong sum, is refused whole", async () => {
    const count = async () => (await service.sql`select from pay.bank_entries`).length;
    const before = await count();
    const good = await moved("camt.053", 6);
    const wrong = good.replace(/CLBD.*?<Amt[^>]*>/, (text) => `${text}9`);
    for (const text of [good.replaceAll(EURO, DOLLAR), wrong, good.slice(0, -30), "no file"]) {
      const { result, error } = await bank.import(text);
      assert.equal(result, "refused", text);
      assert.match(error!, /^Line \d+/);
    }
    assert.equal(await count(), before);
    await bank.importGood(good);
  });
  await t.step(
    "a bridge imports with the token of its account, and with no other one",
    async () => {
      const file = await moved("camt.054", 7);
      const send = (bridge_token: string, body: string, id = bank.account_id) =>
        callBridge(service, { id, bridge_token }, "POST", "statements", body);
      const token = tokens.get(bank.account_id)!;
      const other = banks.get("USD")!.account_id;
      for (
        const [wrong, account_id] of [["x", undefined], [token, other], [token, "pac_1"]] as const
      ) {
        assert.equal((await send(wrong, file, account_id)).status, 401);
      }
      const refused = await send(token, file.replaceAll(EURO, DOLLAR));
      assert.deepEqual([refused.status, refused.body.result], [400, "refused"]);
      const large = await send(token, " ".repeat(10 * 1024 * 1024 + 1));
      assert.equal(large.status, 413);
      for (const result of ["applied", "unchanged"]) {
        const { status, body } = await send(token, file);
        assert.deepEqual([status, body.result, body.booked, body.error], [200, result, 1, null]);
      }
    },
  );
  await t.step("the operator sees what belongs to no payment, and nothing else", async () => {
    const { sql } = service;
    const reported = await sql<{ reason: string }[]>`select * from pay.list_reported_events()`;
    for (const { reason } of reported) {
      assert.match(reason, /too much|sent to a payment that is|as [A-Z]{4}, outside of payments/);
    }
    await sql`update pay.provider_events set dismissed_at = now(), dismissed_reason = 'seen'
      where exception is not null`;
    await assertSilent(sql);
  });
}

const LANDLORD = { name: "City Rent GmbH", iban: "FR1420041010050500013M02606" };

bankCase("entries of a live bank that name nothing", assign);

async function assign(live: LiveBank, t: Deno.TestContext): Promise<void> {
  const { service, bank, call, post, request, show } = live;
  const { sql } = service;
  const reported = async (keys: string | null = KEYS) => {
    const { run } = providerCommands(sql, keys === null ? {} : { BANK_DETAILS_KEYS: keys });
    // deno-lint-ignore no-explicit-any
    return JSON.parse(await run("facts", "--json")) as any[];
  };
  const dismiss = ({ account_id, reference }: Record<string, string>) =>
    runProviders(service, ["dismiss", `${account_id}/${reference}`, "--reason", "a test"]);
  const kept = async () => {
    const rows = await sql`select owner_id from pay.bank_details where sealed is not null
      order by owner_id`;
    return rows.map(({ owner_id }) => owner_id.slice(0, 4));
  };
  const paidBy = async (party: typeof PAYER | undefined, text: string): Promise<string> => {
    const id = await request();
    await bank.move({ amount: 1000, text, ...(party && { party }) });
    await bank.notify();
    return id;
  };

  let invoice = "";
  await t.step("the command tells payer, text, reference, file and line, all sealed", async () => {
    invoice = await paidBy(PAYER, "Invoice 7");
    const [entry, ...others] = await reported();
    assert.deepEqual(others, []);
    assert.deepEqual(entry.about, {
      counterparty: { ...PAYER, account: null, bic: null },
      text: "Invoice 7",
    });
    assert.match(entry.file, /\.xml$/);
    assert.ok(entry.line > 1 && entry.bank_reference, JSON.stringify(entry));
    const said = renderEvents([{ ...entry, received_at: new Date(entry.received_at) }], Date.now());
    for (const part of [`from: ${PAYER.name}, ${PAYER.iban}`, "text: Invoice 7", entry.file]) {
      assert.ok(said.includes(part), said);
    }
    const [hidden] = await reported(null);
    assert.equal(hidden.about, "sealed");
    for (const table of ["provider_events", "bank_details", "bank_entries"]) {
      const [row] = await sql`select string_agg(t::text, '') as text from ${sql(`pay.${table}`)} t`;
      assert.ok(!row!.text.includes(PAYER.iban) && !row!.text.includes(PAYER.name), table);
    }
    assert.deepEqual(await kept(), ["pac_"]);
  });

  await t.step("a match without keys changes nothing, and a rotation seals it anew", async () => {
    const [{ account_id, reference }] = await reported();
    const match = providerCommands(sql).run("match", `${account_id}/${reference}`, invoice);
    await assert.rejects(match, /BANK_DETAILS_KEYS/);
    assert.equal((await show(invoice)).status, "pending");
    const newer = `k2:${btoa("n".repeat(32))}`;
    for (const keys of [`${newer},${KEYS}`, `${KEYS},${newer}`]) {
      const variables = { BANK_DETAILS_KEYS: keys };
      assert.equal((await operate(sql, ["vault", "rotate"], variables)).code, 0);
      const [sealing] = keys.split(",");
      assert.equal((await reported(sealing!))[0].about.text, "Invoice 7");
    }
  });

  await t.step("a matched payment has its payer, to whom a refund goes", async () => {
    const [entry] = await reported();
    await runProviders(service, ["match", `${entry.account_id}/${entry.reference}`, invoice]);
    const { status, amount_received } = await show(invoice);
    assert.deepEqual([status, amount_received], ["completed", 1000]);
    assert.deepEqual([await reported(), await kept()], [[], ["pay_"]]);
    const refund = await post(`payments/${invoice}/refund`, { amount: 400 });
    assert.equal(refund.status, "pending");
    const [file] = await bank.takeOrders();
    assert.ok(file!.text.includes(PAYER.iban), file!.text);
  });

  await t.step("retention takes what nobody has assigned for 14 months", async () => {
    await paidBy(PAYER, "Invoice 9");
    for (const [days, text] of [[400, "Invoice 9"], [430, undefined]] as const) {
      await sql`update pay.bank_details set created_at = now() - ${days} * interval '1 day'
        where starts_with(owner_id, 'pac_')`;
      while ((await sql`select pay.purge(now(), 100)::int as rows`)[0]!.rows > 0);
      assert.equal((await reported())[0].about?.text, text);
    }
    await dismiss((await reported())[0]);
  });

  await t.step(
    "money that a person has to look at is a warning, and no broken promise",
    async () => {
      await bank.move({ amount: -700, text: "Rent June", party: LANDLORD });
      await bank.notify();
      const found = (await checkBooks(sql)).filter(({ breaches }) => breaches > 0);
      assert.deepEqual(
        found.map(({ invariant, severity }) => [invariant, severity]),
        [["invariant_reported_events", "warning"]],
      );
      const [entry] = await reported();
      assert.deepEqual([entry.about.counterparty.name, entry.state], [LANDLORD.name, "succeeded"]);
      await dismiss(entry);
      assert.ok(!(await kept()).includes("pac_"));
    },
  );

  await t.step("with a rule it is the account's own business, in a place of its own", async () => {
    await runProviders(service, ["set", bank.account_id], { own_business: "name:City Rent" });
    await bank.move({ amount: -700, text: "Rent July", party: LANDLORD });
    await bank.notify();
    assert.deepEqual(await reported(), []);
    assert.deepEqual((await checkBooks(sql)).filter(({ breaches }) => breaches > 0), []);
    const { balances } = await call("GET", "balance");
    const own = balances.find(({ account }: { account: string }) => account === "bank");
    assert.equal(own?.amount_minor, -700, JSON.stringify(balances));
  });
}
