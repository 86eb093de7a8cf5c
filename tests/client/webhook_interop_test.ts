/**
 * Our signatures, verified by the unmodified npm packages `stripe` and `standardwebhooks`, and
 * their signatures, verified by our client. Both packages read the machine's clock.
 */

import assert from "node:assert/strict";
import StripeWorker from "stripe";
import { Webhook } from "standardwebhooks";
import { signWebhook, verifyWebhook } from "../../packages/client/webhook_signature.ts";
import { signDelivery } from "../../shared/core/webhook_signature.ts";
import { FOREIGN_SECRET, NEW_SECRET, OLD_SECRET } from "../support/client/endpoint_secrets.ts";

/** The build of the package for Node, which has a synchronous `constructEvent`. */
const node_build = new URL("./stripe.esm.node.js", import.meta.resolve("stripe")).href;
const { default: StripeNode } = await import(node_build) as { default: typeof StripeWorker };

const event_id = "evt_00000000000000000000000001";
const BODIES = [
  `{"id":"${event_id}","object":"event","type":"payment.completed","data":{"object":{}}}`,
  '{"object":"event","description":"Größe 日本語 🧾 \u2028"}',
  '{\r\n  "object": "event"\r\n}\n',
];
const now_seconds = () => Math.floor(Date.now() / 1000);

/** The headers of one delivery. `age_seconds` moves its time into the past. */
function deliver(body: string, secrets: string[], age_seconds = 0): Record<string, string> {
  return signDelivery({ event_id, body, secrets, timestamp_seconds: now_seconds() - age_seconds });
}

type Headers = Record<string, string>;
type Verifier = (body: string, headers: Headers, secret: string) => unknown;
const signature = (headers: Headers) => headers["Payment-Signature"]!;
const VERIFIERS: readonly [string, Verifier][] = [
  ["verifyWebhook()", (body, headers, secret) => verifyWebhook(body, signature(headers), secret)],
  [
    "stripe for Node constructEvent()",
    (body, headers, secret) => StripeNode.webhooks.constructEvent(body, signature(headers), secret),
  ],
  [
    "stripe for workers constructEventAsync()",
    (body, headers, secret) =>
      StripeWorker.webhooks.constructEventAsync(body, signature(headers), secret),
  ],
  [
    "standardwebhooks verify()",
    (body, headers, secret) => new Webhook(secret).verify(body, headers),
  ],
];

for (const [name, verify] of VERIFIERS) {
  Deno.test(`${name} accepts signatures of signDelivery()`, async () => {
    for (const body of BODIES) {
      const event = await verify(body, deliver(body, [NEW_SECRET]), NEW_SECRET);
      assert.deepEqual(event, JSON.parse(body));
    }
  });

  Deno.test(`${name} accepts either secret during a rotation`, async () => {
    const body = BODIES[0]!;
    const headers = deliver(body, [NEW_SECRET, OLD_SECRET]);
    await verify(body, headers, NEW_SECRET);
    await verify(body, headers, OLD_SECRET);
  });

  Deno.test(`${name} refuses another secret, another body and an old delivery`, async () => {
    const body = BODIES[0]!;
    const headers = deliver(body, [NEW_SECRET, OLD_SECRET]);
    const attempts: Parameters<Verifier>[] = [
      [body, headers, FOREIGN_SECRET],
      [body.replace("completed", "refunded"), headers, NEW_SECRET],
      [body, deliver(body, [NEW_SECRET], 301), NEW_SECRET],
    ];
    for (const attempt of attempts) {
      await assert.rejects(async () => await verify(...attempt));
    }
  });
}

Deno.test("verifyWebhook() accepts signatures of stripe", async () => {
  for (const payload of BODIES) {
    const header = StripeNode.webhooks.generateTestHeaderString({ payload, secret: NEW_SECRET });
    assert.deepEqual(await verifyWebhook(payload, header, NEW_SECRET), JSON.parse(payload));
  }
});

Deno.test("signDelivery() makes the same header as stripe", () => {
  for (const payload of BODIES) {
    const headers = deliver(payload, [NEW_SECRET]);
    const timestamp = Number(headers["Webhook-Timestamp"]);
    assert.equal(
      headers["Payment-Signature"],
      StripeNode.webhooks.generateTestHeaderString({ payload, secret: NEW_SECRET, timestamp }),
    );
  }
});

Deno.test("signDelivery() makes the same header as standardwebhooks", () => {
  for (const body of BODIES) {
    const headers = deliver(body, [NEW_SECRET, OLD_SECRET]);
    const at = new Date(Number(headers["Webhook-Timestamp"]) * 1000);
    const both = [NEW_SECRET, OLD_SECRET].map((secret) =>
      new Webhook(secret).sign(event_id, at, body)
    );
    assert.equal(headers["Webhook-Signature"], both.join(" "));
  }
});

Deno.test("signDelivery() and signWebhook() make the same header", async () => {
  for (const body of BODIES) {
    const headers = deliver(body, [NEW_SECRET]);
    const timestamp_seconds = Number(headers["Webhook-Timestamp"]);
    const header = await signWebhook({ body, secret: NEW_SECRET, timestamp_seconds });
    assert.equal(headers["Payment-Signature"], header);
  }
});
