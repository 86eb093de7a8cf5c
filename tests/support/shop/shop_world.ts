/**
 * The world of the shop in one mode: the product on a loopback port, the shop behind TLS, a
 * browser, and the people whom the shop does not control, such as the payer's bank. With a test key
 * the sandbox plays them, with a live key the double of Stripe.
 */

import assert from "node:assert/strict";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { type Exchange, type Payment, PaymentsClient } from "../../../packages/client/mod.ts";
import { openLocalServer } from "../../../apps/server/local/local_server.ts";
import { idGenerator } from "../../../shared/core/ids.ts";
import { createPaymentsFunction } from "../../../shared/functions/payments_function.ts";
import { createSandboxFunction } from "../../../shared/functions/sandbox_function.ts";
import { until } from "../common/until.ts";
import { challengePath, CHECKOUT_URL } from "../service/payer_page.ts";
import { startService, type TestService } from "../service/service.ts";
import type { StripeDouble } from "../stripe/double.ts";
import { leadingTo } from "../webhook/live_endpoint.ts";
import { HOOKS_CERTIFICATE, TEST_AUTHORITY } from "../webhook/test_certificates.ts";
import type { Order } from "../../../examples/express_shop/order_book.js";
import { createShop } from "../../../examples/express_shop/shop.js";

/** The address of the shop in webhooks and return URLs. The test leads it to the shop's port. */
const SHOP_URL = "https://hooks.example.com";
const STRIPE_SECRET = "sk_live_shop";
const NOTIFICATION_SECRET = "whsec_of_the_shop";
/** Longer than the first delay before the service asks again for an unknown result. */
const LATER_MS = 6_000;

/** On a loaded machine the first attempt of a webhook can fail, and the third comes a minute later. */
const WEBHOOK_MS = 90_000;

/** The token of the shop's back office. */
const ADMIN_TOKEN = "token of the back office";

/** A page of the shop, as the browser sees it. */
export interface ShopPage {
  status: number;
  /** Where the browser goes next: "the checkout", or null. */
  leads_to: string | null;
  html: string;
}

/** A response of the shop's back office. */
export interface OfficeResponse {
  status: number;
  // deno-lint-ignore no-explicit-any
  body: any;
}

/** The people and programs that the shop does not control. */
interface Others {
  /** The payer completes 3-D Secure. */
  authenticate(payment: Payment, result: "success" | "failure"): Promise<void>;
  dispute(payment: Payment): Promise<void>;
  winDispute(payment: Payment): Promise<void>;
  /** The payer's bank decides a pending refund. */
  settleRefund(refund_id: string, result: "completed" | "failed"): Promise<void>;
  /** Makes the next refund pending at first. Returns the token of a card for its payment. */
  slowRefundToken(): Promise<string>;
  /** Makes the result of the next payment late. Returns the token of its card. */
  lateToken(): Promise<string>;
}

/** A mode, with its shop. */
export type ShopWorld = Awaited<ReturnType<typeof startShopWorld>>;

/**
 * Starts the product and the shop.
 * @param double null: the shop has a test key
 */
export async function startShopWorld(double: StripeDouble | null) {
  let handle: ReturnType<typeof createShop> | null = null;
  const site = createServer(HOOKS_CERTIFICATE, (request, response) => handle!(request, response));
  await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
  const { port } = site.address() as AddressInfo;
  const server = await openLocalServer(0);
  const secrets: Record<string, string> = {
    PROVIDER_STRIPE: STRIPE_SECRET,
    PROVIDER_STRIPE_NOTIFICATIONS: NOTIFICATION_SECRET,
  };
  const service = await startService({
    base_url: server.base_url,
    checkout_url: CHECKOUT_URL,
    provider_secret: (name) => secrets[name],
    ...leadingTo(port),
  });
  server.serve({
    "api-v1-payments": createPaymentsFunction(service.deps),
    "api-v1-sandbox": createSandboxFunction(service.deps),
  });
  if (double) await addAccount(service, double, server.base_url);

  const exchanges: Exchange[] = [];
  const apiKey = double ? service.live.text : service.key.text;
  const given = { apiKey, baseUrl: server.base_url };
  const client = new PaymentsClient(given);
  const endpoint = await client.webhookEndpoints.create({ url: `${SHOP_URL}/webhooks` });
  const others = double ? atStripe(double) : inTheSandbox(client, server.base_url);
  handle = createShop({
    client: new PaymentsClient({ ...given, onExchange: (one) => exchanges.push(one) }),
    webhookSecret: endpoint.secret,
    publicUrl: SHOP_URL,
    adminToken: ADMIN_TOKEN,
  });

  const http = Deno.createHttpClient({ caCerts: [TEST_AUTHORITY] });
  const origin = `https://127.0.0.1:${port}`;
  /** Opens a page of the shop. With a form, sends the form. */
  const browse = async (path: string, form?: Record<string, string>): Promise<ShopPage> => {
    const response = await fetch(origin + path, {
      client: http,
      redirect: "manual",
      ...(form && { method: "POST", body: new URLSearchParams(form) }),
    });
    const location = response.headers.get("Location");
    const text = await response.text();
    if (location === null) return { status: response.status, leads_to: null, html: text };
    assert.ok(location.startsWith(`${CHECKOUT_URL}/#cht_`), location);
    return { status: response.status, leads_to: "the checkout", html: "" };
  };
  const office = async (
    method: string,
    path: string,
    body?: object,
  ): Promise<OfficeResponse> => {
    const response = await fetch(`${origin}/admin${path}`, {
      client: http,
      method,
      headers: {
        Authorization: `Bearer ${ADMIN_TOKEN}`,
        "Content-Type": "application/json",
        "Idempotency-Key": crypto.randomUUID(),
      },
      ...(body && { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: await response.json() };
  };
  const order = async (id: string): Promise<Order> => (await office("GET", `/orders/${id}`)).body;
  /** Pays an order as the page of its checkout does, with the token of a card. */
  const pay = async (id: string, token: string) => {
    const { checkout_url } = await order(id);
    const response = await fetch(`${server.base_url}/api-v1-payments/checkout/payments`, {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        "Checkout-Token": new URL(checkout_url).hash.slice(1),
      },
      body: JSON.stringify({ card: { token } }),
    });
    const { status, attempt } = await response.json();
    return { status: response.status, body: { status, attempt: attempt?.status } };
  };

  return {
    client,
    others,
    browse,
    office,
    order,
    pay,
    /** Returns the id of the newest order. */
    newest: async () => (await client.checkouts.list({ limit: 1 })).data[0]!.reference!,
    /** Waits until the order book shows this status, and returns the payment. */
    async reaches(id: string, status: Order["status"], more: Partial<Order> = {}) {
      let now: Order | null = null;
      await until(`order ${id} is ${status}`, async () => {
        now = await order(id);
        return Object.entries({ status, ...more }).every(([name, value]) =>
          now![name as keyof Order] === value
        );
      }, WEBHOOK_MS).catch((error) => assert.fail(`${error.message}: ${JSON.stringify(now)}`));
      return await client.payments.retrieve(now!.payment_id!);
    },
    /** Returns and forgets the exchanges of the shop's client. */
    takeExchanges: () => exchanges.splice(0),
    /** Moves the clock on, and lets the worker do the work that is due then. */
    async later() {
      await service.setClock(Date.now() + LATER_MS);
      await service.deps.provider_worker.notify();
    },
    async close() {
      http.close();
      await server.stop(5_000);
      await service.close();
      await new Promise((resolve) => site.close(resolve));
    },
  };
}

async function addAccount(
  service: TestService,
  double: StripeDouble,
  base_url: string,
): Promise<void> {
  const id = idGenerator(Date.now())("pac_");
  const settings = { base_url: double.base_url, publishable_key: "pk_live_shop" };
  await service.sql`select pay.add_provider_account(${id}, ${service.live.environment_id},
    'stripe', ${["card"]}, ${JSON.stringify(settings)}, 'PROVIDER_STRIPE',
    ${["PROVIDER_STRIPE_NOTIFICATIONS"]})`;
  await double.notify({
    url: `${base_url}/api-v1-payments/providers/${id}/notifications`,
    secrets: [NOTIFICATION_SECRET],
  });
}

function inTheSandbox({ sandbox }: PaymentsClient, base_url: string): Others {
  return {
    async authenticate(payment, result) {
      const page = await fetch(base_url + challengePath(payment), {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ result }),
      });
      assert.ok((await page.json()).return_url);
    },
    dispute: async ({ id }) => void await sandbox.advance(id, { to: "chargeback" }),
    winDispute: async ({ id }) => void await sandbox.advance(id, { to: "completed" }),
    settleRefund: async (id, to) => void await sandbox.advanceRefund(id, { to }),
    async slowRefundToken() {
      await sandbox.createFault({
        ...{ on: "provider", fault: "timeout", where: { operation: "refund" } },
      });
      return "pm_card_visa";
    },
    lateToken: () => Promise.resolve("pm_card_late"),
  };
}

function atStripe(double: StripeDouble): Others {
  const intentOf = async ({ id }: Payment) => {
    const { payment_intent } = await double.books(STRIPE_SECRET);
    return payment_intent.find(({ metadata }) => metadata.payment === id)!.id;
  };
  const named = async (kind: "dispute" | "refund", name: string, id: string) =>
    (await double.books(STRIPE_SECRET))[kind]
      .find((one) => one[name] === id || one.metadata?.[name] === id)!.id;
  return {
    async authenticate(payment, result) {
      const { next_action } = payment;
      assert.equal(next_action?.type, "authenticate");
      const page = await fetch(`${next_action.url}?result=${result}`, { redirect: "manual" });
      await page.body?.cancel();
      // Stripe leads back to the page of checkouts, which then leads to the shop.
      assert.ok(page.headers.get("Location")!.startsWith(CHECKOUT_URL));
    },
    dispute: async (payment) =>
      void await double.act("disputes", {
        payment_intent: await intentOf(payment),
        reason: "general",
      }),
    async winDispute(payment) {
      const dispute = await named("dispute", "payment_intent", await intentOf(payment));
      await double.act("close_dispute", { dispute, status: "won" });
    },
    async settleRefund(id, result) {
      const refund = await named("refund", "refund", id);
      const status = result === "completed" ? "succeeded" : "failed";
      await double.act("settle_refund", { refund, status });
    },
    slowRefundToken: () => Promise.resolve("pm_card_pendingRefund"),
    async lateToken() {
      // Only the repeat of the call brings the result.
      await double.notify({ lose: 1_000 });
      await double.plant({
        method: "POST",
        path: "^/v1/payment_intents$",
        at: "after",
        act: "error",
      });
      return "pm_card_visa";
    },
  };
}
