/**
 * The console reads again and again while a user types. No read changes a field that the user is
 * filling in: neither a filter nor a field of a form.
 */

import assert from "node:assert/strict";
import type { Locator, Page } from "playwright-core";
import { consoleCase } from "../support/console/console_case.ts";

const CARD = { number: "4242424242424242", exp_month: 12, exp_year: 2034, cvc: "123" };
/** Longer than the time between two reads. */
const READ_MS = 2_500;

/** Lets every timer of the page read once, and waits for a response. */
async function readAgain(page: Page): Promise<void> {
  const response = page.waitForResponse((response) =>
    response.request().method() === "GET" && response.url().includes("/functions/v1/")
  );
  await page.clock.runFor(READ_MS);
  await (await response).finished();
  // The page renders a response before it responds to this.
  await page.evaluate(() => Promise.resolve());
}

/** Types into every text field, and chooses in every list, with a read between two keys. */
async function fillIn(page: Page, scope: Locator): Promise<number> {
  const fields = await scope.locator("input[type=text]:visible, textarea:visible").all();
  for (const field of fields) {
    await field.fill("");
    await field.focus();
    for (const [i, key] of ["7", "8"].entries()) {
      await page.keyboard.type(key);
      await readAgain(page);
      assert.equal(await field.inputValue(), "78".slice(0, i + 1), `${field}`);
    }
    await field.fill("");
  }
  const lists = await scope.locator("select:visible").all();
  for (const list of lists) {
    // deno-lint-ignore no-explicit-any
    const last = await list.locator("option").last().evaluate((option: any) => option.value);
    await list.selectOption(last);
    await readAgain(page);
    assert.equal(await list.inputValue(), last);
    await list.selectOption({ index: 0 });
  }
  return fields.length + lists.length;
}

consoleCase("no read erases what the user types", async (step, { enter, make }) => {
  const pay = (more: object) =>
    make("payments", { amount: 5000, currency: "EUR", card: CARD, ...more });
  const whe = await make("webhook_endpoints", { delivery: "inbox" });
  const authorized = await pay({ capture: "manual" });
  const disputed = await pay({ card: { ...CARD, number: "4000000000000259" } });
  const deposit = await make("payments", {
    amount: 5_000_000,
    currency: "USDC",
    capability: "stablecoin_payment",
  });
  const paid = await pay({});

  const on = await enter();
  const { page, button, see, press, hash } = on;
  await page.clock.install();
  const go = async (place: string) => {
    await on.fresh(place);
    await page.getByRole("heading", { name: "Balance", level: 1 }).waitFor({ state: "detached" });
  };
  const main = page.locator("main");
  const dialog = on.dialog();

  for (const place of ["payments", "transfers", "requests", "events"]) {
    await step(`in the filters of ${place}`, async () => {
      await go(place);
      await fillIn(page, main.getByRole("search"));
    });
  }
  await step(
    "a filter is applied when it is complete, and not before",
    async () => {
      await go("payments");
      const field = on.field("Reference");
      await field.focus();
      for (const part of ["INV-", "2026", "-1004"]) {
        await page.keyboard.type(part);
        await readAgain(page);
      }
      assert.equal(await field.inputValue(), "INV-2026-1004");
      assert.equal(hash(), "#/payments");
      await page.keyboard.press("Enter");
      await see("No payment matches");
      assert.equal(hash(), "#/payments?reference=INV-2026-1004");
      await press("Clear filter");
      assert.equal(await field.inputValue(), "");
    },
  );

  /** Forms: the place, and the radio buttons that choose the fields. */
  const forms: [place: string, name: string][] = [
    ["payments/new", "instrument"],
    ["transfers/new", "destination"],
    ["webhooks/new", "delivery"],
    ["webhooks/new", "wants"],
    ["faults/new", "on"],
  ];
  for (const [place, name] of forms) {
    await step(`in the form ${place}, by ${name}`, async () => {
      await go(place);
      const add = button("Add metadata");
      if (await add.count() > 0) await add.click();
      const choices = await main.locator(`input[type=radio][name=${name}]`).all();
      assert.ok(choices.length > 1);
      for (const choice of choices) {
        await choice.check();
        assert.ok(await fillIn(page, main.locator("form")) > 0);
      }
    });
  }
  /** Dialogs and forms of pages: the place, the button that opens the form, and the form. */
  const opened: [place: string, button: string | null][] = [
    [`payments/${authorized}`, "Capture…"],
    [`payments/${paid}`, "Refund…"],
    [`payments/${paid}`, "Trigger an event…"],
    [`payments/${disputed}`, null],
    [`payments/${deposit}`, null],
    [`webhooks/${whe}`, "Trigger an event…"],
    [`webhooks/${whe}`, "Edit…"],
    [`webhooks/${whe}`, "Rotate secret…"],
    ["payments", "Sandboxes…"],
    ["payments", "Clock"],
  ];
  for (const [place, button] of opened) {
    await step(`in ${place.split("/")[0]}, ${button ?? "a form of the page"}`, async () => {
      await go(place);
      if (button !== null) await page.getByRole("button", { name: button, exact: true }).click();
      const form = (button === null ? main : dialog).locator("form").first();
      await form.waitFor();
      assert.ok(await fillIn(page, form) > 0);
      if (button !== null) await page.keyboard.press("Escape");
    });
  }
  await step("a newer payment does not take the place of the one in a form", async () => {
    await go(`webhooks/${whe}`);
    await press("Trigger an event…");
    const field = dialog.getByLabel("Payment");
    assert.equal(await field.inputValue(), paid);
    await pay({ amount: 900 });
    await readAgain(page);
    await readAgain(page);
    assert.equal(await field.inputValue(), paid);
  });
});
