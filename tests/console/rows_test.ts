/**
 * The rows of lists: their text can be selected, a click opens them, each request leads to the
 * resource that it names, and the way back to a list keeps its filters and its page.
 */

import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { consoleCase, DESKTOP, PHONE } from "../support/console/console_case.ts";

const SANDBOX = "/api-v1-sandbox/payments";
/** More than a page of a list. */
const MADE = 45;

/** The text that is selected, and how far the page is scrolled. Both run in the page. */
// deno-lint-ignore no-explicit-any
const selected = (page: Page) => page.evaluate(() => String((globalThis as any).getSelection()));
// deno-lint-ignore no-explicit-any
const scrolled = (page: Page) => page.evaluate(() => (globalThis as any).scrollY as number);

/** Drags the mouse over a text. */
async function dragOver(page: Page, box: { x: number; y: number; width: number; height: number }) {
  const y = box.y + box.height / 2;
  await page.mouse.move(box.x + 1, y);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width - 1, y, { steps: 5 });
  await page.mouse.up();
}

consoleCase("rows of lists are selected, opened and left", async (step, { enter, make }) => {
  for (let i = 1; i <= MADE; i++) {
    const body = { amount_minor: 100 * i, currency: "EUR", outcome: "success" };
    await make(SANDBOX, { ...body, reference: `INV-${i}` });
  }
  const { page, link, region, heading, rows, go, hash, see, press } = await enter(
    "#/payments",
  );
  await rows("Payments").nth(19).waitFor();
  const first = rows("Payments").first();

  await step("a drag over a reference selects its text and opens nothing", async () => {
    const text = first.getByText(`INV-${MADE}`);
    const range = await text.evaluate((cell) => {
      // deno-lint-ignore no-explicit-any
      const range = (globalThis as any).document.createRange();
      range.selectNodeContents(cell);
      const { x, y, width, height } = range.getBoundingClientRect();
      return { x, y, width, height };
    });
    await dragOver(page, range);
    assert.match(`INV-${MADE}`, new RegExp(await selected(page)));
    assert.ok((await selected(page)).length >= 4, await selected(page));
    assert.equal(hash(), "#/payments");
  });
  await step("a click on a cell opens the payment", async () => {
    await page.mouse.click(5, 5);
    await first.locator("td").nth(2).click();
    await heading("45.00 EUR").waitFor();
    await link("Payments").last().click();
  });
  await step("with Ctrl it opens another tab", async () => {
    const opened = page.context().waitForEvent("page");
    await first.locator("td").nth(2).click({ modifiers: ["Control"] });
    await (await opened).close();
    assert.equal(hash(), "#/payments");
  });

  await step("an older page begins at its top", async () => {
    await page.getByLabel("Status").selectOption("completed");
    await page.waitForURL(/status=completed$/);
    await rows("Payments").nth(19).waitFor();
    const older = link("Older");
    await older.scrollIntoViewIfNeeded();
    assert.ok(await scrolled(page) > 0);
    await older.click();
    await rows("Payments").filter({ hasText: `INV-${MADE}` }).waitFor({ state: "detached" });
    assert.equal(await rows("Payments").count(), 20);
    assert.equal(await scrolled(page), 0);
  });
  for (const leave of ["the crumb", "the back button"]) {
    await step(`${leave} leads back to the page and its filters`, async () => {
      const list = hash();
      assert.match(list, /status=completed&starting_after=pay_/);
      await rows("Payments").first().getByRole("link").click();
      await region("Timeline").waitFor();
      if (leave === "the crumb") await page.locator(".crumb a").click();
      else await page.goBack();
      await rows("Payments").first().waitFor();
      assert.equal(hash(), list);
    });
  }
  await step("the navigation leads to the whole list", async () => {
    await page.getByRole("navigation", { name: "Sections" }).getByText("Payments").click();
    await rows("Payments").filter({ hasText: `INV-${MADE}` }).waitFor();
    assert.equal(hash(), "#/payments");
  });
  await step("a reset forgets the filters and the page, whose cursor is gone", async () => {
    await go("transfers?status=pending");
    await see("No transfer matches");
    await press("Reset sandbox", "Delete everything");
    await see("No payments yet");
    await go("transfers/new");
    await heading("Create a transfer").waitFor();
    assert.equal(await page.locator(".crumb a").getAttribute("href"), "#/transfers");
  });
});

consoleCase("each request leads to its resource", async (step, { enter, make, send }) => {
  const pay = (amount_minor: number, outcome: string) =>
    make(SANDBOX, { amount_minor, currency: "EUR", outcome });
  const paid = await pay(5000, "success");
  const refund = await make(`payments/${paid}/refund`, { amount: 100 });
  await send("POST", `payments/${paid}/capture`);
  const disputed = await pay(700, "chargeback");
  const { data: [{ id: dispute }] } = await send("GET", "disputes");
  const destination = { iban: "DE89 3704 0044 0532 0130 00" };
  const transfer = await make("transfers", { amount: 300, currency: "EUR", destination });
  for (const path of [`refunds/${refund}`, `disputes/${dispute}`, `transfers/${transfer}`]) {
    await send("GET", path);
  }
  const { page, region, rows, go, hash, see } = await enter("#/requests");

  const leads: [request: string, leads_to: string][] = [
    [`payments/${paid}/refund`, `payments/${paid}`],
    [`payments/${paid}/capture`, `payments/${paid}`],
    [`refunds/${refund}`, `payments/${paid}`],
    [`disputes/${dispute}`, `payments/${disputed}`],
    [`transfers/${transfer}`, `transfers/${transfer}`],
  ];
  for (const [request, leads_to] of leads) {
    await step(request.replaceAll(/_\w{26}/g, "_…"), async () => {
      await go("requests");
      const shown = `/${request}`.replace(/([a-z]+_)\w{22}(\w{4})/, "$1…$2");
      const row = rows("Requests").filter({ has: page.getByText(shown, { exact: true }) });
      await row.first().locator(".mention").click();
      await region("Timeline").waitFor();
      assert.equal(hash(), `#/${leads_to}`);
      assert.match(await page.getByRole("heading", { level: 1 }).innerText(), /\d EUR/);
    });
  }
  await step("a resource that does not exist says so", async () => {
    await go(`refunds/re_${"0".repeat(26)}`);
    await see("Cannot show this refund.");
  });
  for (const [name, viewport] of Object.entries({ DESKTOP, PHONE })) {
    await step(`no path is cut, ${name}`, async () => {
      await page.setViewportSize(viewport);
      await go("requests");
      await rows("Requests").first().waitFor();
      const cells = await page.locator("td.whole").evaluateAll(
        // deno-lint-ignore no-explicit-any
        (cells: any[]) =>
          cells.map(({ scrollWidth, clientWidth, innerText }) => ({
            innerText,
            hidden: scrollWidth - clientWidth,
          })),
      );
      assert.ok(cells.length >= leads.length);
      for (const { innerText, hidden } of cells) assert.ok(hidden <= 0, innerText);
    });
  }
});
