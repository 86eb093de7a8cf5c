/**
 * Live payments by bank transfer: the bank's files say what the payer has sent (contract §2). The
 * results are those of a sandbox, each entry is booked once whatever files have it, and the ledger
 * has every movement of the statement.
 */

import assert from "node:assert/strict";
import { creditorReference } from "../../shared/core/creditor_reference.ts";
import { addBankAccount, Bank } from "../support/bank/bank.ts";
import { camtFile } from "../support/bank/camt.ts";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import { payByTransfer, type TransferWorld } from "../support/http/bank_transfer_case.ts";
import { withServedService } from "../support/service/served_service.ts";

const DAY_MS = 24 * 3_600_000;
const EURO = "DE89370400440532013000";
const DOLLAR = "GB29NWBK60161331926819";

Deno.test("live payments by bank transfer", async (t) => {
  const folder = await Deno.makeTempDir();
  await withServedService(async ({ service, base_url }) => {
    let at = Date.now();
    await service.setClock(at);
    const today = () => new Date(at).toISOString().slice(0, 10);
    const euro = { methods: "sepa,swift", iban: EURO, currency: "EUR" };
    const dollar = { methods: "swift", iban: DOLLAR, currency: "USD" };
    const banks = new Map<string, Bank>();
    const tokens = new Map<string, string>();
    for (const settings of [euro, dollar]) {
      const { id: account_id, bridge_token } = await addBankAccount(service, settings);
      tokens.set(account_id, bridge_token);
      banks.set(settings.currency, new Bank(service, folder, { account_id, ...settings }));
    }
    const bank = banks.get("EUR")!;
    const world: TransferWorld = {
      base_url,
      api_key: service.live.text,
      book: ({ id, currency }, amount_minor) => {
        // As people type it, over the end of a line.
        const reference = creditorReference(id).toLowerCase().replace(/(.{4})/g, "$1 ");
        const text = `Invoice 17, ${reference.slice(0, 9)}\n${reference.slice(9)} thank you`;
        return banks.get(currency)!.book({ amount_minor, booked_on: today(), text });
      },
      expire: async () => {
        await service.setClock(at += 14 * DAY_MS);
        await service.deps.provider_worker.notify();
      },
    };
    await payByTransfer(t, world, { method_kind: "sepa", currency: "EUR" });
    await payByTransfer(t, world, { method_kind: "swift", currency: "USD" });

    await t.step("an account of the same bank account is refused", async () => {
      await assert.rejects(
        addBankAccount(service, { ...euro, methods: "sepa" }),
        /another account has it/,
      );
    });
    await t.step("money without a reference and charges have a place in the books", async () => {
      await bank.book({ amount_minor: 777, booked_on: today(), text: "no reference" });
      await bank.book({ amount_minor: -350, booked_on: today(), code: "CHRG" });
      await bank.book({ amount_minor: -100, booked_on: today(), text: "rent" });
    });
    await t.step(
      "the statement of the day has nothing new, and agrees with the ledger",
      async () => {
        for (const bank of banks.values()) {
          const { booked, account_id } = bank;
          const entries = { entries: booked, opening_minor: 12_345 };
          const [result] = await bank.import({ kind: "camt.053", ...entries });
          assert.deepEqual([result!.result, result!.booked], ["applied", 0]);
          const [ledger] = await service.sql<[{ sum: string }]>`
          select sum(booked_minor) as sum from pay.provider_events
          where account_id = ${account_id}`;
          assert.equal(
            Number(ledger.sum),
            booked.reduce((sum, { amount_minor }) => sum + amount_minor, 0),
          );
        }
      },
    );
    await t.step("the same file changes nothing", async () => {
      const text = camtFile({
        kind: "camt.054",
        iban: EURO,
        currency: "EUR",
        id: "again",
        entries: [{ id: "EURAGAIN1", amount_minor: 5, booked_on: today(), text: "x" }],
      });
      const [first] = await bank.importText(text);
      const [second] = await bank.importText(text);
      assert.deepEqual([first!.result, first!.booked], ["applied", 1]);
      assert.deepEqual([second!.result, second!.booked], ["unchanged", 1]);
    });
    await t.step("a file of another account, or with a wrong sum, is refused whole", async () => {
      const count = async () => (await service.sql`select from pay.bank_entries`).length;
      const before = await count();
      const entries = [{ id: "EURNEW1", amount_minor: 5, booked_on: today(), text: "x" }];
      const good = { kind: "camt.053", iban: EURO, currency: "EUR", id: "s", entries } as const;
      const other = camtFile({ ...good, iban: DOLLAR });
      const wrong = camtFile({ ...good, opening_minor: 100 }).replace("1.05", "1.06");
      for (const text of [other, wrong, `${camtFile(good).slice(0, -30)}`, "no file"]) {
        const [result] = await bank.importText(text);
        assert.equal(result!.result, "refused", text);
        assert.match(result!.error!, /^Line \d+/);
      }
      assert.equal(await count(), before);
    });
    await t.step(
      "a bridge imports with the token of its account, and with no other one",
      async () => {
        const entries = [{ id: "EURBRIDGE1", amount_minor: 7, booked_on: today(), text: "x" }];
        bank.booked.push(...entries);
        const file = {
          kind: "camt.054",
          iban: EURO,
          currency: "EUR",
          id: "bridge",
          entries,
        } as const;
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
          assert.equal((await send(wrong, camtFile(file), account_id)).status, 401);
        }
        const refused = await send(token, camtFile({ ...file, iban: DOLLAR }));
        assert.deepEqual([refused.status, refused.body.result], [400, "refused"]);
        const large = await send(token, " ".repeat(10 * 1024 * 1024 + 1));
        assert.equal(large.status, 413);
        for (const result of ["applied", "unchanged"]) {
          const { status, body } = await send(token, camtFile(file));
          assert.deepEqual([status, body.result, body.booked, body.error], [200, result, 1, null]);
        }
      },
    );
    await t.step("the operator sees what belongs to no payment, and nothing else", async () => {
      const { sql } = service;
      const reported = await sql<{ reason: string }[]>`select * from pay.list_reported_events()`;
      for (const { reason } of reported) {
        assert.match(reason, /too much|was sent to a payment that is|outside of payments/);
      }
      await sql`update pay.provider_events set dismissed_at = now(), dismissed_reason = 'seen'
        where exception is not null`;
      await assertSilent(sql);
    });
  });
  await Deno.remove(folder, { recursive: true });
});
