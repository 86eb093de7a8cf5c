/** A first payment and its refund by keyboard alone: Tab, arrows, Space, Enter, Escape. */

import assert from "node:assert/strict";
import { consoleCase } from "../support/console/console_case.ts";

/** More than the number of elements on any page. */
const MAX_TABS = 60;

consoleCase("the keyboard is enough to pay and to refund", async (step, { open, start, make }) => {
  const { page, button, heading, dialog, status, go } = await open();
  const press = (key: string) => page.keyboard.press(key);
  /** The name of the focused element, and whether its focus is visible. */
  const focused = () =>
    page.evaluate(() => {
      // deno-lint-ignore no-explicit-any
      const { document, getComputedStyle } = globalThis as any;
      const element = document.activeElement;
      // After the last element the focus passes through the browser's own controls.
      if (element === document.body) return { name: "", visible: true };
      const label = element.labels?.[0]?.textContent ?? element.textContent;
      const marks = [element, element.nextElementSibling].filter(Boolean)
        // deno-lint-ignore no-explicit-any
        .flatMap((marked: any) => [getComputedStyle(marked), getComputedStyle(marked, "::after")]);
      return {
        name: (element.ariaLabel ?? label ?? "").trim() as string,
        // deno-lint-ignore no-explicit-any
        visible: marks.some((style: any) => style.outlineStyle !== "none"),
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

  await step("the dialog's own button does the same", async () => {
    await press("Enter");
    await dialog("Refund").waitFor();
    await tabTo("Cancel");
    await press("Enter");
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

  await step("the focus moves to the heading when a dialog's opener is gone", async () => {
    await tabTo("Refund…");
    await press("Enter");
    await dialog("Refund").waitFor();
    await press("Enter");
    await button("Refund…").waitFor({ state: "detached" });
    await headingHasFocus("7.00 EUR");
  });

  await step("a new page's heading has the focus before the first paint", async () => {
    const at = await page.evaluate(() => {
      // deno-lint-ignore no-explicit-any
      const { addEventListener, document, location } = globalThis as any;
      return new Promise<string>((resolve) => {
        // This runs after the console's own listener and its queued work, but in the same task.
        addEventListener("hashchange", async () => {
          for (let queued = 0; queued < 100; queued++) await null;
          resolve(document.activeElement.textContent);
        }, { once: true });
        // The link stays on the page. If an element is removed with its page, the browser moves the
        // focus anyway.
        document.querySelector('nav a[href="#/payments"]').focus();
        location.hash = "#/balance";
      });
    });
    assert.equal(at, "Balance");
  });
});
