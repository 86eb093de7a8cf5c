/**
 * Notifications: signatures beside Stripe's own package, and the provider events of Stripe's
 * events.
 */

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import Stripe from "stripe";
import { stripeConnector } from "../../shared/connectors/stripe/stripe_connector.ts";
import { STRIPE_EVENT_TYPES } from "../../shared/connectors/stripe/stripe_events.ts";
import { ApiError } from "../../shared/core/errors.ts";
import type { ProviderAccount } from "../../shared/domain/providers/connector.ts";
import {
  account,
  dispute,
  event,
  intent,
  keptCard,
  NOTIFICATION_SECRET,
  NOW,
  NOW_MS,
  payout,
  refund,
  setup,
} from "../support/connectors/stripe_case.ts";

const OTHER_SECRET = "whsec_9876543210";
const stripe = new Stripe("sk_test_1");
const connector = stripeConnector();
const SUCCEEDED = JSON.stringify(event("payment_intent.succeeded", intent()), null, 2);

/** The header that Stripe's package makes. */
const sign = (payload: string, secret = NOTIFICATION_SECRET, timestamp = NOW) =>
  stripe.webhooks.generateTestHeaderStringAsync({ payload, secret, timestamp });

function read(
  body: string | Uint8Array<ArrayBuffer>,
  header: string | null,
  more: Partial<ProviderAccount> = {},
) {
  const raw = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const headers = new Headers(header === null ? {} : { "Stripe-Signature": header });
  return connector.notifications!.read(account(more), raw, headers, NOW_MS);
}

async function assertRefused(reading: Promise<unknown>, code: string, param?: string) {
  await assert.rejects(reading, (error) => {
    assert.ok(error instanceof ApiError);
    assert.equal(error.code, code);
    assert.equal(error.details.param, param);
    assert.doesNotMatch(error.message, /whsec|v1=/);
    return true;
  });
}

const v1 = (header: string) => /v1=[0-9a-f]{64}/.exec(header)![0];
const own = await sign(SUCCEEDED);
const other = await sign(SUCCEEDED, OTHER_SECRET);

const SIGNATURES: [name: string, header: string | null, secrets: string[], accepted: boolean][] = [
  ["of the secret", own, [NOTIFICATION_SECRET], true],
  ["of the new secret during a rotation", own, [OTHER_SECRET, NOTIFICATION_SECRET], true],
  ["of the old secret during a rotation", other, [OTHER_SECRET, NOTIFICATION_SECRET], true],
  ["of two secrets, of which we have one", `${other},${v1(own)}`, [NOTIFICATION_SECRET], true],
  ["beside other schemes", `${own},v0=abc,v2=def`, [NOTIFICATION_SECRET], true],
  ["with spaces", own.replace(",", " , "), [NOTIFICATION_SECRET], true],
  ["of another secret", other, [NOTIFICATION_SECRET], false],
  ["without secrets", own, [], false],
  ["with an empty secret", await sign(SUCCEEDED, " "), ["", " "], false],
  ["that is missing", null, [NOTIFICATION_SECRET], false],
  ["that is empty", "", [NOTIFICATION_SECRET], false],
  ["without a time", v1(own), [NOTIFICATION_SECRET], false],
  ["without v1", own.replace("v1=", "v0="), [NOTIFICATION_SECRET], false],
  ["that is cut", own.slice(0, -1), [NOTIFICATION_SECRET], false],
  ["with another time", own.replace(`t=${NOW}`, `t=${NOW + 1}`), [NOTIFICATION_SECRET], false],
  ["with a time that is no number", own.replace(`t=${NOW}`, "t=now"), [NOTIFICATION_SECRET], false],
];
for (const [name, header, notification_secrets, accepted] of SIGNATURES) {
  Deno.test(`readNotification() ${accepted ? "accepts" : "refuses"} a signature ${name}`, async () => {
    const reading = read(SUCCEEDED, header, { notification_secrets });
    if (accepted) assert.equal((await reading)![0]!.reference, "pi_1:succeeded");
    else await assertRefused(reading, "unauthorized");
  });
}

Deno.test("readNotification() tells the operator that no secret is set", async () => {
  const reading = read(SUCCEEDED, own, { notification_secrets: [""] });
  await assert.rejects(reading, /no notification secret/);
});

for (const age of [-301, -300, 0, 300, 301]) {
  const accepted = Math.abs(age) <= 300;
  Deno.test(`readNotification() ${accepted ? "accepts" : "refuses"} an age of ${age} s`, async () => {
    const header = await sign(SUCCEEDED, NOTIFICATION_SECRET, NOW - age);
    const reading = read(SUCCEEDED, header);
    if (accepted) await reading;
    else await assertRefused(reading, "unauthorized");
  });
}

Deno.test("readNotification() checks the bytes as they are", async () => {
  await read(SUCCEEDED, own);
  await assertRefused(read(JSON.stringify(JSON.parse(SUCCEEDED)), own), "unauthorized");
  await assertRefused(read(SUCCEEDED + " ", own), "unauthorized");
});

/** An object of each kind of events, and the provider events of each event about it. */
const OBJECTS: Record<string, [object: Record<string, unknown>, references: string[]]> = {
  payment_intent: [intent(), ["pi_1:succeeded", "ch_1:fee"]],
  refund: [refund(), ["re_1:succeeded"]],
  "charge.dispute": [dispute("needs_response", [-1099, 1500]), ["du_1:disputed", "du_1:fee"]],
  payout: [payout("failed"), ["po_1:created", "po_1:returned"]],
  setup_intent: [setup(), ["seti_1:succeeded"]],
  "payment_method.automatically_updated": [keptCard(), ["pm_1:renewed visa 4242 2034-12"]],
  "payment_method.detached": [keptCard({ customer: null }), ["pm_1:detached"]],
  "charge.refunded": [{ id: "ch_1", object: "charge" }, []],
  invoice: [{ id: "in_1", object: "invoice" }, []],
};
for (const type of [...STRIPE_EVENT_TYPES, "charge.refunded", "invoice.paid"]) {
  const kind = Object.keys(OBJECTS).find((name) => type.startsWith(name))!;
  const [object, references] = OBJECTS[kind]!;
  Deno.test(`readNotification() of ${type} gives [${references}]`, async () => {
    const body = JSON.stringify(event(type, object, { livemode: true }));
    const provider_events = await read(body, await sign(body));
    assert.deepEqual(provider_events!.map(({ reference }) => reference), references);
    // Only a refund has no livemode of its own.
    if (kind === "refund") assert.equal(provider_events![0]!.livemode, true);
  });
}

const BODIES: [name: string, body: string | Uint8Array<ArrayBuffer>, param: string][] = [
  ["that is empty", "", "body"],
  ["that is HTML", "<html></html>", "body"],
  ["that is not UTF-8", new Uint8Array([0x7b, 0xff, 0x7d]), "body"],
  ["that is a list", "[]", "body"],
  ["that is no event", JSON.stringify(intent()), "body"],
  [
    "with another object than its type",
    JSON.stringify(event("payment_intent.succeeded", refund())),
    "data.object",
  ],
  [
    "with an amount that is a text",
    JSON.stringify(event("payment_intent.succeeded", intent({ amount_received: "1099" }))),
    "data.object",
  ],
];
for (const [name, body, param] of BODIES) {
  Deno.test(`readNotification() refuses a signed body ${name}`, async () => {
    const raw = typeof body === "string" ? new TextEncoder().encode(body) : body;
    // The package signs only texts, so this header signs the bytes.
    await assertRefused(read(raw, headerOf(raw)), "invalid_parameter", param);
  });
}

function headerOf(raw: Uint8Array): string {
  const hmac = createHmac("sha256", NOTIFICATION_SECRET).update(`${NOW}.`).update(raw);
  return `t=${NOW},v1=${hmac.digest("hex")}`;
}

const ACCOUNTS: [named: string | undefined, setting: string | undefined, is_read: boolean][] = [
  [undefined, undefined, true],
  ["acct_1", "acct_1", true],
  ["acct_1", undefined, false],
  [undefined, "acct_1", false],
  ["acct_2", "acct_1", false],
];
for (const [named, setting, is_read] of ACCOUNTS) {
  const result = is_read ? "read" : "ignored";
  Deno.test(`readNotification() of account ${named} for ${setting} is ${result}`, async () => {
    const more = named ? { account: named } : {};
    const body = JSON.stringify(event("payment_intent.succeeded", intent(), more));
    const settings: Record<string, string> = setting ? { connected_account: setting } : {};
    const provider_events = await read(body, await sign(body), { settings });
    assert.equal(provider_events?.[0]?.reference, is_read ? "pi_1:succeeded" : undefined);
  });
}
