/**
 * The example shops, run by the commands of their READMEs. A browser buys, goes through the page of
 * 3-D Secure and comes back.
 */

import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import type { Page as List, Payment, WebhookDelivery } from "../../packages/client/mod.ts";
import { VERSION } from "../../packages/client/user_agent.ts";
import { codeBlocks } from "../support/documents/readme_document.ts";
import { lacksPrograms } from "../support/common/programs.ts";
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

Deno.test("examples/express_shop has the versions that tests/shop runs", async () => {
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
  payment_id: string | null;
  status: string;
  fulfilled: number;
  refunded: number;
}

/** Starts the shop and runs all cases. */
async function runShopCases(name: string, step: Step, run: ConsoleCase): Promise<void> {
  await withTemporaryFolder(async (folder) => {
    await Deno.mkdir(folder);
    await using shop = await startExample(name, folder, run.start);
    const steps = new ShopSteps(name, shop.url, run);
    await step(
      "Approve: the payer is back, the webhook arrives, the order is paid",
      () => steps.approve(),
    );
    await step("Fail: the order is declined, and paid with another card", () => steps.fail());
    await step("a declined order is paid again, once", () => steps.payAgain());
    await step("the payer's return pays nothing without the webhook", () => steps.returnAlone());
    await step("two clicks make one payment", () => steps.clickTwice());
    await step("a webhook that is not signed by the service changes nothing", () => steps.forge());
    await step("a webhook that comes again fulfils nothing", () => steps.deliverAgain());
    await step("the back office ships, refunds and cancels", () => steps.backOffice());
    await step("each mistake has its own response", () => steps.mistakes());
  });
}

class ShopSteps {
  readonly #seen = new Set<string>();

  constructor(readonly name: string, readonly url: string, readonly run: ConsoleCase) {}

  async approve(): Promise<void> {
    const { page, id } = await this.#toTheBank();
    // Whoever knows the address can open it. The order does not get paid by that.
    const other = await this.run.open("", { url: `${this.url}/orders/${id}?payment_id=pay_x` });
    await expectStatus(other.page, "Your bank asks you to approve the payment.");
    const link = other.page.getByRole("link", { name: "Go to your bank" });
    assert.equal(await link.getAttribute("href"), page.url());
    await page.getByRole("button", { name: "Approve" }).click();
    await page.waitForURL(`${this.url}/orders/${id}?payment_id=pay_*`);
    for (const one of [page, other.page]) await expectStatus(one, "Your order is paid.");
    await this.#look(page, "paid");
    const order = await this.#order(id);
    assert.deepEqual([order.status, order.fulfilled], ["paid", 1]);
    assert.equal(new URL(page.url()).searchParams.get("payment_id"), order.payment_id);
    const payment = await this.#call("GET", `/payments/${order.payment_id}`) as Payment;
    assert.deepEqual([payment.status, payment.reference, payment.amount], ["completed", id, 2500]);
    const completed = (await this.#deliveries(order)).filter(({ event_type }) =>
      event_type === "payment.completed"
    );
    assert.deepEqual(completed.map(({ status }) => status), ["delivered"]);
  }

  async fail(): Promise<void> {
    const { page, id } = await this.#toTheBank();
    await page.getByRole("button", { name: "Decline" }).click();
    await page.waitForURL(`${this.url}/orders/${id}?payment_id=pay_*`);
    await expectStatus(page, "Your card was declined, and nothing was charged.");
    await this.#look(page, "declined");
    const { status, payment_id, fulfilled } = await this.#order(id);
    assert.deepEqual([status, fulfilled], ["declined", 0]);
    const payment = await this.#call("GET", `/payments/${payment_id}`) as Payment;
    assert.equal(payment.failure_code, "authentication_failed");
    await page.getByLabel("Card").selectOption("pm_card_visa");
    await page.getByRole("button", { name: "Pay" }).click();
    await expectStatus(page, "Your order is paid.");
    await this.#reaches(id, { status: "paid", fulfilled: 1 });
  }

  async payAgain(): Promise<void> {
    const id = await this.#openOrder("frame");
    await this.#pay(id, "pm_card_chargeDeclined");
    const declined = await this.#reaches(id, { status: "declined" });
    const clicks = await Promise.all([1, 2].map(() => this.#pay(id, "pm_card_visa")));
    assert.deepEqual(clicks.map(({ status }) => status), [303, 303]);
    const order = await this.#reaches(id, { status: "authorized" });
    // A webhook of the declined payment comes again.
    const [late] = await this.#deliveries(declined);
    await this.#call("POST", `/webhook_deliveries/${late!.id}/redeliver`);
    await until("it has come twice", async () => {
      const found = (await this.#deliveries(declined)).find((one) => one.id === late!.id)!;
      return found.status === "delivered" && found.attempts.length === 2;
    });
    assert.deepEqual(await this.#order(id), order);
    assert.equal((await this.#office(`/orders/${id}/ship`)).status, 200);
    await this.#reaches(id, { status: "paid", fulfilled: 1 });
    const { data } = await this.#call("GET", "/payments?limit=100") as List<Payment>;
    const made = data.filter(({ reference }) => reference === id);
    assert.deepEqual(made.map(({ status }) => status), ["completed", "declined"]);
  }

  async returnAlone(): Promise<void> {
    await this.run.start.call("POST", "/api-v1-sandbox/faults", {
      on: "delivery",
      fault: "drop_until_recovered",
      where: { event_type: "payment.completed" },
    });
    const { page, id } = await this.#toTheBank();
    await page.getByRole("button", { name: "Approve" }).click();
    await page.waitForURL(`${this.url}/orders/${id}?payment_id=pay_*`);
    await expectStatus(page, "Your bank asks you to approve the payment.");
    const { payment_id, status } = await this.#order(id);
    const payment = await this.#call("GET", `/payments/${payment_id}`) as Payment;
    assert.deepEqual([payment.status, status], ["completed", "waiting"]);
    const { data } = await this.#call("GET", "/webhook_endpoints") as List<{ id: string }>;
    const since = new Date(Date.now() - 3_600_000).toISOString();
    await this.#call("POST", `/webhook_endpoints/${data[0]!.id}/recover`, { since });
    await expectStatus(page, "Your order is paid.");
  }

  async clickTwice(): Promise<void> {
    const id = await this.#openOrder("print");
    const pages = await Promise.all([1, 2].map(() => this.#pay(id, "pm_card_visa")));
    assert.deepEqual(pages.map(({ status }) => status), [303, 303]);
    await this.#reaches(id, { status: "paid", fulfilled: 1 });
    // Later, another card does not make a second payment either.
    assert.equal((await this.#pay(id, "pm_card_mastercard")).status, 303);
    const { data } = await this.#call("GET", "/payments?limit=100") as List<Payment>;
    assert.equal(data.filter(({ reference }) => reference === id).length, 1);
  }

  async forge(): Promise<void> {
    const id = await this.#openOrder("print");
    const body = JSON.stringify({
      id: "evt_forged",
      type: "payment.completed",
      sequence: 9,
      data: { object: { object: "payment", id: "pay_forged", reference: id } },
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
    const id = await this.#openOrder("print");
    await this.#pay(id, "pm_card_visa");
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
    const frame = await this.#openOrder("frame");
    await this.#pay(frame, "pm_card_visa");
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

    const other = await this.#openOrder("frame");
    await this.#pay(other, "pm_card_visa");
    await this.#reaches(other, { status: "authorized" });
    assert.equal((await this.#office(`/orders/${other}/cancel`, {})).status, 200);
    await this.#reaches(other, { status: "cancelled", fulfilled: 0 });
  }

  async mistakes(): Promise<void> {
    const product = new URLSearchParams({ product: "<b>" });
    const unknown = await this.#fetch("/orders", { method: "POST", body: product });
    assert.equal(unknown.status, 400);
    assert.equal((await this.#fetch("/orders/none")).status, 404);
    const id = await this.#openOrder("print");
    const refused = await this.#pay(id, "pm_card_<b>");
    assert.equal(refused.status, 400);
    assert.ok(!refused.html.includes("<b>"));
    assert.equal((await this.#order(id)).payment_id, null);
    assert.equal((await this.#fetch(`/admin/orders/${id}`)).status, 401);
    assert.equal((await this.#office("/orders/none/cancel", {})).status, 404);
  }

  /** Buys the print in the browser, and pays with a card that needs 3-D Secure. */
  async #toTheBank(): Promise<{ page: Page; id: string }> {
    const { page } = await this.run.open("", { url: this.url, viewport: DESKTOP });
    await this.#look(page, "products");
    await page.getByRole("button", { name: "Buy the Print" }).click();
    await page.waitForURL(`${this.url}/orders/*`);
    const id = new URL(page.url()).pathname.split("/").at(-1)!;
    await page.getByLabel("Card").selectOption("pm_card_authenticationRequired");
    await this.#look(page, "checkout");
    await page.getByRole("button", { name: "Pay" }).click();
    await page.getByRole("heading", { name: "Is it you who pays?" }).waitFor();
    await this.#reaches(id, { status: "waiting" });
    return { page, id };
  }

  /** Looks at a page once, and saves pictures of it. */
  async #look(page: Page, name: string): Promise<void> {
    if (this.#seen.has(name)) return;
    this.#seen.add(name);
    assert.deepEqual(await look(page, `${this.name}-${name}`), []);
  }

  async #openOrder(product: string): Promise<string> {
    const { location } = await this.#fetch("/orders", {
      method: "POST",
      body: new URLSearchParams({ product }),
    });
    return location!.replace("/orders/", "");
  }

  #pay(id: string, token: string) {
    const body = new URLSearchParams({ token });
    return this.#fetch(`/orders/${id}/pay`, { method: "POST", body });
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

  async #deliveries({ payment_id }: Order): Promise<WebhookDelivery[]> {
    const path = `/webhook_deliveries?payment_id=${payment_id}&limit=100`;
    return (await this.#call("GET", path) as List<WebhookDelivery>).data;
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
    name: `examples/${name} sells, with 3-D Secure in the browser`,
    ignore: await lacksPrograms(`examples/${name}`, programs),
  }, (step, run) => runShopCases(name, step, run));
}
