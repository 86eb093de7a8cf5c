/**
 * Live payments by bank transfer: the bank's files say what the payer has sent (contract §2). The
 * results are those of a sandbox, each entry is booked once whatever files have it, and the ledger
 * has every movement of the statement.
 */

import assert from "node:assert/strict";
import { creditorReference } from "../../shared/core/creditor_reference.ts";
import { Vault } from "../../shared/core/vault.ts";
import { addBankAccount, Bank, KEYS } from "../support/bank/bank.ts";
import { BankDouble, no_bank_double } from "../support/bank/double.ts";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import { payByTransfer, type TransferWorld } from "../support/http/bank_transfer_case.ts";
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
    const account = { account_id, ...settings };
    banks.set(settings.currency, await Bank.open(service, double, folder, account));
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
    await assert.rejects(
      addBankAccount(service, { ...euro, methods: "sepa" }),
      /another account has it/,
    );
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
  await t.step("the same file changes nothing", async () => {
    const text = await moved("camt.054", 5);
    const [first, second] = [await bank.import(text), await bank.import(text)];
    assert.deepEqual([first.result, first.booked], ["applied", 1]);
    assert.deepEqual([second.result, second.booked], ["unchanged", 1]);
  });
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
      const send = (token: string, body: string, account_id = bank.account_id) =>
        service.call("POST", `/api-v1-payments/providers/${account_id}/statements`, {
          key: null,
          body,
          headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/xml" },
          unchecked: true,
        });
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
      assert.match(
        reason,
        /too much|was sent to a payment that is|as [A-Z]{4}, outside of payments/,
      );
    }
    await sql`update pay.provider_events set dismissed_at = now(), dismissed_reason = 'seen'
      where exception is not null`;
    await assertSilent(sql);
  });
}
