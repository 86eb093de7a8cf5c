/**
 * Live refunds by bank: one that no order could pay is refused at once with the field, every other
 * one leaves in a file, and the merchant learns why one fails.
 */

import assert from "node:assert/strict";
import { creditorReference } from "../../shared/core/creditor_reference.ts";
import { no_bank_double } from "../support/bank/double.ts";
import type { Movement } from "../support/bank/double.ts";
import { type LiveBank, PAYER, withLiveBank } from "../support/bank/live_bank.ts";

const PAYMENTS = "/api-v1-payments/v1/payments";
const SWISS = { name: "Heidi", iban: "CH9300762011623852957" };
const TURKISH = {
  iban: "TR330006100519786457841326",
  holder_name: "Ayşe Yılmaz",
  bic: "TGBATRIS",
  address: { city: "Istanbul", country: "TR" },
};
const ADDRESS = { city: "Bern", country: "CH" };

/** [criterion, the payer of the statement, the rest of the refund, file and text in it, or null] */
const CASES: [string, Movement["party"], object, [kind: string, text: string] | null][] = [
  ["a payer", PAYER, {}, ["sepa_transfers", PAYER.iban]],
  ["a payer with a long name", { ...PAYER, name: "Jan ".repeat(35) }, {}, [
    "sepa_transfers",
    "Jan Jan",
  ]],
  ["a payer whose name has no letter of SEPA", { ...PAYER, name: "李明" }, {}, null],
  ["a payer whom the bank does not name", undefined, {}, null],
  ["a Swiss payer, whose address the bank does not tell", SWISS, {}, null],
  ["the same with a destination", SWISS, {
    destination: { iban: SWISS.iban, holder_name: SWISS.name, address: ADDRESS },
  }, ["sepa_transfers", SWISS.iban]],
  ["EUR to an account outside of SEPA", PAYER, { destination: { iban: TURKISH } }, [
    "swift_transfers",
    TURKISH.iban,
  ]],
];

Deno.test({
  name: "live refunds by bank",
  ignore: no_bank_double,
  fn: (t) => withLiveBank((live) => refund(t, live)),
});

async function refund(t: Deno.TestContext, live: LiveBank): Promise<void> {
  const { service, bank, call, show } = live;
  const payFrom = async (party: Movement["party"]): Promise<string> => {
    const { id } = await call("POST", PAYMENTS, {
      amount: 1000,
      currency: "EUR",
      method_kind: "sepa",
    });
    await bank.move({ amount: 1000, reference: creditorReference(id), ...(party && { party }) });
    await bank.notify();
    assert.equal((await show(id)).status, "completed");
    return id;
  };
  for (const [criterion, party, rest, sent] of CASES) {
    await t.step(`${criterion}: ${sent?.[0] ?? 400}`, async () => {
      const id = await payFrom(party);
      const made = await call("POST", `${PAYMENTS}/${id}/refund`, { amount: 100, ...rest });
      if (sent === null) {
        assert.deepEqual([made.http, made.error?.param], [400, "destination"]);
        const { data } = await call("GET", `/api-v1-payments/v1/refunds?payment_id=${id}`);
        assert.deepEqual([data, (await show(id)).amount_refunding], [[], 0]);
        return;
      }
      assert.equal(made.status, "pending", JSON.stringify(made));
      const [file] = await bank.takeOrders();
      assert.equal(file?.kind, sent[0]);
      assert.ok(file.text.includes(sent[1]), file.text);
    });
  }
  await t.step("a transfer of EUR to an account outside of SEPA leaves by SWIFT", async () => {
    const body = { amount: 100, currency: "EUR", destination: { iban: TURKISH } };
    const instant = await call("POST", "/api-v1-payments/v1/transfers", {
      ...body,
      speed: "instant",
    });
    assert.deepEqual([instant.http, instant.error?.param], [400, "speed"]);
    assert.equal((await call("POST", "/api-v1-payments/v1/transfers", body)).http, 201);
    assert.deepEqual((await bank.takeOrders()).map(({ kind }) => kind), ["swift_transfers"]);
  });
  /** [who refuses, how, the return code and the message of the refund] */
  const REJECTS: [string, (id: string) => Promise<unknown>, string | null, string][] = [
    ["the operator", (id) => bank.run("reject", id), null, "The provider refused the refund"],
    [
      "the operator with a reason",
      (id) => bank.run("reject", id, "--reason", "Please name another account"),
      null,
      "Please name another account",
    ],
    [
      "the bank",
      async (id) => {
        await bank.takeOrders();
        await bank.reject([id], "AC04");
      },
      "AC04",
      "The provider refused the refund",
    ],
  ];
  for (const [who, reject, return_code, message] of REJECTS) {
    await t.step(`${who} rejects a refund: the merchant learns why`, async () => {
      const id = await payFrom(PAYER);
      const { id: refund_id } = await call("POST", `${PAYMENTS}/${id}/refund`, { amount: 100 });
      await reject(refund_id);
      await service.deps.provider_worker.notify();
      const failed = await call("GET", `/api-v1-payments/v1/refunds/${refund_id}`);
      assert.deepEqual(
        [failed.status, failed.failure_code, failed.failure_message, failed.return_code],
        ["failed", "provider_refused", message, return_code],
      );
    });
  }
  await t.step("a refund that the payee's bank gives back has its code", async () => {
    const id = await payFrom(PAYER);
    const { id: refund_id } = await call("POST", `${PAYMENTS}/${id}/refund`, { amount: 100 });
    await bank.takeOrders();
    await bank.book([refund_id]);
    await bank.giveBack(refund_id, "AC06");
    await bank.notify();
    const { failure_code, return_code } = await call(
      "GET",
      `/api-v1-payments/v1/refunds/${refund_id}`,
    );
    assert.deepEqual([failure_code, return_code], ["bank_return", "AC06"]);
  });
}
