/**
 * Bank details in a sandbox (contract §3): the log has none, and they can be deleted. tests/domain
 * has the payees of transfers and refunds.
 */

import assert from "node:assert/strict";
import { APPROVED, assertRefused, PAYMENTS, serviceCase } from "../support/service/service_case.ts";

const TRANSFERS = "/api-v1-payments/v1/transfers";
const IBAN = "FR14 2004 1010 0505 0001 3M02 606";
const MASKED = { country: "FR", last4: "2606" };

serviceCase("the log of the sandbox has no name and no address of a payee", async (_, service) => {
  await service.make({ amount_minor: 1000, outcome: "success" });
  const address = { line1: "1 High Street", city: "London", postal_code: "SW1", country: "GB" };
  const destination = { iban: "GB29 NWBK 6016 1331 9268 19", holder_name: "Ada Secret", address };
  const body = { amount: 10, currency: "EUR", destination };
  await service.post(TRANSFERS, body);
  await service.deps.request_log.flush();
  const rows = await service.sql`select request_body from pay.requests`;
  assert.doesNotMatch(JSON.stringify(rows), /Secret|High Street/);
}, { request_log: true });

serviceCase("a deletion of bank details", async (t, service) => {
  const paid = async (instrument: Record<string, unknown>, more = {}) =>
    (await service.pay({ ...instrument, currency: "EUR", ...more })).body.id;
  const erase = (id: string, idempotency_key?: string) =>
    service.call("DELETE", `${PAYMENTS}/${id}/bank_details`, {
      ...(idempotency_key && { idempotency_key }),
    });
  const refund = (id: string, body: Record<string, unknown>) =>
    service.call("POST", `${PAYMENTS}/${id}/refund`, { body: { amount: 10, ...body } });
  for (const instrument of [APPROVED.sepa, APPROVED.swift]) {
    await t.step("a refund by bank then names its destination", async () => {
      const id = await paid(instrument);
      assert.equal((await refund(id, {})).status, 201);
      const { status, body } = await erase(id);
      assert.deepEqual([status, body], [200, { id, object: "bank_details", deleted: true }]);
      assertRefused(await refund(id, {}), "invalid_parameter", "destination");
      const named = await refund(id, { destination: { iban: IBAN } });
      assert.deepEqual([named.status, named.body.destination], [201, { iban: MASKED }]);
      const { method } = await service.get(`${PAYMENTS}/${id}`);
      assert.equal(typeof method.iban.last4, "string");
    });
  }
  await t.step("a card has none, and its refund goes back as before", async () => {
    const id = await paid(APPROVED.card);
    assert.equal((await erase(id)).status, 200);
    assert.equal((await refund(id, {})).status, 201);
  });
  await t.step("what waits for a result is 409, which keeps no idempotency key", async () => {
    const id = await paid(APPROVED.sepa, { settlement: "manual" });
    const key = crypto.randomUUID();
    const { status, body: { error } } = await erase(id, key);
    assert.deepEqual([status, error.code, error.current_status], [409, "invalid_state", "pending"]);
    await service.call("POST", `${PAYMENTS}/${id}/cancel`, { body: {} });
    assert.equal((await erase(id, key)).status, 200);
  });
});
