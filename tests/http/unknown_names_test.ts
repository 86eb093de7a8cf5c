/** A name that an operation does not have is 400 and changes nothing (contract §2, ADR 0014). */

import assert from "node:assert/strict";
import * as z from "zod";
import { ADDRESSES } from "../../tools/generate/openapi/operations.ts";
import type { ApiError } from "../../shared/core/errors.ts";
import { generateApiKey } from "../../shared/core/api_key.ts";
import { parseBody, parseQuery } from "../../shared/http/parse_input.ts";
import { nearestName, OTHER_NAMES, refuseUnknownNames } from "../../shared/http/unknown_names.ts";
import { CreateApiKeyBody } from "../../shared/schema/api_key.ts";
import { EmptyBody } from "../../shared/schema/empty.ts";
import { ListPaymentsQuery } from "../../shared/schema/list.ts";
import { CapturePaymentBody, CreatePaymentBody } from "../../shared/schema/payment_body.ts";
import { CreateRefundBody } from "../../shared/schema/refund_body.ts";
import { memberOf, namesOf } from "../../shared/schema/requirement.ts";
import { CreateWebhookEndpointBody } from "../../shared/schema/webhook_body.ts";
import { readBody } from "../support/http/read_body.ts";
import { rowCounts } from "../support/database/payment_records.ts";
import {
  assertRefused,
  paymentIn,
  PAYMENTS,
  serviceCase,
} from "../support/service/service_case.ts";

const ENDPOINTS = "/api-v1-payments/v1/webhook_endpoints";

/** Returns the error of an input. */
function errorOf(run: () => unknown): ApiError {
  let found: unknown;
  assert.throws(run, (error) => (found = error, true));
  const error = found as ApiError;
  assert.equal(error.code, "invalid_parameter", error.message);
  return error;
}

const CARD = { number: "4242424242424242", exp_month: 12, exp_year: 2034 };
const LATER = 'send "capture": "manual"';
const NOTHING = "this service has nothing like it: remove it";

/** A schema, an input, `param` and a part of the message. OTHER_NAMES has more names of others. */
const CASES: [schema: z.ZodType, sent: Record<string, unknown>, param: string, says: string][] = [
  [CreatePaymentBody, { crad: {} }, "crad", 'did you mean "card"? Send that, or remove it'],
  [CreatePaymentBody, { Card: {} }, "Card", '"card"'],
  [CreatePaymentBody, { amountMinor: 5 }, "amountMinor", '"amount_minor"'],
  [CreatePaymentBody, { returnUrl: "" }, "returnUrl", '"return_url"'],
  [CreatePaymentBody, { webhookUrl: "" }, "webhookUrl", "POST /v1/webhook_endpoints"],
  [CreatePaymentBody, { capture_method: "manual" }, "capture_method", LATER],
  [CreatePaymentBody, { confirm: true }, "confirm", "creating a payment confirms it: remove it"],
  [CreatePaymentBody, { payment_method: "pm_1" }, "payment_method", '"card": {"token": "pm_…"}'],
  [CreatePaymentBody, { setup_future_usage: "x" }, "setup_future_usage", '"save": "off_session"'],
  [CreatePaymentBody, { shopperReference: "x" }, "shopperReference", '"customer": {"id": …}'],
  [CreatePaymentBody, { email: "a@b.example" }, "email", 'send "customer": {"email": …}'],
  [CreatePaymentBody, { "card[number]": "1" }, "card[number]", 'send "card": {"number": …}'],
  [CreatePaymentBody, { card_number: "4242424242424242" }, "card_number", '"card": {"number": …}'],
  [CreatePaymentBody, { application_fee_amount: 1 }, "application_fee_amount", NOTHING],
  [CreatePaymentBody, { idempotency_key: "1" }, "idempotency_key", 'header "Idempotency-Key"'],
  [CreatePaymentBody, { colour: 1, crad: {} }, "colour", '"colour" is not a parameter: remove it'],
  [CreatePaymentBody, { amount: 0, card: { colour: 1 } }, "card.colour", "The names here are"],
  [CreatePaymentBody, { card: { ...CARD, cvv: "123" } }, "card.cvv", '"card.cvc"'],
  [CreatePaymentBody, { card: { expiryMonth: 1 } }, "card.expiryMonth", '"card.exp_month"'],
  [CreatePaymentBody, { iban: { holder: "A" } }, "iban.holder", '"iban.holder_name"'],
  [
    CreatePaymentBody,
    { iban: { address: { zip: "1" } } },
    "iban.address.zip",
    "The names here are",
  ],
  [CreatePaymentBody, { wallet: { chain: "polygon" } }, "wallet.chain", '"wallet.network"'],
  [CreatePaymentBody, { ["x".repeat(256)]: 1 }, "x".repeat(100), "remove it"],
  [CreatePaymentBody, { "größe\r\n": 1 }, "größe??", "remove it"],
  [CreatePaymentBody, { toString: 1 }, "toString", "remove it"],
  [CreatePaymentBody, { "7351": 1 }, "…", '"…" is not a parameter'],
  [CreatePaymentBody, { "4539 5787 6362 1486": 1 }, "…", '"…" is not a parameter'],
  [CreatePaymentBody, { card: { "iban NL91ABNA0417164300": 1 } }, "card.…", "is not a parameter"],
  [CreatePaymentBody, { [`of ${generateApiKey("test")}`]: 1 }, "…", "is not a parameter"],
  [CreatePaymentBody, { [`_${generateApiKey("live")}s`]: 1 }, "…", "is not a parameter"],
  [CreatePaymentBody, { [`${"x".repeat(95)} 4539578763621486`]: 1 }, "…", "is not a parameter"],
  [CreateRefundBody, { amount_to_refund: 5 }, "amount_to_refund", '"amount"'],
  [CreateRefundBody, { partial_amount: 5 }, "partial_amount", '"amount"'],
  [CreateRefundBody, { cents: 5 }, "cents", '"amount"'],
  [CapturePaymentBody, { final_capture: false }, "final_capture", NOTHING],
  [
    CapturePaymentBody,
    { note: 1 },
    "note",
    'remove it. The names here are "amount", "amount_minor"',
  ],
  [CreateWebhookEndpointBody, { enabled_events: [] }, "enabled_events", '"events"'],
  [CreateApiKeyBody, { permissions: [] }, "permissions", '"scopes"'],
  [EmptyBody, { reason: "x" }, "reason", "there are none here, so remove it"],
];

for (const [schema, sent, param, says] of CASES) {
  Deno.test(`parseBody() of ${JSON.stringify(sent).slice(0, 60)} names ${param.slice(0, 30)}`, () => {
    const error = errorOf(() => parseBody(schema, readBody(sent, schema)));
    assert.equal(error.details.param, param);
    assert.ok(error.message.startsWith(`"${param}" `), error.message);
    assert.ok(error.message.length <= 230 || param.length >= 100, error.message);
    assert.ok(error.message.includes(says), error.message);
  });
}

/** A query of a list, `param` and a part of the message. */
const QUERIES: [query: string, param: string, says: string][] = [
  ["startingAfter=x", "startingAfter", '"starting_after"'],
  ["cursor=x", "cursor", '"starting_after"'],
  ["ending_before=x", "ending_before", "lists go from new to old"],
  ["statuss=pending", "statuss", '"status"'],
  ["created[gte]=1", "created[gte]", '"created_after"'],
  ["customerId=u1", "customerId", '"customer_id"'],
  ["limit=0&limt=1", "limt", '"limit"'],
  ["x=1&x=2", "x", "remove it"],
  ["__proto__=1", "__proto__", "remove it"],
  ["4242424242424242=1", "…", "remove it"],
];
for (const [query, param, says] of QUERIES) {
  Deno.test(`parseQuery("${query}") names ${param}`, () => {
    const error = errorOf(() => parseQuery(ListPaymentsQuery, new URLSearchParams(query)));
    assert.equal(error.details.param, param);
    assert.ok(error.message.includes(says), error.message);
  });
}

/** Every object of a schema, with its path. */
function objectsOf(schema: z.ZodType, path: string[] = []): [string[], z.ZodType][] {
  const inner = namesOf(schema).flatMap((name) =>
    objectsOf(memberOf(schema, name)!, [...path, name])
  );
  return path.length === 0 || namesOf(schema).length > 0 ? [[path, schema], ...inner] : inner;
}

const OBJECTS = ADDRESSES.flatMap(({ operation: { id, body, query } }) => [
  ...objectsOf(body).map(([path, schema]) => ({ id, body, path, schema })),
  ...objectsOf(query).map(([path, schema]) => ({ id, body: query, path, schema })),
]);

Deno.test("refuseUnknownNames() knows every object of every operation", () => {
  assert.ok(OBJECTS.length > 100, String(OBJECTS.length));
  for (const { id, body, path } of OBJECTS) {
    const sent = path.reduceRight<object>((value, name) => ({ [name]: value }), { strange: 1 });
    const error = errorOf(() => refuseUnknownNames(body, sent));
    assert.equal(error.details.param, [...path, "strange"].join("."), id);
  }
});

Deno.test("refuseUnknownNames() looks into the objects of a list, and not into metadata", () => {
  const schema = z.object({
    items: z.array(z.object({ sku: z.string() })),
    metadata: z.record(z.string(), z.string()),
  });
  refuseUnknownNames(schema, { items: [{ sku: "1" }], metadata: { crad: "1" } });
  const error = errorOf(() => refuseUnknownNames(schema, { items: [{ sku: "1" }, { suk: "1" }] }));
  assert.equal(error.details.param, "items[1].suk");
  assert.match(error.message, /did you mean "items\[1\]\.sku"/);
});

Deno.test("OTHER_NAMES has names that are not ours, each once for an object that has its field", () => {
  for (const [ours, theirs] of OTHER_NAMES) {
    const known = OBJECTS.map(({ schema }) => namesOf(schema)).filter((names) =>
      ours === "" || names.includes(ours)
    );
    assert.ok(known.length > 0, `no object has "${ours}"`);
    for (const name of theirs.split(" ")) {
      assert.match(name, /^[a-z]+$/);
      assert.ok(
        known.some((names) => !names.some((one) => one.replaceAll("_", "") === name)),
        name,
      );
      const rows = OTHER_NAMES.filter((row) => row[0] === ours && row[1].split(" ").includes(name));
      assert.equal(rows.length, 1, name);
    }
  }
});

/** Names, and the nearest of `amount`, `card`, `events`, `payer` and `exp_month`. */
const NEAR: [sent: string, nearest: string | undefined][] = [
  ["amounts", "amount"],
  ["maount", "amount"],
  ["ammount", "amount"],
  ["amoumt", "amount"],
  ["refund_amount", "amount"],
  ["amountInCents", "amount"],
  ["month", "exp_month"],
  ["event", "events"],
  ["crad", "card"],
  ["payee", "payer"],
  ["colour", undefined],
  ["paramount", undefined],
  ["", undefined],
  ["_", undefined],
];
for (const [sent, nearest] of NEAR) {
  Deno.test(`nearestName("${sent}") is ${nearest}`, () => {
    const known = ["amount", "card", "events", "payer", "exp_month"];
    assert.equal(nearestName(sent, known), nearest);
  });
}

serviceCase("a request with an unknown name changes nothing", async (t, service) => {
  const { id } = await paymentIn(service, "completed");
  const endpoint = await service.post(ENDPOINTS, { delivery: "inbox" });
  const refund = `${PAYMENTS}/${id}/refund`;
  const key = "X-Idempotency-Key";
  const cases: [
    method: string,
    path: string,
    body: Record<string, unknown> | undefined,
    param: string,
    headers?: Record<string, string>,
  ][] = [
    ["POST", PAYMENTS, { amount: 1, currency: "EUR", colour: 1 }, "colour"],
    ["POST", PAYMENTS, { amount: 1, currency: "EUR" }, key, { [key]: "1" }],
    ["POST", refund, { partial_amount: 5 }, "partial_amount"],
    ["POST", `${PAYMENTS}/${id}/cancel`, { cancellation_reason: "x" }, "cancellation_reason"],
    ["POST", `${PAYMENTS}?expand=x`, { amount: 1, currency: "EUR" }, "expand"],
    ["PUT", `${ENDPOINTS}/${endpoint.id}`, { ...endpoint, status: "disabled" }, "id"],
    ["GET", `${PAYMENTS}/${id}?expand[]=card`, undefined, "expand[]"],
  ];
  for (const [method, path, body, param, headers = {}] of cases) {
    await t.step(`${method} ${path.replace(/_\w{26}/, "_…")} with ${param}: 400`, async () => {
      const before = await rowCounts(service);
      for (let i = 0; i < 2; i++) {
        const response = await service.call(method, path, { body, headers });
        assertRefused(response, "invalid_parameter", param);
      }
      assert.deepEqual(await rowCounts(service), before);
    });
  }
  await t.step("the client that corrects the name can use the same idempotency key", async () => {
    const send = (name: string) =>
      service.pay({ [name]: { token: "pm_card_visa" } }, { idempotency_key: "corrected" });
    assert.deepEqual([(await send("crad")).status, (await send("card")).status], [400, 201]);
  });
  await t.step("a header of another name beside ours is ignored", async () => {
    const options = { idempotency_key: "ours", headers: { [key]: "theirs" } };
    assert.equal((await service.pay({}, options)).status, 201);
  });
  await t.step(
    "names in metadata are the merchant's, and supabase-js may add its own",
    async () => {
      const body = { amount: 1, currency: "EUR", metadata: { crad: "1", idempotency_key: "2" } };
      const path = `${PAYMENTS}?forceFunctionRegion=eu-central-1`;
      await service.post(path, body);
    },
  );
  await t.step("a query of a route without a key is not read", async () => {
    for (const path of ["/api-v1-payments/health?x=1", "/api-v1-payments/v1/openapi.json?v=2"]) {
      await service.get(path, { key: null });
    }
  });
});
