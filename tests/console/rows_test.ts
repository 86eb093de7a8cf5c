/**
 * The rows of lists: their text can be selected, a click opens them, each request leads to the
 * resource that it names, and the way back to a list keeps its filters and its page.
 */

import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { consoleCase, DESKTOP, PHONE } from "../support/console/console_case.ts";

const V1 = "/api-v1-payments/v1";
const SANDBOX = "/api-v1-sandbox/payments";
/** More than a page of a list. */
const MADE = 45;

const rows = (page: Page, name: string) => page.getByRole("table", { name }).locator("tbody tr");

/** The hash of the page, with which its route begins. */
const hash = (page: Page) => new URL(page.url()).hash;

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

consoleCase("rows of lists are selected, opened and left", async (step, { enter, start }) => {
  const make = async (path: string, body: unknown): Promise<string> =>
    ((await start.call("POST", path, body)).body as { id: string }).id;
  for (let i = 1; i <= MADE; i++) {
    await make(SANDBOX, {
      amount_minor: 100 * i,
      currency: "EUR",
      outcome: "success",
      reference: `INV-${i}`,
    });
  }
  const { page } = await enter("#/payments");
  await rows(page, "Payments").nth(19).waitFor();
  const first = rows(page, "Payments").first();

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
    assert.equal(hash(page), "#/payments");
  });
  await step("a click on a cell opens the payment", async () => {
    await page.mouse.click(5, 5);
    await first.locator("td").nth(2).click();
    await page.getByRole("heading", { name: "45.00 EUR" }).waitFor();
    await page.getByRole("link", { name: "Payments", exact: true }).last().click();
  });
  await step("with Ctrl it opens another tab", async () => {
    const opened = page.context().waitForEvent("page");
    await first.locator("td").nth(2).click({ modifiers: ["Control"] });
    await (await opened).close();
    assert.equal(hash(page), "#/payments");
  });

  await step("an older page begins at its top", async () => {
    await page.getByLabel("Status").selectOption("completed");
    await page.waitForURL(/status=completed$/);
    await rows(page, "Payments").nth(19).waitFor();
    const older = page.getByRole("link", { name: "Older" });
    await older.scrollIntoViewIfNeeded();
    assert.ok(await scrolled(page) > 0);
    await older.click();
    await rows(page, "Payments").filter({ hasText: `INV-${MADE}` }).waitFor({ state: "detached" });
    assert.equal(await rows(page, "Payments").count(), 20);
    assert.equal(await scrolled(page), 0);
  });
  for (const leave of ["the crumb", "the back button"]) {
    await step(`${leave} leads back to the page and its filters`, async () => {
      const list = hash(page);
      assert.match(list, /status=completed&starting_after=pay_/);
      await rows(page, "Payments").first().getByRole("link").click();
      await page.getByRole("region", { name: "Timeline" }).waitFor();
      if (leave === "the crumb") await page.locator(".crumb a").click();
      else await page.goBack();
      await rows(page, "Payments").first().waitFor();
      assert.equal(hash(page), list);
    });
  }
  await step("the navigation leads to the whole list", async () => {
    await page.getByRole("navigation", { name: "Sections" }).getByText("Payments").click();
    await rows(page, "Payments").filter({ hasText: `INV-${MADE}` }).waitFor();
    assert.equal(hash(page), "#/payments");
  });
  await step("a reset forgets the filters and the page, whose cursor is gone", async () => {
    await page.goto(`${page.url().split("#")[0]}#/transfers?status=pending`);
    await page.getByText("No transfer matches").waitFor();
    await page.getByRole("button", { name: "Reset sandbox" }).click();
    await page.getByRole("button", { name: "Delete everything" }).click();
    await page.getByText("No payments yet").waitFor();
    await page.goto(`${page.url().split("#")[0]}#/transfers/new`);
    await page.getByRole("heading", { name: "Create a transfer" }).waitFor();
    assert.equal(await page.locator(".crumb a").getAttribute("href"), "#/transfers");
  });
});

consoleCase("each request leads to its resource", async (step, { enter, start }) => {
  const call = (method: string, path: string, body?: unknown) => start.call(method, path, body);
  const make = async (path: string, body: unknown): Promise<string> =>
    ((await call("POST", path, body)).body as { id: string }).id;
  const paid = await make(SANDBOX, { amount_minor: 5000, currency: "EUR", outcome: "success" });
  const refund = await make(`${V1}/payments/${paid}/refund`, { amount: 100 });
  await call("POST", `${V1}/payments/${paid}/capture`);
  const disputed = await make(SANDBOX, {
    amount_minor: 700,
    currency: "EUR",
    outcome: "chargeback",
  });
  const disputes = (await call("GET", `${V1}/disputes`)).body as { data: { id: string }[] };
  const transfer = await make(`${V1}/transfers`, {
    amount: 300,
    currency: "EUR",
    destination: { iban: "DE89 3704 0044 0532 0130 00" },
  });
  const dispute = disputes.data[0]!.id;
  for (const path of [`refunds/${refund}`, `disputes/${dispute}`, `transfers/${transfer}`]) {
    await call("GET", `${V1}/${path}`);
  }
  const { page } = await enter("#/requests");

  const leads: [request: string, leads_to: string][] = [
    [`payments/${paid}/refund`, `payments/${paid}`],
    [`payments/${paid}/capture`, `payments/${paid}`],
    [`refunds/${refund}`, `payments/${paid}`],
    [`disputes/${dispute}`, `payments/${disputed}`],
    [`transfers/${transfer}`, `transfers/${transfer}`],
  ];
  for (const [request, leads_to] of leads) {
    await step(request.replaceAll(/_\w{26}/g, "_…"), async () => {
      await page.goto(`${page.url().split("#")[0]}#/requests`);
      const shown = `/${request}`.replace(/([a-z]+_)\w{22}(\w{4})/, "$1…$2");
      const row = rows(page, "Requests").filter({ has: page.getByText(shown, { exact: true }) });
      await row.first().locator(".mention").click();
      await page.getByRole("region", { name: "Timeline" }).waitFor();
      assert.equal(hash(page), `#/${leads_to}`);
      assert.match(await page.getByRole("heading", { level: 1 }).innerText(), /\d EUR/);
    });
  }
  await step("a resource that does not exist says so", async () => {
    await page.goto(`${page.url().split("#")[0]}#/refunds/re_${"0".repeat(26)}`);
    await page.getByText("Cannot show this refund.").waitFor();
  });
  for (const [name, viewport] of Object.entries({ DESKTOP, PHONE })) {
    await step(`no path is cut, ${name}`, async () => {
      await page.setViewportSize(viewport);
      await page.goto(`${page.url().split("#")[0]}#/requests`);
      await rows(page, "Requests").first().waitFor();
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
