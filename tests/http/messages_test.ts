/**
 * Messages with computed or chosen words: those of validation, which follow from an amount and from
 * each kind of schema, and those of decisions, headers, URLs and paths. Every
 * error that a test gets has a message for people (tests/support/service/openapi_check.ts).
 */

import assert from "node:assert/strict";
import type * as z from "zod";
import { checkEndpointUrl } from "../../shared/core/endpoint_url.ts";
import { cancelOf, captureOf } from "../../shared/domain/payments/capture_and_cancel.ts";
import { paymentOf } from "../../shared/domain/payments/create_payment.ts";
import { refundOf } from "../../shared/domain/payments/refund_payment.ts";
import { readIdempotencyKey } from "../../shared/http/idempotency_header.ts";
import { parseBody, parseQuery } from "../../shared/http/parse_input.ts";
import { noSuchResource, pathKind } from "../../shared/http/path_id.ts";
import { unknownRoute } from "../../shared/http/unknown_route.ts";
import { ListPaymentsQuery } from "../../shared/schema/list.ts";
import { CapturePaymentBody, CreatePaymentBody } from "../../shared/schema/payment_body.ts";
import { paymentWith, requestContext } from "../support/domain/decided_change.ts";
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

const context = requestContext();
const DONE = paymentWith({ status: "completed" });
const PARTLY = { ...DONE, settlement: "manual", amount_refunding: 300 } as const;
const ROUTES = ["GET", "POST"].map((method) => ({ path: "/api/v1/payments", method }));
const CARD = { number: "4242 4242 4242 4242", exp_month: 12, exp_year: 2020, cvc: "123" };
const WALLET = { address: "0x52908400098527886E0F7030069857D2E4169EE7" };
const UNREAL = "This is not a wallet address on";
const TEST_WALLET = "A test wallet is 0x000000000000000000000000000000000000dEaD";
const NO_HOOK = "This URL cannot be used for webhooks:";
const UNSERVED = "Nothing is served at this path";

const create = (body: Record<string, unknown>, livemode = false) => {
  const read = readBody({ amount: 1, currency: "EUR", ...body }, CreatePaymentBody);
  return paymentOf(parseBody(CreatePaymentBody, read), true, requestContext(livemode));
};
const hook = (url: string, allow_private = false) =>
  checkEndpointUrl(url, { allow_private, own_hosts: ["api.example"] });
const query = (text: string) => parseQuery(ListPaymentsQuery, new URLSearchParams(text));
const key = (text: string) => readIdempotencyKey(new Headers({ "Idempotency-Key": text }));
const missing = (path: string, id: string) => {
  throw noSuchResource(pathKind(path)!, id);
};
const route = (path: string) => {
  throw unknownRoute(path, ROUTES, "http://base");
};

/** Refusals by their message. */
const REFUSALS: [message: string, call: () => unknown][] = [
  [
    "Only 700 is left to refund, which is 7.00 EUR: send at most that amount",
    () => refundOf(paymentWith(PARTLY), { amount: 701 }, context),
  ],
  [
    "Only 1000 is authorized, which is 10.00 EUR: send at most that amount",
    () => captureOf(paymentWith({ status: "authorized" }), { amount: 1001 }, context),
  ],
  [
    "Cannot refund: pending refunds hold the rest of the payment",
    () => refundOf(paymentWith({ ...PARTLY, amount_refunding: 1000 }), {}, context),
  ],
  ["Cannot cancel: the payment is completed", () => cancelOf(DONE, context)],
  [
    'SEPA takes EUR only: send "EUR" as the "currency"',
    () => create({ method_kind: "sepa", currency: "USD" }),
  ],
  [
    'USDC needs a "wallet" or the kind "stablecoin": cards and banks do not take it',
    () => create({ currency: "USDC", method_kind: "card" }),
  ],
  [
    "The card has expired: any month in the future works for a test card",
    () => create({ card: CARD }),
  ],
  [
    "Nobody holds this address, so the money would be lost: use another address",
    () => create({ wallet: `0x${"0".repeat(40)}` }),
  ],
  [
    `${UNREAL} solana: check each character, or send another "network". ${TEST_WALLET}`,
    () => create({ wallet: { ...WALLET, network: "solana" } }),
  ],
  [
    'The wallet\'s "asset" is USDT, but "currency" is USDC: send the same in both',
    () => create({ wallet: { ...WALLET, asset: "USDT" }, currency: "USDC" }),
  ],
  [`${NO_HOOK} it must begin with https:// or http://`, () => hook("ftp://example.com/", true)],
  [`${NO_HOOK} it contains a fragment (#)`, () => hook("https://example.com/#top")],
  [
    `${NO_HOOK} port 25 is not allowed: use 443, or a port from 1024 up that no other protocol uses`,
    () => hook("https://example.com:25/"),
  ],
  [
    `${NO_HOOK} "api.example" is a host of this service: use a host of your own`,
    () => hook("https://api.example/"),
  ],
  [
    '"Idempotency-Key" has 300 characters, and 255 are the limit: send a UUID',
    () => key("x".repeat(300)),
  ],
  ['"limit" is in the URL twice: send it once', () => query("limit=5&limit=6")],
  [
    'The id in the path is not the id of an event: copy the whole id, which begins with "evt_"',
    () => missing("/v1/events/:id", "pay_1"),
  ],
  [`${UNSERVED}: use http://base/api/v1/payments`, () => route("/api/payments/")],
  [
    `${UNSERVED}. http://base/api-v1-payments/v1/openapi.json lists all paths`,
    () => route("/api/v1/charges"),
  ],
  ["This path takes only GET and POST", () => route("/api/v1/payments")],
];
for (const [message, call] of REFUSALS) {
  Deno.test(`the message "${message}"`, () => assert.throws(call, { message }));
}
