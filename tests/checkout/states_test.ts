/**
 * Every state of the page for payers in every language: axe finds nothing, the mark of a test page
 * is there, the texts are in the language, and nothing is wider than a screen of 320 pixels, which
 * is also a screen of 1280 at 400 %.
 */

import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { LANGUAGES } from "../../apps/checkout/data/words.ts";
import type { Checkout, PaidCheckout } from "../../packages/client/mod.ts";
import { browserCase, keepScreenshot } from "../support/console/console_case.ts";
import { faultsOfWidth, OTHER_COLOURS, OTHER_TEXTS, violations } from "../support/console/look.ts";
import { operate } from "../support/live/provider_commands.ts";

const SMALL = { width: 320, height: 640 };
const DESKTOP = { width: 1280, height: 900 };
const USDC = { other_prices: [{ amount_minor: 21_990_000, currency: "USDC" }] };
const SAVES = { amount: 0, save: "off_session", customer: { id: "u1", email: "a@example.com" } };
const card = (name: string) => ({ card: { token: `pm_card_${name}` } });
/** The language in which axe also judges the colours, which are the same in all. */
const [FIRST_LANGUAGE] = Object.keys(LANGUAGES);
const UNKNOWN = `cht_${"0".repeat(48)}`;
/** A name with a word that is wider than the smallest screen. */
const MERCHANT = "Donaudampfschifffahrtsgesellschaftskapitänsmützen & Söhne GmbH";

interface State {
  name: string;
  /** The checkout, the attempts before, and a text of the state. */
  body?: object;
  pays?: object[];
  /** The part of a transfer that has come. */
  receives?: number;
  shows: keyof typeof LANGUAGES["en"] & string;
  /** The payer's act in this state. */
  act?(page: Page): Promise<void>;
}

/** Goes to another place of the page, and waits until the title of the one before is gone. */
async function go(page: Page, url: string): Promise<void> {
  await page.evaluate(`document.querySelector("h1").dataset.left = ""`);
  await page.goto(url);
  await page.locator("h1:not([data-left])").waitFor();
}

const submit = (page: Page) => page.locator("button.primary").click();

/** Sends an attempt without fields, which is refused. */
async function chooseTransfer(page: Page): Promise<void> {
  await page.getByRole("radio").last().check();
  await submit(page);
  await page.getByRole("alert").filter({ hasNot: page.locator("a") }).waitFor();
}

const STATES: State[] = [
  { name: "methods", body: USDC, shows: "method" },
  { name: "empty fields", shows: "error_number", act: submit },
  {
    name: "a direct debit without a mandate",
    shows: "error_mandate",
    async act(page) {
      await page.getByRole("radio").nth(1).check();
      await page.locator("#iban").fill("GB82 WEST 1234 5698 7654 32");
      await submit(page);
    },
  },
  { name: "declined", pays: [card("chargeDeclined")], shows: "declined_card" },
  {
    name: "no provider any more",
    shows: "unavailable_text",
    async act(page) {
      const error = { code: "provider_not_configured" };
      await page.route(
        "**/checkout/payments",
        (route) => route.fulfill({ status: 503, json: { error } }),
      );
      await chooseTransfer(page);
    },
  },
  {
    name: "10 declines",
    pays: Array(10).fill(card("chargeDeclined")),
    shows: "limited_text",
    act: chooseTransfer,
  },
  { name: "saves without consent", body: SAVES, shows: "error_consent", act: submit },
  { name: "asks the bank", pays: [card("authenticationRequired")], shows: "action_text" },
  { name: "transfer", pays: [{ method: "sepa" }], shows: "transfer_qr" },
  {
    name: "transfer in dollars",
    body: { currency: "USD" },
    pays: [{ method: "swift" }],
    shows: "transfer_copy",
  },
  { name: "wallet", body: USDC, pays: [{ currency: "USDC" }], shows: "stablecoin_qr" },
  { name: "a part of a transfer", pays: [{ method: "sepa" }], receives: 999, shows: "partly_paid" },
  {
    name: "20 attempts",
    pays: [...Array(19).fill(card("authenticationRequired")), card("chargeDeclined")],
    shows: "exhausted_title",
  },
  { name: "processing", pays: [card("late")], shows: "processing_title" },
  { name: "paid", pays: [card("visa")], shows: "done_title" },
];

browserCase({ name: "page for payers: states and languages" }, async (step, place) => {
  const { send, origin, open, start } = place;
  const of_account = ["--account", start.account, "--name", MERCHANT];
  await operate(start.sql, ["merchant", "set", ...of_account]);
  const pages = { return_url: `${origin}/`, cancel_url: `${origin}/` };
  const make = (body: object = {}): Promise<Checkout> =>
    send("POST", "checkouts", {
      amount: 1999,
      currency: "EUR",
      description: "Tickets",
      ...pages,
      ...body,
    });
  const pay = ({ id }: Checkout, body: object): Promise<PaidCheckout> =>
    send("POST", `/api-v1-sandbox/checkouts/${id}/pay`, body);
  // Nothing ends by itself meanwhile. The first checkout expires before the others begin.
  const soon = new Date(Date.now() + 60_000).toISOString();
  const expired = await make({ expires_at: soon });
  await send("POST", "/api-v1-sandbox/clock", { mode: "frozen", advance: 120 });
  const cancelled = await make(SAVES);
  await send("POST", `checkouts/${cancelled.id}/cancel`);
  const asked = await pay(await make(), card("authenticationRequired"));
  const { url: bank } = asked.payment.next_action as { url: string };
  const at: (State & { url: string; is_test: boolean })[] = [
    { name: "expired", url: expired.url!, shows: "expired_title", is_test: true },
    { name: "cancelled", url: cancelled.url!, shows: "cancelled_title_save", is_test: true },
    { name: "bank", url: bank, shows: "bank_text", is_test: true },
    { name: "unknown", url: `${origin}/pay/#${UNKNOWN}`, shows: "unknown_title", is_test: false },
  ];
  for (const state of STATES) {
    const checkout = await make(state.body);
    for (const body of state.pays ?? []) {
      const { payment: { id } } = await pay(checkout, body);
      const part = { to: "pending", amount_received: state.receives };
      if (state.receives) await send("POST", `/api-v1-sandbox/payments/${id}/advance`, part);
    }
    at.unshift({ ...state, url: checkout.url!, is_test: true });
  }
  for (const [locale, words] of Object.entries(LANGUAGES)) {
    await step(`${locale}: ${at.length} states`, async () => {
      const { page } = await open("", { url: `${origin}/pay/`, locale });
      await page.getByRole("heading", { level: 1 }).waitFor();
      for (const { name, url, shows, is_test, act } of at) {
        await go(page, url);
        await act?.(page);
        const known = words[shows].split("{")[0]!.trim() || words[shows].split("}").at(-1)!.trim();
        await page.getByText(known).first().waitFor();
        const mark = page.getByRole("banner").getByText(words.test_page, { exact: true });
        assert.equal(await mark.count(), is_test ? 1 : 0, name);
        assert.equal((await page.locator("html").getAttribute("lang"))!.slice(0, 2), locale);
        const found = await violations(page, locale === FIRST_LANGUAGE ? {} : OTHER_TEXTS);
        await page.setViewportSize(SMALL);
        found.push(...await faultsOfWidth(page));
        assert.deepEqual(found, [], `${name} in ${locale}`);
        if (locale === "de") await keepScreenshot(page, `pay-${name.replaceAll(" ", "-")}`);
        await page.setViewportSize(DESKTOP);
      }
    });
  }
  await step("dark, without motion, and in forced colours", async () => {
    const dark = { colorScheme: "dark", reducedMotion: "reduce" } as const;
    const { page } = await open("", { url: `${origin}/pay/`, ...dark });
    await page.getByRole("heading", { level: 1 }).waitFor();
    for (const { name, url, act } of at) {
      await go(page, url);
      await act?.(page);
      assert.deepEqual(await violations(page, OTHER_COLOURS), [], name);
      assert.equal(await page.evaluate("document.getAnimations().length"), 0, name);
    }
    await page.emulateMedia({ forcedColors: "active" });
    await go(page, at.find(({ name }) => name === "methods")!.url);
    const chosen = `getComputedStyle(document.querySelector(".method")).outlineStyle`;
    assert.equal(await page.evaluate(chosen), "solid");
  });
  await step("a page without a connection tries again, and pays by keyboard alone", async () => {
    const checkout = await make({ methods: ["card", "sepa"] });
    const { page } = await open("", { url: `${origin}/pay/` });
    const call = "**/api-v1-payments/checkout";
    await page.route(call, (route) => route.abort());
    await page.goto(checkout.url!);
    await page.getByRole("heading", { name: "No connection" }).waitFor();
    await page.unroute(call);
    await page.getByRole("radio").first().waitFor();
    await page.getByText("You can pay until").waitFor();
    const type = async (text: string) => {
      await page.keyboard.press("Tab");
      await page.keyboard.type(text);
    };
    await page.keyboard.press("Tab");
    await page.getByRole("radio", { name: "Card" }).and(page.locator(":focus-visible")).waitFor();
    for (const text of ["4242424242424242", "1234", "123"]) await type(text);
    await page.keyboard.press("Enter");
    await page.waitForURL(/payment_id=pay_\w+&checkout_id=chk_/);
  });
});
