/**
 * Live payouts by bank. A refund that no order could pay is refused at once with the field, every
 * other one leaves in a file, and the merchant learns why one fails. Of a payout by SWIFT the bank
 * repeats the UETR and not our id, as banks on the way of such a payment do.
 */

import assert from "node:assert/strict";
import { runProviders, written } from "../support/bank/bank.ts";
import { bankCase, type LiveBank, PAYER } from "../support/bank/live_account.ts";

const IN_USD = { methods: "swift", iban: "GB29NWBK60161331926819", currency: "USD" };
const SWISS = { name: "Heidi", iban: "CH9300762011623852957" };
const TURKISH = {
  iban: "TR330006100519786457841326",
  holder_name: "Ayşe Yılmaz",
  bic: "TGBATRIS",
  address: { line1: "Istiklal Cd. 1", city: "Istanbul", postal_code: "34433", country: "TR" },
};
const ADDRESS = { city: "Bern", country: "CH" };

/** [criterion, the payer of the statement, the rest of the refund, file and text in it, or null] */
const CASES: [string, typeof PAYER | null, object, [kind: string, text: string] | null][] = [
  ["a payer", PAYER, {}, ["sepa_transfers", PAYER.iban]],
  ["a payer whom the bank does not name", null, {}, null],
  ["a Swiss payer, whose address the bank does not tell", SWISS, {}, null],
  ["the same with a destination", SWISS, {
    destination: { iban: SWISS.iban, holder_name: SWISS.name, address: ADDRESS },
  }, ["sepa_transfers", SWISS.iban]],
  ["outside of SEPA", PAYER, { destination: { iban: TURKISH } }, ["swift_transfers", TURKISH.iban]],
];

bankCase("live refunds by bank", refund);

async function refund(live: LiveBank, t: Deno.TestContext): Promise<void> {
  const { service, bank, booked, call, post, show } = live;
  for (const [criterion, party, rest, sent] of CASES) {
    await t.step(`${criterion}: ${sent?.[0] ?? 400}`, async () => {
      const id = await live.pay(1000, party);
      assert.equal((await show(id)).status, "completed");
      const made = await post(`payments/${id}/refund`, { amount: 100, ...rest });
      if (sent === null) {
        assert.deepEqual([made.http, made.error?.param], [400, "destination"]);
        const { data } = await call("GET", `refunds?payment_id=${id}`);
        assert.deepEqual([data, (await show(id)).amount_refunding], [[], 0]);
        return;
      }
      assert.equal(made.status, "pending", JSON.stringify(made));
      const [file] = await bank.takeOrders();
      assert.equal(file?.kind, sent[0]);
      assert.deepEqual(file.orders, [written(made.id)]);
      assert.ok(file.text.includes(sent[1]), file.text);
      assert.deepEqual(await booked(made.id), ["completed"]);
      assert.equal((await show(id)).amount_refunded, 100);
    });
  }
  await t.step("the operator rejects a refund: the merchant learns why", async () => {
    const { id } = await post(`payments/${await live.pay(1000)}/refund`, { amount: 100 });
    await bank.run("reject", id, "--reason", "Please name another account");
    await service.deps.provider_worker.notify();
    const { status, failure_code, failure_message } = await show(id);
    assert.deepEqual([status, failure_code, failure_message], [
      ...["failed", "provider_refused", "Please name another account"],
    ]);
  });
}

bankCase("live payouts by SWIFT", sendBySwift, IN_USD);

async function sendBySwift(
  { service, bank, post, show, pay, booked, bridge }: LiveBank,
  t: Deno.TestContext,
): Promise<void> {
  const send = async (amount = 100) => {
    const body = { amount, currency: "USD", destination: { iban: TURKISH } };
    const { id, http } = await post("transfers", body);
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

  await t.step(
    "a payout that was made can be recalled, for each reason with one file",
    async () => {
      const failed = await send();
      await assert.rejects(bank.recall(failed), /is not exported yet: deno task bank reject tr_/);
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
    const again = (name: string) =>
      bank.run("export", "--file", name, "--out", `${bank.folder}/again`);
    const { lines: [line] } = await again(file!.name);
    assert.equal(await Deno.readTextFile((line as { file: string }).file), file!.text);
    await assert.rejects(again("none.xml"), /has no file none\.xml/);
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
}
