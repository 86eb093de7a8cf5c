/**
 * The payer's page of 3-D Secure in a sandbox (contract §2): its token opens one payment without
 * an API key and completes its challenge once.
 */

import assert from "node:assert/strict";
import { recordOf } from "../support/database/payment_records.ts";
import { callAsPayer, challengePath, CHECKOUT_URL } from "../support/service/payer_page.ts";
import type { TestService } from "../support/service/service.ts";
import {
  advance,
  assertRefused,
  card,
  PAYMENTS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";
import { addEndpoint, openRecorder, settle, shown } from "../support/webhook/recording_receiver.ts";

const SECURE = card("4000 0025 0000 3155");
const RETURN_URL = "https://shop.example/back?order=7#done";
const HOSTED = { checkout_url: CHECKOUT_URL };
const UNKNOWN = `${SANDBOX}/challenges/${"0".repeat(48)}`;

/** Makes a payment that waits for its payer. */
async function waiting(service: TestService, body: Record<string, unknown> = {}) {
  const response = await service.pay({ ...SECURE, ...body });
  assert.equal(response.body.status, "requires_action", response.text);
  return { payment: response.body, path: challengePath(response.body) };
}

async function statusOf(service: TestService, { id }: { id: string }): Promise<string> {
  return (await service.get(`${PAYMENTS}/${id}`)).status;
}

serviceCase("GET /challenges/{token} shows the payment without a key", async (t, service) => {
  await t.step("with all that the payer has to know", async () => {
    const { payment, path } = await waiting(service, {
      reference: "order 7",
      return_url: RETURN_URL,
    });
    const { status, headers, body } = await callAsPayer(service, path);
    assert.equal(status, 200);
    assert.equal(headers.get("Cache-Control"), "no-store");
    assert.deepEqual(body, {
      object: "challenge",
      payment_id: payment.id,
      status: "requires_action",
      amount_minor: 1000,
      currency: "EUR",
      merchant: "one",
      reference: "order 7",
      card: { brand: "visa", last4: "3155" },
      return_url: `https://shop.example/back?order=7&payment_id=${payment.id}#done`,
    });
  });
  await t.step(
    "also without a card and a return URL, after an advance, with the name for payers",
    async () => {
      const { body: pending } = await service.pay({});
      const { body: payment } = await advance(service, pending.id, "requires_action");
      const shown = JSON.stringify({ name: "Shop GmbH" });
      await service.sql`select pay.change_merchant(p_account => 'one', p_changed => ${shown})`;
      const { body } = await callAsPayer(service, challengePath(payment));
      assert.deepEqual([body.card, body.reference, body.return_url], [null, null, null]);
      assert.equal(body.merchant, "Shop GmbH");
    },
  );
  await t.step("no log line has the token", () => {
    const lines = service.logs.filter(({ route }) => route?.includes("challenges"));
    assert.deepEqual([...new Set(lines.map(({ route }) => route))], [
      "GET /api-v1-sandbox/challenges/:token",
    ]);
    assert.doesNotMatch(JSON.stringify(service.logs), /[0-9a-f]{48}/);
  });
}, HOSTED);

serviceCase(
  "POST /challenges/{token} completes 3-D Secure for the payer, once",
  async (t, service) => {
    const receiver = openRecorder();
    await addEndpoint(service, receiver.url("/"), { events: ["payment.completed"] });

    await t.step("success completes the payment and delivers the webhook", async () => {
      const { payment, path } = await waiting(service);
      const { status, body } = await callAsPayer(service, path, "success");
      assert.deepEqual([status, body.status], [200, "completed"]);
      const { events, ledger } = await recordOf(service, payment.id);
      assert.deepEqual(events.map(({ type }) => type), [
        "payment.created",
        "payment.requires_action",
        "payment.completed",
      ]);
      assert.deepEqual(events.at(-1)!.payload.request, { id: null, idempotency_key: null });
      assert.deepEqual([...ledger.values()], ["capture processor>available 1000 EUR"]);
      await settle(service);
      assert.deepEqual(shown(receiver.arrivals), ["payment.completed 1"]);
    });
    await t.step("failure declines it", async () => {
      const { payment, path } = await waiting(service);
      const { status, body } = await callAsPayer(service, path, "failure");
      assert.deepEqual([status, body.status], [200, "declined"]);
      const shown = await service.get(`${PAYMENTS}/${payment.id}`);
      assert.deepEqual([shown.failure_code, shown.next_action], ["authentication_failed", null]);
    });
    await t.step("nothing comes after the first end, whoever made it", async () => {
      const ends: [status: string, end: (path: string, id: string) => Promise<unknown>][] = [
        ["completed", (path) => callAsPayer(service, path, "success")],
        ["declined", (path) => callAsPayer(service, path, "failure")],
        ["completed", (_, id) => service.call("POST", `${SANDBOX}/payments/${id}/authenticate`)],
        ["cancelled", (_, id) => service.call("POST", `${PAYMENTS}/${id}/cancel`)],
      ];
      for (const [status, end] of ends) {
        const { payment, path } = await waiting(service);
        await end(path, payment.id);
        const before = await recordOf(service, payment.id);
        for (const result of ["success", "failure"] as const) {
          assertRefused(await callAsPayer(service, path, result), "invalid_state");
        }
        assert.equal((await recordOf(service, payment.id)).text, before.text);
        assert.equal((await callAsPayer(service, path)).body.status, status);
      }
    });
    await receiver.close();
  },
  HOSTED,
);

serviceCase("a token opens its own payment and nothing else", async (t, service) => {
  const { payment, path } = await waiting(service);
  const token = path.split("/").at(-1)!;
  const paths: [string, string][] = [
    ["an unknown token", UNKNOWN],
    ["a token that is cut off", path.slice(0, -1)],
    ["a token with a further character", `${path}0`],
    ["a token in upper case", path.replace(token, token.toUpperCase())],
    ["the id of the payment", `${SANDBOX}/challenges/${payment.id}`],
    ["SQL", `${SANDBOX}/challenges/${encodeURIComponent("' or 1=1 --")}`],
  ];
  for (const [name, other] of paths.filter(([, other]) => other !== path)) {
    await t.step(`${name}: 404`, async () => {
      assertRefused(await callAsPayer(service, other), "not_found");
      assertRefused(await callAsPayer(service, other, "success"), "not_found");
    });
  }
  await t.step("a token is no API key", async () => {
    const response = await service.call("GET", `${PAYMENTS}/${payment.id}`, { key: token });
    assertRefused(response, "unauthorized");
  });
  await t.step("a body without a result is refused", async () => {
    const maybe = { key: null, body: { result: "maybe" }, unchecked: true };
    assertRefused(await service.call("POST", path, maybe), "invalid_parameter", "result");
    const headers = { "Content-Type": "text/plain" };
    const response = await service.call("POST", path, {
      key: null,
      body: "{}",
      headers,
      unchecked: true,
    });
    assertRefused(response, "unsupported_media_type");
  });
  await t.step(
    "a page of another origin may not call, also if it may call with a key",
    async () => {
      const headers = { Origin: "https://console.example.com" };
      const response = await service.call("GET", path, { key: null, headers, unchecked: true });
      assertRefused(response, "origin_not_allowed");
    },
  );
  assert.equal(await statusOf(service, payment), "requires_action");
  await t.step("after a reset the link leads to no payment", async () => {
    await service.call("POST", `${SANDBOX}/reset`);
    assertRefused(await callAsPayer(service, path), "not_found");
    assertRefused(await callAsPayer(service, path, "success"), "not_found");
  });
}, HOSTED);

serviceCase("guessing tokens is limited by network", async (t, service) => {
  const { path } = await waiting(service);
  await service.setClock(Date.now());
  const from = (address: string, requested: string) =>
    service.call("GET", requested, {
      key: null,
      headers: { "X-Forwarded-For": address },
      unchecked: true,
    });
  await t.step("after 100 wrong tokens a network waits", async () => {
    for (let i = 0; i < 100; i++) {
      assert.equal((await from("192.0.2.1", `${UNKNOWN}x`)).status, 404);
    }
    assertRefused(await from("192.0.2.1", path), "rate_limited");
    assert.equal((await from("192.0.2.2", path)).status, 200);
  });
}, { ...HOSTED, rate_limit: 100, account_rate_limit: 400 });
