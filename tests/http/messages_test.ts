/**
 * Messages of validation: the words that follow from an amount and from each kind of schema. Every
 * error that a test gets has a message for people (tests/support/service/openapi_check.ts).
 */

import assert from "node:assert/strict";
import type * as z from "zod";
import { parseBody } from "../../shared/http/parse_input.ts";
import { CapturePaymentBody, CreatePaymentBody } from "../../shared/schema/payment_body.ts";
import { readBody } from "../support/http/read_body.ts";

/** Bodies, and below each its message. */
const CREATES = `
{"amount": 19.99, "currency": "EUR"}
    Amounts are whole minor units: 19.99 EUR is 1999. Send "amount": 1999
{"amount": 10.0, "currency": "EUR"}
    Amounts are whole minor units: 10.0 EUR is 1000. Send "amount": 1000
{"amount": 1.5, "currency": "USDC"}
    Amounts are whole minor units: 1.5 USDC is 1500000. Send "amount": 1500000
{"amount": 19.99, "currency": "JPY"}
    Amounts are whole minor units, and JPY has no decimals: send 20 for 20 JPY
{"amount": 19.9951, "currency": "KWD"}
    Amounts are whole minor units, and KWD has 3 decimals: 19.9951 KWD has too many
{"amount": 0.001, "currency": "EUR"}
    Amounts are whole minor units, and EUR has 2 decimals: 0.001 EUR has too many
{"amount": "1999", "currency": "EUR"}
    "amount" must be a number without quotes: send 1999, not "1999"
{"amount": 1e3, "currency": "EUR"}
    "amount" must be written with digits only: send 1000
{"amount": -1.5, "currency": "EUR"}
    "amount" must be at least 1, which is 0.01 EUR
{"amount": "0.00", "currency": "EUR"}
    "amount" must be at least 1, which is 0.01 EUR
{"amount": 0, "currency": "JPY"}
    "amount" must be at least 1, which is 1 JPY
{"amount": 1000000000000, "currency": "KWD"}
    "amount" must be at most 999999999999, which is 999999999.999 KWD
{"amount": true, "currency": "EUR"}
    "amount" must be a whole number in minor units of the currency: 19.99 EUR is 1999
{"currency": "EUR"}
    "amount" is required, in whole minor units: send 1999 for 19.99 EUR
{"currency": "JPY"}
    "amount" is required, in whole minor units: send 1999 for 1999 JPY
{"amount": 1}
    "currency" is required: send a currency code such as "EUR", "USD" or "USDC"
{"amount": 1, "currency": null}
    "currency" cannot be null: send a currency code such as "EUR", "USD" or "USDC"
{"amount": 1, "currency": "EUR", "capture": null}
    "capture" cannot be null: leave it out, or send "automatic" or "manual"
{"amount": 1, "currency": "EUR", "capability": "card"}
    "capability" must be "card_payment", "sepa_payment", "swift_payment" or "stablecoin_payment"
{"amount": 1, "currency": "EUR", "card": {"exp_month": 13}}
    "card.exp_month" must be a whole number from 1 to 12
{"amount": 1, "currency": "EUR", "card": {"exp_month": "12"}}
    "card.exp_month" must be a whole number from 1 to 12, without quotes
{"amount": 1, "currency": "EUR", "card": {"postal_code": "xxxxxxxxxxxxxxxxxxxxx"}}
    "card.postal_code" must be text of at most 20 characters: it has 21
{"amount": 1, "currency": "EUR", "customer": {"id": "", "email": "a@b.example"}}
    "customer.id" must be text of 1 to 64 characters: it is empty
{"amount": 1, "currency": "EUR", "customer": 5}
    "customer" must be an object with "email"
{"amount": 1, "currency": "EUR", "mandate": 5}
    "mandate" must be an object with "signed_at"
{"amount": 1, "currency": "EUR", "off_session": "5"}
    "off_session" must be true or false
{"amount": 1, "currency": "EUR", "metadata": {"": "x"}}
    A name in "metadata" has 0 characters: names have 1 to 40 characters
`;
/** Captures, whose currency the body does not have. */
const CAPTURES = `
{"amount": 12.5}
    Amounts are whole minor units of the currency: 19.99 EUR is 1999, and 1999 JPY is 1999
{"amount": 0}
    "amount" must be at least 1, in minor units
{"amount": 1000000000000}
    "amount" must be at most 999999999999, in minor units
`;

function testMessages(name: string, schema: z.ZodType, table: string): void {
  for (const [, body, message] of table.matchAll(/^(\{.*)\n {4}(.*)/gm)) {
    Deno.test(`parseBody() of ${name} ${body}`, () => {
      assert.throws(() => parseBody<unknown>(schema, readBody(body!, schema)), { message });
    });
  }
}

testMessages("a create", CreatePaymentBody, CREATES);
testMessages("a capture", CapturePaymentBody, CAPTURES);
