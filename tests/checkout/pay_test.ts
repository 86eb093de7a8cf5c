/**
 * The page for payers in a real browser, over the local start: a payer pays by hand by every
 * method, and a stranger gets nothing through it.
 */

import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { LANGUAGES, wordsFor } from "../../apps/checkout/data/words.ts";
import type { Checkout, Payment } from "../../packages/client/mod.ts";
import {
  browserCase,
  type ConsoleCase,
  moveClock,
  type OpenOptions,
  PHONE,
} from "../support/console/console_case.ts";
import { readQrCode } from "../support/console/qr_reader.ts";

const EUR = { amount: 1999, currency: "EUR" };
const USDC = { other_prices: [{ amount_minor: 21_990_000, currency: "USDC" }] };
/** Cards as a payer types them. */
const [VISA, DECLINED, SECURE] = ["4242424242424242", "4000000000000002", "4000002500003155"];
/** A number with valid check digits that is no published test number. */
const REAL = "4111 1111 1111 1111";

/** Returns the texts of the page in a language. */
function textsOf(locale: string) {
  const { say, money } = wordsFor(locale, [locale]);
  const pay = say("pay_amount", { amount: money(1999, "EUR") }).replace(/\s/g, " ");
  return { ...LANGUAGES[locale]!, pay };
}
const EN = textsOf("en");

/** The operations of a merchant and of a payer. */
function actorsOf({ send, open, origin }: ConsoleCase) {
  const make = (more: object = {}): Promise<Checkout> =>
    send("POST", "checkouts", { ...EUR, return_url: `${origin}/?order=7`, ...more });
  const visit = async (
    { url }: { url: string | null },
    options: OpenOptions & { is_busy?: boolean } = {},
  ) => {
    const opened = await open("", { url: url!, viewport: PHONE, ...options });
    await opened.page.getByRole("heading", { level: 1 }).waitFor();
    if (options.is_busy) await opened.page.evaluate(delayTimers);
    return opened;
  };
  return {
    make,
    visit,
    /** Reads a checkout with its payments, the newest first. */
    async read({ id }: Checkout) {
      const checkout: Checkout = await send("GET", `checkouts/${id}`);
      const { data }: { data: Payment[] } = await send("GET", `payments?checkout_id=${id}`);
      return { ...checkout, payments: data };
    },
    advance: ({ id }: Payment) =>
      send("POST", `/api-v1-sandbox/payments/${id}/advance`, { to: "completed" }),
    /** Waits until the payer is back at the shop with the names of the payment and the checkout. */
    isBack: (page: Page, { id }: Checkout) =>
      page.waitForURL(new RegExp(`/\\?order=7&payment_id=pay_\\w+&checkout_id=${id}$`)),
  };
}

/** Runs in the page. Its timers and frames come late, as in a busy browser. */
function delayTimers(): void {
  const { setTimeout: plan } = globalThis;
  Object.assign(globalThis, {
    setTimeout: (run: () => void, ms = 0) => plan(run, ms + 200),
    requestAnimationFrame: (run: () => void) => plan(run, 200),
  });
}

async function typeCard(page: Page, number: string): Promise<void> {
  await page.locator("#card_number").pressSequentially(number);
  await page.locator("#expiry").pressSequentially("1234");
  await page.locator("#cvc").fill("123");
}

const press = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).click();

for (const locale of ["en", "de"]) {
  const text = textsOf(locale);
  browserCase({ name: `page for payers: by hand, ${locale}` }, async (step, place) => {
    const { make, visit, read, advance, isBack } = actorsOf(place);
    const { send } = place;
    const options = { locale, is_busy: locale === "de" };
    await step("a declined card, then another one: back at the shop", async () => {
      const checkout = await make();
      const { page } = await visit(checkout, options);
      await typeCard(page, DECLINED!);
      await press(page, text.pay);
      await page.getByRole("alert").getByText(text.declined_title).waitFor();
      assert.doesNotMatch(await page.getByRole("main").innerText(), /funds|fraud|_declined/i);
      await typeCard(page, VISA!);
      await press(page, text.pay);
      await isBack(page, checkout);
      const { status, payments } = await read(checkout);
      assert.deepEqual([status, ...payments.map((one) => one.status)], [
        ...["completed", "completed", "declined"],
      ]);
    });
    await step("3-D Secure: declined at the bank, then approved", async () => {
      const checkout = await make();
      const { page } = await visit(checkout, options);
      await typeCard(page, SECURE!);
      await press(page, text.pay);
      await page.getByText("3155").waitFor();
      await press(page, text.decline);
      await page.getByRole("alert").getByText(text.declined_title).waitFor();
      await typeCard(page, SECURE!);
      await press(page, text.pay);
      await press(page, text.approve);
      await isBack(page, checkout);
      assert.equal((await read(checkout)).status, "completed");
    });
    await step("a transfer and a wallet by their QR codes, and another way between", async () => {
      const checkout = await make(USDC);
      const { page } = await visit(checkout, options);
      for (const method of [text.sepa, text.stablecoin]) {
        await page.getByRole("radio", { name: method, exact: method === text.sepa }).check();
        await press(page, text.continue);
        await page.getByRole("img").waitFor();
        const [payment] = (await read(checkout)).payments as [Payment];
        const action = payment.next_action as Record<string, string>;
        const code = await readQrCode(page);
        assert.equal(code, action["epc_qr"] ?? action["uri"]);
        if (method === text.sepa) {
          assert.match(code, /^BCD\n002\n1\nSCT\nPAYSDEF0\n.+\nDE\d{20}\nEUR19\.99\n\nRF/);
          await press(page, text.pay_otherwise);
        } else {
          await advance(payment);
          await isBack(page, checkout);
        }
      }
      const { status, payments } = await read(checkout);
      assert.deepEqual([status, ...payments.map((one) => one.status)], [
        ...["completed", "completed", "cancelled"],
      ]);
    });
    await step("a card that is saved, of an amount of 0", async () => {
      const customer = { id: `payer ${locale}`, email: "ada@example.com" };
      const checkout = await make({ amount: 0, save: "off_session", customer });
      const { page } = await visit(checkout, options);
      await typeCard(page, VISA!);
      await press(page, text.pay_amount_save);
      await page.getByRole("checkbox").and(page.locator("[aria-invalid=true]")).check();
      await press(page, text.pay_amount_save);
      await isBack(page, checkout);
      const { data } = await send("GET", `instruments?customer_id=${customer.id}&status=active`);
      assert.deepEqual([data.length, data[0].method.card.last4], [1, "4242"]);
    });
    await step("a direct debit under a mandate", async () => {
      const checkout = await make();
      const { page } = await visit(checkout, options);
      await page.getByRole("radio", { name: text.sepa_debit }).check();
      await page.locator("#iban").pressSequentially("de89370400440532013000");
      await page.locator("#holder").fill("Ada Lovelace");
      await press(page, text.pay);
      await page.getByRole("link").and(page.locator(".notice a")).click();
      await page.getByLabel(text.mandate_box).and(page.locator(":focus")).check();
      await press(page, text.pay);
      await isBack(page, checkout);
      const [{ status, method }] = (await read(checkout)).payments as [Payment];
      assert.ok(method?.type === "sepa");
      assert.deepEqual([status, method.mandate?.sequence], ["processing", "one_off"]);
    });
  });
}

browserCase({ name: "page for payers: what it lets nobody do" }, async (step, place) => {
  const { make, visit, read } = actorsOf(place);
  await step("a real card number stays in the page", async () => {
    const { page, requests } = await visit(await make());
    const before = requests.length;
    await typeCard(page, REAL);
    await press(page, EN.pay);
    const alert = page.getByRole("alert").and(page.locator(":focus"));
    await alert.getByText("Your number has not left this page.").waitFor();
    assert.equal(await page.locator("#card_number").inputValue(), REAL);
    await page.getByRole("radio", { name: "Direct debit" }).check();
    await page.locator("#iban").fill("GB82 WEST 1234 5698 7654 32");
    await page.getByLabel(EN.mandate_box).check();
    const texts = ["#holder", "#street", "#postal_code", "#city"];
    const digits = REAL.replaceAll(" ", "");
    for (const wrong of texts) {
      for (const name of texts) await page.locator(name).fill(name === wrong ? digits : "London");
      await press(page, EN.pay);
      await alert.getByText("This looks like a card number.").waitFor();
      assert.ok(await page.locator(wrong).and(page.locator("[aria-invalid=true]")).isVisible());
    }
    assert.deepEqual(requests.slice(before), []);
  });
  await step("an injected script does not run, and no other host is asked", async () => {
    const checkout = await make({ description: "<img src=x onerror=globalThis.done=1>" });
    const provoked = /Content Security Policy|TrustedScript|Trusted/;
    let arrived = 0;
    await using far = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, () => {
      arrived++;
      return new Response("", { headers: { "Access-Control-Allow-Origin": "*" } });
    });
    const { page } = await visit(checkout, { provoked });
    const response = await page.request.get(page.url().split("#")[0]!);
    assert.match(response.headers()["content-security-policy"]!, /frame-ancestors 'none'/);
    await page.getByText("<img src=x").waitFor();
    await page.evaluate(`{
      const inline = document.createElement("script");
      try { inline.textContent = "globalThis.done = 1"; } catch {}
      document.body.append(inline);
      try { document.body.innerHTML += "<img src=x onerror='globalThis.done = 1'>"; } catch {}
      const far = "http://127.0.0.1:${far.addr.port}/";
      new Image().src = far + location.hash.slice(1);
      void fetch(far).catch(() => {});
    }`);
    await page.waitForTimeout(300);
    assert.equal(await page.evaluate("globalThis.done"), undefined);
    assert.equal(arrived, 0);
  });
  await step("two tabs pay at once: one payment", async () => {
    const checkout = await make({ return_url: undefined });
    const tabs = [await visit(checkout), await visit(checkout)];
    for (const { page } of tabs) await typeCard(page, VISA!);
    await Promise.all(tabs.map(({ page }) => press(page, EN.pay)));
    const titles = tabs.map(async ({ page }) => {
      await page.locator(".tick").waitFor();
      return await page.getByRole("heading", { level: 1 }).innerText();
    });
    assert.deepEqual((await Promise.all(titles)).toSorted(), [
      ...["Thank you, your payment has arrived", "This has been paid"],
    ]);
    assert.equal((await read(checkout)).payments.length, 1);
  });
  await step("a response that is lost: the page finds its payment, and pays once", async () => {
    const checkout = await make({ max_payments: null, return_url: undefined });
    const { page } = await visit(checkout);
    // A limit in between does not bring back the fields, which would make another payment.
    const limited = { status: 429, json: { error: { code: "rate_limited" } } };
    await page.route("**/checkout/payments", (route) => route.fulfill(limited), { times: 1 });
    await page.route("**/checkout/payments", async (route) => {
      await route.fetch();
      await route.abort();
    }, { times: 1 });
    await typeCard(page, VISA!);
    await press(page, EN.pay);
    await page.getByText("Please do not pay again.").waitFor();
    await page.getByRole("heading", { name: "Thank you, your payment has arrived" }).waitFor();
    const second = await visit(checkout);
    await second.page.getByRole("button", { name: EN.pay }).waitFor();
    const { status, payments } = await read(checkout);
    assert.deepEqual([status, payments.length], ["open", 1]);
  });
  await step("no response for minutes: the payer tries again, and pays once", async () => {
    const checkout = await make({ max_payments: null, return_url: undefined });
    const { page } = await visit(checkout);
    await page.clock.install();
    await page.route("**/checkout/payments", async (route) => {
      await route.fetch();
      await route.fulfill({ status: 503, json: { error: { code: "service_unavailable" } } });
    });
    await typeCard(page, VISA!);
    await press(page, EN.pay);
    await page.getByText("Please do not pay again.").waitFor();
    const again = page.getByRole("button", { name: "Try again" });
    while (await again.count() === 0) await moveClock(page, 30_000);
    await page.getByText("you do not pay twice").waitFor();
    await page.unrouteAll();
    await again.click();
    await page.getByRole("heading", { name: "Thank you, your payment has arrived" }).waitFor();
    assert.equal((await read(checkout)).payments.length, 1);
  });
});

browserCase({ name: "page for payers: the bank step alone" }, async (step, place) => {
  const { visit } = actorsOf(place);
  const pay = async (more: object = {}) => {
    const card = { number: SECURE, exp_month: 12, exp_year: 2034, cvc: "123" };
    const payment: Payment = await place.send("POST", "payments", { ...EUR, card, ...more });
    return { id: payment.id, url: (payment.next_action as { url: string }).url };
  };
  await step("by keyboard, without a return URL: close the page", async () => {
    const { page } = await visit(await pay());
    for (const name of ["Yes, approve", "No, decline"]) {
      await page.keyboard.press("Tab");
      await page.getByRole("button", { name }).and(page.locator(":focus-visible")).waitFor();
    }
    await page.keyboard.press("Enter");
    const over = page.getByRole("heading", { name: "You have declined the payment" });
    await over.and(page.locator(":focus")).waitFor();
    await page.getByText("You can close this page.").waitFor();
  });
  await step("the console links to it; back at the shop, and not to it again", async () => {
    const { id, url } = await pay({ return_url: `${place.origin}/?order=8` });
    const { page } = await place.enter(`#/payments/${id}`);
    const link = page.getByRole("link", { name: "Open the payer’s page" });
    assert.equal(await link.getAttribute("href"), url);
    const opened = await visit({ url });
    await press(opened.page, "Yes, approve");
    await opened.page.waitForURL(`${place.origin}/?order=8&payment_id=${id}`);
    await page.locator(".under-title").getByText("Completed").waitFor();
    await opened.page.goto(url);
    const back = opened.page.getByRole("link", {
      name: `Back to ${place.start.account}`,
      exact: true,
    });
    assert.equal(await back.getAttribute("href"), `${place.origin}/?order=8&payment_id=${id}`);
  });
  await step("a payment that ends meanwhile has nothing to confirm", async () => {
    const { id, url } = await pay();
    const { page } = await visit({ url });
    await place.send("POST", `payments/${id}/cancel`);
    await press(page, "Yes, approve");
    await page.getByRole("heading", { name: "There is nothing left to confirm" }).waitFor();
  });
});
