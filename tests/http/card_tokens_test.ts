/**
 * Tokens of cards (contract §2): test keys take the test tokens, live keys take only tokens. The
 * object `card` is a token or the members of a number, never both.
 */

import assert from "node:assert/strict";
import { TEST_TOKENS } from "../../shared/domain/providers/test_values.ts";
import { APPROVED_CARD } from "../support/service/service.ts";
import { recordOf, rowCounts } from "../support/database/payment_records.ts";
import { assertRefused, PAYMENTS, SANDBOX, serviceCase } from "../support/service/service_case.ts";

/** Each test token: its card, and its result with a test key. */
const TOKENS: [token: string, brand: string, last4: string, http: number, status: string][] = [
  ["pm_card_visa", "visa", "4242", 201, "completed"],
  ["pm_card_mastercard", "mastercard", "4444", 201, "completed"],
  ["pm_card_amex", "amex", "0005", 201, "completed"],
  ["pm_card_chargeDeclined", "visa", "0002", 402, "declined"],
  ["pm_card_chargeDeclinedInsufficientFunds", "visa", "9995", 402, "declined"],
  ["pm_card_authenticationRequired", "visa", "3184", 201, "requires_action"],
  ["pm_card_late", "visa", "0119", 201, "processing"],
  ["pm_card_createDispute", "visa", "0259", 201, "chargeback"],
];
const CODES: Record<string, string> = {
  pm_card_chargeDeclined: "payment_declined",
  pm_card_chargeDeclinedInsufficientFunds: "insufficient_funds",
};

Deno.test("TOKENS has every test token", () => {
  assert.deepEqual(TOKENS.map(([token]) => token), Object.keys(TEST_TOKENS));
});

serviceCase("POST /v1/payments takes the test tokens", async (t, service) => {
  for (const [token, brand, last4, http, status] of TOKENS) {
    await t.step(`${token} → ${http} ${status}`, async () => {
      const response = await service.pay({ card: { token } });
      assert.equal(response.status, http, response.text);
      const payment = response.body.error?.payment ?? response.body;
      assert.deepEqual([payment.status, payment.failure_code], [status, CODES[token] ?? null]);
      assert.deepEqual(payment.method, {
        type: "card",
        card: { brand, last4, exp_month: 12, exp_year: 2040 },
      });
      // The response is that of the card for which the token stands.
      const number = TEST_TOKENS[token]!;
      const numbered = await service.pay({ card: { ...APPROVED_CARD, number } });
      const shown = numbered.body.error?.payment ?? numbered.body;
      assert.deepEqual(
        [numbered.status, shown.status, shown.method.card.last4, shown.failure_code],
        [http, status, last4, payment.failure_code],
      );
    });
  }
  await t.step("an outcome overrides a token", async () => {
    const { body } = await service.pay({
      card: { token: "pm_card_chargeDeclined" },
      outcome: "success",
    });
    assert.equal(body.status, "completed");
  });
  await t.step("the sandbox function takes tokens", async () => {
    const { body } = await service.make({ card: { token: "pm_card_chargeDeclined" } });
    assert.equal(body.status, "declined");
  });
  await t.step("an authentication completes the payment of a token", async () => {
    const { body } = await service.pay({ card: { token: "pm_card_authenticationRequired" } });
    const url = `${SANDBOX}/payments/${body.id}/authenticate`;
    assert.equal((await service.call("POST", url)).body.status, "completed");
  });
  await t.step("no row has the token", async () => {
    const { body } = await service.pay({ card: { token: "pm_card_visa" } });
    const { text } = await recordOf(service, body.id);
    assert.ok(!text.includes("pm_card"), text);
  });
});

const TOKEN_HINT = Object.keys(TEST_TOKENS).join(", ");

/** Refused cards: the field at fault, and a part of the message. */
const REFUSED: [string, card: unknown, param: string, message?: string][] = [
  ["an unknown token", { token: "pm_1PxNowTwo3Four5" }, "card.token", TOKEN_HINT],
  ["a test token in other case", { token: "pm_card_Visa" }, "card.token", TOKEN_HINT],
  ["another prefix", { token: "tok_visa" }, "card.token"],
  ["the prefix alone", { token: "pm_" }, "card.token"],
  ["a space", { token: "pm_card_visa " }, "card.token"],
  ["a token of 254 characters", { token: `pm_${"x".repeat(251)}` }, "card.token"],
  ["an empty token", { token: "" }, "card.token"],
  ["null as token", { token: null }, "card.token"],
  ["a number as token", { token: 4242 }, "card.token"],
  ["a card number as token", { token: "4242424242424242" }, "card.token"],
  ["a token and a number", { token: "pm_card_visa", ...APPROVED_CARD }, "card.token", "leave"],
  ["a token and a CVC", { token: "pm_card_visa", cvc: "123" }, "card.token", "leave"],
  ["a token and a postal code", { token: "pm_card_visa", postal_code: "10115" }, "card.token"],
  ["an empty object", {}, "card.number", "is required"],
  ["an unknown member beside a token", { token: "pm_card_visa", brand: "visa" }, "card.brand"],
  ["a postal code only", { postal_code: "10115" }, "card.number", "is required"],
  ...(["number", "exp_month", "exp_year", "cvc"] as const).map((name): typeof REFUSED[number] => [
    `no ${name}`,
    { ...APPROVED_CARD, [name]: undefined },
    `card.${name}`,
    `"card.${name}" is required`,
  ]),
  ["no expiry", { number: APPROVED_CARD.number, cvc: "123" }, "card.exp_month", "is required"],
  ["a list", [], "card", '"token"'],
  ["text", "pm_card_visa", "card", '"token"'],
  ["null", null, "card", '"token"'],
];

serviceCase("POST /v1/payments refuses other cards", async (t, service) => {
  for (const [name, card, param, message] of REFUSED) {
    for (const path of [PAYMENTS, `${SANDBOX}/payments`]) {
      await t.step(`${name} at ${path} → ${param}`, async () => {
        const before = await rowCounts(service);
        const response = await service.call("POST", path, {
          body: { amount: 1000, currency: "EUR", card },
          idempotency_key: "refused",
        });
        assertRefused(response, 400, "invalid_parameter", param);
        if (message) assert.ok(response.body.error.message.includes(message), response.text);
        assert.deepEqual(await rowCounts(service), before);
      });
    }
  }
});

serviceCase("POST /v1/payments with a live key takes only tokens", async (t, service) => {
  const { text: key } = service.live;
  const before = await rowCounts(service);
  for (const token of ["pm_1PxNowTwo3Four5", "pm_card_visa", `pm_${"x".repeat(250)}`]) {
    await t.step(`${token.slice(0, 20)} → 503`, async () => {
      const response = await service.pay({ card: { token } }, { key, idempotency_key: "live" });
      assertRefused(response, 503, "provider_not_configured");
      assert.deepEqual(await rowCounts(service), before);
    });
  }
  const numbers = ["4242 4242 4242 4242", "4111 1111 1111 1111", "5555-5555-5555-4444"];
  for (const number of numbers) {
    await t.step(`${number} → 400 that names card.token`, async () => {
      service.logs.length = 0;
      const response = await service.pay({ card: { ...APPROVED_CARD, number } }, { key });
      assertRefused(response, 400, "invalid_parameter", "card.number");
      assert.ok(response.body.error.message.includes("card.token"), response.text);
      const told = response.text + JSON.stringify(service.logs);
      assert.ok(!told.includes(number), "the number is repeated");
      assert.deepEqual(await rowCounts(service), before);
    });
  }
});
