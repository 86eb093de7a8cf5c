/**
 * Entries of a live bank that name nothing: the operator sees what they are, matches them with
 * payments, whose payers get refunds, and has rules for the account's own business.
 */

import assert from "node:assert/strict";
import { checkBooks } from "../../apps/operator/check_books.ts";
import { renderEvents } from "../../apps/operator/provider_work_table.ts";
import { runWorkCommand } from "../../apps/operator/provider_work.ts";
import { rotateVault } from "../../apps/operator/vault.ts";
import { creditorReference } from "../../shared/core/creditor_reference.ts";
import { Vault } from "../../shared/core/vault.ts";
import { connectorsOf } from "../../apps/operator/operator_database.ts";
import { changeBankAccount, KEYS, runProviders } from "../support/bank/bank.ts";
import { no_bank_double } from "../support/bank/double.ts";
import { type LiveBank, PAYER, withLiveBank } from "../support/bank/live_bank.ts";

const PAYMENTS = "/api-v1-payments/v1/payments";
const LANDLORD = { name: "City Rent GmbH", iban: "FR1420041010050500013M02606" };

Deno.test({
  name: "entries of a live bank that name nothing",
  ignore: no_bank_double,
  fn: (t) => withLiveBank((live) => assign(t, live)),
});

async function assign(t: Deno.TestContext, live: LiveBank): Promise<void> {
  const { service, bank, call, show } = live;
  const { sql } = service;
  const reported = async (keys: string | null = KEYS) => {
    let printed = "";
    await runWorkCommand({ action: "facts", is_json: true }, {
      sql,
      findConnector: connectorsOf(sql),
      env: (name) => name === "BANK_DETAILS_KEYS" ? keys ?? undefined : undefined,
      print: (text) => printed += text,
    });
    // deno-lint-ignore no-explicit-any
    return JSON.parse(printed) as any[];
  };
  const dismiss = ({ account_id, reference }: Record<string, string>) =>
    runProviders(service, ["dismiss", `${account_id}/${reference}`, "--reason", "a test"]);
  const kept = async () => {
    const rows = await sql`select owner_id from pay.bank_details where sealed is not null
      order by owner_id`;
    return rows.map(({ owner_id }) => owner_id.slice(0, 4));
  };
  const paidBy = async (party: typeof PAYER | undefined, text: string): Promise<string> => {
    const { id } = await call("POST", PAYMENTS, {
      amount: 1000,
      currency: "EUR",
      method_kind: "sepa",
    });
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
    const lines = renderEvents(
      [{ ...entry, received_at: new Date(entry.received_at) }],
      Date.now(),
    );
    for (const part of [`from: ${PAYER.name}, ${PAYER.iban}`, "text: Invoice 7", entry.file]) {
      assert.ok(lines.includes(part), lines);
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
    const match = (env: (name: string) => string | undefined) =>
      runWorkCommand({
        action: "match",
        event: { account_id, reference },
        targets: [invoice],
        fee: null,
        is_json: true,
      }, { sql, findConnector: connectorsOf(sql), env, print: () => {} });
    await assert.rejects(match(() => undefined), /BANK_DETAILS_KEYS/);
    assert.equal((await show(invoice)).status, "pending");
    const newer = `k2:${btoa("n".repeat(32))}`;
    for (const keys of [`${newer},${KEYS}`, `${KEYS},${newer}`]) {
      const quiet = { is_json: true, print: () => {}, printMessage: () => {} };
      assert.equal(await rotateVault(sql, Vault.read(keys), quiet), 0);
      const [sealing] = keys.split(",");
      assert.equal((await reported(sealing!))[0].about.text, "Invoice 7");
    }
  });

  await t.step("a matched payment has its payer, to whom a refund goes", async () => {
    const [entry] = await reported();
    await runProviders(service, ["match", `${entry.account_id}/${entry.reference}`, invoice]);
    assert.equal((await show(invoice)).status, "completed");
    assert.deepEqual([await reported(), await kept()], [[], ["pay_"]]);
    const refund = await call("POST", `${PAYMENTS}/${invoice}/refund`, { amount: 400 });
    assert.equal(refund.status, "pending");
    const [file] = await bank.takeOrders();
    assert.ok(file!.text.includes(PAYER.iban), file!.text);
  });

  await t.step("a matched payment without a named payer asks for a destination", async () => {
    const id = await paidBy(undefined, "Invoice 8");
    const [entry] = await reported();
    await runProviders(service, ["match", `${entry.account_id}/${entry.reference}`, id]);
    const refund = await call("POST", `${PAYMENTS}/${id}/refund`, { amount: 400 });
    assert.deepEqual([refund.http, refund.error?.param], [400, "destination"]);
  });

  await t.step("money that is too much shows the payer of the payment", async () => {
    const { id } = await call("POST", PAYMENTS, {
      amount: 1000,
      currency: "EUR",
      method_kind: "sepa",
    });
    await bank.move({ amount: 1200, reference: creditorReference(id), party: PAYER });
    await bank.notify();
    const [entry] = await reported();
    assert.deepEqual([entry.subject_id, entry.about.counterparty.iban], [id, PAYER.iban]);
    await dismiss(entry);
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
    await changeBankAccount(service, bank.account_id, { own_business: "name:City Rent" });
    await bank.move({ amount: -700, text: "Rent July", party: LANDLORD });
    await bank.notify();
    assert.deepEqual(await reported(), []);
    assert.deepEqual((await checkBooks(sql)).filter(({ breaches }) => breaches > 0), []);
    const { balances } = await call("GET", "/api-v1-payments/v1/balance");
    const own = balances.find(({ account }: { account: string }) => account === "bank");
    assert.equal(own?.amount_minor, -700, JSON.stringify(balances));
  });
}
