/**
 * Unknown fields that look like another name of a known one are refused and change nothing; other
 * unknown fields are the merchant's own and are accepted (contract §2).
 */

import assert from "node:assert/strict";
import type * as z from "zod";
import { ADDRESSES } from "../../scripts/documents/openapi/operations.ts";
import { FOREIGN_NAMES } from "../../shared/http/foreign_names.ts";
import { isNear, refuseMisnamed } from "../../shared/http/misnamed_fields.ts";
import { memberOf, namesOf } from "../../shared/schema/requirement.ts";
import { addEndpoint } from "../support/webhook/recording_receiver.ts";
import { recordOf } from "../support/database/payment_records.ts";
import type { TestService } from "../support/service/service.ts";
import {
  APPROVED,
  assertRefused,
  paymentIn,
  PAYMENTS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";

const TRANSFERS = "/api-v1-payments/v1/transfers";
const ENDPOINTS = "/api-v1-payments/v1/webhook_endpoints";
const CARD = APPROVED.card.card;
const TOKEN = { token: "pm_card_visa" };
const PAID = { amount: 1000, currency: "EUR" };
const WALLET = APPROVED.stablecoin.wallet;

type Body = Record<string, unknown>;
/** Refused creates: the other name, the body, and the part of the message that says what to send. */
const CREATES: [param: string, body: Body, send: string][] = [
  ["crad", { crad: TOKEN }, '"card"'],
  ["cards", { cards: TOKEN }, '"card"'],
  ["Card", { Card: TOKEN }, '"card"'],
  ["ibna", { ibna: APPROVED.sepa.iban }, '"iban"'],
  ["walet", { walet: WALLET }, '"wallet"'],
  ["amuont", { amuont: 5 }, '"amount"'],
  ["amountMinor", { amountMinor: 5 }, '"amount_minor"'],
  ["currancy", { currancy: "USD" }, '"currency"'],
  ["captrue", { captrue: "manual" }, '"capture"'],
  ["capture_method", { ...APPROVED.card, capture_method: "manual" }, '"capture": "manual"'],
  ["captureMode", { ...APPROVED.card, captureMode: "manual" }, '"capture": "manual"'],
  ["captureDelayHours", { ...APPROVED.card, captureDelayHours: 0 }, '"capture": "manual"'],
  ["confirm", { confirm: false }, '"capture": "manual"'],
  ["payment_method", { payment_method: "pm_card_visa" }, '"card": {"token": "pm_…"}'],
  ["paymentMethod", { paymentMethod: { type: "scheme" } }, '"card": {"token": "pm_…"}'],
  ["cardToken", { cardToken: "tkn_1" }, '"card": {"token": "pm_…"}'],
  ["method", { method: "creditcard" }, '"method_kind"'],
  ["payment_method_types", { payment_method_types: ["card"] }, '"method_kind"'],
  ["returnUrl", { returnUrl: "https://shop.example" }, '"return_url"'],
  ["redirectUrl", { redirectUrl: "https://shop.example" }, '"return_url"'],
  ["webhookUrl", { webhookUrl: "https://shop.example" }, "POST /v1/webhook_endpoints"],
  ["application_fee_amount", { application_fee_amount: 5 }, "nothing like it"],
  ["transfer_data", { transfer_data: {} }, "nothing like it"],
  ["referance", { referance: "1" }, '"reference"'],
  ["meta_data", { meta_data: {} }, '"metadata"'],
  ["card.cvv", { card: { ...CARD, cvc: undefined, cvv: "123" } }, '"card.cvc"'],
  ["card.expiryMonth", { card: { ...CARD, expiryMonth: 1 } }, '"card.exp_month"'],
  ["iban.holderName", { iban: { iban: "DE89370400440532013000", holderName: "A" } }, "holder_name"],
  ["wallet.chain", { wallet: { address: WALLET, chain: "polygon" } }, '"wallet.network"'],
  ["customer.emial", { customer: { emial: "a@b.example" } }, '"customer.email"'],
];

/** Accepted creates: fields that a merchant can have for data of its own. */
const ACCEPTED: Body[] = [
  { cart: { items: 2 }, order: 1, order_id: "1", user: "ada", plan: "pro", notes: "x" },
  { payee: "Ada", player: "Ada", paper: 1, care: true, car: "red", code: "x", ban: 1 },
  { source: "web", type: "one_off", channel: "app", tags: ["a"], items: [], quantity: 2 },
  { id: "1", object: "payment", status: "pending", livemode: false, created_at: "x", sequence: 1 },
  { tax_amount: 5, discount: 5, account: "1", total: 1000, price: 1000, name: "x", email: "x" },
  { statement_descriptor: "SHOP", receipt_email: "a@b.example", preference: 1, pallet: 1 },
  { metadata: { crad: "1", capture_method: "manual", payment_method: "x", amuont: "5" } },
  { customer: { email: "a@b.example", phone: "1", address: {}, mail: "x", nickname: "y" } },
];

serviceCase("POST /v1/payments with another name of a field", async (t, service) => {
  const count = async () => (await service.sql`select count(*)::int as n from pay.payments`)[0]!.n;
  for (const [param, body, send] of CREATES) {
    await t.step(`${param}: 400, send ${send}`, async () => {
      const before = await count();
      for (const path of [PAYMENTS, `${SANDBOX}/payments`]) {
        const response = await service.call("POST", path, {
          body: { ...PAID, ...body },
          idempotency_key: crypto.randomUUID(),
        });
        assertRefused(response, 400, "invalid_parameter", param);
        assert.ok(response.body.error.message.includes(send), response.body.error.message);
        assert.ok(response.headers.get("Unknown-Parameters")!.split(", ").includes(param));
      }
      assert.equal(await count(), before);
    });
  }
  for (const body of ACCEPTED) {
    await t.step(`${Object.keys(body)}: accepted and named in the header`, async () => {
      const { status, text, headers } = await service.pay(body);
      assert.equal(status, 201, text);
      const own = body.metadata ? null : Object.keys(body.customer ? body.customer : body);
      const named = headers.get("Unknown-Parameters")?.split(", ") ?? null;
      if (own === null) assert.equal(named, null);
      else for (const name of named!) assert.ok(own.includes(name.replace("customer.", "")), name);
    });
  }
  await t.step("the client that corrects the name can use the same idempotency key", async () => {
    const send = (name: string) => service.pay({ [name]: TOKEN }, { idempotency_key: "corrected" });
    assert.equal((await send("crad")).status, 400);
    assert.deepEqual([(await send("card")).status], [201]);
  });
});

/** Refused requests of other operations. Makes what the request is about, and returns its path. */
const OTHERS: [name: string, make: (service: TestService) => Promise<string>, [string, Body][]][] =
  [
    ["refund", async (service) => {
      const { id } = await paymentIn(service, "completed");
      return `${PAYMENTS}/${id}/refund`;
    }, [
      ["amout", { amout: 5 }],
      ["amount_in_cents", { amount_in_cents: 5 }],
      ["value", { value: 5 }],
      ["reverse_transfer", { reverse_transfer: true }],
      ["destinaton", { destinaton: {} }],
    ]],
    ["capture", async (service) => {
      const { id } = await paymentIn(service, "authorized");
      return `${PAYMENTS}/${id}/capture`;
    }, [
      ["amount_to_capture", { amount_to_capture: 5 }],
      ["amountMinor", { amountMinor: 5 }],
      ["final_capture", { amount: 5, final_capture: false }],
    ]],
    ["transfer", () => Promise.resolve(TRANSFERS), [
      ["destination.wallet.blockchain", {
        ...PAID,
        destination: { wallet: { address: WALLET, blockchain: "polygon" } },
      }],
      ["setlement", { ...PAID, destination: { iban: APPROVED.sepa.iban }, setlement: "manual" }],
    ]],
    ["webhook endpoint", () => Promise.resolve(ENDPOINTS), [
      ["enabled_events", { url: "https://a.example", enabled_events: ["payment.completed"] }],
      ["event", { url: "https://a.example", event: ["payment.completed"] }],
    ]],
    ["API key", () => Promise.resolve("/api-v1-payments/v1/api_keys"), [
      ["scope", { name: "x", scope: ["payments:read"] }],
      ["expires_in", { name: "x", expires_in: 60 }],
    ]],
    ["fault", () => Promise.resolve(`${SANDBOX}/faults`), [
      ["where.opration", { on: "provider", fault: "timeout", where: { opration: "capture" } }],
    ]],
  ];

serviceCase("other operations with another name of a field", async (t, service) => {
  await addEndpoint(service, "https://hooks.example/");
  for (const [name, make, bodies] of OTHERS) {
    const path = await make(service);
    for (const [param, body] of bodies) {
      await t.step(`${name}, ${param}: 400`, async () => {
        const id = /pay_\w+/.exec(path)?.[0];
        const before = id && (await recordOf(service, id)).text;
        assertRefused(await service.call("POST", path, { body }), 400, "invalid_parameter", param);
        assert.equal(id && (await recordOf(service, id)).text, before);
      });
    }
  }
  await t.step("an endpoint can be stored as it was read", async () => {
    const { body: [endpoint] } = { body: (await service.call("GET", ENDPOINTS)).body.data };
    const { status, text } = await service.call("PUT", `${ENDPOINTS}/${endpoint.id}`, {
      body: { ...endpoint, events: ["*"] },
    });
    assert.equal(status, 200, text);
  });
});

/** Every object of a body, with its path. */
function objectsOf(schema: z.ZodType, path = ""): [path: string, schema: z.ZodType][] {
  const names = namesOf(schema);
  if (names.length === 0) return [];
  return [
    [path, schema],
    ...names.flatMap((name) => objectsOf(memberOf(schema, name)!, `${path}${name}.`)),
  ];
}

const OBJECTS = ADDRESSES.flatMap(({ operation }) => objectsOf(operation.body));

Deno.test("FOREIGN_NAMES: each name is refused in some body, and says what to send", () => {
  for (const { names, ours, unless } of FOREIGN_NAMES) {
    const found = OBJECTS.find(([, schema]) => {
      const known = namesOf(schema);
      return known.includes(ours) && !known.includes(unless ?? "");
    });
    assert.ok(found, `no body has "${ours}"`);
    const [path, parent] = found;
    for (const name of names) {
      assert.ok(!namesOf(parent).includes(name), `${name} is a name of ours`);
      const field = { path: path + name, name, value: 1, parent };
      assert.throws(() => refuseMisnamed([field], (text) => text), { code: "invalid_parameter" });
    }
  }
});

/** Names, and whether one can be a misspelling of the other. */
const NEAR: [sent: string, ours: string, near: boolean][] = [
  ["amount", "amount", true],
  ["amounts", "amount", true],
  ["mount", "amount", true],
  ["amoumt", "amount", true],
  ["maount", "amount", true],
  ["ammount", "amount", true],
  ["account", "amount", false],
  ["amo", "amount", false],
  ["event", "events", true],
  ["crad", "card", true],
  ["cards", "card", true],
  ["cart", "card", false],
  ["car", "card", false],
  ["payee", "payer", false],
  ["player", "payer", false],
  ["tos", "to", false],
  ["no", "on", false],
  ["preference", "reference", false],
  ["", "amount", false],
];
for (const [sent, ours, near] of NEAR) {
  Deno.test(`isNear("${sent}", "${ours}") is ${near}`, () => {
    assert.equal(isNear(sent, ours), near);
  });
}

serviceCase("a body of many and of long unknown names takes little time", async (t, service) => {
  const bodies: [name: string, body: Body][] = [
    ["many", Object.fromEntries(Array.from({ length: 3_000 }, (_, i) => [`amount_${i}_x`, 1]))],
    ["long", { ["amount".repeat(8_000)]: 1 }],
  ];
  for (const [name, body] of bodies) {
    await t.step(name, async () => {
      const { status, text } = await service.pay(body);
      assert.equal(status, 201, text.slice(0, 200));
      const fields = Object.keys(body).map((name) => ({
        path: name,
        name,
        value: 1,
        parent: OBJECTS[0]![1],
      }));
      const begun = performance.now();
      for (let i = 0; i < 10; i++) refuseMisnamed(fields, (text) => text);
      assert.ok(performance.now() - begun < 1_000);
    });
  }
});
