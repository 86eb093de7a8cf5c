/** Payouts by bank in a sandbox (contract §3): transfers and refunds to a payee's account. */

import assert from "node:assert/strict";
import {
  APPROVED,
  assertRefused,
  PAYMENTS,
  REFUNDS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";

import type { TestService } from "../support/service/service.ts";

const TRANSFERS = "/api-v1-payments/v1/transfers";
const IBAN = "FR14 2004 1010 0505 0001 3M02 606";
const BRITISH = "GB29 NWBK 6016 1331 9268 19";
const ADDRESS = { line1: "1 High Street", city: "London", postal_code: "SW1", country: "GB" };
const MASKED = { country: "FR", last4: "2606" };

/** Returns the events of a transfer or payment with what they show about the payee, oldest first. */
async function shownEvents(service: TestService, filter: string): Promise<string[]> {
  const { body } = await service.call("GET", `/api-v1-payments/v1/events?${filter}`);
  const events = body.data as { type: string; data: { object: { payee_check?: string } } }[];
  return events.filter(({ type }) => !type.startsWith("payment."))
    .map(({ type, data: { object } }) => `${type} ${object.payee_check}`).toReversed();
}

serviceCase("transfers to a payee", async (t, service) => {
  await service.make({ amount_minor: 1000, outcome: "success" });
  const send = (destination: Record<string, unknown>) =>
    service.call("POST", TRANSFERS, { body: { amount: 10, currency: "EUR", destination } });
  await t.step("the result about a payee is told, and holds one with another name", async () => {
    const { body: made } = await send({ iban: IBAN, holder_name: "No match Ltd" });
    assert.deepEqual([made.status, made.payee_check], ["pending", "no_match"]);
    assert.deepEqual(made.destination, { type: "iban", iban: MASKED });
    const approve = `${SANDBOX}/transfers/${made.id}/advance`;
    const { body: approved } = await service.call("POST", approve, { body: { to: "completed" } });
    assert.deepEqual([approved.status, approved.payee_check], ["completed", "no_match"]);
    assert.deepEqual(await shownEvents(service, `transfer_id=${made.id}`), [
      "transfer.created null",
      "transfer.updated no_match",
      "transfer.completed no_match",
    ]);
  });
  await t.step("a refusal names the field", async () => {
    const refused = await send({ iban: BRITISH, address: { city: "London" } });
    assertRefused(refused, 400, "invalid_parameter", "destination.address.country");
  });
  await t.step("the log of the sandbox has no name and no address", async () => {
    await send({ iban: BRITISH, holder_name: "Ada Secret", address: ADDRESS });
    await service.deps.request_log.flush();
    const rows = await service.sql`select request_body from pay.requests`;
    assert.ok(!JSON.stringify(rows).includes("Secret"), "a name is in the log");
    assert.ok(!JSON.stringify(rows).includes("High Street"), "an address is in the log");
  });
}, { request_log: true });

serviceCase("refunds to a payee", async (t, service) => {
  const refund = async (instrument: Record<string, unknown>, body: Record<string, unknown>) => {
    const currency = "wallet" in instrument ? "USDC" : "EUR";
    const { body: { id } } = await service.pay({ ...instrument, currency });
    return await service.call("POST", `${PAYMENTS}/${id}/refund`, { body });
  };
  await t.step("to another account, instantly", async () => {
    const destination = { iban: IBAN, holder_name: "Ada", bic: "BNPAFRPP" };
    const { body } = await refund(APPROVED.sepa, { destination, speed: "instant" });
    assert.deepEqual([body.status, body.destination, body.speed], [
      "completed",
      { iban: MASKED },
      "instant",
    ]);
    assert.deepEqual((await service.call("GET", `${REFUNDS}/${body.id}`)).body, body);
  });
  await t.step("to another name it waits for the operator, who is told the result", async () => {
    const destination = { iban: IBAN, holder_name: "No match Ltd" };
    const { body } = await refund(APPROVED.sepa, { destination });
    assert.deepEqual([body.status, body.payee_check], ["pending", "no_match"]);
    const approve = `${SANDBOX}/refunds/${body.id}/advance`;
    const options = { body: { to: "completed" }, idempotency_key: "approved" };
    const approved = await service.call("POST", approve, options);
    assert.deepEqual([approved.body.status, approved.body.payee_check], ["completed", "no_match"]);
    assert.equal((await service.call("POST", approve, options)).text, approved.text);
    assert.deepEqual(await shownEvents(service, `payment_id=${body.payment_id}`), [
      "refund.created null",
      "refund.updated no_match",
      "refund.completed no_match",
    ]);
  });
  await t.step("a card is refunded to itself", async () => {
    const refused = await refund(APPROVED.card, { destination: { iban: IBAN } });
    assertRefused(refused, 400, "invalid_parameter", "destination");
  });
});

serviceCase("a deletion of bank details", async (t, service) => {
  const paid = async (instrument: Record<string, unknown>, more = {}) =>
    (await service.pay({ ...instrument, currency: "EUR", ...more })).body.id;
  const erase = (path: string, idempotency_key?: string) =>
    service.call("DELETE", `${path}/bank_details`, idempotency_key ? { idempotency_key } : {});
  const refund = (id: string, body: Record<string, unknown>) =>
    service.call("POST", `${PAYMENTS}/${id}/refund`, { body: { amount: 10, ...body } });
  for (const instrument of [APPROVED.sepa, APPROVED.swift]) {
    await t.step("a refund by bank then names its destination", async () => {
      const id = await paid(instrument);
      assert.equal((await refund(id, {})).status, 201);
      const key = crypto.randomUUID();
      const { status, body } = await erase(`${PAYMENTS}/${id}`, key);
      assert.deepEqual([status, body], [200, { id, object: "bank_details", deleted: true }]);
      assertRefused(await refund(id, {}), 400, "invalid_parameter", "destination");
      const named = await refund(id, { destination: { iban: IBAN } });
      assert.deepEqual([named.status, named.body.destination], [201, { iban: MASKED }]);
      assert.deepEqual((await erase(`${PAYMENTS}/${id}`, key)).body, body);
      const { method } = (await service.call("GET", `${PAYMENTS}/${id}`)).body;
      assert.equal(typeof method.iban.last4, "string");
    });
  }
  await t.step("a card has none, and its refund goes back as before", async () => {
    const id = await paid(APPROVED.card);
    assert.equal((await erase(`${PAYMENTS}/${id}`)).status, 200);
    assert.equal((await refund(id, {})).status, 201);
  });
  await t.step("what waits for a result is 409, which keeps no idempotency key", async () => {
    const id = await paid(APPROVED.sepa, { settlement: "manual" });
    const key = crypto.randomUUID();
    const { status, body: { error } } = await erase(`${PAYMENTS}/${id}`, key);
    assert.deepEqual([status, error.code, error.current_status], [409, "invalid_state", "pending"]);
    await service.call("POST", `${PAYMENTS}/${id}/cancel`, { body: {} });
    assert.equal((await erase(`${PAYMENTS}/${id}`, key)).status, 200);
  });
  await t.step("a payment is no transfer", async () => {
    const id = await paid(APPROVED.sepa);
    assert.equal((await erase(`${TRANSFERS}/${id}`)).status, 404);
  });
});
