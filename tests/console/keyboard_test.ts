/**
 * The keyboard: a first payment and its refund by Tab, arrows, Space, Enter and Escape alone. And
 * no read of the console changes a field that the user is filling in, of a filter or of a form.
 */

import assert from "node:assert/strict";
import type { Locator, Page } from "playwright-core";
import { consoleCase, withoutChanges } from "../support/console/console_case.ts";

/** More than the number of elements on any page. */
const MAX_TABS = 60;
const CARD = { number: "4242424242424242", exp_month: 12, exp_year: 2034, cvc: "123" };
/** Longer than the time between two reads. */
const READ_MS = 2_500;

consoleCase("the keyboard is enough to pay and to refund", async (step, { open, start, make }) => {
  const { page, button, heading, dialog, status, go } = await open();
  const press = (key: string) => page.keyboard.press(key);
  /** The name of the focused element, and whether its focus is visible. */
  const focused = () =>
    page.evaluate(() => {
      const element = document.activeElement as HTMLInputElement;
      // After the last element the focus passes through the browser's own controls.
      if ((element as Element) === document.body) return { name: "", visible: true };
      const label = element.labels?.[0]?.textContent ?? element.textContent;
      const marks = [element, element.nextElementSibling ?? []].flat()
        .flatMap((marked) => [getComputedStyle(marked), getComputedStyle(marked, "::after")]);
      return {
        name: (element.ariaLabel ?? label ?? "").trim(),
        visible: marks.some((style) => style.outlineStyle !== "none"),
      };
    });
  /** Presses Tab until an element of this name has the focus. */
  const tabTo = async (name: string | RegExp) => {
    const passed: string[] = [];
    for (let tabs = 0; tabs < MAX_TABS; tabs++) {
      await press("Tab");
      const at = await focused();
      assert.ok(at.visible, `the focus on "${at.name}" cannot be seen`);
      if (typeof name === "string" ? at.name.startsWith(name) : name.test(at.name)) return;
      passed.push(at.name);
    }
    assert.fail(`no way by Tab to ${name}: ${passed.join(", ")}`);
  };

  const hasFocus = (name: string) =>
    page.getByRole("button", { name }).and(page.locator(":focus")).waitFor();

  const headingHasFocus = (name: string) =>
    page.getByRole("heading", { name }).and(page.locator(":focus")).waitFor();

  await step("the key: the field has the focus, and Enter sends it", async () => {
    await page.locator("#key:focus").waitFor();
    await page.keyboard.insertText(start.test_key);
    await press("Enter");
    await heading("Home").waitFor();
  });

  await step("the skip link skips the navigation", async () => {
    await tabTo("Skip to the content");
    await press("Enter");
    await tabTo("Create payment");
  });

  await step("a payment: arrows choose the test value, Enter sends the form", async () => {
    await press("Enter");
    await heading("Create a payment").waitFor();
    await tabTo("Amount");
    await press("Control+A");
    await page.keyboard.insertText("48.00");
    await tabTo("Test card");
    await tabTo("Approved");
    await press("ArrowRight");
    assert.match((await focused()).name, /^Declined by the issuer/);
    await press("ArrowLeft");
    await tabTo("Create payment");
    await press("Enter");
    await heading("48.00 EUR").waitFor();
    await headingHasFocus("48.00 EUR");
  });

  await step("Escape closes a dialog and returns the focus", async () => {
    await tabTo("Refund…");
    await press("Enter");
    await dialog("Refund").waitFor();
    await press("Escape");
    await dialog("Refund").waitFor({ state: "detached" });
    await hasFocus("Refund…");
  });

  await step("Enter opens it again at once after Escape", async () => {
    for (let i = 0; i < 10; i++) {
      await press("Enter");
      await dialog("Refund").waitFor();
      await press("Escape");
    }
    await hasFocus("Refund…");
  });

  await step("a refund in the dialog, which keeps the focus inside", async () => {
    await press("Enter");
    await dialog("Refund").waitFor();
    await press("Control+A");
    await page.keyboard.insertText("8");
    await tabTo("Reason");
    await press("ArrowDown");
    await tabTo("Refund");
    await press("Enter");
    await status("Partially refunded").waitFor();
  });

  await step("the API calls open, and arrows change their tabs", async () => {
    await tabTo("API calls");
    await press("Enter");
    await tabTo("Request");
    for (let i = 0; i < 2; i++) await press("ArrowRight");
    assert.equal((await focused()).name, "curl");
    assert.match(await page.getByRole("tabpanel").innerText(), /^curl -X POST/);
  });

  await step(
    "the focus moves to the heading when an action removes its button",
    async () => {
      const pending = { amount: 700, currency: "EUR", outcome: "pending" };
      await go(`payments/${await make("payments", pending)}`);
      await headingHasFocus("7.00 EUR");
      await tabTo(/^Completed/);
      await press("Enter");
      await button(/^Completed/).waitFor({ state: "detached" });
      await headingHasFocus("7.00 EUR");
    },
  );

  await step("a new page's heading has the focus before the first paint", async () => {
    const at = await page.evaluate(() => {
      return new Promise<string | null>((resolve) => {
        // This runs after the console's own listener and its queued work, but in the same task.
        addEventListener("hashchange", async () => {
          for (let queued = 0; queued < 100; queued++) await null;
          resolve(document.activeElement!.textContent);
        }, { once: true });
        // The link stays on the page. If an element is removed with its page, the browser moves the
        // focus anyway.
        document.querySelector<HTMLElement>('nav a[href="#/payments"]')!.focus();
        location.hash = "#/balance";
      });
    });
    assert.equal(at, "Balance");
  });
});

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
    const last = await list.evaluate((list) =>
      [...(list as HTMLSelectElement).options].at(-1)!.value
    );
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
  await withoutChanges(page);
  const go = async (place: string) => {
    await on.fresh(place);
    await page.getByRole("heading", { name: "Balance", level: 1 }).waitFor({ state: "detached" });
  };
  const main = page.locator("main");
  const dialog = on.dialog();

  await step("in the filters of payments", async () => {
    await go("payments");
    await fillIn(page, main.getByRole("search"));
  });
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
    ["payments/new", "method"],
    ["transfers/new", "destination"],
    ["webhooks/new", "delivery"],
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
    [`webhooks/${whe}`, "Edit…"],
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
