/**
 * The card step of a live checkout in a real browser, with the double of Stripe and a stand-in of
 * Stripe's script: the page sends a token and no card, once, also when the server is killed.
 */

import assert from "node:assert/strict";
import type { Browser, Page } from "playwright-core";
import { buildCheckoutSite } from "../../tools/site/checkout_site.ts";
import { siteHandler } from "../../tools/site/static_site.ts";
import { freePort } from "../support/common/free_port.ts";
import { until } from "../support/common/until.ts";
import { no_browser, sharedBrowser } from "../support/console/browser.ts";
import { violations } from "../support/console/look.ts";
import { addAccount } from "../support/database/provider_flow.ts";
import { deliver, eventsOf } from "../support/live/live_actions.ts";
import { type LiveCase, liveCase, settle } from "../support/live/live_case.ts";
import { launchServer, type ServerProcess } from "../support/service/server_process.ts";

const SITE_PORT = freePort();
const PAGE = `http://127.0.0.1:${SITE_PORT}/pay`;
const PATIENCE_MS = 60_000;
const NUMBER = "5555 5555 5555 4444";
const PUBLISHABLE_KEY = "pk_live_51Page";

/**
 * The stand-in of Stripe's script: its frame has the field, and asks Stripe for the token. The test
 * is told of the options that it gets.
 */
const SCRIPT = `
globalThis.Stripe = (key, options) => {
  let frame;
  const elements = {
    create: (type, choice) => ({
      mount(place) {
        fetch("https://api.stripe.com/seen", { method: "POST", body: JSON.stringify(
          { key, options, elements: elements.options, type, choice, address: location.href }) });
        frame = document.createElement("iframe");
        frame.src = "https://js.stripe.com/frame.html";
        frame.title = "Card";
        place.append(frame);
      },
    }),
    submit: async () => ({}),
    update() {},
  };
  return {
    elements: (given) => (elements.options = given, elements),
    createPaymentMethod: () => new Promise((resolve) => {
      addEventListener("message", ({ data }) => resolve({ paymentMethod: { id: data } }), { once: true });
      frame.contentWindow.postMessage("make", "https://js.stripe.com");
    }),
  };
};`;
const FRAME = `<!DOCTYPE html><title>Card</title><label>Number <input></label><script>
addEventListener("message", async ({ origin }) => {
  const response = await fetch("https://api.stripe.com/v1/payment_methods",
    { method: "POST", body: document.querySelector("input").value });
  parent.postMessage((await response.json()).id, origin);
});</script>`;

/** A browser with the stand-in, and everything that its page has sent. */
async function openPage(browser: Browser, token: { id: string }) {
  const context = await browser.newContext({ locale: "en-GB" });
  const seen = { posts: [] as string[], options: [] as string[], requests: [] as string[] };
  const blocked: string[] = [];
  const CORS = { "Access-Control-Allow-Origin": "*" };
  await context.route("https://js.stripe.com/**", (route) => {
    const is_frame = route.request().url().endsWith(".html");
    return route.fulfill(
      is_frame
        ? { contentType: "text/html", body: FRAME }
        : { contentType: "text/javascript", body: SCRIPT },
    );
  });
  await context.route("https://api.stripe.com/**", (route) => {
    const text = route.request().postData() ?? "";
    if (route.request().url().endsWith("/seen")) seen.options.push(text);
    return route.fulfill({ headers: CORS, json: { id: token.id } });
  });
  context.on("request", (request) => {
    if (new URL(request.url()).hostname.endsWith("stripe.com")) return;
    seen.requests.push(`${request.url()} ${request.postData() ?? ""}`);
    if (request.method() === "POST") seen.posts.push(request.postData()!);
  });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  page.on("console", (message) => {
    if (message.text().includes("Content Security Policy")) blocked.push(message.text());
  });
  return { context, page, seen, blocked };
}

/** Opens a checkout, chooses the card and types a number into the frame. */
async function typeCard(page: Page, url: string): Promise<void> {
  await page.goto(url);
  await page.getByRole("radio", { name: "Card" }).check();
  await page.getByRole("button", { name: "Continue" }).click();
  await page.frameLocator("iframe").getByLabel("Number").fill(NUMBER);
}

async function withServer(
  given: LiveCase,
  work: (server: { kill(): Promise<void>; restart(): Promise<void> }) => Promise<void>,
): Promise<void> {
  const { service, variables } = given;
  const port = freePort();
  const launch = () =>
    launchServer(service.database.functions_url, {
      ...{ port, lease_ms: 5_000, checkout_url: PAGE, provider_secrets: variables },
    });
  let server: ServerProcess = await launch();
  const serveSite = siteHandler("/pay", () => buildCheckoutSite(server.base_url));
  const site = Deno.serve(
    { port: SITE_PORT, hostname: "127.0.0.1", onListen: () => {} },
    async (request) => await serveSite(request) ?? new Response(null, { status: 404 }),
  );
  try {
    await work({ kill: () => server.kill(), restart: async () => void (server = await launch()) });
  } finally {
    await Promise.all([server.kill(), site.shutdown()]);
  }
}

async function openCheckout(given: LiveCase, body: object = {}): Promise<string> {
  const made = await given.call("POST", "/checkouts", {
    body: { amount: 1999, currency: "EUR", methods: ["card", "sepa"], ...body },
  });
  assert.equal(made.status, 201, made.text);
  return made.body.url;
}

if (!no_browser) {
  liveCase("a live card is paid on the page of checkouts", async (given, t) => {
    const bank = { iban: "DE89370400440532013000", bic: "COBADEFFXXX", holder_name: "Shop GmbH" };
    await addAccount(given.service.sql, given.service.live.environment_id, {
      ...{ connector: "bank", settings: { ...bank, currency: "EUR" } },
    });
    const token = { id: "pm_card_mastercard" };
    await withServer(given, async (server) => {
      const { context, page, seen, blocked } = await openPage(await sharedBrowser(), token);
      const pays = page.getByRole("button", { name: "Pay €19.99" });
      const charges = async () =>
        (await given.books()).charge.filter(({ status }) => status === "succeeded").length;

      await t.step(
        "a decline, another card, and one charge when the server is killed",
        async () => {
          token.id = "pm_card_chargeDeclined";
          const url = await openCheckout(given);
          await typeCard(page, url);
          await pays.click();
          await page.getByText("Try another card").waitFor();
          assert.deepEqual(await violations(page), []);
          token.id = "pm_card_mastercard";
          await given.double.plant({ method: "POST", at: "after", act: "delay", delay_ms: 3_000 });
          await pays.click();
          await until("the provider has worked", async () => await charges() === 1);
          await server.kill();
          await page.getByText("Please do not pay again").waitFor();
          await server.restart();
          await page.getByText("Thank you, your payment has arrived").waitFor();
          assert.equal(await charges(), 1);
          const sent = (token: string) => ({ card: { token }, method: "card", currency: "EUR" });
          const bodies = [...new Set(seen.posts)].map((text) => JSON.parse(text));
          assert.deepEqual(bodies, [sent("pm_card_chargeDeclined"), sent("pm_card_mastercard")]);
          assert.doesNotMatch(seen.requests.join(), /5555/);
        },
      );
      await t.step("Stripe gets the key, no wallet and no token of the checkout", () => {
        const [first] = seen.options.map((text) => JSON.parse(text));
        const { key, elements, choice, address } = first;
        assert.deepEqual([key, elements.mode, elements.amount, elements.currency], [
          ...[PUBLISHABLE_KEY, "payment", 1999, "eur"],
        ]);
        assert.deepEqual(elements.paymentMethodTypes, ["card"]);
        assert.deepEqual(choice.wallets, { applePay: "never", googlePay: "never", link: "never" });
        assert.equal(address, `${PAGE}/card/`);
      });
      await t.step("3-D Secure comes back to the page, and to the shop", async () => {
        token.id = "pm_card_authenticationRequired";
        await context.route("https://shop.example/**", (route) => route.fulfill({ body: "shop" }));
        const url = await openCheckout(given, { return_url: "https://shop.example/back" });
        await typeCard(page, url);
        await pays.click();
        await page.getByText("Confirm with your bank").waitFor();
        await deliver(given, await eventsOf(given, "payment_intent.succeeded"));
        await page.waitForURL(/^https:\/\/shop\.example\/back\?payment_id=pay_\w+&checkout_id=chk/);
      });
      assert.deepEqual(blocked, []);
      await context.close();
    });
    await settle(given);
  }, { checkout_url: PAGE, account: { publishable_key: PUBLISHABLE_KEY } });
}
