/**
 * Live payouts by SWIFT, in a currency of their own. The bank repeats their UETR and not our id, as
 * banks on the way of such a payment do.
 */

import assert from "node:assert/strict";
import { changeBankAccount, runProviders, written } from "../support/bank/bank.ts";
import { no_bank_double } from "../support/bank/double.ts";
import { type LiveBank, withLiveBank } from "../support/bank/live_bank.ts";
import { assertSilent } from "../support/database/invariant_breaches.ts";

const TRANSFERS = "/api-v1-payments/v1/transfers";
const OWN = { methods: "swift", iban: "GB29NWBK60161331926819", currency: "USD" };
const PAYEE = {
  iban: "TR330006100519786457841326",
  holder_name: "Ayşe Yılmaz",
  bic: "TGBATRIS",
  address: { line1: "Istiklal Cd. 1", city: "Istanbul", postal_code: "34433", country: "TR" },
};

Deno.test({
  name: "live payouts by SWIFT",
  ignore: no_bank_double,
  fn: (t) => withLiveBank((live) => sendBySwift(t, live), OWN),
});

async function sendBySwift(
  t: Deno.TestContext,
  { service, bank, call, show, pay, booked, bridge }: LiveBank,
): Promise<void> {
  const send = async (amount = 100) => {
    const body = { amount, currency: "USD", destination: { iban: PAYEE } };
    const { id, http } = await call("POST", TRANSFERS, body);
    assert.equal(http, 201);
    return id as string;
  };

  await t.step("a payout leaves with a UETR, which its booking and its return have", async () => {
    const paid = await pay(10_000);
    assert.equal((await show(paid)).status, "completed");
    const id = await send();
    const [file] = await bank.takeOrders();
    assert.deepEqual([file!.kind, file!.orders], ["swift_transfers", [written(id)]]);
    assert.match(file!.text, /<ChrgBr>SHAR</);
    assert.match(file!.text, /<UETR>[-0-9a-f]{36}</);
    assert.ok(file!.text.includes("<TwnNm>Istanbul<"));
    assert.deepEqual(await booked(id), ["completed"]);
    const notification = await bank.write("camt.054");
    assert.ok(!notification.includes(written(id)), "the bank repeats only the UETR");
    await bank.giveBack(id, "AC04");
    await bank.notify();
    const { status, failure_code, return_code } = await show(id);
    assert.deepEqual([status, failure_code, return_code], ["failed", "bank_return", "AC04"]);
  });

  await t.step("a report names a payout by its UETR", async () => {
    const id = await send();
    await bank.takeOrders();
    await bank.reject([id], "AC01");
    const { status, return_code } = await show(id);
    assert.deepEqual([status, return_code], ["failed", "AC01"]);
  });

  await t.step("the merchant bears all charges, if the account says so", async () => {
    await changeBankAccount(service, bank.account_id, { charges: "DEBT" });
    const id = await send();
    const [file] = await bank.takeOrders();
    assert.match(file!.text, /<ChrgBr>DEBT</);
    assert.deepEqual(await booked(id), ["completed"]);
  });

  await t.step(
    "a payout that was made can be recalled, for each reason with one file",
    async () => {
      const id = await send();
      await assert.rejects(bank.recall(id), /is not exported yet: deno task bank reject tr_/);
      await bank.takeOrders();
      const text = await bank.recallText(id);
      assert.match(text, /<Cd>CUST</);
      assert.equal(await bank.recall(id), text);
      await service.deps.provider_worker.notify();
      assert.equal((await show(id)).return_code, "CUST");
      const failed = await send();
      await bank.takeOrders();
      await bank.reject([failed], "AC01");
      await assert.rejects(bank.recall(failed), /no order .* that can be recalled/);
      const made = await send();
      await bank.takeOrders();
      assert.deepEqual(await booked(made), ["completed"]);
      const recall = await bank.recall(made, "FRAD");
      assert.match(recall, /<Cd>FRAD</);
      const { body: { data } } = await bridge("GET", "files");
      const listed = (data as { name: string; kind: string }[]).find(({ name }) =>
        name === `recall_${written(made)}_frad.xml`
      );
      assert.equal(listed?.kind, "recall");
      assert.equal((await bridge("GET", `files/${listed!.name}`)).text, recall);
      assert.equal((await show(made)).status, "completed");
    },
  );

  await t.step("a file is written again with the same bytes", async () => {
    await send();
    const [file] = await bank.takeOrders();
    const folder = await Deno.makeTempDir();
    try {
      const { lines } = await bank.run("export", "--file", file!.name, "--out", folder);
      const [{ file: path }] = lines as [{ file: string }];
      assert.equal(await Deno.readTextFile(path), file!.text);
      const other = bank.run("export", "--file", "none.xml", "--out", folder);
      await assert.rejects(other, /has no file none\.xml/);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });

  await t.step("another token of the bridge ends the one before", async () => {
    assert.equal((await bridge("GET", "files")).status, 200);
    const bridge_token = (await runProviders(service, ["rotate-token", bank.account_id])).trim();
    assert.equal((await bridge("GET", "files")).status, 401);
    const { status } = await service.call(
      "GET",
      `/api-v1-payments/providers/${bank.account_id}/files`,
      { key: null, headers: { Authorization: `Bearer ${bridge_token}` }, unchecked: true },
    );
    assert.equal(status, 200);
  });

  await t.step("the books agree", () => assertSilent(service.sql));
}
