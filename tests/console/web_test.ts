/**
 * The console behaves like the web: links open in new tabs that continue the session, the back
 * button undoes a filter and keeps the place, two payments are compared by a link, what the user
 * has typed survives, and Ctrl-K finds pages and actions.
 */

import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { consoleCase } from "../support/console/console_case.ts";
import { until } from "../support/common/until.ts";

const SANDBOX = "/api-v1-sandbox/payments";
/** More than a screen of a list. */
const MADE = 20;
const SMALL = { viewport: { width: 1280, height: 500 } };

/** How far the page is scrolled. Runs in the page. */
const scrolled = (page: Page) => page.evaluate(() => scrollY);

/** The item of a storage. Runs in the page. */
const stored = (page: Page, storage: "localStorage" | "sessionStorage", item: string) =>
  page.evaluate(([storage, item]) => globalThis[storage].getItem(item), [storage, item] as const);

consoleCase(
  "tabs, history, comparison, saved filters, Ctrl-K",
  async (step, place) => {
    const { make } = place;
    const ids: string[] = [];
    for (let i = 1; i <= MADE; i++) {
      const body = { amount_minor: 100 * i, currency: "EUR", outcome: "success" };
      ids.push(await make(SANDBOX, { ...body, reference: `INV-${i}` }));
    }
    const on = await place.enter("#/payments", SMALL);
    const { page, field, link, button, heading, hash, press, see, go, dialog } = on;
    const rows = on.rows("Payments");
    await rows.nth(MADE - 1).waitFor();

    /** Returns the tab that an action opens. */
    const tabOf = async (open: () => Promise<void>) => {
      const opened = page.context().waitForEvent("page");
      await open();
      return await opened;
    };
    const cell = rows.first().locator("td").nth(2);
    const OPENERS: [name: string, open: () => Promise<void>][] = [
      ["Ctrl and a row", () => cell.click({ modifiers: ["Control"] })],
      ["the middle button and a row", () => cell.click({ button: "middle" })],
      ["Ctrl and a link", () => rows.first().getByRole("link").click({ modifiers: ["Control"] })],
      ["Ctrl and Enter", async () => {
        await rows.first().getByRole("link").focus();
        await page.keyboard.press("Control+Enter");
      }],
    ];
    for (const [name, open] of OPENERS) {
      await step(`${name} opens a tab that continues the session`, async () => {
        const tab = await tabOf(open);
        await tab.getByRole("heading", { name: "20.00 EUR" }).waitFor();
        assert.equal(hash(), "#/payments");
        // Neither the storage nor the page that has opened it tells the key.
        assert.equal(await tab.evaluate(() => sessionStorage.length), 0);
        assert.equal(await tab.evaluate(() => globalThis.opener), null);
        await tab.close();
      });
    }
    await step("a tab that no link has opened gets no session", async () => {
      const tab = await tabOf(() => page.evaluate('void open("#/payments")'));
      await tab.getByRole("heading", { name: "Open your sandbox" }).waitFor();
      await tab.close();
    });

    await step(
      "the back button leads to the place in the list",
      async () => {
        await rows.nth(12).scrollIntoViewIfNeeded();
        const y = await scrolled(page);
        assert.ok(y > 200, `${y}`);
        await rows.nth(12).getByRole("link").click();
        await on.region("Timeline").getByText("payment.completed").waitFor();
        assert.equal(await scrolled(page), 0);
        await page.goBack();
        await until("the list is where it was", async () => await scrolled(page) === y);
        await page.goForward();
        await heading("8.00 EUR").waitFor();
        await page.goBack();
        await until("the list is where it was", async () => await scrolled(page) === y);
      },
    );
    await step("each filter is a step of the history", async () => {
      await field("Status").selectOption("completed");
      await page.waitForURL(/status=completed$/);
      await field("Reference").fill("INV-7");
      await field("Reference").press("Enter");
      await on.showsRows("Payments", 1);
      await page.goBack();
      await on.showsRows("Payments", MADE);
      assert.equal(hash(), "#/payments?status=completed");
      assert.equal(await field("Reference").inputValue(), "");
      await page.goBack();
      await page.waitForURL(/#\/payments$/);
      assert.equal(await field("Status").inputValue(), "");
    });

    await step("two payments are compared", async () => {
      await go(`payments/${ids[0]}`);
      await link("Compare…").click();
      await heading("Compare payments").waitFor();
      await on.rows("Payments to choose from").first().locator("td").nth(2).click();
      const differences = page.getByRole("table", { name: "Differences" });
      await differences.waitFor();
      assert.equal(hash(), `#/compare?payment_id=${ids[0]}&other_id=${ids.at(-1)}`);
      const lines = (await differences.locator("tbody tr").allInnerTexts())
        .map((line) => line.split(/\s+/));
      const amount = lines.find(([name]) => name === "amount_minor");
      assert.equal(amount?.join(), "amount_minor,100,2000");
      assert.equal(lines.find(([name]) => name === "currency"), undefined);
      await on.region("Other payment").getByText("payment.completed").waitFor();
      await go(`compare?payment_id=${ids[0]}&other_id=${ids[0]}`);
      await see("The payments do not differ.");
      await go(`compare?payment_id=${ids[0]}&other_id=pay_${"0".repeat(26)}`);
      await on.region("Other payment").getByText("not_found").waitFor();
    });

    const saved = page.getByRole("list", { name: "Saved filters" });
    await step("a filter is saved, survives a new tab, and is deleted", async () => {
      await go("payments?status=completed&reference=INV-7");
      await press("Save filter");
      await saved.getByRole("link", { name: "Completed, INV-7" }).waitFor();
      assert.equal(await button("Save filter").count(), 0);
      const tab = await tabOf(() => link("Refunds").click({ modifiers: ["Control"] }));
      await tab.getByRole("navigation").getByText("Payments").click();
      await tab.getByRole("link", { name: "Completed, INV-7" }).click();
      await tab.getByRole("row").filter({ hasText: "INV-7" }).waitFor();
      await tab.close();
      await go("refunds");
      await see("No refunds yet");
      assert.equal(await saved.count(), 0);
    });
    await step("one that the API refuses is not saved, and 20 are the maximum", async () => {
      await go("payments?reference=4242%204242%204242%204242");
      await on.fault("invalid_parameter").waitFor();
      assert.equal(await button("Save filter").count(), 0);
      for (let i = 2; i <= 21; i++) {
        await go(`payments?reference=INV-${i}`);
        await heading("Payments").waitFor();
        await until(
          "the filter is applied",
          async () => await field("Reference").inputValue() === `INV-${i}`,
        );
        await press("Save filter");
      }
      await see("20 filters are saved, which is the maximum. Delete one first.");
      assert.equal(await saved.getByRole("link").count(), 20);
      for (let left = 20; left > 1; left--) {
        await saved.getByRole("button").first().click();
      }
      await saved.getByRole("link", { name: "INV-20" }).waitFor();
    });

    const press_keys = async (...keys: string[]) => {
      for (const key of keys) await page.keyboard.press(key);
    };
    const finds = dialog("Go to a page or an action");
    const find = async (text: string) => {
      await press_keys("Control+k");
      await finds.waitFor();
      await page.keyboard.insertText(text);
    };
    await step("Ctrl-K opens a page, a saved filter, an id, and a search", async () => {
      await find("webh");
      await press_keys("Enter");
      await heading("Webhooks").waitFor();
      await find("inv-20");
      await press_keys("Enter");
      await page.waitForURL(/reference=INV-20$/);
      await find(ids[4]!);
      await press_keys("Enter");
      await heading("5.00 EUR").waitFor();
      await find("INV-9");
      await press_keys("ArrowDown", "Enter");
      await heading("Search").waitFor();
    });
    await step(
      "and an action, whose dialog returns the focus to its button",
      async () => {
        await go(`payments/${ids[4]}`);
        await button("Refund…").waitFor();
        await find("refund");
        const names = await finds.getByRole("listitem").allInnerTexts();
        assert.ok(names.some((name) => /^Refund…\s+Action$/.test(name)), `${names}`);
        await press_keys(
          ...names.slice(0, names.findIndex((name) => /^Refund…/.test(name)) + 1)
            .map(() => "ArrowDown"),
        );
        await press_keys("Enter");
        await dialog("Refund").waitFor();
        await press_keys("Escape");
        await page.getByRole("button", { name: "Refund…" }).and(page.locator(":focus")).waitFor();
      },
    );
    await step("the last saved filter leaves nothing in the storage", async () => {
      await go("payments");
      await saved.getByRole("button").click();
      assert.equal(await stored(page, "localStorage", "payments-console-filters"), null);
    });
  },
);

consoleCase(
  "typed forms survive, and are forgotten when sent",
  async (step, place) => {
    const { make, start } = place;
    const on = await place.enter("#/payments/new");
    const { page, field, fill, press, see, go, hash, choose, submit, heading } = on;
    const kept = () => stored(page, "sessionStorage", "payments-console-drafts");
    const restored = page.getByText("You typed this before.");

    await step("a form survives another page and a reload, without the card number", async () => {
      await choose(/^Declined by the issuer/);
      await fill({
        CVC: "987",
        Description: "Two chairs",
        "Customer’s e-mail": "grace@example.com",
      });
      await go("balance");
      await heading("Balance").waitFor();
      await page.goBack();
      await restored.waitFor();
      assert.equal(await field(/^Description/).inputValue(), "Two chairs");
      assert.equal(await field("Card number").inputValue(), "4242 4242 4242 4242");
      assert.equal(await field("CVC").inputValue(), "123");
      const text = (await kept())!;
      assert.match(text, /grace@example\.com/);
      assert.doesNotMatch(text, /4000|987/);
      assert.ok(!text.includes(start.test_key));
      await page.reload();
      await submit({ "Test key": start.test_key }, "Open the sandbox");
      await restored.waitFor();
      assert.equal(await field(/^Description/).inputValue(), "Two chairs");
    });
    await step("it is forgotten when it is sent", async () => {
      await press("Create payment");
      await heading("19.99 EUR").waitFor();
      assert.equal(await kept(), null);
      await go("payments/new");
      await heading("Create a payment").waitFor();
      assert.equal(await restored.count(), 0);
      assert.equal(await field(/^Description/).inputValue(), "");
    });
    for (const end of ["Start again", "Cancel"]) {
      await step(`“${end}” forgets it too`, async () => {
        await fill({ Reference: "order-1" });
        await go("balance");
        await heading("Balance").waitFor();
        await go("payments/new");
        await restored.waitFor();
        if (end === "Cancel") await on.link("Cancel").click();
        else await press(end);
        await until("nothing is kept", async () => await kept() === null);
        if (end === "Start again") assert.equal(await field(/^Reference/).inputValue(), "");
      });
    }
    const evidence = page.getByRole("textbox", { name: "Evidence" });
    await step("evidence survives, of its dispute only", async () => {
      const body = { amount_minor: 500, currency: "EUR", outcome: "chargeback" };
      const [one, other] = [await make(SANDBOX, body), await make(SANDBOX, body)];
      await go(`payments/${one}`);
      await fill({ Evidence: "A signed receipt" });
      await go(`payments/${other}`);
      await page.waitForURL(new RegExp(other));
      await heading("5.00 EUR").waitFor();
      await until("the other dispute", async () => await evidence.inputValue() === "");
      await page.goBack();
      await restored.waitFor();
      assert.equal(await evidence.inputValue(), "A signed receipt");
      await press("Submit evidence");
      await on.said(/^Evidence submitted/).waitFor();
      assert.equal(await kept(), null);
      assert.equal(hash(), `#/payments/${one}`);
    });
    await step(
      "a dialog that Escape closes keeps its values, for its key",
      async () => {
        await go("keys");
        await press("Make a key…");
        await fill({ Name: "Reports" });
        await page.keyboard.press("Escape");
        await press("Make a key…");
        await see("You typed this before.");
        assert.equal(await field("Name").inputValue(), "Reports");
        await page.keyboard.press("Escape");
        await press("Sandboxes…");
        await submit({ Name: "PR 17" }, "Make and switch", /This is the disposable sandbox PR 17/);
        await go("keys");
        await press("Make a key…");
        assert.equal(await field("Name").inputValue(), "");
        await page.keyboard.press("Escape");
        await press("Back to the first sandbox");
      },
    );
    await step("the page forgets all of it with the key", async () => {
      assert.match((await kept())!, /Reports/);
      await press("Forget key");
      await heading("Open your sandbox").waitFor();
      assert.equal(await kept(), null);
    });
  },
);
