/**
 * The lists of refunds, disputes, ledger entries and API keys, the way from an account of the
 * balance to its entries, and the CSV files of lists.
 */

import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { consoleCase } from "../support/console/console_case.ts";

const V1 = "/api-v1-payments/v1";
const SANDBOX = "/api-v1-sandbox/payments";
const FORMULA = '=HYPERLINK("http://x","y")';

const rows = (page: Page, name: string) => page.getByRole("table", { name }).locator("tbody tr");
const button = (page: Page, name: string | RegExp) =>
  page.getByRole("button", { name, exact: typeof name === "string" });

async function showsRows(page: Page, name: string, count: number): Promise<void> {
  await rows(page, name).nth(count - 1).waitFor();
  await rows(page, name).nth(count).waitFor({ state: "detached" });
}

/** The records of a file. The texts of these tests have no line breaks. */
const records = (text: string) => text.replace(/^\uFEFF/, "").trimEnd().split("\r\n");

consoleCase("money is found in lists, and lists are saved as CSV", async (step, place) => {
  const { start } = place;
  const make = async (path: string, body: unknown): Promise<string> =>
    ((await start.call("POST", path, body)).body as { id: string }).id;
  const pay = (body: Record<string, unknown>) =>
    make(SANDBOX, { amount_minor: 5_000, currency: "EUR", outcome: "success", ...body });
  const paid = await pay({ description: FORMULA });
  await pay({ currency: "USD" });
  const waiting = await pay({ settlement: "manual" });
  await make(`${V1}/payments/${paid}/refund`, { amount: 700, reason: "duplicate" });
  await make(`${V1}/payments/${waiting}/refund`, { amount: 300 });
  await pay({ outcome: "chargeback", amount_minor: 900 });
  const { page } = await place.enter("#/refunds");
  const go = (to: string) => page.goto(`${place.origin}/console/#/${to}`);

  await step("refunds of all payments, filtered by status", async () => {
    await showsRows(page, "Refunds", 2);
    await page.getByLabel("Status").selectOption("pending");
    await showsRows(page, "Refunds", 1);
    assert.match(await rows(page, "Refunds").innerText(), /3\.00 EUR\s+Pending/);
    await rows(page, "Refunds").locator("td").nth(1).click();
    await page.getByRole("region", { name: "Timeline" }).waitFor();
    assert.ok(page.url().endsWith(`#/payments/${waiting}`));
  });
  await step("disputes of all payments", async () => {
    await go("disputes");
    await showsRows(page, "Disputes", 1);
    assert.match(await rows(page, "Disputes").innerText(), /9\.00 EUR\s+Needs response/);
    await page.getByLabel("Status").selectOption("won");
    await page.getByText("No dispute matches").waitFor();
  });
  await step("an account of the balance leads to its entries in this currency", async () => {
    await go("balance");
    const account = page.getByRole("table", { name: "Accounts in EUR" })
      .getByRole("row", { name: /^Available/ });
    await account.locator("td").last().click();
    // Two captures, a disputed one and its chargeback, and the completed refund.
    await showsRows(page, "Ledger entries", 5);
    assert.ok(page.url().endsWith("#/ledger?account=available&currency=EUR"));
    await rows(page, "Ledger entries").first().getByRole("link").last().click();
    await showsRows(page, "Ledger entries", 2);
  });

  const saved = () =>
    page.evaluate(async () => {
      // deno-lint-ignore no-explicit-any
      const folder = await (globalThis as any).navigator.storage.getDirectory();
      const handle = await folder.getFileHandle("saved.csv");
      return await (await handle.getFile()).text() as string;
    });
  await step("a file that the browser writes page by page has the filtered payments", async () => {
    for (let i = 0; i < 103; i++) await pay({ currency: "CHF", reference: `order-${i}` });
    await page.evaluate(() => {
      // deno-lint-ignore no-explicit-any
      const window = globalThis as any;
      // The dialog of the system is not part of the page: a file of the origin takes its place.
      window.showSaveFilePicker = async (options: { suggestedName: string }) => {
        window.suggested = options.suggestedName;
        const folder = await window.navigator.storage.getDirectory();
        return await folder.getFileHandle("saved.csv", { create: true });
      };
    });
    await go("payments?currency=CHF");
    await showsRows(page, "Payments", 20);
    await button(page, "Export CSV").click();
    await page.getByText("Exported 103 payments.").waitFor();
    const [head, ...items] = records(await saved());
    assert.match(head!, /^id,created_at,status,amount_decimal,currency,amount_minor,/);
    assert.equal(items.length, 103);
    assert.match(items[0]!, /^pay_\w{26},[^,]+,completed,50\.00,CHF,5000,.*,order-102,/);
    assert.equal(new Set(items).size, 103);
  });
  await step("without that, the browser downloads the file, and no cell is a formula", async () => {
    await page.evaluate(() => {
      // deno-lint-ignore no-explicit-any
      (globalThis as any).showSaveFilePicker = undefined;
    });
    await go("payments?currency=EUR");
    await showsRows(page, "Payments", 3);
    const saving = page.waitForEvent("download");
    await button(page, "Export CSV").click();
    const file = await saving;
    assert.match(file.suggestedFilename(), /^payments-\d{4}-\d\d-\d\d\.csv$/);
    const items = records(await Deno.readTextFile(await file.path()));
    assert.equal(items.length, 4);
    assert.ok(items[3]!.includes(`,"'=HYPERLINK(""http://x"",""y"")",`), items[3]);
  });
  await step("a stopped export leaves no file", async () => {
    const read = Promise.withResolvers<void>();
    await page.route("**/v1/payments?*limit=100*", async (route) => {
      await read.promise;
      await route.continue();
    });
    await button(page, "Export CSV").click();
    await button(page, "Stop: 0 exported").click();
    read.resolve();
    await page.getByText("The export was stopped. There is no file.").waitFor();
    await button(page, "Export CSV").waitFor();
    await page.unrouteAll();
  });
  await step("a failure leaves no file", async () => {
    await page.route("**/v1/payments?*limit=100*", (route) =>
      route.fulfill({
        status: 403,
        json: { error: { type: "invalid_request", code: "permission_denied", message: "No" } },
      }));
    await button(page, "Export CSV").click();
    await page.getByText("No file: No").waitFor();
    await page.unrouteAll();
  });
});

consoleCase("API keys are made, rotated and ended", async (step, { enter, start, origin }) => {
  const { page } = await enter("#/keys");
  const works = async (key: string) =>
    (await fetch(`${start.base_url}/api-v1-payments/v1/payments?limit=1`, {
      headers: { Authorization: `Bearer ${key}` },
    })).status;
  const secret = () =>
    page.getByRole("region", { name: "API key", exact: true }).locator("code")
      .innerText();
  const row = (name: string) => rows(page, "API keys").filter({ hasText: name });
  let made = "";
  await step("a key with one scope is made, and its text is shown once", async () => {
    await button(page, "Make a key…").click();
    const dialog = page.getByRole("dialog", { name: "Make an API key" });
    await dialog.getByRole("button", { name: "Make key" }).click();
    await dialog.locator(".fault").waitFor();
    await dialog.getByLabel("Name").fill("Reports");
    await dialog.getByRole("radio", { name: "Chosen scopes" }).check();
    await dialog.getByLabel("Ends at").fill("tomorrow");
    await dialog.getByRole("button", { name: "Make key" }).click();
    await dialog.locator(".fault").getByText(/^Not a time/).waitFor();
    await dialog.getByLabel("Ends at").fill("");
    await dialog.getByRole("button", { name: "Make key" }).click();
    await row("Reports").getByText("Works").waitFor();
    assert.match(await row("Reports").innerText(), /payments:read/);
    made = await secret();
    assert.equal(await works(made), 200);
    await button(page, /^API calls/).click();
    await page.getByRole("tab", { name: "Response" }).click();
    const response = await page.getByRole("tabpanel").innerText();
    assert.match(response, /"secret": "…"/);
    assert.ok(!response.includes(made.slice(8, -4)));
    await button(page, /^API calls/).click();
  });
  await step("a rotation ends the older secret at once, if the user wants it", async () => {
    await button(page, "Rotate Reports…").click();
    await page.getByLabel("Older secrets end").selectOption("Now");
    await button(page, "Rotate key").click();
    await page.getByText("API key Reports rotated.").waitFor();
    const rotated = await secret();
    assert.notEqual(rotated, made);
    assert.deepEqual([await works(made), await works(rotated)], [401, 200]);
    made = rotated;
    await button(page, "I have stored it").click();
    assert.equal(await page.getByText(made).count(), 0);
  });
  await step("an ended key stays in the list, and works no more", async () => {
    await button(page, "End Reports…").click();
    await button(page, "End key").click();
    await row("Reports").getByText("Ended", { exact: true }).waitFor();
    assert.equal(await works(made), 401);
    assert.equal(await row("Reports").getByRole("button").count(), 0);
  });
  await step("a rotation of the page’s own key continues with the new secret", async () => {
    const own = rows(page, "API keys").filter({ hasText: "This page" });
    for (const older_end of ["Now", "After one day"]) {
      await own.getByRole("button", { name: /^Rotate/ }).click();
      await page.getByLabel("Older secrets end").selectOption(older_end);
      await button(page, "Rotate key").click();
      await page.getByText(/^API key .* rotated\.$/).waitFor();
      const rotated = await secret();
      assert.equal(await works(rotated), 200);
      await page.locator(".account .key").getByText(rotated.slice(-4)).waitFor();
      await own.waitFor();
      await button(page, "I have stored it").click();
    }
  });
  await step("the end of the page’s own key asks for another one", async () => {
    const own = rows(page, "API keys").filter({ hasText: "This page" });
    assert.equal(await own.count(), 1);
    await own.getByRole("button", { name: /^End/ }).click();
    await page.getByText("This page uses the key").waitFor();
    await button(page, "Keep key").click();
    assert.equal(await works(start.test_key), 401);
    await own.waitFor();
    assert.ok(page.url().startsWith(origin));
  });
});
