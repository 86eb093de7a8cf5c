/**
 * Two requests under one idempotency key are the same if they have the same canonical body (RFC
 * 8785), method and operation path (contract §5). Any other request under that key is a conflict.
 */

import assert from "node:assert/strict";
import { recordOf, rowCounts } from "../support/database/payment_records.ts";
import {
  assertRefused,
  paymentIn,
  PAYMENTS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";

const FIRST = '{"amount":700,"currency":"EUR","metadata":{"a":"x","b":"é"},"description":"100"}';

const BODIES: [string, body: string, result: "same" | "conflict"][] = [
  ["the same bytes", FIRST, "same"],
  [
    "another order of members",
    '{"description":"100","metadata":{"b":"é","a":"x"},"currency":"EUR","amount":700}',
    "same",
  ],
  [
    "white space",
    ' {\n "amount" : 700 ,\t"currency":"EUR","metadata":{"a":"x","b":"é"},"description":"100"}\r\n',
    "same",
  ],
  [
    "escapes",
    '{"amount":700,"currency":"\\u0045UR","metadata":{"\\u0061":"x","b":"\\u00e9"},"description":"100"}',
    "same",
  ],
  ["another amount", FIRST.replace("700", "701"), "conflict"],
  ["another currency", FIRST.replace("EUR", "USD"), "conflict"],
  ["another case of the currency", FIRST.replace("EUR", "eur"), "conflict"],
  ["amount_minor in place of amount", FIRST.replace("amount", "amount_minor"), "conflict"],
  ["a field more", FIRST.replace("{", '{"reference":"r",'), "conflict"],
  ["a field less", FIRST.replace(',"description":"100"', ""), "conflict"],
  ["another metadata value", FIRST.replace('"x"', '"y"'), "conflict"],
  ["a composed letter decomposed", FIRST.replace("é", "e\u0301"), "conflict"],
];

serviceCase("Idempotency-Key compares canonical bodies", async (t, service) => {
  const send = (body: string) =>
    service.call("POST", PAYMENTS, { body, idempotency_key: "canonical" });
  const first = await send(FIRST);
  assert.equal(first.status, 201, first.text);
  for (const [name, body, result] of BODIES) {
    await t.step(`${name}: ${result}`, async () => {
      const before = await rowCounts(service);
      const response = await send(body);
      if (result === "same") {
        assert.deepEqual([response.status, response.text], [201, first.text]);
        assert.equal(response.headers.get("Idempotent-Replayed"), "true");
      } else {
        assertRefused(response, 409, "idempotency_conflict");
        assert.equal(response.body.error.type, "idempotency");
        assert.equal(response.headers.get("Idempotent-Replayed"), null);
      }
      assert.deepEqual(await rowCounts(service), before);
    });
  }
  await t.step("an absent body equals {}", async () => {
    const { id } = await paymentIn(service, "pending");
    const cancel = (body?: string) =>
      service.call("POST", `${PAYMENTS}/${id}/cancel`, { body, idempotency_key: "absent" });
    const texts = [await cancel(), await cancel("{}"), await cancel(" { } ")].map((a) => a.text);
    assert.deepEqual(texts, Array(3).fill(texts[0]));
  });
});

serviceCase("Idempotency-Key conflicts on another path", async (t, service) => {
  const payment = await paymentIn(service, "pending");
  const other = await paymentIn(service, "pending");
  const first = await service.call("POST", `${PAYMENTS}/${payment.id}/cancel`, {
    idempotency_key: "path",
  });
  assert.equal(first.status, 200);
  const paths: [string, path: string, body?: unknown][] = [
    ["the same of another payment", `${PAYMENTS}/${other.id}/cancel`],
    ["the same of no payment", `${PAYMENTS}/pay_${"0".repeat(26)}/cancel`],
    ["a refund", `${PAYMENTS}/${payment.id}/refund`],
    ["an authentication", `${SANDBOX}/payments/${payment.id}/authenticate`],
    ["an advance", `${SANDBOX}/payments/${other.id}/advance`, { to: "completed" }],
    ["a create", PAYMENTS, { amount: 1, currency: "EUR" }],
    ["a sandbox create", `${SANDBOX}/payments`, { amount: 1, currency: "EUR" }],
    ["a reset", `${SANDBOX}/reset`],
  ];
  for (const [name, path, body] of paths) {
    await t.step(name, async () => {
      const before = [await rowCounts(service), (await recordOf(service, other.id)).text];
      const response = await service.call("POST", path, { body, idempotency_key: "path" });
      assertRefused(response, 409, "idempotency_conflict");
      assert.deepEqual(
        [await rowCounts(service), (await recordOf(service, other.id)).text],
        before,
      );
    });
  }
  await t.step("the bank details of no payment", async () => {
    const path = `${PAYMENTS}/pay_${"0".repeat(26)}/bank_details`;
    const response = await service.call("DELETE", path, { idempotency_key: "path" });
    assertRefused(response, 409, "idempotency_conflict");
    assertRefused(await service.call("DELETE", path), 404, "not_found");
  });
  await t.step("a create and a sandbox create are two operations", async () => {
    const body = { amount: 1, currency: "EUR" };
    const made = await service.call("POST", PAYMENTS, { body, idempotency_key: "two" });
    assert.equal(made.status, 201);
    const response = await service.call("POST", `${SANDBOX}/payments`, {
      body,
      idempotency_key: "two",
    });
    assertRefused(response, 409, "idempotency_conflict");
  });
});
