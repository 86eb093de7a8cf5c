/**
 * The example shops, run by the commands of their READMEs. A browser buys, pays on the page of
 * the checkout and comes back.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import type { Page } from "playwright-core";
import type {
  Checkout,
  Page as List,
  PaidCheckout,
  PayCheckoutInput,
  Payment,
  WebhookDelivery,
} from "../../packages/client/mod.ts";
import { VERSION } from "../../packages/client/user_agent.ts";
import { codeBlocks } from "../support/documents/readme_document.ts";
import { lacksPrograms } from "../support/common/programs.ts";
import { runCommand } from "../support/common/running_command.ts";
import { readProjectFile } from "../support/documents/project_files.ts";
import {
  browserCase,
  type ConsoleCase,
  DESKTOP,
  type Step,
} from "../support/console/console_case.ts";
import { look } from "../support/console/look.ts";
import { withTemporaryFolder } from "../support/common/temporary_folder.ts";
import { until } from "../support/common/until.ts";
import { ADMIN_TOKEN, startExample } from "../support/examples/example_shop.ts";

const API = "/api-v1-payments/v1";

/** The examples, with the programs that they need. */
const SHOPS = {
  express_shop: ["bash", "curl", "node", "npm"],
  fastapi_shop: ["bash", "curl", "python3"],
};

Deno.test("examples/fastapi_shop verifies webhooks as docs/webhook_verification.md does", async () => {
  const page = await readProjectFile("docs/webhook_verification.md");
  const [documented] = codeBlocks(page).filter(({ language }) => language === "python");
  const example = await readProjectFile("examples/fastapi_shop/webhook_signature.py");
  assert.equal(example.replace(/^"""[^"]*"""\n\n/, ""), documented!.text);
});

Deno.test("examples/express_shop has the versions with which its types are checked", async () => {
  const { dependencies } = JSON.parse(await readProjectFile("examples/express_shop/package.json"));
  const { imports } = JSON.parse(await readProjectFile("deno.json"));
  assert.deepEqual(dependencies, {
    "@payments-api/client": `file:payments-api-client-${VERSION}.tgz`,
    express: imports.express.replace("npm:express@", ""),
  });
});

/** The members of an order that tests read. Both shops have them. */
interface Order {
  id: string;
  checkout_id: string;
  checkout_url: string;
  payment_id: string | null;
  status: string;
  fulfilled: number;
  refunded: number;
}

/** The commands that start them. */
const STARTS: Record<string, string[]> = {
  express_shop: ["node", "server.js"],
  fastapi_shop: [".venv/bin/uvicorn", "shop:app", "--port", "0"],
};

const VISA = { card: { token: "pm_card_visa" } };
const DECLINED = { card: { token: "pm_card_chargeDeclined" } };

/** Starts the shop and runs all cases. */
async function runShopCases(name: string, step: Step, run: ConsoleCase): Promise<void> {
  await withTemporaryFolder(async (folder) => {
    await Deno.mkdir(folder);
    await using shop = await startExample(name, folder, run.start);
    const steps = new ShopSteps(name, shop.url, run);
    await step("the payer pays, is back, and the webhook completes the order", () => steps.buy());
    await step("a declined order is paid in its checkout", () => steps.payAgain());
    await step("the payer's return pays nothing without the webhook", () => steps.returnAlone());
    await step("a webhook that is not signed by the service changes nothing", () => steps.forge());
    await step("a webhook that comes again fulfils nothing", () => steps.deliverAgain());
    await step("the back office ships, refunds and cancels", () => steps.backOffice());
    await step("each mistake has its own response", () => steps.mistakes());
    await step("no start where payers have no page", () => startWithoutPage(name, folder, run));
  });
}

/** Starts the shop at the service without the URL of its page. */
async function startWithoutPage(name: string, folder: string, { start }: ConsoleCase) {
  await using service = Deno.serve({ port: 0, onListen: () => {} }, async (request) => {
    const { pathname } = new URL(request.url);
    const sent = JSON.parse(await request.text() || "{}");
    const { status, body } = await start.call(request.method, pathname, sent);
    return Response.json({ ...body, url: null }, { status });
  });
  const { code, stderr } = await runCommand({
    ...{ args: STARTS[name]!, cwd: join(folder, "examples", name) },
    env: {
      PAYMENTS_BASE_URL: `http://127.0.0.1:${service.addr.port}`,
      ...{ PAYMENTS_API_KEY: start.test_key, WEBHOOK_SECRET: "whsec_", ADMIN_TOKEN },
    },
  });
  assert.notEqual(code, 0);
  assert.match(stderr, /CHECKOUT_URL/);
}

class ShopSteps {
  readonly #seen = new Set<string>();

  constructor(readonly name: string, readonly url: string, readonly run: ConsoleCase) {}

  async buy(): Promise<void> {
    const { page } = await this.run.open("", { url: this.url, viewport: DESKTOP });
    await this.#look(page, "products");
    await page.getByRole("button", { name: "Buy the Print" }).click();
    await page.waitForURL(/\/pay\/#cht_/);
    await page.getByLabel("Card number").fill("4000 0025 0000 3155");
    await page.getByLabel("Expiry date").fill("12 / 34");
    await page.getByLabel("Security code").fill("123");
    await page.getByRole("button", { name: /^Pay .*25/ }).click();
    await page.getByRole("button", { name: "Yes, approve" }).click();
    await page.waitForURL(`${this.url}/orders/*`);
    await expectStatus(page, "Your order is paid.");
    await this.#look(page, "paid");
    const { pathname, searchParams } = new URL(page.url());
    const order = await this.#order(pathname.split("/").at(-1)!);
    assert.deepEqual([order.status, order.fulfilled], ["paid", 1]);
    assert.deepEqual(Object.fromEntries(searchParams), {
      payment_id: order.payment_id,
      checkout_id: order.checkout_id,
    });
    const payment = await this.#call("GET", `/payments/${order.payment_id}`) as Payment;
    const { status, amount, reference, checkout_id } = payment;
    assert.deepEqual([status, amount, reference, checkout_id], [
      ...["completed", 2500, order.id, order.checkout_id],
    ]);
    const completed = (await this.#deliveries(order)).filter(({ event_type }) =>
      event_type === "payment.completed"
    );
    assert.deepEqual(completed.map(({ status }) => status), ["delivered"]);
  }

  async payAgain(): Promise<void> {
    const { id, checkout_url } = await this.#openOrder("frame");
    await this.#pay(id, DECLINED);
    await this.#reaches(id, { status: "declined" });
    // The address of the order proves nothing, and leads back to the checkout.
    const { page } = await this.run.open("", { url: `${this.url}/orders/${id}?payment_id=pay_x` });
    await expectStatus(page, "Your payment was declined, and nothing was charged.");
    await this.#look(page, "declined");
    const link = page.getByRole("link", { name: "Pay" });
    assert.equal(await link.getAttribute("href"), checkout_url);
    await this.#holdBack("payment.declined");
    const { payment: { id: payment_id } } = await this.#pay(id, DECLINED);
    await this.#pay(id, VISA);
    const order = await this.#reaches(id, { status: "authorized" });
    // The webhook of the second attempt comes after that of the third.
    await this.#recover();
    await until("it has come", async () => {
      const declined = await this.#deliveries({ payment_id });
      return declined.every(({ status }) => status === "delivered");
    });
    assert.deepEqual(await this.#order(id), order);
    assert.equal((await this.#office(`/orders/${id}/ship`)).status, 200);
    await this.#reaches(id, { status: "paid", fulfilled: 1 });
  }

  async returnAlone(): Promise<void> {
    await this.#holdBack("payment.completed");
    const { id } = await this.#openOrder("print");
    const { payment } = await this.#pay(id, VISA);
    const { page } = await this.run.open("", {
      url: `${this.url}/orders/${id}?payment_id=${payment.id}`,
    });
    await expectStatus(page, "We wait for your payment.");
    assert.deepEqual([payment.status, (await this.#order(id)).status], ["completed", "open"]);
    await this.#recover();
    await expectStatus(page, "Your order is paid.");
  }

  async forge(): Promise<void> {
    const { id, checkout_id } = await this.#openOrder("print");
    const body = JSON.stringify({
      id: "evt_forged",
      type: "payment.completed",
      sequence: 9,
      data: { object: { object: "payment", id: "pay_forged", checkout_id } },
    });
    const now = Math.floor(Date.now() / 1000);
    for (const header of [null, "", `t=${now},v1=${"0".repeat(64)}`]) {
      const headers = { ...(header !== null && { "Payment-Signature": header }) };
      const response = await this.#fetch("/webhooks", { method: "POST", headers, body });
      assert.equal(response.status, 400, String(header));
    }
    const { status, payment_id } = await this.#order(id);
    assert.deepEqual([status, payment_id], ["open", null]);
  }

  async deliverAgain(): Promise<void> {
    const { id } = await this.#openOrder("print");
    await this.#pay(id, VISA);
    const order = await this.#reaches(id, { status: "paid", fulfilled: 1 });
    // The older event comes last.
    for (const event_type of ["payment.completed", "payment.created"]) {
      const find = async () =>
        (await this.#deliveries(order)).find((one) => one.event_type === event_type)!;
      await this.#call("POST", `/webhook_deliveries/${(await find()).id}/redeliver`);
      await until(`${event_type} has come twice`, async () => {
        const { status, attempts } = await find();
        return status === "delivered" && attempts.length === 2;
      });
      assert.deepEqual(await this.#order(id), order);
    }
    // A refund that fails later completes the payment again, by another event.
    const path = `/payments/${order.payment_id}/refund`;
    const refund = await this.#call("POST", path, { amount: 100 }) as { id: string };
    await this.#reaches(id, { refunded: 100 });
    const advance = `/api-v1-sandbox/refunds/${refund.id}/advance`;
    assert.equal((await this.run.start.call("POST", advance, { to: "failed" })).status, 200);
    await this.#reaches(id, { refunded: 0, status: "paid" });
    assert.equal((await this.#order(id)).fulfilled, 1);
  }

  async backOffice(): Promise<void> {
    const { id: frame } = await this.#openOrder("frame");
    await this.#pay(frame, VISA);
    await this.#reaches(frame, { status: "authorized", fulfilled: 0 });
    for (const [name, value] of [["amuont", 100], ["amount", "100"]] as const) {
      const { status, body } = await this.#office(`/orders/${frame}/ship`, { [name]: value });
      assert.deepEqual([status, body.code, body.param], [400, "invalid_parameter", name]);
    }
    const shipped = await this.#office(`/orders/${frame}/ship`, {});
    assert.deepEqual(shipped, { status: 200, body: { status: "completed", captured: 4000 } });
    await this.#reaches(frame, { status: "paid", fulfilled: 1 });

    const refund = { amount: 700 };
    const without_key = await this.#office(`/orders/${frame}/refund`, refund);
    assert.deepEqual(without_key, { status: 400, body: { code: "idempotency_key_missing" } });
    for (let click = 1; click <= 2; click++) {
      const { status } = await this.#office(`/orders/${frame}/refund`, refund, `refund-${frame}`);
      assert.equal(status, 200);
    }
    const { payment_id } = await this.#reaches(frame, { refunded: 700 });
    const payment = await this.#call("GET", `/payments/${payment_id}`) as Payment;
    assert.equal(payment.amount_refunded, 700);
    const late = await this.#office(`/orders/${frame}/cancel`, {});
    assert.deepEqual([late.status, late.body.code], [409, "invalid_state"]);

    for (const status of ["authorized", "open"]) {
      const { id } = await this.#openOrder("frame");
      if (status === "authorized") await this.#pay(id, VISA);
      const { checkout_id } = await this.#reaches(id, { status });
      assert.equal((await this.#office(`/orders/${id}/cancel`, {})).status, 200);
      await this.#reaches(id, { status: "cancelled", fulfilled: 0 });
      const checkout = await this.#call("GET", `/checkouts/${checkout_id}`) as Checkout;
      assert.equal(checkout.status, status === "open" ? "cancelled" : "completed");
    }
  }

  async mistakes(): Promise<void> {
    const product = new URLSearchParams({ product: "<b>" });
    const unknown = await this.#fetch("/orders", { method: "POST", body: product });
    assert.equal(unknown.status, 400);
    assert.equal((await this.#fetch("/orders/none")).status, 404);
    assert.ok(!unknown.html.includes("<b>"));
    const { id } = await this.#openOrder("print");
    assert.equal((await this.#fetch(`/admin/orders/${id}`)).status, 401);
    assert.equal((await this.#office("/orders/none/cancel", {})).status, 404);
  }

  /** Looks at a page once, and saves pictures of it. */
  async #look(page: Page, name: string): Promise<void> {
    if (this.#seen.has(name)) return;
    this.#seen.add(name);
    assert.deepEqual(await look(page, `${this.name}-${name}`), []);
  }

  /** Opens an order, and goes no further than the address of its checkout. */
  async #openOrder(product: string): Promise<Order> {
    const body = new URLSearchParams({ product });
    const { location } = await this.#fetch("/orders", { method: "POST", body });
    const [checkout] = await this.#list<Checkout>("/checkouts?limit=1");
    assert.equal(location, checkout!.url);
    return await this.#order(checkout!.reference!);
  }

  /** Pays the checkout of an order, as the payer does on its page. */
  async #pay(id: string, how: PayCheckoutInput): Promise<PaidCheckout> {
    const { checkout_id } = await this.#order(id);
    const path = `/api-v1-sandbox/checkouts/${checkout_id}/pay`;
    const { status, body } = await this.run.start.call("POST", path, how);
    assert.equal(status, 200, JSON.stringify(body));
    return body as PaidCheckout;
  }

  /** Keeps the next webhook of this type from the shop, until `recover`. */
  async #holdBack(event_type: string): Promise<void> {
    const fault = { on: "delivery", fault: "drop_until_recovered", where: { event_type } };
    const { status } = await this.run.start.call("POST", "/api-v1-sandbox/faults", fault);
    assert.equal(status, 201);
  }

  async #recover(): Promise<void> {
    const [endpoint] = await this.#list<{ id: string }>("/webhook_endpoints");
    const since = new Date(Date.now() - 3_600_000).toISOString();
    await this.#call("POST", `/webhook_endpoints/${endpoint!.id}/recover`, { since });
  }

  async #order(id: string): Promise<Order> {
    const headers = { Authorization: `Bearer ${ADMIN_TOKEN}` };
    return JSON.parse((await this.#fetch(`/admin/orders/${id}`, { headers })).html);
  }

  async #reaches(id: string, expected: Partial<Order>): Promise<Order> {
    let order: Order;
    await until(`order ${id} has ${JSON.stringify(expected)}`, async () => {
      order = await this.#order(id);
      return Object.entries(expected).every(([name, value]) =>
        order[name as keyof Order] === value
      );
    });
    return order!;
  }

  async #office(path: string, body?: object, key?: string) {
    const { status, html } = await this.#fetch(`/admin${path}`, {
      method: "POST",
      headers: {
        Authorization: `Bearer ${ADMIN_TOKEN}`,
        "Content-Type": "application/json",
        ...(key !== undefined && { "Idempotency-Key": key }),
      },
      ...(body && { body: JSON.stringify(body) }),
    });
    return { status, body: JSON.parse(html) };
  }

  async #fetch(path: string, init: RequestInit = {}) {
    const response = await fetch(this.url + path, { redirect: "manual", ...init });
    const location = response.headers.get("Location");
    return { status: response.status, location, html: await response.text() };
  }

  async #deliveries({ payment_id }: Pick<Order, "payment_id">): Promise<WebhookDelivery[]> {
    return await this.#list(`/webhook_deliveries?payment_id=${payment_id}&limit=100`);
  }

  async #list<Item>(path: string): Promise<Item[]> {
    return (await this.#call("GET", path) as List<Item>).data;
  }

  async #call(method: string, path: string, body?: unknown): Promise<unknown> {
    const response = await this.run.start.call(method, API + path, body);
    assert.ok(response.status < 300, JSON.stringify(response.body));
    return response.body;
  }
}

async function expectStatus(page: Page, text: string): Promise<void> {
  await page.getByRole("status").getByText(text).waitFor();
}

for (const [name, programs] of Object.entries(SHOPS)) {
  browserCase({
    name: `examples/${name} sells through checkouts, with their page in the browser`,
    ignore: await lacksPrograms(`examples/${name}`, programs),
  }, (step, run) => runShopCases(name, step, run));
}
