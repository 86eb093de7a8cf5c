/**
 * The lists of refunds, disputes, ledger entries and API keys, the way from an account of the
 * balance to its entries, and the CSV files of lists.
 */

import assert from "node:assert/strict";
import { consoleCase } from "../support/console/console_case.ts";

const FORMULA = '=HYPERLINK("http://x","y")';

/** The records of a file. The texts of these tests have no line breaks. */
const records = (text: string) => text.replace(/^\uFEFF/, "").trimEnd().split("\r\n");

consoleCase("money is found in lists, and lists are saved as CSV", async (step, place) => {
  const { make } = place;
  const pay = (body: Record<string, unknown>) =>
    make("/api-v1-sandbox/payments", {
      ...{ amount_minor: 5_000, currency: "EUR", outcome: "success" },
      ...body,
    });
  const paid = await pay({ description: FORMULA });
  await pay({ currency: "USD" });
  const waiting = await pay({ settlement: "manual" });
  await make(`payments/${paid}/refund`, { amount: 700, reason: "duplicate" });
  await make(`payments/${waiting}/refund`, { amount: 300 });
  await pay({ outcome: "chargeback", amount_minor: 900 });
  const { page, rows, showsRows, field, press, see, go, hash, region } = await place.enter(
    "#/refunds",
  );

  await step("refunds of all payments, filtered by status", async () => {
    await showsRows("Refunds", 2);
    await field("Status").selectOption("pending");
    await showsRows("Refunds", 1);
    assert.match(await rows("Refunds").innerText(), /3\.00 EUR\s+Pending/);
    await rows("Refunds").locator("td").nth(1).click();
    await region("Timeline").waitFor();
    assert.equal(hash(), `#/payments/${waiting}`);
  });
  await step("disputes of all payments", async () => {
    await go("disputes");
    await showsRows("Disputes", 1);
    assert.match(await rows("Disputes").innerText(), /9\.00 EUR\s+Needs response/);
    await field("Status").selectOption("won");
    await see("No dispute matches");
  });
  await step("an account of the balance leads to its entries in this currency", async () => {
    await go("balance");
    const account = page.getByRole("table", { name: "Accounts in EUR" })
      .getByRole("row", { name: /^Available/ });
    await account.locator("td").last().click();
    // Two captures, a disputed one and its chargeback, and the completed refund.
    await showsRows("Ledger entries", 5);
    assert.equal(hash(), "#/ledger?account=available&currency=EUR");
    await rows("Ledger entries").first().getByRole("link").last().click();
    await showsRows("Ledger entries", 2);
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
      window.showSaveFilePicker = async () => {
        const folder = await window.navigator.storage.getDirectory();
        return await folder.getFileHandle("saved.csv", { create: true });
      };
    });
    await go("payments?currency=CHF");
    await showsRows("Payments", 20);
    await press("Export CSV");
    await see("Exported 103 payments.");
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
    await showsRows("Payments", 3);
    const saving = page.waitForEvent("download");
    await press("Export CSV");
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
    await press("Export CSV", "Stop: 0 exported");
    read.resolve();
    await see("The export was stopped. There is no file.", "Export CSV");
    await page.unrouteAll();
  });
  await step("a failure leaves no file", async () => {
    await page.route("**/v1/payments?*limit=100*", (route) =>
      route.fulfill({
        status: 403,
        json: { error: { type: "invalid_request", code: "permission_denied", message: "No" } },
      }));
    await press("Export CSV");
    await see("No file: No");
    await page.unrouteAll();
  });
});

consoleCase("API keys are made, rotated and ended", async (step, { enter, start, origin }) => {
  const on = await enter("#/keys");
  const { page, rows, press, see, submit, region, fault } = on;
  const works = async (key: string) =>
    (await fetch(`${start.base_url}/api-v1-payments/v1/payments?limit=1`, {
      headers: { Authorization: `Bearer ${key}` },
    })).status;
  const secret = () => region("API key").locator("code").innerText();
  const row = (name: string) => rows("API keys").filter({ hasText: name });
  let made = "";
  await step("a key with one scope is made, and its text is shown once", async () => {
    await press("Make a key…", "Make key");
    await fault().waitFor();
    await on.choose("Chosen scopes");
    await submit({ Name: "Reports", "Ends at": "tomorrow" }, "Make key");
    await fault(/^Not a time/).waitFor();
    await submit({ "Ends at": "" }, "Make key");
    await row("Reports").getByText("Works").waitFor();
    assert.match(await row("Reports").innerText(), /payments:read/);
    made = await secret();
    assert.equal(await works(made), 200);
    await press(/^API calls/);
    await page.getByRole("tab", { name: "Response" }).click();
    const response = await page.getByRole("tabpanel").innerText();
    assert.match(response, /"secret": "…"/);
    assert.ok(!response.includes(made.slice(8, -4)));
    await press(/^API calls/);
  });
  await step("a rotation ends the older secret at once, if the user wants it", async () => {
    await press("Rotate Reports…");
    await submit({ "Older secrets end": "Now" }, "Rotate key", "API key Reports rotated.");
    const rotated = await secret();
    assert.notEqual(rotated, made);
    assert.deepEqual([await works(made), await works(rotated)], [401, 200]);
    made = rotated;
    await press("I have stored it");
    assert.equal(await page.getByText(made).count(), 0);
  });
  await step("an ended key stays in the list, and works no more", async () => {
    await press("End Reports…", "End key");
    await row("Reports").getByText("Ended", { exact: true }).waitFor();
    assert.equal(await works(made), 401);
    assert.equal(await row("Reports").getByRole("button").count(), 0);
  });
  const own = row("This page");
  await step("a rotation of the page’s own key continues with the new secret", async () => {
    for (const older_end of ["Now", "After one day"]) {
      await own.getByRole("button", { name: /^Rotate/ }).click();
      await submit({ "Older secrets end": older_end }, "Rotate key", /^API key .* rotated\.$/);
      const rotated = await secret();
      assert.equal(await works(rotated), 200);
      await page.locator(".account .key").getByText(rotated.slice(-4)).waitFor();
      await own.waitFor();
      await press("I have stored it");
    }
  });
  await step("the end of the page’s own key asks for another one", async () => {
    assert.equal(await own.count(), 1);
    await own.getByRole("button", { name: /^End/ }).click();
    await see("This page uses the key");
    await press("Keep key");
    assert.equal(await works(start.test_key), 401);
    await own.waitFor();
    assert.ok(page.url().startsWith(origin));
  });
});
